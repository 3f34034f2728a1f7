"""What a node's words mean to the gateway. In doubt it is ``unknown``: then the gateway asks again, and loses nothing."""

from __future__ import annotations

from typing import Literal

from cambist.plugin import Broadcast, TxStatus, Units

from .endpoint import header_of
from .wire import NodeStatus, NodeVerdict

BroadcastState = Literal["accepted", "rejected", "sequence_used", "underpriced", "unfunded"]

_VERDICTS: dict[str, BroadcastState] = {
    "taken": "accepted",
    "known": "accepted",
    "late": "sequence_used",
    "cheap": "underpriced",
    "poor": "unfunded",
    "bad": "rejected",
}


def status_of(status: NodeStatus) -> TxStatus:
    """Return what is known of a transaction."""
    if status.block is None:
        return TxStatus(state="pending" if status.state == "waiting" else "unknown")
    return TxStatus(
        state="succeeded" if status.state == "done" else "reverted",
        block=header_of(status.block),
        fee=None if status.fee is None else Units(status.fee),
    )


def verdict_of(verdict: NodeVerdict) -> Broadcast:
    """Return what came of a broadcast; a word that nobody knows proves nothing."""
    return Broadcast(state=_VERDICTS.get(verdict.word, "unknown"), reason=verdict.reason)
