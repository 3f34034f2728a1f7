"""Postings that a reorg can take back."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.accounting.ledger import Movement, Posting, post

from .handler import IntentUpdate


class Reversible(Struct, frozen=True):
    """A movement that a final transaction made. ``reference`` names the transaction and its incarnation."""

    kind: str
    reference: str
    movement: Movement

    @classmethod
    def of(cls, update: IntentUpdate, movement: Movement) -> Reversible:
        """Return the movement that an intent made by becoming final."""
        return cls(update.kind, f"{update.reference}:{update.incarnation}", movement)


async def post_reversible(conn: AsyncConnection, mode: str, made: Sequence[Reversible], *, back: bool) -> None:
    """Post what was made; with ``back`` the opposite, as ``<kind>_reversal``."""
    postings = []
    for one in made:
        debit, credit, units = one.movement.debit, one.movement.credit, one.movement.units
        movement = Movement(credit, debit, units) if back else one.movement
        kind = f"{one.kind}_reversal" if back else one.kind
        postings.append(Posting(mode=mode, kind=kind, reference=one.reference, movements=[movement]))
    await post(conn, mode, postings)
