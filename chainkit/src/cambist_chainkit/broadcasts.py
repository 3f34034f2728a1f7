"""Hands transactions to every endpoint that can be asked: one that forgets them is not the end of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from cambist.plugin import Broadcast, ChainError, SignedTx

from .pool import NOBODY_NOW, EndpointPool, answer_of
from .record import Endpoint

E = TypeVar("E", bound=Endpoint)

STRAGGLERS_S: Final = 0.3

# Best first. Whoever may have let it out outweighs all who refused it.
_RANKS: Final = {
    state: rank
    for rank, state in enumerate(
        ("accepted", "unknown", "expired", "sequence_used", "underpriced", "unfunded", "rejected")
    )
}

Send = Callable[[E, Sequence[SignedTx]], Awaitable[list[Broadcast]]]


async def broadcast_to_all(
    pool: EndpointPool[E], txs: Sequence[SignedTx], send: Send[E], *, size: Callable[[E], int]
) -> list[Broadcast]:
    """Return what came of each transaction. Done when one endpoint has taken all and the others had a moment more.

    ``send`` hands an endpoint some of them in one request, at most as many as ``size`` says.
    """
    verdicts = [Broadcast(state="unknown", reason=NOBODY_NOW)] * len(txs)
    heard = False
    sending = {asyncio.create_task(_broadcast(pool, endpoint, txs, send, size)) for endpoint in pool.usable()}
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


async def _broadcast(
    pool: EndpointPool[E], endpoint: E, txs: Sequence[SignedTx], send: Send[E], size: Callable[[E], int]
) -> list[Broadcast] | None:
    """Return what one endpoint says, None where it was not asked. Once it fails, it is not asked for the rest."""
    if not await pool.trusted(endpoint):
        return None
    verdicts: list[Broadcast] = []
    while len(verdicts) < len(txs):
        some = txs[len(verdicts) : len(verdicts) + size(endpoint)]
        try:
            verdicts += await answer_of(endpoint, send(endpoint, some))
        except ChainError as error:
            pool.blame(endpoint, error)
            lost = Broadcast(state="unknown", reason=str(error))
            return [*verdicts, *[lost] * (len(txs) - len(verdicts))]
    return verdicts
