"""A nonce that something else had used, and that a reorg gives back, on a real node, with what was replaced there."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cambist.plugin import SignedTx
from tests.support.anvil_treasury import paying_treasury

pytestmark = pytest.mark.slow

ONE = 10**6


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with paying_treasury(db, clock, ids, tmp_path) as treasury:
        yield treasury


async def signed(treasury) -> list[SignedTx]:
    """Return all that was signed last, in one slot, oldest first."""
    async with treasury.db.autocommit() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT tx_id, raw FROM outbound_txs WHERE slot_pk = (SELECT max(id) FROM outbound_slots) ORDER BY id"
        )
        return [SignedTx(tx_id=row.tx_id, raw=row.raw) for row in rows]


async def wait_for(treasury, seconds: float) -> None:
    due_at = treasury.clock.now() + timedelta(seconds=seconds)
    async with treasury.db.autocommit() as conn:
        await conn.exec_driver_sql("UPDATE outbound_intents SET due_at = $1 WHERE state = 'waiting'", (due_at,))


async def rob(treasury) -> None:
    """Have somebody with the same key use the wallet's next nonce."""
    wallet = treasury.wallet.address
    await treasury.node.call("anvil_impersonateAccount", [wallet])
    await treasury.node.call("eth_sendTransaction", [{"from": wallet, "to": wallet, "value": "0x0", "gas": "0x5208"}])
    await treasury.node.call("anvil_stopImpersonatingAccount", [wallet])
    await treasury.mine()


@pytest.mark.parametrize("resurfaces", [None, 0, 1])
async def test_a_replaced_payout_is_paid_once_at_the_nonce_that_it_gets_back(treasury, resurfaces):
    engine, to_address = treasury.engine(), await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDT", 5 * ONE, to_address)
    await engine.tick()
    treasury.clock.advance(3600)
    await engine.tick()
    txs = await signed(treasury)
    assert len(txs) == 2, "it was replaced"
    before = await treasury.node.snapshot()
    await treasury.forget()
    await rob(treasury)
    while not treasury.alerts["dead"]:
        await engine._follower.follow()
        await treasury.mine()
    await wait_for(treasury, 7200)
    await treasury.node.revert(before)
    await treasury.mine(12)
    if resurfaces is not None:
        await treasury.node.call("eth_sendRawTransaction", ["0x" + txs[resurfaces].raw.hex()])
        await treasury.mine(1)
    await wait_for(treasury, 0)
    for _ in range(4):
        await treasury.work(engine, until="enough", rounds=6)
        treasury.clock.advance(61)
    assert await treasury.on_chain(to_address, "USDT") == 5 * ONE
    payout = await treasury.payout(payout_id)
    assert payout.status == "completed"
    assert payout.tx_id == txs[1 if resurfaces is None else resurfaces].tx_id
    assert await treasury.is_idle()
