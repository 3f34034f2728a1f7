"""Believes what came of a transaction only where its block says the same: money moves, or is given back, by it.

What a node says of a result nobody can prove. But the maker of the block has written the outcome into it, and the
header holds the root of a tree over that: with the block's hash, whichever endpoint gives the block proves the outcome.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from cambist.plugin import Block, ChainError, InconsistentChainError, TxStatus
from cambist_chainkit.pool import EndpointPool, answer_of

from .endpoint import Endpoint
from .proofs import Contents, read_contents


async def check_outcomes(pool: EndpointPool[Endpoint], endpoint: Endpoint, told: Mapping[str, TxStatus]) -> None:
    """Raise InconsistentChainError where what an endpoint says of a transaction is not what its block says."""
    mined: dict[Block, list[str]] = {}
    for tx_id, status in told.items():
        if status.block is not None:
            mined.setdefault(status.block, []).append(tx_id)

    async def check(block: Block) -> None:
        for contents in await _read(pool, endpoint, block):
            for tx_id in mined[block]:
                state = told[tx_id].state
                if (tx_id in contents.tx_ids, tx_id in contents.succeeded) != (True, state == "succeeded"):
                    said = f"{endpoint.name} says that {tx_id} has {state}, and block {block.height} does not say so"
                    raise InconsistentChainError(said)

    await endpoint.each(check, mined)


async def _read(pool: EndpointPool[Endpoint], endpoint: Endpoint, block: Block) -> list[Contents]:
    """Return the block with a proof that it is whole; where nobody has one, as all give it who have it."""
    own = await _contents(endpoint, block)
    if own is None:
        raise InconsistentChainError(f"{endpoint.name} replaced block {block.height} while it was read")
    if own.proven:
        return [own]
    found = [own]
    for other in pool.usable():
        if other is endpoint or not await pool.trusted(other):
            continue
        with suppress(ChainError):
            contents = await answer_of(other, _contents(other, block))
            if contents is not None and contents.proven:
                return [contents]
            found += [] if contents is None else [contents]
    return found


async def _contents(endpoint: Endpoint, block: Block) -> Contents | None:
    """Return what stands in the block, None where the endpoint has another one there."""
    (contents,) = await read_contents(endpoint, block.height, 1)
    return contents if contents.block.hash == block.hash else None
