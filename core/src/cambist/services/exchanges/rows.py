"""Exchanges as they are stored: read, locked, and written back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Select, bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import Address, Exchange, Merchant, OutboundIntent
from cambist.db.structs import AnyRow, columns_of, one_of_given, to_struct
from cambist.domain.exchanges import FINISHED_STEPS, Kind, MadeFor, Status, Step
from cambist.domain.intents import AskedBy
from cambist.plugin import BridgeDeposit, Token, Units
from cambist.services.accounting.ledger import Account, Purpose, asset_key

IDLE_PAUSE = timedelta(minutes=10)
"""Who waits for the engine is woken by it: see the handler. No pause is longer: ``due_times.py`` counts on that."""


class ExchangeRow(Struct, frozen=True, kw_only=True):
    """One exchange: see the table. ``sender`` is the wallet's address; names in ``_pk`` are of the database alone."""

    pk: int
    txn_id: str
    kind: Kind
    made_for: MadeFor
    project_pk: int
    merchant_pk: int
    mode: str
    scope: int
    provider: str
    source_chain: str
    source_token: str
    source_contract: str | None
    source_decimals: int
    source_pk: int
    sender: str
    units: Units
    fee_units: Units
    dest_chain: str
    dest_token: str
    dest_contract: str | None
    dest_decimals: int
    recipient: str
    recipient_pk: int | None
    payout_pk: int | None
    quoted_units: Units
    units_min: Units
    slippage_bps: int
    fee_bps: int
    asked_by: AskedBy
    status: Status
    step: Step
    waits_for: str | None
    error: str | None
    intent_pk: int | None
    approvals: int
    spender: str | None
    has_turn: bool
    attempts: int
    tx_id: str | None
    deposit: dict[str, Any] | None
    fill_from: int | None
    searched_to: int | None
    is_closed: bool
    closings: int
    dest_tx_id: str | None
    output_units: Units | None
    unseen_units: Units
    unseen_height: int | None
    unseen_hash: str | None
    refunds: dict[str, str]
    sandbox_fails: str | None
    sandbox_refund_tx_id: str | None
    due_at: datetime | None
    give_up_at: datetime
    created_at: datetime
    updated_at: datetime
    broadcast_at: datetime | None
    finished_at: datetime | None

    @property
    def given(self) -> Units:
        """What goes to the provider: all but the platform's own fee."""
        return Units(self.units - self.fee_units)

    @property
    def is_finished(self) -> bool:
        return self.step in FINISHED_STEPS

    @property
    def source(self) -> Token:
        return Token(
            symbol=self.source_token,
            contract=self.source_contract,
            decimals=self.source_decimals,
            label=self.source_token,
        )

    @property
    def dest(self) -> Token:
        return Token(
            symbol=self.dest_token, contract=self.dest_contract, decimals=self.dest_decimals, label=self.dest_token
        )

    @property
    def bridge_deposit(self) -> BridgeDeposit | None:
        return None if self.deposit is None else msgspec.convert(self.deposit, BridgeDeposit)

    def account(self, purpose: Purpose) -> Account:
        """Return the merchant's account of this purpose in what is given."""
        return Account(self.merchant_pk, asset_key(self.source_chain, self.source_contract), purpose)

    def dest_account(self, purpose: Purpose) -> Account:
        """Return the merchant's account of this purpose in what comes."""
        return Account(self.merchant_pk, asset_key(self.dest_chain, self.dest_contract), purpose)


