"""Deposits that the plugin builds, in Across's own contracts: taken, filled, and paid back."""

from __future__ import annotations

import itertools
import time
from datetime import UTC, datetime
from random import Random

import pytest
from msgspec.structs import replace

from cambist.plugin import Call, ChainToken, ExchangeRequest, PluginContext, Units, UnreadablePayloadError
from cambist.testing.anvil import RpcRefusedError
from cambist.testing.contracts import load
from cambist_across_node.artifacts import pool
from cambist_across_node.deposits import word
from cambist_across_node.side import ETHER, QUOTE_AGE_S_MAX
from cambist_bridge_across.addresses import ZERO, spell
from cambist_bridge_across.codec import codec
from cambist_bridge_across.plugin import AcrossPlugin
from cambist_bridge_across.reader import AcrossReader
from cambist_chainkit.eip55 import keccak

from .samples import RELAYER, WALLET, side
from .spokepools import TwoChains, approve, at_once, go_back, logs, receipt_of, send, two_chains

RECIPIENT = spell("0x" + "c0ffee" + "00" * 16 + "07")


@pytest.fixture
async def network():
    async with two_chains() as found:
        yield found


@pytest.fixture
async def bridge(network: TwoChains):
    """Give the bridge, and a server whose time is the chains'."""
    context = PluginContext(
        now=lambda: datetime.now(UTC), monotonic=time.monotonic, random=Random(1), user_agent="cambist/tests"
    )
    async with AcrossPlugin().connect(network.config(integrator_id="0x00a1"), context) as (bridge,):
        yield bridge


def asked(network: TwoChains, symbol: str, units: int, recipient: str = RECIPIENT) -> ExchangeRequest:
    chains = network.chains
    sells, buys = (side(chains[name], symbol) for name in ("ethereum", "arbitrum"))
    assert isinstance(sells, ChainToken)
    return ExchangeRequest(
        sells=sells,
        buys=buys,
        units=Units(units),
        sender=WALLET,
        recipient=recipient,
        slippage_bps=50,
    )


async def deposited(network: TwoChains, bridge, request: ExchangeRequest):
    """Build a deposit, read it, send it, and return what the plugin says of its receipt."""
    call = await bridge.build(request, Units(1))
    reader = AcrossReader(network.config(integrator_id="0x00a1"))
    read = reader.read(network.chains["ethereum"], request.sender, call, network.chains)
    receipt = await send(network.origin, call)
    deposit = bridge.deposit(network.chains["ethereum"], receipt_of(receipt), network.chains)
    assert (deposit.units, deposit.units_out) == (read.sold, read.bought_min)
    assert (deposit.chain, deposit.contract, deposit.recipient) == (read.chain, read.bought_contract, read.recipient)
    assert (deposit.refund_to, deposit.fill_deadline) == (read.refund_to, read.valid_until)
    return deposit


async def found_fill(network: TwoChains, bridge, deposit):
    """Ask the other chain for the deposit's fill."""
    chains = network.chains
    last = int(await network.destination.node.call("eth_blockNumber"), 16)
    query = bridge.fill_query(chains["arbitrum"], deposit, chains["ethereum"], 0, last)
    found = await logs(network.destination, query)
    fills = [bridge.fill(chains["arbitrum"], deposit, chains["ethereum"], one) for one in found]
    return fills[0] if fills else None


async def test_tokens_are_deposited_filled_and_found(network, bridge):
    await approve(network.origin, 5_000_000)
    deposit = await deposited(network, bridge, asked(network, "USDT", 5_000_000))
    assert await network.origin.balance(network.origin.pool, "USDT") == 5_000_000
    assert await found_fill(network, bridge, deposit) is None
    filled = await network.fill(deposit.deposit_id)
    fill = await found_fill(network, bridge, deposit)
    assert (fill.tx_id, fill.units) == (filled["transactionHash"], deposit.units_out)
    assert await network.destination.balance(RECIPIENT, "USDT") == fill.units
    with pytest.raises(RpcRefusedError):
        await network.fill(deposit.deposit_id)


async def test_each_deposit_has_its_own_fill(network, bridge):
    await approve(network.origin, 10_000_000)
    first, second = [await deposited(network, bridge, asked(network, "USDT", 5_000_000)) for _ in range(2)]
    assert first.deposit_id != second.deposit_id
    await network.fill(second.deposit_id)
    assert await found_fill(network, bridge, first) is None
    assert (await found_fill(network, bridge, second)).units == second.units_out


DELEGATED = "0xef0100" + "5e" * 20
CONTRACT = "0x60006000f3"


