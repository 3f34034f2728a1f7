"""Proves that transactions are dead: their time is over for good, and no block in which they could stand holds them.

That a node does not know an id is no proof: it may hide it, lag behind, or keep no such index. What counts is the
blocks themselves, each proven to be whole and to stand on the one before, up to one that is solid and is not replaced.
Every endpoint that can be asked reads them, and what one of them finds, the others cannot deny.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

import structlog
from msgspec import Struct

from cambist.plugin import Block, ChainError, Dated, InconsistentChainError, SpanTooWideError, StateUnavailableError
from cambist_chainkit.pool import EndpointPool
from cambist_chainkit.spans import check_links

from .endpoint import Endpoint
from .lookups import by_id
from .networks import BLOCK_S
from .proofs import Contents, read_contents
from .wire import MaybeHeader
from .writing import LIFETIME_S

log = structlog.get_logger(__name__)

MARGIN_S: Final = 120
"""A transaction is looked for so much earlier than it can have been written, by clocks that may differ."""

DYING_TOGETHER_S: Final = 60
"""Transactions that die so close to each other are looked for in the same blocks."""

BATCH_BLOCKS: Final = 10
BLOCKS_MAX: Final = 600
"""So many blocks each endpoint reads for one call. Whoever would need more is not dead until a later call."""

READING_S: Final = 20.0
"""When reading for one call has taken so long, nothing more is begun: whoever asks has other things to do."""

TRIED_KEPT: Final = 10_000
UNROOTED: Final = "the root of a block cannot be put together again: it takes two endpoints that say the same"

LINKED_BLOCKS_MAX: Final = 40
"""From so far below it, blocks are followed up to the newest solid one; from farther, the node says which is solid."""


class Group(Struct, frozen=True, kw_only=True):
    """Transactions that die at about the same time, and the times between which they can have been mined."""

    txs: tuple[Dated, ...]
    first_s: int
    last_s: int


class BlockRange(Struct, frozen=True, kw_only=True):
    """Solid blocks in a row as one endpoint has them: the ids that stand in them, and the last block.

    ``proven`` says that their headers prove that these are all the ids.
    """

    tx_ids: frozenset[str]
    proven: bool
    last: Block
    length: int


class Expiry:
    """Proves on one chain that transactions are dead. Those that could not be proven it tries again after all others.

    Else a few whose blocks no node keeps any more, or cannot prove, would be read over and over before the rest.
    """

    def __init__(self, pool: EndpointPool[Endpoint], monotonic: Callable[[], float], *, quorum: int = 1) -> None:
        self._pool = pool
        self._quorum = quorum
        self._now = monotonic
        self._round = 0
        self._tried: OrderedDict[str, int] = OrderedDict()

    async def expired(self, txs: Sequence[Dated]) -> list[bool]:
        """Say of each transaction whether it is proven dead. In doubt it is not. Raises ChainError.

        As many endpoints as the quorum must have read all of the blocks. What was proven before an endpoint failed
        counts; whom there was no room or no time for, a later call looks for.
        """
        dead: set[Dated] = set()
        left, until, looked = BLOCKS_MAX, self._now() + READING_S, False
        self._round += 1
        for group in sorted(groups_of(txs), key=self._last_tried):
            if looked and self._now() >= until:
                break
            try:
                found, length = await self._dead_of(group, left)
            except ChainError as error:
                self._note_tried(group)
                if not looked:
                    raise
                self._tell_unproven(group, 0, str(error))
                break
            dead |= found
            left -= length
            looked = True
        return [tx in dead for tx in txs]

    async def _dead_of(self, group: Group, blocks_max: int) -> tuple[set[Dated], int]:
        """Return those of a group that are proven dead, and how many blocks were read for it. Raises ChainError."""
        lacking: list[str] = []

        async def read(endpoint: Endpoint) -> BlockRange | None:
            try:
                return await read_range(endpoint, group, blocks_max)
            except StateUnavailableError as error:
                lacking.append(str(error))
                return None

        stretches = [one for one in await self._pool.ask_all(read) if one is not None]
        if len({stretch.last.hash for stretch in stretches}) > 1:
            raise InconsistentChainError(f"endpoints of {self._pool.chain} have different solid blocks")
        length = max((stretch.length for stretch in stretches), default=0)
        # Where the headers do not prove that nothing was left out, it takes two that say the same.
        witnesses = self._quorum if all(stretch.proven for stretch in stretches) else max(self._quorum, 2)
        if len(stretches) < witnesses:
            if stretches or lacking:
                self._note_tried(group)
            if lacking or len(stretches) >= self._quorum:
                self._tell_unproven(group, len(stretches), lacking[0] if lacking else UNROOTED)
            return set(), length
        missing = [tx for tx in group.txs if all(tx.tx_id not in stretch.tx_ids for stretch in stretches)]
        known = await _known(self._pool, [tx.tx_id for tx in missing])
        return {tx for tx in missing if tx.tx_id not in known}, length

    def _last_tried(self, group: Group) -> tuple[int, int]:
        return max(self._tried.get(tx.tx_id, 0) for tx in group.txs), group.last_s

    def _note_tried(self, group: Group) -> None:
        for tx in group.txs:
            self._tried[tx.tx_id] = self._round
            self._tried.move_to_end(tx.tx_id)
        while len(self._tried) > TRIED_KEPT:
            self._tried.popitem(last=False)

    def _tell_unproven(self, group: Group, asked: int, why: str) -> None:
        """Log that blocks prove nothing or are not kept: with no other endpoints these transactions wait for ever."""
        log.warning("expiry_unproven", chain=self._pool.chain, txs=len(group.txs), endpoints=asked, error=why)


def groups_of(txs: Sequence[Dated]) -> list[Group]:
    """Return the transactions in groups, each to be looked for in one stretch of blocks; the oldest first."""
    groups: list[Group] = []
    gathered: list[Dated] = []
    for tx in sorted(set(txs), key=lambda tx: (tx.valid_until, tx.tx_id)):
        if gathered and tx.valid_until - gathered[0].valid_until > DYING_TOGETHER_S:
            groups.append(_group(gathered))
            gathered = []
        gathered.append(tx)
    return [*groups, _group(gathered)] if gathered else groups


def _group(txs: Sequence[Dated]) -> Group:
    first, last = txs[0].valid_until, txs[-1].valid_until
    return Group(txs=tuple(txs), first_s=first - LIFETIME_S - MARGIN_S, last_s=last)


async def read_range(endpoint: Endpoint, group: Group, blocks_max: int) -> BlockRange | None:
    """Read every block in which one of the group could stand.

    The first block that is later than their time belongs to them: nodes judge a block's transactions by the time of
    the block before it. Returns None where that one is not solid yet, or there are more than ``blocks_max``.
    Raises StateUnavailableError where the endpoint does not keep them.
    """
    solid = await endpoint.block((await endpoint.newest()).finalized_height or 0)
    if solid.time <= group.last_s:
        return None
    first = await _first_later(endpoint, group.first_s, solid)
    last = await _first_later(endpoint, group.last_s, solid)
    length = last.height - first.height + 1
    if length > blocks_max:
        return None
    top = solid if solid.height - last.height <= LINKED_BLOCKS_MAX else last
    read = await _read(endpoint, first.height, top.height)
    if [read[at].block.hash for at in (0, length - 1, -1)] != [first.hash, last.hash, top.hash]:
        raise InconsistentChainError(f"{endpoint.name} replaced block {top.height} while it was read")
    await _check_solid(endpoint, top)
    return BlockRange(
        tx_ids=frozenset().union(*(one.tx_ids for one in read[:length])),
        proven=all(one.proven for one in read[:length]),
        last=last,
        length=length,
    )


async def _first_later(endpoint: Endpoint, time_s: int, solid: Block) -> Block:
    """Return the first block that is later than the time, which the solid one is."""
    # Blocks are at least so far apart, so this one is not later. Should it be, the search starts at the beginning.
    low = max(solid.height - (solid.time - time_s) // BLOCK_S - 1, 0)
    if low and (await _kept(endpoint, low)).time > time_s:
        low = 0
    # Few slots are missed, so it is close behind: steps double until one is too far, and what is left is halved.
    high, step = solid, 1
    while high.height - low > 1:
        at = min(low + step, (low + high.height) // 2)
        found = await _kept(endpoint, at)
        if found.time > time_s:
            high = found
        else:
            low, step = at, step * 2
    return high


async def _kept(endpoint: Endpoint, height: int) -> Block:
    """Return a block below the solid one. Raises StateUnavailableError where there is none: many keep only a part."""
    found = await endpoint.find(height)
    if found is None:
        raise StateUnavailableError(f"{endpoint.name} does not keep block {height}, in which it may stand")
    return found


async def _read(endpoint: Endpoint, first: int, last: int) -> list[Contents]:
    """Return the blocks, each standing on the one before. Fewer at a time where so many are too long an answer."""
    read: list[Contents] = []
    at_once = BATCH_BLOCKS
    while (start := first + len(read)) <= last:
        count = min(at_once, last + 1 - start)
        try:
            read += await read_contents(endpoint, start, count)
        except SpanTooWideError:
            if count == 1:
                raise
            at_once = count // 2
    check_links([one.block for one in read])
    return read


async def _check_solid(endpoint: Endpoint, block: Block) -> None:
    """Raise InconsistentChainError where the node's solid state has another block at this height, or none.

    Behind one address may be many nodes: what one of them calls solid says nothing of the blocks that another gives.
    """
    found = await endpoint.post("walletsolidity/getblockbynum", {"num": block.height}, MaybeHeader)
    if found.id != block.hash:
        raise InconsistentChainError(f"{endpoint.name} has another solid block {block.height} than it gave before")


async def _known(pool: EndpointPool[Endpoint], tx_ids: Sequence[str]) -> set[str]:
    """Return those that any endpoint has heard of."""
    if not tx_ids:
        return set()
    told = await pool.ask_all(lambda endpoint: by_id(endpoint, tx_ids, tx_ids))
    return {tx_id for one in told for tx_id, status in one.items() if status.state != "unknown"}
