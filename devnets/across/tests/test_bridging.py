"""Our plugins pointed at the local Across: deposits that are filled, late, slowly, by a liar, or never."""

from __future__ import annotations

import asyncio
import time

import pytest

from cambist_across_node import Behaviour, Fault, FillStatus, NotExpiredError
from cambist_across_node.side import ETHER

from .conftest import RECIPIENT, WALLET, bridging, head, network_of
from .waiting import eventually

USDT_UNITS = 250_000_000
EXPIRED_S = 7300


@pytest.mark.parametrize("symbol, units", [("USDT", USDT_UNITS), ("ETH", ETHER)])
@pytest.mark.parametrize("origin, destination", [("one", "two"), ("two", "one")])
async def test_what_is_deposited_is_filled_and_found_both_ways(gateway, symbol, units, origin, destination):
    deposit = await gateway.deposit(gateway.request(symbol, units, origin=origin, destination=destination))
    fill = await eventually(lambda: gateway.fill(deposit, origin=origin))
    assert fill.units == deposit.units_out
    there = gateway.side(destination)
    assert await there.balance(RECIPIENT, None if symbol == "ETH" else symbol) == fill.units
    status = await gateway.status(deposit, origin=origin)
    assert (status.state, status.tx_id) == ("filled", fill.tx_id)


async def test_each_of_two_deposits_has_its_own_fill(gateway):
    gateway.network.relayer.behaviour = Behaviour.NEVER
    deposits = [await gateway.deposit(gateway.request("USDT", USDT_UNITS + number)) for number in range(2)]
    assert [await gateway.fill(one) for one in deposits] == [None, None]
    gateway.network.relayer.behaviour = Behaviour.FILL
    fills = [await eventually(lambda one=one: gateway.fill(one)) for one in deposits]
    assert [one.deposit_id for one in fills] == [one.deposit_id for one in deposits]
    assert len({one.tx_id for one in fills}) == 2


async def test_a_late_relayer_fills_when_its_time_has_come(gateway):
    gateway.network.relayer.delay_s = 1.0
    began = time.monotonic()
    deposit = await gateway.deposit(gateway.request("USDT", USDT_UNITS))
    assert await eventually(lambda: gateway.fill(deposit))
    assert time.monotonic() - began > 1.0


async def test_a_slow_fill_pays_what_the_pool_says_and_is_read_from_the_log(gateway):
    gateway.network.relayer.behaviour = Behaviour.SLOW
    gateway.network.relayer.delay_s = 3600
    deposit = await gateway.deposit(gateway.request("USDT", USDT_UNITS))
    asked = gateway.side("two")

    async def requested():
        (found,) = await gateway.side("one").deposits()
        return (await asked.fill_statuses([found])) == [FillStatus.SLOW_FILL_REQUESTED]

    assert await eventually(requested)
    assert (await gateway.status(deposit)).state == "pending"
    gateway.network.relayer.delay_s = 0
    fill = await eventually(lambda: gateway.fill(deposit))
    assert fill.units == USDT_UNITS - USDT_UNITS * 50 // 10**6 > deposit.units_out
    assert await asked.balance(RECIPIENT, "USDT") == fill.units
    assert (await gateway.status(deposit)).state == "filled"


async def test_coin_is_filled_slowly_too(gateway):
    gateway.network.relayer.behaviour = Behaviour.SLOW
    deposit = await gateway.deposit(gateway.request("ETH", ETHER))
    fill = await eventually(lambda: gateway.fill(deposit))
    assert await gateway.side("two").balance(RECIPIENT) == fill.units > deposit.units_out


