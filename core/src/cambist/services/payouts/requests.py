"""What a merchant says to pay somebody, and which of its two forms it is: a plain payout, or one with a swap."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated

from msgspec import Meta, Struct

from cambist.services.errors import FieldProblem, InvalidError
from cambist.services.pricing.quotes import AmountText, Name

DESTINATIONS_MAX = 100
SLIPPAGE_PERCENT_MAX = 50

AddressText = Annotated[str, Meta(min_length=1, max_length=128)]
TagText = Annotated[str, Meta(min_length=1, max_length=128)]


class PayoutRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The body of ``POST /api/merchant/wallet/payout``. ``slippage`` is a percentage, and only for a swap."""

    chain: Name
    token: Name
    to_address: AddressText
    to_tag: TagText | None = None
    amount: AmountText | None = None
    src_chain: Name | None = None
    src_token: Name | None = None
    src_amount: AmountText | None = None
    slippage: Decimal | None = None
    idempotency_key: str | None = None


class Destination(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A row of a batch. What is wrong with its address or amount is a reason to refuse the row alone."""

    to_address: Annotated[str, Meta(max_length=1024)]
    to_tag: Annotated[str, Meta(max_length=1024)] | None = None
    amount: Annotated[str, Meta(max_length=1024)]
    idempotency_key: str | None = None


class BatchRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The body of ``POST /api/merchant/wallet/payout/batch``: one token to many."""

    chain: Name
    token: Name
    destinations: Annotated[Sequence[Destination], Meta(min_length=1, max_length=DESTINATIONS_MAX)]
    idempotency_key: str | None = None


def wants_swap(request: PayoutRequest) -> bool:
    """Whether the request names anything of a swap, even where it names too little."""
    return any(value is not None for value in (request.src_chain, request.src_token, request.src_amount))


def swapped_from(request: PayoutRequest) -> tuple[str, str] | None:
    """Return chain and token of what would be sold for the payout, or None for a plain one, whose amount is then there.

    Raises InvalidError INVALID_PAYOUT_MODE for anything in between.
    """
    source = {"srcChain": request.src_chain, "srcToken": request.src_token, "srcAmount": request.src_amount}
    missing = [name for name, value in source.items() if value is None]
    if request.amount is not None and request.src_amount is not None:
        raise _mode("Send amount or srcAmount, not both.", ("amount", "srcAmount"), "excludes the other")
    if missing and len(missing) < len(source):
        raise _mode("srcChain, srcToken and srcAmount belong together.", missing, "is required beside the others")
    if missing and request.amount is None:
        raise _mode("Send amount, or srcChain, srcToken and srcAmount.", ("amount",), "is required")
    slippage = request.slippage
    if slippage is not None and not (slippage.is_finite() and 0 <= slippage <= SLIPPAGE_PERCENT_MAX):
        raise InvalidError.field("slippage", f"must be a percentage from 0 to {SLIPPAGE_PERCENT_MAX}")
    if request.src_chain is None or request.src_token is None:
        return None
    return request.src_chain, request.src_token


def _mode(sentence: str, fields: Sequence[str], problem: str) -> InvalidError:
    return InvalidError("INVALID_PAYOUT_MODE", sentence, [FieldProblem(field, problem) for field in fields])
