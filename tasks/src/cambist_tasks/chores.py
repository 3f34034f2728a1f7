"""The sweeper's chores: what must happen though nobody asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import structlog

from cambist.bootstrap import Gateway
from cambist.services import auto_payout, gas_stations, price_points, restore
from cambist.services.gas_stations import GasStation, LowMarks
from cambist.services.keys import register_gas_stations, top_up_stock
from cambist.services.payouts.queue import Desk
from cambist.services.sandbox import Sandbox
from cambist.services.signer.learning import TARGETS_MAX, Learner
from cambist.services.usage import ALLOWANCES_MAX, ROLL_UP_ROWS_MAX, backfill_allowances, post_unposted

from .sweeper import Chore
from .turns import Turns

log = structlog.get_logger(__name__)

STOCK_INTERVAL_S = 5.0
LEARN_INTERVAL_S = 5.0
MANIFEST_INTERVAL_S = 60.0
MANIFEST_FILE = "recovery.json"
USAGE_INTERVAL_S = 2.0
ALLOWANCES_INTERVAL_S = 60.0


def chores(gateway: Gateway, turns: Turns, stations: list[GasStation]) -> Sequence[Chore]:
    """Return what this worker does, each in one worker at a time; ``stations`` keeps what was last seen of them."""
    sandbox = Sandbox(
        db=gateway.db, registry=gateway.registry, clock=gateway.clock, ids=gateway.ids, hints=gateway.hints
    )

    async def judge_sandbox() -> bool:
        return await sandbox.judge_due(gateway.clock.now()) > 0

    async def top_up() -> bool:
        return await _top_up(gateway)

    async def post_usage() -> bool:
        async with gateway.db.transaction() as conn:
            return await post_unposted(conn) == ROLL_UP_ROWS_MAX

    async def give_allowances() -> bool:
        async with gateway.db.transaction() as conn:
            return await backfill_allowances(conn) == ALLOWANCES_MAX

    async def record_prices() -> bool:
        await price_points.record(
            gateway.db, gateway.rates, price_points.symbols_of(gateway.registry), gateway.clock.now()
        )
        return False

    async def check_gas() -> bool:
        marks = LowMarks(balances=gateway.settings.gas.low_balance, stakes=gateway.settings.gas.low_stake)
        stations[:] = await gas_stations.check_all(gateway.db, gateway.chains, marks, gateway.clock.now())
        return False

    async def write_manifest() -> bool:
        await _write_manifest(gateway)
        return False

    found = [
        Chore(name="prices", work=record_prices, interval_s=price_points.INTERVAL_S),
        Chore(name="recovery_manifest", work=write_manifest, interval_s=MANIFEST_INTERVAL_S),
        Chore(name="gas_stations", work=check_gas, interval_s=gas_stations.INTERVAL_S),
        Chore(name="auto_payouts", work=partial(_pay_automatically, gateway), interval_s=auto_payout.INTERVAL_S),
        Chore(name="usage", work=post_usage, interval_s=USAGE_INTERVAL_S),
        Chore(name="allowances", work=give_allowances, interval_s=ALLOWANCES_INTERVAL_S),
    ]
    if gateway.settings.sandbox.enabled:
        found.append(Chore(name="sandbox", work=judge_sandbox, interval_s=_sweep_s(gateway)))
    if gateway.signer is not None:
        learner = Learner(gateway.signer)
        found.append(Chore(name="key_stock", work=top_up, interval_s=STOCK_INTERVAL_S))
        found.append(Chore(name="targets", work=partial(_learn, gateway, learner), interval_s=LEARN_INTERVAL_S))
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


async def _pay_automatically(gateway: Gateway) -> bool:
    desk = Desk(registry=gateway.registry, keys=gateway.keys, clock=gateway.clock, ids=gateway.ids)
    await auto_payout.run(gateway.db, desk, gateway.rates, gateway.hints)
    return False


async def _learn(gateway: Gateway, learner: Learner) -> bool:
    async with gateway.db.autocommit() as conn:
        return await learner.learn(conn) >= TARGETS_MAX


async def _write_manifest(gateway: Gateway) -> None:
    """Leave what a restore needs in the data directory, for backups that are made of files."""
    async with gateway.db.transaction() as conn:
        manifest = await restore.compose(conn, gateway.registry, gateway.clock.now())
    folder = gateway.settings.data_dir
    folder.mkdir(parents=True, exist_ok=True)
    await asyncio.to_thread(restore.write_manifest, folder / MANIFEST_FILE, manifest)


async def _top_up(gateway: Gateway) -> bool:
    """Derive account keys ahead, a bounded number at a time; True while more are missing."""
    if gateway.signer is None:
        return False
    coin_types = {family.coin_type for family in gateway.registry.families.values()}
    async with gateway.db.transaction() as conn:
        level = await top_up_stock(
            conn, gateway.signer, gateway.secrets, coin_types=coin_types, target=gateway.settings.keys.stock
        )
    if level.complete:
        async with gateway.db.transaction() as conn:
            await register_gas_stations(conn, gateway.keys, gateway.registry.families.values())
    if level.added:
        log.info("account_keys_derived", added=level.added, free=level.free)
    return not level.complete
