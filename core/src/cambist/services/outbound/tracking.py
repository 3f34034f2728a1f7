"""What is on its way: found in a block, sent again when forgotten, outbid when stuck, given up when dead."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import structlog
from msgspec import structs

from cambist.plugin import Broadcast, ChainError, Dated, FeeAboveCeilingError, SignedTx, TxStatus, Units

from . import settled_store, store
from .desk import Desk, retold
from .funding import ask_for_gas
from .handing_out import hand_out
from .locking import hold_still, lock_spending
from .mending import mend
from .rows import TxRow
from .settled_store import Depth
from .settling import CANCELLED
from .swept import SWEEP

ASKED_AT_ONCE_MAX = 250
SENDERS_AT_ONCE_MAX = 20
REPLACEMENTS_MAX = 20
"""Transactions of one slot. At an eighth more each time, the last costs ten times what the first did."""
MISSING_BLOCKS_MIN = 3

Slots = Mapping[int, Sequence[TxRow]]

log = structlog.get_logger(__name__)


class Tracker:
    """Follows one chain's open transactions. What nodes refused is remembered only here: it is soon learned again."""

    def __init__(self, desk: Desk) -> None:
        """Know nothing yet."""
        self._desk = desk
        self._refused: dict[int, Broadcast] = {}
        self._proof_asked_at: datetime | None = None

    async def look(self) -> None:
        """Ask what became of everything, and do what is needed for what became of nothing."""
        desk = self._desk
        async with desk.db.transaction() as conn:
            found = await settled_store.depth(conn, desk.site)
            txs = await store.open_txs(conn, desk.site)
            astray = await store.astray(conn, desk.site)
        if found is None or not txs:
            return
        mined = await self._mined_counts(txs)
        asked = [
            tx
            for tx in txs
            if (tx.id in astray if tx.state == "mined" else tx.sequence is None or tx.sequence < mined[tx.sender])
        ]
        statuses = await self._statuses(asked)
        slots: dict[int, list[TxRow]] = {}
        for tx in txs:
            slots.setdefault(tx.slot, []).append(tx)
        await self._note(asked, statuses)
        landed = {tx.slot for tx in txs if (statuses[tx.id].block if tx.id in statuses else tx.height) is not None}
        afloat = {slot: ones for slot, ones in slots.items() if slot not in landed}
        # One node may be a block ahead of another, which still has it waiting: that is soon settled by itself.
        pending = {tx.slot for tx in asked if statuses[tx.id].state == "pending"}
        lost = {
            slot: ones
            for slot, ones in afloat.items()
            if slot not in pending and ones[0].sequence is not None and ones[0].sequence < mined[ones[0].sender]
        }
        expired = await self._expired(afloat)
        await self._bury(expired, "its transaction has expired")
        await self._miss(lost, found)
        await self._found_again([ones[0] for slot, ones in slots.items() if slot not in lost])
        afloat = {slot: ones for slot, ones in afloat.items() if slot not in lost and slot not in expired}
        await self._mend(afloat, mined)
        await self._push(afloat)

    async def _mined_counts(self, txs: Sequence[TxRow]) -> Mapping[str, int]:
        senders = sorted({tx.sender for tx in txs if tx.sequence is not None and tx.state != "mined"})
        counts: dict[str, int] = {}
        # Hundreds of collections have a sender each: asked one by one, a slow node would outlast the turn.
        for first in range(0, len(senders), SENDERS_AT_ONCE_MAX):
            some = senders[first : first + SENDERS_AT_ONCE_MAX]
            answers = await asyncio.gather(*map(self._desk.chain.next_sequence, some))
            counts |= {sender: answer or 0 for sender, answer in zip(some, answers, strict=True)}
        return {tx.sender: counts.get(tx.sender, 0) for tx in txs}

    async def _statuses(self, txs: Sequence[TxRow]) -> Mapping[int, TxStatus]:
        statuses: dict[int, TxStatus] = {}
        for first in range(0, len(txs), ASKED_AT_ONCE_MAX):
            some = txs[first : first + ASKED_AT_ONCE_MAX]
            answers = await self._desk.chain.transactions([tx.tx_id for tx in some])
            statuses |= {tx.id: answer for tx, answer in zip(some, answers, strict=True)}
        return statuses

    async def _expired(self, afloat: Slots) -> Slots:
        """Return what can never be mined any more, as the chain itself proves.

        A proof is many blocks to read, so it is not asked for all the time. One that cannot be had now keeps nothing
        else from being sent.
        """
        now = self._desk.clock.now()
        if not _old(self._proof_asked_at, now, self._desk.settings.rebroadcast_s):
            return {}
        dated = {
            tx.tx_id: Dated(tx_id=tx.tx_id, valid_until=tx.valid_until)
            for ones in afloat.values()
            for tx in ones
            if tx.valid_until is not None
        }
        wanted = list(dated.values())
        if wanted:
            self._proof_asked_at = now
        dead: set[str] = set()
        for first in range(0, len(wanted), ASKED_AT_ONCE_MAX):
            some = wanted[first : first + ASKED_AT_ONCE_MAX]
            try:
                answers = await self._desk.chain.expired(some)
            except ChainError as error:
                log.warning("expiry_unproven", chain=self._desk.site.info.id, txs=len(some), error=str(error))
                break
            dead |= {one.tx_id for one, is_dead in zip(some, answers, strict=True) if is_dead}
        return {slot: ones for slot, ones in afloat.items() if all(tx.tx_id in dead for tx in ones)}

    async def _note(self, asked: Sequence[TxRow], statuses: Mapping[int, TxStatus]) -> None:
        news = [(tx, statuses[tx.id]) for tx in asked if statuses[tx.id].block is not None or tx.state == "mined"]
        if news:
            async with self._desk.db.transaction() as conn:
                await settled_store.note_mined(conn, news)

    async def _miss(self, lost: Slots, found: Depth) -> None:
        """Give up places that something else has taken, once that has been so for as long as credits need.

        A count alone proves nothing, for one node's error is enough to raise it: every node that can be asked must
        refuse our own bytes for the reason that their sequence is used up.
        """
        patience = max(MISSING_BLOCKS_MIN, self._desk.site.info.confirmations)
        fresh = [slot for slot, ones in lost.items() if ones[0].missing_since is None]
        if fresh:
            async with self._desk.db.transaction() as conn:
                await settled_store.note_missing(conn, fresh, found.height)
            self._desk.alert("sequence_taken", slots=len(fresh), first=lost[fresh[0]][0].intent.sent.reference)
        dead = {
            slot: ones
            for slot, ones in lost.items()
            if ones[0].missing_since is not None and found.height >= ones[0].missing_since + patience
        }
        said = await hand_out(
            self._desk, [SignedTx(tx_id=tx.tx_id, raw=tx.raw) for ones in dead.values() for tx in ones]
        )
        proven = {
            slot: ones for slot, ones in dead.items() if all(said[tx.tx_id].state == "sequence_used" for tx in ones)
        }
        await self._bury(proven, "its place in the sequence was taken by something else")

    async def _bury(self, dead: Slots, why: str) -> None:
        for slot, ones in dead.items():
            desk = self._desk
            async with desk.db.transaction() as conn:
                await hold_still(conn, desk.site)
                locked = await store.lock_slot(conn, slot)
                if not locked or any(tx.state == "mined" for tx in locked):
                    continue
                now, intent = desk.clock.now(), ones[0].intent
                await lock_spending(conn, desk.site, [intent.sent])
                await settled_store.bury(conn, slot, now)
                refused = self._refused.get(slot)
                if _is_given_up(ones[0]):
                    # Its money was given back when it had failed: it stays so.
                    await settled_store.finish(conn, [intent], "failed", intent.reason, now)
                elif ones[0].sequence is None and refused is not None and refused.state == "rejected":
                    # As long as it could have been mined, no node took it: the next would fare no better.
                    await settled_store.finish(conn, [intent], "failed", CANCELLED, now)
                    await desk.tell(conn, "on_failed", [retold(intent.sent, reason=CANCELLED)], now)
                elif intent.sent.kind == SWEEP:
                    # Its collections have other ways, and its authorizations may be used up.
                    await settled_store.finish(conn, [intent], "failed", why, now)
                    await desk.tell(conn, "on_failed", [retold(intent.sent, reason=why)], now)
            desk.alert("dead", reference=ones[0].intent.sent.reference, sequence=ones[0].sequence, reason=why)

    async def _found_again(self, txs: Sequence[TxRow]) -> None:
        back = [tx.slot for tx in txs if tx.missing_since is not None]
        if back:
            async with self._desk.db.transaction() as conn:
                await settled_store.note_missing(conn, back, None)

    async def _mend(self, afloat: Slots, mined: Mapping[str, int]) -> None:
        """Fill the gaps below what has waited for a while."""
        desk, now = self._desk, self._desk.clock.now()
        for tx in _first_of_each_sender(ones[-1] for ones in afloat.values()):
            if tx.sequence is None or tx.sequence <= mined[tx.sender]:
                continue
            if not _old(tx.created_at, now, desk.settings.rebroadcast_s):
                continue
            async with desk.db.transaction() as conn:
                gaps = await mend(conn, desk, tx.intent.source, mined[tx.sender], tx.sequence)
            if gaps:
                desk.alert("gap", address=tx.sender, gaps=gaps, before=tx.sequence)

    async def _push(self, afloat: Slots) -> None:
        """Send again what may be forgotten, and outbid what is stuck: only the first of each sender can be."""
        desk, now = self._desk, self._desk.clock.now()
        newest = {slot: ones[-1] for slot, ones in afloat.items()}
        again = [
            tx for tx in newest.values() if _old(tx.tried_at, now, desk.settings.rebroadcast_s) and not _is_given_up(tx)
        ]
        again.sort(key=lambda tx: (tx.sender, tx.sequence or 0))
        said = await hand_out(desk, [SignedTx(tx_id=tx.tx_id, raw=tx.raw) for tx in again])
        for tx in again:
            answer = said[tx.tx_id]
            if answer.state == "accepted":
                self._refused.pop(tx.slot, None)
            elif answer.state != "expired":
                # That its time is over says nothing of why nobody took it as long as it was not.
                self._refused[tx.slot] = answer
        self._refused = {slot: answer for slot, answer in self._refused.items() if slot in afloat}
        for tx in _first_of_each_sender(newest.values()):
            refusal = self._refused.get(tx.slot)
            underpriced = refusal is not None and refusal.state == "underpriced"
            stuck = _old(tx.sent_at or tx.created_at, now, desk.settings.stuck_after_s)
            if tx.sequence is not None and (underpriced or stuck or _is_given_up(tx)):
                await self._outbid(tx, len(afloat[tx.slot]), refusal)

    async def _outbid(self, tx: TxRow, tries: int, refusal: Broadcast | None) -> None:
        """Replace a transaction by one that pays more; by a transfer of nothing where no node will ever take it.

        A sweep is given up as well: what it would have brought goes one by one, at what that costs by then.
        """
        desk, now = self._desk, self._desk.clock.now()
        reference = tx.intent.sent.reference
        if tries >= REPLACEMENTS_MAX:
            desk.alert("stuck", reference=reference, tx_id=tx.tx_id, replacements=tries)
            return
        refused = refusal is not None and refusal.state == "rejected"
        cancelled = tx.role == "cancel" or refused or _is_given_up(tx) or tx.intent.sent.kind == SWEEP
        step = tx.step
        if cancelled:
            step = desk.nothing(step)
        try:
            step = structs.replace(step, fee=await desk.chain.outbid(step))
        except FeeAboveCeilingError as error:
            desk.alert("stuck", reference=reference, tx_id=tx.tx_id, error=str(error))
            return
        if await self._lacks_gas(tx, step.native_needed):
            return
        (unsigned,) = await desk.chain.prepare([(step, tx.sequence)])
        async with desk.db.transaction() as conn:
            locked = await store.lock_slot(conn, tx.slot)
            if not locked or locked[0].id != tx.id or any(one.state == "mined" for one in locked):
                return
            (reply,) = await desk.sign([(tx.intent, unsigned)], {})
            if reply.signature is None:
                desk.alert("signer_refused", reference=reference, code=reply.refusal, reason=reply.reason)
                return
            signed, role = desk.seal(unsigned, reply.signature), "cancel" if cancelled else "main"
            await store.add_replacement(conn, desk.site, tx, signed, role=role, fee=step.fee, now=now)
            if not cancelled:
                await desk.tell(conn, "on_broadcast", [retold(tx.intent.sent, tx_id=signed.tx_id)], now)
        desk.alert("replaced", reference=reference, tx_id=tx.tx_id, by=signed.tx_id, role=role)
        await hand_out(desk, [signed])

    async def _lacks_gas(self, tx: TxRow, needed: int) -> bool:
        desk, source = self._desk, tx.intent.source
        lacking = needed - await desk.chain.balance(source.address, desk.site.info.native)
        if lacking <= 0:
            return False
        if source.purpose == "gas":
            desk.alert("gas_station_empty", address=source.address, lacking=str(lacking))
            return True
        async with desk.db.transaction() as conn:
            await ask_for_gas(conn, desk, source, Units(lacking), desk.clock.now())
        return True


def _is_given_up(tx: TxRow) -> bool:
    """Whether it had failed, in a block that is gone, and its money was given back: it should not happen any more."""
    return tx.role == "main" and tx.intent.reason is not None


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
