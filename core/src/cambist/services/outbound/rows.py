"""Intents and transactions as they are stored, with the addresses that they are between."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import Row

from cambist.plugin import Action, ChainInfo, Fee, Intent, Step, Token, Units

from .outcomes import Sent


class Site(Struct, frozen=True, kw_only=True):
    """Where is sent: one chain, as one scope and mode sees it."""

    info: ChainInfo
    scope: int
    mode: str

    @property
    def key(self) -> tuple[str, int]:
        """Chain and scope, the first columns of every key."""
        return self.info.id, self.scope


class OwnPath(Struct, frozen=True):
    """Where an address of ours is derived, and what it is for."""

    row: int
    address: str
    purpose: str
    merchant_row: int | None
    account: int
    change: int
    index: int


class IntentRow(Struct, frozen=True, kw_only=True):
    """An intent as it is stored, with its addresses."""

    sent: Sent
    source: OwnPath
    recipient: OwnPath | None
    state: str
    reason: str | None
    forced: bool
    created_at: datetime
    action: Action = "transfer"

    @property
    def id(self) -> int:
        """Return its row."""
        return self.sent.intent_row

    @property
    def token(self) -> Token:
        """Return what is sent."""
        sent = self.sent
        return Token(symbol=sent.token, contract=sent.contract, decimals=sent.decimals, label=sent.token)

    @property
    def wanted(self) -> Intent:
        """Return what the chain is asked to plan."""
        sent = self.sent
        return Intent(
            source=self.source.address, target=sent.target, token=self.token, amount=sent.units, action=self.action
        )

    @property
    def given(self) -> int:
        """Return how much of its token leaves the source's balance."""
        return self.sent.units if self.action in {"transfer", "stake"} else 0


class TxRow(Struct, frozen=True, kw_only=True):
    """A signed transaction, its slot and its intent."""

    id: int
    slot: int
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
    block_hash: str | None
    incarnation: int
    created_at: datetime
    sent_at: datetime | None
    tried_at: datetime | None
    intent: IntentRow

    @property
    def sender(self) -> str:
        """Return the address that signed it."""
        return self.intent.source.address

    @property
    def step(self) -> Step:
        """Return what the slot is for, at the fee of this transaction."""
        return self.intent.wanted.step(self.fee)


_OWN = "{0}.id AS {1}_row, {0}.address AS {1}_address, {0}.purpose AS {1}_purpose, {0}.merchant_id AS {1}_merchant,"
_OWN += " {0}.account_index AS {1}_account, {0}.change AS {1}_change, {0}.address_index AS {1}_index"

INTENT = f"""
i.id AS intent_row, i.reference, i.kind, i.action, i.mode, i.chain, i.scope, i.merchant_id, i.target, i.token,
i.contract, i.decimals, i.units, i.state AS intent_state, i.reason, i.forced, i.created_at AS intent_created_at,
{_OWN.format("src", "source")}, {_OWN.format("dst", "recipient")}
"""
JOINS = """
JOIN addresses src ON src.id = i.source_address_id LEFT JOIN addresses dst ON dst.id = i.recipient_address_id
"""


def _own(row: Row[Any], name: str) -> OwnPath:
    values = row._mapping  # noqa: SLF001  SQLAlchemy's public name for it
    fields = ("row", "address", "purpose", "merchant", "account", "change", "index")
    return OwnPath(*(values[f"{name}_{field}"] for field in fields))


def intent_row(row: Row[Any], **more: Any) -> IntentRow:  # noqa: ANN401  fields of Sent
    sent = Sent(
        intent_row=row.intent_row,
        reference=row.reference,
        kind=row.kind,
        mode=row.mode,
        chain=row.chain,
        scope=row.scope,
        merchant_row=row.merchant_id,
        source_row=row.source_row,
        recipient_row=row.recipient_row,
        target=row.target,
        token=row.token,
        contract=row.contract,
        decimals=row.decimals,
        units=Units(int(row.units)),
        **more,
    )
    return IntentRow(
        sent=sent,
        source=_own(row, "source"),
        recipient=None if row.recipient_row is None else _own(row, "recipient"),
        state=row.intent_state,
        reason=row.reason,
        forced=row.forced,
        created_at=row.intent_created_at,
        action=row.action,
    )


TX = f"""
SELECT t.id, t.slot_id, s.sequence, s.missing_since, t.role, t.tx_id, t.raw, t.fee_limit, t.fee_price, t.fee_tip,
       t.fee_extra, t.fee_covered, t.valid_until, t.state, t.succeeded, t.fee_paid, t.height, t.block_hash,
       t.incarnation, t.created_at, t.sent_at, t.tried_at, {INTENT}
FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_id JOIN outbound_intents i ON i.id = s.intent_id {JOINS}
"""  # noqa: S608  constants


def tx_row(row: Row[Any]) -> TxRow:
    fee_paid = None if row.fee_paid is None else Units(int(row.fee_paid))
    return TxRow(
        id=row.id,
        slot=row.slot_id,
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
        state=row.state,
        succeeded=row.succeeded,
        fee_paid=fee_paid,
        height=row.height,
        block_hash=row.block_hash,
        incarnation=row.incarnation,
        created_at=row.created_at,
        sent_at=row.sent_at,
        tried_at=row.tried_at,
        intent=intent_row(row, tx_id=row.tx_id, fee=fee_paid, incarnation=row.incarnation, reason=row.reason),
    )
