"""What the local server answers: in the shapes that Across published, and wrongly where it is told to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from cambist.plugin import ExchangeRefusedError, ProviderUnavailableError, Units
from cambist_across_node import Behaviour, Fault
from cambist_across_node.side import ETHER

from .conftest import RECIPIENT, bridging, network_of
from .waiting import eventually

RECORDED = Path(__file__).resolve().parents[3] / "plugins/bridge_across/tests/recorded"


def recorded(name: str) -> Any:
    return json.loads((RECORDED / f"openapi_{name}.json").read_bytes())["response"]


def shape(value: Any) -> Any:
    """Return an answer with what stands in it replaced by what kind it is: numbers in text are one of their own."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    return "digits" if isinstance(value, str) and value.isdecimal() else type(value).__name__


@pytest.fixture
async def ask(network):
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def ask(path: str, **query: Any) -> tuple[int, Any]:
            async with session.get(f"{network.base_url}/{path}", params=query) as response:
                return response.status, await response.json()

        yield ask


@pytest.fixture
def usdt(network) -> dict[str, str]:
    one, two = network.sides.values()
    return {
        "originChainId": "31337",
        "destinationChainId": "31338",
        "inputToken": one.tokens["USDT"].address,
        "outputToken": two.tokens["USDT"].address,
    }


async def test_limits_have_the_shape_of_recorded_ones(ask, usdt):
    status, told = await ask("limits", **usdt)
    known = recorded("limits_200")
    assert (status, shape({name: told[name] for name in known})) == (200, shape(known))
    assert set(told) - set(known) == {"reserves"}
    assert told["maxDeposit"] == str(10**9 * 10**6)


