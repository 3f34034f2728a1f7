"""Sends on simulated chains what is sent on real ones by the engine: the same rows and handlers, without keys or fees.

::

    waiting ──send──> sending ──mined, confirmed──> done ──a reorg takes it back──> sending
       └──cancelled──────────────┬──────────────> failed
                                 └──mined, where that was asked for
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from msgspec import structs
from sqlalchemy import func, literal_column, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import Exchange, OutboundIntent, Payout, SandboxTransfer
from cambist.db.structs import one_of
from cambist.domain.intents import EXCHANGING, IntentKind
from cambist.domain.payouts import FINISHED
from cambist.plugin import ChainInfo, Fee, SignedTx, Units
from cambist.ports import Ids
from cambist.services.accounting.ledger import PLATFORM, Account, Movement, Posting, Purpose, lock_balances, post
from cambist.services.chain_scope import ChainScope
from cambist.services.errors import ConflictError, NotFoundError
from cambist.services.payouts.read import COLUMNS, PayoutRow, payout_row
from cambist.services.sending import cancel_store, finality_store, store
from cambist.services.sending.cancelling import give_back
from cambist.services.sending.finality_store import Depth
from cambist.services.sending.handler import IntentHandlers, IntentUpdate
from cambist.services.sending.rows import IntentRow, TxRow
from cambist.services.sending.store import NewTx

from . import blocks
from .blocks import NewTransfer, Tip
from .exchanges import transfers_of_calls

SENT_AT_ONCE_MAX = 250
MODE = "sandbox"


class Sender:
    """Sends for every project. Whoever calls has locked the chain's tip and then its cursor, except to finalize."""

    def __init__(self, handlers: IntentHandlers, ids: Ids) -> None:
        self._handlers = handlers
        self._ids = ids

    async def any_waits(self, conn: AsyncConnection, tip: Tip) -> bool:
        """Whether anything waits to be sent or cancelled, or an exchange to be paid out. Mostly nothing does."""
        return bool((await conn.exec_driver_sql(_ANY_WAITS, (tip.info.id, tip.project_pk))).scalar_one())

    async def send_waiting(self, conn: AsyncConnection, tip: Tip, now: datetime) -> int:
        """Make a transaction for each intent whose time it is; return for how many. The next block takes them."""
        chain_scope = _chain_scope(tip.project_pk, tip.info)
        waiting = await store.waiting(conn, chain_scope, now, SENT_AT_ONCE_MAX)
        still = await store.lock_waiting(conn, waiting) if waiting else set()
        intents = [intent for intent in waiting if intent.id in still]
        if not intents:
            return 0
        tx_ids = await self._make_transfers(conn, tip, intents)
        by_source: dict[int, list[NewTx]] = defaultdict(list)
        for intent, tx_id in zip(intents, tx_ids, strict=True):
            by_source[intent.source.pk].append(_unsigned(intent, tx_id))
        for source_pk, txs in by_source.items():
            await store.open_slots(conn, chain_scope, source_pk, txs, next_sequence=0, now=now)
        await store.note_tries(conn, chain_scope, tx_ids, [], now)
        sent = [structs.replace(one.update, tx_id=tx_id) for one, tx_id in zip(intents, tx_ids, strict=True)]
        await self._handlers.on_broadcast(conn, sent, now)
        await _collect(conn, sent)
        return len(sent)

    async def cancel_asked(self, conn: AsyncConnection, tip: Tip, now: datetime) -> None:
        """Cancel what somebody asked for: what is simulated is never signed, so what waits was never sent."""
        asked = await cancel_store.cancelling(conn, _chain_scope(tip.project_pk, tip.info), now, SENT_AT_ONCE_MAX)
        if asked:
            await give_back(conn, self._handlers, asked, now, _lock_accounts)

    async def _make_transfers(self, conn: AsyncConnection, tip: Tip, intents: Sequence[IntentRow]) -> Sequence[str]:
        asked = one_of(Payout.intent_pk, [intent.id for intent in intents])
        failing = set(await conn.scalars(select(Payout.intent_pk).where(asked, Payout.sandbox_fails)))
        exchanging = [intent.id for intent in intents if intent.update.kind in EXCHANGING]
        calls = await transfers_of_calls(conn, exchanging) if exchanging else {}
        new = [calls.get(intent.id) or [_transfer(intent, reverts=intent.id in failing)] for intent in intents]
        return await blocks.transactions(conn, tip, new, ids=self._ids)

    async def undo_above(self, conn: AsyncConnection, tip: Tip, height: int, now: datetime) -> None:
        """Take back what was done in blocks above this height, which are about to be replaced."""
        chain_scope = _chain_scope(tip.project_pk, tip.info)
        while undone := await finality_store.reopen_undone(conn, chain_scope, Depth(height, height)):
            sent = [tx.intent.update for tx in undone]
            await _lock_accounts(conn, sent)
            await self._handlers.on_undone(conn, sent, now)

    async def finalize(self, db: Database, project_pk: int, info: ChainInfo, now: datetime) -> int:
        """Finish what has its confirmations, once the gateway has read the chain; return how many that were."""
        chain_scope, finalized = _chain_scope(project_pk, info), 0
        while True:
            async with db.autocommit() as conn:
                # Nobody is kept waiting where nothing was sent: most blocks are mined for what comes in.
                if not (await conn.exec_driver_sql(_ANY_MINED, chain_scope.key)).scalar_one():
                    return finalized
            async with db.transaction() as conn:
                found = await finality_store.lock_depth(conn, chain_scope)
                finals = [] if found is None else await finality_store.close_final(conn, chain_scope, found, now)
                await self._finish(conn, finals, now)
            finalized += len(finals)
            if not finals:
                return finalized

    async def _finish(self, conn: AsyncConnection, finals: Sequence[TxRow], now: datetime) -> None:
        await _lock_accounts(conn, [tx.intent.update for tx in finals])
        await self._handlers.on_final(conn, [tx.intent.update for tx in finals if tx.succeeded], now)
        await self._handlers.on_failed(conn, [tx.intent.update for tx in finals if not tx.succeeded], now)


