"""How a payment is shown: to its merchant in lists, to its merchant alone in full, and to its customer.

Three types, so that what a customer must not see is not left out of an answer, but has no place in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from cambist.db.direct import Record
from cambist.domain.money import format_rate, format_units
from cambist.domain.payments import Status
from cambist.plugin import ChainInfo
from cambist.services.addresses.macs import AddressMacs
from cambist.services.pricing.quotes import DIRECT

COLUMNS = (
    "id, payment_id, public_id, mode, chain, token, contract, decimals, address, pricing_mode, amount, fiat_currency,"
    " exchange_rate, rate_source, expected_units, received_units, refunded_units, required_confirmations, status,"
    " tx_id, order_id, webhook_url, success_url, cancel_url, customer_name, customer_email, metadata::text AS metadata,"
    " expires_at, created_at, updated_at, address_mac"
)


class PaymentView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A payment as its merchant's lists show it, without the customer's personal data.

    ``refunded_amount`` is what was asked to be sent back of what it received, and has not failed.
    """

    payment_id: str
    public_id: str
    mode: str
    status: str
    chain: str
    token: str
    contract_address: str | None
    decimals: int
    deposit_address: str
    pricing_mode: str
    amount: str
    expected_amount: str
    received_amount: str
    refunded_amount: str
    required_confirmations: int
    tx_hash: str | None
    order_id: str | None
    webhook_url: str | None
    success_url: str | None
    cancel_url: str | None
    metadata: dict[str, Any] | None
    expires_at: datetime
    created_at: datetime
    updated_at: datetime
    fiat_currency: str | UnsetType = UNSET
    exchange_rate: str | UnsetType = UNSET
    rate_source: str | UnsetType = UNSET


class DepositView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A transfer to the payment's address that stands in the chain now.

    ``counted`` is False where it is of another token or on another chain than the payment asks for.
    """

    tx_hash: str
    chain: str
    token: str
    amount: str
    counted: bool
    status: str
    confirmations: int
    required_confirmations: int
    seen_at: datetime
    mined_at: datetime
    confirmed_at: datetime | None


class OrphanedDeposit(Struct, frozen=True, kw_only=True, rename="camel"):
    """A transfer to the payment's address that stood in the chain, until a reorganization took its block away."""

    tx_hash: str
    chain: str
    token: str
    amount: str
    counted: bool
    seen_at: datetime
    orphaned_at: datetime


class PaymentDetail(PaymentView, frozen=True, kw_only=True, rename="camel"):
    """A payment in full, for ``GET /api/payment/{paymentId}`` alone."""

    customer_name: str | None
    customer_email: str | None
    deposits: Sequence[DepositView]
    orphaned_deposits: Sequence[OrphanedDeposit]


class PublicPayment(Struct, frozen=True, kw_only=True, rename="camel"):
    """A payment as its customer sees it: what to pay and where, and how far that has come."""

    payment_id: str
    public_id: str
    shop_name: str
    mode: str
    status: str
    chain: str
    chain_name: str
    token: str
    token_label: str
    contract_address: str | None
    decimals: int
    deposit_address: str
    pricing_mode: str
    amount: str
    expected_amount: str
    received_amount: str
    remaining_amount: str
    required_confirmations: int
    tx_hash: str | None
    order_id: str | None
    success_url: str | None
    cancel_url: str | None
    expires_at: datetime
    created_at: datetime
    deposits: Sequence[DepositView]
    deposits_left_out: int
    fiat_currency: str | UnsetType = UNSET
    exchange_rate: str | UnsetType = UNSET


def expected_amount(pricing_mode: str, amount: Decimal, expected_units: int, decimals: int) -> str:
    """Return what a payment expects, in tokens: what was asked for in tokens as it was asked for, zeros included."""
    return format(amount, "f") if pricing_mode == DIRECT else format_units(int(expected_units), decimals)


def _common(row: Record, macs: AddressMacs) -> dict[str, Any]:
    """Return what every view shows, under the same names. Raises UnavailableError for an address that was changed."""
    macs.check(row)
    decimals = row["decimals"]
    fields = {
        "payment_id": row["payment_id"],
        "public_id": row["public_id"],
        "mode": row["mode"],
        "status": row["status"],
        "chain": row["chain"],
        "token": row["token"],
        "contract_address": row["contract"],
        "decimals": decimals,
        "deposit_address": row["address"],
        "pricing_mode": row["pricing_mode"],
        "amount": format(row["amount"], "f"),
        "expected_amount": expected_amount(row["pricing_mode"], row["amount"], row["expected_units"], decimals),
        "received_amount": format_units(int(row["received_units"]), decimals),
        "required_confirmations": row["required_confirmations"],
        "tx_hash": row["tx_id"],
        "order_id": row["order_id"],
        "success_url": row["success_url"],
        "cancel_url": row["cancel_url"],
        "expires_at": row["expires_at"],
        "created_at": row["created_at"],
    }
    if row["fiat_currency"] is not None:
        fields["fiat_currency"] = row["fiat_currency"]
        fields["exchange_rate"] = format_rate(row["exchange_rate"])
    return fields


