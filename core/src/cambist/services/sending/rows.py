"""Intents and transactions as they are stored, with the addresses that they are between."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct, structs
from sqlalchemy import Row

from cambist.domain.allocation import RECEIVING
from cambist.domain.intents import AskedBy, IntentKind
from cambist.plugin import Action, Call, Fee, Intent, Step, Token, Units
from cambist.plugin.sending import GIVING
from cambist.services.addresses.wallets import OwnAddress
from cambist.signer.protocol import KeyPath

from .handler import IntentUpdate


class OwnPath(OwnAddress, frozen=True):
    """Where an address of ours is derived, and what it is for."""

    purpose: str
    merchant_pk: int | None
    account: int
    change: int
    index: int

    @property
    def key_path(self) -> KeyPath:
        return KeyPath(account=self.account, change=self.change, index=self.index)


class IntentRow(Struct, frozen=True, kw_only=True):
    """An intent as it is stored, with its addresses."""

    update: IntentUpdate
    source: OwnPath
    recipient: OwnPath | None
    state: str
    reason: str | None
    retried_at: datetime | None
    cancel_asked_by: AskedBy | None
    given_up_reason: str | None
    created_at: datetime
    action: Action
    asked_by: AskedBy
    work_max: int | None
    tag: str | None
    call: Call | None
    call_valid_until: datetime | None

    @property
    def id(self) -> int:
        return self.update.intent_pk

    @property
    def is_retried(self) -> bool:
        """Whether an operator wanted it to be looked at, before it was read."""
        return self.retried_at is not None

    @property
    def token(self) -> Token:
        own = self.update
        return Token(symbol=own.token, contract=own.contract, decimals=own.decimals, label=own.token)

    @property
    def contract(self) -> str | None:
        return self.update.contract

    @property
    def chain_intent(self) -> Intent:
        """Return what the chain is asked to plan."""
        own = self.update
        return Intent(
            source=self.source.address,
            to_address=own.to_address,
            token=self.token,
            amount=own.units,
            action=self.action,
            work_max=self.work_max,
            tag=self.tag,
            call=self.call,
            # What is not used stays with the sender for the next transfer, but for addresses that customers pay to.
            recipient_may_empty=self.source.purpose not in RECEIVING,
        )

    def lacks_call(self, now: datetime) -> bool:
        """Whether it calls a contract, and what it would say there has not been built, or is out of date."""
        return self.action == "call" and (self.call_valid_until is None or self.call_valid_until <= now)

    @property
    def outgoing_units(self) -> int:
        """Return how much of its token leaves the source's balance."""
        return self.update.units if self.action in GIVING else 0


class TxRow(Struct, frozen=True, kw_only=True):
    """A signed transaction, its slot and its intent."""

    id: int
    slot_pk: int
    sequence: int | None
    missing_since: int | None
    role: str
    tx_id: str
    raw: bytes
    fee: Fee
    valid_until: int | None
    state: str
    succeeded: bool | None
    fee_paid: Units | None
    height: int | None
    incarnation: int
    created_at: datetime
    sent_at: datetime | None
    tried_at: datetime | None
    intent: IntentRow

    @property
    def sender(self) -> str:
        return self.intent.source.address

    @property
    def step(self) -> Step:
        """Return what the slot is for, at the fee of this transaction."""
        return self.intent.chain_intent.step(self.fee)


_OWN = "{0}.id AS {1}_pk, {0}.address AS {1}_address, {0}.purpose AS {1}_purpose, {0}.merchant_pk AS {1}_merchant,"
_OWN += " {0}.account_index AS {1}_account, {0}.change AS {1}_change, {0}.address_index AS {1}_index"

INTENT = f"""
i.id AS intent_pk, i.reference, i.kind, i.action, i.mode, i.chain, i.scope, i.merchant_pk, i.to_address, i.token,
i.contract, i.decimals, i.units, i.state AS intent_state, i.reason, i.retried_at,
i.cancel_asked_by, i.given_up_reason, i.created_at AS intent_created_at, i.asked_by,
i.work_max, i.tag, i.call_data, i.call_value, i.call_valid_until,
{_OWN.format("src", "source")}, {_OWN.format("dst", "recipient")}
"""
JOINS = """
JOIN addresses src ON src.id = i.source_address_pk LEFT JOIN addresses dst ON dst.id = i.recipient_address_pk
"""


