"""What merchants ask for: a swap or a bridge of so many smallest units, by the specification's names (section 4.4)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated

from msgspec import Meta, Struct

from cambist.domain.exchanges import BPS, Kind, to_bps
from cambist.domain.money import UNITS_MAX
from cambist.plugin import ChainInfo, Units
from cambist.services.errors import InvalidError
from cambist.services.platform import PlatformSettings
from cambist.services.pricing.quotes import Asset, Name
from cambist.services.supported import SPECIFIED, Wording, find_chain, find_token

SLIPPAGE_PERCENT_MAX = 50
RawText = Annotated[str, Meta(min_length=1, max_length=80, pattern=r"^[0-9]+$")]


class SwapAsk(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The body of ``POST /api/merchant/swap-bridge/swap/quote``."""

    src_chain: Name
    src_token: Name
    src_amount_raw: RawText
    dest_token: Name


class SwapOrder(SwapAsk, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The body of ``POST /api/merchant/swap-bridge/swap/execute``. ``slippage`` is a percentage."""

    slippage: Decimal | None = None
    idempotency_key: str | None = None


class BridgeAsk(SwapAsk, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The body of ``POST /api/merchant/swap-bridge/bridge/quote``."""

    dest_chain: Name


class BridgeOrder(BridgeAsk, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The body of ``POST /api/merchant/swap-bridge/bridge/execute``. ``slippage`` is a percentage."""

    slippage: Decimal | None = None
    idempotency_key: str | None = None


class Wish(Struct, frozen=True, kw_only=True):
    """An exchange that is wanted: ``units`` of the source for as much of the other as there is.

    ``slippage_bps`` is None for the operator's usual one.
    """

    source: Asset
    units: Units
    dest: Asset
    slippage_bps: int | None = None

    @property
    def kind(self) -> Kind:
        return Kind.SWAP if self.source.chain.id == self.dest.chain.id else Kind.BRIDGE


def read_wish(chains: Mapping[str, ChainInfo], ask: SwapAsk) -> Wish:
    """Return what is asked for. Raises InvalidError, naming the field."""
    source = read_source(chains, ask.src_chain, ask.src_token)
    dest_chain = ask.dest_chain if isinstance(ask, BridgeAsk) else ask.src_chain
    dest = _asset(chains, dest_chain, ask.dest_token, ("destChain", "destToken"))
    units = int(ask.src_amount_raw)
    if not 0 < units <= UNITS_MAX:
        raise InvalidError.field("srcAmountRaw", "must be above zero, and no more than any token has", "INVALID_AMOUNT")
    if isinstance(ask, BridgeAsk) and source.chain.id == dest.chain.id:
        raise InvalidError.field("destChain", "must be another chain: what stays on one is a swap")
    check_pair(source, dest)
    slippage = ask.slippage if isinstance(ask, SwapOrder | BridgeOrder) else None
    return Wish(source=source, units=Units(units), dest=dest, slippage_bps=slippage_in_bps(slippage))


def read_source(chains: Mapping[str, ChainInfo], chain: str, token: str) -> Asset:
    """Return what is given. Raises InvalidError, naming the field."""
    return _asset(chains, chain, token, ("srcChain", "srcToken"))


def check_pair(source: Asset, dest: Asset) -> None:
    """Refuse chains that run no contracts, and one token for itself. Raises InvalidError."""
    for asset in (source, dest):
        if not asset.chain.runs_contracts:
            raise InvalidError("SWAP_NOT_SUPPORTED_FOR_CHAIN", f"There are no swaps on {asset.chain.name}.")
    if source == dest:
        raise InvalidError.field("destToken", "must be another token than the one that is given")


def slippage_in_bps(slippage: Decimal | None) -> int | None:
    """Return a slippage in hundredths of a percent. Raises InvalidError."""
    if slippage is None:
        return None
    if not (slippage.is_finite() and 0 <= slippage <= SLIPPAGE_PERCENT_MAX):
        raise InvalidError.field("slippage", f"must be a percentage from 0 to {SLIPPAGE_PERCENT_MAX}")
    return min(to_bps(slippage), BPS)


def fee_bps(settings: PlatformSettings, kind: Kind, *, is_auto: bool = False) -> int:
    """Return the platform's fee, the markup of what a coin's rule converts included."""
    rule = settings.exchanges
    fee = rule.swap_fee_bps if kind is Kind.SWAP else rule.bridge_fee_bps
    return fee + (rule.auto_convert_markup_bps if is_auto else 0)


def _asset(chains: Mapping[str, ChainInfo], chain_id: str, symbol: str, fields: tuple[str, str]) -> Asset:
    wording: Wording = SPECIFIED
    chain = find_chain(chains, chain_id, fields[0], wording)
    return Asset(chain, find_token(chain, symbol, fields[1], wording))
