"""A chain to be read in benchmarks: blocks in the shape of recorded ones, and a node that replays them.

The answers are encoded before the node listens, so that it costs little beside those who read it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from _harness import sized
from _http import Replay, json_answer
from msgspec import Struct

from cambist_evm.bloom import bits_of

RECORDED = Path(__file__).resolve().parents[1] / "plugins" / "evm" / "tests" / "recorded"
TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
USDT = "0xdac17f958d2ee523a2206206994597c13d831ec7"

TXS_PER_BLOCK, LOGS_PER_BLOCK = sized((250, 600), tiny=(25, 60))
DEPOSITS_PER_BLOCK = 1
DEPOSIT_UNITS = 1_000_000
START_TIME = 1_780_000_000


class Answers(Struct, frozen=True):
    """What a node answers for one height, each as JSON."""

    header: bytes
    block: bytes
    receipts: bytes


def word(random: Random) -> str:
    """Return 32 random bytes as JSON-RPC writes them."""
    return f"0x{random.getrandbits(256):064x}"


def address(random: Random) -> str:
    """Return a random address in lower case."""
    return f"0x{random.getrandbits(160):040x}"


def paid_addresses(blocks: int) -> list[str]:
    """Return the addresses that the chain's deposits go to, in order, in lower case."""
    random = Random(1)
    return [address(random) for _ in range(blocks * DEPOSITS_PER_BLOCK)]


def build(blocks: int) -> list[Answers]:
    """Return the answers for heights 0 to ``blocks``; the deposits begin at height 1."""
    random = Random(2)
    transactions = _recorded("ethereum_0bc7401a1b.json")["block"]["transactions"]
    receipts = _recorded("helios_block_with_receipts.json")["receipts"]
    paid = paid_addresses(blocks)
    parent = word(random)
    chain = []
    for height in range(blocks + 1):
        recipients = paid[(height - 1) * DEPOSITS_PER_BLOCK : height * DEPOSITS_PER_BLOCK] if height else []
        made = _Block(random, height, parent, transactions, receipts, recipients)
        parent = made.hash
        chain.append(made.answers())
    return chain


def _recorded(name: str) -> Any:
    return json.loads((RECORDED / name).read_text())


class _Block:
    """One block: recorded transactions and receipts over and over, with hashes, recipients and positions of its own."""

    def __init__(
        self,
        random: Random,
        height: int,
        parent: str,
        transactions: Sequence[dict[str, Any]],
        receipts: Sequence[dict[str, Any]],
        recipients: Sequence[str],
    ) -> None:
        self.hash = word(random)
        self.random = random
        self.header = {
            **_HEADER,
            "number": hex(height),
            "hash": self.hash,
            "parentHash": parent,
            "timestamp": hex(START_TIME + 12 * height),
        }
        self.position = {"blockHash": self.hash, "blockNumber": hex(height)}
        self.transactions: list[dict[str, Any]] = []
        self.receipts: list[dict[str, Any]] = []
        self.logs = 0
        paying = dict(zip(random.sample(range(TXS_PER_BLOCK), len(recipients)), recipients, strict=True))
        for index in range(TXS_PER_BLOCK):
            self._add(index, random.choice(transactions), random.choice(receipts), paying.get(index))

    def _add(self, index: int, transaction: dict[str, Any], receipt: dict[str, Any], recipient: str | None) -> None:
        tx_hash, sender = word(self.random), address(self.random)
        where = {**self.position, "transactionHash": tx_hash, "transactionIndex": hex(index)}
        to = address(self.random)
        self.transactions.append(
            {**transaction, **self.position, "hash": tx_hash, "transactionIndex": hex(index), "from": sender, "to": to}
        )
        room = LOGS_PER_BLOCK - self.logs if index == TXS_PER_BLOCK - 1 else self._room(index)
        logs = [self._log(log, where, number) for number, log in enumerate(receipt["logs"][:room])]
        if recipient is not None:
            logs = [self._log(_deposit(recipient), where, 0, moved=False)]
        self.logs += len(logs)
        bits = 0
        for item in {item for log in logs for item in (log["address"], *log["topics"])}:
            bits |= bits_of(item)
        bloom = f"0x{bits:0512x}"
        self.receipts.append(
            {
                **receipt,
                **where,
                "status": "0x1",
                "from": sender,
                "to": to,
                "logs": logs,
                "logsBloom": bloom,
            }
        )

    def _room(self, index: int) -> int:
        """Keep the block near its number of logs, wherever the receipts with many fall."""
        return max(0, LOGS_PER_BLOCK * (index + 1) // TXS_PER_BLOCK + 12 - self.logs)

    def _log(self, log: dict[str, Any], where: dict[str, str], number: int, *, moved: bool = True) -> dict[str, Any]:
        topics = log["topics"]
        if moved and topics and topics[0] == TRANSFER and len(topics) == 3:
            topics = [topics[0], topics[1], f"0x{'0' * 24}{address(self.random)[2:]}"]
        return {**log, **where, "topics": topics, "logIndex": hex(self.logs + number)}

    def answers(self) -> Answers:
        header = msgspec.json.encode({**self.header, "transactions": [tx["hash"] for tx in self.transactions]})
        block = msgspec.json.encode({**self.header, "transactions": self.transactions})
        return Answers(header, block, msgspec.json.encode(self.receipts))


_HEADER: dict[str, Any] = {
    key: value for key, value in _recorded("ethereum_0bc7401a1b.json")["block"].items() if key != "transactions"
}


def _deposit(recipient: str) -> dict[str, Any]:
    return {
        "address": USDT,
        "topics": [TRANSFER, f"0x{'0' * 24}{'5e' * 20}", f"0x{'0' * 24}{recipient[2:]}"],
        "data": f"0x{DEPOSIT_UNITS:064x}",
        "removed": False,
    }


class _Request(Struct):
    id: int
    method: str
    params: list[Any] = []


class ReplayNode(Replay):
    """A node that replays one chain."""

    def __init__(self, blocks: int) -> None:
        self._chain = build(blocks)

    def reply(self, path: bytes, body: bytes) -> Sequence[bytes]:  # noqa: ARG002 - every question goes to one path
        batch = body.startswith(b"[")
        requests = msgspec.json.decode(body if batch else b"[%b]" % body, type=list[_Request])
        pieces = [b"["] if batch else []
        for number, request in enumerate(requests):
            name, value = self._result(request)
            comma = b"," if number else b""
            pieces += [b'%b{"jsonrpc":"2.0","id":%d,"%b":' % (comma, request.id, name), value, b"}"]
        return json_answer(*pieces, *([b"]"] if batch else []))

    def _result(self, request: _Request) -> tuple[bytes, bytes]:
        match request.method:
            case "eth_chainId":
                return b"result", b'"0x1"'
            case "eth_getBlockReceipts":
                return b"result", self._at(request).receipts
            case "eth_getBlockByNumber":
                answers = self._at(request)
                return b"result", answers.block if request.params[1] else answers.header
        return b"error", b'{"code":-32601,"message":"the method does not exist"}'

    def _at(self, request: _Request) -> Answers:
        where = request.params[0]
        return self._chain[-1 if where in {"latest", "finalized"} else int(where, 16)]
