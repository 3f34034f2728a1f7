"""Sends on simulated chains what is sent on real ones by the engine: the same rows and outcomes, without keys or fees.

::

    waiting ──send──> sending ──mined, confirmed──> done ──a reorg takes it back──> sending
                                              └───> failed, where that was asked for
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from msgspec import structs
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.plugin import ChainInfo, Fee, SignedTx, Units
from cambist.ports import Ids
from cambist.services.ledger import PLATFORM, Account, Movement, Posting, Purpose, lock_balances, post
from cambist.services.outbound import settled_store, store
from cambist.services.outbound.outcomes import Moment, Outcomes, Sent
from cambist.services.outbound.rows import IntentRow, Site, TxRow
from cambist.services.outbound.settled_store import Depth
from cambist.services.outbound.settling import REVERTED
from cambist.services.outbound.store import NewTx

from . import blocks
from .blocks import NewTransfer, Tip

SENT_AT_ONCE_MAX = 250
MODE = "sandbox"

News = Literal["on_broadcast", "on_final", "on_failed", "on_undone"]


class Sender:
    """Sends for every project. Whoever calls has locked the chain's tip and then its cursor, except for settling."""

    def __init__(self, outcomes: Mapping[str, Outcomes], ids: Ids) -> None:
        """Tell these outcomes, by kind, what becomes of what is theirs."""
        self._outcomes = outcomes
        self._ids = ids

    async def send_waiting(self, conn: AsyncConnection, tip: Tip, now: datetime) -> int:
        """Make a transaction for each intent whose time it is; return for how many. The next block takes them."""
        site = _site(tip.project_row, tip.info)
        waiting = await store.waiting(conn, site, now, SENT_AT_ONCE_MAX)
        still = await store.lock_waiting(conn, waiting) if waiting else set()
        intents = [intent for intent in waiting if intent.id in still]
        if not intents:
            return 0
        tx_ids = await self._make_transfers(conn, tip, intents)
        by_source: dict[int, list[NewTx]] = defaultdict(list)
        for intent, tx_id in zip(intents, tx_ids, strict=True):
            by_source[intent.source.row].append(_unsigned(intent, tx_id))
        for source_row, txs in by_source.items():
            await store.open_slots(conn, site, source_row, txs, next_sequence=0, now=now)
        await store.note_tries(conn, site, tx_ids, [], now)
        sent = [structs.replace(one.sent, tx_id=tx_id) for one, tx_id in zip(intents, tx_ids, strict=True)]
        await self._tell(conn, "on_broadcast", sent, now)
        await _collect(conn, sent)
        return len(sent)

    async def _make_transfers(self, conn: AsyncConnection, tip: Tip, intents: Sequence[IntentRow]) -> Sequence[str]:
        rows = await conn.exec_driver_sql(
            "SELECT intent_id FROM payouts WHERE intent_id = ANY($1::bigint[]) AND sandbox_fails",
            ([intent.id for intent in intents],),
        )
        failing = set(rows.scalars())
        new = [
            NewTransfer(
                sender=intent.source.address,
                recipient=intent.sent.target,
                contract=intent.sent.contract,
                units=intent.sent.units,
                reverts=intent.id in failing,
            )
            for intent in intents
        ]
        return await blocks.transfers(conn, tip, new, ids=self._ids)

    async def undo_above(self, conn: AsyncConnection, tip: Tip, height: int, now: datetime) -> None:
        """Take back what was done in blocks above this height, which are about to be replaced."""
        site = _site(tip.project_row, tip.info)
        while undone := await settled_store.take_undone(conn, site, Depth(height, height)):
            sent = [tx.intent.sent for tx in undone]
            await _lock_accounts(conn, sent)
            await self._tell(conn, "on_undone", sent, now)

    async def settle(self, db: Database, project_row: int, info: ChainInfo, now: datetime) -> int:
        """Finish what has its confirmations, once the gateway has read the chain; return how many that were."""
        site, settled = _site(project_row, info), 0
        while True:
            async with db.transaction() as conn:
                await blocks.hold_cursor(conn, project_row, info)
                found = await settled_store.depth(conn, site)
                finals = [] if found is None else await settled_store.take_final(conn, site, found)
                await self._finish(conn, finals, now)
            settled += len(finals)
            if not finals:
                return settled

    async def _finish(self, conn: AsyncConnection, finals: Sequence[TxRow], now: datetime) -> None:
        await _lock_accounts(conn, [tx.intent.sent for tx in finals])
        done = [tx.intent for tx in finals if tx.succeeded]
        if done:
            await settled_store.finish(conn, done, "done", None, now)
            await self._tell(conn, "on_final", [intent.sent for intent in done], now)
        failed = [tx.intent for tx in finals if not tx.succeeded]
        if failed:
            await settled_store.finish(conn, failed, "failed", REVERTED, now)
            sent = [structs.replace(intent.sent, reason=REVERTED) for intent in failed]
            await self._tell(conn, "on_failed", sent, now)

    async def _tell(self, conn: AsyncConnection, what: News, sent: Sequence[Sent], now: datetime) -> None:
        by_kind: dict[str, list[Sent]] = defaultdict(list)
        for one in sent:
            by_kind[one.kind].append(one)
        for kind, ones in by_kind.items():
            await getattr(self._outcomes[kind], what)(conn, ones, Moment(now=now, ids=self._ids))


