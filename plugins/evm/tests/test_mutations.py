"""Recorded answers with one thing changed in them: each is refused, tells the same, or is a chain that could be.

What no other part of an answer speaks of can be changed into another value of its kind, and nobody who asks one node
alone finds out: amounts, outcomes that left no log, and what traces tell. That is what a quorum is for. Everything else
is noticed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from random import Random

import msgspec
import pytest
from eth_typing import HexStr
from web3 import Web3

from cambist.plugin import ChainError, Span, Token
from cambist.testing import EveryAddress
from cambist.testing.mutations import Json, Path, Question, play
from cambist_chainkit.eip55 import spell
from cambist_chainkit.http import Answered, HttpClient
from cambist_evm.config import ChainSetup, EvmConfig, resolve
from cambist_evm.endpoint import Endpoint
from cambist_evm.lookups import balances_at, statuses
from cambist_evm.networks import NETWORKS
from cambist_evm.rpc import JsonRpc
from cambist_evm.scanner import read_span
from cambist_evm.tracing import movements
from cambist_evm.wire import RpcBlock, RpcTransaction

from .test_recorded_blocks import BLOCKS, load, whole_block

CASES = 20_000 if os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full" else 120
SEED = int(os.environ.get("CAMBIST_TEST_SEED", "20261122"))
TRANSACTIONS = 30

Ask = Callable[[Mapping[str, Json]], Awaitable[Hashable]]

FILTERED = re.compile(r"eth_getBlockReceipts result (\d+) logs(?: \d+(?: (?:address|topics.*))?)?", re.ASCII)
"""What the receipt's filter speaks of, too: as far as it goes."""

OUTCOME = re.compile(r"eth_getBlockReceipts result (\d+) status", re.ASCII)
"""What the receipt's logs speak of, too: a failed transaction of a network that is known has none but for its fee."""

QUANTITY = r"0x[0-9a-fA-F]{1,64}"
ADDRESS = r"0x[0-9a-fA-F]{40}"
WELL_FORMED = {
    "value": rf"{QUANTITY}|None",
    "mint": rf"{QUANTITY}|None",
    "balance": rf"{QUANTITY}|None",
    "status": QUANTITY,
    "gasUsed": QUANTITY,
    "effectiveGasPrice": QUANTITY,
    "l1Fee": rf"{QUANTITY}|None",
    "timestamp": QUANTITY,
    "parentHash": r"0x[0-9a-fA-F]{64}",
    "to": rf"{ADDRESS}|None",
    "from": ADDRESS,
    "address": ADDRESS,
    "refundAddress": rf"{ADDRESS}|None",
    "data": r"0x(?:[0-9a-fA-F]{64})*",
    "result": QUANTITY,
}


class Node(HttpClient):
    """Answers each method with what it was told to, as HTTP would bring it."""

    def __init__(self, answers: Mapping[str, Json]) -> None:
        self.name, self.answers = "node", answers

    async def post(self, body: bytes, asked: str, path: str = "") -> Answered:  # noqa: ARG002
        question = json.loads(body)
        answer = self.answers.get(question["method"], {"id": "?", "error": {"code": -32601, "message": "not found"}})
        if isinstance(answer, dict) and answer.get("id") == "?":
            answer = {**answer, "id": question["id"]}
        return Answered(200, None, [json.dumps(answer).encode()])

    def redacted(self, text: str) -> str:
        return text


@dataclass(frozen=True)
class BlockQuestion(Question):
    """What is asked of a block, whose receipts speak of their logs: by filters, as far as they go, and by outcomes."""

    def could_be(self, path: Path, answers: Mapping[str, Json]) -> bool:
        steps = " ".join(map(str, path))
        if (outcome := OUTCOME.fullmatch(steps)) is not None:
            return super().could_be(path, answers) and not receipt_of(answers, outcome)["logs"]
        if (filtered := FILTERED.fullmatch(steps)) is None:
            return super().could_be(path, answers)
        receipt = receipt_of(answers, filtered)
        items = {item for log in receipt["logs"] for item in (log["address"], *log["topics"])}
        told_bits = receipt.get("logsBloom")
        return told_bits is None or bits(items) == int(told_bits, 16)


def receipt_of(answers: Mapping[str, Json], path: re.Match[str]) -> Json:
    """Return the receipt to which a path leads."""
    return answers["eth_getBlockReceipts"]["result"][int(path[1])]


