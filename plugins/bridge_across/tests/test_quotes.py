"""Quotes and deposits' calls, from a server that answers as Across does, or as it should not."""

from __future__ import annotations

import copy
import gzip
import itertools
import json
from typing import Any

import pytest

from cambist.plugin import ExchangeRefusedError, ProviderFee, ProviderUnavailableError, Units
from cambist.testing.mutations import HOSTILE as HOSTILE_VALUES
from cambist_bridge_across.addresses import ZERO
from cambist_bridge_across.codec import codec
from cambist_bridge_across.config import ChainTable
from cambist_bridge_across.reader import FILL_S_MAX

from .samples import (
    ARBITRUM,
    BSC,
    CHAINS,
    ETHER,
    ETHEREUM,
    RELAYER,
    STRANGER,
    TRON,
    USDT,
    WALLET,
    chain,
    connected,
    events,
    reader,
    recorded,
    request,
    side,
    spoke_pool,
    wrapped,
)

TO_BSC = request(side(ETHEREUM, "USDT"), side(BSC, "USDT"))
FROM_BSC = request(side(BSC, "USDT"), side(ETHEREUM, "USDT"), 100 * 10**18 + 7)


async def test_a_quote_tells_the_output_the_fees_and_the_deadline(bridge, server):
    quote = await bridge.quote(USDT)
    assert (quote.units, quote.units_min) == (99_965_000, 99_465_175)
    assert quote.fees == (
        ProviderFee(name="relayer_capital", units=Units(10_000)),
        ProviderFee(name="relayer_gas", units=Units(20_000)),
        ProviderFee(name="lp", units=Units(5_000)),
    )
    assert (quote.fill_deadline, quote.fill_s) == (server.now + 7200, 4)
    (asked,) = server.requests
    assert dict(asked.query) == {
        "originChainId": "1",
        "destinationChainId": "42161",
        "inputToken": USDT.sells.token.contract,
        "outputToken": USDT.buys.token.contract,
        "amount": "100000000",
        "recipient": WALLET,
    }
    assert "Authorization" not in asked.headers


async def test_coin_is_asked_for_as_the_token_that_wraps_it(bridge, server):
    quote = await bridge.quote(ETHER)
    assert quote.units == 10**17 * 999_650 // 10**6
    assert server.requests[0].query["inputToken"] == wrapped(ARBITRUM)
    assert server.requests[0].query["outputToken"] == wrapped(ETHEREUM)


@pytest.mark.parametrize("asked", [TO_BSC, FROM_BSC], ids=["to", "from"])
async def test_decimals_may_differ(bridge, asked):
    quote = await bridge.quote(asked)
    assert quote.units // 10 ** (asked.buys.token.decimals - 2) == 9996
    assert [fee.name for fee in quote.fees] == ["relayer_capital", "relayer_gas", "lp"]
    built = await bridge.build(asked, quote.units_min)
    told = reader().read(asked.sells.chain, WALLET, built, CHAINS)
    assert (told.sold, told.bought_min) == (asked.units, quote.units)


async def test_key_and_integrator_are_told_to_the_server_and_the_tail_is_in_the_call(server, clock):
    async with connected(clock, base_url=server.base_url + "/", key="s3cret", integrator_id="0x00a1") as bridge:
        built = await bridge.build(USDT, Units(1))
    assert server.requests[0].headers["Authorization"] == "Bearer s3cret"
    assert server.requests[0].query["integratorId"] == "0x00a1"
    assert built.data.endswith(bytes.fromhex("1dc0de00a1"))
    assert reader(integrator_id="0x00a1").read(ETHEREUM, WALLET, built, CHAINS).bought_min == 99_965_000


@pytest.mark.parametrize("asked", [USDT, ETHER], ids=["token", "coin"])
async def test_what_is_built_reads_as_it_was_asked_for(bridge, server, asked):
    built = await bridge.build(asked, Units(1))
    told = reader().read(asked.sells.chain, WALLET, built, CHAINS)
    assert (told.sold_contract, told.sold) == (asked.sells.token.contract, asked.units)
    assert (told.chain, told.bought_contract) == (asked.buys.chain.id, asked.buys.token.contract)
    assert (told.recipient, told.refund_to) == (WALLET, WALLET)
    assert told.valid_until == server.now + 7200
    assert built.value == (asked.units if asked.sells.token.is_native else 0)


