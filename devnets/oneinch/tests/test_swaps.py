"""The plugin quotes and builds at the local 1inch, and what it built does on the chain what it was read to do."""

from __future__ import annotations

import pytest
from web3 import Web3

from cambist.plugin import ExchangeEffects, ExchangeRefusedError
from cambist.testing.anvil import AnvilProcess
from cambist.testing.contracts import load
from cambist_oneinch_node import STRANGER, LocalOneInch
from cambist_oneinch_node.amm import OWNER, Pool
from cambist_oneinch_node.calls import NATIVE, ZERO, SwapCall, plan

from .conftest import COIN, connected

SWAPS = [
    ("USDT", "USDC", 1_000 * 10**6),
    ("USDC", "LINK", 1_000 * 10**6),
    ("LINK", "ETH", 50 * 10**18),
    ("ETH", "USDT", COIN),
]
NOT_ENOUGH = "0x064a4ec6"


def trade(chain, oneinch, symbol, units):
    """Have somebody else sell so much of a token for coin."""
    path = [chain.address(symbol), oneinch.amm.weth]
    call = honest(chain, oneinch, symbol, "ETH", units, plan(path, buys_coin=True, referrer=None, fee=0))
    chain.approve(symbol, oneinch.router, units, chain.trader)
    assert chain.send(chain.trader, call.router, call.data)["status"] == 1


def honest(chain, oneinch, sells, buys, units, told, **other):
    return SwapCall(
        **{
            "router": oneinch.router,
            "executor": oneinch.amm.executor,
            "src": chain.address(sells),
            "dst": chain.address(buys),
            "receiver": ZERO,
            "amount": units,
            "amount_min": 1,
            "plan": told,
        }
        | other
    )


@pytest.mark.parametrize("version", ["6.0", "6.1"])
@pytest.mark.parametrize("sells, buys, units", SWAPS)
async def test_a_swap_takes_what_is_sold_and_gives_the_recipient_what_was_quoted(
    chain, oneinch, version, sells, buys, units
):
    async with connected(oneinch, chain, version=version) as gateway:
        request = gateway.request(sells, buys, units)
        quote = await gateway.provider.quote(request)
        call = await gateway.provider.build(request, quote.units_min)
    sold, bought = (chain.tokens[symbol].contract for symbol in (sells, buys))
    assert gateway.read(call) == ExchangeEffects(
        sold_contract=sold, sold=units, spender=sold and oneinch.router, chain="local", bought_contract=bought,
        bought_min=quote.units_min, recipient=chain.customer,
    )  # fmt: skip
    if sold:
        chain.approve(sells, oneinch.router, units)
    had = chain.balance(sells, chain.wallet), chain.balance(buys, chain.customer)
    receipt = chain.send(chain.wallet, call.to_address, call.data, call.value)
    assert receipt["status"] == 1
    gas = 0 if sold else receipt["gasUsed"] * receipt["effectiveGasPrice"]
    assert had[0] - chain.balance(sells, chain.wallet) == units + gas
    assert chain.balance(buys, chain.customer) - had[1] == quote.units > quote.units_min
    assert sold is None or chain.allowance(sells, oneinch.router) == 0


async def test_nothing_stays_with_the_router_and_its_executor(chain, oneinch, gateway):
    for sells, buys, units in SWAPS:
        request = gateway.request(sells, buys, units, fee_bps=30, fee_recipient=chain.referrer)
        quote = await gateway.provider.quote(request)
        call = await gateway.provider.build(request, quote.units_min)
        if sells != "ETH":
            chain.approve(sells, oneinch.router, units)
        assert chain.send(chain.wallet, call.to_address, call.data, call.value)["status"] == 1
    for contract in (oneinch.router, oneinch.amm.executor):
        assert [chain.balance(symbol, contract) for symbol in ("ETH", "USDT", "USDC", "LINK")] == [0, 0, 0, 0]


async def test_the_better_way_is_taken_where_there_are_two(chain, oneinch, gateway):
    before = await oneinch.amm.best(chain.address("USDT"), chain.address("USDC"), 10**6)
    assert before.path == (chain.address("USDT"), chain.address("USDC"))
    # USDC gets scarce in the direct pool.
    direct = [chain.address("USDT"), chain.address("USDC")]
    units = 500_000 * 10**6
    call = honest(chain, oneinch, "USDT", "USDC", units, plan(direct, buys_coin=False, referrer=None, fee=0))
    chain.approve("USDT", oneinch.router, units, chain.trader)
    assert chain.send(chain.trader, call.router, call.data)["status"] == 1
    after = await oneinch.amm.best(chain.address("USDT"), chain.address("USDC"), 10**6)
    assert after.path == (chain.address("USDT"), oneinch.amm.weth, chain.address("USDC"))


