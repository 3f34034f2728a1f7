"""One row of each of operators' lists: whose it is, by id and name, and what a merchant's question is about."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeVar

from msgspec import Struct

from cambist.db.structs import AnyRow
from cambist.domain.failures import Failure, code_of
from cambist.domain.money import format_units
from cambist.services.sending.queue.reasons import sentence_of

RowT = TypeVar("RowT", bound=Struct)


class Owned(Struct, frozen=True, kw_only=True, rename="camel"):
    """Something of a merchant's. ``project`` is None where it belongs to the merchant as a whole."""

    merchant_id: str | None
    merchant_name: str | None
    project_id: str | None
    project_name: str | None
    mode: str
    created_at: datetime


class PaymentRow(Owned, frozen=True, kw_only=True, rename="camel"):
    """A payment, without anything about the customer."""

    payment_id: str
    status: str
    chain: str
    token: str
    expected_amount: str
    received_amount: str
    deposit_address: str
    tx_hash: str | None
    order_id: str | None
    expires_at: datetime
    updated_at: datetime


class DepositRow(Owned, frozen=True, kw_only=True, rename="camel"):
    """A transfer to an address of the gateway's. `heldAmount` waits for a decision, or for its payment to end."""

    deposit_id: str
    status: str
    chain: str
    token: str
    amount: str
    held_amount: str
    address: str
    from_address: str | None
    tx_hash: str
    block_number: int
    held_reason: str | None
    resolution: str | None
    payment_id: str | None
    account_id: str | None
    confirmed_at: datetime | None


class SentRow(Owned, frozen=True, kw_only=True, rename="camel"):
    """A payout, a refund or a withdrawal. `waitsFor` is why it has not been sent yet."""

    id: str
    kind: str
    status: str
    chain: str
    token: str
    amount: str
    to_address: str
    tx_hash: str | None
    waits_for: str | None
    waits_for_text: str | None
    error: str | None
    error_code: Failure | None
    updated_at: datetime
    completed_at: datetime | None


class ExchangeRow(Owned, frozen=True, kw_only=True, rename="camel"):
    """A swap or a bridge."""

    txn_id: str
    kind: str
    status: str
    provider: str
    source_chain: str
    source_token: str
    source_amount: str
    dest_chain: str
    dest_token: str
    dest_amount: str | None
    tx_hash: str | None
    dest_tx_hash: str | None
    waits_for: str | None
    waits_for_text: str | None
    error: str | None
    error_code: Failure | None
    completed_at: datetime | None


class AccountRow(Owned, frozen=True, kw_only=True, rename="camel"):
    """An end user's account."""

    account_id: str
    external_id: str
    is_active: bool
    updated_at: datetime


class TrackerRow(Owned, frozen=True, kw_only=True, rename="camel"):
    """A tracker, without its token and its secret."""

    webhook_id: str
    name: str
    chain: str
    is_active: bool
    start_block: int
    max_addresses: int
    updated_at: datetime


def shown(into: type[RowT], row: AnyRow) -> RowT:
    """Return a row as it is shown: units as amounts, by the decimals that stand beside them.

    The code of an error, and the sentence of what is waited for, are those of the column that is selected as them.
    """
    found = row._mapping  # noqa: SLF001  SQLAlchemy's public name for it
    values: dict[str, Any] = {}
    for name in into.__struct_fields__:
        value = found[name]
        if name.endswith("amount") and value is not None:
            prefix = name.rpartition("amount")[0]
            decimals = found.get(f"{prefix}decimals", found.get("decimals"))
            value = format_units(int(value), decimals)
        elif name == "error_code":
            value = code_of(value)
        elif name == "waits_for_text" and value is not None:
            value = sentence_of(value, of_exchange="provider" in into.__struct_fields__)
        values[name] = value
    return into(**values)
