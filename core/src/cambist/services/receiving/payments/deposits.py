"""What came for a payment, as it is selected beside it, and as its merchant and its customer see it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from cambist.domain.money import format_units

Row = TypeVar("Row")


class CustomersDeposit(Struct, frozen=True, kw_only=True, rename="camel"):
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


class DepositView(CustomersDeposit, frozen=True, kw_only=True, rename="camel"):
    """The same for the payment's merchant. ``resolution`` is what was decided about one that was held."""

    deposit_id: str
    resolution: str | None


class OrphanedDeposit(Struct, frozen=True, kw_only=True, rename="camel"):
    """A transfer to the payment's address that stood in the chain, until a reorganization took its block away.

    ``confirmed_at`` is None where it went before it had its confirmations.
    """

    deposit_id: str
    tx_hash: str
    chain: str
    token: str
    amount: str
    counted: bool
    seen_at: datetime
    confirmed_at: datetime | None
    orphaned_at: datetime


class _TransferRow(Struct, frozen=True, kw_only=True):
    """What is said of a deposit whatever became of it, as the database's JSON tells it."""

    deposit_id: str
    tx_id: str
    chain: str
    token: str
    decimals: int
    units: str
    matches: bool
    detected_at: datetime
    confirmed_at: datetime | None

    def transfer(self) -> dict[str, Any]:
        return {
            "tx_hash": self.tx_id,
            "chain": self.chain,
            "token": self.token,
            "amount": format_units(int(self.units), self.decimals),
            "counted": self.matches,
            "seen_at": self.detected_at,
            "confirmed_at": self.confirmed_at,
        }


class DepositRow(_TransferRow, frozen=True, kw_only=True):
    """A deposit that stands. ``head`` is the newest block known of the deposit's own chain."""

    status: str
    height: int
    head: int | None
    required_confirmations: int
    mined_at: datetime
    resolution: str | None

    def shown(self) -> dict[str, Any]:
        """Return what everybody sees; it has as many confirmations as blocks stand on top of its own."""
        return {
            **self.transfer(),
            "status": self.status,
            "confirmations": max(0, (self.head or self.height) - self.height),
            "required_confirmations": self.required_confirmations,
            "mined_at": self.mined_at,
        }

    def view(self) -> DepositView:
        """Show the deposit to the payment's merchant."""
        return DepositView(**self.shown(), deposit_id=self.deposit_id, resolution=self.resolution)

    def public_view(self) -> CustomersDeposit:
        """Show the deposit to the payment's customer."""
        return CustomersDeposit(**self.shown())


DEPOSITS_SHOWN_MAX = 50
"""Anyone can send dust to an address; an answer still has to stay small."""

# Amounts as text, since JSON readers may know numbers only as floats.
_TRANSFER = (
    "d.id, d.deposit_id, d.tx_id, d.chain, d.token, d.decimals, d.units::text AS units, d.matches, d.detected_at,"
    " d.confirmed_at, count(*) OVER () AS total"
)

# Oldest first of the newest.
DEPOSITS = f"""
    (SELECT json_build_object('total', max(total), 'rows', json_agg(d ORDER BY mined_at, id)) FROM (
        SELECT {_TRANSFER}, d.status, d.height, c.head, d.required_confirmations, d.mined_at, d.resolution
        FROM deposits d LEFT JOIN chain_cursors c ON c.chain = d.chain AND c.scope = d.scope
        WHERE d.payment_pk = p.id AND d.status <> 'orphaned'
        ORDER BY d.mined_at DESC, d.id DESC LIMIT {DEPOSITS_SHOWN_MAX}
    ) d)::text AS deposits
"""  # noqa: S608  a constant


ORPHANED = f"""
    (SELECT json_build_object('total', max(total), 'rows', json_agg(d ORDER BY orphaned_at, id)) FROM (
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
        return OrphanedDeposit(**self.transfer(), deposit_id=self.deposit_id, orphaned_at=self.orphaned_at)


class _Newest(Struct, Generic[Row], frozen=True):
    """The newest of some rows, and how many there are; nothing of both where there are none."""

    total: int | None
    rows: list[Row] | None

    @property
    def left_out(self) -> int:
        return (self.total or 0) - len(self.rows or ())


_deposits = msgspec.json.Decoder(_Newest[DepositRow])
_orphaned = msgspec.json.Decoder(_Newest[OrphanedRow])


def read_deposits(text: str) -> tuple[Sequence[DepositRow], int]:
    """Return the deposits that ``DEPOSITS`` selected, and how many it left out."""
    found = _deposits.decode(text)
    return found.rows or [], found.left_out


def read_orphaned(text: str) -> tuple[Sequence[OrphanedRow], int]:
    """Return the deposits that ``ORPHANED`` selected, and how many it left out."""
    found = _orphaned.decode(text)
    return found.rows or [], found.left_out
