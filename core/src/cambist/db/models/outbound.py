"""What the gateway sends: intents, the nonce slots of their senders, and signed transactions.

The database itself keeps an intent from being sent twice: it has at most one slot that is not dead, and the
transactions of a slot all carry the slot's sequence, so that at most one of them can ever be mined.
"""

from __future__ import annotations

from datetime import datetime
from typing import get_args

from sqlalchemy import CheckConstraint, Computed, ForeignKey, PrimaryKeyConstraint, UniqueConstraint, func
from sqlalchemy.orm import Mapped, mapped_column

from cambist.domain.intents import STAKING, AskedBy, IntentKind
from cambist.plugin import Action

from .base import Base, PrimaryKey, UnitsType, holds_one_of, listed, partial_index

GAVE_WAY = "state = 'waiting' AND due_at = gave_way_until AND cancel_asked_at IS NULL"
"""What of the intents gives way, or did until now: what waits for something else by now is due at another moment."""


class OutboundIntent(Base):
    """A transfer that is wanted, until it has happened or never will.

    ``state``: ``waiting`` (``reason`` says for what, ``due_at`` when to look again), ``sending`` (has a slot),
    ``done`` (deep in the chain), ``failed`` (never happened, never will). ``recipient_address_pk`` is set where
    ``to_address`` is an address of ours. ``priority`` sorts those of one sender, lower first.

    A ``sweep`` is one transaction for many collections: its ``units`` count them, they name it in ``sweep_pk``, and
    are ``sending`` without a slot of their own while it is. When it fails they wait again, and go one by one.

    ``asked_by`` is who asked for it, as the signer is told: a session, an API key, the operator or the platform itself.

    ``work_max`` is how much gas a transfer of native coin may take, where it may take more than the chain's own bound.

    A ``call`` is what ``call_data`` says to ``to_address``, with ``call_value`` of native coin, until
    ``call_valid_until``: then it has to be built anew. Before, ``to_address`` is who gets what comes of it.

    ``cancel_asked_at`` is set once somebody asked to cancel one that waited, and is never taken back: nothing signs it
    from then on, and its money goes back when the signer has voided its reference. ``given_up_reason`` is why the
    gateway itself gives it up, by the same way; or, where the operator cancels it, that signing it was denied.
    ``intent_id`` is its public id.

    ``signed_sequence`` and ``signed_tx_id`` are what its signer has told of one that may have been sent: the nonce, or
    where there are none the transaction. ``settle_asked_at`` is set while an operator wants it to be ended by the
    transaction ``settle_tx_id``; ``settle_refusal`` says why the last one that was named did not end it.

    ``gave_way_until`` is until when it waited last since something of its address could not be planned: where it is due
    then, it waits for nothing else. ``retried_at`` is set while an operator wants it to be looked at, whether or not
    its address rests.

    ``action`` is what its transaction does. Beside ``transfer`` and ``call``, ``units`` are a stake or an allowance,
    and nothing of them leaves.
    """

    __tablename__ = "outbound_intents"
    __table_args__ = (
        CheckConstraint("units > 0 OR (units = 0 AND action IN ('nothing', 'approve'))", name="units_positive"),
        CheckConstraint(
            "num_nulls(call_data, call_value, call_valid_until) IN (0, 3) AND (call_data IS NULL OR action = 'call')",
            name="call_whole",
        ),
        CheckConstraint("num_nulls(cancel_asked_at, cancel_asked_by) IN (0, 2)", name="cancel_whole"),
        CheckConstraint("given_up_reason IS NULL OR cancel_asked_at IS NOT NULL", name="given_up_cancelling"),
        holds_one_of("cancel_asked_by", *AskedBy),
        holds_one_of("state", "waiting", "sending", "done", "failed"),
        holds_one_of("kind", *IntentKind),
        holds_one_of("asked_by", *AskedBy),
        holds_one_of("action", *get_args(Action)),
        partial_index("ix_outbound_intents_waiting", "chain", "scope", "due_at", where="state = 'waiting'"),
        partial_index(
            "ix_outbound_intents_cancelling",
            "chain",
            "scope",
            "id",
            where="state = 'waiting' AND cancel_asked_at IS NOT NULL",
        ),
        # Whoever begins to send on a chain reads what gives way: some among all that waits.
        partial_index("ix_outbound_intents_gave_way", "chain", "scope", where=GAVE_WAY),
        # For the operators' queue, newest first.
        partial_index("ix_outbound_intents_queue", "mode", "created_at", "id", where="state IN ('waiting', 'sending')"),
        partial_index(
            "ix_outbound_intents_open", "source_address_pk", "chain", where="state IN ('waiting', 'sending')"
        ),
        partial_index("ix_outbound_intents_sweep", "sweep_pk", where="sweep_pk IS NOT NULL"),
        # Deposits whose collection has just failed are passed over.
        partial_index(
            "ix_outbound_intents_failed",
            "source_address_pk",
            "chain",
            where=f"state = 'failed' AND kind = '{IntentKind.COLLECTION}'",
        ),
        partial_index(
            "ix_outbound_intents_swept", "source_address_pk", where="state = 'sending' AND sweep_pk IS NOT NULL"
        ),
        partial_index(
            "ix_outbound_intents_coming", "recipient_address_pk", "chain", where="state IN ('waiting', 'sending')"
        ),
        partial_index(
            "ix_outbound_intents_gas", "recipient_address_pk", "chain", where=f"kind = '{IntentKind.TOP_UP}'"
        ),
        partial_index(
            "ix_outbound_intents_loans",
            "chain",
            "scope",
            "recipient_address_pk",
            where=f"kind IN ('{IntentKind.LOAN}', '{IntentKind.LOAN_RETURN}')",
        ),
        # For the lists: a merchant's collections, and changes of stakes, which are a few among millions.
        partial_index(
            "ix_outbound_intents_collections",
            "merchant_pk",
            "mode",
            "created_at",
            "id",
            where=f"kind = '{IntentKind.COLLECTION}'",
        ),
        partial_index(
            "ix_outbound_intents_all_collections",
            "mode",
            "created_at",
            "id",
            where=f"kind = '{IntentKind.COLLECTION}'",
        ),
        partial_index("ix_outbound_intents_stakes", "created_at", "id", where=f"kind IN ({listed(STAKING)})"),
    )

    id: Mapped[PrimaryKey]
    reference: Mapped[str] = mapped_column(unique=True)
    intent_id: Mapped[str] = mapped_column(Computed("'int_' || md5(reference)", persisted=True), unique=True)
    kind: Mapped[str]
    mode: Mapped[str]
    chain: Mapped[str]
    scope: Mapped[int]
    merchant_pk: Mapped[int | None] = mapped_column(ForeignKey("merchants.id"))
    source_address_pk: Mapped[int] = mapped_column(ForeignKey("addresses.id"))
    recipient_address_pk: Mapped[int | None] = mapped_column(ForeignKey("addresses.id"))
    to_address: Mapped[str]
    tag: Mapped[str | None]
    action: Mapped[str] = mapped_column(server_default="transfer")
    token: Mapped[str]
    contract: Mapped[str | None]
    decimals: Mapped[int]
    units: Mapped[int] = mapped_column(UnitsType)
    asked_by: Mapped[str] = mapped_column(server_default="platform")
    work_max: Mapped[int | None]
    call_data: Mapped[bytes | None]
    call_value: Mapped[int | None] = mapped_column(UnitsType)
    call_valid_until: Mapped[datetime | None]
    priority: Mapped[int] = mapped_column(server_default="100")
    sweep_pk: Mapped[int | None] = mapped_column(ForeignKey("outbound_intents.id"))
    state: Mapped[str] = mapped_column(server_default="waiting")
    reason: Mapped[str | None]
    cancel_asked_at: Mapped[datetime | None]
    cancel_asked_by: Mapped[str | None]
    given_up_reason: Mapped[str | None]
    signed_sequence: Mapped[int | None]
    signed_tx_id: Mapped[str | None]
    settle_tx_id: Mapped[str | None]
    settle_asked_at: Mapped[datetime | None]
    settle_refusal: Mapped[str | None]
    due_at: Mapped[datetime]
    gave_way_until: Mapped[datetime | None]
    retried_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


