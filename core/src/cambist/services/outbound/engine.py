"""One chain's sending: follow what is out, finish what is deep, collect what is due, send what waits."""

from __future__ import annotations

from msgspec import Struct

from cambist.services.deposits import opening
from cambist.services.keys import AccountKeys

from .collecting import collect
from .desk import Desk
from .lending import give_back
from .sending import send_waiting
from .settling import settle
from .sweeping import sweep_waiting
from .tracking import Tracker


class Turn(Struct, frozen=True, kw_only=True):
    """What one turn did. ``more`` asks for the next one at once, ``told`` says that merchants are to be told."""

    more: bool
    told: bool
    collected: int = 0


class Engine:
    """Sends on one chain. Any number of engines may run on the same one: the database decides who is first."""

    def __init__(self, desk: Desk, keys: AccountKeys) -> None:
        """Take what sending needs."""
        self.desk = desk
        self._keys = keys
        self._tracker = Tracker(desk)
        self._collected_at: float | None = None
        self._books_open = False

    async def turn(self) -> Turn:
        """Do what there is to do now, a bounded part of it.

        Raises ChainUnavailableError and SignerUnavailableError: then what was stored stays, and is found again.
        """
        desk = self.desk
        await self._tracker.look()
        settled = await settle(desk)
        if not await self._are_books_open():
            return Turn(more=settled, told=settled)
        collected = await self._collect()
        await give_back(desk)
        swept = await sweep_waiting(desk)
        more = await send_waiting(desk) or swept
        return Turn(more=more or settled, told=settled or more, collected=collected)

    async def _are_books_open(self) -> bool:
        """Whether the gas station's opening balance is posted: before it is, nothing may leave it."""
        if not self._books_open:
            async with self.desk.db.transaction() as conn:
                self._books_open = await opening.is_open(conn, self.desk.site.info, self.desk.site.mode)
        return self._books_open

    async def _collect(self) -> int:
        now = self.desk.clock.monotonic()
        interval_s = self.desk.settings.collect_interval_ms / 1000
        if self._collected_at is not None and now - self._collected_at < interval_s:
            return await collect(self.desk, self._keys, only_needed=True)
        self._collected_at = now
        return await collect(self.desk, self._keys)