@pytest.mark.parametrize("code, as_coin", [("0x", True), (DELEGATED, True), (CONTRACT, False)])
async def test_coin_is_deposited_and_comes_out_as_coin_unless_a_contract_gets_it(network, bridge, code, as_coin):
    there = network.destination
    await there.node.call("anvil_setCode", [RECIPIENT, code])
    deposit = await deposited(network, bridge, asked(network, "ETH", ETHER))
    assert deposit.contract is None
    assert await network.origin.balance(network.origin.pool, "WETH") == ETHER
    await network.fill(deposit.deposit_id)
    fill = await found_fill(network, bridge, deposit)
    got = await there.balance(RECIPIENT), await there.balance(RECIPIENT, "WETH")
    assert got == ((fill.units, 0) if as_coin else (0, fill.units))


async def test_a_call_that_is_an_hour_old_is_refused_by_the_contract(network, bridge):
    await approve(network.origin, 5_000_000)
    call = await bridge.build(asked(network, "USDT", 5_000_000), Units(1))
    await network.network.pass_time(QUOTE_AGE_S_MAX)
    with pytest.raises(RpcRefusedError):
        await send(network.origin, call)


FIELDS = {
    "depositor": [ZERO, RECIPIENT],
    "recipient": [ZERO, "wallet"],
    "input_token": [ZERO, "wrapped"],
    "output_token": [ZERO, "there_wrapped"],
    "input_amount": [0, 1, 5_000_001, 2**256 - 1],
    "output_amount": [0, 1, 2**256 - 1],
    "destination_chain_id": [0, 1, 10],
    "exclusive_relayer": [RECIPIENT],
    "quote_timestamp": [0, -4000, -3601, -3500, 30],
    "fill_deadline": [0, -8000, 14_000, 16_000, 2**31],
    "exclusivity": [60, 7300, 31_536_001],
    "message": [b"\x01", bytes(32)],
}
"""What stands in a field's place, alone and with each other one; times are added to the usual ones."""


async def test_what_the_reader_tells_of_a_deposit_the_contract_does_or_refuses(network, bridge):
    here, chains = network.origin, network.chains
    await approve(here, 10_000_000)
    built = await bridge.build(asked(network, "USDT", 5_000_000), Units(1))
    usual = codec().read_deposit_call(built.data.removesuffix(bytes.fromhex("1dc0de00a1")))
    named = {"wallet": WALLET, "wrapped": here.wrapped, "there_wrapped": network.destination.wrapped}
    reader = AcrossReader(network.config())
    done, unread = [], 0
    variants = [(name, value) for name, values in FIELDS.items() for value in values]
    for pair in [*((one,) for one in variants), *itertools.combinations(variants, 2)]:
        changes = {name: named.get(value, value) if isinstance(value, str) else value for name, value in pair}
        for name in ("quote_timestamp", "fill_deadline"):
            if changes.get(name):
                changes[name] += getattr(usual, name)
        for value in (0, 5_000_000):
            call = Call(to_address=here.pool, data=codec().deposit_call(replace(usual, **changes)), value=Units(value))
            try:
                told = reader.read(chains["ethereum"], WALLET, call, chains)
            except UnreadablePayloadError:
                unread += 1
                continue
            state = await here.node.call("evm_snapshot")
            before = await here.balance(WALLET, "USDT")
            try:
                deposit = bridge.deposit(chains["ethereum"], receipt_of(await send(here, call)), chains)
            except RpcRefusedError:
                continue
            taken = before - await here.balance(WALLET, "USDT")
            assert taken == (told.sold if told.sold_contract else 0)
            assert (deposit.units, deposit.units_out) == (told.sold, told.bought_min)
            assert (deposit.chain, deposit.contract) == (told.chain, told.bought_contract)
            assert deposit.recipient == told.recipient
            assert (deposit.refund_to, deposit.fill_deadline) == (told.refund_to, told.valid_until)
            done.append(changes)
            await go_back(here, state)
    assert len(done) > 10
    assert unread > 50


async def test_what_is_not_filled_comes_back_in_one_transfer_and_coin_comes_back_wrapped(network, bridge):
    here = network.origin
    deposits = [await deposited(network, bridge, asked(network, "ETH", units * ETHER)) for units in (1, 2)]
    coin, wrapped = await here.balance(WALLET), await here.balance(WALLET, "WETH")
    owed = sum(deposit.units for deposit in deposits)
    receipt = receipt_of(await here.pay(here.wrapped, [WALLET], [owed]))
    assert (await here.balance(WALLET), await here.balance(WALLET, "WETH")) == (coin, wrapped + owed)
    assert bridge.deposit(network.chains["ethereum"], receipt, network.chains) is None
    for deposit in deposits:
        assert deposit.refund_contract == here.wrapped
        assert await found_refunds(network, bridge, deposit) == [(receipt.tx_id, owed)]


