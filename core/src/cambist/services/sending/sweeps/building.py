"""Many collections in one transaction of the gas station, where chain and operator allow it; the rest goes one by one.

Nothing is ever sent both ways: collections that go with a sweep are no longer waiting, and wait again only when their
sweep can never happen any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.intents import AskedBy, IntentKind
from cambist.plugin import ChainError, FeeAboveCeilingError, SignedTx, Sweep, SweepingChain, Units
from cambist.services.addresses.wallets import OwnAddress
from cambist.services.platform import load
from cambist.services.sending import store
from cambist.services.sending.batches import WAITS_FOR_FEES
from cambist.services.sending.context import EngineContext
from cambist.services.sending.counts import NonceDoubtedError, mined_count
from cambist.services.sending.handler import updated
from cambist.services.sending.intents import NewIntent, submit
from cambist.services.sending.rests import SWEEPS, Rests
from cambist.services.sending.rows import IntentRow
from cambist.services.sending.shortages import EMPTY_STATION_PAUSE, WAITS_FOR_STATION
from cambist.services.sending.store import NewTx
from cambist.signer.protocol import SignRequest

from . import sweep_store

log = structlog.get_logger(__name__)

SWEPT_MAX = 50
SWEEP_TIMEOUT_S = 20.0
"""How long one sweep may take: one that hangs leaves most of a tick to those who send one by one."""
SWEPT_MIN = 2
"""One alone would pay by itself for what a sweep costs whoever takes part: it goes the plain way for less."""


class PlannedSweep(Struct, frozen=True, kw_only=True):
    """A planned sweep and the collections that it brings, in its order."""

    sweep: Sweep
    intents: Sequence[IntentRow]


async def sweep_waiting(context: EngineContext, rests: Rests, station: OwnAddress) -> bool:
    """Send one sweep of what waits for its collection; return whether there may be more for another.

    One that fails is not tried again for a while: what looks like an outage would have nobody else send in that tick.
    """
    chain = context.chain
    if not isinstance(chain, SweepingChain) or context.chain_scope.info.sweeper is None:
        return False
    now = context.clock.now()
    if await context.is_paused() or rests.is_resting(SWEEPS, now):
        return False
    async with context.db.autocommit() as conn:
        if not (await load(conn)).collection.batched:
            return False
        reasons = (WAITS_FOR_FEES, WAITS_FOR_STATION)
        found = await sweep_store.candidates(conn, context.chain_scope, reasons, now, SWEPT_MAX)
    if len(found) < SWEPT_MIN:
        return False
    try:
        async with asyncio.timeout(SWEEP_TIMEOUT_S):
            is_sent = await _sweep(context, chain, found, station)
    except _NotPlannedError as error:
        # It goes one by one.
        rests.failed(SWEEPS, now)
        why = error.__cause__
        log.warning("sweep_not_planned", chain=context.chain_scope.info.id, error=f"{type(why).__name__}: {why}")
        return False
    except Exception:
        rests.failed(SWEEPS, now)
        raise
    rests.served(SWEEPS)
    return is_sent and len(found) == SWEPT_MAX


async def _sweep(context: EngineContext, chain: SweepingChain, found: Sequence[IntentRow], station: OwnAddress) -> bool:
    planned = await _plan(context, chain, found, station.address)
    if planned is None or not await _is_affordable(context, planned, station):
        return False
    signed = await _commit(context, chain, planned, station)
    if signed is None:
        return False
    await context.broadcast([signed])
    return True


class _NotPlannedError(Exception):
    """A chain cannot say what a sweep would be. What was said instead is its cause."""


async def _plan(
    context: EngineContext, chain: SweepingChain, found: Sequence[IntentRow], station: str
) -> PlannedSweep | None:
    """Return what can go together. What cannot is left to those who send one by one, and so is all in an outage."""
    try:
        plan = await chain.plan_sweep([one.chain_intent for one in found], sponsor=station)
    except FeeAboveCeilingError:
        return None
    except ChainError as error:
        raise _NotPlannedError from error
    refused = [why for why in plan.refused if why is not None]
    if refused:
        context.alert("sweep_refused", collections=len(refused), reason=refused[0])
    intents = [one for one, why in zip(found, plan.refused, strict=True) if why is None]
    if plan.sweep is None or len(intents) < SWEPT_MIN:
        return None
    return PlannedSweep(sweep=plan.sweep, intents=intents)


async def _is_affordable(context: EngineContext, planned: PlannedSweep, station: OwnAddress) -> bool:
    """Whether the gas station can pay, and may have one more under way; else the collections wait for it."""
    now = context.clock.now()
    async with context.db.autocommit() as conn:
        outflow = await store.pending_outflow(conn, context.chain_scope, station.pk)
    if outflow.slots >= context.settings.in_flight_max:
        return False
    held = await context.chain.balance(station.address, context.chain_scope.info.native)
    if held - outflow.units.get(None, 0) >= planned.sweep.fee.cost_max:
        return True
    async with context.db.transaction() as conn:
        fresh = await context.defer(conn, planned.intents, WAITS_FOR_STATION, now + EMPTY_STATION_PAUSE, now)
    if fresh:
        context.alert("gas_station_empty", waiting=fresh, address=station.address)
    return False


async def _commit(
    context: EngineContext, chain: SweepingChain, planned: PlannedSweep, station: OwnAddress
) -> SignedTx | None:
    """Sign and store, all in one transaction; None where something has come in between, or the signer refuses."""
    try:
        mined = await mined_count(context, station)
    except NonceDoubtedError as error:
        raise _NotPlannedError from error
    now = context.clock.now()
    async with context.db.transaction() as conn:
        first = await store.lock_sender(conn, context.chain_scope, station.pk, mined)
        if not await sweep_store.lock_free(conn, context.chain_scope, planned.intents):
            return None
        sequence, reference = None if mined is None else first, f"{IntentKind.SWEEP}:{context.ids.new('swp')}"
        path = (await sweep_store.own_path(conn, station.pk)).key_path
        agreed = await _signatures(context, _authorizations(context, planned), reference)
        if agreed is None:
            return None
        unsigned = await chain.prepare_sweep(planned.sweep, sequence, agreed)
        own = [path for one in planned.intents for path in (one.source, one.recipient) if path is not None]
        request = SignRequest(
            mode=context.chain_scope.mode,
            chain=context.chain_scope.info.id,
            payload=unsigned.payload,
            path=path,
            purpose=IntentKind.SWEEP,
            reference=reference,
            asked_by=AskedBy.PLATFORM,
            own=tuple(dict.fromkeys(path.key_path for path in own)),
        )
        signatures = await _signatures(context, [request], reference)
        if signatures is None:
            return None
        signed = context.family.seal(unsigned, signatures[0])
        intent = await _store_intent(context, conn, planned, reference, station.pk)
        tx = NewTx(intent=intent, sequence=sequence, signed=signed, fee=unsigned.fee, valid_until=unsigned.valid_until)
        next_sequence = first if mined is None else first + 1
        await store.open_slots(conn, context.chain_scope, station.pk, [tx], next_sequence=next_sequence, now=now)
        await sweep_store.join_sweep(conn, intent.id, planned.intents, now)
        await context.handlers.on_broadcast(conn, [updated(intent.update, tx_id=signed.tx_id)], now)
    return signed


async def _store_intent(
    context: EngineContext, conn: AsyncConnection, planned: PlannedSweep, reference: str, station_pk: int
) -> IntentRow:
    intent = NewIntent(
        reference=reference,
        kind=IntentKind.SWEEP,
        chain_scope=context.chain_scope,
        merchant_pk=None,
        source_pk=station_pk,
        to_address=context.chain_scope.info.sweeper or "",
        token=context.chain_scope.info.native,
        units=Units(len(planned.intents)),
    )
    intent_pk = (await submit(conn, [intent], context.clock.now()))[reference]
    return await sweep_store.read_intent(conn, intent_pk)


def _authorizations(context: EngineContext, planned: PlannedSweep) -> Sequence[SignRequest]:
    """Return what the addresses are asked to sign, each for the first of its collections."""
    owners = {one.source.address: one for one in reversed(planned.intents)}
    return [
        SignRequest(
            mode=context.chain_scope.mode,
            chain=context.chain_scope.info.id,
            payload=one.payload,
            path=owners[one.address].source.key_path,
            purpose=IntentKind.COLLECTION,
            reference=owners[one.address].update.reference,
            asked_by=AskedBy.PLATFORM,
        )
        for one in planned.sweep.authorizations
    ]


async def _signatures(
    context: EngineContext, requests: Sequence[SignRequest], reference: str
) -> Sequence[bytes] | None:
    """Return all signatures, or None, with an alert, where one is refused: then everything goes one by one."""
    signatures = []
    for reply in await context.signer.sign(requests) if requests else []:
        if reply.signature is None:
            context.alert("signer_refused", reference=reference, code=reply.refusal, reason=reply.reason)
            return None
        signatures.append(reply.signature)
    return signatures
