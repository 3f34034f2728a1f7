"""Follows open transactions: mined, broadcast again, replaced when stuck, given up when dead."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import structlog
from msgspec import Struct

from cambist.domain.intents import CARRIERS
from cambist.plugin import Broadcast, ChainError, Dated, SignedTx, TxStatus
from cambist.services.receiving.deposits.rows import lock_cursor

from . import fee_wishes, finality_store, store
from .context import EngineContext
from .counts import NonceDoubtedError, believed
from .fee_wishes import FeeWish
from .finality_store import CANCELLED
from .handler import lock_spending, updated
from .nonce_slots import fill_gaps
from .open_store import Open, read_open
from .replacing import ALREADY_MINED, LATER, is_given_up, replace
from .rows import TxRow

ASKED_AT_ONCE_MAX = 250
SENDERS_AT_ONCE_MAX = 20
MISSING_BLOCKS_MIN = 3
PROVING_S = 30.0
"""How long a tick asks for proofs that transactions are dead. What is proven by then gets another slot; it asks for the
rest the next time. A tick that runs out of its own time would prove all in vain, and again each time."""

Slots = Mapping[int, Sequence[TxRow]]

log = structlog.get_logger(__name__)


class Followed(Struct, frozen=True, kw_only=True):
    """Whether following may have left something to other steps, and whether some of what is mined is deep already.

    What is mined and not deep is nothing to any of them yet.
    """

    left_some: bool = False
    any_deep: bool = False


class Follower:
    """Follows one chain's open transactions. What nodes refused is kept in memory only: it is soon learned again.

    It is kept by transaction: what replaces one that was refused has been refused by nobody yet.
    """

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._refused: dict[int, Broadcast] = {}
        self._proof_asked_at: datetime | None = None
        self._asked_last: tuple[int, str] | None = None
        self._unfound: set[int] = set()

    async def follow(self) -> Followed:
        """Ask for the status of every open transaction, and do what those need that are in no block."""
        context = self._context
        async with context.db.autocommit() as conn:
            found = await read_open(conn, context.chain_scope)
        if found is None:
            return Followed()
        txs, reorged = found.txs, found.reorged
        mined = await self._mined_counts(txs, reorged)
        asked = [
            tx
            for tx in txs
            if (tx.id in reorged if tx.state == "mined" else tx.sequence is None or tx.sequence < mined[tx.sender])
        ]
        statuses = await self._statuses(asked)
        slots: dict[int, list[TxRow]] = {}
        for tx in txs:
            slots.setdefault(tx.slot_pk, []).append(tx)
        any_deep = await self._note(asked, statuses, found.deep)
        mined_slots = {
            tx.slot_pk for tx in txs if (statuses[tx.id].block if tx.id in statuses else tx.height) is not None
        }
        unconfirmed = {slot: ones for slot, ones in slots.items() if slot not in mined_slots}
        # One node may be a block ahead of another, which still has it waiting: that passes by itself.
        pending = {tx.slot_pk for tx in asked if statuses[tx.id].state == "pending"}
        taken = {
            slot: ones
            for slot, ones in unconfirmed.items()
            if slot not in pending and _is_taken(ones[0], mined[ones[0].sender])
        }
        expired = await self._expired(unconfirmed)
        changed = await self._mark_dead(expired, "its transaction has expired")
        changed |= await self._check_taken(taken, found)
        await self._found_again([ones[0] for slot, ones in slots.items() if slot not in taken])
        unconfirmed = {slot: ones for slot, ones in unconfirmed.items() if slot not in taken and slot not in expired}
        changed |= await self._fill_gaps(unconfirmed, mined)
        changed |= await self._meet(found.wishes, unconfirmed)
        changed |= await self._rebroadcast(unconfirmed)
        return Followed(left_some=changed, any_deep=any_deep)

    async def _mined_counts(self, txs: Sequence[TxRow], reorged: Collection[int]) -> Mapping[str, int]:
        """Return by sender how many of its transactions are mined; 0 where none of those followed may be waiting."""
        unmined = [tx for tx in txs if tx.state != "mined" or tx.id in reorged]
        numbered = [tx for tx in unmined if tx.sequence is not None or tx.valid_until is None]
        last = {tx.sender: tx for tx in sorted(numbered, key=lambda tx: tx.sequence or 0)}
        senders = sorted(last)
        counts: dict[str, int] = {}
        # Hundreds of collections have a sender each: asked one by one, a slow node would outlast the tick.
        for first in range(0, len(senders), SENDERS_AT_ONCE_MAX):
            some = senders[first : first + SENDERS_AT_ONCE_MAX]
            answers = await asyncio.gather(*(self._mined_count(last[sender]) for sender in some))
            counts |= dict(zip(some, answers, strict=True))
        return {tx.sender: counts.get(tx.sender, 0) for tx in txs}

    async def _mined_count(self, last: TxRow) -> int:
        """Return the count, or a lower one that is witnessed. What becomes of a nonce is proven beside it, anyway."""
        counted = await self._context.chain.next_sequence(last.sender) or 0
        if counted <= (last.sequence or 0) + 1:
            return counted
        try:
            return await believed(self._context, last.intent.source, counted)
        except NonceDoubtedError:
            return counted

    async def _statuses(self, txs: Sequence[TxRow]) -> Mapping[int, TxStatus]:
        statuses: dict[int, TxStatus] = {}
        for first in range(0, len(txs), ASKED_AT_ONCE_MAX):
            some = txs[first : first + ASKED_AT_ONCE_MAX]
            answers = await self._context.chain.transactions([tx.tx_id for tx in some])
            statuses |= {tx.id: answer for tx, answer in zip(some, answers, strict=True)}
        return statuses

    async def _expired(self, unconfirmed: Slots) -> Slots:
        """Return what can never be mined any more, as the chain itself proves.

        A proof is many blocks to read, so it is not asked for all the time. One that cannot be had now keeps nothing
        else from being sent. What expired first is asked for first; where a tick has no time for all or is not
        answered, the next goes on behind what was asked for, so that what cannot be proven keeps no proof from others.
        """
        now, until = self._context.clock.now(), self._context.clock.monotonic() + PROVING_S
        if not _old(self._proof_asked_at, now, self._context.settings.rebroadcast_s):
            return {}
        dated = {
            tx.tx_id: Dated(tx_id=tx.tx_id, valid_until=tx.valid_until)
            for ones in unconfirmed.values()
            for tx in ones
            if tx.valid_until is not None
        }
        asked = sorted(dated.values(), key=_place)
        behind = bisect_right(asked, self._asked_last, key=_place) if self._asked_last is not None else 0
        asked = asked[behind:] + asked[:behind]
        if asked:
            self._proof_asked_at = now
        self._asked_last = None
        dead: set[str] = set()
        for first in range(0, len(asked), ASKED_AT_ONCE_MAX):
            if first and self._context.clock.monotonic() >= until:
                self._proof_asked_at, self._asked_last = None, _place(asked[first - 1])
                break
            some = asked[first : first + ASKED_AT_ONCE_MAX]
            try:
                answers = await self._context.expired(some)
            except ChainError as error:
                log.warning("expiry_unproven", chain=self._context.chain_scope.info.id, txs=len(some), error=str(error))
                self._asked_last = _place(some[-1])
                break
            dead |= {one.tx_id for one, is_dead in zip(some, answers, strict=True) if is_dead}
        return {slot: ones for slot, ones in unconfirmed.items() if all(tx.tx_id in dead for tx in ones)}

    async def _note(self, asked: Sequence[TxRow], statuses: Mapping[int, TxStatus], deep: int) -> bool:
        """Note in which blocks these are seen; return whether one of those is deep already."""
        seen = [(tx, statuses[tx.id]) for tx in asked if statuses[tx.id].block is not None or tx.state == "mined"]
        if seen:
            async with self._context.db.autocommit() as conn:
                await finality_store.note_mined(conn, seen)
        return any(status.block is not None and status.block.height <= deep for _, status in seen)

    async def _check_taken(self, taken: Slots, found: Open) -> bool:
        """Give up nonce slots that something else has taken, after as many blocks as confirm a deposit.

        A count alone proves nothing, for one node's error is enough to raise it: every node that can be asked must
        refuse our own bytes for the reason that their sequence is used up. They also do where these are mined and no
        node finds them by their ids; so all blocks that there are must be read, and none of them hold what we signed.
        """
        patience = max(MISSING_BLOCKS_MIN, self._context.chain_scope.info.confirmations)
        fresh = [slot for slot, ones in taken.items() if ones[0].missing_since is None]
        if fresh:
            async with self._context.db.autocommit() as conn:
                await finality_store.note_missing(conn, fresh, found.read_height)
            self._context.alert("sequence_taken", slots=len(fresh), first=taken[fresh[0]][0].intent.update.reference)
        waited = {
            slot: ones
            for slot, ones in taken.items()
            if ones[0].missing_since is not None
            and found.read_height >= max(found.head, ones[0].missing_since + patience)
        }
        dead = await self._not_read(waited)
        said = await self._context.broadcast(
            [SignedTx(tx_id=tx.tx_id, raw=tx.raw) for ones in dead.values() for tx in ones]
        )
        proven = {
            slot: ones for slot, ones in dead.items() if all(said[tx.tx_id].state == "sequence_used" for tx in ones)
        }
        return await self._mark_dead(proven, "its nonce was used by something else")

    async def _not_read(self, waited: Slots) -> Slots:
        """Leave out what the watcher has read in blocks; tell the operator of each once."""
        context = self._context
        if not waited:
            return {}
        async with context.db.autocommit() as conn:
            read = await finality_store.read_in_blocks(conn, context.chain_scope, list(waited))
        for slot in sorted(read - self._unfound):
            context.alert("unfound", reference=waited[slot][-1].intent.update.reference, tx_id=waited[slot][-1].tx_id)
        self._unfound |= read
        return {slot: ones for slot, ones in waited.items() if slot not in read}

    async def _mark_dead(self, dead: Slots, why: str) -> bool:
        for slot, ones in dead.items():
            context = self._context
            async with context.db.transaction() as conn:
                await lock_cursor(conn, *context.chain_scope.key)
                locked = await store.lock_slot(conn, slot)
                if not locked or any(tx.state == "mined" for tx in locked):
                    continue
                now, intent = context.clock.now(), ones[0].intent
                await lock_spending(conn, context.chain_scope.mode, [intent.update])
                await finality_store.mark_dead(conn, slot, now)
                refused = self._refused.get(ones[-1].id)
                if is_given_up(ones[0]):
                    # Its money was given back when it had failed: it stays so.
                    await finality_store.finish(conn, [intent], "failed", intent.reason, now)
                elif ones[0].sequence is None and refused is not None and refused.state == "rejected":
                    # As long as it could have been mined, no node took it: the next would fare no better.
                    await finality_store.finish(conn, [intent], "failed", CANCELLED, now)
                    await context.handlers.on_failed(conn, [updated(intent.update, reason=CANCELLED)], now)
                elif intent.update.kind in CARRIERS:
                    # Its collections have other ways, and its authorizations may be used up.
                    await finality_store.finish(conn, [intent], "failed", why, now)
                    await context.handlers.on_failed(conn, [updated(intent.update, reason=why)], now)
            context.alert("dead", reference=ones[0].intent.update.reference, sequence=ones[0].sequence, reason=why)
        return bool(dead)

    async def _found_again(self, txs: Sequence[TxRow]) -> None:
        back = [tx.slot_pk for tx in txs if tx.missing_since is not None]
        if back:
            async with self._context.db.autocommit() as conn:
                await finality_store.note_missing(conn, back, None)

    async def _fill_gaps(self, unconfirmed: Slots, mined: Mapping[str, int]) -> bool:
        """Fill the gaps below what has waited for a while."""
        context, now, changed = self._context, self._context.clock.now(), False
        for tx in _first_of_each_sender(ones[-1] for ones in unconfirmed.values()):
            if tx.sequence is None or tx.sequence <= mined[tx.sender]:
                continue
            if not _old(tx.created_at, now, context.settings.rebroadcast_s):
                continue
            await fill_gaps(context, tx.intent.source, mined[tx.sender], tx.sequence)
            changed = True
        return changed

    async def _meet(self, wishes: Sequence[FeeWish], unconfirmed: Slots) -> bool:
        """Replace what operators want to pay more, and say of each wish what became of it."""
        for wish in wishes:
            if await self._context.is_paused():
                break
            ones = unconfirmed.get(wish.slot_pk)
            if ones is None:
                refusal: str | None = ALREADY_MINED
            else:
                refusal = await replace(self._context, ones[-1], len(ones), self._refused.get(ones[-1].id), wish)
            if refusal != LATER:
                async with self._context.db.autocommit() as conn:
                    await fee_wishes.answer_wish(conn, wish, refusal)
        return bool(wishes)

    async def _rebroadcast(self, unconfirmed: Slots) -> bool:
        """Broadcast again what nodes may have forgotten; replace what is stuck, the first of each sender only."""
        context, now, changed = self._context, self._context.clock.now(), False
        newest = {slot: ones[-1] for slot, ones in unconfirmed.items()}
        again = [
            tx
            for tx in newest.values()
            if _old(tx.tried_at, now, context.settings.rebroadcast_s) and not is_given_up(tx)
        ]
        again.sort(key=lambda tx: (tx.sender, tx.sequence or 0))
        said = await context.broadcast([SignedTx(tx_id=tx.tx_id, raw=tx.raw) for tx in again])
        for tx in again:
            answer = said[tx.tx_id]
            if answer.state == "accepted":
                self._refused.pop(tx.id, None)
            elif answer.state != "expired":
                # That its time is over says nothing of why nobody took it as long as it was not.
                self._refused[tx.id] = answer
        followed = {tx.id for tx in newest.values()}
        self._refused = {tx_pk: answer for tx_pk, answer in self._refused.items() if tx_pk in followed}
        for tx in _first_of_each_sender(newest.values()):
            refusal = self._refused.get(tx.id)
            underpriced = refusal is not None and refusal.state == "underpriced"
            stuck = _old(tx.sent_at or tx.created_at, now, context.settings.stuck_after_s)
            wants_more = tx.sequence is not None and (underpriced or stuck or is_given_up(tx))
            # A replacement is a new transaction, which nobody signs while sending is paused.
            if wants_more and not await context.is_paused():
                await replace(context, tx, len(unconfirmed[tx.slot_pk]), refusal)
                changed = True  # it may have asked for gas
        return changed


def _is_taken(tx: TxRow, mined: int) -> bool:
    """Whether something else may have its nonce: one that is mined, or one that its nonce was left to."""
    return tx.sequence < mined if tx.sequence is not None else tx.valid_until is None and mined > 0


def _place(tx: Dated) -> tuple[int, str]:
    return tx.valid_until, tx.tx_id


def _old(moment: datetime | None, now: datetime, seconds: float) -> bool:
    return moment is None or now - moment >= timedelta(seconds=seconds)


def _first_of_each_sender(txs: Iterable[TxRow]) -> Sequence[TxRow]:
    firsts: dict[str, TxRow] = {}
    alone = []
    for tx in txs:
        if tx.sequence is None:
            alone.append(tx)
        elif tx.sender not in firsts or tx.sequence < (firsts[tx.sender].sequence or 0):
            firsts[tx.sender] = tx
    return [*firsts.values(), *alone]
