"""Blocks made for a test, whose ids prove right: transactions, what came of them, and chains of blocks of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from cambist_tron.addresses import hex_of
from cambist_tron.decode import TRANSFER_TOPIC
from cambist_tron.headers import NOTHING, id_of
from cambist_tron.networks import MAINNET
from cambist_tron.wire import RawHeader

Json = dict[str, Any]

USDT = MAINNET.tokens[0].contract
WITNESS = "41" + "77" * 20
GENESIS_TIME_MS = 1_700_000_000_000


def tx(kind: str, value: Json, *, ret: str | None = "SUCCESS", nonce: int = 0) -> Json:
    """Return a transaction as blocks hold it. Its id is the hash of its bytes, which say nothing real."""
    raw = msgspec.json.encode([kind, value, nonce])
    return {
        "ret": [{} if ret is None else {"contractRet": ret}],
        "signature": ["00" * 65],
        "txID": hashlib.sha256(raw).hexdigest(),
        "raw_data": {
            "contract": [
                {"parameter": {"value": value, "type_url": f"type.googleapis.com/protocol.{kind}"}, "type": kind}
            ],
            "ref_block_bytes": "a358",
            "expiration": GENESIS_TIME_MS + 60_000,
        },
        "raw_data_hex": raw.hex(),
    }


def trx(source: str, to_address: str, amount: int, **more: Any) -> Json:
    """Return a transfer of native coin."""
    value = {"owner_address": hex_of(source), "to_address": hex_of(to_address), "amount": amount}
    return tx("TransferContract", value, **more)


def trc10(source: str, to_address: str, amount: int, name: str = "USDT", **more: Any) -> Json:
    """Return a transfer of a TRC-10 asset."""
    value = {
        "owner_address": hex_of(source),
        "to_address": hex_of(to_address),
        "amount": amount,
        "asset_name": name.encode().hex(),
    }
    return tx("TransferAssetContract", value, **more)


def call(source: str, contract: str = USDT, data: str = "a9059cbb", **more: Any) -> Json:
    """Return a call of a contract. What it brought about stands in its result alone."""
    value = {"owner_address": hex_of(source), "contract_address": hex_of(contract), "data": data}
    return tx("TriggerSmartContract", value, **more)


def log(source: str, to_address: str, amount: int, contract: str = USDT) -> Json:
    """Return a token's Transfer."""
    return {
        "address": hex_of(contract)[2:],
        "topics": [TRANSFER_TOPIC, hex_of(source)[2:].rjust(64, "0"), hex_of(to_address)[2:].rjust(64, "0")],
        "data": f"{amount:064x}",
    }


def inner(source: str, to_address: str, amount: int, note: str = "call", **more: Any) -> Json:
    """Return an internal transaction."""
    return {
        "hash": "00" * 32,
        "caller_address": hex_of(source),
        "transferTo_address": hex_of(to_address),
        "callValueInfo": [{"callValue": amount}],
        "note": note.encode().hex(),
        **more,
    }


def info(transaction: Json, *, result: str = "SUCCESS", logs: Sequence[Json] = (), inners: Sequence[Json] = ()) -> Json:
    """Return what came of a transaction, whose block is told by ``mined``."""
    ran = transaction["raw_data"]["contract"][0]["type"] == "TriggerSmartContract"
    answer: Json = {"id": transaction["txID"], "receipt": {"net_usage": 345}, "contractResult": [""]}
    if ran:
        answer["receipt"]["result"] = result
    if result != "SUCCESS":
        answer |= {"result": "FAILED", "resMessage": result.encode().hex()}
    return answer | ({"log": list(logs)} if logs else {}) | ({"internal_transactions": list(inners)} if inners else {})


def block(number: int, parent: str, transactions: Sequence[Json] = ()) -> Json:
    """Return a block whose id proves right."""
    ids = "".join(one["txID"] for one in transactions)
    raw = {
        "number": number,
        "txTrieRoot": hashlib.sha256(ids.encode()).hexdigest() if ids else NOTHING,
        "witness_address": WITNESS,
        "parentHash": parent,
        "version": 36,
        "timestamp": GENESIS_TIME_MS + 3000 * number,
    }
    answer: Json = {
        "blockID": id_of(msgspec.convert(raw, RawHeader)),
        "block_header": {"raw_data": raw, "witness_signature": "00" * 65},
    }
    return answer | ({"transactions": list(transactions)} if transactions else {})


Mined = tuple[Json, list[Json]]


def mined(number: int, parent: str, *pairs: tuple[Json, Json]) -> Mined:
    """Return a block of transactions, and what came of each."""
    infos = [{**one, "blockNumber": number, "blockTimeStamp": GENESIS_TIME_MS + 3000 * number} for _, one in pairs]
    return block(number, parent, [one for one, _ in pairs]), infos


def chain(*contents: Sequence[tuple[Json, Json]], first: int = 1, parent: str = "00" * 32) -> list[Mined]:
    """Return blocks in a row."""
    found = []
    for number, pairs in enumerate(contents, start=first):
        found.append(mined(number, parent, *pairs))
        parent = found[-1][0]["blockID"]
    return found
