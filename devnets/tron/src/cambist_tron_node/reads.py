"""What the node tells of blocks, transactions and itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from . import keys, proto
from .asking import Answer, Ask, Handler
from .blocks import Block

_BLOCKS_MAX: Final = 100
_HEX_CHARACTERS: Final = 42
_HASH_CHARACTERS: Final = 64

# What these cost before, and since when, in milliseconds.
_ENERGY_HISTORY: Final = "0:100,1542607200000:20,1544724000000:10,1606240800000:40,1613044800000:140,1670133600000:420"
_BANDWIDTH_HISTORY: Final = "0:10,1606537680000:40,1613044800000:140"
_NOW_PRICED_SINCE_MS: Final = 1_756_446_900_000


def now_block(ask: Ask) -> Answer:
    return _block(ask, ask.view.head)


def block_by_num(ask: Ask) -> Answer:
    return _block(ask, ask.view.at(ask.number("num")))


def block_by_id(ask: Ask) -> Answer:
    return _block(ask, ask.view.by_id(ask.hex("value")))


def block(ask: Ask) -> Answer:
    """Tell of a block by number or id, without transactions unless they are asked for."""
    wanted, detail = str(ask.values.get("id_or_num", "")), str(ask.values.get("detail", "")).lower() == "true"
    if not wanted:
        return _block(ask, ask.view.head, detail=detail)
    if wanted.isascii() and wanted.isdigit() and len(wanted) < _HASH_CHARACTERS:
        return _block(ask, ask.view.at(int(wanted)), detail=detail)
    if wanted.startswith("-"):
        return {"Error": "num must be non-positive number."}
    try:
        found = ask.view.by_id(bytes.fromhex(wanted)) if len(wanted) == _HASH_CHARACTERS else None
    except ValueError:
        found = None
    return _block(ask, found, detail=detail) if found else {"Error": "id must be legal block hash."}


def blocks_by_limit_next(ask: Ask) -> Answer:
    """Tell of blocks from one number up to another, which is not among them."""
    first, end = ask.number("startNum"), ask.number("endNum")
    if not (end > 0 and 0 < end - first <= _BLOCKS_MAX):
        return {}
    return {"block": list(_blocks(ask, range(first, end)))}


def blocks_by_latest_num(ask: Ask) -> Answer:
    """Tell of so many of the newest blocks."""
    count, head = ask.number("num"), ask.view.head.number
    if not 0 < count < _BLOCKS_MAX:
        return {}
    return {"block": list(_blocks(ask, range(max(head - count + 1, 0), head + 1)))}


def transaction_count(ask: Ask) -> Answer:
    found = ask.view.at(ask.number("num"))
    return {"count": len(found.transactions) if found else -1}


def transaction_by_id(ask: Ask) -> Answer:
    """Tell of a transaction in a block; on the full node's side also one that only waits, which looks the same."""
    tx_id = ask.hex("value")
    found = ask.view.find(tx_id)
    if found is not None:
        block, index = found
        return block.transactions[index].to_json(visible=ask.visible)
    return _waiting(ask, tx_id)


def info_by_id(ask: Ask) -> Answer:
    found = ask.view.find(ask.hex("value"))
    if found is None:
        return {}
    block, index = found
    return info_json(block.infos[index], visible=ask.visible)


def infos_by_block_num(ask: Ask) -> Answer:
    """Tell what came of a block's transactions; nothing for a block that is not there."""
    number = ask.number("num")
    if number <= 0:
        return {}
    found = ask.view.at(number)
    told = [info for info in found.infos if info.id not in ask.view.hidden] if found else []
    return [info_json(info, visible=ask.visible) for info in told]


def info_json(info: Any, *, visible: bool) -> dict[str, Any]:  # noqa: ANN401 - messages are made at run time
    """Return a transaction's info as nodes show it: events' addresses get TRON's prefix where they are visible."""
    if visible and info.log:
        told = proto.new("TransactionInfo")
        told.CopyFrom(info)
        for log in told.log:
            log.address = keys.PREFIX + log.address
        info = told
    return proto.to_json(info, visible=visible)


def from_pending(ask: Ask) -> Answer:
    return _waiting(ask, ask.hex("value"))


def list_from_pending(ask: Ask) -> Answer:
    ids = [each.id.hex() for each in ask.view.pool or ()]
    return {"txId": ids} if ids else {}


def pending_size(ask: Ask) -> Answer:
    return {"pendingSize": len(ask.view.pool or ())}


