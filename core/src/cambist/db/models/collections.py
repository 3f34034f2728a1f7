"""What lies on addresses and no collection brings to a main wallet."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from sqlalchemy import CheckConstraint, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from cambist.domain.collections import Hindrance, UncollectedReason

from .base import Base, PrimaryKey, UnitsType, holds_one_of, partial_index


class UncollectedFunds(Base):
    """Confirmed deposits of one token on one address that are not collected, and why the engine did not.

    ``value_usd`` and ``fee_usd`` are as they were when it judged so, at ``judged_at``: the row is written again only
    when the judgement changes. ``until`` is when the reason ends by itself, ``detail`` the chain's words.
    ``created_at`` is when the oldest of the deposits was confirmed. ``asked_at`` is set while an operator wants it to
    be collected at the engine's next check, for at most ``asked_fee_share_bps`` of it; ``hindrance`` is why a check
    gave that no answer, ``hindrance_detail`` in the words of what failed; ``refusal`` is why the last check that was
    asked did not.

    The row goes when a collection takes the deposits. It is worked out anew from them, so nothing restores it.
    """

    __tablename__ = "uncollected_funds"
    __table_args__ = (
        Index(
            "uq_uncollected_funds_one_each", "chain", "scope", "address_pk", text("coalesce(contract, '')"), unique=True
        ),
        CheckConstraint("units > 0", name="units_positive"),
        CheckConstraint("asked_fee_share_bps IS NULL OR asked_at IS NOT NULL", name="asked_whole"),
        CheckConstraint("asked_fee_share_bps BETWEEN 0 AND 9999", name="asked_below_all"),
        CheckConstraint(
            "num_nulls(hindrance, hindered_at) IN (0, 2) AND (hindrance IS NULL OR asked_at IS NOT NULL)"
            " AND (hindrance_detail IS NULL OR hindrance IS NOT NULL)",
            name="hindrance_whole",
        ),
        CheckConstraint("num_nulls(refusal, refused_at) IN (0, 2)", name="refusal_whole"),
        holds_one_of("reason", *UncollectedReason),
        holds_one_of("refusal", *UncollectedReason),
        holds_one_of("hindrance", *Hindrance),
        # For lists: of all, of a merchant, and of one reason.
        Index("ix_uncollected_funds_created_at", "created_at", "id"),
        Index("ix_uncollected_funds_merchant_pk", "merchant_pk", "created_at", "id"),
        Index("ix_uncollected_funds_reason", "reason", "created_at", "id"),
        # What somebody wants, which an engine asks for at every tick: next to none of all rows.
        partial_index("ix_uncollected_funds_asked", "chain", "scope", "asked_at", where="asked_at IS NOT NULL"),
    )

    id: Mapped[PrimaryKey]
    uncollected_id: Mapped[str] = mapped_column(unique=True)
    chain: Mapped[str]
    scope: Mapped[int]
    address_pk: Mapped[int] = mapped_column(ForeignKey("addresses.id"))
    merchant_pk: Mapped[int] = mapped_column(ForeignKey("merchants.id"))
    token: Mapped[str]
    contract: Mapped[str | None]
    decimals: Mapped[int]
    units: Mapped[int] = mapped_column(UnitsType)
    reason: Mapped[str]
    detail: Mapped[str | None]
    value_usd: Mapped[Decimal | None]
    fee_usd: Mapped[Decimal | None]
    until: Mapped[datetime | None]
    judged_at: Mapped[datetime]
    asked_at: Mapped[datetime | None]
    asked_fee_share_bps: Mapped[int | None]
    hindrance: Mapped[str | None]
    hindrance_detail: Mapped[str | None]
    hindered_at: Mapped[datetime | None]
    refusal: Mapped[str | None]
    refused_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
