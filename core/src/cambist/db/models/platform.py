"""What the operator decides while the gateway runs, what usage costs, and what prices were."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from sqlalchemy import ARRAY, CheckConstraint, ForeignKey, Index, PrimaryKeyConstraint, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base, PrimaryKey, UnitsType, holds_one_of, partial_index


class PlatformSettings(Base):
    """One row: the settings that ``/api/admin/settings`` reads and writes. What it does not say has its default.

    Each change adds one to ``version``.
    """

    __tablename__ = "platform_settings"
    __table_args__ = (CheckConstraint("id = 1", name="only_one"),)

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    settings: Mapped[dict[str, object]]
    version: Mapped[int] = mapped_column(server_default="0")
    updated_at: Mapped[datetime]


class ChainPause(Base):
    """Watching or sending on a live chain, paused by an operator. The row is deleted when it is resumed."""

    __tablename__ = "chain_pauses"
    __table_args__ = (PrimaryKeyConstraint("chain", "what"), holds_one_of("what", "watching", "sending"))

    chain: Mapped[str]
    what: Mapped[str]
    reason: Mapped[str]
    paused_by: Mapped[str]
    paused_at: Mapped[datetime]


class PriceSourceSetAside(Base):
    """A price source that an operator has set aside. The row is deleted when it is taken back."""

    __tablename__ = "price_sources_set_aside"

    source: Mapped[str] = mapped_column(primary_key=True)
    reason: Mapped[str]
    set_aside_by: Mapped[str]
    set_aside_at: Mapped[datetime]


class PriceSourceState(Base):
    """How a price source was believed when a worker asked it last, ``since`` when, and for which ``symbols`` not.

    ``away`` is one that gave no answer. There is no row of one that is set aside.
    """

    __tablename__ = "price_source_states"
    __table_args__ = (holds_one_of("verdict", "used", "too_old", "too_far", "impossible", "away"),)

    source: Mapped[str] = mapped_column(primary_key=True)
    verdict: Mapped[str]
    symbols: Mapped[list[str]] = mapped_column(ARRAY(Text))
    since: Mapped[datetime]
    seen_at: Mapped[datetime]


class PriceMissing(Base):
    """A coin that had a rate, or that some source has a price of, and that has none now: what needs one is refused."""

    __tablename__ = "prices_missing"

    symbol: Mapped[str] = mapped_column(primary_key=True)
    reason: Mapped[str]
    since: Mapped[datetime]


class SignerReport(Base):
    """One row: what the signer last told of itself, copied by a worker. Web reads it, and reaches no signer."""

    __tablename__ = "signer_reports"
    __table_args__ = (CheckConstraint("id = 1", name="only_one"),)

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    report: Mapped[dict[str, object]]
    reported_at: Mapped[datetime]


class SignerAnswer(Base):
    """A person's answer to a question of the signer, on its way there. Its code is forgotten when it was handed on.

    ``outcome`` is the signer's word, or ``expired`` where no worker came by in time; null while it waits.
    """

    __tablename__ = "signer_answers"
    __table_args__ = (
        holds_one_of("verdict", "approve", "deny"),
        CheckConstraint("(outcome IS NULL) = (code IS NOT NULL)", name="code_while_waiting"),
        CheckConstraint("(outcome IS NULL) = (answered_at IS NULL)", name="answered"),
        partial_index("ix_signer_answers_waiting", "id", where="outcome IS NULL"),
    )

    id: Mapped[PrimaryKey]
    answer_id: Mapped[str] = mapped_column(unique=True)
    question_pk: Mapped[int]
    question: Mapped[str]
    verdict: Mapped[str]
    code: Mapped[str | None]
    asked_by: Mapped[str]
    asked_at: Mapped[datetime]
    outcome: Mapped[str | None]
    answered_at: Mapped[datetime | None]


class UsageRecord(Base):
    """Something that costs usage credits (CPT), written in the transaction that did it.

    ``posted`` says that the ledger has it: many are posted together, so that doing things does not queue for one
    account. What a merchant has left is the ledger's balance less what is not posted yet.
    """

    __tablename__ = "usage_records"
    __table_args__ = (
        UniqueConstraint("operation", "reference"),
        CheckConstraint("weight > 0", name="weight_positive"),
        partial_index("ix_usage_records_unposted", "merchant_pk", "mode", where="NOT posted"),
        Index("ix_usage_records_merchant_pk", "merchant_pk", "mode", "created_at", "id"),
        Index("ix_usage_records_created_at", "created_at", postgresql_using="brin"),
    )

    id: Mapped[PrimaryKey]
    merchant_pk: Mapped[int] = mapped_column(ForeignKey("merchants.id"))
    mode: Mapped[str]
    operation: Mapped[str]
    chain: Mapped[str | None]
    reference: Mapped[str]
    weight: Mapped[int]
    posted: Mapped[bool] = mapped_column(server_default="false")
    created_at: Mapped[datetime]


class PricePoint(Base):
    """What one unit of a token was worth in a fiat currency at a moment, for statements."""

    __tablename__ = "price_points"
    __table_args__ = (PrimaryKeyConstraint("symbol", "fiat_currency", "observed_at"),)

    symbol: Mapped[str]
    fiat_currency: Mapped[str]
    observed_at: Mapped[datetime]
    value: Mapped[Decimal]
    source: Mapped[str]


class PayoutMinimum(Base):
    """What a transfer of a token to a fresh address costs, in the token: what a payout must be worth by default.

    ``fee_units`` are of the chain's native coin, ``units`` of the token. The prices of both, in US dollars, are null
    where the token is the native coin: then none is needed.
    """

    __tablename__ = "payout_minimums"
    __table_args__ = (PrimaryKeyConstraint("chain", "symbol"),)

    chain: Mapped[str]
    symbol: Mapped[str]
    units: Mapped[int] = mapped_column(UnitsType)
    fee_units: Mapped[int] = mapped_column(UnitsType)
    native_price: Mapped[Decimal | None]
    token_price: Mapped[Decimal | None]
    derived_at: Mapped[datetime]
