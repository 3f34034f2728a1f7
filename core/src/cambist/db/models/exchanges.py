"""Swaps and bridges of merchants' money, and which deposits came of them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, PrimaryKeyConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cambist.domain.exchanges import Kind, MadeFor, Status, Step
from cambist.domain.intents import AskedBy

from .base import Base, PrimaryKey, UnitsType, holds_one_of, partial_index


class Exchange(Base):
    """One swap or bridge; ``cambist.domain.exchanges`` says what status and step mean.

    ``units`` of the source token left available when it was asked for. Of them, ``fee_units`` are the platform's fee
    where the provider takes none for it, and the rest is given to the provider. ``units_min`` is the least output that
    the merchant was promised, and never changes; ``fee_bps`` the share of the output that the provider pays to the
    platform. ``recipient`` gets the output: an address of ours, ``recipient_pk``, unless a payout sends it to somebody.

    ``has_turn`` says that its allowance is being used: one exchange at a time for each wallet, token and spender.
    ``attempts`` counts trials of its call that the provider or the chain refused. ``due_at`` is when to look again,
    null once it has ended. ``give_up_at`` is until when its call may be built.

    ``deposit`` is a bridge's, as its own chain has shown it. ``fill_from`` is a height of the other chain from before
    the call, null until one is found, and ``searched_to`` up to where the chain that is looked at has no fill, or no
    refund. ``is_closed``: what had left is no longer between two chains.
    ``closings`` counts how often that was posted or taken back, part of the reference of each posting.
    ``sandbox_fails`` is how it was made to fail on a simulated chain: its call reverts, or nobody pays it out and
    ``sandbox_refund_tx_id`` gives it back.
    ``unseen_units`` came as native coin of which no transfer is told, and are credited by the balance, in the block
    ``unseen_height`` with ``unseen_hash``. That block is also known of a fill to somebody who is none of ours.
    ``refunds`` are the transactions that were seen to pay deposits of the wallet back, each with its units: this one's
    may be among them.
    """

    __tablename__ = "exchanges"
    __table_args__ = (
        CheckConstraint("units > 0 AND units_min > 0 AND fee_units BETWEEN 0 AND units - 1", name="units_positive"),
        CheckConstraint("(kind = 'swap') = (source_chain = dest_chain)", name="kind_fits"),
        holds_one_of("kind", *Kind),
        holds_one_of("made_for", *MadeFor),
        holds_one_of("status", *Status),
        holds_one_of("step", *Step),
        holds_one_of("mode", "live", "sandbox"),
        holds_one_of("asked_by", *AskedBy),
        holds_one_of("sandbox_fails", "revert", "expire"),
        CheckConstraint("(due_at IS NULL) = (step = 'ended')", name="looked_at_until_ended"),
        Index("ix_exchanges_project", "project_pk", "created_at", "id"),
        Index("ix_exchanges_created_at", "created_at", "id"),
        partial_index("ix_exchanges_due", "due_at", where="due_at IS NOT NULL"),
        partial_index(
            "uq_exchanges_turn",
            "source_pk",
            "source_chain",
            "scope",
            "source_contract",
            "spender",
            unique=True,
            where="has_turn",
        ),
        partial_index(
            "ix_exchanges_open", "merchant_pk", "mode", "source_chain", "source_token", where="status = 'pending'"
        ),
        partial_index("ix_exchanges_unseen", "dest_chain", "scope", "unseen_height", where="unseen_height IS NOT NULL"),
        partial_index(
            "ix_exchanges_day", "merchant_pk", "mode", "source_chain", "created_at", where="made_for = 'payout'"
        ),
        partial_index(
            "ix_exchanges_auto_failed",
            "merchant_pk",
            "mode",
            "source_chain",
            "source_token",
            "finished_at",
            where="made_for = 'auto' AND status = 'failed'",
        ),
        partial_index("ix_exchanges_awaited", "dest_chain", "scope", "recipient_pk", where="step = 'filling'"),
    )

    id: Mapped[PrimaryKey]
    txn_id: Mapped[str] = mapped_column(unique=True)
    kind: Mapped[str]
    made_for: Mapped[str]
    project_pk: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    merchant_pk: Mapped[int] = mapped_column(ForeignKey("merchants.id"))
    mode: Mapped[str]
    scope: Mapped[int]
    provider: Mapped[str]
    source_chain: Mapped[str]
    source_token: Mapped[str]
    source_contract: Mapped[str | None]
    source_decimals: Mapped[int]
    source_pk: Mapped[int] = mapped_column(ForeignKey("addresses.id"))
    units: Mapped[int] = mapped_column(UnitsType)
    fee_units: Mapped[int] = mapped_column(UnitsType, server_default="0")
    dest_chain: Mapped[str]
    dest_token: Mapped[str]
    dest_contract: Mapped[str | None]
    dest_decimals: Mapped[int]
    recipient: Mapped[str]
    recipient_pk: Mapped[int | None] = mapped_column(ForeignKey("addresses.id"))
    payout_pk: Mapped[int | None] = mapped_column(ForeignKey("payouts.id"), index=True)
    quoted_units: Mapped[int] = mapped_column(UnitsType)
    units_min: Mapped[int] = mapped_column(UnitsType)
    slippage_bps: Mapped[int]
    fee_bps: Mapped[int] = mapped_column(server_default="0")
    asked_by: Mapped[str] = mapped_column(server_default="platform")
    status: Mapped[str] = mapped_column(server_default="pending")
    step: Mapped[str] = mapped_column(server_default="queued")
    waits_for: Mapped[str | None]
    error: Mapped[str | None]
    intent_pk: Mapped[int | None] = mapped_column(ForeignKey("outbound_intents.id"), unique=True)
    approvals: Mapped[int] = mapped_column(server_default="0")
    spender: Mapped[str | None]
    has_turn: Mapped[bool] = mapped_column(server_default="false")
    attempts: Mapped[int] = mapped_column(server_default="0")
    tx_id: Mapped[str | None]
    deposit: Mapped[dict[str, object] | None] = mapped_column(JSONB(none_as_null=True))
    fill_from: Mapped[int | None]
    searched_to: Mapped[int | None]
    is_closed: Mapped[bool] = mapped_column(server_default="false")
    closings: Mapped[int] = mapped_column(server_default="0")
    dest_tx_id: Mapped[str | None]
    output_units: Mapped[int | None] = mapped_column(UnitsType)
    unseen_units: Mapped[int] = mapped_column(UnitsType, server_default="0")
    unseen_height: Mapped[int | None]
    unseen_hash: Mapped[str | None]
    refunds: Mapped[dict[str, object]] = mapped_column(server_default="{}")
    sandbox_fails: Mapped[str | None]
    sandbox_refund_tx_id: Mapped[str | None]
    due_at: Mapped[datetime | None]
    give_up_at: Mapped[datetime]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    broadcast_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class ExchangePart(Base):
    """What of a deposit belongs to an exchange: its ``output``, what was ``returned`` of the source, or a ``refund``.

    ``incarnation`` is the deposit's life at that time: a claim ends with it, and ``is_gone`` until the exchange has
    heard of that.
    """

    __tablename__ = "exchange_parts"
    __table_args__ = (
        PrimaryKeyConstraint("exchange_pk", "deposit_pk"),
        CheckConstraint("units > 0", name="units_positive"),
        holds_one_of("role", "output", "returned", "refund"),
        Index("ix_exchange_parts_deposit_pk", "deposit_pk"),
        partial_index("ix_exchange_parts_gone", "exchange_pk", where="is_gone"),
    )

    exchange_pk: Mapped[int] = mapped_column(ForeignKey("exchanges.id"))
    deposit_pk: Mapped[int] = mapped_column(ForeignKey("deposits.id"))
    incarnation: Mapped[int]
    role: Mapped[str]
    units: Mapped[int] = mapped_column(UnitsType)
    is_gone: Mapped[bool] = mapped_column(server_default="false")
