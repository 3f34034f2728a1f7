"""A TRON chain to be read in benchmarks: full blocks of recorded transactions, and a node that replays them.

Every block's id is its header's hash and every transaction's id that of its bytes, so that all that is checked on the
main network is checked here. The answers are encoded before the node listens.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from _harness import sized
from _http import Replay, json_answer
from msgspec import Struct

from cambist_tron.networks import MAINNET
from cambist_tron_node import keys
from cambist_tron_node.blocks import MAINNET as MAINNET_ID
from cambist_tron_node.blocks import Block, Blocks, Representatives, make
from cambist_tron_node.transactions import Transaction

RECORDED = Path(__file__).resolve().parents[1] / "devnets/tron/tests/recorded"
USDT = MAINNET.tokens[0].contract
TRANSFER = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"

# What a full block is made of; the shares are near what explorers show of the main network.
NATIVE, USDT_TRANSFERS, USDT_FAILED, OTHER_CONTRACTS, TRC10 = sized((120, 108, 2, 60, 30), tiny=(6, 5, 1, 3, 2))
TXS_PER_BLOCK = NATIVE + USDT_TRANSFERS + USDT_FAILED + OTHER_CONTRACTS + TRC10
BLOCK_S = 3
DEPOSITS_PER_BLOCK = 1
DEPOSIT_UNITS = 1_000_000
START_TIME_MS = 1_780_000_000_000

Json = dict[str, Any]


class Answers(Struct, frozen=True):
    """What a node answers for one height, as JSON; ``shown`` is how tronpy asks for it, with what it may ask then."""

    header: bytes
    block: bytes
    infos: bytes
    shown: bytes
    shown_infos: Mapping[str, bytes]


def address(random: Random) -> bytes:
    """Return the 20 bytes of a random address."""
    return random.getrandbits(160).to_bytes(20, "big")


def spelled(raw: bytes) -> str:
    """Return an address' text."""
    return keys.base58(keys.PREFIX + raw)


def paid_addresses(blocks: int) -> list[str]:
    """Return the addresses that the chain's deposits go to, in order."""
    random = Random(1)
    return [spelled(address(random)) for _ in range(blocks * DEPOSITS_PER_BLOCK)]


def _recorded(name: str) -> Any:
    return json.loads((RECORDED / f"{name}.json").read_text())["response"]


def _transactions(kind: str) -> list[Json]:
    """Return the recorded transactions of a kind whose bytes are known."""
    pages = [_recorded("blockatlas_v1_account_txs2")["data"], _recorded("drpc_getnowblock_84939539")["transactions"]]
    found = [tx for page in pages for tx in page if tx["raw_data"]["contract"][0]["type"] == kind]
    for tx in found:
        if "asset_name" in (value := _value(tx)):
            value["asset_name"] = value["asset_name"].encode().hex()  # the index that was recorded shows it as text
    return [{"signature": tx["signature"], "raw_data": tx["raw_data"]} for tx in found]


class _Recordings:
    """What blocks are made of, by what it is."""

    def __init__(self) -> None:
        contract = keys.address_bytes(USDT).hex()
        called = _transactions("TriggerSmartContract")
        self.native = _transactions("TransferContract")
        self.trc10 = _transactions("TransferAssetContract")
        self.usdt = [tx for tx in called if _value(tx)["contract_address"] == contract]
        self.other = [tx for tx in called if _value(tx)["contract_address"] != contract] or called
        infos = _recorded("drpc_gettransactioninfobyblocknum_84940364")
        self.paid = [info for info in infos if "log" in info]
        self.plain = [info for info in infos if "log" not in info]
        self.failed = _recorded("failed_transfer_out_of_energy_e63a324a")
        inner = [info for info in _recorded("tatum_gettransactioninfobyblocknum_1000000") if "log" in info]
        self.ran = [*inner, *self.paid]


def _value(transaction: Json) -> Json:
    value: Json = transaction["raw_data"]["contract"][0]["parameter"]["value"]
    return value


