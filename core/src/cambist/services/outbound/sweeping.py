"""Many collections in one transaction of the gas station, where chain and operator allow it; the rest goes one by one.

Nothing is ever sent both ways: collections that go with a sweep are no longer waiting, and wait again only when their
sweep can never happen any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import structlog
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import ChainError, FeeAboveCeilingError, SignedTx, Sweep, SweepingChain, Units
from cambist.services.platform import load
from cambist.services.signer.protocol import KeyPath, SignRequest
from cambist.services.wallet_addresses import OwnAddress, gas_station

from . import store, sweep_store
from .desk import Desk, path_of, retold
from .handing_out import hand_out
from .intents import NewIntent, submit
from .rows import IntentRow
from .sending import WAITS_FOR_FEES, WAITS_FOR_STATION
from .store import NewTx
from .swept import SWEEP

log = structlog.get_logger(__name__)

SWEPT_MAX = 50
DRY_PAUSE = timedelta(seconds=15)


class Load(Struct, frozen=True, kw_only=True):
    """A planned sweep and the collections that it brings, in its order."""

    sweep: Sweep
    intents: Sequence[IntentRow]


async def sweep_waiting(desk: Desk) -> bool:
    """Send one sweep of what waits for its collection; return whether there may be more for another."""
    chain = desk.chain
    if not isinstance(chain, SweepingChain) or desk.site.info.sweeper is None:
        return False
    now = desk.clock.now()
    async with desk.db.transaction() as conn:
        if not (await load(conn)).collection.batched:
            return False
        reasons = (WAITS_FOR_FEES, WAITS_FOR_STATION)
        found = await sweep_store.candidates(conn, desk.site, reasons, now, SWEPT_MAX)
        station = await gas_station(conn, desk.site.info.family, desk.site.mode)
    if station is None or not found:
        return False
    planned = await _plan(desk, chain, found, station.address)
    if planned is None or not await _is_affordable(desk, planned, station):
        return False
    signed = await _commit(desk, chain, planned, station)
    if signed is None:
        return False
    await hand_out(desk, [signed])
    return len(found) == SWEPT_MAX


async def _plan(desk: Desk, chain: SweepingChain, found: Sequence[IntentRow], station: str) -> Load | None:
    """Return what can go together. What cannot is left to those who send one by one, and so is all in an outage."""
    try:
        plan = await chain.plan_sweep([one.wanted for one in found], sponsor=station)
    except FeeAboveCeilingError:
        return None
    except ChainError as error:
        log.warning("sweep_not_planned", chain=desk.site.info.id, error=f"{type(error).__name__}: {error}")
        return None
    refused = [why for why in plan.refused if why is not None]
    if refused:
        desk.alert("sweep_refused", collections=len(refused), reason=refused[0])
    intents = [one for one, why in zip(found, plan.refused, strict=True) if why is None]
    if plan.sweep is None:
        return None
    return Load(sweep=plan.sweep, intents=intents)


async def _is_affordable(desk: Desk, planned: Load, station: OwnAddress) -> bool:
    """Whether the gas station can pay, and may have one more under way; else the collections wait for it."""
    now = desk.clock.now()
    async with desk.db.transaction() as conn:
        burden = await store.burden(conn, desk.site, station.row)
    if burden.slots >= desk.settings.in_flight_max:
        return False
    held = await desk.chain.balance(station.address, desk.site.info.native)
    if held - burden.units.get(None, 0) >= planned.sweep.fee.cost_max:
        return True
    async with desk.db.transaction() as conn:
        fresh = await desk.hold(conn, planned.intents, WAITS_FOR_STATION, now + DRY_PAUSE, now)
    if fresh:
        desk.alert("gas_station_empty", waiting=fresh, address=station.address)
    return False


async def _commit(desk: Desk, chain: SweepingChain, planned: Load, station: OwnAddress) -> SignedTx | None:
    """Sign and store, all in one transaction; None where something has come in between, or the signer refuses."""
    mined = await desk.chain.next_sequence(station.address)
    now = desk.clock.now()
    async with desk.db.transaction() as conn:
        first = await store.lock_sender(conn, desk.site, station.row, mined)
        if not await sweep_store.lock_free(conn, desk.site, planned.intents):
            return None
        sequence, reference = None if mined is None else first, f"{SWEEP}:{desk.ids.new('swp')}"
        path = path_of(await sweep_store.own_path(conn, station.row))
        agreed = await _signatures(desk, _authorizations(desk, planned), reference)
        if agreed is None:
            return None
        unsigned = await chain.prepare_sweep(planned.sweep, sequence, agreed)
        request = SignRequest(
            mode=desk.site.mode,
            chain=desk.site.info.id,
            payload=unsigned.payload,
            path=path,
            purpose=SWEEP,
            reference=reference,
            own=_own_paths(planned),
        )
        signatures = await _signatures(desk, [request], reference)
        if signatures is None:
            return None
        signed = desk.seal(unsigned, signatures[0])
        intent = await _store_intent(desk, conn, planned, reference, station.row)
        tx = NewTx(intent=intent, sequence=sequence, signed=signed, fee=unsigned.fee, valid_until=unsigned.valid_until)
        next_sequence = first if mined is None else first + 1
        await store.open_slots(conn, desk.site, station.row, [tx], next_sequence=next_sequence, now=now)
        await sweep_store.join_sweep(conn, intent.id, planned.intents, now)
        await desk.tell(conn, "on_broadcast", [retold(intent.sent, tx_id=signed.tx_id)], now)
    return signed


async def _store_intent(
    desk: Desk, conn: AsyncConnection, planned: Load, reference: str, station_row: int
) -> IntentRow:
    intent = NewIntent(
        reference=reference,
        kind=SWEEP,
        mode=desk.site.mode,
        chain=desk.site.info.id,
        scope=desk.site.scope,
        merchant_row=None,
        source_row=station_row,
        target=desk.site.info.sweeper or "",
        token=desk.site.info.native,
        units=Units(len(planned.intents)),
    )
    row = (await submit(conn, [intent], desk.clock.now()))[reference]
    return await sweep_store.read_intent(conn, row)


def _authorizations(desk: Desk, planned: Load) -> Sequence[SignRequest]:
    """Return what the addresses are asked to sign, each for the first of its collections."""
    owners = {one.source.address: one for one in reversed(planned.intents)}
    return [
        SignRequest(
            mode=desk.site.mode,
            chain=desk.site.info.id,
            payload=one.payload,
            path=path_of(owners[one.address].source),
            purpose="collection",
            reference=owners[one.address].sent.reference,
        )
        for one in planned.sweep.authorizations
    ]


def _own_paths(planned: Load) -> tuple[KeyPath, ...]:
    places = [place for one in planned.intents for place in (one.source, one.recipient) if place is not None]
    return tuple(dict.fromkeys(map(path_of, places)))


async def _signatures(desk: Desk, requests: Sequence[SignRequest], reference: str) -> Sequence[bytes] | None:
    """Return all signatures, or None, with an alert, where one is refused: then everything goes one by one."""
    signatures = []
    for reply in await desk.signer.sign(requests) if requests else []:
        if reply.signature is None:
            desk.alert("signer_refused", reference=reference, code=reply.refusal, reason=reply.reason)
            return None
        signatures.append(reply.signature)
    return signatures
