"""What the parts of the engine share: the chain, the means of sending on it, and alerts for the operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

import structlog
from msgspec import Struct, structs
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.plugin import (
    AddressFamily,
    Broadcast,
    Chain,
    Dated,
    InconsistentChainError,
    SignedTx,
    Step,
    Unprepared,
    UnsignedTx,
)
from cambist.ports import Clock, Ids
from cambist.services.chain_pauses import ChainPauses, Pausable
from cambist.services.chain_scope import ChainScope
from cambist.services.pricing.prices import RateBook
from cambist.settings import OutboundSettings
from cambist.signer.protocol import DEAD_MAX, Signer, SignReply, SignRequest

from . import defer_store, store
from .handler import IntentHandlers, updated
from .rows import IntentRow, OwnPath

log = structlog.get_logger(__name__)

SIGNED_AT_ONCE_MAX = 200
BROADCAST_AT_ONCE_MAX = 200


class EngineContext(Struct, frozen=True, kw_only=True):
    """What sending on one chain needs. ``alerts`` counts by name what an operator should know of."""

    db: Database
    chain: Chain
    family: AddressFamily
    signer: Signer
    pauses: ChainPauses
    rates: RateBook
    clock: Clock
    ids: Ids
    handlers: IntentHandlers
    settings: OutboundSettings
    chain_scope: ChainScope
    alerts: Counter[str]

    async def is_paused(self) -> bool:
        """Whether an operator has paused sending on this chain. Asked before each batch, outside its transaction."""
        return await self.pauses.are_in_force(self.chain_scope.info.id, Pausable.SENDING)

    def alert(self, name: str, **facts: object) -> None:
        """Tell the operator: in the log, and in the metric ``cambist_outbound_alerts_total``."""
        self.alerts[name] += 1
        log.error("outbound_alert", alert=name, chain=self.chain_scope.info.id, **facts)

    async def defer(  # noqa: PLR0913  each by name
        self,
        conn: AsyncConnection,
        intents: Sequence[IntentRow],
        reason: str | None,
        due_at: datetime,
        now: datetime,
        *,
        keeps_retry: bool = False,
    ) -> int:
        """Let intents wait, and call their handlers where the reason is a new one; return for how many it is."""
        if not intents:
            return 0
        fresh = set(await defer_store.defer(conn, intents, reason, due_at, now, keeps_retry=keeps_retry))
        updates = [updated(one.update, reason=reason) for one in intents if one.id in fresh]
        await self.handlers.on_waiting(conn, updates, now)
        return len(fresh)

    async def prepare(
        self, source: OwnPath, steps: Sequence[tuple[Step, int | None]]
    ) -> Sequence[UnsignedTx | Unprepared]:
        """Have the chain prepare steps of one sender, with its public key where the chain signs that.

        Raises SignerUnavailableError.
        """
        if self.chain.needs_public_key:
            key = await self.signer.public_key(self.chain_scope.mode, self.family.coin_type, source.key_path)
            steps = [(structs.replace(step, public_key=key), number) for step, number in steps]
        return await self.chain.prepare(steps)

    async def expired(self, txs: Sequence[Dated]) -> Sequence[bool]:
        """Return of each transaction whether the chain proves that it will never be mined. Raises ChainError.

        Another is signed in the place of one that is dead. So only True is a proof, and only where there is an answer
        for each: what else a plugin says, such as a coroutine that it forgot to await, would pay twice.
        """
        answers = list(await self.chain.expired(txs))
        if len(answers) != len(txs):
            raise InconsistentChainError(f"{len(answers)} answers for {len(txs)} transactions that may have expired")
        return [answer is True for answer in answers]

    async def sign(
        self, items: Sequence[tuple[IntentRow, UnsignedTx]], dead: Mapping[int, Sequence[int]]
    ) -> Sequence[SignReply]:
        """Ask the signer, which decides for itself, up to the first refusal. Raises SignerUnavailableError.

        ``dead`` are the numbers of the slots that intents had before, in which something else was mined.
        """
        requests = [
            self._request(intent, tx, dead.get(intent.id, ()), follows=number > 0)
            for number, (intent, tx) in enumerate(items)
        ]
        replies: list[SignReply] = []
        for first in range(0, len(requests), SIGNED_AT_ONCE_MAX):
            replies += await self.signer.sign(requests[first : first + SIGNED_AT_ONCE_MAX])
            if replies[-1].signature is None:
                break
        return replies

    def _request(self, intent: IntentRow, tx: UnsignedTx, dead: Sequence[int], *, follows: bool) -> SignRequest:
        own = (intent.source,) if intent.recipient is None else (intent.source, intent.recipient)
        return SignRequest(
            mode=self.chain_scope.mode,
            chain=self.chain_scope.info.id,
            payload=tx.payload,
            path=intent.source.key_path,
            purpose=intent.update.kind,
            reference=intent.update.reference,
            asked_by=intent.asked_by,
            tag=intent.tag,
            own=tuple(one.key_path for one in own),
            dead=tuple(dead[-DEAD_MAX:]),
            follows=follows,
        )

    async def broadcast(self, txs: Sequence[SignedTx]) -> Mapping[str, Broadcast]:
        """Broadcast stored transactions in this order, note and return by transaction what nodes said."""
        said: dict[str, Broadcast] = {}
        for first in range(0, len(txs), BROADCAST_AT_ONCE_MAX):
            some = txs[first : first + BROADCAST_AT_ONCE_MAX]
            said |= {tx.tx_id: answer for tx, answer in zip(some, await self.chain.broadcast(some), strict=True)}
            now = self.clock.now()
            accepted = [tx.tx_id for tx in some if said[tx.tx_id].state == "accepted"]
            others = [tx.tx_id for tx in some if said[tx.tx_id].state != "accepted"]
            async with self.db.autocommit() as conn:
                await store.note_tries(conn, self.chain_scope, accepted=accepted, others=others, now=now)
        return said
