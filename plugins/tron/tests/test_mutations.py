"""Answers of real nodes with one thing changed in them: each is refused, tells the same, or is a chain that could be.

Nobody signs what a contract did: its logs, what it paid and what became of it stand in its result alone, and one node
can write there what it likes, as long as it is well-formed. That is what a quorum is for. Everything else is noticed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Hashable, Mapping
from random import Random
from time import monotonic

import pytest

from cambist.plugin import ChainError, Span, Token
from cambist.testing import EveryAddress
from cambist.testing.mutations import Json, Question, play
from cambist_chainkit.http import Answered, HttpClient
from cambist_tron.balances import balances_at
from cambist_tron.config import TronConfig, resolve
from cambist_tron.endpoint import Endpoint
from cambist_tron.lookups import by_id, read_known
from cambist_tron.scanner import read_span
from devnets.tron.tests.recordings import recorded

from .forging import USDT, call, info, inner, log, mined
from .recordings import address
from .test_scan_attacks import payment

CASES = 20_000 if os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full" else 120
SEED = int(os.environ.get("CAMBIST_TEST_SEED", "20261122"))
SETUP = resolve(TronConfig(rpc_urls=("http://node",), requests_per_second_max=None))

ALICE, BOB, CAROL = address("11" * 20), address("22" * 20), address("33" * 20)
BLOCKS, INFOS = "/wallet/getblockbylimitnext", "/wallet/gettransactioninfobyblocknum"
INFO, HEADER = "/wallet/gettransactioninfobyid", "/wallet/getblock"

Ask = Callable[[Mapping[str, Json]], Awaitable[Hashable]]

UNSIGNED = rf"{INFOS} \d+ (?:receipt|receipt result|result|log.*|internal_transactions(?! \d+ note).*)"
"""What stands in results alone. Of the notes in them, all are known."""

ADDRESS = "[0-9a-f]{40}|41[0-9a-f]{40}"
WELL_FORMED = {
    "data": "(?:[0-9a-f]{64})*",
    "topics": r"\[.*\]|[0-9a-f]{64}",
    "address": ADDRESS,
    "caller_address": ADDRESS,
    "transferTo_address": ADDRESS,
    "callValue": r"\d{1,19}",
    "fee": r"\d{1,19}",
    "balance": r"\d{1,19}",
}


class Node(HttpClient):
    """Answers each path with what it was told to, as HTTP would bring it."""

    def __init__(self, answers: Mapping[str, Json]) -> None:
        self.name, self.answers = "node", answers

    async def post(self, body: bytes, asked: str, path: str = "") -> Answered:  # noqa: ARG002
        return Answered(200, None, [json.dumps(self.answers.get(path, {})).encode()])

    def redacted(self, text: str) -> str:
        return text


def asking(ask: Callable[[Endpoint], Awaitable[Hashable]]) -> Ask:
    """Return what puts a question to a node, through all that stands between."""
    return lambda answers: ask(Endpoint(Node(answers), SETUP, None, monotonic))


def transfers_in(found: Json, infos: Json) -> Question:
    """Ask for all transfers of a block."""
    height = found["block_header"]["raw_data"]["number"]

    async def ask(endpoint: Endpoint) -> Hashable:
        result = await read_span(endpoint, SETUP, Span(first=height, last=height), EveryAddress())
        return frozenset(
            (one.tx_id, one.position, one.sender, one.recipient, one.contract, one.amount) for one in result.transfers
        )

    return Question({BLOCKS: {"block": [found]}, INFOS: infos}, asking(ask), UNSIGNED, WELL_FORMED)


def outcomes_in(found: Json, infos: Json) -> Question:
    """Ask what became of every transaction of a block."""
    height = found["block_header"]["raw_data"]["number"]

    async def ask(endpoint: Endpoint) -> Hashable:
        return frozenset((await read_known(endpoint, height)).statuses.items())

    free = rf"{INFOS} \d+ (?:receipt|receipt result|result|fee)"
    return Question({BLOCKS: {"block": [found]}, INFOS: infos}, asking(ask), free, WELL_FORMED)


def an_outcome(told: Json, header: Json) -> Question:
    """Ask what became of one transaction, by its id."""

    async def ask(endpoint: Endpoint) -> Hashable:
        return tuple((await by_id(endpoint, [told["id"]], [told["id"]])).items())

    free = rf"{INFO} (?:receipt|receipt result|result|fee)"
    return Question({INFO: told, HEADER: header}, asking(ask), free, WELL_FORMED)


def a_balance(contract: str | None) -> Question:
    """Ask what an address holds."""
    token = Token(symbol="USDT", contract=contract, decimals=6, label="USDT")

    async def ask(endpoint: Endpoint) -> Hashable:
        return tuple(await balances_at(endpoint, [(ALICE, token)], None))

    if contract is None:
        account = {"address": "41" + "11" * 20, "balance": 1_000_000}
        return Question({"/wallet/getaccount": account}, asking(ask), "/wallet/getaccount balance", WELL_FORMED)
    path = "/wallet/triggerconstantcontract"
    run = {
        "result": {"result": True},
        "constant_result": [f"{7:064x}"],
        "energy_used": 935,
        "transaction": {"ret": [{}]},
    }
    return Question({path: run}, asking(ask), rf"{path} constant_result.*", WELL_FORMED)


def forged() -> tuple[Json, Json]:
    """Return a block in which everybody is paid in every way, and what came of it."""
    token, inside = call(ALICE), call(BOB, nonce=1)
    coin, failed = payment(ALICE, BOB, 5_000_000), payment(BOB, CAROL, 7)
    failed = {**failed, "ret": [{"contractRet": "TRANSFER_FAILED"}]}
    return mined(
        9,
        "00" * 32,
        (coin, info(coin)),
        (token, info(token, logs=[log(ALICE, BOB, 3), log(BOB, CAROL, 4), log(BOB, CAROL, 4)])),
        (failed, {**info(failed), "result": "FAILED"}),
        (inside, info(inside, inners=[inner(BOB, CAROL, 8), inner(BOB, ALICE, 9, note="freezeBalanceV2ForEnergy")])),
    )


def recorded_block() -> tuple[Json, Json]:
    return recorded("tatum_getblock_1000000"), recorded("tatum_gettransactioninfobyblocknum_1000000")


def recorded_outcome() -> tuple[Json, Json]:
    found, infos = recorded_block()
    return infos[0], {name: value for name, value in found.items() if name != "transactions"}


QUESTIONS: Mapping[str, Callable[[], Question]] = {
    "transfers of a recorded block": lambda: transfers_in(*recorded_block()),
    "transfers of a forged block": lambda: transfers_in(*forged()),
    "outcomes of a recorded block": lambda: outcomes_in(*recorded_block()),
    "outcomes of a forged block": lambda: outcomes_in(*forged()),
    "outcome by id": lambda: an_outcome(*recorded_outcome()),
    "balance of coin": lambda: a_balance(None),
    "balance of token": lambda: a_balance(USDT),
}


@pytest.mark.parametrize("balance", [-1, 2**63])
async def test_a_balance_that_cannot_be_is_refused(balance: int) -> None:
    """It would be compared with the books."""
    with pytest.raises(ChainError, match="cannot be"):
        await QUESTIONS["balance of coin"]().ask({"/wallet/getaccount": {"address": "41", "balance": balance}})


@pytest.mark.campaign
@pytest.mark.parametrize("name", QUESTIONS)
async def test_a_changed_answer_is_refused_or_tells_the_same_or_could_be(name: str) -> None:
    """None silent, and none that a decoder stumbles over."""
    random = Random(f"{SEED}/{name}")
    outcomes = await play(QUESTIONS[name](), random, CASES)
    assert min(outcomes[one] for one in ("refused", "same", "could be")) > 0, outcomes