def asking(setup: ChainSetup, ask: Callable[[Endpoint], Awaitable[Hashable]]) -> Ask:
    """Return what puts a question to a node, through all that stands between."""
    return lambda answers: ask(Endpoint(JsonRpc(Node(answers), batch_calls_max=1), setup, lambda: 0.0))


def told(result: Json) -> Json:
    """Return a result as JSON-RPC has it."""
    return {"jsonrpc": "2.0", "id": "?", "result": result}


def setup_of(chain: str = "local", *, trace: str = "off", contracts: Mapping[str, str] | None = None) -> ChainSetup:
    own: Json = {} if chain in NETWORKS else {"chain_id": 1337, "native_symbol": "ETH", "confirmations": 3}
    table = {"rpc_urls": ["http://node"], "batch_calls_max": 1, "trace": trace, **own}
    (setup,) = resolve(msgspec.convert({"chains": {chain: table}}, EvmConfig))
    return setup if contracts is None else msgspec.structs.replace(setup, contracts=contracts)


def a_block(name: str, *, mint: str | None = None) -> Question:
    """Ask for all transfers of a block, of every token that stands in it. Its first transaction creates ``mint``."""
    chain = load(name)["_source"]["chain"]
    block, receipts = whole_block(name)
    if mint is not None:
        block["transactions"][0]["mint"] = mint
    # The receipts of one recording are a library's, which leaves their ends out.
    receipts = [
        {"from": tx["from"], "to": tx["to"]} | receipt
        for tx, receipt in zip(block["transactions"], receipts, strict=True)
    ]
    if chain != "polygon":
        block["transactions"], receipts = block["transactions"][:TRANSACTIONS], receipts[:TRANSACTIONS]
    height = int(block["number"], 16)
    found = {log["address"] for receipt in receipts for log in receipt["logs"]}
    setup = setup_of(chain, contracts={one: spell(one[2:]) for one in found})

    async def ask(endpoint: Endpoint) -> Hashable:
        result = await read_span(endpoint, setup, Span(first=height, last=height), EveryAddress())
        return frozenset(
            (one.tx_id, one.position, one.sender, one.recipient, one.contract, one.amount) for one in result.transfers
        )

    return BlockQuestion(
        {"eth_getBlockByNumber": told(block), "eth_getBlockReceipts": told(receipts)},
        asking(setup, ask),
        r"eth_getBlockByNumber result transactions \d+ (?:value|mint)"
        r"|eth_getBlockReceipts result \d+ (?:status|logs \d+ data)",
        WELL_FORMED,
    )


def a_trace(name: str) -> Question:
    """Ask what moved inside the transactions of a block."""
    files = load(name)["files"]
    answer = next(content["result"] for key, content in files.items() if key.startswith("web3_response"))
    nested = "action" not in answer[0]
    hashes = dict.fromkeys(one.get("transactionHash") for one in answer)
    hashes.pop(None, None)
    count = len(answer) if nested else len(hashes)
    names = [hex(index) for index in range(count)] if nested else list(hashes)
    transactions = [RpcTransaction(str(one), "0x" + "11" * 20, "0x0") for one in names]
    block_hash = "0x" + "00" * 32 if nested else answer[0]["blockHash"]
    block = RpcBlock("0x1", block_hash, "0x" + "00" * 32, "0x1", transactions)

    async def ask(endpoint: Endpoint) -> Hashable:
        moved = await movements(endpoint, block)
        return moved if moved is None else tuple(map(tuple, moved))

    method = "debug_traceBlockByHash" if nested else "trace_block"
    # Which calls there were, and what became of them, stands nowhere else.
    setup = setup_of(trace="debug" if nested else "trace")
    return Question({method: told(answer)}, asking(setup, ask), rf"{method} result .+", WELL_FORMED)


def an_outcome(name: str) -> Question:
    """Ask what became of a transaction."""
    recorded = load(name)
    receipt = recorded["receipt"]
    answers = {"eth_getTransactionReceipt": told(receipt), "eth_getBlockByHash": told(recorded["block"])}

    async def ask(endpoint: Endpoint) -> Hashable:
        found = await statuses(endpoint, [receipt["transactionHash"]])
        return tuple(found.items())

    return Question(
        answers,
        asking(setup_of(), ask),
        r"eth_getTransactionReceipt result (?:status|gasUsed|effectiveGasPrice|l1Fee)"
        r"|eth_getBlockByHash result (?:timestamp|parentHash)",
        WELL_FORMED,
    )