async def test_the_money_goes_to_the_recipient_and_back_to_the_sender(bridge):
    built = await bridge.build(request(USDT.sells, USDT.buys, recipient=STRANGER), Units(1))
    told = reader().read(ETHEREUM, WALLET, built, CHAINS)
    assert (told.recipient, told.refund_to) == (STRANGER, WALLET)


async def test_less_than_was_promised_is_not_built(bridge):
    assert await bridge.build(USDT, Units(99_965_000))
    with pytest.raises(ExchangeRefusedError) as refused:
        await bridge.build(USDT, Units(99_965_001))
    assert refused.value.reason == "price_moved"


async def test_exclusivity_is_as_the_server_says_where_it_is_sane(bridge, server):
    for said, told in ((60, 60), ("90", 90), (str(server.now + 600), server.now + 600), (None, 0), (0, 0)):
        server.changes = {"exclusiveRelayer": RELAYER, "exclusivityDeadline": said}
        deposit = codec().read_deposit_call((await bridge.build(USDT, Units(1))).data)
        assert deposit.exclusivity == told
        assert deposit.exclusive_relayer == (RELAYER.lower() if told else ZERO)


async def test_fees_that_do_not_come_to_what_is_kept_are_told_as_one(bridge, server):
    for fee in ("0", "-5", "99999999"):
        server.changes = {"lpFee": {"pct": "0", "total": fee}}
        quote = await bridge.quote(USDT)
        assert quote.fees == (ProviderFee(name="total", units=Units(35_000)),)


async def test_amounts_beyond_the_limits_are_refused_with_the_limit(bridge, server):
    for units, reason, bound in (
        (999, "amount_too_low", "at least 0.001 USDT"),
        (2 * 10**24, "amount_too_high", "at most"),
    ):
        with pytest.raises(ExchangeRefusedError, match=bound) as refused:
            await bridge.quote(request(USDT.sells, USDT.buys, units))
        assert refused.value.reason == reason
    server.changes = {"isAmountTooLow": True}
    with pytest.raises(ExchangeRefusedError, match="too low") as refused:
        await bridge.quote(USDT)
    assert refused.value.reason == "amount_too_low"


async def test_recorded_refusals_are_understood(bridge, server):
    server.status = 400
    for name, reason in (("suggested_fees_400", "amount_too_high"), ("limits_400", "refused")):
        server.body = json.dumps(recorded(f"openapi_{name}.json")["response"]).encode()
        with pytest.raises(ExchangeRefusedError) as refused:
            await bridge.quote(USDT)
        assert refused.value.reason == reason


async def test_a_token_that_across_does_not_know_is_not_supported(bridge, server):
    unknown = b'{"type":"AcrossApiError","code":"INVALID_PARAM","param":"inputToken"}'
    for server.status, server.body, reason in (
        (400, unknown, "unsupported"),
        (400, unknown.replace(b"inputToken", b"inputTokenAddress"), "unsupported"),
        (400, unknown.replace(b"inputToken", b"outputTokenAddress"), "unsupported"),
        (400, unknown.replace(b"inputToken", b"amount"), "refused"),
        (404, b'{"code":"NOT_FOUND"}', "unsupported"),
    ):
        with pytest.raises(ExchangeRefusedError) as refused:
            await bridge.quote(USDT)
        assert refused.value.reason == reason
    server.body = b'{"error":"not found"}'
    with pytest.raises(ProviderUnavailableError):
        await bridge.quote(USDT)


@pytest.mark.parametrize(
    "code, reason",
    [
        ("ROUTE_NOT_ENABLED", "unsupported"),
        ("SWAP_LIQUIDITY_INSUFFICIENT", "no_liquidity"),
        ("SIMULATION_ERROR", "refused"),
    ],
)
async def test_refusals_have_their_reasons(bridge, server, code, reason):
    server.status, server.body = 400, f'{{"code":"{code}","message":"<script>"}}'.encode()
    with pytest.raises(ExchangeRefusedError) as refused:
        await bridge.quote(USDT)
    assert refused.value.reason == reason
    assert "<" not in str(refused.value)


async def test_an_offer_that_costs_too_much_is_refused_as_a_price_that_may_come_back(server, clock):
    server.changes = {"outputAmount": "97000000"}
    async with connected(clock, base_url=server.base_url) as bridge:
        assert (await bridge.quote(USDT)).units == 97_000_000
        server.changes = {"outputAmount": "96999999"}
        with pytest.raises(ExchangeRefusedError, match="more than 3 %"):
            await bridge.quote(USDT)
        server.changes = {"outputAmount": "1"}
        with pytest.raises(ExchangeRefusedError, match="more than 3 %") as refused:
            await bridge.build(USDT, Units(1))
        assert refused.value.reason == "price_moved"


