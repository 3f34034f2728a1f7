"""Blocks and the chain they make: numbers, ids, links, roots over transactions, and who made them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from . import keys, proto
from .params import BLOCK_MS
from .state import Layer
from .transactions import Transaction

VERSION: Final = 36
"""The protocol's version that blocks carry."""

MAINNET: Final = 728126428
NILE: Final = 3448148188
SHASTA: Final = 2494104990

_GENESIS: Final[Mapping[int, str]] = {
    MAINNET: "00000000000000001ebf88508a03865c71d452e25f4d51194196a1d22b6653dc",
    NILE: "0000000000000000d698d4192c56cb6be724a558448e2684802de4d6cd8690dc",
    SHASTA: "0000000000000000de1aa88295e1fcf982742f773e0419c5a9c134c994a9059e",
}
_SOLID_PERCENT: Final = 70


class Block(msgspec.Struct):
    """One block, what came of its transactions, and how to undo it.

    ``mark`` is the machine's state after it. ``infos`` are TransactionInfo messages in the transactions' order.
    """

    number: int
    id: bytes
    header: Any
    transactions: Sequence[Transaction] = ()
    infos: Sequence[Any] = ()
    undo: Layer = {}
    mark: int = 0

    @property
    def timestamp_ms(self) -> int:
        """When it was made, by the chain's time."""
        return int(self.header.raw_data.timestamp)

    @property
    def named(self) -> str:
        """Number and id, as nodes tell of themselves."""
        return f"Num:{self.number},ID:{self.id.hex()}"

    def to_json(self, *, visible: bool = False, detail: bool = True) -> dict[str, Any]:
        header = {"raw_data": proto.to_json(self.header.raw_data, visible=visible)}
        shown: dict[str, Any] = {"blockID": self.id.hex(), "block_header": header}
        if self.header.witness_signature:
            header["witness_signature"] = self.header.witness_signature.hex()
        if detail and self.transactions:
            shown["transactions"] = [each.to_json(visible=visible) for each in self.transactions]
        return shown


class Representatives:
    """The witnesses who make the blocks in turns."""

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError("somebody must make the blocks")
        self._keys = [keys.named_key(f"representative {number}") for number in range(count)]
        self.addresses: Sequence[bytes] = [keys.address_of(key) for key in self._keys]

    def at(self, position: int) -> bytes:
        """Return the representative at this position of the rotation."""
        return self.addresses[position % len(self._keys)]

    def seal(self, header: Any, position: int) -> None:  # noqa: ANN401 - a message
        """Sign a block's header."""
        header.witness_signature = keys.sign(self._keys[position % len(self._keys)], header_digest(header.raw_data))

    @property
    def behind(self) -> int:
        """How far behind the head the newest block is that seven in ten of them have built on."""
        count = len(self._keys)
        return count - 1 - int(count * (1 - _SOLID_PERCENT / 100))


class Blocks:
    """The chain, by number and by id."""

    def __init__(self, chain_id: int) -> None:
        """Start with the genesis block, whose id tells which chain it is."""
        self._blocks = [_genesis(chain_id)]
        self._numbers = {self._blocks[0].id: 0}

    @property
    def head(self) -> Block:
        return self._blocks[-1]

    def at(self, number: int) -> Block | None:
        return self._blocks[number] if 0 <= number < len(self._blocks) else None

    def by_id(self, block_id: bytes) -> Block | None:
        number = self._numbers.get(block_id)
        return None if number is None else self._blocks[number]

    def since(self, number: int) -> Sequence[Block]:
        """Return the blocks above this number, oldest first."""
        return self._blocks[number + 1 :]

    def append(self, block: Block) -> None:
        self._blocks.append(block)
        self._numbers[block.id] = block.number

    def pop(self) -> Block:
        block = self._blocks.pop()
        del self._numbers[block.id]
        return block


def make(
    parent: Block, transactions: Sequence[Transaction], timestamp_ms: int, makers: Representatives, position: int
) -> Block:
    number = parent.number + 1
    raw = proto.new(
        "HeaderRaw", timestamp=timestamp_ms, txTrieRoot=merkle_root([each.merkle_leaf for each in transactions]),
        parentHash=parent.id, number=number, witness_address=makers.at(position), version=VERSION,
    )  # fmt: skip
    header = proto.new("BlockHeader", raw_data=raw)
    makers.seal(header, position)
    return Block(number, block_id(raw), header, transactions)


def header_digest(raw_header: Any) -> bytes:  # noqa: ANN401 - a message
    """Return the hash of a block's header, which its representative signs."""
    return hashlib.sha256(raw_header.SerializeToString()).digest()


def block_id(raw_header: Any) -> bytes:  # noqa: ANN401 - a message
    """Return a block's id: its number, and the rest of its header's hash."""
    return int(raw_header.number).to_bytes(8, "big") + header_digest(raw_header)[8:]


def merkle_root(leaves: Sequence[bytes]) -> bytes:
    """Return the root over these leaves; one that has no partner goes up as it is."""
    if not leaves:
        return bytes(32)
    level = list(leaves)
    while len(level) > 1:
        pairs = (level[start : start + 2] for start in range(0, len(level), 2))
        level = [hashlib.sha256(pair[0] + pair[1]).digest() if len(pair) > 1 else pair[0] for pair in pairs]
    return level[0]


def genesis_id(chain_id: int) -> bytes:
    """Return the id of a chain's first block; it ends with the chain id."""
    known = _GENESIS.get(chain_id)
    if known is not None:
        return bytes.fromhex(known)
    return bytes(8) + b"cambist local chain ".ljust(20) + chain_id.to_bytes(4, "big")


def slot_after(timestamp_ms: int, now_ms: int) -> int:
    """Return the time of the next block: one slot later, or by the clock where that is ahead."""
    return max(timestamp_ms + BLOCK_MS, now_ms // BLOCK_MS * BLOCK_MS)


def _genesis(chain_id: int) -> Block:
    header = proto.new("BlockHeader")
    header.raw_data.txTrieRoot = bytes(32)
    return Block(0, genesis_id(chain_id), header)