async def found_refunds(network: TwoChains, bridge, deposit):
    """Ask the deposit's own chain for what was refunded to its depositor: in which transaction, and how much."""
    here, info = network.origin, network.chains["ethereum"]
    last = int(await here.node.call("eth_blockNumber"), 16)
    found = await logs(here, bridge.refund_query(info, deposit, 0, last))
    told = {one.tx_id: await here.node.call("eth_getTransactionReceipt", [one.tx_id]) for one in found}
    return [(tx_id, bridge.refund(info, deposit, receipt_of(one))) for tx_id, one in told.items()]


async def test_a_token_comes_back_as_it_is_among_others_repayments(network, bridge):
    here = network.origin
    token, before = here.tokens["USDT"].address, await here.balance(WALLET, "USDT")
    await approve(here, 5_000_000)
    await here.mint("USDT", here.pool, 100)
    deposit = await deposited(network, bridge, asked(network, "USDT", 5_000_000))
    assert await found_refunds(network, bridge, deposit) == []
    # Somebody else's refund is not found, and tells nothing of ours.
    other = receipt_of(await here.pay(token, [RELAYER], [40]))
    assert bridge.refund(network.chains["ethereum"], deposit, other) is None
    receipt = receipt_of(await here.pay(token, [RELAYER, WALLET], [60, 5_000_000]))
    assert await found_refunds(network, bridge, deposit) == [(receipt.tx_id, 5_000_000)]
    assert await here.balance(WALLET, "USDT") == before
    assert bridge.refund(network.chains["ethereum"], replace(deposit, refund_to=RELAYER), receipt) == 60


async def test_a_slow_fill_is_no_refund_and_hides_none(network, bridge):
    here = network.origin
    token, before = here.tokens["USDT"].address, await here.balance(WALLET, "USDT")
    await approve(here, 5_000_000)
    await here.mint("USDT", here.pool, 5_000_000)
    deposit = await deposited(network, bridge, asked(network, "USDT", 5_000_000))
    filling = await network.slow_filling(token, deposit.fill_deadline)
    filled = await here.send(here.owner, here.pool, filling)
    assert await found_refunds(network, bridge, deposit) == [(filled["transactionHash"], None)]
    filling = await network.slow_filling(token, deposit.fill_deadline, number=2)
    await at_once(here, filling, await here.refunding(token, [WALLET], [600]))
    assert await here.balance(WALLET, "USDT") == before - 5_000_000 + 1800
    assert [units for _, units in await found_refunds(network, bridge, deposit)] == [None, 600]


async def test_a_slow_fill_of_coin_beside_a_refund_hides_none(network, bridge):
    here = network.origin
    await here.mint("WETH", here.pool, ETHER)
    deposit = await deposited(network, bridge, asked(network, "ETH", ETHER))
    before = await here.balance(WALLET), await here.balance(WALLET, "WETH")
    filling = await network.slow_filling(here.wrapped, deposit.fill_deadline)
    await at_once(here, filling, await here.refunding(here.wrapped, [WALLET], [ETHER]))
    after = await here.balance(WALLET), await here.balance(WALLET, "WETH")
    assert after == (before[0] + 600, before[1] + ETHER)
    assert [units for _, units in await found_refunds(network, bridge, deposit)] == [ETHER]


async def test_a_refund_that_the_token_refuses_is_none(network, bridge):
    here = network.origin
    await approve(here, 5_000_000)
    deposit = await deposited(network, bridge, asked(network, "USDT", 5_000_000))
    picky, token = load("PickyToken"), await here.create(load("PickyToken").creation_code())
    await here.send(here.owner, token, picky.call_data("mint", here.pool, 1000))
    await here.send(here.owner, token, picky.call_data("refuse", WALLET))
    of_it = replace(deposit, refund_contract=token)
    receipt = receipt_of(await here.pay(token, [RELAYER, WALLET], [1, 999]))
    assert bridge.refund(network.chains["ethereum"], of_it, receipt) is None
    assert bridge.refund(network.chains["ethereum"], replace(of_it, refund_to=RELAYER), receipt) == 1
    # Its issuer thinks better of it, and the depositor fetches what is owed.
    await here.node.call("anvil_setStorageAt", [token, _place_of_refusal(WALLET), "0x" + "00" * 32])
    await here.send(WALLET, here.pool, pool().call_data("claimRelayerRefund", word(token), word(WALLET)))
    assert [units for _, units in await found_refunds(network, bridge, of_it)] == [999]


def _place_of_refusal(account: str) -> str:
    """Return where the token stores whether it refuses somebody: its third variable."""
    return "0x" + keccak(word(account) + (2).to_bytes(32, "big")).hex()
