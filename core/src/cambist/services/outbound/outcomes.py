"""What becomes of a transfer, as the use case that wanted it is told: in the transaction in which it happens."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import Units
from cambist.ports import Ids
from cambist.services.ledger import asset_key


class Sent(Struct, frozen=True, kw_only=True):
    """An intent, and what happened to it.

    ``incarnation`` counts how often its transaction became final: part of every ledger reference, so that what a
    deep reorg undid can be posted again. ``fee`` is in the native coin, for what was mined. ``reason`` is a sentence
    that says why it waits or failed.
    """

    intent_row: int
    reference: str
    kind: str
    mode: str
    chain: str
    scope: int
    merchant_row: int | None
    source_row: int
    recipient_row: int | None
    target: str
    token: str
    contract: str | None
    decimals: int
    units: Units
    tx_id: str | None = None
    fee: Units | None = None
    incarnation: int = 0
    reason: str | None = None

    @property
    def asset(self) -> str:
        """The ledger's name of what is sent."""
        return asset_key(self.chain, self.contract)


class Moment(Struct, frozen=True, kw_only=True):
    """When it happens, and where identifiers come from."""

    now: datetime
    ids: Ids


class Outcomes(Protocol):
    """What a kind of intent does when something happens to it. Fees are the engine's to post."""

    async def on_waiting(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Learn that it cannot be sent yet; ``reason`` says why. Told again only when the reason changes."""

    async def on_broadcast(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Learn that its transaction is stored and on its way; again, with another id, when it was replaced."""

    async def on_final(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Post it: it happened, as deep in the chain as is asked for."""

    async def on_failed(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Give back what was set aside: it did not happen and never will."""

    async def on_undone(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Post the opposite: a reorg took back what was final. It may become final again, or fail."""


class QuietOutcomes:
    """Nothing comes of any news: what a kind begins with that only some of it concerns."""

    async def on_waiting(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Do nothing."""

    async def on_broadcast(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Do nothing."""

    async def on_final(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Do nothing."""

    async def on_failed(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Do nothing."""

    async def on_undone(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Do nothing."""
