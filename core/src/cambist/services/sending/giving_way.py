"""Has a sender that fails let the others come first: what no node can plan looks like an outage to all of them.

A tick that fails is followed by a pause of the whole chain, and each sender that looks like an outage fails a tick of
its own. So it is not enough to be due later: who failed last comes after everybody else, and each failure in a row
doubles how long the sender waits, times how many fail, so that most ticks meet none of them. Only what the others show
to be the sender's own counts in a row: in an outage, where nobody is served, all are tried again as soon as it is over.

A chain plans all that a sender sends together, or none of it. So what a sender sends that failed twice is tried one by
one, what failed least often first: what nobody can plan is found out, and waits by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from cambist.domain.intents import IntentKind
from cambist.plugin import ChainUnavailableError
from cambist.signer.protocol import SignerUnavailableError

from .context import EngineContext
from .rows import IntentRow, OwnPath

PAUSE = timedelta(seconds=15)
PAUSE_MAX = timedelta(minutes=10)
POSTPONED_MAX = 5_000
"""Intents of one sender that give way at once."""
DOUBLED_MAX = 10
SWEEPS = 0
"""Stands for no sender: addresses are numbered from 1."""
FAILING_MAX = 10_000
"""Senders whose failures are remembered; of more, those that failed first are forgotten."""
APART_FROM = 2
"""Failures in a row from which on a sender's intents are tried one by one."""
APART_MAX = 10
"""Intents of one sender that are tried one by one in a tick."""
TRIED_MAX = 1_000
"""Intents of one sender whose failures are remembered."""
SUSPECTS_MAX = 3
"""Intents of one sender that may have failed by themselves, and another that does has not all of the sender rest."""

_POSTPONE = f"""
WITH due AS (
    SELECT id FROM outbound_intents WHERE chain = $1 AND scope = $2 AND source_address_pk = $3 AND state = 'waiting'
        AND kind <> '{IntentKind.SWEEP}' AND due_at <= $5 AND cancel_asked_at IS NULL ORDER BY id LIMIT $6 FOR UPDATE
)
UPDATE outbound_intents i SET due_at = $4, updated_at = $5 FROM due WHERE i.id = due.id
"""  # noqa: S608  a constant
_POSTPONE_SOME = """
WITH due AS (
    SELECT id FROM outbound_intents WHERE id = ANY($1::bigint[]) AND state = 'waiting' AND due_at <= $3
        AND cancel_asked_at IS NULL ORDER BY id FOR UPDATE
)
UPDATE outbound_intents i SET due_at = $2, updated_at = $3 FROM due WHERE i.id = due.id
"""
_STILL_WAITING = """
SELECT id FROM outbound_intents WHERE id = ANY($1::bigint[]) AND state = 'waiting' AND cancel_asked_at IS NULL
"""


class _Failing(Struct):
    """How often a sender failed in a row, how many others had been served when it did last, and when it is due.

    ``times`` leaves out, and ``failures`` counts, failures between which nobody was served. ``tried`` says of what
    failed, by intent, how often it did by itself. ``is_fine``: something else of the sender was planned since.
    """

    times: int
    served_before: int
    until: datetime
    failures: int
    tried: dict[int, int]
    is_fine: bool = False
    rests: bool = True


