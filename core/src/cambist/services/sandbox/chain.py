"""A simulated chain as the gateway reads it: through the same door as a real one, from tables instead of a node."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Literal, NoReturn

import msgspec
from sqlalchemy import and_, bindparam, func, select

from cambist.db.engine import Database
from cambist.db.models import SandboxBlock, SandboxTransfer
from cambist.db.models import SandboxChain as ChainTable
from cambist.db.structs import AnyRow, AnySelect
from cambist.plugin import (
    AddressFamily,
    Block,
    Broadcast,
    Chain,
    ChainInfo,
    ChainUnavailableError,
    ChainView,
    Fee,
    Head,
    InconsistentChainError,
    Intent,
    Plan,
    ScanResult,
    SignedTx,
    Span,
    Step,
    Token,
    Transfer,
    TxStatus,
    Units,
    UnsignedTx,
    Watch,
)

from .blocks import GIVEN, NOBODY, forgotten_hash, given, own

SPAN_BLOCKS_MAX = 1000

_BLOCK = (SandboxBlock.height, SandboxBlock.hash, SandboxBlock.parent_hash, SandboxBlock.mined_at)
_HEAD = (
    select(ChainTable.height, SandboxBlock.hash)
    .join(SandboxBlock, and_(own(SandboxBlock, *GIVEN), SandboxBlock.height == ChainTable.height))
    .where(own(ChainTable, *GIVEN))
)
_BLOCKS = select(*_BLOCK).where(
    own(SandboxBlock, *GIVEN), SandboxBlock.height.between(bindparam("first"), bindparam("last"))
)
_MINED = (
    select(SandboxTransfer)
    .where(own(SandboxTransfer, *GIVEN), SandboxTransfer.height.between(bindparam("first"), bindparam("last")))
    .where(~SandboxTransfer.reverts)
    .order_by(SandboxTransfer.height, SandboxTransfer.id)
)


class SandboxChain(Chain):
    """One project's simulated chain. ``sandbox/blocks.py`` writes what is read here."""

    def __init__(self, db: Database, info: ChainInfo, family: AddressFamily, project_pk: int) -> None:
        self.info = msgspec.structs.replace(info, availability="simulated", span_max=SPAN_BLOCKS_MAX)
        self.family = family
        self.project_pk = project_pk
        self._db = db

    @asynccontextmanager
    async def view(self) -> AsyncIterator[ChainView]:
        """Look at the tables. What changes meanwhile does not fit together any more, and is noticed by that."""
        yield SandboxView(self)

    async def balance(self, address: str, token: Token, at: int | None = None) -> Units:
        """Sum up what the address was sent. Collections are only booked, so nothing that left it can be subtracted."""
        received = select(func.sum(SandboxTransfer.units).label("units")).where(
            own(SandboxTransfer, *GIVEN),
            SandboxTransfer.recipient == address,
            SandboxTransfer.contract.is_not_distinct_from(token.contract),
            SandboxTransfer.height <= func.coalesce(at, SandboxTransfer.height),
            ~SandboxTransfer.reverts,
        )
        return Units((await self.rows(received))[0].units or 0)

    async def transaction(self, tx_id: str) -> TxStatus:
        """Look for the transaction; it waits where a reorganisation gave it back."""
        block = and_(own(SandboxBlock, *GIVEN), SandboxBlock.height == SandboxTransfer.height)
        columns = SandboxTransfer.reverts, *_BLOCK
        found = select(*columns).outerjoin(SandboxBlock, block).where(own(SandboxTransfer, *GIVEN))
        rows = await self.rows(found.where(SandboxTransfer.tx_id == tx_id).limit(1))
        if not rows:
            return TxStatus(state="unknown")
        if rows[0].height is None:
            return TxStatus(state="pending")
        state: Literal["reverted", "succeeded"] = "reverted" if rows[0].reverts else "succeeded"
        return TxStatus(state=state, block=_block(rows[0]), fee=Units(0))

    # It is only read: what is sent on it is written by ``sandbox/sending.py``, which needs no keys.

    async def next_sequence(self, sender: str) -> int | None:
        self._refuse_to_send(sender)

    async def plan(
        self, intents: Sequence[Intent], *, sponsor: str | None, promised: Mapping[str, int] | None = None
    ) -> Sequence[Plan]:
        self._refuse_to_send(intents, sponsor, promised)

    async def outbid(self, step: Step) -> Fee:
        self._refuse_to_send(step)

    async def prepare(self, steps: Sequence[tuple[Step, int | None]]) -> Sequence[UnsignedTx]:
        self._refuse_to_send(steps)

    async def broadcast(self, txs: Sequence[SignedTx]) -> Sequence[Broadcast]:
        return [Broadcast(state="rejected", reason=self._only_read) for _ in txs]

    @property
    def _only_read(self) -> str:
        return f"the simulated chain {self.info.id} is only read, nothing can be sent on it"

    def _refuse_to_send(self, *_asked: object) -> NoReturn:
        raise ChainUnavailableError(self._only_read)

    # Its insides.

    async def rows(self, statement: AnySelect, **more: int) -> Sequence[AnyRow]:
        """Return what a statement of ``GIVEN``, and of what else it is given, finds of this chain."""
        async with self._db.autocommit() as conn:
            return (await conn.execute(statement, given(self.project_pk, self.info.id) | more)).all()