def _own(row: Row[Any], name: str) -> OwnPath:
    values = row._mapping  # noqa: SLF001  SQLAlchemy's public name for it
    fields = ("pk", "address", "purpose", "merchant", "account", "change", "index")
    return OwnPath(*(values[f"{name}_{field}"] for field in fields))


def intent_row(row: Row[Any], **more: Any) -> IntentRow:  # noqa: ANN401  fields of IntentUpdate
    update = IntentUpdate(
        intent_pk=row.intent_pk,
        reference=row.reference,
        kind=IntentKind(row.kind),
        mode=row.mode,
        chain=row.chain,
        scope=row.scope,
        merchant_pk=row.merchant_pk,
        source_pk=row.source_pk,
        recipient_pk=row.recipient_pk,
        to_address=row.to_address,
        token=row.token,
        contract=row.contract,
        decimals=row.decimals,
        units=Units(int(row.units)),
        **more,
    )
    return IntentRow(
        update=update,
        source=_own(row, "source"),
        recipient=None if row.recipient_pk is None else _own(row, "recipient"),
        state=row.intent_state,
        reason=row.reason,
        retried_at=row.retried_at,
        cancel_asked_by=None if row.cancel_asked_by is None else AskedBy(row.cancel_asked_by),
        given_up_reason=row.given_up_reason,
        created_at=row.intent_created_at,
        action=row.action,
        asked_by=AskedBy(row.asked_by),
        work_max=row.work_max,
        tag=row.tag,
        call=_call(row),
        call_valid_until=row.call_valid_until,
    )


def _call(row: Row[Any]) -> Call | None:
    if row.call_data is None:
        return None
    return Call(to_address=row.to_address, data=row.call_data, value=Units(int(row.call_value)))


TX_COLUMNS = f"""
t.id, t.slot_pk, s.sequence, s.missing_since, t.role, t.tx_id, t.raw, t.fee_limit, t.fee_price, t.fee_tip,
t.fee_extra, t.fee_covered, t.valid_until, t.state, t.succeeded, t.fee_paid, t.height,
t.incarnation, t.created_at, t.sent_at, t.tried_at, {INTENT}
"""
TX_JOINS = f"""
outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk JOIN outbound_intents i ON i.id = s.intent_pk {JOINS}
"""
TX = f"SELECT {TX_COLUMNS} FROM {TX_JOINS}"  # noqa: S608  constants


def tx_row(row: Row[Any], *, is_closed: bool = False) -> TxRow:
    """Return a transaction as a row tells of it. ``is_closed``: what has changed since is told beside it, as new."""
    incarnation, reason = (row.new_incarnation, row.new_reason) if is_closed else (row.incarnation, row.reason)
    fee_paid = None if row.fee_paid is None else Units(int(row.fee_paid))
    intent = intent_row(row, tx_id=row.tx_id, fee=fee_paid, incarnation=incarnation, reason=reason)
    return TxRow(
        id=row.id,
        slot_pk=row.slot_pk,
        sequence=row.sequence,
        missing_since=row.missing_since,
        role=row.role,
        tx_id=row.tx_id,
        raw=row.raw,
        fee=Fee(
            limit=int(row.fee_limit),
            price=int(row.fee_price),
            tip=None if row.fee_tip is None else int(row.fee_tip),
            extra=Units(int(row.fee_extra)),
            covered=int(row.fee_covered),
        ),
        valid_until=row.valid_until,
        state=row.new_state if is_closed else row.state,
        succeeded=row.succeeded,
        fee_paid=fee_paid,
        height=row.height,
        incarnation=incarnation,
        created_at=row.created_at,
        sent_at=row.sent_at,
        tried_at=row.tried_at,
        intent=structs.replace(intent, state=row.new_intent_state, reason=reason) if is_closed else intent,
    )