@pytest.mark.parametrize("sells, buys, units", SWAPS)
async def test_the_referrer_gets_its_share_of_what_is_sold_and_the_recipient_the_rest(
    chain, oneinch, gateway, sells, buys, units
):
    whole = await gateway.provider.quote(gateway.request(sells, buys, units))
    request = gateway.request(sells, buys, units, fee_bps=150, fee_recipient=chain.referrer)
    quote = await gateway.provider.quote(request)
    assert 0.984 < quote.units / whole.units < 0.9855
    call = await gateway.provider.build(request, quote.units_min)
    if sells != "ETH":
        chain.approve(sells, oneinch.router, units)
    had = chain.balance(sells, chain.referrer), chain.balance(buys, chain.customer)
    assert chain.send(chain.wallet, call.to_address, call.data, call.value)["status"] == 1
    assert chain.balance(sells, chain.referrer) - had[0] == units * 150 // 10_000
    assert chain.balance(buys, chain.customer) - had[1] == quote.units


async def test_a_price_that_moved_too_far_reverts_and_takes_nothing(chain, oneinch, gateway):
    request = gateway.request("LINK", "USDT", 100 * 10**18)
    quote = await gateway.provider.quote(request)
    call = await gateway.provider.build(request, quote.units_min)
    chain.approve("LINK", oneinch.router, request.units)
    trade(chain, oneinch, "LINK", 1_000 * 10**18)
    assert chain.error(chain.wallet, call.to_address, call.data) == NOT_ENOUGH
    had = chain.balance("LINK", chain.wallet)
    assert chain.send(chain.wallet, call.to_address, call.data)["status"] == 0
    assert chain.balance("LINK", chain.wallet) == had
    assert chain.allowance("LINK", oneinch.router) == request.units
    with pytest.raises(ExchangeRefusedError, match="not give as much") as refused:
        await gateway.provider.build(request, quote.units_min)
    assert refused.value.reason == "price_moved"


async def test_a_price_that_moved_a_little_still_guarantees_what_was_quoted(chain, oneinch, gateway):
    request = gateway.request("LINK", "USDT", 100 * 10**18)
    quote = await gateway.provider.quote(request)
    trade(chain, oneinch, "LINK", 100 * 10**18)
    call = await gateway.provider.build(request, quote.units_min)
    assert gateway.read(call).bought_min >= quote.units_min
    chain.approve("LINK", oneinch.router, request.units)
    assert chain.send(chain.wallet, call.to_address, call.data)["status"] == 1
    assert quote.units_min <= chain.balance("USDT", chain.customer) < quote.units


async def test_a_token_that_keeps_a_fee_gives_the_recipient_less_than_the_router_guarantees(chain, oneinch, gateway):
    request = gateway.request("ETH", "SKIM", COIN, slippage_bps=150)
    quote = await gateway.provider.quote(request)
    call = await gateway.provider.build(request, quote.units_min)
    assert chain.send(chain.wallet, call.to_address, call.data, call.value)["status"] == 1
    # Once it went from the pool to the router, and once from there.
    assert 0.979 < chain.balance("SKIM", chain.customer) / quote.units < 0.981
    assert chain.balance("SKIM", chain.customer) < quote.units_min


async def test_a_token_that_keeps_a_fee_can_be_sold_within_the_slippage(chain, oneinch, gateway):
    request = gateway.request("SKIM", "USDC", 1_000 * 10**6, slippage_bps=300)
    quote = await gateway.provider.quote(request)
    call = await gateway.provider.build(request, quote.units_min)
    chain.approve("SKIM", oneinch.router, request.units)
    assert chain.send(chain.wallet, call.to_address, call.data)["status"] == 1
    assert quote.units_min <= chain.balance("USDC", chain.customer) < quote.units


async def test_a_zero_recipient_is_the_caller(chain, oneinch):
    told = plan([oneinch.amm.weth, chain.address("LINK")], buys_coin=False, referrer=None, fee=0)
    call = honest(chain, oneinch, "ETH", "LINK", COIN, told)
    had = chain.balance("LINK", chain.wallet)
    assert chain.send(chain.wallet, call.router, call.data, COIN)["status"] == 1
    assert chain.balance("LINK", chain.wallet) > had


