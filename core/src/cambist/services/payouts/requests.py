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


class PayoutRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The body of ``POST /api/merchant/wallet/payout``. ``slippage`` is a percentage, and only for a swap."""

    chain: Name
    token: Name
    to_address: AddressText
    amount: AmountText | None = None
    src_chain: Name | None = None
    src_token: Name | None = None
    src_amount: AmountText | None = None
    slippage: Decimal | None = None
    idempotency_key: str | None = None


class Swap(Struct, frozen=True, kw_only=True):
    """What would be sold to pay the recipient in another token."""

    chain: str
    token: str
    amount: str


class Destination(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A row of a batch. What is wrong with its address or amount is a reason to refuse the row alone."""

    to_address: Annotated[str, Meta(max_length=1024)]
    amount: Annotated[str, Meta(max_length=1024)]
    idempotency_key: str | None = None


class BatchRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The body of ``POST /api/merchant/wallet/payout/batch``: one token to many."""

    chain: Name
    token: Name
    destinations: Annotated[Sequence[Destination], Meta(min_length=1, max_length=DESTINATIONS_MAX)]
    idempotency_key: str | None = None


def swap_of(request: PayoutRequest) -> Swap | None:
    """Return the swap that is asked for, or None for a plain payout, whose amount is then there.

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
    _check_slippage(request.slippage)
    if request.src_chain is None or request.src_token is None or request.src_amount is None:
        return None
    return Swap(chain=request.src_chain, token=request.src_token, amount=request.src_amount)


def _mode(sentence: str, fields: Sequence[str], problem: str) -> InvalidError:
    return InvalidError("INVALID_PAYOUT_MODE", sentence, [FieldProblem(field, problem) for field in fields])


def _check_slippage(slippage: Decimal | None) -> None:
    if slippage is not None and not (slippage.is_finite() and 0 <= slippage <= SLIPPAGE_PERCENT_MAX):
        raise InvalidError.field("slippage", f"must be a percentage from 0 to {SLIPPAGE_PERCENT_MAX}")