class SandboxView(ChainView):
    """The simulated chain at the moment of each call."""

    def __init__(self, chain: SandboxChain) -> None:
        self._chain = chain

    async def head(self) -> Head:
        """Return the newest block. What has the chain's own confirmations is final."""
        rows = await self._chain.rows(_HEAD)
        if not rows:
            raise ChainUnavailableError(f"nobody has used the simulated chain {self._chain.info.id} yet")
        height = rows[0].height
        return Head(height=height, hash=rows[0].hash, finalized_height=max(0, height - self._chain.info.confirmations))

    async def block(self, height: int) -> Block:
        return (await self._blocks(Span(first=height, last=height)))[0]

    async def scan(self, span: Span, watch: Watch) -> ScanResult:
        """Return the span's blocks and transfers. Transfers of anything but registered tokens cannot be made."""
        blocks = await self._blocks(span)
        key_of = self._chain.family.address_key
        hashes = {block.height: block.hash for block in blocks}
        rows = await self._chain.rows(_MINED, first=span.first, last=span.last)
        transfers = [
            Transfer(
                tx_id=row.tx_id,
                position=row.position,
                height=row.height,
                block_hash=hashes[row.height],
                sender=row.sender,
                recipient=row.recipient,
                contract=row.contract,
                amount=Units(row.units),
            )
            for row in rows
            if any(one not in NOBODY and key_of(one) in watch for one in (row.recipient, row.sender))
        ]
        return ScanResult(blocks=blocks, transfers=transfers)

    async def _blocks(self, span: Span) -> Sequence[Block]:
        """Return the blocks of a span. Between those that are left stand empty ones for what was forgotten."""
        around = await self._chain.rows(_BLOCKS, first=span.first - 1, last=span.last + 1)
        left = {row.height: _block(row) for row in around}
        heights = range(span.first, span.last + 1)
        gone = [height for height in heights if height not in left]
        if gone and gone[-1] >= (await self.head()).height - self._chain.info.hashes_kept:
            raise InconsistentChainError(f"{self._chain.info.id}: blocks {span.first} to {span.last} are not all there")
        return [left.get(height) or self._forgotten(height, left) for height in heights]

    def _forgotten(self, height: int, left: Mapping[int, Block]) -> Block:
        """Make up a block that links what is left around it, and is the same whoever asks. It was empty.

        Its time is that of an earlier block or 0: nobody finds a height by it.
        """
        info, project_pk = self._chain.info, self._chain.project_pk
        before, after = left.get(height - 1), left.get(height + 1)
        return Block(
            height=height,
            hash=after.parent_hash if after else forgotten_hash(info, project_pk, height),
            parent_hash=before.hash if before else forgotten_hash(info, project_pk, height - 1),
            time=min((block.time for block in left.values()), default=0),
        )


def _block(row: AnyRow) -> Block:
    return Block(height=row.height, hash=row.hash, parent_hash=row.parent_hash, time=int(row.mined_at.timestamp()))