class OutboundSender(Base):
    """An address of ours that sends on a chain. Its row is locked while nonces are reserved.

    ``next_sequence`` is the first nonce that was never reserved; ``mined_sequence`` is how many are mined as last seen.
    """

    __tablename__ = "outbound_senders"
    __table_args__ = (PrimaryKeyConstraint("address_pk", "chain", "scope"),)

    address_pk: Mapped[int] = mapped_column(ForeignKey("addresses.id"))
    chain: Mapped[str]
    scope: Mapped[int]
    next_sequence: Mapped[int] = mapped_column(server_default="0")
    mined_sequence: Mapped[int] = mapped_column(server_default="0")


class OutboundSlot(Base):
    """A nonce of a sender, reserved for one intent.

    ``state``: ``open`` (nothing of it is deep in the chain yet), ``done``, ``reverted`` (mined, and failed),
    ``cancelled`` (a transfer of nothing to the sender itself used the nonce), ``dead`` (something we did not send
    used the nonce, or its transaction expired). Only the last two let the intent have another one. A dead one is
    open again where a reorg gives its nonce back to an intent that waits still.

    ``raise_asked_at`` is set while an operator wants a higher fee: up to the chain's ceiling, or so that the
    transaction costs at most ``raise_fee_max`` of native coin. ``raise_refusal`` says why the last wish was not met.
    """

    __tablename__ = "outbound_slots"
    __table_args__ = (
        UniqueConstraint("address_pk", "chain", "scope", "sequence"),
        holds_one_of("state", "open", "done", "reverted", "cancelled", "dead"),
        partial_index(
            "uq_outbound_slots_one_per_intent", "intent_pk", unique=True, where="state IN ('open', 'done', 'reverted')"
        ),
        partial_index("ix_outbound_slots_open", "chain", "scope", "id", where="state = 'open'"),
        partial_index(
            "ix_outbound_slots_lost",
            "chain",
            "scope",
            "created_at",
            where="state = 'dead' AND missing_since IS NOT NULL",
        ),
    )

    id: Mapped[PrimaryKey]
    intent_pk: Mapped[int] = mapped_column(ForeignKey("outbound_intents.id"), index=True)
    address_pk: Mapped[int] = mapped_column(ForeignKey("addresses.id"))
    chain: Mapped[str]
    scope: Mapped[int]
    sequence: Mapped[int | None]
    state: Mapped[str] = mapped_column(server_default="open")
    # The height from which on the nonce is known to be used by something else; it must stay so for a while. None again
    # once what is dead is found to be mined after all.
    missing_since: Mapped[int | None]
    raise_asked_at: Mapped[datetime | None]
    raise_fee_max: Mapped[int | None] = mapped_column(UnitsType)
    raise_refusal: Mapped[str | None]
    created_at: Mapped[datetime]