class _Maker:
    """Makes blocks of the recordings, with addresses, ids and positions of their own."""

    def __init__(self, blocks: int) -> None:
        self._random = Random(2)
        self._recordings = _Recordings()
        self._makers = Representatives(27)
        self._paid = iter(paid_addresses(blocks))

    def chain(self, blocks: int, shown: int) -> Iterator[Answers]:
        """Yield the answers for heights 0 to ``blocks``; the first ``shown`` ones also as tronpy asks for them."""
        head = Blocks(MAINNET_ID).head
        yield _answers(head, [], shown=False)
        for height in range(1, blocks + 1):
            rows = list(self._rows())
            self._random.shuffle(rows)
            transactions = [transaction for transaction, _ in rows]
            time_ms = START_TIME_MS + 1000 * BLOCK_S * height
            head = make(head, transactions, time_ms, self._makers, height)
            position = {"blockNumber": height, "blockTimeStamp": time_ms}
            infos = [{**info, "id": transaction.id.hex(), **position} for transaction, info in rows]
            yield _answers(head, infos, shown=height <= shown)

    def _rows(self) -> Iterator[tuple[Transaction, Json]]:
        kept = self._recordings
        for _ in range(NATIVE):
            yield self._transaction(kept.native, "to_address"), self._random.choice(kept.plain)
        for number in range(USDT_TRANSFERS):
            recipient = keys.address_bytes(next(self._paid))[1:] if number < DEPOSITS_PER_BLOCK else None
            yield self._transaction(kept.usdt), self._usdt_info(recipient)
        for _ in range(USDT_FAILED):
            yield self._transaction(kept.usdt, result="OUT_OF_ENERGY"), kept.failed
        for _ in range(OTHER_CONTRACTS):
            yield self._transaction(kept.other), self._random.choice(kept.ran)
        for _ in range(TRC10):
            yield self._transaction(kept.trc10, "to_address"), self._random.choice(kept.plain)

    def _transaction(self, among: Sequence[Json], *fields: str, result: str = "SUCCESS") -> Transaction:
        """Return one of the recorded ones, between other addresses."""
        chosen = self._random.choice(among)
        contract = chosen["raw_data"]["contract"][0]
        addresses = {name: (keys.PREFIX + address(self._random)).hex() for name in ("owner_address", *fields)}
        value = {**contract["parameter"]["value"], **addresses}
        changed = {**contract, "parameter": {**contract["parameter"], "value": value}}
        raw = {**chosen["raw_data"], "contract": [changed], "timestamp": self._random.getrandbits(40)}
        return Transaction.from_json({**chosen, "raw_data": raw}).concluded(result)

    def _usdt_info(self, recipient: bytes | None) -> Json:
        info = self._random.choice(self._recordings.paid)
        (log,) = info["log"]
        ends = [part.rjust(32, b"\0").hex() for part in (address(self._random), recipient or address(self._random))]
        units = DEPOSIT_UNITS if recipient else self._random.getrandbits(32)
        return {**info, "log": [{**log, "topics": [TRANSFER, *ends], "data": f"{units:064x}"}]}


def _answers(block: Block, infos: Sequence[Json], *, shown: bool) -> Answers:
    encode = msgspec.json.encode
    return Answers(
        header=encode(block.to_json(detail=False)),
        block=encode(block.to_json()),
        infos=encode(infos),
        shown=encode(block.to_json(visible=True)) if shown else b"{}",
        shown_infos={info["id"]: encode(_as_tronpy_asks(info)) for info in infos} if shown else {},
    )


def _as_tronpy_asks(info: Json) -> Json:
    """Return an info with the addresses that matter to tronpy in base58."""
    logs = [{**log, "address": spelled(bytes.fromhex(log["address"]))} for log in info.get("log", ())]
    return {**info, **({"log": logs} if logs else {})}


class ReplayNode(Replay):
    """A node that replays one chain."""

    def __init__(self, blocks: int, shown: int) -> None:
        self._chain = list(_Maker(blocks).chain(blocks, shown))
        self._shown_infos = {tx_id: info for answers in self._chain for tx_id, info in answers.shown_infos.items()}
        ids = [msgspec.json.decode(answers.header)["blockID"] for answers in (self._chain[-1], self._chain[-19])]
        self._info = msgspec.json.encode(
            {"block": f"Num:{blocks},ID:{ids[0]}", "solidityBlock": f"Num:{blocks - 18},ID:{ids[1]}"}
        )

    def bytes_per_block(self) -> int:
        """Return how much a block and its infos are as JSON."""
        return sum(len(answers.block) + len(answers.infos) for answers in self._chain) // len(self._chain)

    def reply(self, path: bytes, body: bytes) -> Sequence[bytes]:
        asked: Json = msgspec.json.decode(body or b"{}")
        match path.rpartition(b"/")[2]:
            case b"getnodeinfo":
                return json_answer(self._info)
            case b"getblock":
                return json_answer(self._chain[int(asked["id_or_num"])].header)
            case b"getblockbylimitnext":
                found = self._chain[asked["startNum"] : asked["endNum"]]
                commas = [piece for answers in found for piece in (b",", answers.block)][1:]
                return json_answer(b'{"block":[', *commas, b"]}")
            case b"getblockbynum":
                return json_answer(self._chain[asked["num"]].shown)
            case b"gettransactioninfobyblocknum":
                return json_answer(self._chain[asked["num"]].infos)
            case b"gettransactioninfobyid":
                return json_answer(self._shown_infos.get(asked["value"], b"{}"))
        return json_answer(b'{"Error":"this API is unavailable due to config"}')
