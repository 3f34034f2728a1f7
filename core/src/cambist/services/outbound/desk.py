"""What the parts of the engine share: where they send, with what, and how an operator hears of trouble."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

import structlog
from msgspec import Struct, structs
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.plugin import AddressFamily, Chain, SignedTx, Step, Units, UnsignedTx
from cambist.ports import Clock, Ids
from cambist.services.prices import RateBook
from cambist.services.signer.protocol import DEAD_MAX, KeyPath, Signer, SignReply, SignRequest
from cambist.settings import OutboundSettings

from . import store
from .outcomes import Moment, Outcomes, Sent
from .rows import IntentRow, OwnPath, Site

log = structlog.get_logger(__name__)

SIGNED_AT_ONCE_MAX = 200


class Desk(Struct, frozen=True, kw_only=True):
    """One chain's engine, its parts. ``alerts`` counts by name what an operator should hear of."""

    db: Database
    chain: Chain
    family: AddressFamily
    signer: Signer
    rates: RateBook
    clock: Clock
    ids: Ids
    outcomes: Mapping[str, Outcomes]
    settings: OutboundSettings
    site: Site
    alerts: Counter[str]

    def moment(self, now: datetime) -> Moment:
        """Return what outcomes are told."""
        return Moment(now=now, ids=self.ids)

    def alert(self, name: str, **facts: object) -> None:
        """Tell the operator: in the log, and in the metric ``cambist_outbound_alerts``."""
        self.alerts[name] += 1
        log.error("outbound_alert", alert=name, chain=self.site.info.id, **facts)

    async def tell(self, conn: AsyncConnection, what: str, sent: Sequence[Sent], now: datetime) -> None:
        """Tell each kind's own outcomes of all its intents at once."""
        by_kind: dict[str, list[Sent]] = {}
        for one in sent:
            by_kind.setdefault(one.kind, []).append(one)
        for kind, ones in by_kind.items():
            await getattr(self.outcomes[kind], what)(conn, ones, self.moment(now))

    async def hold(
        self, conn: AsyncConnection, intents: Sequence[IntentRow], reason: str, due_at: datetime, now: datetime
    ) -> int:
        """Let intents wait, and tell where the reason is a new one; return for how many it is."""
        if not intents:
            return 0
        fresh = set(await store.hold(conn, [one.id for one in intents], reason, due_at, now))
        sent = [retold(one.sent, reason=reason) for one in intents if one.id in fresh]
        await self.tell(conn, "on_waiting", sent, now)
        return len(fresh)

    async def sign(
        self, items: Sequence[tuple[IntentRow, UnsignedTx]], dead: Mapping[int, Sequence[int]]
    ) -> Sequence[SignReply]:
        """Ask the signer, who judges for himself, up to the first refusal. Raises SignerUnavailableError.

        ``dead`` are the places that intents had before, in which something else was mined.
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
            mode=self.site.mode,
            chain=self.site.info.id,
            payload=tx.payload,
            path=path_of(intent.source),
            purpose=intent.sent.kind,
            reference=intent.sent.reference,
            own=tuple(path_of(one) for one in own),
            dead=tuple(dead[-DEAD_MAX:]),
            follows=follows,
        )

    def nothing(self, step: Step) -> Step:
        """Return a step that only takes the sender's place in its sequence: a transfer of nothing to itself."""
        return structs.replace(step, target=step.sender, token=self.site.info.native, amount=Units(0))

    def seal(self, tx: UnsignedTx, signature: bytes) -> SignedTx:
        """Put payload and signature together."""
        return self.family.seal(tx, signature)


def retold(sent: Sent, *, reason: str | None = None, tx_id: str | None = None) -> Sent:
    """Return the same with another reason or transaction."""
    return structs.replace(sent, reason=reason, tx_id=tx_id or sent.tx_id)


def path_of(address: OwnPath) -> KeyPath:
    return KeyPath(account=address.account, change=address.change, index=address.index)
