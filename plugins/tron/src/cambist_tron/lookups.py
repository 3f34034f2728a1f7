"""What became of transactions: many at once out of the newest blocks, single ones by their ids."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from cambist.plugin import Block, InconsistentChainError, TxStatus, Units
from cambist_chainkit.answers import UnsupportedError
from cambist_chainkit.gathering import gather_all

from .decode import check_infos, check_transactions, succeeded
from .endpoint import Endpoint
from .headers import check_header
from .protobuf import NUMBER_MAX
from .replies import Listed, Result, Waiting
from .wire import TronBlock, TxInfo

SINGLY_MAX: Final = 3
"""So few are asked for by their ids: reading blocks for them would cost more."""

BLOCKS_KEPT: Final = 64
"""More than three times as many as it takes a block to become final."""

CATCH_UP_MAX: Final = 20
"""Where more blocks than that came since the last read, reading starts anew at the newest."""

ABSENCES_KEPT: Final = 10_000


class Known(Struct, frozen=True):
    """A block, and what became of each of its transactions."""

    block: Block
    statuses: Mapping[str, TxStatus]


class Lookups:
    """Looks transactions up. Each endpoint has a window of its own, so that no two of them speak with one voice."""

    def __init__(self) -> None:
        self._windows: dict[str, Window] = {}

    async def statuses(self, endpoint: Endpoint, tx_ids: Sequence[str]) -> dict[str, TxStatus]:
        distinct = list(dict.fromkeys(tx_ids))
        if len(distinct) <= SINGLY_MAX:
            return await by_id(endpoint, distinct, distinct)
        window = self._windows.setdefault(endpoint.name, Window())
        async with window.reading:
            newest = await window.catch_up(endpoint)
        found = window.find(distinct)
        missing = [tx_id for tx_id in distinct if tx_id not in found]
        asked = window.not_absent(missing)
        singly = await by_id(endpoint, missing, asked)
        # Only what was asked for just now: a node that did not know of it yet would else never be asked again.
        window.note_absent([tx_id for tx_id in asked if singly[tx_id].state == "unknown"], newest)
        return found | singly


class Window:
    """The newest blocks of one endpoint, each hash-linked to the next, and what came of their transactions.

    ``_absent`` says up to which height no block held a transaction, as it was asked for by its id. As long as every
    block since then is kept, it is not asked for again: a few minutes, as the answer may have been a lagging node's.
    """

    def __init__(self) -> None:
        self.reading = asyncio.Lock()
        self._kept: OrderedDict[int, Known] = OrderedDict()
        self._absent: OrderedDict[str, int] = OrderedDict()

    async def catch_up(self, endpoint: Endpoint) -> int:
        """Read the blocks that came since the last read; first drop those that are no longer the chain's.

        Return the newest one's height.
        """
        head = (await endpoint.newest()).height
        await self._drop_replaced(endpoint, head)
        newest = max(self._kept, default=None)
        if newest is None or head - newest > CATCH_UP_MAX:
            self._kept.clear()
            newest = head - 1
        for known in await endpoint.each(
            lambda height: _read_with_retry(endpoint, height), range(newest + 1, head + 1)
        ):
            last = self._kept.get(known.block.height - 1)
            if last is not None and last.block.hash != known.block.parent_hash:
                self._forget()
                raise InconsistentChainError(f"{endpoint.name} replaced block {last.block.height} while it was read")
            self._kept[known.block.height] = known
        while len(self._kept) > BLOCKS_KEPT:
            self._kept.popitem(last=False)
        return head

    async def _drop_replaced(self, endpoint: Endpoint, head: int) -> None:
        while self._kept and max(self._kept) > head:
            self._forget(max(self._kept))
        while self._kept:
            height = max(self._kept)
            if (await endpoint.block(height)).hash == self._kept[height].block.hash:
                return
            self._forget(height)

    def _forget(self, height: int | None = None) -> None:
        """Forget the block at a height, or all; and with either what is said to be in no block."""
        self._absent.clear()
        if height is None:
            self._kept.clear()
        else:
            del self._kept[height]

    def find(self, tx_ids: Sequence[str]) -> dict[str, TxStatus]:
        return {
            tx_id: status
            for tx_id in tx_ids
            for known in self._kept.values()
            if (status := known.statuses.get(tx_id)) is not None
        }

    def not_absent(self, tx_ids: Sequence[str]) -> list[str]:
        """Return those that may stand in a block that is not kept."""
        first = min(self._kept, default=0)
        return [tx_id for tx_id in tx_ids if tx_id not in self._absent or self._absent[tx_id] + 1 < first]

    def note_absent(self, tx_ids: Sequence[str], height: int) -> None:
        """Keep in mind that no block up to this one holds these transactions."""
        for tx_id in tx_ids:
            self._absent[tx_id] = height
        while len(self._absent) > ABSENCES_KEPT:
            self._absent.popitem(last=False)


async def by_id(endpoint: Endpoint, tx_ids: Sequence[str], perhaps_mined: Sequence[str]) -> dict[str, TxStatus]:
    """Ask for each by its id: whether a block holds it, or it waits. Of many, those that wait are told at once."""
    many = len(tx_ids) > SINGLY_MAX
    waiting = await _waiting(endpoint, tx_ids) if many else set()
    asked = [tx_id for tx_id in perhaps_mined if tx_id not in waiting]
    results = await endpoint.each(lambda tx_id: _result(endpoint, tx_id), asked)
    mined = {tx_id: result for tx_id, result in zip(asked, results, strict=True) if result is not None}
    heights = sorted({result.block_number for result in mined.values()})
    blocks = dict(zip(heights, await endpoint.each(endpoint.block, heights), strict=True))
    if not many:
        waiting = await _waiting(endpoint, [tx_id for tx_id in tx_ids if tx_id not in mined])
    found = {tx_id: TxStatus(state="pending" if tx_id in waiting else "unknown") for tx_id in tx_ids}
    for tx_id, result in mined.items():
        block = blocks[result.block_number]
        # The one thing that a result says of its block.
        if result.block_time_ms // 1000 != block.time:
            raise InconsistentChainError(f"{endpoint.name} has a result of {result.id} that fits no block")
        found[tx_id] = _status(block, result)
    return found


async def read_known(endpoint: Endpoint, height: int) -> Known:
    """Read a block and what came of its transactions. Raises InconsistentChainError unless all fits together."""
    blocks, infos = await gather_all(endpoint.blocks(height, 1), endpoint.infos(height))
    found: TronBlock = blocks[0]
    block = check_header(found, height)
    check_transactions(found, height)
    results = check_infos(found, infos, height)
    return Known(block, {result.id: _status(block, result) for result in results})


async def _read_with_retry(endpoint: Endpoint, height: int) -> Known:
    """Read a block, and once more where its parts do not fit: behind one address there may be nodes in turns."""
    try:
        return await read_known(endpoint, height)
    except InconsistentChainError:
        return await read_known(endpoint, height)


def _status(block: Block, result: TxInfo) -> TxStatus:
    if not 0 <= result.fee <= NUMBER_MAX:
        raise InconsistentChainError(f"transaction {result.id[:80]} came with a fee that cannot be")
    return TxStatus(state="succeeded" if succeeded(result) else "reverted", block=block, fee=Units(result.fee))


async def _result(endpoint: Endpoint, tx_id: str) -> Result | None:
    result = await endpoint.post("wallet/gettransactioninfobyid", {"value": tx_id}, Result)
    if not result.id and not result.block_number:
        return None
    if result.id != tx_id:
        raise InconsistentChainError(f"{endpoint.name} was asked for {tx_id}, and answered with {result.id[:80]}")
    return result


async def _waiting(endpoint: Endpoint, tx_ids: Sequence[str]) -> set[str]:
    """Return which of them wait at the endpoint to be mined; none where it does not tell.

    Whoever asks sends them again, which is no harm: that they are in no block is what counts.
    """
    if endpoint.lacks("pending"):
        return set()
    if len(tx_ids) > SINGLY_MAX:
        try:
            listed = await endpoint.post("wallet/gettransactionlistfrompending", {}, Waiting)
        except UnsupportedError:
            pass
        else:
            return set(tx_ids).intersection(listed.tx_ids)
    try:
        found = await gather_all(
            *(endpoint.post("wallet/gettransactionfrompending", {"value": tx_id}, Listed) for tx_id in tx_ids)
        )
    except UnsupportedError:
        endpoint.note_lack("pending")
        return set()
    return {tx_id for tx_id, one in zip(tx_ids, found, strict=True) if one.tx_id == tx_id}