def _for_merchant(row: Record, macs: AddressMacs) -> dict[str, Any]:
    fields = _common(row, macs)
    fields["refunded_amount"] = format_units(int(row["refunded_units"]), row["decimals"])
    fields["webhook_url"] = row["webhook_url"]
    # JSON that came out of the database goes into the answer as it is.
    fields["metadata"] = None if row["metadata"] is None else cast("dict[str, Any]", Raw(row["metadata"].encode()))
    fields["updated_at"] = row["updated_at"]
    if row["rate_source"] is not None:
        fields["rate_source"] = row["rate_source"]
    return fields


def payment_view(row: Record, macs: AddressMacs) -> PaymentView:
    """Show a payment to its merchant, without the customer's personal data."""
    return PaymentView(**_for_merchant(row, macs))


def payment_detail(row: Record, deposits: Sequence[DepositView], macs: AddressMacs) -> PaymentDetail:
    return PaymentDetail(
        **_for_merchant(row, macs),
        customer_name=row["customer_name"],
        customer_email=row["customer_email"],
        deposits=deposits,
        orphaned_deposits=[one.view() for one in _orphaned.decode(row["orphaned"])],
    )


class _TransferRow(Struct, frozen=True, kw_only=True):
    """What is said of a deposit whatever became of it, as the database's JSON tells it."""

    tx_id: str
    chain: str
    token: str
    decimals: int
    units: str
    matches: bool
    detected_at: datetime

    def shown(self) -> dict[str, Any]:
        return {
            "tx_hash": self.tx_id,
            "chain": self.chain,
            "token": self.token,
            "amount": format_units(int(self.units), self.decimals),
            "counted": self.matches,
            "seen_at": self.detected_at,
        }


class DepositRow(_TransferRow, frozen=True, kw_only=True):
    """A deposit that stands. ``head`` is the newest block known of the deposit's own chain."""

    status: str
    height: int
    head: int | None
    required_confirmations: int
    mined_at: datetime
    confirmed_at: datetime | None

    def view(self) -> DepositView:
        """Show the deposit; it has as many confirmations as blocks stand on top of its own."""
        return DepositView(
            **self.shown(),
            status=self.status,
            confirmations=max(0, (self.head or self.height) - self.height),
            required_confirmations=self.required_confirmations,
            mined_at=self.mined_at,
            confirmed_at=self.confirmed_at,
        )


DEPOSITS_SHOWN_MAX = 50
"""Anyone can send dust to an address; an answer still has to stay small."""

# Amounts as text, since JSON readers may know numbers only as floats.
_TRANSFER = "d.id, d.tx_id, d.chain, d.token, d.decimals, d.units::text AS units, d.matches, d.detected_at"

# Oldest first of the newest.
DEPOSITS = f"""
    (SELECT json_build_object('total', max(total), 'rows', json_agg(d ORDER BY mined_at, id)) FROM (
        SELECT {_TRANSFER}, d.status, d.height, c.head, d.required_confirmations, d.mined_at, d.confirmed_at,
               count(*) OVER () AS total
        FROM deposits d LEFT JOIN chain_cursors c ON c.chain = d.chain AND c.scope = d.scope
        WHERE d.payment_pk = p.id AND d.status <> 'orphaned'
        ORDER BY d.mined_at DESC, d.id DESC LIMIT {DEPOSITS_SHOWN_MAX}
    ) d)::text AS deposits
"""  # noqa: S608  a constant


ORPHANED = f"""
    (SELECT coalesce(json_agg(d ORDER BY orphaned_at, id), '[]') FROM (
        SELECT {_TRANSFER}, d.orphaned_at
        FROM deposits d WHERE d.payment_pk = p.id AND d.status = 'orphaned'
        ORDER BY d.orphaned_at DESC, d.id DESC LIMIT {DEPOSITS_SHOWN_MAX}
    ) d)::text AS orphaned
"""  # noqa: S608  a constant


class OrphanedRow(_TransferRow, frozen=True, kw_only=True):
    """A deposit that ``ORPHANED`` selected."""

    orphaned_at: datetime

    def view(self) -> OrphanedDeposit:
        """Show the deposit as it was."""
        return OrphanedDeposit(**self.shown(), orphaned_at=self.orphaned_at)


_orphaned = msgspec.json.Decoder(list[OrphanedRow])


class _Deposits(Struct, frozen=True):
    total: int | None
    rows: list[DepositRow] | None


_deposits = msgspec.json.Decoder(_Deposits)


def read_deposits(text: str) -> tuple[Sequence[DepositView], int]:
    """Return the deposits that ``DEPOSITS`` selected, and how many it left out."""
    found = _deposits.decode(text)
    rows = found.rows or []
    return [row.view() for row in rows], (found.total or 0) - len(rows)


def public_payment(row: Record, chain: ChainInfo | None, macs: AddressMacs) -> PublicPayment:
    """Show a payment to its customer. ``chain`` is None where its plugin is no longer enabled."""
    fields = _common(row, macs)
    deposits, left_out = read_deposits(row["deposits"])
    token = None if chain is None else chain.token(row["token"])
    ended = row["status"] in (Status.PAID, Status.OVERPAID, Status.UNDERPAID, Status.REFUNDED)
    remaining = 0 if ended else max(0, int(row["expected_units"]) - int(row["received_units"]))
    return PublicPayment(
        **fields,
        shop_name=row["shop_name"],
        chain_name=row["chain"] if chain is None else chain.name,
        token_label=row["token"] if token is None else token.label,
        remaining_amount=format_units(remaining, row["decimals"]),
        deposits=deposits,
        deposits_left_out=left_out,
    )