@pytest.mark.parametrize("behaviour", [Behaviour.WRONG_RECIPIENT, Behaviour.WRONG_AMOUNT])
async def test_a_fill_of_something_else_counts_for_nobody_and_does_not_keep_from_filling(gateway, behaviour):
    gateway.network.relayer.behaviour = behaviour
    deposit = await gateway.deposit(gateway.request("USDT", USDT_UNITS))
    chain, info = gateway.chains["two"], gateway.infos["one"]

    async def logs():
        return await chain.logs(gateway.bridge.fill_query(chain.info, deposit, info, 0, await head(chain)))

    (hostile,) = await eventually(logs)
    assert hostile.log.topics[0] == gateway.bridge.fill_query(chain.info, deposit, info, 0, 0).topics[0]
    assert await gateway.fill(deposit) is None
    assert (await gateway.status(deposit)).state == "pending"
    gateway.network.relayer.behaviour = Behaviour.FILL
    fill = await eventually(lambda: gateway.fill(deposit))
    assert (fill.units, fill.tx_id != hostile.tx_id) == (deposit.units_out, True)
    assert (await gateway.status(deposit)).tx_id == fill.tx_id


async def test_what_nobody_fills_expires_and_comes_back(gateway):
    gateway.network.relayer.behaviour = Behaviour.NEVER
    before = await gateway.side("one").balance(WALLET, "USDT")
    deposit = await gateway.deposit(gateway.request("USDT", USDT_UNITS))
    assert (await gateway.status(deposit)).state == "pending"
    with pytest.raises(NotExpiredError):
        await gateway.network.refund("one", await gateway.side("one").deposits())
    await gateway.network.pass_time(EXPIRED_S)
    assert (await gateway.status(deposit)).state == "expired"
    assert await gateway.refunds(deposit) == []
    (receipt,) = await gateway.network.refund("one")
    assert await gateway.refunds(deposit) == [(receipt["transactionHash"], USDT_UNITS)]
    assert await gateway.side("one").balance(WALLET, "USDT") == before
    status = await gateway.status(deposit)
    assert (status.state, status.tx_id) == ("refunded", receipt["transactionHash"])
    assert await gateway.network.refund("one") == []


async def test_nothing_is_filled_after_its_deadline(gateway):
    gateway.network.relayer.behaviour = Behaviour.NEVER
    deposit = await gateway.deposit(gateway.request("USDT", USDT_UNITS))
    await gateway.network.pass_time(EXPIRED_S)
    gateway.network.relayer.behaviour = Behaviour.FILL

    async def refused():
        return gateway.network.relayer.refusals

    assert await eventually(refused)
    assert await gateway.fill(deposit) is None


async def test_one_transfer_pays_two_deposits_back_and_each_token_has_its_own(gateway):
    gateway.network.relayer.behaviour = Behaviour.NEVER
    here = gateway.side("one")
    requests = [gateway.request(symbol, units) for symbol, units in (("USDT", 5_000_000), ("USDT", 7_000_000))]
    deposits = [await gateway.deposit(one) for one in (*requests, gateway.request("ETH", ETHER))]
    wrapped = await here.balance(WALLET, "WETH")
    await gateway.network.pass_time(EXPIRED_S)
    of_tokens, of_coin = await gateway.network.refund("one")
    for deposit in deposits[:2]:
        assert await gateway.refunds(deposit) == [(of_tokens["transactionHash"], 12_000_000)]
        assert (await gateway.status(deposit)).tx_id == of_tokens["transactionHash"]
    # Coin comes back as the token that wraps it.
    assert await gateway.refunds(deposits[2]) == [(of_coin["transactionHash"], ETHER)]
    assert await here.balance(WALLET, "WETH") == wrapped + ETHER


async def test_a_refund_is_for_the_deposits_that_are_named_and_never_for_one_that_was_filled(gateway):
    deposit = await gateway.deposit(gateway.request("USDT", 5_000_000))
    assert await eventually(lambda: gateway.fill(deposit))
    gateway.network.relayer.behaviour = Behaviour.NEVER
    for units in (6_000_000, 7_000_000):
        await gateway.deposit(gateway.request("USDT", units))
    await gateway.network.pass_time(EXPIRED_S)
    filled, second, third = await gateway.side("one").deposits()
    with pytest.raises(NotExpiredError):
        await gateway.network.refund("one", [filled, second])
    (receipt,) = await gateway.network.refund("one", [second])
    assert await gateway.refunds(deposit) == [(receipt["transactionHash"], 6_000_000)]
    assert await gateway.network.refunds.due(gateway.side("one")) == [third]


