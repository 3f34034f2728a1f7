"""Has a sender that fails let the others come first: what no node can plan looks like an outage to all of them.

A tick that fails is followed by a pause of the whole chain, and each sender that looks like an outage fails a tick of
its own. So it is not enough to be due later: who failed last comes after everybody else, and each failure in a row
doubles how long the sender waits, times how many fail, so that most ticks meet none of them. Only what the others show
to be the sender's own counts in a row: in an outage, where nobody is served, all are tried again as soon as it is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from cambist.domain.intents import IntentKind

from .context import EngineContext
from .rows import OwnPath

PAUSE = timedelta(seconds=15)
PAUSE_MAX = timedelta(minutes=10)
POSTPONED_MAX = 5_000
"""Intents of one sender that give way at once."""
DOUBLED_MAX = 10
SWEEPS = 0
"""Stands for no sender: addresses are numbered from 1."""
FAILING_MAX = 10_000
"""Senders whose failures are remembered; of more, those that failed first are forgotten."""

_POSTPONE = f"""
WITH due AS (
    SELECT id FROM outbound_intents WHERE chain = $1 AND scope = $2 AND source_address_pk = $3 AND state = 'waiting'
        AND kind <> '{IntentKind.SWEEP}' AND due_at <= $5 AND cancel_asked_at IS NULL ORDER BY id LIMIT $6 FOR UPDATE
)
UPDATE outbound_intents i SET due_at = $4, updated_at = $5 FROM due WHERE i.id = due.id
"""  # noqa: S608  a constant


class _Failing(Struct):
    """How often a sender failed in a row, how many others had been served when it did last, and when it is due."""

    times: int
    served_before: int
    until: datetime


class Turns:
    """Which senders of one chain failed lately, as this process knows it: a restart has all of them tried again.

    A sender goes by its address' primary key; ``SWEEPS`` stands for what is planned for many of them together.
    """

    def __init__(self) -> None:
        self._failing: dict[int, _Failing] = {}
        self._served = 0

    def in_order(self, source_pks: Iterable[int]) -> Sequence[int]:
        """Return the senders as they are tried: those that failed come last, the most frequent failure at the end."""
        return sorted(source_pks, key=lambda pk: self._failing[pk].times if pk in self._failing else 0)

    def rests(self, source_pk: int, now: datetime) -> bool:
        return source_pk in self._failing and now < self._failing[source_pk].until

    def is_failing(self, source_pk: int) -> bool:
        return source_pk in self._failing

    def served(self, source_pk: int) -> None:
        """Take note of a sender that did not fail."""
        self._failing.pop(source_pk, None)
        self._served += 1

    def failed(self, source_pk: int, now: datetime) -> datetime:
        """Take note of a sender that failed by itself; return when it is due again."""
        before = self._failing.pop(source_pk, None)
        times = 1 if before is None else min(before.times + (before.served_before < self._served), DOUBLED_MAX)
        while len(self._failing) >= FAILING_MAX:
            del self._failing[next(iter(self._failing))]
        others = len(self._failing)
        pause = PAUSE if times == 1 else min(PAUSE_MAX, PAUSE * 2 ** (times - 1) * (1 + others))
        self._failing[source_pk] = _Failing(times, self._served, now + pause)
        return now + pause


async def give_way(context: EngineContext, source: OwnPath, until: datetime) -> None:
    """Have what is due of a sender be due later, a bounded number of it.

    It keeps the reason for which it waits, as that the signer may have signed it before.
    """
    now = context.clock.now()
    async with context.db.transaction() as conn:
        await conn.exec_driver_sql(_POSTPONE, (*context.chain_scope.key, source.pk, until, now, POSTPONED_MAX))
