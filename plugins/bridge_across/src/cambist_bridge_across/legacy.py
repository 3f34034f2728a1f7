"""Across's older interface: ``/suggested-fees``, ``/limits`` and ``/deposit/status``.

Across calls it deprecated. It needs no key, it answers with just what the contract's own function takes, and for the
test networks there is no other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Final, TypeVar

from msgspec import Meta, Struct

from cambist.plugin import ExchangeError, ExchangeRefusedError, ProviderUnavailableError, RefusalReason
from cambist_chainkit.providers import QUOTE_WAIT_MAX_S, ProviderClient, ProviderSetup

from .addresses import ADDRESS
from .api import WHO, AcrossApi, Limits, Offer, Route, Side, Tracked
from .config import AcrossConfig

T = TypeVar("T")

UINT256_MAX: Final = 2**256 - 1
_DIGITS: Final = re.compile(r"[0-9]{1,78}", re.ASCII)
_SIGNED: Final = re.compile(r"-?[0-9]{1,78}", re.ASCII)
_TX_ID: Final = re.compile(r"0x[0-9a-fA-F]{64}", re.ASCII)
_CODE: Final = re.compile(r"[A-Z][A-Z_]{0,47}", re.ASCII)

Text = Annotated[str, Meta(max_length=200)]
Number = Text | int


class _Token(Struct, rename="camel"):
    address: Text
    decimals: int
    chain_id: int


class _Fee(Struct):
    total: Number


class _Fees(Struct, rename="camel"):
    """What ``/suggested-fees`` answers. Numbers are text in most places, and numbers in some."""

    output_amount: Number
    input_token: _Token
    output_token: _Token
    spoke_pool_address: Text
    timestamp: Number
    fill_deadline: Number
    exclusive_relayer: Text
    relayer_capital_fee: _Fee
    relayer_gas_fee: _Fee
    lp_fee: _Fee
    exclusivity_deadline: Number | None = None
    destination_spoke_pool_address: Text | None = None
    estimated_fill_time_sec: float | None = None
    is_amount_too_low: bool = False


class _Limits(Struct, rename="camel"):
    min_deposit: Number
    max_deposit: Number


class _Status(Struct, rename="camel"):
    """What ``/deposit/status`` answers: the same under newer and older names."""

    status: Text
    origin_chain_id: Number | None = None
    deposit_id: Number | None = None
    fill_txn_ref: Text | None = None
    fill_tx: Text | None = None
    deposit_refund_txn_ref: Text | None = None
    deposit_refund_tx_hash: Text | None = None


class _Refusal(Struct):
    code: Text = ""
    param: Text = ""


_ROUTE_PARAMS: Final = {
    *("originChainId", "destinationChainId", "token", "inputToken", "outputToken"),
    *("inputTokenAddress", "outputTokenAddress"),  # which is how it calls them where it does not know the token
}
_REASONS: Final[Mapping[str, tuple[RefusalReason, str]]] = {
    "AMOUNT_TOO_LOW": ("amount_too_low", "the amount is too low for Across"),
    "AMOUNT_TOO_HIGH": ("amount_too_high", "the amount is too high for Across"),
    "ROUTE_NOT_ENABLED": ("unsupported", "Across does not bridge this token between these chains"),
    "SWAP_LIQUIDITY_INSUFFICIENT": ("no_liquidity", "nobody at Across has so much"),
    "SWAP_QUOTE_UNAVAILABLE": ("no_liquidity", "nobody at Across offers anything"),
}


def setup(config: AcrossConfig) -> ProviderSetup:
    """Return how Across's servers are asked."""
    return ProviderSetup(
        name=WHO,
        table="plugins.bridge_across",
        base_url=config.base_url,
        key=config.key,
        requests_per_second=config.requests_per_second,
        timeout_ms=config.timeout_ms,
        answer_bytes_max=1 << 18,
        refusals=frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND}),
    )


