"""Parts of an engine that die, as a process does, at a chosen moment: before or after any call that leaves it."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from cambist.db.engine import Database
from cambist.services.sending.engine import Engine

ONLY_ASKS = frozenset({"balances", "find_tx", "next_sequence", "plan", "prepare", "transactions", "witnessed"})
"""Calls of a chain that leave everything as it was."""
_HAS_WRITTEN = "SELECT pg_current_xact_id_if_assigned() IS NOT NULL"


class KilledError(BaseException):
    """The process is gone. Nothing that expects errors may catch it."""


class Life:
    """So many steps are left; with None it never ends."""

    def __init__(self, steps: int | None = None) -> None:
        self.steps = steps
        self.lived = 0

    def step(self) -> None:
        self.lived += 1
        if self.steps is not None and self.lived >= self.steps:
            raise KilledError

    def done(self) -> None:
        """Take the step right after something that may last."""
        self.step()


class Deeds(Life):
    """So many deeds are left: it dies right after one alone.

    Whoever dies anywhere between two of them leaves what it would have left right after the first. So these are all the
    moments of one turn; where a life is several turns, they are not the moments of all of these.

    A call that raises counts as none, and what ``autocommit`` lends is one transaction: neither is for stories in which
    such a call arrives all the same, or that write twice on one such connection.
    """

    def step(self) -> None:
        """Live on: nothing has changed since the last deed."""

    def done(self) -> None:
        super().step()


class FragileDatabase:
    """Dies before a transaction, before its commit, or right after it; before or after single statements."""

    def __init__(self, db: Database, life: Life) -> None:
        self._db = db
        self._life = life

    @property  # type: ignore[misc]  who takes a connection or all of the database asks which it is
    def __class__(self) -> type:
        return Database

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[object]:
        self._life.step()
        async with self._db.transaction() as conn:
            yield conn
            wrote = not isinstance(self._life, Deeds) or (await conn.exec_driver_sql(_HAS_WRITTEN)).scalar_one()
            self._life.step()
        (self._life.done if wrote else self._life.step)()

    @asynccontextmanager
    async def autocommit(self) -> AsyncIterator[object]:
        if isinstance(self._life, Deeds):  # only in a transaction can it be asked whether something was written
            async with self.transaction() as conn:
                yield conn
            return
        self._life.step()
        async with self._db.autocommit() as conn:
            yield conn
        self._life.step()

    async def fetch_row(self, statement: str, *arguments: object) -> object:
        self._life.step()
        row = await self._db.fetch_row(statement, *arguments)
        self._life.done()
        return row


class Fragile:
    """Dies before or after any call of the thing that it stands for."""

    def __init__(self, thing: object, life: Life) -> None:
        self._thing = thing
        self._life = life

    @property  # type: ignore[misc]  what it stands for is asked what it can do
    def __class__(self) -> type:
        return type(self._thing)

    def __getattr__(self, name: str) -> object:
        found = getattr(self._thing, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def call(*args: object, **kwargs: object) -> object:
            self._life.step()
            answer = await found(*args, **kwargs)
            (self._life.step if name in ONLY_ASKS else self._life.done)()
            return answer

        return call


def fragile(engine: Engine, life: Life) -> Engine:
    """Return a fresh engine at the same context, with this life."""
    context = engine.context
    parts = {
        "db": FragileDatabase(context.db, life),
        "chain": Fragile(context.chain, life),
        "signer": Fragile(context.signer, life),
    }
    return Engine(msgspec.structs.replace(context, **parts), engine._collector._keys)
