"""How a payment is shown: to its merchant in lists, to its merchant alone in full, and to its customer.

Three types, so that what a customer must not see is not left out of an answer, but has no place in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, cast

from msgspec import UNSET, Raw, Struct, UnsetType

from cambist.db.direct import Record
from cambist.domain.money import format_rate, format_units
from cambist.domain.payments import Status
from cambist.plugin import ChainInfo, Units
from cambist.services.addresses.macs import AddressMacs
from cambist.services.pricing.quotes import DIRECT

from .deposits import CustomersDeposit, DepositView, OrphanedDeposit, read_deposits, read_orphaned

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


class PaymentDetail(PaymentView, frozen=True, kw_only=True, rename="camel"):
    """A payment in full, for ``GET /api/payment/{paymentId}`` alone.

    Of both kinds of deposits the newest ``DEPOSITS_SHOWN_MAX`` are there, oldest first.
    """

    customer_name: str | None
    customer_email: str | None
    deposits: Sequence[DepositView]
    deposits_left_out: int
    orphaned_deposits: Sequence[OrphanedDeposit]
    orphaned_deposits_left_out: int


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
    deposits: Sequence[CustomersDeposit]
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


def payment_detail(row: Record, macs: AddressMacs) -> PaymentDetail:
    deposits, left_out = read_deposits(row["deposits"])
    orphaned, orphaned_left_out = read_orphaned(row["orphaned"])
    return PaymentDetail(
        **_for_merchant(row, macs),
        customer_name=row["customer_name"],
        customer_email=row["customer_email"],
        deposits=[one.view() for one in deposits],
        deposits_left_out=left_out,
        orphaned_deposits=[one.view() for one in orphaned],
        orphaned_deposits_left_out=orphaned_left_out,
    )


def public_payment(row: Record, chain: ChainInfo | None, macs: AddressMacs, *, set_aside: Units) -> PublicPayment:
    """Show a payment to its customer. ``chain`` is None where its plugin is no longer enabled.

    ``set_aside`` is what it received and does not count.
    """
    fields = _common(row, macs)
    deposits, left_out = read_deposits(row["deposits"])
    token = None if chain is None else chain.token(row["token"])
    ended = row["status"] in (Status.PAID, Status.OVERPAID, Status.UNDERPAID, Status.REFUNDED)
    counted = int(row["received_units"]) - set_aside
    remaining = 0 if ended else max(0, int(row["expected_units"]) - counted)
    return PublicPayment(
        **fields,
        shop_name=row["shop_name"],
        chain_name=row["chain"] if chain is None else chain.name,
        token_label=row["token"] if token is None else token.label,
        remaining_amount=format_units(remaining, row["decimals"]),
        deposits=[one.public_view() for one in deposits],
        deposits_left_out=left_out,
    )
