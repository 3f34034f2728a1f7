"""Quotes and calls from a server that means well, and from one that does not."""

from __future__ import annotations

from fractions import Fraction

import pytest

from cambist.plugin import ChainToken, ExchangeRefusedError, ProviderUnavailableError, Quote
from cambist_swap_1inch.config import ChainConfig

from .conftest import ETHEREUM, RECIPIENT, SENDER, STRANGER, USDC, USDT, chain, config, connected, request
from .server import NATIVE, ROUTER, calldata, recorded


def query(server, at=-1):
    return dict(server.requests[at].query)


def pair(sells, buys, on=ETHEREUM, other=None):
    return ChainToken(chain=on, token=on.token(sells)), ChainToken(chain=other or on, token=on.token(buys))


async def test_it_may_be_asked_about_pairs_of_a_chain_with_a_router(swaps):
    assert swaps.supports(*pair("USDT", "USDC"))
    assert swaps.supports(*pair("ETH", "USDC"))
    assert swaps.supports(*pair("USDC", "ETH"))
    assert not swaps.supports(*pair("USDT", "USDT"))
    assert not swaps.supports(*pair("USDT", "USDC", other=chain("base", 8453)))
    assert not swaps.supports(*pair("USDT", "USDC", chain("gnosis", 100)))
    assert not swaps.supports(*pair("USDT", "USDC", chain("tron", None, is_evm=False)))


async def test_a_chain_that_the_operator_adds_can_be_asked_about(clock, server):
    gnosis = chain("gnosis", 100)
    async with connected(clock, config(server, chains={"gnosis": ChainConfig(router=STRANGER)})) as swaps:
        assert swaps.supports(*pair("USDT", "USDC", gnosis))
        server.change = lambda _, tx: tx.update(to=STRANGER)
        call = await swaps.build(request(on=gnosis), 4_900_000)
    assert call.to_address == STRANGER
    assert server.requests[0].path == "/swap/v6.1/100/swap"


async def test_a_quote_tells_the_output_and_the_least_of_it_rounded_down(swaps, server):
    server.rate = Fraction(1_000_001, 5_000_000)
    assert await swaps.quote(request(slippage_bps=33)) == Quote(units=1_000_001, units_min=996_700)
    assert server.requests[0].path == "/swap/v6.1/1/quote"
    assert query(server) == {"src": USDT.contract, "dst": USDC.contract, "amount": "5000000"}
    assert server.requests[0].headers["User-Agent"] == "cambist/tests"


async def test_a_recorded_answer_is_a_quote(swaps, server):
    server.answer_with = lambda answer: answer.update(recorded("komodo_v6_0_quote.json")["response"])
    assert (await swaps.quote(request("ETH", "USDT"))).units == 13
    assert query(server)["src"].lower() == NATIVE
    server.answer_with = lambda answer: answer.update(
        recorded("openapi_examples_v6_1.json")["examples"]["QuoteResponse"]
    )
    assert (await swaps.quote(request("LINK", "USDT"))).units == 62131879850006790961


async def test_a_quote_is_after_the_platforms_fee(swaps, server):
    quote = await swaps.quote(request(fee_bps=125, fee_recipient=STRANGER))
    assert query(server)["fee"] == "1.25"
    assert quote.units == 4_888_125


async def test_a_quote_is_asked_for_again_only_when_it_has_grown_old(clock, swaps, server):
    for _ in range(3):
        await swaps.quote(request())
        await swaps.quote(request(slippage_bps=100))
    assert len(server.requests) == 1
    await swaps.quote(request(units=5_000_001))
    await swaps.quote(request(fee_bps=1, fee_recipient=STRANGER))
    await swaps.quote(request("USDC", "USDT"))
    assert len(server.requests) == 4
    clock.advance(4.9)
    await swaps.quote(request())
    assert len(server.requests) == 4
    clock.advance(0.1)
    await swaps.quote(request())
    assert len(server.requests) == 5


