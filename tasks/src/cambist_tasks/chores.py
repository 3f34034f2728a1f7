"""The sweeper's chores: what must happen though nobody asks for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import structlog

from cambist.bootstrap import Gateway
from cambist.services.keys import register_gas_stations, top_up_stock
from cambist.services.sandbox import Sandbox

from .sweeper import Chore
from .turns import Turns

log = structlog.get_logger(__name__)

STOCK_INTERVAL_S = 5.0


def chores(gateway: Gateway, turns: Turns) -> Sequence[Chore]:
    """Return what this worker does, each chore in one worker at a time."""
    sandbox = Sandbox(
        db=gateway.db, registry=gateway.registry, clock=gateway.clock, ids=gateway.ids, hints=gateway.hints
    )

    async def judge_sandbox() -> bool:
        return await sandbox.judge_due(gateway.clock.now()) > 0

    async def top_up() -> bool:
        return await _top_up(gateway)

    found = []
    if gateway.settings.sandbox.enabled:
        found.append(Chore(name="sandbox", work=judge_sandbox, interval_s=_sweep_s(gateway)))
    if gateway.keystore is not None:
        found.append(Chore(name="key_stock", work=top_up, interval_s=STOCK_INTERVAL_S))
    return [Chore(name=chore.name, work=_in_turn(chore, turns), interval_s=chore.interval_s) for chore in found]


def _sweep_s(gateway: Gateway) -> float:
    return gateway.settings.payments.sweep_interval_ms / 1000


def _in_turn(chore: Chore, turns: Turns) -> Callable[[], Awaitable[bool]]:
    turn = f"chore {chore.name}"

    async def work() -> bool:
        if not (await turns.still(turn) or await turns.take(turn)):
            return False
        return await chore.work()

    return work


async def _top_up(gateway: Gateway) -> bool:
    """Derive account keys ahead, a bounded number at a time; True while more are missing."""
    if gateway.keystore is None:
        return False
    coin_types = {family.coin_type for family in gateway.registry.families.values()}
    async with gateway.db.transaction() as conn:
        level = await top_up_stock(
            conn, gateway.keystore, gateway.secrets, coin_types=coin_types, target=gateway.settings.keys.stock
        )
    if level.complete:
        async with gateway.db.transaction() as conn:
            await register_gas_stations(conn, gateway.keys, gateway.registry.families.values())
    if level.added:
        log.info("account_keys_derived", added=level.added, free=level.free)
    return not level.complete
