"""Where the operator asks for a quorum: what one endpoint says must be said by others, too.

The others read the whole span themselves, because only that shows both a transfer that was invented and one
that was left out. It costs as many times the calls.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from cambist.plugin import ChainError, Head, InconsistentChainError, ScanResult, TxStatus

from .answers import NoAnswerError
from .gathering import gather_all
from .pool import LIAR_STRIKES, SURVEY_TIMEOUT_S, EndpointPool, answer_of
from .record import Endpoint

E = TypeVar("E", bound=Endpoint)

Said = TypeVar("Said")


async def agreed(pool: EndpointPool[E], first: E, quorum: int, ask: Callable[[E], Awaitable[Said]]) -> Said:
    """Return what the first endpoint answers once ``quorum`` endpoints, itself counted, answered the same.

    An endpoint that contradicts an agreement is set aside. Where none is reached, InconsistentChainError counts
    against the first one, so that the next poll starts with another.
    """
    others = [endpoint for endpoint in pool.usable() if endpoint is not first]
    wanted = quorum - 1
    answers = await gather_all(answer_of(first, ask(first)), *(_witness(pool, other, ask) for other in others[:wanted]))
    said: Said = answers[0]
    heard: list[tuple[E, Said | None]] = list(zip(others, answers[1:], strict=False))
    for other in others[wanted:]:
        if _agreeing(said, heard) >= wanted:
            break
        heard.append((other, await _witness(pool, other, ask)))
    if _agreeing(said, heard) < wanted:
        message = f"{first.name} says one thing, and of {quorum} endpoints that must agree {_told(said, heard)}"
        raise InconsistentChainError(message)
    for other, answer in heard:
        if answer is not None and answer != said:
            error = InconsistentChainError(f"{other.name} contradicts {quorum} endpoints that agree")
            pool.blame(other, error, strikes=LIAR_STRIKES)
    return said


async def finally_agreed(pool: EndpointPool[E], first: E, quorum: int) -> Head:
    """Return the first endpoint's head. Final is what ``quorum`` endpoints call so, as far as that head goes.

    All are asked, so that one which is late to learn of it, or never tells, holds nothing up where others suffice. What
    too few call final is not known to be: None.
    """
    others = [endpoint for endpoint in pool.usable() if endpoint is not first]
    head: Head
    told: list[Head | None]
    head, *told = await gather_all(answer_of(first, first.newest()), *(_head_soon(pool, other) for other in others))
    heights = [one.finalized_height for one in (head, *told) if one is not None and one.finalized_height is not None]
    if len(heights) < quorum:
        return replace(head, finalized_height=None)
    return replace(head, finalized_height=min(sorted(heights, reverse=True)[quorum - 1], head.height))


async def _head_soon(pool: EndpointPool[E], endpoint: E) -> Head | None:
    """Return another endpoint's head, None where it says nothing, or not soon: each poll would wait for it."""
    try:
        async with asyncio.timeout(SURVEY_TIMEOUT_S):
            return await _witness(pool, endpoint, lambda one: one.newest())
    except TimeoutError:
        pool.blame(endpoint, NoAnswerError(f"{endpoint.name} did not tell its head in {SURVEY_TIMEOUT_S} s"))
        return None


async def _witness(pool: EndpointPool[E], endpoint: E, ask: Callable[[E], Awaitable[Said]]) -> Said | None:
    """Return what another endpoint says, None where it says nothing."""
    if not await pool.trusted(endpoint):
        return None
    try:
        return await answer_of(endpoint, ask(endpoint))
    except ChainError as error:
        pool.blame(endpoint, error)
        return None


def _agreeing(said: Said, heard: Sequence[tuple[object, Said | None]]) -> int:
    return sum(answer == said for _, answer in heard)


def _told(said: Said, heard: Sequence[tuple[object, Said | None]]) -> str:
    agreeing = _agreeing(said, heard) + 1
    contradicting = sum(answer not in (None, said) for _, answer in heard)
    return f"{agreeing} do, {contradicting} contradict, and the others did not answer"


def most_agree(told: Sequence[TxStatus], quorum: int) -> TxStatus:
    """Return a transaction's fate once so many tell the same; until then it waits, if anybody has heard of it."""
    for status, count in Counter(status for status in told if status.block is not None).items():
        if count >= quorum:
            return status
    return TxStatus(state="pending" if any(status.state != "unknown" for status in told) else "unknown")


def without_traces(result: ScanResult) -> ScanResult:
    """Return the result without transfers that only some endpoints can see."""
    kept = [transfer for transfer in result.transfers if not transfer.position.startswith("trace:")]
    return ScanResult(blocks=result.blocks, transfers=kept)