@pytest.mark.parametrize(
    "changed, value, error",
    [
        ({"amount_min": 0}, COIN, "0x0262dde4"),
        ({}, COIN - 1, "0x1841b4e1"),
        ({"amount_min": 10**30}, COIN, NOT_ENOUGH),
        ({"src": "token"}, 0, "0xf4059071"),
        ({"src": "token"}, 1, "0x1841b4e1"),
    ],
    ids=[
        "no least output",
        "less value",
        "too little comes out",
        "no allowance",
        "value for a token",
    ],
)
async def test_the_router_refuses_with_the_errors_of_v6(chain, oneinch, changed, value, error):
    link = chain.address("LINK")
    changed = {name: link if told == "token" else told for name, told in changed.items()}
    told = plan([oneinch.amm.weth, link], buys_coin=False, referrer=None, fee=0)
    call = honest(chain, oneinch, "ETH", "LINK", COIN, told, **changed)
    assert chain.error(chain.wallet, call.router, call.data, value) == error


@pytest.mark.parametrize("sells, buys, error", [("ETH", "LINK", "0xfb7f5079"), ("LINK", "ETH", "0xf4d678b8")])
async def test_an_executor_that_only_says_it_gave_enough_takes_nothing(chain, oneinch, sells, buys, error):
    # Returns 10**18, whatever it is called with.
    code = "0x67" + COIN.to_bytes(8).hex() + "60005260206000f3"
    chain.web3.provider.make_request("anvil_setCode", [STRANGER, code])
    chain.approve("LINK", oneinch.router, COIN)
    call = honest(chain, oneinch, sells, buys, COIN, b"", executor=STRANGER, amount_min=COIN)
    had = chain.balance("LINK", chain.wallet)
    assert chain.error(chain.wallet, call.router, call.data, call.value) == error
    assert chain.send(chain.wallet, call.router, call.data, call.value)["status"] == 0
    assert (chain.balance("LINK", chain.wallet), chain.balance("ETH", STRANGER)) == (had, 0)


async def test_coin_for_a_contract_that_takes_none_reverts(chain, oneinch):
    link = chain.address("LINK")
    chain.approve("LINK", oneinch.router, COIN)
    told = plan([link, oneinch.amm.weth], buys_coin=True, referrer=None, fee=0)
    call = honest(chain, oneinch, "LINK", "ETH", COIN, told, receiver=link)
    assert chain.error(chain.wallet, call.router, call.data) == "0xb12d13eb"


async def test_the_router_keeps_no_coin_that_is_sent_to_it(chain, oneinch):
    assert chain.send(chain.wallet, oneinch.router, b"", COIN)["status"] == 0


async def test_flags_are_refused_instead_of_passed_over(chain, oneinch):
    told = plan([oneinch.amm.weth, chain.address("LINK")], buys_coin=False, referrer=None, fee=0)
    for flags in (1, 2, 4, 8):
        call = honest(chain, oneinch, "ETH", "LINK", COIN, told, flags=flags)
        assert chain.send(chain.wallet, call.router, call.data, COIN)["status"] == 0


async def test_a_node_that_mines_only_when_it_is_told_to_will_do():
    async with AnvilProcess(["--no-mining"]) as anvil:
        token = load("TestToken")
        sent = {"from": (await anvil.call("eth_accounts"))[0], "data": "0x" + token.creation_code("USDT", 6).hex()}
        tx_id = await anvil.call("eth_sendTransaction", [sent])
        await anvil.call("anvil_mine")
        address = (await anvil.call("eth_getTransactionReceipt", [tx_id]))["contractAddress"]
        pool = Pool(token=Web3.to_checksum_address(address), units=2_000 * 10**6, other_units=COIN)
        async with LocalOneInch(anvil.url, [pool]) as oneinch:
            route = await oneinch.amm.best(NATIVE, pool.token, 10**15)
            assert route.units == 1_992_013


async def test_a_pool_can_be_added_while_it_runs(chain, oneinch, gateway):
    request = gateway.request("LONE", "USDC", 10**18)
    with pytest.raises(ExchangeRefusedError) as refused:
        await gateway.provider.quote(request)
    assert refused.value.reason == "no_liquidity"
    await oneinch.add_pool(Pool(token=chain.address("LONE"), units=10**21, other_units=COIN))
    assert (await gateway.provider.quote(request)).units > 0
    assert chain.balance("LONE", OWNER) == 0
