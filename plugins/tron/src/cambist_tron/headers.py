"""Proves that a block's id is its own: the hash of the header that came with it, behind its number."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from cambist.plugin import Block, InconsistentChainError
from cambist_chainkit.spans import TIME_MAX

from .protobuf import encode
from .wire import RawHeader, TronHeader

NOTHING: Final = "00" * 32
"""The root of no transactions at all; and the parent of the first block, which says of its own what it likes."""

BLOCK_ID: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_NUMBER_CHARS: Final = 16


def check_header(block: TronHeader, height: int) -> Block:
    """Return the block's id, parent and time. Raises InconsistentChainError unless its header proves this height."""
    header = block.raw
    if header.number != height:
        raise InconsistentChainError(f"block {height} was asked for and block {header.number} came")
    parent_hash = header.parent_hash if height else NOTHING
    if BLOCK_ID.fullmatch(block.id) is None or BLOCK_ID.fullmatch(parent_hash) is None:
        raise InconsistentChainError(f"block {height} came without an id")
    # The first block is what a network is known by: its id is compared, and need not prove anything.
    if height and block.id != id_of(header):
        raise InconsistentChainError(f"block {height} came with an id that is not its header's")
    if not 0 <= header.timestamp // 1000 <= TIME_MAX:
        raise InconsistentChainError(f"block {height} came from a time that will not be")
    return Block(height=height, hash=block.id, parent_hash=parent_hash, time=header.timestamp // 1000)


def id_of(header: RawHeader) -> str:
    """Return the id of the block with this header. Raises InconsistentChainError where there is none."""
    try:
        raw = encode(
            {
                1: header.timestamp,
                2: bytes.fromhex(header.tx_trie_root),
                3: bytes.fromhex(header.parent_hash),
                7: header.number,
                8: header.witness_id,
                9: bytes.fromhex(header.witness_address),
                10: header.version,
                11: bytes.fromhex(header.account_state_root),
            }
        )
    except ValueError as error:
        raise InconsistentChainError(f"block {header.number} came with a header that cannot be") from error
    return header.number.to_bytes(8, "big").hex() + hashlib.sha256(raw).hexdigest()[_NUMBER_CHARS:]
