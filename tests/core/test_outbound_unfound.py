"""Transactions in blocks that no node finds by their ids: what the watcher has read there is not sent again."""

from __future__ import annotations

import asyncio

import pytest

from cambist.services.sending import store
from cambist.testing.memory.blocks import Output
from tests.support.treasury import Treasury
from tests.support.waiting import waits_for_a_lock

pytestmark = pytest.mark.slow

AMOUNT = 5_000_000


@pytest.fixture
async def treasury(ready_treasury):
    return ready_treasury


class Unfound:
    """A payout that is mined, and that nodes deny, as one does whose index of transactions is behind or lost."""

    def __init__(self, treasury: Treasury) -> None:
        self.treasury, self.engine = treasury, treasury.engine()

    async def begin(self, symbol: str = "USDX") -> None:
        self.symbol, self.to_address = symbol, await self.treasury.stranger(1)
        self.payout_id = await self.treasury.pay_out(symbol, AMOUNT, self.to_address)
        await self.engine.tick()
        async with self.treasury.db.autocommit() as conn:
            rows = await conn.exec_driver_sql("SELECT tx_id FROM outbound_txs ORDER BY id DESC LIMIT 1")
            self.tx_id = rows.scalar_one()
        self.treasury.chain.faults.hidden.add(self.tx_id)

    def rob(self) -> None:
        """Have somebody with the same key use the nonce, and move nothing."""
        chain, wallet = self.treasury.chain, self.treasury.wallet.address
        nothing = Output(contract=None, recipient=wallet, amount=0)
        chain.submit([nothing], sender=wallet, sequence=chain.accounts.sequence(wallet))

    async def paid(self) -> int:
        return await self.treasury.on_chain(self.to_address, self.symbol)

    async def status(self) -> str:
        return (await self.treasury.payout(self.payout_id)).status


@pytest.fixture
def unfound(treasury):
    return Unfound(treasury)


@pytest.mark.parametrize("symbol", ["USDX", "MEM"])
async def test_what_stands_in_a_block_is_not_sent_again_where_nobody_finds_it_by_its_id(treasury, unfound, symbol):
    if symbol == "MEM":
        await treasury.receive("MEM", 10**18)
    await unfound.begin(symbol)
    await treasury.work(unfound.engine, until="enough")
    assert (await unfound.paid(), await unfound.status()) == (AMOUNT, "broadcast")
    assert (treasury.alerts["unfound"], treasury.alerts["dead"]) == (1, 0)
    await treasury.mine(treasury.info.hashes_kept + 2)
    await treasury.work(unfound.engine, until="enough", rounds=10)
    assert (await unfound.paid(), treasury.alerts["dead"]) == (AMOUNT, 0), "its block is old, and stands"
    treasury.chain.faults.hidden.clear()
    await treasury.work(unfound.engine)
    assert (await unfound.paid(), await unfound.status()) == (AMOUNT, "completed")
    await treasury.check_books()


async def test_it_is_not_sent_again_before_the_blocks_are_read_in_which_it_may_stand(treasury, unfound):
    await unfound.begin()
    chain = treasury.chain
    chain.faults.mining_paused = True
    chain.mine(2 * treasury.info.span_max)
    chain.faults.mining_paused = False
    chain.mine()
    await unfound.engine.tick()
    assert treasury.alerts["sequence_taken"] == 1
    await treasury.watcher.poll()
    await unfound.engine.tick()
    await treasury.work(unfound.engine, until="enough")
    assert (await unfound.paid(), treasury.alerts["dead"], treasury.alerts["unfound"]) == (AMOUNT, 0, 1)


async def test_what_stood_in_a_block_that_is_gone_is_sent_again_once_something_else_used_its_nonce(treasury, unfound):
    await unfound.begin()
    await treasury.mine()
    assert await unfound.paid() == AMOUNT
    treasury.chain.reorg(1)
    unfound.rob()
    await treasury.mine()
    await treasury.work(unfound.engine)
    assert (await unfound.paid(), await unfound.status()) == (AMOUNT, "completed")
    assert (treasury.alerts["dead"], treasury.alerts["unfound"]) == (1, 0)


@pytest.mark.parametrize("is_dead", [True, False])
async def test_a_block_that_is_gone_holds_nothing_when_what_took_its_place_is_old(treasury, unfound, is_dead):
    await unfound.begin()
    await treasury.mine()
    treasury.chain.reorg(1)
    unfound.rob()
    await treasury.mine()
    while is_dead and not treasury.alerts["dead"]:
        await unfound.engine._follower.follow()
        await treasury.mine()
    await treasury.mine(treasury.info.hashes_kept + 2)
    await treasury.work(unfound.engine)
    assert (await unfound.paid(), await unfound.status()) == (AMOUNT, "completed")
    assert (treasury.alerts["dead"], treasury.alerts["unfound"]) == (1, 0)


async def test_the_operator_is_told_once_also_where_the_watcher_falls_behind(treasury, unfound):
    await unfound.begin()
    await treasury.work(unfound.engine, until="enough")
    treasury.chain.mine(2 * treasury.info.span_max)
    assert (await treasury.watcher.poll()).behind
    await unfound.engine.tick()
    await treasury.poll()
    await unfound.engine.tick()
    assert treasury.alerts["unfound"] == 1


async def test_blocks_are_read_while_what_may_replace_a_transaction_of_theirs_waits_for_the_signer(treasury, unfound):
    await unfound.begin()
    treasury.chain.mine()
    async with treasury.db.transaction() as conn:
        slots = await conn.exec_driver_sql("SELECT slot_pk FROM outbound_txs WHERE tx_id = $1", (unfound.tx_id,))
        assert await store.lock_slot(conn, slots.scalar_one())
        polling = asyncio.create_task(treasury.poll())
        await waits_for_a_lock(conn, polling)
        is_read = polling.done()
    await polling
    assert is_read