async def test_quotes_that_are_kept_are_bounded(monkeypatch, clock, server):
    monkeypatch.setattr("cambist_swap_1inch.provider.QUOTES_KEPT_MAX", 2)
    async with connected(clock, config(server)) as swaps:
        for units in (1, 2, 3, 1, 3):
            await swaps.quote(request(units=units * 10**6))
    assert len(server.requests) == 4


async def test_a_call_is_built_for_exactly_what_is_asked(swaps, server):
    call = await swaps.build(request(), 4_925_250)
    assert call.to_address == ROUTER
    assert call.value == 0
    assert call.data == calldata(USDT.contract, USDC.contract, RECIPIENT, 5_000_000, 4_925_250)
    assert server.requests[0].path == "/swap/v6.1/1/swap"
    assert query(server) == {
        "src": USDT.contract,
        "dst": USDC.contract,
        "amount": "5000000",
        "from": SENDER,
        "origin": SENDER,
        "receiver": RECIPIENT,
        "slippage": "0.50",
        "disableEstimate": "true",
        "allowPartialFill": "false",
        "usePermit2": "false",
        "compatibility": "true",
    }


async def test_native_coin_goes_along(swaps):
    assert (await swaps.build(request("ETH", "USDC"), 4_925_250)).value == 5_000_000
    assert (await swaps.build(request("USDC", "ETH"), 4_925_250)).value == 0


async def test_a_fee_goes_to_its_recipient(swaps, server):
    await swaps.build(request(fee_bps=30, fee_recipient=STRANGER), 4_900_000)
    assert (query(server)["fee"], query(server)["referrer"]) == ("0.30", STRANGER)


async def test_version_6_0_is_asked_for_what_it_knows(clock, server):
    async with connected(clock, config(server, version="6.0")) as swaps:
        await swaps.build(request(), 4_900_000)
    assert server.requests[0].path == "/swap/v6.0/1/swap"
    assert "compatibility" not in query(server)


async def test_where_the_price_has_moved_a_little_less_slippage_keeps_the_promise(swaps, server):
    server.rate = Fraction(987, 1000)  # 0.99 when it was quoted
    call = await swaps.build(request(slippage_bps=100), 4_900_500)
    assert [query(server, at)["slippage"] for at in range(2)] == ["1.00", "0.69"]
    assert call.data == calldata(USDT.contract, USDC.contract, RECIPIENT, 5_000_000, 4_900_948)


async def test_what_the_server_rounds_badly_is_asked_for_with_less_slippage(swaps, server):
    server.change = lambda arguments, _: arguments.update(amount_min=arguments["amount_min"] - 3)
    call = await swaps.build(request(), 4_925_250)
    assert query(server)["slippage"] == "0.49"
    assert call.data == calldata(USDT.contract, USDC.contract, RECIPIENT, 5_000_000, 4_925_742)


async def test_where_the_price_has_moved_too_far_nothing_is_built(swaps, server):
    with pytest.raises(ExchangeRefusedError) as refused:
        await swaps.build(request(), 4_950_001)
    assert refused.value.reason == "price_moved"
    assert len(server.requests) == 1


async def test_a_price_that_falls_all_the_time_is_not_followed_for_ever(swaps, server):
    server.moves = Fraction(9995, 10000)
    with pytest.raises(ExchangeRefusedError) as refused:
        await swaps.build(request(), 4_949_999)
    assert refused.value.reason == "price_moved"
    assert len(server.requests) <= 3


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"buys": "USDT"}, "unsupported"),
        ({"on": chain("gnosis", 100)}, "unsupported"),
        ({"units": 0}, "amount_too_low"),
        ({"units": 2**256}, "amount_too_high"),
        ({"slippage_bps": 5001}, "refused"),
        ({"slippage_bps": -1}, "refused"),
        ({"fee_bps": 301, "fee_recipient": STRANGER}, "refused"),
        ({"fee_bps": 10}, "refused"),
    ],
)
async def test_what_cannot_be_is_refused_without_asking(swaps, server, changes, reason):
    for ask in (swaps.quote(request(**changes)), swaps.build(request(**changes), 1)):
        with pytest.raises(ExchangeRefusedError) as refused:
            await ask
        assert refused.value.reason == reason
    assert server.requests == []