class Turns:
    """Which senders of one chain failed lately, as this process knows it: a restart has all of them tried again.

    A sender goes by its address' primary key; ``SWEEPS`` stands for what is planned for many of them together.
    """

    def __init__(self) -> None:
        self._failing: dict[int, _Failing] = {}
        self._unsigned: dict[int, int] = {}
        self._served = 0

    def forget_past(self, now: datetime) -> None:
        """Forget failures of what was due long ago, and has not failed since: it is planned, gone, or lacks money."""
        for pk in [pk for pk, entry in self._failing.items() if entry.until + PAUSE_MAX <= now]:
            del self._failing[pk]

    def in_order(self, source_pks: Iterable[int]) -> Sequence[int]:
        """Return the senders as they are tried: those that failed come last, the most frequent failure at the end.

        Among equals, those come last that the signer did not answer.
        """

        def place(pk: int) -> tuple[int, int]:
            return self._failing[pk].times if pk in self._failing else 0, self._unsigned.get(pk, 0)

        return sorted(source_pks, key=place)

    def rests_until(self, source_pk: int, now: datetime) -> datetime | None:
        """Return until when nothing of a sender is to be tried, None where it may be tried."""
        entry = self._failing.get(source_pk)
        return entry.until if entry is not None and entry.rests and now < entry.until else None

    def rests(self, source_pk: int, now: datetime) -> bool:
        return self.rests_until(source_pk, now) is not None

    def is_failing(self, source_pk: int) -> bool:
        return source_pk in self._failing

    def groups(self, source_pk: int, intents: Sequence[IntentRow]) -> Sequence[Sequence[IntentRow]]:
        """Return what of a sender is planned together now: all of it, or a bounded number of intents one by one."""
        entry = self._failing.get(source_pk)
        if entry is None or entry.failures < APART_FROM:
            return [intents]
        return [[one] for one in sorted(intents, key=lambda one: entry.tried.get(one.id, 0))[:APART_MAX]]

    def failed_intents(self, source_pk: int) -> Collection[int]:
        """Return what of a sender failed and was not planned since."""
        return list(self._failing[source_pk].tried) if source_pk in self._failing else []

    def gone(self, source_pk: int, intent_pks: Collection[int]) -> None:
        """Take note of what failed, and waits no more. With the last of it the sender's failures are forgotten."""
        entry = self._failing.get(source_pk)
        if entry is None or not intent_pks:
            return
        for intent_pk in intent_pks:
            entry.tried.pop(intent_pk, None)
        if not entry.tried:
            del self._failing[source_pk]

    def served(self, source_pk: int, planned: Collection[int] | None = None) -> None:
        """Take note of a sender that did not fail, or not with these intents: its failures are those of the others."""
        self._served += 1
        self._unsigned.pop(source_pk, None)
        entry = self._failing.get(source_pk)
        if entry is None:
            return
        was_tried = planned is None or any(intent_pk in entry.tried for intent_pk in planned)
        if planned is None or (was_tried and entry.failures < APART_FROM):
            del self._failing[source_pk]
            return
        entry.is_fine, entry.rests = True, False
        self.gone(source_pk, planned)

    def unsigned(self, source_pk: int) -> None:
        """Take note of a sender that the signer did not answer, which is not the sender's failure."""
        times = self._unsigned.pop(source_pk, 0) + 1
        while len(self._unsigned) >= FAILING_MAX:
            del self._unsigned[next(iter(self._unsigned))]
        self._unsigned[source_pk] = times

    def failed(
        self, source_pk: int, now: datetime, intent_pks: Collection[int] = (), *, alone: bool = False
    ) -> datetime:
        """Take note of a sender that failed by itself, with these intents; return when these are due again.

        ``alone``: each of them failed by itself. Then the others of the sender need not wait, where they are planned.
        """
        before = self._failing.pop(source_pk, None)
        self.forget_past(now)
        while len(self._failing) >= FAILING_MAX:
            del self._failing[next(iter(self._failing))]
        times = 1 if before is None else min(before.times + (before.served_before < self._served), DOUBLED_MAX)
        others = len(self._failing)
        pause = PAUSE if times == 1 else min(PAUSE_MAX, PAUSE * 2 ** (times - 1) * (1 + others))
        entry = _Failing(times, self._served, now + pause, failures=1, tried={})
        if before is not None:
            entry.failures, entry.tried, entry.is_fine = before.failures + 1, before.tried, before.is_fine
        is_known = alone and all(entry.tried.get(intent_pk, 0) > 0 for intent_pk in intent_pks)
        for intent_pk in intent_pks:
            entry.tried[intent_pk] = entry.tried.pop(intent_pk, 0) + alone
        while len(entry.tried) > TRIED_MAX:
            del entry.tried[next(iter(entry.tried))]
        suspects = sum(count > 0 for count in entry.tried.values())
        entry.rests = not (alone and entry.is_fine and (is_known or suspects <= SUSPECTS_MAX))
        entry.is_fine = entry.is_fine and is_known
        self._failing[source_pk] = entry
        return entry.until


class Failed(Struct, frozen=True):
    """Intents of one sender that failed together, and with what."""

    intents: Sequence[IntentRow]
    error: Exception


class Tried(Struct):
    """What came of the intents of one sender: the primary keys of those that were planned, and those that failed."""

    more: bool = False
    planned: set[int] = set()
    failed: list[Failed] = []


async def note_turn(  # noqa: PLR0913  each by name
    context: EngineContext, turns: Turns, source: OwnPath, found: Tried, *, met: Sequence[Exception], is_alone: bool
) -> None:
    """Have a sender that failed come last from now on, and give way to the others.

    Who meets nodes that rest since another sender asked them is not why: it keeps its turn, unless it failed by itself
    before. Nor does anybody wait longer for a signer that is away. One that is alone is in nobody's way, until others
    have shown what it is. Where other intents of the sender can be planned, those alone wait that failed.
    """
    if found.planned:
        turns.served(source.pk, found.planned)
    is_met = any(isinstance(error, ChainUnavailableError) for error in met) and not turns.is_failing(source.pk)
    own = list[Failed]()
    for one in found.failed:
        if isinstance(one.error, SignerUnavailableError):
            turns.unsigned(source.pk)
        elif not (is_met and isinstance(one.error, ChainUnavailableError)):
            own.append(one)
    if not own:
        return
    now, failed = context.clock.now(), [intent.id for one in own for intent in one.intents]
    until = turns.failed(source.pk, now, failed, alone=all(len(one.intents) == 1 for one in own))
    if not turns.rests(source.pk, now):
        await postpone(context, failed, until)
    elif not (is_alone and until - now <= PAUSE):
        await give_way(context, source, until)


async def forget_gone(context: EngineContext, turns: Turns, source_pk: int) -> None:
    """Forget the failures of what was sent or cancelled since."""
    failed = turns.failed_intents(source_pk)
    if failed:
        async with context.db.autocommit() as conn:
            still = set((await conn.exec_driver_sql(_STILL_WAITING, (list(failed),))).scalars())
        turns.gone(source_pk, set(failed) - still)


async def give_way(context: EngineContext, source: OwnPath, until: datetime) -> None:
    """Have what is due of a sender be due later, a bounded number of it.

    It keeps the reason for which it waits, as that the signer may have signed it before.
    """
    now = context.clock.now()
    async with context.db.transaction() as conn:
        await conn.exec_driver_sql(_POSTPONE, (*context.chain_scope.key, source.pk, until, now, POSTPONED_MAX))


async def postpone(context: EngineContext, intent_pks: Collection[int], until: datetime) -> None:
    """Have these be due later, and nothing else of their sender. They keep the reason for which they wait."""
    async with context.db.transaction() as conn:
        await conn.exec_driver_sql(_POSTPONE_SOME, (list(intent_pks), until, context.clock.now()))
