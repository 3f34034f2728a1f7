"""An offer as its merchant sees it, before it is taken and after."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import asdict

from cambist.domain.exchanges import BPS
from cambist.domain.money import format_units
from cambist.plugin import Token

from .create import Prepared
from .offers import Offer
from .rows import ExchangeRow


class PlatformFee(Struct, frozen=True, kw_only=True):
    """What the platform keeps: of what comes out of a swap, as quoted, or of what is given into a bridge."""

    amount: str
    token: str


class QuoteView(Struct, frozen=True, kw_only=True, rename="camel"):
    """What would come out, after all fees. `dstAmountMin` is what must come at least once it is executed."""

    provider: str
    src_chain: str
    src_token: str
    src_amount: str
    src_amount_raw: str
    dest_chain: str
    dest_token: str
    dst_amount: str
    dst_amount_raw: str
    dst_amount_min: str
    dst_amount_min_raw: str
    slippage_percent: float
    platform_fee: PlatformFee | None


class BridgeFee(Struct, frozen=True, kw_only=True):
    """A part of what the bridge keeps, by its own name, in the token that is given."""

    name: str
    amount: str
    token: str


class BridgeQuoteView(QuoteView, frozen=True, kw_only=True, rename="camel"):
    """The same of a bridge. Nobody pays out after `fillDeadline`: what was given then comes back."""

    fees: Sequence[BridgeFee]
    fill_deadline: datetime | None
    estimated_fill_seconds: int | None


def offer_view(prepared: Prepared, offer: Offer) -> QuoteView:
    """Show what was offered for a swap."""
    wish, terms = prepared.wish, prepared.terms
    source, dest = wish.source.token, wish.dest.token
    return QuoteView(
        provider=offer.provider,
        src_chain=wish.source.chain.id,
        src_token=source.symbol,
        src_amount=format_units(wish.units, source.decimals),
        src_amount_raw=str(wish.units),
        dest_chain=wish.dest.chain.id,
        dest_token=dest.symbol,
        dst_amount=format_units(offer.quote.units, dest.decimals),
        dst_amount_raw=str(offer.quote.units),
        dst_amount_min=format_units(offer.units_min, dest.decimals),
        dst_amount_min_raw=str(offer.units_min),
        slippage_percent=offer.slippage_bps / 100,
        platform_fee=_fee(source, terms.fee_units, dest, offer.quote.units, terms.fee_bps),
    )


def bridge_offer_view(prepared: Prepared, offer: Offer) -> BridgeQuoteView:
    """Show what was offered for a bridge."""
    shown, token, quote = offer_view(prepared, offer), prepared.wish.source.token, offer.quote
    deadline = None if quote.fill_deadline is None else datetime.fromtimestamp(quote.fill_deadline, UTC)
    return BridgeQuoteView(
        **asdict(shown),
        fees=[
            BridgeFee(name=fee.name, amount=format_units(fee.units, token.decimals), token=token.symbol)
            for fee in quote.fees
        ],
        fill_deadline=deadline,
        estimated_fill_seconds=quote.fill_s,
    )


def taken_view(row: ExchangeRow) -> QuoteView:
    """Show the offer that was taken, from what is stored: a repetition is told the same."""
    return QuoteView(
        provider=row.provider,
        src_chain=row.source_chain,
        src_token=row.source_token,
        src_amount=format_units(row.units, row.source_decimals),
        src_amount_raw=str(row.units),
        dest_chain=row.dest_chain,
        dest_token=row.dest_token,
        dst_amount=format_units(row.quoted_units, row.dest_decimals),
        dst_amount_raw=str(row.quoted_units),
        dst_amount_min=format_units(row.units_min, row.dest_decimals),
        dst_amount_min_raw=str(row.units_min),
        slippage_percent=row.slippage_bps / 100,
        platform_fee=_fee(row.source, row.fee_units, row.dest, row.quoted_units, row.fee_bps),
    )


def _fee(source: Token, fee_units: int, dest: Token, quoted: int, fee_bps: int) -> PlatformFee | None:
    """Return the platform's fee: what is kept of the source, or the share that was taken before ``quoted``."""
    if fee_units:
        return PlatformFee(amount=format_units(fee_units, source.decimals), token=source.symbol)
    if not fee_bps:
        return None
    return PlatformFee(amount=format_units(quoted * fee_bps // (BPS - fee_bps), dest.decimals), token=dest.symbol)
