"""What may have been sent does not end by endpoints that lie, contradict or are silent, nor by plugins that stumble."""

from __future__ import annotations

from contextlib import suppress
from copy import copy

import pytest
from msgspec import structs

from cambist.plugin import ChainUnavailableError, InconsistentChainError, UnsignedTx
from cambist.services.sending import settling
from cambist.services.sending.engine import Engine
from cambist_evm.testing import FaultyProxy
from tests.support.anvil_treasury import CHAIN_ID
from tests.support.forgotten import (
    AMOUNT,
    NUMBERED,
    another_took_its_nonce,
    cancelling,
    events,
    money,
    opened,
    row_of,
    sent_and_forgotten,
    settle,
    signed_and_lost,
    status,
    txs_of,
)
from tests.support.node_treasury import plugin_context
from tests.support.payment_env import registry

pytestmark = pytest.mark.slow


@pytest.fixture(params=["memory"])
async def treasury(request, db, clock, ids, tmp_path):
    async with opened(request.param, db, clock, ids, tmp_path) as treasury:
        yield treasury


async def test_a_transaction_that_a_reorg_takes_away_before_it_is_final_decides_nothing(treasury):
    chain = treasury.chain
    payout_id, tx_id = await sent_and_forgotten(treasury, await treasury.stranger(1), mined=False)
    await treasury.mine(2)
    await settle(treasury, payout_id, tx_id)
    chain.reorg(2, new_blocks=treasury.info.confirmations + 5)
    await treasury.poll()
    await treasury.engine().tick()
    row = await row_of(treasury, payout_id)
    assert (row.state, row.settle_refusal) == ("waiting", settling.UNKNOWN)


async def test_a_node_on_another_branch_than_the_watcher_is_not_believed(treasury):
    payout_id, tx_id = await sent_and_forgotten(treasury, await treasury.stranger(1))
    real = treasury.chain.transaction

    async def elsewhere(asked):
        told = await real(asked)
        return structs.replace(told, block=structs.replace(told.block, hash="f" * 64))

    treasury.chain.transaction = elsewhere
    await settle(treasury, payout_id, tx_id)
    await treasury.engine().tick()
    assert (await row_of(treasury, payout_id)).state == "waiting"
    del treasury.chain.transaction
    treasury.clock.advance(40)
    await treasury.work(treasury.engine(), rounds=2, until="enough")
    assert await status(treasury, payout_id) == "completed"


@pytest.mark.parametrize("treasury", NUMBERED, indirect=True)
async def test_no_money_goes_back_while_an_endpoint_contradicts_and_the_operator_is_told(treasury, monkeypatch):
    """As the pool of endpoints says it: a transaction that one of them has in a block is not known to another."""
    before = await money(treasury)
    lost, other, tx_id = await another_took_its_nonce(treasury, await treasury.stranger(1), await treasury.stranger(2))

    async def contradicted(*_):
        raise InconsistentChainError("of 2 endpoints 1 tells the same, and not all")

    await settle(treasury, lost, tx_id)
    with monkeypatch.context() as patched:
        patched.setattr(treasury.chain, "witnessed", contradicted)
        for _ in range(3):
            await treasury.engine().tick()
            treasury.clock.advance(40)
    row = await row_of(treasury, lost)
    assert (row.settle_asked_at is None, row.settle_refusal) == (False, settling.WAITS_FOR_WITNESSES)
    assert (await status(treasury, lost), await events(treasury, lost)) == ("cancelling", [])
    assert await money(treasury) == (before[0] - 2 * AMOUNT, 2 * AMOUNT)
    await treasury.engine().tick()
    row = await row_of(treasury, lost)
    assert (row.settle_asked_at, row.settle_refusal) == (None, None)
    assert (await status(treasury, lost), await money(treasury)) == ("cancelled", (before[0] - AMOUNT, AMOUNT))
    await settle(treasury, other, tx_id)
    await treasury.work(treasury.engine(), rounds=3, until="enough")
    assert await status(treasury, other) == "completed"