_NOTE_MINED = """
WITH news AS (
    SELECT t.id, x.height, b.hash, NOT x.reverts AS succeeded
    FROM outbound_txs t
        JOIN sandbox_transfers x ON x.tx_id = t.tx_id AND x.project_id = t.scope AND x.chain = t.chain
        LEFT JOIN sandbox_blocks b ON b.project_id = x.project_id AND b.chain = x.chain AND b.height = x.height
    WHERE t.chain = $1 AND t.scope = $2 AND t.state IN ('stored', 'sent', 'mined')
        AND (t.height IS DISTINCT FROM x.height OR t.block_hash IS DISTINCT FROM b.hash)
    ORDER BY t.id FOR UPDATE OF t
)
UPDATE outbound_txs t SET state = CASE WHEN news.height IS NULL THEN 'sent' ELSE 'mined' END, height = news.height,
    block_hash = news.hash, succeeded = CASE WHEN news.height IS NULL THEN NULL ELSE news.succeeded END,
    fee_paid = CASE WHEN news.height IS NULL THEN NULL ELSE 0 END
FROM news WHERE t.id = news.id
"""


async def note_mined(conn: AsyncConnection, tip: Tip) -> None:
    """Remember in which blocks transactions stand now, or that they stand in none any more."""
    await conn.exec_driver_sql(_NOTE_MINED, (tip.info.id, tip.project_row))


def _site(project_row: int, info: ChainInfo) -> Site:
    return Site(info=info, scope=project_row, mode=MODE)


def _unsigned(intent: IntentRow, tx_id: str) -> NewTx:
    signed = SignedTx(tx_id=tx_id, raw=b"")
    return NewTx(intent=intent, sequence=None, signed=signed, fee=Fee(limit=0, price=0), valid_until=None)


_TOUCHED = (Purpose.AVAILABLE, Purpose.PENDING, Purpose.HELD, Purpose.RECEIVABLE, Purpose.CUSTODY_WALLET)


async def _lock_accounts(conn: AsyncConnection, sent: Sequence[Sent]) -> None:
    """Lock whatever outcomes may post to, in one go: kinds and tokens, done and failed, would else come one by one.

    Rows may follow, for once: everybody who locks these and accounts waits for the cursor first.
    """
    accounts = [Account(one.merchant_row or PLATFORM, one.asset, purpose) for one in sent for purpose in _TOUCHED]
    await lock_balances(conn, MODE, accounts)


_UNDER_WAY = """
SELECT coalesce(sum(units), 0) FROM outbound_intents
WHERE source_address_id = $1 AND chain = $2 AND contract IS NOT DISTINCT FROM $3 AND state = 'sending'
"""


async def _collect(conn: AsyncConnection, sent: Sequence[Sent]) -> None:
    """Book that one-time addresses gave to the main wallet what it lacks for all that leaves it now.

    A wallet is the merchant's, so it counts what other projects have under way, too; after the accounts are locked,
    nobody else adds to that. The accounts come last, after all rows, as everywhere.
    """
    firsts: dict[Account, Sent] = {}
    for one in sent:
        firsts.setdefault(Account(one.merchant_row or PLATFORM, one.asset, Purpose.CUSTODY_WALLET), one)
    sources = {wallet: structs.replace(wallet, purpose=Purpose.CUSTODY_DEPOSITS) for wallet in firsts}
    balances = await lock_balances(conn, MODE, [*sources, *sources.values()])
    postings = []
    for wallet, first in firsts.items():
        under_way = await conn.exec_driver_sql(_UNDER_WAY, (first.source_row, first.chain, first.contract))
        lacking = int(under_way.scalar_one()) + balances[wallet]  # which is below zero: custody leans the other way
        if lacking > 0:
            movement = Movement(wallet, sources[wallet], Units(lacking))
            reference = f"sandbox:{first.reference}"
            postings.append(Posting(mode=MODE, kind="collection", reference=reference, movements=[movement]))
    await post(conn, MODE, postings)