async def test_a_quote_of_nothing_is_a_refusal(swaps, server):
    server.rate = Fraction(0)
    with pytest.raises(ExchangeRefusedError) as refused:
        await swaps.quote(request())
    assert refused.value.reason == "no_liquidity"


def arguments(**changes):
    return lambda built, _: built.update(changes)


def transaction(**changes):
    return lambda _, tx: tx.update(changes)


def unoswap(_, tx):
    tx["data"] = "0x83800a8e" + "00" * 128


LIES = {
    "another router": (transaction(to=STRANGER), "not the pinned router"),
    "the token instead of the router": (transaction(to=USDT.contract), "not the pinned router"),
    "another recipient": (arguments(receiver=STRANGER), "another recipient"),
    "the sender as recipient": (arguments(receiver="0x" + "0" * 40), "another recipient"),
    "more than asked": (arguments(amount=5_000_001), "another sold than"),
    "less than asked": (arguments(amount=4_999_999), "another sold than"),
    "all there is": (arguments(amount=2**256 - 1), "another sold than"),
    "another token": (arguments(src=USDC.contract, dst=USDT.contract), "another sold_contract and bought_contract"),
    "another destination token": (arguments(dst=ETHEREUM.tokens[3].contract), "another bought_contract"),
    "native coin instead": (arguments(dst=NATIVE), "another bought_contract"),
    "a destination that nobody knows": (arguments(dst=STRANGER), "no registered token"),
    "an output of 1": (arguments(amount_min=1), "guarantees less"),
    "no output": (arguments(amount_min=0), "no least output"),
    "a partial fill": (arguments(flags=1), "partial fill"),
    "extra native coin": (arguments(flags=2), "more native coin"),
    "Permit2": (arguments(flags=4), "Permit2"),
    "native coin that nobody asked for": (transaction(value="1"), "value"),
    "another sender": (transaction(**{"from": STRANGER}), "another sender"),
    "a function that cannot be read": (unoswap, "83800a8e"),
    "no function": (transaction(data="0x07"), "is not sent"),
    "a longer tail": (arguments(tail=bytes(36)), "canonical"),
}


@pytest.mark.parametrize("lie", LIES)
async def test_no_call_is_returned_that_differs_from_what_was_asked(swaps, server, lie):
    server.change, words = LIES[lie]
    with pytest.raises(ProviderUnavailableError, match=words):
        await swaps.build(request(), 4_900_000)


@pytest.mark.parametrize("value", ["0", "4999999", "5000001", str(2**256 - 1)])
async def test_no_call_is_returned_whose_value_is_not_the_native_coin_that_is_sold(swaps, server, value):
    server.change = transaction(value=value)
    with pytest.raises(ProviderUnavailableError, match="value"):
        await swaps.build(request("ETH", "USDC"), 4_900_000)


async def test_an_output_that_is_claimed_and_not_guaranteed_helps_nobody(swaps, server):
    server.answer_with = lambda answer: answer.update(dstAmount=str(2**255))
    with pytest.raises(ProviderUnavailableError, match="guarantees less"):
        await swaps.build(request(), 4_980_000)


async def test_an_old_answer_is_found_out(swaps, server):
    """The server gives what it built for somebody before."""
    server.answer_with = lambda answer: server.__dict__.setdefault("old", dict(answer))
    await swaps.build(request(), 4_900_000)
    server.answer_with = lambda answer: answer.update(server.old)
    with pytest.raises(ProviderUnavailableError, match="another sold and recipient"):
        await swaps.build(request(units=4_000_000, recipient=STRANGER), 3_900_000)
