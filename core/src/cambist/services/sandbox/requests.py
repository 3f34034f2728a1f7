"""What a merchant asks of a simulated chain."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from cambist.services.pricing.quotes import AmountText, Name

BLOCKS_MAX = 1000
SECONDS_MAX = 365 * 24 * 3600


class Deposit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Money for a payment or an account, named by its id or by an address of it, in a block of its own.

    ``amount`` is what remains to be paid unless it is given; ``token`` and ``chain`` are the payment's. For an account
    they are required, but for the chain where it has one alone. So many ``confirmations`` are mined on top: none, or
    all that the payment needs where the project mines by itself.
    """

    payment_id: Annotated[str, Meta(max_length=64)] | None = None
    account_id: Annotated[str, Meta(max_length=64)] | None = None
    address: Annotated[str, Meta(max_length=128)] | None = None
    amount: AmountText | None = None
    token: Name | None = None
    chain: Name | None = None
    confirmations: Annotated[int, Meta(ge=0, le=BLOCKS_MAX)] | None = None


class Mine(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """New blocks. The first takes every transfer that waits: sent by the gateway, or given back by a reorganisation."""

    chain: Name
    blocks: Annotated[int, Meta(ge=1, le=BLOCKS_MAX)] = 1


class Reorg(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Other blocks in the place of the newest ones.

    Deposits in them are gone for good (``drop``), or wait for the next block (``return``), as do payouts always.
    """

    chain: Name
    depth: Annotated[int, Meta(ge=1)]
    transactions: Literal["drop", "return"] = "drop"


class AdvanceTime(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Let time pass: on one chain of the project, or on all."""

    seconds: Annotated[int, Meta(ge=1, le=SECONDS_MAX)]
    chain: Name | None = None


class FailExchange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Have a swap or a bridge fail. Named by its id.

    ``revert``: its call fails in its block, before it is mined. ``expire``: nobody pays a bridge out, before somebody
    has; what was given comes back on its own chain.
    """

    txn_id: Annotated[str, Meta(max_length=64)]
    how: Literal["revert", "expire"] = "revert"


class FailPayout(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Have a payout, refund or withdrawal fail in its block. Named by its id, before it is mined."""

    payout_id: Annotated[str, Meta(max_length=64)]