_ANY_WAITS = """
SELECT EXISTS (SELECT FROM outbound_intents WHERE chain = $1 AND scope = $2 AND state = 'waiting')
    OR EXISTS (SELECT FROM exchanges WHERE project_pk = $2 AND mode = 'sandbox' AND status = 'pending')
"""
_ANY_MINED = "SELECT EXISTS (SELECT FROM outbound_txs WHERE chain = $1 AND scope = $2 AND state = 'mined')"
_NOTE_MINED = """
WITH seen AS (
    SELECT t.id, x.height, b.hash, NOT x.reverts AS succeeded
    FROM outbound_txs t
        JOIN sandbox_transfers x ON x.tx_id = t.tx_id AND x.project_pk = t.scope AND x.chain = t.chain
        LEFT JOIN sandbox_blocks b ON b.project_pk = x.project_pk AND b.chain = x.chain AND b.height = x.height
    WHERE t.chain = $1 AND t.scope = $2 AND t.state IN ('stored', 'sent', 'mined')
        AND (t.height IS DISTINCT FROM x.height OR t.block_hash IS DISTINCT FROM b.hash)
    ORDER BY t.id FOR UPDATE OF t
)
UPDATE outbound_txs t SET state = CASE WHEN seen.height IS NULL THEN 'sent' ELSE 'mined' END, height = seen.height,
    block_hash = seen.hash, succeeded = CASE WHEN seen.height IS NULL THEN NULL ELSE seen.succeeded END,
    fee_paid = CASE WHEN seen.height IS NULL THEN NULL ELSE 0 END
FROM seen WHERE t.id = seen.id
"""


async def note_mined(conn: AsyncConnection, tip: Tip) -> None:
    """Remember in which blocks transactions stand now, or that they stand in none any more."""
    await conn.exec_driver_sql(_NOTE_MINED, (tip.info.id, tip.project_pk))


def _chain_scope(project_pk: int, info: ChainInfo) -> ChainScope:
    return ChainScope(info=info, scope=project_pk, mode=MODE)


def _transfer(intent: IntentRow, *, reverts: bool) -> NewTransfer:
    return NewTransfer(
        sender=intent.source.address,
        recipient=intent.update.to_address,
        contract=intent.update.contract,
        units=intent.update.units,
        reverts=reverts,
    )


def _unsigned(intent: IntentRow, tx_id: str) -> NewTx:
    signed = SignedTx(tx_id=tx_id, raw=b"")
    return NewTx(intent=intent, sequence=None, signed=signed, fee=Fee(limit=0, price=0), valid_until=None)


