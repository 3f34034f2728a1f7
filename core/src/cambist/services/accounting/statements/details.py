"""What an entry was about: payment, deposit, payout or exchange, its transaction, and what it was worth then."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal

from msgspec import Struct
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Deposit, Exchange, Payment, Payout
from cambist.db.structs import one_of
from cambist.domain.money import value_of
from cambist.services.pricing import price_points

from .entries import Entry

FIAT = price_points.CURRENCY
_CENT = Decimal("0.01")
_EXACT = Context(prec=200)
OUTGOING = {"po": "payout_id", "ref": "refund_id", "wd": "withdrawal_id"}
"""Whose id an ``outgoing_id`` is, by how it begins."""
_NAMED = re.compile(r"(?:^|[:/])((?:dep|pay|po|ref|wd|xch)_[0-9A-Za-z]+)")


class Detail(Struct, frozen=True, kw_only=True):
    """What is known about an entry besides what the ledger says.

    ``outgoing_id`` names a payout, refund or withdrawal, ``txn_id`` an exchange. ``tx_id`` is the deposit's where an
    exchange's entry is about one. ``fiat_value`` has the sign of the entry; it is None where no price of the time is
    known.
    """

    payment_id: str | None = None
    deposit_id: str | None = None
    outgoing_id: str | None = None
    txn_id: str | None = None
    tx_id: str | None = None
    fiat_value: Decimal | None = None


async def details_of(conn: AsyncConnection, entries: Sequence[Entry]) -> Sequence[Detail]:
    if not entries:
        return ()
    named = [_NAMED.findall(entry.reference) for entry in entries]
    names = sorted({name for found in named for name in found})
    known: dict[str, tuple[str | None, str | None]] = {}
    for table, name in ((Deposit, Deposit.deposit_id), (Payout, Payout.payout_id)):
        wanted = select(name.label("name"), table.tx_id, Payment.payment_id).where(one_of(name, names))
        rows = await conn.execute(wanted.outerjoin(Payment, Payment.id == table.payment_pk))
        known |= {row.name: (row.tx_id, row.payment_id) for row in rows}
    exchanges = await conn.execute(select(Exchange.txn_id, Exchange.tx_id).where(one_of(Exchange.txn_id, names)))
    known |= {row.txn_id: (row.tx_id, None) for row in exchanges}
    moments = [(entry.token.symbol, entry.created_at) for entry in entries]
    prices = await price_points.values_at(conn, moments)
    return [_detail(entry, found, known, price) for entry, found, price in zip(entries, named, prices, strict=True)]


def _detail(
    entry: Entry, names: Sequence[str], known: dict[str, tuple[str | None, str | None]], price: Decimal | None
) -> Detail:
    deposit = next((name for name in names if name.startswith("dep_")), None)
    outgoing = next((name for name in names if name.partition("_")[0] in OUTGOING), None)
    exchange = next((name for name in names if name.startswith("xch_")), None)
    payment = next((name for name in names if name.startswith("pay_")), None)
    tx_id, of_payment = known.get(outgoing or deposit or exchange or "", (None, None))
    return Detail(
        payment_id=payment or of_payment,
        deposit_id=deposit,
        outgoing_id=outgoing,
        txn_id=exchange,
        tx_id=tx_id,
        fiat_value=None if price is None else _worth(entry.units, entry.token.decimals, price),
    )


def _worth(units: int, decimals: int, price: Decimal) -> Decimal:
    return value_of(units, decimals, price).quantize(_CENT, rounding=ROUND_HALF_EVEN, context=_EXACT)
