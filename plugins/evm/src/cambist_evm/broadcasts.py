"""Hands transactions to every endpoint that can be asked: one that forgets them is not the end of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from cambist.plugin import Broadcast, ChainError, SignedTx

from .endpoint import TEXT, Endpoint
from .pool import EndpointPool
from .verdicts import verdict_on
from .wire import RpcFailure

STRAGGLERS_S: Final = 0.3

# Best first. Whoever may have let it out outweighs all who refused it.
_RANKS: Final = {"accepted": 0, "unknown": 1, "sequence_used": 2, "underpriced": 3, "unfunded": 4, "rejected": 5}


async def broadcast_to_all(pool: EndpointPool, txs: Sequence[SignedTx], chain: str) -> list[Broadcast]:
    """Return what came of each transaction. Done when one endpoint has taken all and the others had a moment more."""
    verdicts = [Broadcast(state="unknown", reason=f"no endpoint of {chain} can be asked now")] * len(txs)
    heard = False
    sending = {asyncio.create_task(_broadcast(pool, endpoint, txs)) for endpoint in pool.usable()}
    try:
        while sending:
            all_out = all(verdict.state == "accepted" for verdict in verdicts)
            done, sending = await asyncio.wait(
                sending, timeout=STRAGGLERS_S if all_out else None, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                break
            for said in (task.result() for task in done):
                if said is not None:
                    verdicts = list(map(_better, verdicts, said)) if heard else said
                    heard = True
    finally:
        for task in sending:
            task.cancel()
        await asyncio.gather(*sending, return_exceptions=True)
    return verdicts


def _better(one: Broadcast, other: Broadcast) -> Broadcast:
    return one if _RANKS[one.state] <= _RANKS[other.state] else other


async def _broadcast(pool: EndpointPool, endpoint: Endpoint, txs: Sequence[SignedTx]) -> list[Broadcast] | None:
    """Return what one endpoint says, None where it was not asked. Once it fails, it is not asked for the rest."""
    if not await pool.trusted(endpoint):
        return None
    verdicts: list[Broadcast] = []
    while len(verdicts) < len(txs):
        some = txs[len(verdicts) : len(verdicts) + endpoint.short_calls_max]
        try:
            answers = await endpoint.request([("eth_sendRawTransaction", ("0x" + tx.raw.hex(),)) for tx in some], TEXT)
        except ChainError as error:
            pool.blame(endpoint, error)
            lost = Broadcast(state="unknown", reason=str(error))
            return [*verdicts, *[lost] * (len(txs) - len(verdicts))]
        verdicts += map(_verdict, some, answers)
    return verdicts


def _verdict(tx: SignedTx, answer: str | RpcFailure | None) -> Broadcast:
    if isinstance(answer, RpcFailure):
        return verdict_on(answer)
    if answer is None or answer.lower() != tx.tx_id:
        return Broadcast(state="unknown", reason=f"the node calls it {str(answer)[:80]}")
    return Broadcast(state="accepted")
