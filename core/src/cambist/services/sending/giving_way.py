"""Has a sender that fails let the others come first: ``turns.py`` says who, and for how long."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from cambist.domain.intents import IntentKind
from cambist.plugin import ChainUnavailableError
from cambist.signer.protocol import SignerUnavailableError

from .context import EngineContext
from .rows import IntentRow, OwnPath
from .turns import PAUSE, Turns

POSTPONED_MAX = 5_000
"""Intents of one sender that give way at once."""

_POSTPONE = f"""
WITH due AS (
    SELECT id FROM outbound_intents WHERE chain = $1 AND scope = $2 AND source_address_pk = $3 AND state = 'waiting'
        AND kind <> '{IntentKind.SWEEP}' AND due_at <= $5 AND retried_at IS NULL AND cancel_asked_at IS NULL
    ORDER BY id LIMIT $6 FOR UPDATE
)
UPDATE outbound_intents i SET due_at = $4, updated_at = $5 FROM due WHERE i.id = due.id
"""  # noqa: S608  a constant
_POSTPONE_SOME = """
WITH due AS (
    SELECT id FROM outbound_intents WHERE id = ANY($1::bigint[]) AND state = 'waiting' AND due_at <= $3
        AND cancel_asked_at IS NULL ORDER BY id FOR UPDATE
)
UPDATE outbound_intents i SET due_at = $2, retried_at = NULL, updated_at = $3 FROM due WHERE i.id = due.id
"""
# What gives way to a sender's rest has the same moment. What waits for something else by now has another one.
_END_REST = """
WITH resting AS (
    SELECT id FROM outbound_intents WHERE chain = $1 AND scope = $2 AND source_address_pk = $3 AND state = 'waiting'
        AND due_at = $4 AND cancel_asked_at IS NULL ORDER BY id LIMIT $6 FOR UPDATE
)
UPDATE outbound_intents i SET due_at = $5, updated_at = $7 FROM resting WHERE i.id = resting.id
"""
# What waits for something else by now has another moment.
_WAKE = """
WITH resting AS (
    SELECT i.id FROM outbound_intents i JOIN unnest($1::bigint[], $2::timestamptz[]) AS w (id, due_at)
        ON w.id = i.id AND w.due_at = i.due_at
    WHERE i.state = 'waiting' AND i.cancel_asked_at IS NULL ORDER BY i.id FOR UPDATE OF i
)
UPDATE outbound_intents i SET due_at = $3, updated_at = $3 FROM resting WHERE i.id = resting.id
"""
_STILL_WAITING = """
SELECT id FROM outbound_intents WHERE id = ANY($1::bigint[]) AND state = 'waiting' AND cancel_asked_at IS NULL
"""


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
    have shown what it is.
    """
    if found.planned and (woken := turns.served(source.pk, found.planned)):
        await wake(context, woken)
        found.more = True
    is_met = any(isinstance(error, ChainUnavailableError) for error in met) and not turns.is_failing(source.pk)
    now = context.clock.now()
    for one in found.failed:
        if isinstance(one.error, SignerUnavailableError):
            turns.unsigned(source.pk)
        elif not (is_met and isinstance(one.error, ChainUnavailableError)):
            failed = [intent.id for intent in one.intents]
            until = turns.failed(source.pk, now, failed, alone=len(failed) == 1)
            if not (is_alone and until - now <= PAUSE):
                await postpone(context, failed, until)
    rests_until = turns.rests_until(source.pk, now)
    if rests_until is not None and not (is_alone and rests_until - now <= PAUSE):
        await give_way(context, source, rests_until)


async def forget_gone(context: EngineContext, turns: Turns, source_pk: int) -> None:
    """Forget the failures of what was sent or cancelled since."""
    failed = turns.failed_intents(source_pk)
    if failed:
        async with context.db.autocommit() as conn:
            still = set((await conn.exec_driver_sql(_STILL_WAITING, (list(failed),))).scalars())
        turns.gone(source_pk, set(failed) - still)


async def give_way(context: EngineContext, source: OwnPath, until: datetime) -> None:
    """Have what is due of a sender be due later, a bounded number of it, but for what an operator has tried again.

    It keeps the reason for which it waits, as that the signer may have signed it before.
    """
    now = context.clock.now()
    async with context.db.transaction() as conn:
        await conn.exec_driver_sql(_POSTPONE, (*context.chain_scope.key, source.pk, until, now, POSTPONED_MAX))


async def end_rest(context: EngineContext, turns: Turns, source: OwnPath, until: datetime) -> bool:
    """Have what gave way until then be due once its sender rests no longer, where that is sooner.

    Return whether that is now.
    """
    now = context.clock.now()
    rests_until = turns.rests_until(source.pk, now)
    if rests_until is not None and rests_until >= until:
        return False
    due_at = now if rests_until is None else rests_until
    async with context.db.transaction() as conn:
        await conn.exec_driver_sql(_END_REST, (*context.chain_scope.key, source.pk, until, due_at, POSTPONED_MAX, now))
    return rests_until is None


async def postpone(context: EngineContext, intent_pks: Collection[int], until: datetime) -> None:
    """Have these be due later, and nothing else of their sender. They keep the reason for which they wait."""
    async with context.db.transaction() as conn:
        await conn.exec_driver_sql(_POSTPONE_SOME, (list(intent_pks), until, context.clock.now()))


async def wake(context: EngineContext, postponed: Mapping[int, datetime]) -> None:
    """Have intents that were postponed until these moments, and wait for nothing else since, be due now."""
    now = context.clock.now()
    async with context.db.transaction() as conn:
        await conn.exec_driver_sql(_WAKE, (list(postponed), list(postponed.values()), now))