class OutboundTx(Base):
    """A signed transaction, stored before it is sent; its bytes are what is sent, however often.

    ``role`` is ``main``, or ``cancel`` for one that only uses the slot's nonce. ``state``: ``stored`` (perhaps never
    sent), ``sent``, ``mined`` (in the block named here), ``final`` (deep enough, and posted), ``gone`` (another of
    its slot was mined, or nothing of it ever can be). ``incarnation`` counts how often it became final, ``tries`` how
    often it was broadcast. ``read_height`` and ``read_hash`` are the block in which the watcher has read it last, if it
    moved something: it may have left the chain.
    """

    __tablename__ = "outbound_txs"
    __table_args__ = (
        UniqueConstraint("tx_id", "chain", "scope"),
        holds_one_of("role", "main", "cancel"),
        holds_one_of("state", "stored", "sent", "mined", "final", "gone"),
        partial_index("ix_outbound_txs_open", "chain", "scope", "id", where="state IN ('stored', 'sent', 'mined')"),
        partial_index("ix_outbound_txs_height", "chain", "scope", "height", where="state = 'final'"),
        # What networks took over a time.
        partial_index("ix_outbound_txs_created_at", "created_at", where="state = 'final'"),
    )

    id: Mapped[PrimaryKey]
    slot_pk: Mapped[int] = mapped_column(ForeignKey("outbound_slots.id"), index=True)
    chain: Mapped[str]
    scope: Mapped[int]
    role: Mapped[str] = mapped_column(server_default="main")
    tx_id: Mapped[str]
    raw: Mapped[bytes]
    fee_limit: Mapped[int] = mapped_column(UnitsType)
    fee_price: Mapped[int] = mapped_column(UnitsType)
    fee_tip: Mapped[int | None] = mapped_column(UnitsType)
    fee_extra: Mapped[int] = mapped_column(UnitsType)
    fee_covered: Mapped[int] = mapped_column(UnitsType, server_default="0")
    valid_until: Mapped[int | None]
    state: Mapped[str] = mapped_column(server_default="stored")
    succeeded: Mapped[bool | None]
    fee_paid: Mapped[int | None] = mapped_column(UnitsType)
    height: Mapped[int | None]
    block_hash: Mapped[str | None]
    read_height: Mapped[int | None]
    read_hash: Mapped[str | None]
    incarnation: Mapped[int] = mapped_column(server_default="0")
    created_at: Mapped[datetime]
    sent_at: Mapped[datetime | None]
    tried_at: Mapped[datetime | None]
    tries: Mapped[int] = mapped_column(server_default="0")


class GasStation(Base):
    """What the platform's own address holds on a chain, as the worker last saw it: web has no nodes to ask.

    What it has staked is told where the chain lends, and null elsewhere.
    """

    __tablename__ = "gas_stations"
    __table_args__ = (PrimaryKeyConstraint("mode", "chain"),)

    mode: Mapped[str]
    chain: Mapped[str]
    address: Mapped[str]
    symbol: Mapped[str]
    decimals: Mapped[int]
    balance: Mapped[int] = mapped_column(UnitsType)
    staked: Mapped[int | None] = mapped_column(UnitsType)
    lent: Mapped[int | None] = mapped_column(UnitsType)
    lendable: Mapped[int | None] = mapped_column(UnitsType)
    leaving: Mapped[int | None] = mapped_column(UnitsType)
    withdrawable: Mapped[int | None] = mapped_column(UnitsType)
    free_at: Mapped[datetime | None]
    waiting: Mapped[int] = mapped_column(server_default="0")
    is_low: Mapped[bool] = mapped_column(server_default="false")
    is_stake_low: Mapped[bool] = mapped_column(server_default="false")
    low_below: Mapped[int] = mapped_column(UnitsType, server_default="0")
    stake_low_below: Mapped[int] = mapped_column(UnitsType, server_default="0")
    checked_at: Mapped[datetime] = mapped_column(server_default=func.now())
