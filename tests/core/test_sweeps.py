"""Many collections in one transaction on a real node; and whatever goes wrong, each deposit is collected once."""

from __future__ import annotations

import pytest

from cambist.plugin import ChainUnavailableError
from cambist.services.listing import Part
from cambist.services.sending.collections.listing import list_collections
from tests.support.anvil_treasury import anvil_treasury

ONE = 10**6


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with anvil_treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open()
        await treasury.batch()
        yield treasury
        await treasury.check_books()


async def test_deposits_are_swept_without_gas_of_their_own(treasury):
    units = [n * 10 * ONE for n in range(1, 6)]
    addresses = await treasury.receive_many("USDT", units)
    await treasury.work(treasury.engine())
    assert [await treasury.on_chain(address, "USDT") for address in addresses] == [0] * 5
    assert await treasury.on_chain(treasury.wallet.address, "USDT") == sum(units)
    assert await treasury.intents("sweep") == [("done", False)]
    assert await treasury.intents("collection") == [("done", True)] * 5
    assert await treasury.intents("top_up") == []
    assert [await treasury.wei(address) for address in addresses] == [0] * 5
    assert await treasury.sent_from(treasury.station) == 1


async def test_each_collection_shows_its_share_of_the_fee(treasury):
    await treasury.receive_many("USDT", [20 * ONE, 30 * ONE])
    before = await treasury.wei(treasury.station)
    await treasury.work(treasury.engine())
    async with treasury.db.transaction() as conn:
        found = await list_collections(conn, treasury.merchant, "live", Part(limit=10), chain="local")
    spent = before - await treasury.wei(treasury.station)
    assert [one.fee for one in found.items] == [spent // 2] * 2
    assert len({one.tx_id for one in found.items}) == 1
    assert found.items[0].tx_id is not None


async def test_tokens_and_native_coin_of_several_merchants_go_together(treasury):
    other, _ = await treasury.new_merchant("mer_2")
    (both,) = await treasury.receive_many("USDT", [20 * ONE])
    await treasury.pay("ETH", both, 10**17)
    (theirs,) = await treasury.receive_many("USDT", [30 * ONE], merchant=other)
    await treasury.release("ETH", 10**17, treasury.merchant)
    await treasury.work(treasury.engine())
    assert await treasury.intents("sweep") == [("done", False)]
    assert [await treasury.on_chain(one, "USDT") for one in (both, theirs)] == [0, 0]
    assert await treasury.wei(both) == 0
    assert await treasury.on_chain(treasury.wallet.address, "ETH") == 10**17
    assert (await treasury.balance("USDT", other)).available == 30 * ONE
    async with treasury.db.autocommit() as conn:
        deposits = await conn.exec_driver_sql("SELECT count(*) FROM deposits JOIN addresses a ON a.id = address_pk"
                                              " WHERE a.purpose = 'wallet'")  # fmt: skip
        assert deposits.scalar_one() == 0


async def test_what_a_payout_waits_for_is_swept_whatever_it_is_worth(treasury):
    treasury.prices.board.clear()
    await treasury.receive_many("USDT", [1_000, 2_000, 3_000])
    to_address = await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDT", 6_000, to_address)
    await treasury.work(treasury.engine())
    assert (await treasury.payout(payout_id)).status == "completed"
    assert await treasury.on_chain(to_address, "USDT") == 6_000
    assert await treasury.intents("collection") == [("done", True)] * 3


async def test_an_address_that_was_swept_goes_on_receiving_and_is_swept_again(treasury):
    """From exchanges that send exactly 21,000 gas, too. It needs no other authorization, whatever it is sent."""
    addresses = await treasury.receive_many("USDT", [20 * ONE, 30 * ONE])
    engine = treasury.engine()
    for times in (1, 2):
        await treasury.work(engine)
        assert [(await treasury.code(one))[:8] for one in addresses] == ["0xef0100"] * 2
        for address in addresses:
            await treasury.pay("USDT", address, 40 * ONE)
            await treasury.withdraw(address, 10**17)
        assert await treasury.count_deposits() == 2 + 4 * times
        await treasury.release("USDT", 80 * ONE, treasury.merchant)
        await treasury.release("ETH", 2 * 10**17, treasury.merchant)
    await treasury.work(engine)
    assert await treasury.intents("sweep") == [("done", False)] * 3
    assert [await treasury.on_chain(one, token) for one in addresses for token in ("USDT", "ETH")] == [0] * 4
    assert [await treasury.sent_from(address) for address in addresses] == [1, 1]


async def test_one_deposit_alone_goes_the_plain_way_for_it_costs_less(treasury):
    (address,) = await treasury.receive_many("USDT", [50 * ONE])
    await treasury.work(treasury.engine())
    assert await treasury.on_chain(address, "USDT") == 0
    assert await treasury.intents("sweep") == []
    assert await treasury.code(address) == "0x"


async def test_a_crash_between_storing_and_sending_loses_and_repeats_nothing(treasury, monkeypatch):
    addresses = await treasury.receive_many("USDT", [20 * ONE, 30 * ONE])

    async def killed(_):
        raise ChainUnavailableError("the process is gone")

    with monkeypatch.context() as patch:
        patch.setattr(treasury.chain, "broadcast", killed)
        with pytest.raises(ChainUnavailableError):
            await treasury.engine().tick()
    assert await treasury.intents("sweep") == [("sending", False)]
    await treasury.work(treasury.engine())
    assert [await treasury.on_chain(address, "USDT") for address in addresses] == [0, 0]
    assert await treasury.intents("sweep") == [("done", False)]
    assert await treasury.sent_from(treasury.station) == 1


async def test_a_sweep_that_is_stuck_is_given_up_and_its_deposits_go_one_by_one(treasury):
    addresses = await treasury.receive_many("USDT", [20 * ONE, 30 * ONE])
    engine = treasury.engine()
    await engine.tick()
    treasury.clock.advance(61)
    await engine.tick()
    assert treasury.alerts["replaced"] == 1
    await treasury.work(engine)
    assert await treasury.intents("sweep") == [("failed", False)]
    assert await treasury.intents("collection") == [("done", True)] * 2
    assert [await treasury.on_chain(address, "USDT") for address in addresses] == [0, 0]
    assert [await treasury.sent_from(address) for address in addresses] == [1, 1]
    assert await treasury.on_chain(treasury.wallet.address, "USDT") == 50 * ONE


async def test_while_a_sweep_is_out_nothing_else_leaves_its_addresses(treasury):
    """Its authorizations count on their next places in the sequence."""
    addresses = await treasury.receive_many("USDT", [20 * ONE, 30 * ONE])
    engine = treasury.engine()
    await engine.tick()
    sweep = (await treasury.node.call("txpool_content"))["pending"]
    await treasury.node.call("anvil_dropAllTransactions")
    for address in addresses:
        await treasury.pay("ETH", address, 10**17)
    await treasury.mine(5)
    await treasury.release("ETH", 2 * 10**17, treasury.merchant)
    await engine.tick()
    assert len(sweep) == 1
    assert await treasury.intents("collection") == [("sending", True)] * 2 + [("waiting", False)] * 2
    await treasury.work(engine)
    assert [await treasury.on_chain(one, token) for one in addresses for token in ("USDT", "ETH")] == [0] * 4
    assert await treasury.intents("sweep") == [("done", False)] * 2


async def test_a_stranger_who_sends_the_authorizations_first_helps(treasury):
    """They say what they say, whoever submits them: the sweep finds its addresses delegated already."""
    addresses = await treasury.receive_many("USDT", [20 * ONE, 30 * ONE])
    engine = treasury.engine()
    await engine.tick()
    (waiting,) = next(iter((await treasury.node.call("txpool_content"))["pending"].values())).values()
    stranger = treasury.node.accounts[3]
    await treasury.node.call(
        "eth_sendTransaction",
        [
            {
                "from": stranger, "to": stranger, "type": "0x4", "authorizationList": waiting["authorizationList"],
                "gas": hex(200_000), "maxFeePerGas": hex(10**11), "maxPriorityFeePerGas": hex(10**10),
            }
        ],
    )  # fmt: skip
    raw = await treasury.node.raw(waiting["hash"])
    await treasury.node.call("anvil_dropTransaction", [waiting["hash"]])
    await treasury.node.mine()
    assert [await treasury.sent_from(address) for address in addresses] == [1, 1]
    await treasury.node.send_raw(raw)
    await treasury.work(engine)
    assert await treasury.intents("sweep") == [("done", False)]
    assert [await treasury.on_chain(address, "USDT") for address in addresses] == [0, 0]


async def test_a_sweep_that_fails_on_the_chain_costs_its_fee_and_its_deposits_go_one_by_one(treasury):
    """Here a deposit was gone when it came to be mined: a token may do such things."""
    addresses = await treasury.receive_many("USDT", [20 * ONE, 30 * ONE, 40 * ONE])
    engine = treasury.engine()
    await engine.tick()
    token = treasury.tokens["USDT"]
    pending = next(iter((await treasury.node.call("txpool_content"))["pending"].values()))
    raw = await treasury.node.raw(next(iter(pending.values()))["hash"])
    await treasury.node.call("anvil_dropAllTransactions")
    await treasury.node.call("anvil_dealERC20", [addresses[0], token.address, hex(5 * ONE)])
    await treasury.node.send_raw(raw)
    await treasury.mine(5)
    await treasury.work(engine, rounds=15, until="enough")
    assert await treasury.intents("sweep") == [("failed", False)]
    assert [await treasury.on_chain(address, "USDT") for address in addresses] == [5 * ONE, 0, 0]
    await treasury.node.call("anvil_dealERC20", [addresses[0], token.address, hex(20 * ONE)])
    treasury.clock.advance(120)
    await treasury.work(engine)
    assert await treasury.intents("collection") == [("done", True)] * 3
