"""What happens to intents, as the use cases that wanted them learn of it: in the transaction in which it happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct, structs
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.intents import EXCHANGING, IntentKind
from cambist.domain.intents import SPENDING as SPENDING_KINDS
from cambist.plugin import Call, Units
from cambist.services.accounting import ledger
from cambist.services.accounting.ledger import PLATFORM, SPENDING, Account, Movement, Posting, Purpose, asset_key


class IntentUpdate(Struct, frozen=True, kw_only=True):
    """What happened to an intent, with the intent's own facts.

    ``incarnation`` counts how often its transaction became final: part of every ledger reference, so that what a
    deep reorg undid can be posted again. ``fee`` is in the native coin, for what was mined. ``reason`` is a sentence
    that says why it waits or failed; ``was_cancelled`` where that is because somebody asked for it. ``was_forgotten``:
    the database had forgotten the transaction, which was mined before.
    """

    intent_pk: int
    reference: str
    kind: IntentKind
    mode: str
    chain: str
    scope: int
    merchant_pk: int | None
    source_pk: int
    recipient_pk: int | None
    to_address: str
    token: str
    contract: str | None
    decimals: int
    units: Units
    tx_id: str | None = None
    fee: Units | None = None
    incarnation: int = 0
    reason: str | None = None
    was_cancelled: bool = False
    was_forgotten: bool = False

    @property
    def asset(self) -> str:
        """The ledger's name of what is sent."""
        return asset_key(self.chain, self.contract)

    def account(self, purpose: Purpose) -> Account:
        """Return the merchant's account of this purpose in what is sent, or the platform's."""
        return Account(self.merchant_pk or PLATFORM, self.asset, purpose)


class IntentHandler:
    """Ignore every update: base class for intent kinds that react to some of them. Fees are the engine's to post."""

    async def on_waiting(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        """Handle intents that cannot be sent yet; ``reason`` says why. Called again only when the reason changes."""

    async def on_broadcast(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        """Handle transactions that are stored and being sent. Called again, with another id, when one was replaced."""

    async def on_final(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        """Post what happened: the transactions are as deep in the chain as is asked for."""

    async def on_failed(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        """Give back what was set aside: the intents did not happen and never will."""

    async def on_undone(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        """Post the opposite: a reorg took back what was final. It may become final again, or fail."""

    async def recognizes(self, conn: AsyncConnection, one: IntentUpdate, call: Call) -> bool | None:  # noqa: ARG002
        """Whether a call is the one that an intent was to make; None where that cannot be told."""
        return None


class IntentHandlers(IntentHandler):
    """Pass updates on to the handlers of their kinds, those of a kind together."""

    def __init__(self, by_kind: Mapping[IntentKind, IntentHandler]) -> None:
        self._by_kind = by_kind

    async def recognizes(self, conn: AsyncConnection, one: IntentUpdate, call: Call) -> bool | None:
        return await self._by_kind[one.kind].recognizes(conn, one, call)

    async def on_waiting(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        for handler, own in self._split(updates):
            await handler.on_waiting(conn, own, now)

    async def on_broadcast(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        for handler, own in self._split(updates):
            await handler.on_broadcast(conn, own, now)

    async def on_final(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        for handler, own in self._split(updates):
            await handler.on_final(conn, own, now)

    async def on_failed(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        for handler, own in self._split(updates):
            await handler.on_failed(conn, own, now)

    async def on_undone(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        for handler, own in self._split(updates):
            await handler.on_undone(conn, own, now)

    def _split(self, updates: Sequence[IntentUpdate]) -> Sequence[tuple[IntentHandler, Sequence[IntentUpdate]]]:
        by_kind: dict[IntentKind, list[IntentUpdate]] = {}
        for update in updates:
            by_kind.setdefault(update.kind, []).append(update)
        return [(self._by_kind[kind], own) for kind, own in by_kind.items()]


def updated(update: IntentUpdate, *, reason: str | None = None, tx_id: str | None = None) -> IntentUpdate:
    """Return the update with another reason, or none, and another transaction, if one is given."""
    return structs.replace(update, reason=reason, tx_id=tx_id or update.tx_id)


async def lock_spending(conn: AsyncConnection, mode: str, updates: Sequence[IntentUpdate]) -> None:
    """Lock what merchants spend from, of all that the updates are about, before handlers are called.

    Whoever asks for a payout locks the merchant's accounts together, and polls of the chain lock its cursor before rows
    and accounts. Updates come kind by kind, each with rows and accounts of its own: without this, and the lock of the
    cursor that the caller holds, they would wait for those two in a circle.
    """
    paid = [one for one in updates if one.kind in SPENDING_KINDS | EXCHANGING]
    accounts = [one.account(purpose) for one in paid for purpose in SPENDING]
    await ledger.lock_balances(conn, mode, accounts)


async def post_reversible(conn: AsyncConnection, mode: str, made: Sequence[Posting], *, back: bool) -> None:
    """Post what was made; with ``back`` the opposite, as ``<kind>_reversal``."""
    if back:
        made = [
            structs.replace(one, kind=f"{one.kind}_reversal", movements=[move.back() for move in one.movements])
            for one in made
        ]
    await ledger.post(conn, mode, made)


class MovingHandler(IntentHandler):
    """Posts what an intent has moved when it is final, and the opposite when a deep reorg undoes that."""

    async def on_final(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:  # noqa: ARG002
        await self._post(conn, updates, back=False)

    async def on_undone(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:  # noqa: ARG002
        await self._post(conn, updates, back=True)

    async def moved(
        self, conn: AsyncConnection, updates: Sequence[IntentUpdate]
    ) -> Sequence[tuple[IntentUpdate, Movement]]:
        """Return what each update moves, those left out that move nothing in the books."""
        raise NotImplementedError

    async def _post(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], *, back: bool) -> None:
        made = [
            Posting(mode=one.mode, kind=one.kind, reference=f"{one.reference}:{one.incarnation}", movements=[movement])
            for one, movement in await self.moved(conn, updates)
        ]
        if made:
            await post_reversible(conn, made[0].mode, made, back=back)
