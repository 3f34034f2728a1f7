"""How a payout is shown to its merchant."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct

from cambist.domain.money import format_units
from cambist.domain.payouts import Status
from cambist.registry import Registry

from .rows import PayoutRow


class FeeView(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the chain took for it, in its own coin. The platform paid it: no merchant's balance did."""

    amount: str
    token: str


class PayoutView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A payout as its merchant sees it. ``waits_for`` says in a sentence why it has not been sent yet."""

    payout_id: str
    kind: str
    status: str
    mode: str
    chain: str
    token: str
    contract_address: str | None
    decimals: int
    amount: str
    to_address: str
    tx_hash: str | None
    fee: FeeView | None
    error: str | None
    waits_for: str | None
    batch_id: str | None
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None


def payout_view(row: PayoutRow, registry: Registry) -> PayoutView:
    """Show a payout in whole tokens."""
    return PayoutView(
        payout_id=row.payout_id,
        kind=row.kind,
        mode=row.mode,
        fee=fee_view(row, registry),
        batch_id=row.batch_id,
        **what_every_kind_shows(row),
    )


def what_every_kind_shows(row: PayoutRow) -> dict[str, Any]:
    """Return the fields that views of payouts, refunds and withdrawals have in common."""
    return {
        "status": row.status,
        "chain": row.chain,
        "token": row.token,
        "contract_address": row.contract,
        "decimals": row.decimals,
        "amount": format_units(row.units, row.decimals),
        "to_address": row.to_address,
        "tx_hash": row.tx_id,
        "error": row.error,
        "waits_for": row.waits_for,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "completed_at": row.finished_at if row.status == Status.COMPLETED else None,
    }


def fee_view(row: PayoutRow, registry: Registry) -> FeeView | None:
    """Show what a payout has cost, where its chain is still enabled."""
    chain = registry.chains.get(row.chain)
    if row.fee is None or chain is None:
        return None
    return FeeView(amount=format_units(row.fee, chain.native.decimals), token=chain.native.symbol)
