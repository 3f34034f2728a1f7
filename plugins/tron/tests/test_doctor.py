"""What asking the network about the configuration shows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from cambist.plugin import ChainUnavailableError
from cambist_tron.config import TronConfig, resolve
from cambist_tron.doctor import RUNS_MIN, key_problems

from .canned import CannedNode
from .forging import USDT, Json, call, chain, info, inner

Connect = Callable[..., Any]

TOKENS = [{"symbol": "USDT", "contract": USDT, "decimals": 6}]
PRICES = {
    "chainParameter": [
        {"key": "getEnergyFee", "value": 100},
        {"key": "getTransactionFee", "value": 1000},
    ]
}


def text(said: str) -> str:
    """Return a text as contracts answer it."""
    return f"{32:064x}{len(said):064x}" + said.encode().hex().ljust(64, "0")


def contract(decimals: str, symbol: str) -> Callable[[Json], Json]:
    """Return what a node answers to calls of a token that says so of itself."""

    def answer(body: Json) -> Json:
        told = decimals if body["data"] == "313ce567" else symbol
        return {"result": {"result": True}, "constant_result": [told], "transaction": {"ret": [{}]}}

    return answer


@pytest.fixture
async def node() -> AsyncIterator[CannedNode]:
    async with CannedNode(chain(*([] for _ in range(30)))) as node:
        node.answers["wallet/getchainparameters"] = PRICES
        for state in ("wallet", "walletsolidity"):
            node.answers[f"{state}/triggerconstantcontract"] = contract(f"{6:064x}", text("USDT"))
        yield node


async def test_a_right_configuration_has_no_problems(node: CannedNode, connect: Connect) -> None:
    """Its tokens are what they should be, and energy costs what is allowed."""
    async with connect(node.url, tokens=TOKENS) as chain:
        assert await chain.problems() == []


@pytest.mark.parametrize(
    "decimals, symbol, said",
    [
        (f"{18:064x}", text("USDT"), "has 18 decimals, and is registered with 6"),
        ("", "", "is no token contract"),
        (f"{6:064x}", text("USDT\u0430"), "calls itself"),
    ],
)
async def test_a_token_that_is_another_is_told(
    node: CannedNode, connect: Connect, decimals: str, symbol: str, said: str
) -> None:
    """Wrong decimals make every amount wrong."""
    node.answers["wallet/triggerconstantcontract"] = contract(decimals, symbol)
    async with connect(node.url, tokens=TOKENS) as chain:
        (problem,) = await chain.problems()
    assert said in problem
    assert USDT in problem


async def test_a_contract_that_is_none_is_told(node: CannedNode, connect: Connect) -> None:
    """Nodes answer so with a result of their own."""
    node.answers["wallet/triggerconstantcontract"] = {
        "result": {"code": "CONTRACT_VALIDATE_ERROR", "message": b"No contract or not a valid smart contract".hex()}
    }
    async with connect(node.url, tokens=TOKENS) as chain:
        (problem,) = await chain.problems()
    assert "is no token contract" in problem


async def test_a_node_that_runs_no_contracts_is_told(node: CannedNode, connect: Connect) -> None:
    """As own nodes do not, until they are told to: nothing is wrong with the tokens."""
    words = "this node does not support constant"
    node.answers["wallet/triggerconstantcontract"] = {
        "result": {"code": "CONTRACT_VALIDATE_ERROR", "message": words.encode().hex()}
    }
    async with connect(node.url, tokens=TOKENS) as chain:
        (problem,) = await chain.problems()
        assert words in problem
        with pytest.raises(ChainUnavailableError, match=words):
            await chain.balance(USDT, chain.info.tokens[1])


@pytest.mark.parametrize("missing", ["getnowblock", "triggerconstantcontract"])
async def test_a_node_that_does_not_tell_what_is_solid_is_told(
    node: CannedNode, connect: Connect, missing: str
) -> None:
    """As java-tron's port 8090: deposits come in, and no payout would ever leave. Each endpoint is asked."""
    async with CannedNode(chain(*([] for _ in range(30)))) as second:
        second.answers |= node.answers
        second.answers[f"walletsolidity/{missing}"] = {"status": 404, "text": "<html>Error 404 Not Found</html>"}
        async with connect(node.url, second.url, tokens=TOKENS) as connected:
            (problem,) = await connected.problems()
    assert f"does not offer walletsolidity/{missing} (HTTP 404)" in problem
    assert "8091" in problem


async def test_energy_that_costs_more_than_is_allowed_is_told(node: CannedNode, connect: Connect) -> None:
    """Nothing would be sent, so it is no surprise later."""
    async with connect(node.url, tokens=TOKENS, energy_price_max_sun=99) as chain:
        (problem,) = await chain.problems()
    assert "asks for 100 sun per energy, and energy_price_max_sun is 99" in problem


@pytest.mark.parametrize("runs, inners, told", [(RUNS_MIN, 0, True), (RUNS_MIN, 1, False), (RUNS_MIN - 1, 0, False)])
async def test_a_node_that_keeps_no_internal_transactions_is_told(
    connect: Connect, payer: str, customer: str, runs: int, inners: int, told: bool
) -> None:
    """It shows where many contracts ran and none of them seems to have done anything."""
    calls = [call(payer, nonce=nonce) for nonce in range(runs)]
    results = [info(one, inners=[inner(payer, customer, 0)] * inners) for one in calls]
    mined = chain(*([] for _ in range(28)), list(zip(calls, results, strict=True)), [])
    async with CannedNode(mined) as node:
        node.answers["wallet/getchainparameters"] = PRICES
        async with connect(node.url) as connected:
            assert any("saveInternalTx" in problem for problem in await connected.problems()) is told
        async with connect(node.url, internal_transfers=False) as connected:
            assert await connected.problems() == []


async def test_a_question_that_fails_is_a_problem_of_its_own(node: CannedNode, connect: Connect) -> None:
    """And the others are asked all the same."""
    node.answers["wallet/triggerconstantcontract"] = {"Error": "lack of computing resources"}
    async with connect(node.url, tokens=TOKENS, energy_price_max_sun=99) as chain:
        first, second = await chain.problems()
    assert "lack of computing resources" in first
    assert "energy_price_max_sun" in second


def test_trongrid_without_a_key_is_told() -> None:
    """By its place in the list."""
    urls = ("https://node.example", "https://api.trongrid.io", "https://nile.trongrid.io")
    config = TronConfig(rpc_urls=urls, api_keys=("", "", "key"))
    (problem,) = key_problems(resolve(config))
    assert "endpoint 2" in problem
    assert key_problems(resolve(TronConfig(rpc_urls=urls, api_keys=("key",)))) == []