HOSTILE: dict[str, dict[str, Any]] = {
    "another contract": {"spokePoolAddress": STRANGER},
    "another contract there": {"destinationSpokePoolAddress": STRANGER},
    "another token there": {"outputToken": {"address": STRANGER, "decimals": 6, "chainId": 42161}},
    "another token here": {"inputToken": {"address": STRANGER, "decimals": 6, "chainId": 1}},
    "another chain": {"outputToken": {"address": USDT.buys.token.contract, "decimals": 6, "chainId": 10}},
    "other decimals": {"outputToken": {"address": USDT.buys.token.contract, "decimals": 18, "chainId": 42161}},
    "more than goes in": {"outputAmount": "100000001"},
    "nothing": {"outputAmount": "0"},
    "less than nothing": {"outputAmount": "-1"},
    "a number too large": {"outputAmount": str(2**256)},
    "a number much too large": {"outputAmount": "9" * 199},
    "a number in other digits": {"outputAmount": "٩٩"},
    "a fraction": {"outputAmount": "1.5"},
    "a float": {"outputAmount": 1.5},
    "hexadecimal": {"outputAmount": "0x10"},
    "a truth": {"outputAmount": True},
    "no number": {"outputAmount": None},
    "an old quote": {"timestamp": "1767264900"},
    "a quote of 1970": {"timestamp": "0"},
    "a quote of tomorrow": {"timestamp": "1767355200"},
    "no time to fill": {"fillDeadline": "1767268859"},
    "a deadline too far": {"fillDeadline": str(1767268800 + FILL_S_MAX + 1)},
    "a deadline that never comes": {"fillDeadline": str(2**32 - 1)},
    "a deadline beyond all": {"fillDeadline": str(2**200)},
    "exclusivity for most of the time": {"exclusiveRelayer": RELAYER, "exclusivityDeadline": 3601},
    "exclusivity for ever": {"exclusiveRelayer": RELAYER, "exclusivityDeadline": 2**32 - 1},
    "exclusivity for nobody": {"exclusivityDeadline": 60},
    "no address": {"exclusiveRelayer": "0x"},
    "an address of another kind": {"spokePoolAddress": "TTbCVPfUZmPhrB9sYC8GKgGBQQEdZovkmS"},
    "no fees": {"relayerGasFee": None},
    "a fee that is none": {"relayerGasFee": {"total": "much"}},
    "a time that is none": {"estimatedFillTimeSec": "soon"},
    "a time beyond all": {"estimatedFillTimeSec": 1e300},
}


@pytest.mark.parametrize("changes", HOSTILE.values(), ids=HOSTILE.keys())
async def test_an_offer_that_cannot_be_is_none(bridge, server, changes):
    server.changes = changes
    assert server.now == 1767268800
    for asking in (bridge.quote(USDT), bridge.build(USDT, Units(1))):
        with pytest.raises(ProviderUnavailableError):
            await asking


@pytest.mark.slow
async def test_any_field_of_an_answer_may_be_anything_and_the_call_is_still_the_one_that_was_asked_for(bridge, server):
    await bridge.quote(USDT)
    usual = server.answers[0]
    paths = [(name,) for name in usual] + [
        (name, inner) for name, value in usual.items() if isinstance(value, dict) for inner in value
    ]
    outcomes = set()
    for path, value in itertools.product(paths, HOSTILE_VALUES):
        answer = copy.deepcopy(usual)
        place = answer if len(path) == 1 else answer[path[0]]
        place[path[-1]] = value
        server.body = json.dumps(answer).encode()
        try:
            built = await bridge.build(USDT, Units(99_900_000))
        except (ProviderUnavailableError, ExchangeRefusedError) as error:
            outcomes.add(type(error))
            continue
        told = reader().read(ETHEREUM, WALLET, built, CHAINS)
        assert (told.sold, told.recipient, told.refund_to, told.chain) == (USDT.units, WALLET, WALLET, "arbitrum")
        assert 99_900_000 <= told.bought_min <= USDT.units
        outcomes.add(type(built))
    assert len(outcomes) >= 2


GARBAGE = {
    "nothing": b"",
    "a page": b"<html>hello</html>",
    "half": b'{"outputAmount":"1',
    "a list": b"[]",
    "other bytes": b"\xff\xfe\x00",
    "bad text": b'{"outputAmount":"\xff"}',
    "depth": b'{"x":' + b"[" * 100_000,
    "packed": gzip.compress(b"{}"),
    "too much": b" " * 300_000,
}


