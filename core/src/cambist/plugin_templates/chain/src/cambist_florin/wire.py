"""What nodes answer, as it is decoded: a field that is missing or of another kind is an error, never a default."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class NodeHead(Struct, frozen=True):
    """The newest block, and the newest one that will never be replaced."""

    height: int
    hash: str
    final_height: int


class NodeTransfer(Struct, frozen=True):
    """A transaction of a block. ``ok`` is false where it failed, and moved nothing but its fee."""

    id: str
    sender: str
    contract: str | None
    recipient: str
    amount: int
    fee: int
    ok: bool


class NodeBlock(Struct, frozen=True):
    """A block with its transactions."""

    height: int
    hash: str
    parent_hash: str
    time: int
    transfers: tuple[NodeTransfer, ...]


class NodeStatus(Struct, frozen=True):
    """What became of a transaction; ``block`` is the one that holds it, without its transactions."""

    state: Literal["unknown", "waiting", "done", "failed"]
    block: NodeBlock | None = None
    fee: int | None = None


class NodeVerdict(Struct, frozen=True):
    """What a node says to a transaction that it is handed."""

    word: str
    reason: str = ""
