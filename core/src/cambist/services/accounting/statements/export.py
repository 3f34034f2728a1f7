"""A statement as a file: comma-separated, one line per entry, newest first, however long it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

import msgspec
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.moments import moment
from cambist.domain.money import format_units
from cambist.services.csv_lines import csv_lines, harmless
from cambist.services.errors import InvalidError

from .details import FIAT, OUTGOING, Detail, details_of
from .entries import BATCH, Bounds, Entry, Filters, Scope, count, read

Connected: TypeAlias = Callable[[], AbstractAsyncContextManager[AsyncConnection]]
"""Gives a connection for one piece of a file."""

ENTRIES_MAX = 200_000
STORED_ENTRIES_MAX = 2_000_000
"""Of a file that a job makes."""
BALANCES = ("available", "pending", "held", "receivable")
COLUMNS = (
    "id", "createdAt", "type", "chain", "token", "contractAddress", "amount", "from", "to", *BALANCES,
    "paymentId", "depositId", "payoutId", "refundId", "withdrawalId", "txnId", "txHash", f"fiatValue_{FIAT}",
)  # fmt: skip
"""The columns named as balances hold their change: each one sums up to the balance."""


async def check_size(conn: AsyncConnection, scope: Scope, bounds: Bounds) -> None:
    """Refuse a file for which too much would be read, before its first line is sent. Raises InvalidError."""
    found = await count(conn, scope, Filters(), bounds, ENTRIES_MAX + 1)
    if found > ENTRIES_MAX:
        message = f"A file holds at most {ENTRIES_MAX} entries; ask for a shorter time with from and to."
        raise InvalidError("EXPORT_TOO_LARGE", message)


class Piece(Struct, frozen=True, kw_only=True):
    """A part of the file, and the movements that are left for the next one."""

    text: bytes
    entries: int
    left: Bounds
    more: bool


async def read_piece(
    conn: AsyncConnection, scope: Scope, filters: Filters, bounds: Bounds, *, with_heading: bool
) -> Piece:
    """Return the next ``BATCH`` entries as lines of the file."""
    entries, more = await read(conn, scope, filters, bounds, BATCH)
    details = await details_of(conn, entries)
    text = csv_lines([COLUMNS]) if with_heading else b""
    if entries:
        text += csv_lines([_line(entry, detail) for entry, detail in zip(entries, details, strict=True)])
        bounds = msgspec.structs.replace(bounds, end=entries[-1].pk)
    return Piece(text=text, entries=len(entries), left=bounds, more=more)


async def lines(connected: Connected, scope: Scope, filters: Filters, bounds: Bounds) -> AsyncIterator[bytes]:
    """Yield the file piece by piece. No connection is held while the reader is slow."""
    left, more = ENTRIES_MAX, True
    yield csv_lines([COLUMNS])
    while more and left > 0:
        async with connected() as conn:
            piece = await read_piece(conn, scope, filters, bounds, with_heading=False)
        if piece.text:
            yield piece.text
        bounds, more, left = piece.left, piece.more, left - piece.entries


def _line(entry: Entry, detail: Detail) -> Sequence[str]:
    decimals = entry.token.decimals
    outgoing = detail.outgoing_id or ""
    kind = outgoing.partition("_")[0]
    changes = {entry.from_balance: -abs(entry.units), entry.to_balance: abs(entry.units)}
    return (
        entry.entry_id,
        moment(entry.created_at),
        entry.type,
        harmless(entry.chain),
        harmless(entry.token.symbol),
        harmless(entry.token.contract or ""),
        format_units(entry.units, decimals),
        entry.from_balance or "",
        entry.to_balance or "",
        *(format_units(changes.get(balance, 0), decimals) for balance in BALANCES),
        detail.payment_id or "",
        detail.deposit_id or "",
        *(outgoing if kind == one else "" for one in OUTGOING),
        detail.txn_id or "",
        harmless(detail.tx_id or ""),
        "" if detail.fiat_value is None else format(detail.fiat_value, "f"),
    )