_TOUCHED = (Purpose.AVAILABLE, Purpose.PENDING, Purpose.HELD, Purpose.RECEIVABLE, Purpose.CUSTODY_WALLET)
_TOUCHED_BY_EXCHANGES = (Purpose.BETWEEN_CHAINS, Purpose.FLOAT_WALLET)


async def _lock_accounts(conn: AsyncConnection, updates: Sequence[IntentUpdate]) -> None:
    """Lock whatever outcomes may post to, in one go: kinds and tokens, done and failed, would else come one by one.

    Rows may follow, for once: everybody who locks these and accounts waits for the cursor first.
    """
    accounts = [one.account(purpose) for one in updates for purpose in _TOUCHED]
    for one in updates:
        if one.kind in EXCHANGING:
            accounts += [one.account(purpose) for purpose in _TOUCHED_BY_EXCHANGES]
            accounts.append(Account(PLATFORM, one.asset, Purpose.FLOAT))
    await lock_balances(conn, MODE, accounts)


async def _collect(conn: AsyncConnection, sent: Sequence[IntentUpdate]) -> None:
    """Book that one-time addresses gave to the main wallet what it lacks for all that leaves it now.

    What an exchange leaves there as the platform's fee is the merchant's no more, and so counts as leaving.
    A wallet is the merchant's, so it counts what other projects have under way, too; after the accounts are locked,
    nobody else adds to that. The accounts come last, after all rows, as everywhere.
    """
    firsts: dict[Account, IntentUpdate] = {}
    for one in sent:
        firsts.setdefault(one.account(Purpose.CUSTODY_WALLET), one)
    sources = {wallet: structs.replace(wallet, purpose=Purpose.CUSTODY_DEPOSITS) for wallet in firsts}
    balances = await lock_balances(conn, MODE, [*sources, *sources.values()])
    postings = []
    for wallet, first in firsts.items():
        fee = func.coalesce(Exchange.fee_units, 0)
        out = select(func.sum(OutboundIntent.units + fee)).outerjoin(Exchange, Exchange.intent_pk == OutboundIntent.id)
        under_way = out.where(
            OutboundIntent.source_address_pk == first.source_pk,
            OutboundIntent.chain == first.chain,
            OutboundIntent.contract.is_not_distinct_from(first.contract),
            # Literally, or ix_outbound_intents_open is in no plan that is kept for all values.
            OutboundIntent.state == literal_column("'sending'"),
        )
        # Custody leans the other way: what the wallet holds is below zero.
        lacking = (await conn.scalar(under_way) or 0) + balances[wallet]
        if lacking > 0:
            movement = Movement(wallet, sources[wallet], Units(lacking))
            reference = f"sandbox:{first.reference}"
            postings.append(Posting(mode=MODE, kind=IntentKind.COLLECTION, reference=reference, movements=[movement]))
    await post(conn, MODE, postings)


async def chain_of_payout(conn: AsyncConnection, project_pk: int, payout_id: str) -> str:
    wanted = Payout.payout_id == payout_id, Payout.project_pk == project_pk
    chain = await conn.scalar(select(Payout.chain).where(*wanted))
    if chain is None:
        raise NotFoundError("PAYOUT_NOT_FOUND", "There is no such payout.")
    return chain


async def fail_payout(conn: AsyncConnection, project_pk: int, payout_id: str) -> PayoutRow:
    """Have a payout revert when it is mined, also where it waits to be mined again. The tip of its chain is locked."""
    wanted = Payout.payout_id == payout_id, Payout.project_pk == project_pk
    locked = await conn.execute(select(*COLUMNS).where(*wanted).with_for_update(key_share=True))
    payout = payout_row(locked.one())
    sent = (
        SandboxTransfer.project_pk == payout.scope,
        SandboxTransfer.chain == payout.chain,
        SandboxTransfer.tx_id == payout.tx_id,
    )
    mined = await conn.scalar(select(SandboxTransfer.id).where(*sent, SandboxTransfer.height.is_not(None)).limit(1))
    if payout.status in FINISHED or mined is not None:
        raise ConflictError("PAYOUT_ALREADY_MINED", "It is mined already; only a reorganization makes it wait again.")
    await conn.execute(update(Payout).where(Payout.id == payout.pk).values(sandbox_fails=True))
    await conn.execute(update(SandboxTransfer).where(*sent).values(reverts=True))
    return payout