@pytest.mark.parametrize("body", GARBAGE.values(), ids=GARBAGE.keys())
@pytest.mark.parametrize("status", [200, 400])
async def test_garbage_is_no_answer(bridge, server, body, status):
    server.body, server.status = body, status
    with pytest.raises(ProviderUnavailableError):
        await bridge.quote(USDT)


@pytest.mark.parametrize("status", [301, 302, 307, 401, 403, 418, 500, 502, 503, 504])
async def test_other_answers_are_none_and_redirects_are_not_followed(bridge, server, status):
    server.status, server.headers = status, {"Location": "/api/limits"}
    with pytest.raises(ProviderUnavailableError):
        await bridge.quote(USDT)
    assert len(server.requests) == 1


async def test_a_server_that_wants_to_be_left_alone_is(bridge, server, clock):
    server.status, server.headers = 429, {"Retry-After": "20"}
    with pytest.raises(ProviderUnavailableError) as unavailable:
        await bridge.quote(USDT)
    assert unavailable.value.retry_after == 20
    clock.advance(15)
    server.status = 200
    with pytest.raises(ProviderUnavailableError) as unavailable:
        await bridge.quote(USDT)
    assert unavailable.value.retry_after == 5
    assert len(server.requests) == 1
    clock.advance(5)
    assert await bridge.quote(USDT)


async def test_a_server_that_is_slow_endless_or_away_is_unavailable(server, clock):
    async with connected(clock, base_url=server.base_url, timeout_ms=200) as bridge:
        server.delay_s = 1
        with pytest.raises(ProviderUnavailableError, match="200 ms"):
            await bridge.quote(USDT)
        server.delay_s, server.endless = 0, True
        with pytest.raises(ProviderUnavailableError):
            await bridge.quote(USDT)
    async with connected(clock, base_url="http://127.0.0.1:1/api", key="hunter22") as bridge:
        with pytest.raises(ProviderUnavailableError) as unavailable:
            await bridge.quote(USDT)
        assert "hunter22" not in repr(unavailable.value)


def test_pairs_of_a_kind_are_supported_between_chains_that_have_across():
    other = chain("other", 999, "ETH")
    weth = chain("arbitrum", 42161, "ETH", ("WETH", wrapped(ARBITRUM), 18))
    bridge = events()
    assert bridge.supports(USDT.sells, USDT.buys)
    assert bridge.supports(ETHER.sells, ETHER.buys)
    assert bridge.supports(side(weth, "WETH"), side(ETHEREUM, "ETH"))
    for sells, buys in (
        (USDT.sells, ETHER.buys),
        (USDT.sells, USDT.sells),
        (USDT.sells, side(BSC, "BNB")),
        (side(ETHEREUM, "ETH"), side(weth, "WETH")),
        (side(ETHEREUM, "ETH"), side(other, "ETH")),
        (side(TRON, "TRX"), side(ETHEREUM, "ETH")),
    ):
        assert not bridge.supports(sells, buys)


async def test_what_is_not_supported_is_refused_without_asking(bridge, server):
    for asked, reason in (
        (request(USDT.sells, ETHER.sells), "unsupported"),
        (request(USDT.sells, USDT.buys, fee_bps=10, fee_recipient=STRANGER), "unsupported"),
        (request(USDT.sells, USDT.buys, 0), "refused"),
        (request(USDT.sells, USDT.buys, 2**256), "refused"),
        (request(USDT.sells, USDT.buys, recipient=ZERO), "refused"),
        (request(USDT.sells, USDT.buys, sender="TTbCVPfUZmPhrB9sYC8GKgGBQQEdZovkmS"), "refused"),
    ):
        for asking in (bridge.quote(asked), bridge.build(asked, Units(1))):
            with pytest.raises(ExchangeRefusedError) as refused:
                await asking
            assert refused.value.reason == reason
    assert server.requests == []


async def test_a_table_of_ones_own_replaces_the_pinned_contract(server, clock):
    async with connected(
        clock, base_url=server.base_url, chains={"ethereum": ChainTable(spoke_pool=STRANGER)}
    ) as bridge:
        with pytest.raises(ProviderUnavailableError):
            await bridge.quote(USDT)
        server.changes = {"spokePoolAddress": STRANGER.lower()}
        assert (await bridge.build(USDT, Units(1))).to_address == STRANGER
    assert spoke_pool(ETHEREUM) != STRANGER
