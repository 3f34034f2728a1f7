"""Recorded answers of real nodes, as the plugin decodes them."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from cambist.plugin import Transfer
from cambist_tron.addresses import spell
from cambist_tron.wire import TronBlock, TxInfo

Json = dict[str, Any]


def decoded_block(block: Json) -> TronBlock:
    """Decode by way of text, as in production."""
    return msgspec.json.decode(json.dumps(block), type=TronBlock)


def decoded_infos(infos: list[Json]) -> list[TxInfo]:
    """Decode by way of text, as in production."""
    return msgspec.json.decode(json.dumps(infos), type=list[TxInfo])


def told(transfers: list[Transfer]) -> list[tuple[str, str, str, int]]:
    """Return the beginnings of ids, the positions, the recipients and the amounts."""
    return [(one.tx_id[:8], one.position, one.recipient, one.amount) for one in transfers]


def address(digits: str) -> str:
    """Return the text of an address of 20 bytes in hex."""
    return spell(bytes.fromhex(digits))