SENDER = select(Address.address).where(Address.id == Exchange.source_pk).correlate(Exchange).scalar_subquery()
COLUMNS = columns_of(ExchangeRow, Exchange, sender=SENDER)
SELECT: Select[*tuple[Any, ...]] = select(*COLUMNS)
SHOWN = ", ".join(
    {"pk": "e.id AS pk", "sender": "(SELECT address FROM addresses WHERE id = e.source_pk) AS sender"}.get(
        name, f"e.{name}"
    )
    for name in ExchangeRow.__struct_fields__
)
"""The same columns in SQL, of rows named ``e``: as JSON they are what ``shown_row`` reads."""
_LOCK = SELECT.where(Exchange.id == bindparam("pk")).with_for_update(key_share=True, of=Exchange)
_LOCK_BY_INTENTS = (
    SELECT.where(one_of_given(Exchange.intent_pk, "intent_pks"))
    .order_by(Exchange.id)
    .with_for_update(key_share=True, of=Exchange)
)

_LOCK_CALL = (
    select(
        OutboundIntent.state,
        OutboundIntent.reason,
        OutboundIntent.due_at,
        OutboundIntent.cancel_asked_at,
        select(Merchant.suspended_at.is_not(None))
        .where(Merchant.id == OutboundIntent.merchant_pk)
        .scalar_subquery()
        .label("is_suspended"),
    )
    .where(OutboundIntent.id == bindparam("pk"))
    .with_for_update(key_share=True)
)


def exchange_row(row: AnyRow) -> ExchangeRow:
    return to_struct(ExchangeRow, row)


def shown_row(shown: str) -> ExchangeRow:
    """Return an exchange that PostgreSQL tells as JSON."""
    return msgspec.json.decode(shown, type=ExchangeRow)


def when_idle(give_up_at: datetime, now: datetime) -> datetime:
    """Return when to look again at one that waits for the engine: once more when its time is over."""
    return min(now + IDLE_PAUSE, give_up_at) if give_up_at > now else now + IDLE_PAUSE


async def lock_by_intents(conn: AsyncConnection, intent_pks: Sequence[int]) -> dict[int, ExchangeRow]:
    """Return exchanges by the primary keys of their calls' intents, locked in id order until the transaction ends."""
    found = await conn.execute(_LOCK_BY_INTENTS, {"intent_pks": list(intent_pks)})
    rows = [exchange_row(row) for row in found]
    return {row.intent_pk: row for row in rows if row.intent_pk is not None}


async def lock(conn: AsyncConnection, pk: int) -> ExchangeRow:
    """Return one exchange, locked until the transaction ends."""
    found = await conn.execute(_LOCK, {"pk": pk})
    return exchange_row(found.one())


async def save(conn: AsyncConnection, row: ExchangeRow, now: datetime, **changed: object) -> ExchangeRow:
    """Write what has changed of a locked exchange, and return it as it is now."""
    await conn.execute(update(Exchange).where(Exchange.id == row.pk).values(**changed, updated_at=now))
    return msgspec.structs.replace(row, **changed, updated_at=now)


async def save_on(db: Database, row: ExchangeRow, now: datetime, **changed: object) -> bool:
    """Write what changes of an exchange that is still on the same step; return whether it was.

    For what follows from nothing that is locked: a statement by itself, which waits for nobody else's locks but the
    row's own.
    """
    is_there = Exchange.id == row.pk, Exchange.step == row.step
    async with db.autocommit() as conn:
        return bool((await conn.execute(update(Exchange).where(*is_there).values(**changed, updated_at=now))).rowcount)


class CallIntent(Struct, frozen=True):
    """What of a call's intent decides what is done next."""

    state: str
    reason: str | None
    due_at: datetime
    is_cancelling: bool
    is_suspended: bool
    """Whether its merchant is."""

    @property
    def is_wanted(self) -> bool:
        """Whether it waits to be sent, and nobody has asked to cancel it."""
        return self.state == "waiting" and not self.is_cancelling


async def lock_call(conn: AsyncConnection, intent_pk: int) -> CallIntent:
    """Return the intent of a call, locked: the engine locks intents before exchanges, and so does everybody."""
    row = (await conn.execute(_LOCK_CALL, {"pk": intent_pk})).one()
    return CallIntent(row.state, row.reason, row.due_at, row.cancel_asked_at is not None, bool(row.is_suspended))
