"""A simulated chain as the gateway reads it: through the same door as a real one, from tables instead of a node."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal, NoReturn

import msgspec
from sqlalchemy import Row

from cambist.db.engine import Database
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

SPAN_BLOCKS_MAX = 1000


def simulated(info: ChainInfo) -> ChainInfo:
    """Return the chain as it is simulated: the same, but for how much can be read at once."""
    return msgspec.structs.replace(info, availability="simulated", span_max=SPAN_BLOCKS_MAX)


class SandboxChain(Chain):
    """One project's simulated chain. ``sandbox/blocks.py`` writes what is read here."""

    def __init__(self, db: Database, info: ChainInfo, family: AddressFamily, project_pk: int) -> None:
        self.info = simulated(info)
        self.family = family
        self.project_pk = project_pk
        self._db = db

    @asynccontextmanager
    async def view(self) -> AsyncIterator[ChainView]:
        """Look at the tables. What changes meanwhile does not fit together any more, and is noticed by that."""
        yield SandboxView(self)

    async def balance(self, address: str, token: Token, at: int | None = None) -> Units:
        """Sum up what the address was sent. Collections are only booked, so nothing that left it can be subtracted."""
        rows = await self.rows(
            "SELECT coalesce(sum(units), 0) AS units FROM sandbox_transfers WHERE project_pk = $1 AND chain = $2"
            " AND recipient = $3 AND contract IS NOT DISTINCT FROM $4 AND height <= coalesce($5, height)"
            " AND NOT reverts",
            address,
            token.contract,
            at,
        )
        return Units(int(rows[0].units))

    async def transaction(self, tx_id: str) -> TxStatus:
        """Look for the transaction; it waits where a reorganisation gave it back."""
        rows = await self.rows(
            "SELECT t.height, t.reverts, b.hash, b.parent_hash, b.mined_at FROM sandbox_transfers t"
            " LEFT JOIN sandbox_blocks b ON b.project_pk = t.project_pk AND b.chain = t.chain AND b.height = t.height"
            " WHERE t.project_pk = $1 AND t.chain = $2 AND t.tx_id = $3 LIMIT 1",
            tx_id,
        )
        if not rows:
            return TxStatus(state="unknown")
        if rows[0].height is None:
            return TxStatus(state="pending")
        state: Literal["reverted", "succeeded"] = "reverted" if rows[0].reverts else "succeeded"
        return TxStatus(state=state, block=_block(rows[0]), fee=Units(0))

    # It is only read: what is sent on it is written by ``sandbox/sending.py``, which needs no keys.

    async def next_sequence(self, sender: str) -> int | None:
        """Raise ChainUnavailableError."""
        self._refuse_to_send(sender)

    async def plan(
        self, intents: Sequence[Intent], *, sponsor: str | None, promised: Mapping[str, int] | None = None
    ) -> Sequence[Plan]:
        """Raise ChainUnavailableError."""
        self._refuse_to_send(intents, sponsor, promised)

    async def outbid(self, step: Step) -> Fee:
        """Raise ChainUnavailableError."""
        self._refuse_to_send(step)

    async def prepare(self, steps: Sequence[tuple[Step, int | None]]) -> Sequence[UnsignedTx]:
        """Raise ChainUnavailableError."""
        self._refuse_to_send(steps)

    async def broadcast(self, txs: Sequence[SignedTx]) -> Sequence[Broadcast]:
        """Say of each that it will never be taken."""
        return [Broadcast(state="rejected", reason=self._only_read) for _ in txs]

    @property
    def _only_read(self) -> str:
        return f"the simulated chain {self.info.id} is only read, nothing can be sent on it"

    def _refuse_to_send(self, *_asked: object) -> NoReturn:
        raise ChainUnavailableError(self._only_read)

    # Its insides.

    async def rows(self, statement: str, *arguments: object) -> Sequence[Row[Any]]:
        """Return what a statement about this project and chain finds."""
        async with self._db.autocommit() as conn:
            return (await conn.exec_driver_sql(statement, (self.project_pk, self.info.id, *arguments))).all()


class SandboxView(ChainView):
    """The simulated chain at the moment of each call."""

    def __init__(self, chain: SandboxChain) -> None:
        self._chain = chain

    async def head(self) -> Head:
        """Return the newest block. What has the chain's own confirmations is final."""
        rows = await self._chain.rows(
            "SELECT c.height, b.hash FROM sandbox_chains c JOIN sandbox_blocks b USING (project_pk, chain, height)"
            " WHERE c.project_pk = $1 AND c.chain = $2"
        )
        if not rows:
            raise ChainUnavailableError(f"nobody has used the simulated chain {self._chain.info.id} yet")
        height = rows[0].height
        return Head(height=height, hash=rows[0].hash, finalized_height=max(0, height - self._chain.info.confirmations))

    async def block(self, height: int) -> Block:
        """Return the block at this height."""
        return (await self._blocks(Span(first=height, last=height)))[0]

    async def scan(self, span: Span, watch: Watch) -> ScanResult:
        """Return the span's blocks and transfers. Transfers of anything but registered tokens cannot be made."""
        blocks = await self._blocks(span)
        key_of = self._chain.family.address_key
        hashes = {block.height: block.hash for block in blocks}
        rows = await self._chain.rows(
            "SELECT tx_id, position, height, sender, recipient, contract, units FROM sandbox_transfers"
            " WHERE project_pk = $1 AND chain = $2 AND height BETWEEN $3 AND $4 AND NOT reverts ORDER BY height, id",
            span.first,
            span.last,
        )
        transfers = [
            Transfer(
                tx_id=row.tx_id,
                position=row.position,
                height=row.height,
                block_hash=hashes[row.height],
                sender=row.sender,
                recipient=row.recipient,
                contract=row.contract,
                amount=Units(int(row.units)),
            )
            for row in rows
            if key_of(row.recipient) in watch
        ]
        return ScanResult(blocks=blocks, transfers=transfers)

    async def _blocks(self, span: Span) -> Sequence[Block]:
        rows = await self._chain.rows(
            "SELECT height, hash, parent_hash, mined_at FROM sandbox_blocks"
            " WHERE project_pk = $1 AND chain = $2 AND height BETWEEN $3 AND $4 ORDER BY height",
            span.first,
            span.last,
        )
        if len(rows) != span.length:
            raise InconsistentChainError(f"{self._chain.info.id}: blocks {span.first} to {span.last} are not all there")
        return [_block(row) for row in rows]


def _block(row: Row[Any]) -> Block:
    return Block(height=row.height, hash=row.hash, parent_hash=row.parent_hash, time=int(row.mined_at.timestamp()))
