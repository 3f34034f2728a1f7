"""Money that merchants send: payouts, refunds and withdrawals, which differ in who may ask and what they are told."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, PrimaryKeyConstraint, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cambist.domain.intents import PAYOUTS, SPENDING, AskedBy, IntentKind
from cambist.domain.payouts import Status

from .base import Base, PrimaryKey, UnitsType, holds_one_of, listed, partial_index


class Payout(Base):
    """One transfer to somebody, for a merchant. ``payout_id`` starts with ``po_``, ``ref_`` or ``wd_``.

    ``units`` left available (and, for ``held_units`` of them, held) for pending when it was asked for, and leave
    pending when it is deep in the chain, or go back. ``status``: ``requested``, ``processing`` (waits for money to
    be collected, for gas, for a delay or for its turn), ``broadcast``, ``completed``, ``failed``, ``cancelling``,
    ``cancelled``. ``asked_by`` is who asked for it: a session, an API key, or the platform by a merchant's rule.
    """

    __tablename__ = "payouts"
    __table_args__ = (
        CheckConstraint("units > 0", name="units_positive"),
        CheckConstraint("held_units BETWEEN 0 AND units", name="held_within"),
        holds_one_of("kind", *(kind for kind in IntentKind if kind in SPENDING)),
        holds_one_of("status", *Status),
        holds_one_of("mode", "live", "sandbox"),
        holds_one_of("asked_by", *AskedBy),
        # One for each list, newest first.
        partial_index("ix_payouts_payouts", "project_pk", "created_at", "id", where=f"kind IN ({listed(PAYOUTS)})"),
        partial_index("ix_payouts_refunds", "project_pk", "created_at", "id", where="kind = 'refund'"),
        partial_index("ix_payouts_withdrawals", "merchant_pk", "created_at", "id", where="kind = 'withdrawal'"),
        # The same of a merchant's and of all, for operators.
        partial_index(
            "ix_payouts_merchants_payouts",
            "merchant_pk",
            "created_at",
            "id",
            where=f"kind IN ({listed(PAYOUTS)})",
        ),
        partial_index("ix_payouts_merchants_refunds", "merchant_pk", "created_at", "id", where="kind = 'refund'"),
        partial_index("ix_payouts_all_payouts", "created_at", "id", where=f"kind IN ({listed(PAYOUTS)})"),
        partial_index("ix_payouts_all_refunds", "created_at", "id", where="kind = 'refund'"),
        partial_index("ix_payouts_all_withdrawals", "created_at", "id", where="kind = 'withdrawal'"),
        # What went to an address: of all for operators, and of one project, however much others sent there.
        Index("ix_payouts_to_address", "to_address", "created_at", "id"),
        Index("ix_payouts_project_to_address", "project_pk", "to_address", "created_at", "id"),
        Index("ix_payouts_day", "merchant_pk", "mode", "chain", "created_at"),
        partial_index(
            "ix_payouts_open",
            "merchant_pk",
            "mode",
            "chain",
            where="status IN ('requested', 'processing', 'broadcast', 'cancelling')",
        ),
        partial_index("ix_payouts_failed", "merchant_pk", "mode", "finished_at", where="status = 'failed'"),
    )

    id: Mapped[PrimaryKey]
    payout_id: Mapped[str] = mapped_column(unique=True)
    kind: Mapped[str]
    project_pk: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    merchant_pk: Mapped[int] = mapped_column(ForeignKey("merchants.id"))
    mode: Mapped[str]
    chain: Mapped[str]
    scope: Mapped[int]
    token: Mapped[str]
    contract: Mapped[str | None]
    decimals: Mapped[int]
    to_address: Mapped[str]
    to_tag: Mapped[str | None]
    units: Mapped[int] = mapped_column(UnitsType)
    held_units: Mapped[int] = mapped_column(UnitsType, server_default="0")
    asked_by: Mapped[str] = mapped_column(server_default="platform")
    status: Mapped[str] = mapped_column(server_default="requested")
    batch_pk: Mapped[int | None] = mapped_column(ForeignKey("payout_batches.id"), index=True)
    payment_pk: Mapped[int | None] = mapped_column(ForeignKey("payments.id"), index=True)
    deposit_pk: Mapped[int | None] = mapped_column(ForeignKey("deposits.id"), index=True)
    intent_pk: Mapped[int | None] = mapped_column(ForeignKey("outbound_intents.id"), unique=True)
    reason: Mapped[str | None]
    error: Mapped[str | None]
    waits_for: Mapped[str | None]
    tx_id: Mapped[str | None]
    sandbox_fails: Mapped[bool] = mapped_column(server_default="false")
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    broadcast_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class RefundPart(Base):
    """What a refund took out of held, deposit by deposit: where it goes back to if the refund fails.

    ``incarnation`` is the deposit's at that time: money of a life that a reorg has ended cannot go back to it, and what
    the deposit brings in another life is not sent again.
    """

    __tablename__ = "refund_parts"
    __table_args__ = (
        PrimaryKeyConstraint("payout_pk", "deposit_pk"),
        CheckConstraint("units > 0", name="units_positive"),
        Index("ix_refund_parts_deposit_pk", "deposit_pk"),
    )

    payout_pk: Mapped[int] = mapped_column(ForeignKey("payouts.id"))
    deposit_pk: Mapped[int] = mapped_column(ForeignKey("deposits.id"))
    incarnation: Mapped[int]
    units: Mapped[int] = mapped_column(UnitsType)


class PayoutBatch(Base):
    """Payouts that were asked for together. ``rejected`` holds the rows that were refused alone, for a replay.

    ``request_hash`` is of all that was asked, rows with their keys, so that the same request is found again.
    """

    __tablename__ = "payout_batches"
    __table_args__ = (Index("ix_payout_batches_request", "project_pk", "request_hash"),)

    id: Mapped[PrimaryKey]
    batch_id: Mapped[str] = mapped_column(unique=True)
    project_pk: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    request_hash: Mapped[bytes]
    chain: Mapped[str]
    token: Mapped[str]
    total_units: Mapped[int] = mapped_column(UnitsType)
    accepted: Mapped[int]
    rejected: Mapped[list[object]] = mapped_column(JSONB)
    created_at: Mapped[datetime]


class CoinSettings(Base):
    """What a merchant has decided about one coin; without a row everything is as usual, and the coin is enabled.

    ``autopayout_policy`` is ``off``, or ``limit``: what available holds above the threshold goes to the address,
    which must be an approved one.

    Where ``auto_convert_enabled``, what is available is exchanged for the coin of ``auto_convert_dest_chain`` and
    ``auto_convert_dest_token``. ``auto_convert_due_at`` is when that is looked at next. ``auto_convert_refusal`` and
    ``auto_convert_message`` say why nobody did it the last time, and ``auto_convert_refusals`` how often in a row.
    """

    __tablename__ = "coin_settings"
    __table_args__ = (
        PrimaryKeyConstraint("merchant_pk", "mode", "chain", "symbol"),
        holds_one_of("autopayout_policy", "off", "limit"),
        CheckConstraint(
            "autopayout_policy = 'off' OR (autopayout_threshold IS NOT NULL AND autopayout_address IS NOT NULL)",
            name="autopayout_whole",
        ),
        CheckConstraint(
            "NOT auto_convert_enabled OR (auto_convert_dest_chain IS NOT NULL AND auto_convert_dest_token IS NOT NULL"
            " AND auto_convert_project_pk IS NOT NULL AND auto_convert_due_at IS NOT NULL)",
            name="auto_convert_whole",
        ),
        partial_index("ix_coin_settings_autopayout", "merchant_pk", "mode", where="autopayout_policy = 'limit'"),
        partial_index("ix_coin_settings_auto_convert", "auto_convert_due_at", where="auto_convert_enabled"),
    )

    merchant_pk: Mapped[int] = mapped_column(ForeignKey("merchants.id"))
    mode: Mapped[str]
    chain: Mapped[str]
    symbol: Mapped[str]
    enabled: Mapped[bool] = mapped_column(server_default="true")
    auto_convert_enabled: Mapped[bool] = mapped_column(server_default="false")
    auto_convert_dest_chain: Mapped[str | None]
    auto_convert_dest_token: Mapped[str | None]
    auto_convert_project_pk: Mapped[int | None] = mapped_column(ForeignKey("projects.id"))
    auto_convert_due_at: Mapped[datetime | None]
    auto_convert_refusals: Mapped[int] = mapped_column(server_default="0")
    auto_convert_refusal: Mapped[str | None]
    auto_convert_message: Mapped[str | None]
    autopayout_policy: Mapped[str] = mapped_column(server_default="off")
    autopayout_threshold: Mapped[int | None] = mapped_column(UnitsType)
    autopayout_address: Mapped[str | None]
    autopayout_project_pk: Mapped[int | None] = mapped_column(ForeignKey("projects.id"))
    min_deposit: Mapped[int | None] = mapped_column(UnitsType)
    updated_at: Mapped[datetime]


class ApprovedAddress(Base):
    """Where a merchant lets money go without being asked each time; approving one needs a second factor."""

    __tablename__ = "approved_addresses"
    __table_args__ = (UniqueConstraint("merchant_pk", "mode", "chain", "address"),)

    id: Mapped[PrimaryKey]
    approval_id: Mapped[str] = mapped_column(unique=True)
    merchant_pk: Mapped[int] = mapped_column(ForeignKey("merchants.id"))
    mode: Mapped[str]
    chain: Mapped[str]
    address: Mapped[str]
    label: Mapped[str]
    approved_at: Mapped[datetime]
