"""Exchanges between simulated chains: paid out at what was quoted, within the request that asks for them or mines.

::

    swap      one transaction: the wallet pays, and the output comes
    bridge    the deposit on one chain; when it is final, the fill on the other
    revert    the call is mined and moves nothing
    expire    no fill; what was given comes back by a transfer on its own chain

The calls are sent as everything else is (``sending.py``), and what comes is a deposit like any other, claimed and
posted as for exchanges on real chains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import and_, bindparam, case, delete, exists, or_, select, union, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import Cursor, Exchange, Payout, SandboxTransfer
from cambist.db.structs import one_of
from cambist.domain.exchanges import Kind, Step
from cambist.domain.failures import SENTENCES, Failure
from cambist.plugin import ChainInfo, Units
from cambist.ports import Clock, Ids
from cambist.services.accounting.ledger import Purpose, lock_balances
from cambist.services.errors import ConflictError, InvalidError, NotFoundError
from cambist.services.exchanges import posting
from cambist.services.exchanges.arriving import find_call
from cambist.services.exchanges.ending import Endings
from cambist.services.exchanges.outputs import are_confirmed, claim, lock_cursors, lock_free
from cambist.services.exchanges.rows import SELECT, ExchangeRow, exchange_row, lock, save
from cambist.services.exchanges.runner import reopen_bridge, reopen_orphaned
from cambist.services.exchanges.worker import ExchangeWorker

from . import blocks
from .blocks import EXCHANGE, NewTransfer, Tip

EXPIRED = SENTENCES[Failure.NOT_FILLED]
LOOKED_AT_MAX = 200

_AWAITED_TX_ID = case(
    (Exchange.step == Step.ARRIVING, Exchange.tx_id),
    (Exchange.step == Step.FILLING, Exchange.dest_tx_id),
    (Exchange.step == Step.REFUNDING, Exchange.sandbox_refund_tx_id),
)
_HAS_COME = exists().where(
    SandboxTransfer.project_pk == Exchange.project_pk,
    SandboxTransfer.tx_id == _AWAITED_TX_ID,
    SandboxTransfer.height.is_not(None),
)
_IS_UNPAID = and_(Exchange.step == Step.FILLING, Exchange.dest_tx_id.is_(None), Exchange.sandbox_fails.is_(None))
_IS_UNREFUNDED = and_(
    Exchange.step.in_((Step.FILLING, Step.REFUNDING)),
    Exchange.sandbox_fails == "expire",
    Exchange.sandbox_refund_tx_id.is_(None),
)
_IS_UNFILLED_AGAIN = and_(
    Exchange.kind == Kind.BRIDGE,
    Exchange.status == "succeeded",
    Exchange.recipient_pk.is_(None),
    exists().where(
        SandboxTransfer.project_pk == Exchange.project_pk,
        SandboxTransfer.chain == Exchange.dest_chain,
        SandboxTransfer.tx_id == Exchange.dest_tx_id,
        SandboxTransfer.height.is_(None),
    ),
)
_OF_PROJECT = Exchange.project_pk == bindparam("project_pk"), Exchange.mode == "sandbox"
_TO_PAY_OUT = (
    SELECT.where(
        *_OF_PROJECT,
        or_(
            and_(_IS_UNPAID, Exchange.dest_chain == bindparam("chain")),
            and_(_IS_UNREFUNDED, Exchange.source_chain == bindparam("chain")),
        ),
    )
    .order_by(Exchange.id)
    .limit(LOOKED_AT_MAX)
    .with_for_update(key_share=True, of=Exchange)
)
_ARRIVED = (
    SELECT.where(*_OF_PROJECT, Exchange.status == "pending", _HAS_COME).order_by(Exchange.id).limit(LOOKED_AT_MAX)
)
_HAS_ANY = select(exists().where(*_OF_PROJECT))
_UNPAID_ON = union(
    select(Exchange.dest_chain).where(*_OF_PROJECT, _IS_UNPAID),
    select(Exchange.source_chain).where(*_OF_PROJECT, _IS_UNREFUNDED),
)
_UNFILLED_AGAIN = select(Exchange.id).where(*_OF_PROJECT, _IS_UNFILLED_AGAIN)
_FIRST_UNFILLED_AGAIN = _UNFILLED_AGAIN.order_by(Exchange.id).limit(LOOKED_AT_MAX)

EXCHANGES_DUE = """EXISTS (
        SELECT FROM exchanges e WHERE e.project_pk = j.id AND e.mode = 'sandbox' AND e.status = 'pending' AND (
            e.step = 'filling' AND e.dest_tx_id IS NULL AND e.sandbox_fails IS NULL AND e.dest_chain = c.chain
            OR e.step IN ('filling', 'refunding') AND e.sandbox_fails = 'expire' AND e.sandbox_refund_tx_id IS NULL
                AND e.source_chain = c.chain
            OR EXISTS (
                SELECT FROM deposits d WHERE d.chain = c.chain AND d.scope = j.id AND d.status = 'confirmed'
                AND d.tx_id = CASE e.step WHEN 'arriving' THEN e.tx_id WHEN 'filling' THEN e.dest_tx_id
                    WHEN 'refunding' THEN e.sandbox_refund_tx_id END
            )
            OR e.recipient_pk IS NULL AND e.step = 'arriving' AND e.source_chain = c.chain
            OR e.recipient_pk IS NULL AND e.step = 'filling' AND e.dest_chain = c.chain AND EXISTS (
                SELECT FROM sandbox_transfers x JOIN chain_cursors r ON r.chain = x.chain AND r.scope = x.project_pk
                WHERE x.project_pk = j.id AND x.chain = c.chain AND x.tx_id = e.dest_tx_id
                AND x.height <= r.height - c.depth
            )
        )
    )"""
"""Whether a chain has something to pay out or to claim: of ``j``, a project, and ``c``, a chain with its depth."""


async def transfers_of_calls(conn: AsyncConnection, intent_pks: Sequence[int]) -> Mapping[int, Sequence[NewTransfer]]:
    """Return what the calls of exchanges do on their chain, by the primary keys of their intents."""
    found = await conn.execute(SELECT.where(one_of(Exchange.intent_pk, intent_pks)))
    rows = [exchange_row(row) for row in found]
    return {row.intent_pk: _call(row) for row in rows if row.intent_pk is not None}


def _call(row: ExchangeRow) -> Sequence[NewTransfer]:
    reverts = row.sandbox_fails == "revert"
    given = NewTransfer(
        sender=row.sender, recipient=EXCHANGE, contract=row.source_contract, units=row.given, reverts=reverts
    )
    return [given, _output(row, reverts=reverts)] if row.kind is Kind.SWAP else [given]


def _output(row: ExchangeRow, *, reverts: bool = False) -> NewTransfer:
    return NewTransfer(
        sender=EXCHANGE,
        recipient=row.recipient,
        contract=row.dest_contract,
        units=row.quoted_units,
        reverts=reverts,
    )


class Awaited(Struct, frozen=True, kw_only=True):
    """The transfer that an exchange waits for."""

    chain: str
    tx_id: str
    address_pk: int | None
    contract: str | None
    units: Units
    role: str


class Exchanging:
    """Pays out and claims for every project. It needs neither providers nor nodes."""

    def __init__(self, db: Database, infos: Mapping[str, ChainInfo], endings: Endings, clock: Clock, ids: Ids) -> None:
        self._ids = ids
        self._worker = ExchangeWorker(
            db=db, infos=infos, families={}, chains={}, swaps=(), bridges=(), readers=(), clock=clock,
            endings=endings, alerts=Counter(),
        )  # fmt: skip

    async def pay_out(self, conn: AsyncConnection, tip: Tip, now: datetime) -> int:
        """Make fills and refunds that are due on this chain; return how many. The next block takes them.

        The chain's tip is locked, and its cursor.
        """
        found = await conn.execute(_TO_PAY_OUT, {"project_pk": tip.project_pk, "chain": tip.info.id})
        rows = [exchange_row(row) for row in found]
        if not rows:
            return 0
        made = await blocks.transactions(conn, tip, [[_payment(row)] for row in rows], ids=self._ids)
        for row, tx_id in zip(rows, made, strict=True):
            if row.sandbox_fails is None:
                await save(conn, row, now, dest_tx_id=tx_id)
            else:
                await save(conn, row, now, step=Step.REFUNDING, sandbox_refund_tx_id=tx_id)
        return len(rows)

    async def claim_arrived(self, project_pk: int) -> Collection[str]:
        """Claim what has come for a project's exchanges; return the chains on which something has to be paid out."""
        given = {"project_pk": project_pk}
        async with self._worker.db.autocommit() as conn:
            if not await conn.scalar(_HAS_ANY, given):
                return ()
        await reopen_orphaned(self._worker, project_pk)
        await self._reopen_unfilled(project_pk)
        async with self._worker.db.autocommit() as conn:
            rows = [exchange_row(row) for row in await conn.execute(_ARRIVED, given)]
            unpaid = set(await conn.scalars(_UNPAID_ON, given))
        for row in rows:
            await self._claim(row)
        return sorted(unpaid)

    async def _reopen_unfilled(self, project_pk: int) -> None:
        """Open bridges again whose fill to somebody else a reorg has taken back: no deposit of ours was it."""
        given = {"project_pk": project_pk}
        async with self._worker.db.autocommit() as conn:
            pks = (await conn.scalars(_FIRST_UNFILLED_AGAIN, given)).all()
        for pk in pks:
            async with self._worker.db.transaction() as conn:
                await lock_cursors(conn, exchange_row((await conn.execute(SELECT.where(Exchange.id == pk))).one()))
                row = await lock(conn, pk)
                if await conn.scalar(_UNFILLED_AGAIN.where(Exchange.id == pk), given) is not None:
                    await _lock_accounts(conn, row)
                    await reopen_bridge(self._worker.endings, conn, row, self._now, is_refund=False)

    async def _claim(self, row: ExchangeRow) -> None:
        """End an exchange whose output or refund is confirmed."""
        wanted = _awaited(row)
        if wanted is None:
            return
        async with self._worker.db.transaction() as conn:
            await lock_cursors(conn, row)
            arrived = await lock_free(conn, wanted.chain, row.scope, wanted.tx_id, wanted.address_pk, wanted.contract)
            locked = await lock(conn, row.pk)
            if locked.step is not row.step or _awaited(locked) != wanted:
                return
            if row.step is Step.ARRIVING and await find_call(conn, row) is None:
                return
            if wanted.address_pk is None:
                if not await self._is_deep(conn, row, wanted):
                    return
            elif not are_confirmed(arrived):
                return
            await _lock_accounts(conn, row)
            await claim(conn, locked, arrived, wanted.units if arrived else Units(0), wanted.role, self._now)
            await self._end(conn, locked, wanted)

    async def _end(self, conn: AsyncConnection, row: ExchangeRow, wanted: Awaited) -> None:
        changed: dict[str, object] = {}
        if row.kind is Kind.BRIDGE:
            await posting.post_closed(conn, row, refunded=wanted.role == "refund")
            changed = {"is_closed": True, "closings": row.closings + 1}
        if wanted.role == "refund":
            await self._worker.endings.fail(conn, row, self._now, EXPIRED, **changed)
        else:
            changed["dest_tx_id"] = wanted.tx_id
            await self._worker.endings.succeed(conn, row, self._now, wanted.units, **changed)

    async def _is_deep(self, conn: AsyncConnection, row: ExchangeRow, wanted: Awaited) -> bool:
        """Whether a transfer to somebody else has its confirmations."""
        info = self._worker.infos.get(wanted.chain)
        if info is None:
            return False
        depth = max(1, info.confirmations)
        of_chain = Cursor.chain == SandboxTransfer.chain, Cursor.scope == SandboxTransfer.project_pk
        mined = select(SandboxTransfer.id).where(
            SandboxTransfer.project_pk == row.scope,
            SandboxTransfer.chain == wanted.chain,
            SandboxTransfer.tx_id == wanted.tx_id,
            SandboxTransfer.height <= Cursor.height - depth,
            *of_chain,
        )
        return await conn.scalar(mined.limit(1)) is not None

    @property
    def _now(self) -> datetime:
        return self._worker.clock.now()