async def test_fees_come_to_what_is_kept_and_are_told_as_across_tells_them(ask, usdt, network):
    status, told = await ask("suggested-fees", amount="250000000", **usdt)
    assert status == 200
    assert {name: told[name]["total"] for name in ("relayerCapitalFee", "relayerGasFee", "lpFee")} == {
        "relayerCapitalFee": "25000",
        "relayerGasFee": "20000",
        "lpFee": "12500",
    }
    assert told["totalRelayFee"] == {"pct": str(57_500 * 10**18 // 250_000_000), "total": "57500"}
    assert told["outputAmount"] == str(250_000_000 - 57_500)
    assert int(told["fillDeadline"]) - int(told["timestamp"]) == 7200
    assert told["limits"]["minDeposit"] == "1000000"
    one, two = network.sides.values()
    assert (told["spokePoolAddress"], told["destinationSpokePoolAddress"]) == (one.pool, two.pool)
    token = {"symbol": "USDT", "decimals": 6}
    assert told["inputToken"] == token | {"address": usdt["inputToken"], "chainId": 31337}
    assert told["outputToken"] == token | {"address": usdt["outputToken"], "chainId": 31338}
    assert (told["relayFeeTotal"], told["lpFeePct"], told["isAmountTooLow"]) == ("57500", "0", False)


async def test_one_token_names_both_where_only_one_chain_has_it(ask, usdt):
    pair = await ask("limits", **usdt)
    del usdt["outputToken"], usdt["originChainId"]
    assert await ask("limits", token=usdt.pop("inputToken"), **usdt) == pair


async def test_decimals_that_differ_are_converted_where_the_client_knows_of_it():
    async with network_of(tokens={"USDC": {"one": 6, "two": 18}}) as network, bridging(network) as gateway:
        for origin, destination, units in (("one", "two", 250_000_000), ("two", "one", 250 * 10**18 + 1)):
            deposit = await gateway.deposit(
                gateway.request("USDC", units, origin=origin, destination=destination, recipient=RECIPIENT)
            )
            fill = await eventually(lambda one=deposit, at=origin: gateway.fill(one, origin=at))
            assert fill.units == deposit.units_out
            kept = 250 - fill.units / 10 ** gateway.side(destination).tokens["USDC"].decimals
            assert 0.05 < kept < 0.06
        with pytest.raises(ExchangeRefusedError, match="at least 1 USDC"):
            await gateway.bridge.quote(gateway.request("USDC", 10))
        asked = {"destinationChainId": "31338", "originChainId": "31337", "amount": "1000000"}
        asked["inputToken"], asked["outputToken"] = (one.tokens["USDC"].address for one in network.sides.values())
        async with aiohttp.request("GET", f"{network.base_url}/suggested-fees", params=asked) as response:
            assert (response.status, (await response.json())["param"]) == (400, "allowUnmatchedDecimals")


NO_TOKEN = "0x" + "5e" * 20


@pytest.mark.parametrize(
    "changes, code, param",
    [
        ({"amount": "999999"}, "AMOUNT_TOO_LOW", None),
        ({"amount": "1000000000000001"}, "AMOUNT_TOO_HIGH", None),
        ({"amount": "1.5"}, "INVALID_PARAM", "amount"),
        ({"amount": None}, "INVALID_PARAM", "amount"),
        ({"inputToken": "USDT"}, "INVALID_PARAM", "inputToken"),
        ({"inputToken": NO_TOKEN}, "INVALID_PARAM", "inputTokenAddress"),
        ({"outputToken": NO_TOKEN}, "INVALID_PARAM", "outputTokenAddress"),
        ({"originChainId": "31338"}, "INVALID_PARAM", None),
        ({"destinationChainId": "10"}, "INVALID_PARAM", "outputTokenAddress"),
        ({"outputToken": None}, "MISSING_PARAM", None),
        ({"outputToken": "WETH"}, "ROUTE_NOT_ENABLED", None),
        ({"timestamp": "9999999999"}, "INVALID_PARAM", "timestamp"),
        ({"skipAmountLimit": "yes"}, "INVALID_PARAM", "skipAmountLimit"),
    ],
)
async def test_refusals_have_the_shape_of_recorded_ones(ask, usdt, network, changes, code, param):
    if changes.get("outputToken") == "WETH":
        changes = {"outputToken": network.sides["two"].wrapped}
    asked = {name: value for name, value in ({"amount": "5000000"} | usdt | changes).items() if value is not None}
    status, told = await ask("suggested-fees", **asked)
    example = recorded("suggested_fees_400") | ({} if param is None else {"param": "amount"})
    assert (status, told["code"], told.get("param")) == (400, code, param)
    assert (shape(told), told["type"]) == (shape(example), "AcrossApiError")


async def test_missing_tokens_are_missed_in_the_words_of_the_recorded_answer(ask):
    assert await ask("limits", destinationChainId="31338") == (400, recorded("limits_400"))


async def test_what_is_too_low_is_told_on_request(ask, usdt):
    status, told = await ask("suggested-fees", amount="1", skipAmountLimit="true", **usdt)
    assert (status, told["isAmountTooLow"], told["outputAmount"]) == (200, True, "0")


async def test_all_routes_are_told_and_can_be_filtered(ask, network, usdt):
    status, told = await ask("available-routes")
    assert (status, len(told)) == (200, 6)
    one, two = network.sides.values()
    assert await ask("available-routes", originChainId="31337", originTokenSymbol="eth") == (
        200,
        [
            {
                "originChainId": 31337,
                "originToken": one.wrapped,
                "destinationChainId": 31338,
                "destinationToken": two.wrapped,
                "originTokenSymbol": "ETH",
                "destinationTokenSymbol": "ETH",
                "isNative": True,
            }
        ],
    )


async def test_a_deposit_is_followed_by_its_number_and_by_its_transaction(ask, gateway):
    gateway.network.relayer.behaviour = Behaviour.NEVER
    deposit = await gateway.deposit(gateway.request("ETH", ETHER))
    by_number = await ask("deposit/status", originChainId="31337", depositId=deposit.deposit_id)
    assert by_number == await ask("deposit/status", depositTxnRef=deposit.tx_id)
    assert by_number == (
        200,
        {
            "status": "pending",
            "originChainId": 31337,
            "depositId": deposit.deposit_id,
            "depositTxHash": deposit.tx_id,
            "depositTxnRef": deposit.tx_id,
            "fillTx": None,
            "fillTxnRef": None,
            "destinationChainId": 31338,
            "depositRefundTxHash": None,
            "depositRefundTxnRef": None,
            "actionsSucceeded": None,
            "pagination": {"currentIndex": 0, "maxIndex": 0},
        },
    )


async def test_questions_about_no_deposit_are_refused(ask, gateway):
    status, told = await ask("deposit/status", originChainId="31337", depositId="7")
    assert (status, told["error"]) == (404, "DepositNotFoundException")
    status, told = await ask("deposit/status", originChainId="31337")
    assert (status, told["error"]) == (400, "IncorrectQueryParamsException")
    status, told = await ask("deposit/status", originChainId="31337", depositId="x")
    known = recorded("deposit_status_400")
    assert (status, shape(told), told["message"]) == (400, shape(known), known["message"])
    deposit = await gateway.deposit(gateway.request("ETH", ETHER))
    status, told = await ask("deposit/status", depositTxHash=deposit.tx_id, index="1")
    assert (status, told["error"]) == (400, "IndexParamOutOfRangeException")


async def test_amounts_beyond_the_limits_reach_our_plugin_with_the_limit(gateway):
    for units, bound in ((999_999, "at least 1 USDT"), (10**15 + 1, "at most 1000000000 USDT")):
        with pytest.raises(ExchangeRefusedError, match=bound):
            await gateway.bridge.quote(gateway.request("USDT", units))


async def test_a_token_that_the_server_does_not_know_is_unsupported_to_our_plugin(gateway):
    del gateway.side("two").tokens["USDT"]
    with pytest.raises(ExchangeRefusedError) as refused:
        await gateway.bridge.quote(gateway.request("USDT", 5_000_000))
    assert refused.value.reason == "unsupported"


async def test_a_key_is_counted(network):
    async with bridging(network, key="s3cret") as gateway:
        await gateway.bridge.quote(gateway.request("ETH", ETHER))
    assert (network.server.keys, network.server.calls) == ({"s3cret": 1}, {"suggested-fees": 1})


REFUSED = {
    Fault.SLOW: (ProviderUnavailableError, "Across"),
    Fault.HTTP_429: (ProviderUnavailableError, "Across"),
    Fault.HTTP_500: (ProviderUnavailableError, "Across"),
    Fault.GARBAGE: (ProviderUnavailableError, "Across"),
    Fault.REDIRECT: (ProviderUnavailableError, "Across"),
    Fault.ENDLESS: (ProviderUnavailableError, "Across"),
    Fault.OTHER_POOL: (ProviderUnavailableError, "Across offers a contract that is not the pinned one"),
    Fault.OUTPUT_OF_ONE: (ExchangeRefusedError, "Across would keep more than 3 % of it"),
}
"""Which error the plugin raises of each, and what it says where that matters."""


@pytest.mark.parametrize("fault", REFUSED)
async def test_a_fault_of_the_server_makes_no_deposit_and_ends(network, fault):
    error, words = REFUSED[fault]
    async with bridging(network, timeout_ms=2000) as gateway:
        request = gateway.request("USDT", 5_000_000)
        network.faults.add(fault, "suggested-fees", times=2)
        with pytest.raises(error, match=words):
            await gateway.bridge.quote(request)
        if fault is not Fault.HTTP_429:  # which it asked to be left alone for
            with pytest.raises(error, match=words):
                await gateway.bridge.build(request, Units(1))
            assert await gateway.bridge.build(request, Units(1))
    assert network.server.calls["elsewhere"] == 0
    assert network.faults.present == ([fault] if fault is Fault.HTTP_429 else [])


async def test_a_server_that_is_away_comes_back_at_its_address(network):
    async with bridging(network) as gateway:
        request = gateway.request("USDT", 5_000_000)
        await network.server.stop()
        with pytest.raises(ProviderUnavailableError):
            await gateway.bridge.quote(request)
        await network.server.start()
        assert await gateway.bridge.quote(request)
