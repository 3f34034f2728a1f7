"""Hands signed transactions to one node and reads what it says to each."""

from __future__ import annotations

from collections.abc import Sequence

from cambist.plugin import Broadcast, SignedTx

from .endpoint import TEXT, Endpoint
from .verdicts import verdict_on
from .wire import RpcFailure


async def send(endpoint: Endpoint, txs: Sequence[SignedTx]) -> list[Broadcast]:
    """Return one answer for each transaction, in their order. Raises ChainError."""
    answers = await endpoint.request([("eth_sendRawTransaction", ("0x" + tx.raw.hex(),)) for tx in txs], TEXT)
    return [_verdict(tx, answer) for tx, answer in zip(txs, answers, strict=True)]


def _verdict(tx: SignedTx, answer: str | RpcFailure | None) -> Broadcast:
    if isinstance(answer, RpcFailure):
        return verdict_on(answer)
    if answer is None or answer.lower() != tx.tx_id:
        return Broadcast(state="unknown", reason=f"the node calls it {str(answer)[:80]}")
    return Broadcast(state="accepted")