def _payment(row: ExchangeRow) -> NewTransfer:
    """Return the fill of a bridge, or what gives it back."""
    if row.sandbox_fails is None:
        return _output(row)
    return NewTransfer(sender=EXCHANGE, recipient=row.sender, contract=row.source_contract, units=row.given)


def _awaited(row: ExchangeRow) -> Awaited | None:
    """Return what an exchange waits for on its chains, None where that is still to be paid out."""
    tx_ids = {Step.ARRIVING: row.tx_id, Step.FILLING: row.dest_tx_id, Step.REFUNDING: row.sandbox_refund_tx_id}
    tx_id = tx_ids.get(row.step)
    if tx_id is None:
        return None
    if row.step is Step.REFUNDING:
        return Awaited(
            chain=row.source_chain,
            tx_id=tx_id,
            address_pk=row.source_pk,
            contract=row.source_contract,
            units=row.given,
            role="refund",
        )
    return Awaited(
        chain=row.dest_chain,
        tx_id=tx_id,
        address_pk=row.recipient_pk,
        contract=row.dest_contract,
        units=row.quoted_units,
        role="output",
    )


async def _lock_accounts(conn: AsyncConnection, row: ExchangeRow) -> None:
    """Lock whatever a claim may post to, in one go: other projects of the merchant have other cursors."""
    source = Purpose.AVAILABLE, Purpose.HELD, Purpose.RECEIVABLE, Purpose.PENDING, Purpose.BETWEEN_CHAINS
    dest = Purpose.AVAILABLE, Purpose.HELD, Purpose.RECEIVABLE
    accounts = [row.account(purpose) for purpose in source] + [row.dest_account(purpose) for purpose in dest]
    await lock_balances(conn, row.mode, accounts)


