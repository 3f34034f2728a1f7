"""Has a sender that fails let the others come first: ``rests.py`` says who, and for how long."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from cambist.db.models.base import listed
from cambist.db.models.outbound import GAVE_WAY
from cambist.domain.intents import CARRIERS, IntentKind
from cambist.plugin import ChainUnavailableError
from cambist.signer.protocol import SignerUnavailableError

from .context import EngineContext
from .rests import PAUSE, PAUSE_MAX, TRIED_MAX, Rests
from .rows import IntentRow, OwnPath

POSTPONED_MAX = 5_000
"""Intents of one sender that give way at once, and of one chain that a process learns of as it begins."""

_POSTPONE = f"""
WITH due AS (
    SELECT id FROM outbound_intents WHERE chain = $1 AND scope = $2 AND source_address_pk = $3 AND state = 'waiting'
        AND kind NOT IN ({listed(CARRIERS)}) AND due_at <= $5 AND retried_at IS NULL AND cancel_asked_at IS NULL
    ORDER BY id LIMIT $6 FOR UPDATE
)
UPDATE outbound_intents i SET due_at = $4, gave_way_until = $4, updated_at = $5 FROM due WHERE i.id = due.id
"""  # noqa: S608  a constant
# What an operator has tried again since it was read is still to be tried with that.
_POSTPONE_SOME = """
WITH due AS (
    SELECT i.id FROM outbound_intents i
    JOIN unnest($1::bigint[], $2::timestamptz[]) AS known (id, retried_at) ON known.id = i.id
    WHERE i.state = 'waiting' AND i.due_at <= $4 AND i.cancel_asked_at IS NULL
        AND i.retried_at IS NOT DISTINCT FROM known.retried_at
    ORDER BY i.id FOR UPDATE OF i
)
UPDATE outbound_intents i SET due_at = $3, gave_way_until = $3, retried_at = NULL, updated_at = $4
FROM due WHERE i.id = due.id
"""
_END_REST = f"""
WITH resting AS (
    SELECT id FROM outbound_intents WHERE {GAVE_WAY} AND due_at > $1 AND {{which}}
    ORDER BY id LIMIT {POSTPONED_MAX} FOR UPDATE
)
UPDATE outbound_intents i SET due_at = $1, gave_way_until = $1, updated_at = $2 FROM resting WHERE i.id = resting.id
"""  # noqa: S608  constants
_END_REST_OF_SENDER = _END_REST.format(
    which="chain = $3 AND scope = $4 AND source_address_pk = $5 AND NOT id = ANY($6::bigint[])"
)
_WAKE = _END_REST.format(which="id = ANY($3::bigint[])")
# Some of each sender come before more of any: what closes a gap, then what is due first.
_ALL_THAT_GAVE_WAY = f"""
SELECT id, source_address_pk, due_at FROM (
    SELECT id, source_address_pk, due_at,
        row_number() OVER (PARTITION BY source_address_pk ORDER BY priority, due_at, id) AS nth
    FROM outbound_intents WHERE chain = $1 AND scope = $2 AND {GAVE_WAY}
) i WHERE nth <= $3 ORDER BY nth, due_at, id LIMIT $4
"""  # noqa: S608  constants
_STILL_WAITING = """
SELECT id FROM outbound_intents WHERE id = ANY($1::bigint[]) AND state = 'waiting' AND cancel_asked_at IS NULL
"""


class Failed(Struct, frozen=True):
    """Intents of one sender that failed together, and with what."""

    intents: Sequence[IntentRow]
    error: Exception

    @property
    def primary_keys(self) -> Sequence[int]:
        return [intent.id for intent in self.intents]

    @property
    def not_retried(self) -> Sequence[int]:
        return [intent.id for intent in self.intents if not intent.is_retried]


class Tried(Struct):
    """What came of the intents of one sender: the primary keys of those that were planned, and those that failed.

    ``is_paused``: nothing, since an operator has paused sending.
    """

    more: bool = False
    is_paused: bool = False
    planned: set[int] = set()
    failed: list[Failed] = []


async def note_rest(  # noqa: PLR0913  each by name
    context: EngineContext, rests: Rests, source: OwnPath, found: Tried, *, met: Sequence[Exception], is_alone: bool
) -> None:
    """Have a sender that failed come last from now on, and give way to the others.

    Who meets nodes that rest since another sender asked them is not why: it keeps its turn, unless it was among what
    failed before, and what an operator has tried again keeps it even so. Nor does anybody wait longer for a signer that
    is away. One that is alone is in nobody's way, until others have shown what it is.
    """
    now = context.clock.now()
    rested, just_failed = rests.is_resting(source.pk, now), [pk for one in found.failed for pk in one.primary_keys]
    if found.planned and (woken := rests.served(source.pk, found.planned, just_failed, rested=rested)):
        await wake(context, woken)
        found.more = True
    is_met = any(isinstance(error, ChainUnavailableError) for error in met)
    known = set(rests.failed_intents(source.pk))
    for one in found.failed:
        if isinstance(one.error, SignerUnavailableError):
            rests.unsigned(source.pk)
            continue
        failed = one.primary_keys
        if is_met and isinstance(one.error, ChainUnavailableError):
            failed = [] if known.isdisjoint(one.not_retried) else one.not_retried
        if failed:
            until = rests.failed(source.pk, now, failed, alone=len(one.intents) == 1)
            if all(intent.update.kind == IntentKind.REPAIR for intent in one.intents):
                until = min(until, now + PAUSE_MAX)  # all else of the sender waits for it
            if not (is_alone and until - now <= PAUSE):
                retried = {intent.id: intent.retried_at for intent in one.intents if intent.id in failed}
                await postpone(context, retried, until)
    rests_until = rests.until(source.pk, now)
    if rests_until is not None and not (is_alone and rests_until - now <= PAUSE):
        await give_way(context, source, rests_until)


async def forget_gone(context: EngineContext, rests: Rests, source_pk: int) -> None:
    """Forget the failures of what was sent or cancelled since."""
    failed = rests.failed_intents(source_pk)
    if failed:
        async with context.db.autocommit() as conn:
            still = set((await conn.exec_driver_sql(_STILL_WAITING, (list(failed),))).scalars())
        rests.gone(source_pk, set(failed) - still)


async def give_way(context: EngineContext, source: OwnPath, until: datetime) -> None:
    """Have what is due of a sender be due later, a bounded number of it, but for what an operator has tried again.

    It keeps the reason for which it waits, as that the signer may have signed it before.
    """
    now = context.clock.now()
    async with context.db.autocommit() as conn:
        await conn.exec_driver_sql(_POSTPONE, (*context.chain_scope.key, source.pk, until, now, POSTPONED_MAX))


async def end_rest(context: EngineContext, rests: Rests, source: OwnPath, until: datetime) -> bool:
    """Have what gave way to a rest until then, or to one before, be due once its sender rests no longer.

    Suspects wait by themselves. Return whether the rest is over.
    """
    now = context.clock.now()
    rests_until = rests.until(source.pk, now)
    if rests_until is not None and rests_until >= until:
        return False
    due_at = now if rests_until is None else rests_until
    which = (*context.chain_scope.key, source.pk, list(rests.suspects(source.pk, now)))
    async with context.db.autocommit() as conn:
        await conn.exec_driver_sql(_END_REST_OF_SENDER, (due_at, now, *which))
    return rests_until is None


async def learn_rests(context: EngineContext) -> Rests:
    """Return the rests of what gave way on a chain, a bounded number of it, and have some of each sender's be due.

    For a process that begins: it does not know what another one had found out, nor what would wake what waits.
    """
    rests, dues = Rests(), dict[int, dict[int, datetime]]()
    async with context.db.autocommit() as conn:
        bounds = TRIED_MAX, POSTPONED_MAX
        rows = (await conn.exec_driver_sql(_ALL_THAT_GAVE_WAY, (*context.chain_scope.key, *bounds))).all()
    for row in rows:
        dues.setdefault(row.source_address_pk, {})[row.id] = row.due_at
    woken = [pk for source_pk, given in dues.items() for pk in rests.learn(source_pk, given)]
    if woken:
        await wake(context, woken)
    return rests


async def postpone(context: EngineContext, retried: Mapping[int, datetime | None], until: datetime) -> None:
    """Have these be due later, and nothing else of their sender. They keep the reason for which they wait.

    ``retried`` says of each when an operator wanted it to be tried, as it was read: who did so since, has it tried.
    """
    async with context.db.autocommit() as conn:
        given = list(retried), list(retried.values()), until, context.clock.now()
        await conn.exec_driver_sql(_POSTPONE_SOME, given)


async def wake(context: EngineContext, intent_pks: Collection[int]) -> None:
    """Have those of these be due now that gave way, and wait for nothing else since."""
    now = context.clock.now()
    async with context.db.autocommit() as conn:
        await conn.exec_driver_sql(_WAKE, (now, now, list(intent_pks)))