def a_balance(token: Token, answer: str) -> Question:
    """Ask what an address holds."""

    async def ask(endpoint: Endpoint) -> Hashable:
        return tuple(await balances_at(endpoint, [("0x" + "11" * 20, token)], None))

    method = "eth_getBalance" if token.contract is None else "eth_call"
    return Question({method: told(answer)}, asking(setup_of(), ask), rf"{method} result", WELL_FORMED)


QUESTIONS: Mapping[str, Callable[[], Question]] = {
    **{f"block {name}": lambda name=name: a_block(name) for name in BLOCKS},
    "block base_1d6b85ce11 with coin created": lambda: a_block("base_1d6b85ce11", mint="0x20f5b1eaad8d80000"),
    **{
        f"trace {name}": lambda name=name: a_trace(name)
        for name in (
            "etl_test_export_traces_job__block_with_create",
            "etl_test_export_traces_job__block_with_subtraces",
            "etl_test_export_traces_job__block_with_suicide",
            "etl_test_extract_geth_traces_job__block_with_create",
            "etl_test_extract_geth_traces_job__block_with_error",
            "etl_test_extract_geth_traces_job__block_with_subtraces",
            "etl_test_extract_geth_traces_job__block_with_suicide",
        )
    },
    **{
        f"outcome {name}": lambda name=name: an_outcome(name)
        for name in ("ethereum_0bc7401a1b", "ethereum_fbfd35db09", "base_1d6b85ce11", "arbitrum_228e4ec7b2")
    },
    "balance of coin": lambda: a_balance(
        Token(symbol="ETH", contract=None, decimals=18, label="Ether"), "0xde0b6b3a7640000"
    ),
    "balance of token": lambda: a_balance(
        Token(symbol="USDX", contract="0x" + "22" * 20, decimals=6, label="USDX"), "0x" + f"{10**9:064x}"
    ),
}


def bits(items: set[str]) -> int:
    """Return the filter of addresses and topics, as the Yellow Paper has it."""
    found = 0
    for item in items:
        digest = Web3.keccak(hexstr=HexStr(item))
        for pair in range(0, 6, 2):
            found |= 1 << (int.from_bytes(digest[pair : pair + 2], "big") % 2048)
    return found


@pytest.mark.parametrize("answer", ["", "0x", "0x1" + "0" * 64, "-0x5", "10"])
@pytest.mark.parametrize("name", ["balance of coin", "balance of token"])
async def test_a_balance_that_cannot_be_is_refused(name: str, answer: str) -> None:
    """None is cut until it fits."""
    question = QUESTIONS[name]()
    with pytest.raises(ChainError):
        await question.ask({method: told(answer) for method in question.answers})


async def test_a_receipt_without_a_price_is_refused() -> None:
    """Its transaction was not free."""
    question = QUESTIONS["outcome ethereum_0bc7401a1b"]()
    receipt = dict(question.answers["eth_getTransactionReceipt"]["result"])
    del receipt["effectiveGasPrice"]
    with pytest.raises(ChainError, match="effectiveGasPrice"):
        await question.ask({**question.answers, "eth_getTransactionReceipt": told(receipt)})


@pytest.mark.parametrize("name", BLOCKS)
async def test_a_block_that_a_node_has_lost_the_transactions_of_is_refused(name: str) -> None:
    """Its receipts are lost, too, so that only the header tells that there was something to read."""
    question = a_block(name)
    emptied = {**question.answers["eth_getBlockByNumber"]["result"], "transactions": []}
    with pytest.raises(ChainError, match="without its transactions"):
        await question.ask({"eth_getBlockByNumber": told(emptied), "eth_getBlockReceipts": told([])})


@pytest.mark.campaign
@pytest.mark.parametrize("name", QUESTIONS)
async def test_a_changed_answer_is_refused_or_tells_the_same_or_could_be(name: str) -> None:
    """None silent, and none that a decoder stumbles over."""
    random = Random(f"{SEED}/{name}")
    outcomes = await play(QUESTIONS[name](), random, CASES)
    assert outcomes["refused"], outcomes
