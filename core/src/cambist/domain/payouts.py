"""What money on its way out may become, and where each part of it goes when it comes back.

::

    requested ──> processing ──> broadcast ──> completed
        │             │              │             │ a reorg deeper than is waited for: broadcast again
        ├─────────────┴──────────────┴──> failed   │
        │             │                      └─────┘ it was mined all the same: completed
        └─────────────┴──> cancelling ──> cancelled
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct

from cambist.plugin import Units

from .intents import FACTS, PAYOUTS, IntentKind


class Status(StrEnum):
    """How far it has come. ``processing`` waits: for money to be collected, for gas, for a delay or for its turn.

    ``cancelling`` is sent no more; its money is back when it is ``cancelled``.
    """

    REQUESTED = "requested"
    PROCESSING = "processing"
    BROADCAST = "broadcast"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"


GIVEN_BACK = frozenset({Status.FAILED, Status.CANCELLED})
"""It did not happen, and its money went back to where it came from."""
FINISHED = frozenset({Status.COMPLETED}) | GIVEN_BACK


def while_waiting(status: Status) -> Status:
    """Return the status of what cannot be sent yet: one that is to be cancelled stays so."""
    return status if status is Status.CANCELLING else Status.PROCESSING


RESOURCES = MappingProxyType({kind: str(FACTS[kind].shown_as) for kind in (*PAYOUTS, IntentKind.WITHDRAWAL)})
"""The kinds that have events of their own, and what they are told to be. A refund is told of with its payment."""


class Release(Struct, frozen=True):
    """Where units go that were set aside and will not be sent."""

    held: Units
    repaid: Units
    available: Units


def release(units: Units, held_units: Units, debt: Units) -> Release:
    """Split what comes back: held gets what was taken from held, and of the rest a debt is repaid first."""
    rest = units - held_units
    repaid = min(rest, max(0, debt))
    return Release(held_units, Units(repaid), Units(rest - repaid))


def take_again(units: Units, available: Units) -> tuple[Units, Units]:
    """Split what was given back and was sent all the same: what available still has, and the debt that remains."""
    taken = min(units, max(0, available))
    return Units(taken), Units(units - taken)


class Limits(Struct, frozen=True, kw_only=True):
    """How much one merchant may send of one token. None is no limit. ``minimum`` is what a transfer has to be worth.

    ``least`` is what it must be to arrive.
    """

    least: Units = Units(1)
    minimum: Units | None = None
    per_transaction: Units | None = None
    per_day: Units | None = None

    def least_of(self, kind: IntentKind) -> Units:
        """Return the least that such a transfer may be. What a customer gets back need not be worth its fee."""
        return self.least if kind is IntentKind.REFUND else max(self.least, self.minimum or Units(0))

    def is_too_small(self, kind: IntentKind, units: Units) -> bool:
        """Whether a transfer would not arrive, or is not worth its fee."""
        return units < self.least_of(kind)

    def refuses(self, units: Units) -> bool:
        """Whether a transfer is too large by itself."""
        return self.per_transaction is not None and units > self.per_transaction

    def day_refuses(self, units: Units, sent: int) -> bool:
        """Whether a transfer is too large after what was sent in the last 24 hours."""
        return self.per_day is not None and sent + units > self.per_day