class LegacyApi(AcrossApi):
    """Asks the older interface. Whatever is not as it should be is ProviderUnavailableError."""

    def __init__(self, client: ProviderClient, integrator_id: str | None) -> None:
        self._client = client
        self._integrator = {} if integrator_id is None else {"integratorId": integrator_id}

    async def offer(self, route: Route, units: int, recipient: str, *, wait_max_s: float) -> Offer:
        """Ask for the fees of a deposit."""
        query = _query(route) | {"amount": str(units), "recipient": recipient}
        told = await self._ask("/suggested-fees", query, _Fees, "fees", wait_max_s)
        if told.is_amount_too_low:
            raise _refused(_Refusal("AMOUNT_TOO_LOW"), HTTPStatus.OK)
        fees = (
            ("relayer_capital", told.relayer_capital_fee),
            ("relayer_gas", told.relayer_gas_fee),
            ("lp", told.lp_fee),
        )
        return Offer(
            units_out=_number(told.output_amount),
            input_side=_side(told.input_token),
            output_side=_side(told.output_token),
            spoke_pool=_address(told.spoke_pool_address),
            destination_spoke_pool=_optional_address(told.destination_spoke_pool_address),
            quoted_at=_number(told.timestamp),
            fill_deadline=_number(told.fill_deadline),
            fill_s=_seconds(told.estimated_fill_time_sec),
            exclusive_relayer=_address(told.exclusive_relayer),
            exclusivity=0 if told.exclusivity_deadline is None else _number(told.exclusivity_deadline),
            fees=tuple((name, _number(fee.total, _SIGNED)) for name, fee in fees),
        )

    async def limits(self, route: Route) -> Limits:
        """Ask for the limits of a route."""
        told = await self._ask("/limits", _query(route), _Limits, "limits", QUOTE_WAIT_MAX_S)
        return Limits(units_min=_number(told.min_deposit), units_max=_number(told.max_deposit))

    async def track(self, origin: int, deposit_id: str) -> Tracked:
        """Ask for a deposit by its chain and number. What the server does not know yet is pending."""
        query = {"originChainId": str(origin), "depositId": deposit_id}
        answer = await self._client.get("/deposit/status", query, wait_max_s=QUOTE_WAIT_MAX_S)
        if answer.status == HTTPStatus.NOT_FOUND:
            return Tracked(state="pending")
        if answer.refused:
            raise ProviderUnavailableError(f"{WHO} does not say what became of a deposit (HTTP {answer.status})")
        told = self._client.decode(answer, _Status, "the state of a deposit")
        for asked, number in ((origin, told.origin_chain_id), (int(deposit_id), told.deposit_id)):
            if number is not None and _number(number) != asked:
                raise ProviderUnavailableError(f"{WHO} answers with another deposit than was asked for")
        match told.status:
            case "filled" | "slowFilled":
                return Tracked(state="filled", tx_id=_tx_id(told.fill_txn_ref or told.fill_tx))
            case "refunded":
                return Tracked(
                    state="refunded", tx_id=_tx_id(told.deposit_refund_txn_ref or told.deposit_refund_tx_hash)
                )
            case "expired":
                return Tracked(state="expired")
            case _:
                return Tracked(state="pending")

    async def _ask(self, path: str, query: Mapping[str, str], kind: type[T], wanted: str, wait_max_s: float) -> T:
        answer = await self._client.get(path, {**query, **self._integrator}, wait_max_s=wait_max_s)
        if answer.refused:
            raise _refused(self._client.decode(answer, _Refusal, wanted), answer.status)
        return self._client.decode(answer, kind, wanted)


def _query(route: Route) -> dict[str, str]:
    query = {
        "originChainId": str(route.origin),
        "destinationChainId": str(route.destination),
        "inputToken": route.input_token,
        "outputToken": route.output_token,
    }
    return query if route.same_decimals else query | {"allowUnmatchedDecimals": "true"}


def _refused(refusal: _Refusal, status: int) -> ExchangeError:
    if not _CODE.fullmatch(refusal.code):
        return ProviderUnavailableError(f"{WHO} refuses without saying why")
    # A token or a chain that Across does not know is a parameter that it finds wrong, or not found.
    unknown = refusal.code == "INVALID_PARAM" and refusal.param in _ROUTE_PARAMS
    code = "ROUTE_NOT_ENABLED" if unknown or status == HTTPStatus.NOT_FOUND else refusal.code
    reason, sentence = _REASONS.get(code, ("refused", f"Across refuses this: {code}"))
    return ExchangeRefusedError(sentence, reason=reason)


def _number(value: str | int, digits: re.Pattern[str] = _DIGITS) -> int:
    text = str(value) if isinstance(value, str) or abs(value) <= UINT256_MAX else ""
    if not digits.fullmatch(text) or abs(int(text)) > UINT256_MAX:
        raise ProviderUnavailableError(f"{WHO} answers with a number that is none")
    return int(text)


def _seconds(value: float | None) -> int | None:
    return None if value is None else _number(round(value) if abs(value) < UINT256_MAX else -1)


def _address(text: str) -> str:
    if not ADDRESS.fullmatch(text):
        raise ProviderUnavailableError(f"{WHO} answers with an address that is none")
    return text.lower()


def _optional_address(text: str | None) -> str | None:
    return None if text is None else _address(text)


def _side(token: _Token) -> Side:
    return Side(chain=token.chain_id, contract=_address(token.address), decimals=token.decimals)


def _tx_id(text: str | None) -> str | None:
    return text.lower() if text is not None and _TX_ID.fullmatch(text) else None
