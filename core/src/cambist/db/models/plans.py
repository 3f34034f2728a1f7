"""Plans: what merchants may use, and how much of the usage credits a month includes."""

from __future__ import annotations

from datetime import date, datetime

from sqlalchemy import ARRAY, CheckConstraint, Date, ForeignKey, Index, PrimaryKeyConstraint, Text, func
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base, PrimaryKey, holds_one_of, partial_index


class Plan(Base):
    """What the merchants who have it may use. At most one is the default, of all who were given no other.

    ``chains`` are those that trackers may watch; with None, every one. ``addresses_max`` is for each webhook. Without
    ``requests_per_minute`` the operator's own limit holds; without ``cpt_per_month`` a month includes no credits. An
    archived plan is given to nobody any more, and stays with those who have it. Each change adds one to ``version``.
    """

    __tablename__ = "plans"
    __table_args__ = (
        CheckConstraint("webhooks_max >= 0", name="webhooks_max"),
        CheckConstraint("addresses_max >= 1", name="addresses_max"),
        CheckConstraint("requests_per_minute >= 1", name="requests_per_minute"),
        CheckConstraint("cpt_per_month >= 1", name="cpt_per_month"),
        CheckConstraint("NOT (is_default AND archived_at IS NOT NULL)", name="default_not_archived"),
        partial_index("uq_plans_default", "is_default", where="is_default", unique=True),
    )

    id: Mapped[PrimaryKey]
    plan_id: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str] = mapped_column(unique=True)
    has_tracker: Mapped[bool]
    chains: Mapped[list[str] | None] = mapped_column(ARRAY(Text))
    webhooks_max: Mapped[int]
    addresses_max: Mapped[int]
    requests_per_minute: Mapped[int | None]
    cpt_per_month: Mapped[int | None]
    price_usd: Mapped[str | None]
    is_default: Mapped[bool] = mapped_column(server_default="false")
    is_public: Mapped[bool] = mapped_column(server_default="true")
    archived_at: Mapped[datetime | None]
    version: Mapped[int] = mapped_column(server_default="0")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class CptMonth(Base):
    """A merchant's usage credits in one calendar month (UTC), named by its first day.

    ``used`` is what the roll-up has posted of that month. ``included`` is how many credits the plan made the month
    begin with, what was left of the month before among them; None until they were given.
    """

    __tablename__ = "cpt_months"
    __table_args__ = (
        PrimaryKeyConstraint("merchant_pk", "mode", "month"),
        holds_one_of("mode", "live", "sandbox"),
        CheckConstraint("included >= 0", name="included"),
        Index("ix_cpt_months_month", "month"),
    )

    merchant_pk: Mapped[int] = mapped_column(ForeignKey("merchants.id"))
    mode: Mapped[str]
    month: Mapped[date] = mapped_column(Date)
    used: Mapped[int] = mapped_column(server_default="0")
    included: Mapped[int | None]