async def test_a_fill_that_a_reorganization_undoes_is_made_again(gateway):
    deposit = await gateway.deposit(gateway.request("USDT", USDT_UNITS))
    first = await eventually(lambda: gateway.fill(deposit))
    there = gateway.side("two")
    gateway.network.relayer.behaviour = Behaviour.NEVER
    await there.node.call("anvil_reorg", [1, []])
    assert await gateway.fill(deposit) is None
    assert (await gateway.status(deposit)).state == "pending"
    gateway.network.relayer.behaviour = Behaviour.FILL
    again = await eventually(lambda: gateway.fill(deposit))
    assert again.units == first.units
    assert await there.balance(RECIPIENT, "USDT") == first.units


async def test_a_lie_that_a_deposit_is_filled_fills_nothing(gateway):
    gateway.network.relayer.behaviour = Behaviour.NEVER
    deposit = await gateway.deposit(gateway.request("USDT", USDT_UNITS))
    gateway.network.faults.add(Fault.SAYS_FILLED)
    status = await gateway.status(deposit)
    assert status.state == "filled"
    assert await gateway.chains["two"].receipt(status.tx_id) is None
    assert await gateway.fill(deposit) is None
    await gateway.network.pass_time(EXPIRED_S)
    await gateway.network.refund("one")
    assert (await gateway.status(deposit)).state == "filled"
    assert [units for _, units in await gateway.refunds(deposit)] == [USDT_UNITS]


@pytest.mark.parametrize(
    "fault, said",
    [(Fault.SAYS_EXPIRED, "expired"), (Fault.SAYS_REFUNDED, "refunded"), (Fault.NOT_FOUND, "pending")],
)
async def test_a_lie_that_a_deposit_is_not_filled_hides_no_fill(gateway, fault, said):
    gateway.network.faults.add(fault)
    deposit = await gateway.deposit(gateway.request("USDT", USDT_UNITS))
    fill = await eventually(lambda: gateway.fill(deposit))
    status = await gateway.status(deposit)
    assert status.state == said
    assert status.tx_id is None or await gateway.chains["one"].receipt(status.tx_id) is None
    assert await gateway.refunds(deposit) == []
    gateway.network.faults.clear()
    assert (await gateway.status(deposit)).tx_id == fill.tx_id


async def test_a_relayer_waits_for_a_node_that_is_away(gateway):
    gateway.network.relayer.behaviour = Behaviour.NEVER
    deposit = await gateway.deposit(gateway.request("USDT", USDT_UNITS))
    node = gateway.side("two").node
    url, node.url = node.url, "http://127.0.0.1:1"
    gateway.network.relayer.behaviour = Behaviour.FILL
    await asyncio.sleep(0.2)
    node.url = url
    assert await eventually(lambda: gateway.fill(deposit))


async def test_a_fill_waits_for_a_block_is_sent_once_and_again_where_the_node_forgot_it():
    async with network_of("--no-mining") as network, bridging(network) as gateway:
        there = gateway.side("two")
        deposit = await gateway.deposit(gateway.request("USDT", USDT_UNITS))

        async def waiting():
            return int((await there.node.call("txpool_status"))["pending"], 16)

        assert await eventually(waiting) == 1
        await there.node.call("anvil_dropAllTransactions")
        assert await eventually(waiting) == 1
        await asyncio.sleep(0.3)
        assert (await waiting(), await gateway.fill(deposit)) == (1, None)
        await there.node.call("evm_mine")
        assert (await gateway.fill(deposit)).units == deposit.units_out
        await asyncio.sleep(0.3)
        assert (await waiting(), network.relayer.refusals) == (0, {})


@pytest.mark.parametrize("symbol, units", [("USDT", USDT_UNITS), ("ETH", ETHER)])
async def test_bundles_are_mined_where_the_node_waits(symbol, units):
    async with network_of("--no-mining") as network, bridging(network) as gateway:
        network.relayer.behaviour = Behaviour.NEVER
        deposit = await gateway.deposit(gateway.request(symbol, units, origin="two", destination="one"))
        await network.pass_time(EXPIRED_S)
        (receipt,) = await network.refund("two")
        assert await gateway.refunds(deposit, origin="two") == [(receipt["transactionHash"], units)]