async def find_exchange(conn: AsyncConnection, project_pk: int, txn_id: str) -> ExchangeRow:
    """Return one of a project's exchanges. Raises NotFoundError."""
    found = await conn.execute(SELECT.where(Exchange.txn_id == txn_id, Exchange.project_pk == project_pk))
    row = found.one_or_none()
    if row is None:
        raise NotFoundError("EXCHANGE_NOT_FOUND", "There is no such exchange.")
    return exchange_row(row)


async def exchange_of_payout(conn: AsyncConnection, project_pk: int, payout_id: str) -> ExchangeRow | None:
    """Return the exchange that pays one of a project's payouts, None where none does."""
    paid = select(Payout.id).where(Payout.payout_id == payout_id, Payout.project_pk == project_pk)
    found = await conn.execute(SELECT.where(Exchange.payout_pk == paid.scalar_subquery()))
    row = found.one_or_none()
    return None if row is None else exchange_row(row)


async def fail_exchange(
    conn: AsyncConnection, pk: int, how: str, now: datetime, *, too_late: str = "EXCHANGE_ALREADY_MINED"
) -> ExchangeRow:
    """Have an exchange fail, also where it waits to be mined again. The tips of its chains are locked.

    Raises InvalidError for a swap that should expire, ConflictError with the code ``too_late`` where it is.
    """
    row = await lock(conn, pk)
    if how == "expire" and row.kind is Kind.SWAP:
        raise InvalidError.field("how", "must be revert: only bridges expire")
    paid = [tx_id for tx_id in (row.dest_tx_id, row.sandbox_refund_tx_id) if tx_id and row.kind is Kind.BRIDGE]
    undoing = [*paid, row.tx_id] if how == "revert" and row.tx_id else paid
    own = SandboxTransfer.project_pk == row.scope
    is_mined = select(SandboxTransfer.id).where(
        own, SandboxTransfer.tx_id.in_(undoing), SandboxTransfer.height.is_not(None)
    )
    if row.is_finished or await conn.scalar(is_mined.limit(1)) is not None:
        raise ConflictError(too_late, "It is mined already; only a reorganization makes it wait again.")
    # What would have paid for it, or given it back, is not mined, and never will be.
    await conn.execute(delete(SandboxTransfer).where(own, SandboxTransfer.tx_id.in_(paid)))
    sent = own, SandboxTransfer.chain == row.source_chain, SandboxTransfer.tx_id == row.tx_id
    await conn.execute(update(SandboxTransfer).where(*sent).values(reverts=how == "revert"))
    changed: dict[str, object] = {"sandbox_fails": how}
    if row.kind is Kind.BRIDGE:
        changed |= {"dest_tx_id": None, "sandbox_refund_tx_id": None}
    return await save(conn, row, now, **changed)
