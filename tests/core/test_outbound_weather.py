"""Everything at once where transactions expire and stakes are lent: whatever happens, each payout arrives once."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from random import Random

import pytest

from cambist.plugin import ChainError
from tests.support.dated_treasury import dated_treasury
from tests.support.fragile import KilledError, Life, fragile

pytestmark = pytest.mark.slow

SEEDS = 60 if os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full" else 3
FIRST = int(os.environ.get("CAMBIST_TEST_SEED", "0"))
AMOUNT = 5_000_000
STEPS = 60
PAYOUTS_MAX = 20
STAKES = (0, 10**8, 10**9)
"""None, less than two transfers need, and enough."""
CALLS = ("expired", "plan", "broadcast", "transaction", "prepare", "balance", "stake")


class Weather:
    """What goes wrong next, by chance."""

    def __init__(self, treasury, chance: Random) -> None:
        self.treasury = treasury
        self.chance = chance
        self.changes = (
            self.pause, self.forget, self.lose_answers, self.break_calls, self.mend_calls, self.reorganise,
            self.outlive, self.hide, self.show, self.kill,
        )  # fmt: skip

    async def change(self) -> None:
        with suppress(ChainError, KilledError):
            await self.chance.choice(self.changes)()

    async def clear_up(self) -> None:
        faults = self.treasury.chain.faults
        faults.mining_paused = False
        faults.forgotten_txs = faults.unanswered_txs = 0
        await self.mend_calls()
        await self.show()

    async def pause(self) -> None:
        self.treasury.chain.faults.mining_paused = not self.treasury.chain.faults.mining_paused

    async def forget(self) -> None:
        self.treasury.chain.faults.forgotten_txs = self.chance.randrange(4)

    async def lose_answers(self) -> None:
        self.treasury.chain.faults.unanswered_txs = self.chance.randrange(4)

    async def break_calls(self) -> None:
        self.treasury.chain.faults.unavailable_calls = {self.chance.choice(CALLS)}

    async def mend_calls(self) -> None:
        self.treasury.chain.faults.unavailable_calls = set()

    async def reorganise(self) -> None:
        self.treasury.chain.reorg(self.chance.randrange(1, self.treasury.info.confirmations))
        await self.treasury.poll()

    async def outlive(self) -> None:
        self.treasury.clock.advance(80)
        await self.treasury.outlive()

    async def hide(self) -> None:
        self.treasury.chain.faults.hidden = {tx_id for _, tx_id in (await self.treasury.transactions())[-3:]}

    async def show(self) -> None:
        self.treasury.chain.faults.hidden = set()

    async def kill(self) -> None:
        await fragile(self.treasury.engine(), Life(self.chance.randrange(1, 60))).tick()


async def floats(treasury) -> list[int]:
    """Return what the books say of the platform's coin on addresses of the merchant's."""
    async with treasury.db.autocommit() as conn:
        rows = await conn.exec_driver_sql("SELECT -balance FROM ledger_accounts WHERE purpose LIKE 'float\\_%'")
        return [int(units) for units in rows.scalars()]


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
async def test_each_payout_arrives_once_and_every_loan_comes_back(db, clock, ids, tmp_path, seed):
    chance = Random(seed)
    async with dated_treasury(db, clock, ids, tmp_path) as treasury:
        if stake := STAKES[seed % len(STAKES)]:
            treasury.chain.endow(treasury.station, stake)
        await treasury.open(station=10**17)
        for symbol in ("USDX", "USDX", "USDX", "MEM", "MEM"):
            await treasury.receive(symbol, 20 * AMOUNT)
        weather, paid, engines = Weather(treasury, chance), [], [treasury.engine(), treasury.engine()]
        for step in range(STEPS):
            if len(paid) < PAYOUTS_MAX and chance.random() < 1 / 2:
                to_address, symbol = await treasury.stranger(step), chance.choice(["USDX", "USDX", "MEM"])
                paid.append((to_address, symbol, await treasury.pay_out(symbol, AMOUNT, to_address)))
            await weather.change()
            with suppress(ChainError):
                await asyncio.gather(*(engine.tick() for engine in engines[: chance.randrange(1, 3)]))
            with suppress(ChainError):
                await treasury.mine(chance.randrange(1, 3))
        await weather.clear_up()
        for _ in range(120):
            await treasury.mine(3, seconds=60)
            await engines[0].tick()
            lent = (await treasury.chain.stake(treasury.station)).lent
            if not lent and await treasury.is_idle():
                break
        assert (await treasury.open_intents(), lent) == ([], 0)
        for to_address, symbol, payout_id in paid:
            payout, arrived = await treasury.payout(payout_id), await treasury.on_chain(to_address, symbol)
            assert (payout.status, arrived) == ("completed", AMOUNT), treasury.alerts
        assert min(await floats(treasury)) >= 0
        await treasury.check_books()