@pytest.mark.parametrize("treasury", ["anvil"], indirect=True)
async def test_one_lying_endpoint_of_two_gives_no_money_back_for_what_was_paid(treasury):
    """It tells of what was signed for the same nonce, in a real block; the other one knows what was mined instead."""
    node, to_address = treasury.node, await treasury.stranger(1)
    lost = await treasury.pay_out("USDT", AMOUNT, await treasury.stranger(2))
    ((request, reply),) = await signed_and_lost(treasury, lost)
    await treasury.cancel(lost)
    paid = await treasury.pay_out("USDT", AMOUNT, to_address)
    engine = treasury.engine()
    before_all = await node.snapshot()
    await engine.tick()
    (tx_id,) = await txs_of(treasury, paid)
    found = await treasury.chain.find_tx(tx_id)
    await node.revert(before_all)
    # What a node would say of the replacement, had it been mined.
    unsigned = UnsignedTx(sender=found.sender, sequence=found.sequence, payload=request.payload, fee=found.fee)
    never = engine.context.family.seal(unsigned, reply.signature)
    before_all = await node.snapshot()
    await node.call("eth_sendRawTransaction", ["0x" + never.raw.hex()])
    await node.mine()
    told = [await node.call(f"eth_getTransaction{what}", [never.tx_id]) for what in ("ByHash", "Receipt")]
    await node.revert(before_all)
    await node.call("eth_sendRawTransaction", ["0x" + found.tx.raw.hex()])
    await treasury.mine(treasury.info.confirmations + 2)
    block = (await treasury.chain.transaction(tx_id)).block
    assert await treasury.on_chain(to_address, "USDT") == AMOUNT
    await treasury.forget_sending(paid)
    await cancelling(treasury, paid)
    before = await money(treasury)
    async with FaultyProxy(node.url) as liar:
        place = {"blockHash": block.hash, "blockNumber": hex(block.height)}
        liar.lies["eth_getTransactionByHash"] = lambda _: told[0] | place
        liar.lies["eth_getTransactionReceipt"] = lambda _: told[1] | place | {"logs": []}
        local = {
            "rpc_urls": [liar.url, node.url], "chain_id": CHAIN_ID, "native_symbol": "ETH", "confirmations": 3,
            "tokens": [{"symbol": "USDT", "contract": treasury.token("USDT").contract, "decimals": 6}],
        }  # fmt: skip
        async with registry({"evm": {"chains": {"local": local}}}).connect_chains(plugin_context()) as connected:
            chain = connected["local"]
            assert (await chain.transaction(never.tx_id)).block == block, "one endpoint's word, as ever"
            await settle(treasury, paid, never.tx_id)
            await Engine(structs.replace(engine.context, chain=chain), treasury.keys).tick()
    row = await row_of(treasury, paid)
    assert (row.settle_asked_at is None, row.settle_refusal) == (False, settling.WAITS_FOR_WITNESSES)
    assert (await status(treasury, paid), await money(treasury)) == ("cancelling", before)
    for payout_id in (paid, lost):
        await settle(treasury, payout_id, tx_id)
        await treasury.work(treasury.engine(), rounds=3, until="enough")
    assert [await status(treasury, one) for one in (paid, lost)] == ["completed", "cancelled"]


@pytest.mark.parametrize("treasury", NUMBERED, indirect=True)
async def test_a_block_that_the_watcher_has_forgotten_is_compared_with_the_chain(treasury, monkeypatch):
    """A hash that nobody keeps any more is no proof by itself."""
    before = await money(treasury)
    lost, other, tx_id = await another_took_its_nonce(treasury, await treasury.stranger(1), await treasury.stranger(2))
    real = treasury.chain.witnessed
    height = (await real(tx_id)).block.height
    await treasury.mine(5)
    async with treasury.db.autocommit() as conn:
        await conn.exec_driver_sql("DELETE FROM chain_blocks WHERE height <= $1", (height,))
    context = treasury.engine().context
    scope = structs.replace(context.chain_scope, info=structs.replace(treasury.info, hashes_kept=2))
    engine = Engine(structs.replace(context, chain_scope=scope), treasury.keys)

    async def elsewhere(asked):
        told = await real(asked)
        return structs.replace(told, block=structs.replace(told.block, hash="f" * len(told.block.hash)))

    await settle(treasury, lost, tx_id)
    with monkeypatch.context() as patched:
        patched.setattr(treasury.chain, "witnessed", elsewhere)
        await engine.tick()
    row = await row_of(treasury, lost)
    assert (row.settle_asked_at is None, row.settle_refusal) == (False, settling.WAITS_FOR_WITNESSES)
    assert (await status(treasury, lost), await money(treasury)) == ("cancelling", (before[0] - 2 * AMOUNT, 2 * AMOUNT))
    treasury.clock.advance(40)
    await engine.tick()
    assert (await status(treasury, lost), await money(treasury)) == ("cancelled", (before[0] - AMOUNT, AMOUNT))
    await settle(treasury, other, tx_id)
    await treasury.work(engine, rounds=3, until="enough")
    assert await status(treasury, other) == "completed"


@pytest.mark.parametrize("part", ["find_tx", "witnessed", "effects"])
async def test_whatever_a_plugin_stumbles_over_only_what_was_named_is_refused(treasury, monkeypatch, part):
    payout_id, tx_id = await sent_and_forgotten(treasury, await treasury.stranger(1))
    other = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(2))
    before = await money(treasury)

    def stumbles(*_):
        raise ValueError("non-hexadecimal number found")

    await settle(treasury, payout_id, tx_id)
    context = treasury.engine().context
    family = copy(context.family)
    with monkeypatch.context() as patched:
        patched.setattr(family if part == "effects" else treasury.chain, part, stumbles)
        await Engine(structs.replace(context, family=family), treasury.keys).tick()
    assert await txs_of(treasury, other), "the tick went on"
    row = await row_of(treasury, payout_id)
    refusal = settling.UNCLEAR if part == "effects" else settling.UNKNOWN
    assert (row.settle_asked_at, row.settle_refusal) == (None, refusal)
    assert (await status(treasury, payout_id), await money(treasury)) == ("cancelling", before)
    await settle(treasury, payout_id, tx_id)
    treasury.clock.advance(40)
    await treasury.work(treasury.engine())
    assert [await status(treasury, one) for one in (payout_id, other)] == ["completed", "completed"]


async def test_a_node_that_does_not_answer_is_asked_again(treasury):
    payout_id, tx_id = await sent_and_forgotten(treasury, await treasury.stranger(1))
    await settle(treasury, payout_id, tx_id)
    treasury.chain.faults.unavailable = True
    with suppress(ChainUnavailableError):
        await treasury.engine().tick()
    treasury.chain.faults.unavailable = False
    assert (await row_of(treasury, payout_id)).settle_asked_at is not None
    treasury.clock.advance(40)
    await treasury.work(treasury.engine(), rounds=2, until="enough")
    assert await status(treasury, payout_id) == "completed"
