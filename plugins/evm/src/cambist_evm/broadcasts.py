"""Hands signed transactions to one node, and tells what it says to each, in its client's own words.

The first state with a phrase that matches counts, so the order matters: "replacement transaction underpriced" is about
the price, and "the method is not supported" not about the transaction at all. What no phrase fits is ``unknown``:
nobody can tell whether the transaction is out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

from cambist.plugin import Broadcast, SignedTx

from .endpoint import Endpoint
from .wire import RpcFailure

REASON_MAX: Final = 200
TEXT_MAX: Final = 1_000
"""What is read of a refusal. Nodes say it in a line, and one that says megabytes would keep the worker for minutes."""

State = Literal["accepted", "rejected", "sequence_used", "underpriced", "unfunded", "unknown"]

_PHRASES: Final[dict[State, Sequence[str]]] = {
    "accepted": [
        r"\balready[ _-]?(?:known|exists|imported)",  # geth, erigon, nethermind, anvil; ALREADY_EXISTS
        r"\bknown transaction",  # besu, old geth
        r"same hash was already imported|existing tx with same hash",  # openethereum; erigon
        r"already (?:in|exists in|present in) (?:the )?(?:tx ?pool|mem ?pool|pool|cache|queue)",
    ],
    "unfunded": [
        r"insufficient.{0,3}(?:funds|balance)",  # geth and most; nethermind in one word
        r"not enough (?:funds|balance)",
        r"doesn.t have enough (?:funds|balance)",
        r"upfront cost exceeds",  # besu
        r"exceeds (?:the )?(?:account |sender.{0,3} )?balance",
    ],
    "underpriced": [
        r"underpriced",  # geth and most, for a replacement, too
        r"could not replace",  # erigon
        r"replacementnotallowed|feetoolow",  # nethermind
        r"fee too low",  # erigon
        r"(?:less|lower|below) than (?:the )?(?:current |next |block )*(?:base|minimum)",  # geth, arbitrum
        r"(?:fee|price|tip)\b.*(?:below|too low|minimum needed)",  # besu, bsc, bor
    ],
    "sequence_used": [
        r"nonce (?:is )?(?:too (?:low|small|old)|already used|.*below)",  # geth and most; besu
        r"nonce.*(?:lower|less|smaller) than",
        r"old ?nonce",  # nethermind
    ],
    "unknown": [
        r"method|rate.?limit|too many|quota|capacity|throttl|unauthorized|forbidden|api.?key",
        r"pool is full|queue is full|limit reached|not synced|syncing",  # passes with time
        r"nonce (?:is )?too (?:high|distant|far)|nonce ?gap",  # arbitrum, besu, nethermind: what is before it lacks
        r"invalid transaction with a lower nonce",  # besu, which has refused one that comes before it
    ],
    "rejected": [
        r"intrinsic gas|floor data gas|gas uint64 overflow",
        r"gas limit.{0,20}(?:exceed|too high|greater than)|exceeds.{0,30}gas limit|gaslimitexceeded|gas too high",
        r"invalid (?:sender|signature|chain|transaction|tx|rlp|v, r, s)|wrong chain",
        r"chain.?id.{0,20}(?:mismatch|invalid|wrong|not match)",
        r"type not supported|unsupported (?:transaction|tx)|not replay.protected|only replay.protected",
        r"(?:tip|priority fee).*(?:above|higher|greater|exceeds).*(?:fee|max)",
        r"exceeds the configured cap|oversized|negative value|sender (?:is )?not an? eoa|initcode",
        r"\brlp\b|could not decode|failed to decode|malformed|unmarshal",
    ],
}
_TABLE: Final = [(state, re.compile("|".join(phrases), re.IGNORECASE)) for state, phrases in _PHRASES.items()]


async def send(endpoint: Endpoint, txs: Sequence[SignedTx]) -> list[Broadcast]:
    """Return one answer for each transaction, in their order. Raises ChainError."""
    answers = await endpoint.request([("eth_sendRawTransaction", ("0x" + tx.raw.hex(),)) for tx in txs], str)
    return [_verdict(tx, answer) for tx, answer in zip(txs, answers, strict=True)]


def _verdict(tx: SignedTx, answer: str | RpcFailure | None) -> Broadcast:
    if isinstance(answer, RpcFailure):
        return verdict_on(answer)
    if answer is None or answer.lower() != tx.tx_id:
        return Broadcast(state="unknown", reason=f"the node calls it {str(answer)[:80]}")
    return Broadcast(state="accepted")


def verdict_on(failure: RpcFailure) -> Broadcast:
    """Return what a node's refusal of a transaction means."""
    detail = failure.data if isinstance(failure.data, str) and not failure.data.startswith("0x") else ""
    text = f"{failure.message[:TEXT_MAX]} {detail[:TEXT_MAX]}".strip()
    found: list[State] = [state for state, pattern in _TABLE if pattern.search(text)]
    return Broadcast(state=found[0] if found else "unknown", reason=text[:REASON_MAX] or f"error {failure.code}")