def node_info(ask: Ask) -> Answer:
    solid = ask.view.at(max(ask.view.head.number - ask.chain.makers.behind, 0))
    return {
        "beginSyncNum": max(ask.view.head.number - 19, 0),
        "block": ask.view.head.named,
        "solidityBlock": solid.named if solid else "",
        "currentConnectCount": 30,
        "activeConnectCount": 3,
        "passiveConnectCount": 27,
        "totalFlow": 0,
        "peerList": [],
        "configNodeInfo": {
            "codeVersion": "4.8.1",
            "versionNum": "18636",
            "p2pVersion": str(ask.chain.chain_id),
            "listenPort": 18888,
            "discoverEnable": True,
            "maxConnectCount": 60,
            "supportConstant": True,
            "dbVersion": 2,
        },
        "machineInfo": {"cpuCount": 2, "javaVersion": "1.8.0_291", "deadLockThreadCount": 0},
        "cheatWitnessInfoMap": {},
    }


def chain_parameters(ask: Ask) -> Answer:
    """Tell the network's numbers; a zero is not shown."""
    listed = ask.chain.parameters.listed()
    return {"chainParameter": [{"key": key, "value": value} if value else {"key": key} for key, value in listed]}


def energy_prices(ask: Ask) -> Answer:
    return {"prices": f"{_ENERGY_HISTORY},{_NOW_PRICED_SINCE_MS}:{ask.chain.parameters.energy_fee}"}


def bandwidth_prices(ask: Ask) -> Answer:
    return {"prices": f"{_BANDWIDTH_HISTORY},{_NOW_PRICED_SINCE_MS}:{ask.chain.parameters.transaction_fee}"}


def memo_fee(ask: Ask) -> Answer:
    return {"prices": f"0:0,{_NOW_PRICED_SINCE_MS}:{ask.chain.parameters.memo_fee}"}


def burnt(ask: Ask) -> Answer:
    return {"burnTrxAmount": ask.view.state.burned}


def witnesses(ask: Ask) -> Answer:
    shown = keys.base58 if ask.visible else bytes.hex
    return {"witnesses": [{"address": shown(address), "isJobs": True} for address in ask.chain.makers.addresses]}


def validate_address(ask: Ask) -> Answer:
    """Tell whether a text is an address, in hex or base58."""
    text = str(ask.values.get("address") or "")
    if len(text) == _HEX_CHARACTERS:
        try:
            valid = keys.is_address(bytes.fromhex(text))
        except ValueError:
            valid = False
        return {"result": valid, "message": "Hex string format" if valid else "Invalid address"}
    if len(text) != keys.BASE58_CHARACTERS:
        return {"result": False, "message": "Length error"}
    try:
        keys.address_bytes(text)
    except ValueError:
        return {"result": False, "message": "Invalid address"}
    return {"result": True, "message": "Base58check format"}


def _block(ask: Ask, found: Block | None, *, detail: bool = True) -> Answer:
    return found.to_json(visible=ask.visible, detail=detail) if found is not None else {}


def _blocks(ask: Ask, numbers: range) -> Iterator[Answer]:
    for number in numbers:
        found = ask.view.at(number)
        if found is None:
            return
        yield found.to_json(visible=ask.visible)


def _waiting(ask: Ask, tx_id: bytes) -> Answer:
    waiting = ask.view.pool.shown(tx_id) if ask.view.pool is not None and tx_id not in ask.view.hidden else None
    return waiting.to_json(visible=ask.visible) if waiting is not None else {}


QUERY_DECIDES: Final = frozenset({"getnowblock", "getnodeinfo", "getchainparameters", "listwitnesses"})
"""Here ``visible`` counts only in the URL, even in a POST."""

READS: Final[Mapping[str, Handler]] = {
    "getnowblock": now_block,
    "getblockbynum": block_by_num,
    "getblockbyid": block_by_id,
    "getblock": block,
    "getblockbylimitnext": blocks_by_limit_next,
    "getblockbylatestnum": blocks_by_latest_num,
    "gettransactioncountbyblocknum": transaction_count,
    "gettransactionbyid": transaction_by_id,
    "gettransactioninfobyid": info_by_id,
    "gettransactioninfobyblocknum": infos_by_block_num,
    "getnodeinfo": node_info,
    "getenergyprices": energy_prices,
    "getbandwidthprices": bandwidth_prices,
    "getburntrx": burnt,
    "listwitnesses": witnesses,
}
"""On both sides of the node."""

FULL_NODE_READS: Final[Mapping[str, Handler]] = {
    "getchainparameters": chain_parameters,
    "getmemofee": memo_fee,
    "gettransactionfrompending": from_pending,
    "gettransactionlistfrompending": list_from_pending,
    "getpendingsize": pending_size,
    "validateaddress": validate_address,
}
