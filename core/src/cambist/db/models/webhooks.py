"""The outbox: events that merchants are told, and the log of every attempt to tell them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, func
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base, PrimaryKey, holds_one_of, partial_index


class WebhookDelivery(Base):
    """One event for one URL, written in the transaction that caused it. ``body`` is sent byte for byte.

    ``status``: ``pending`` (has attempts left; ``due_at`` says when), ``delivered``, ``dropped`` (every attempt
    failed; kept, and can be sent again), ``no_target`` (nobody to tell when it happened). A worker that claims
    one sets ``due_at`` ahead, so that a crash returns it by itself.
    """

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        holds_one_of("status", "pending", "delivered", "dropped", "no_target"),
        partial_index("ix_webhook_deliveries_due", "due_at", where="status = 'pending'"),
        Index("ix_webhook_deliveries_project_pk_id", "project_pk", "id"),
        Index("ix_webhook_deliveries_created_at", "created_at", postgresql_using="brin"),
        partial_index("ix_webhook_deliveries_resource", "resource_id", "id", where="status = 'pending'"),
    )

    id: Mapped[PrimaryKey]
    delivery_id: Mapped[str] = mapped_column(unique=True)
    project_pk: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    event: Mapped[str]
    resource_id: Mapped[str]
    url: Mapped[str | None]
    body: Mapped[bytes]
    status: Mapped[str] = mapped_column(server_default="pending")
    attempts: Mapped[int] = mapped_column(server_default="0")
    attempts_total: Mapped[int] = mapped_column(server_default="0")
    due_at: Mapped[datetime]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    delivered_at: Mapped[datetime | None]


class WebhookAttempt(Base):
    """One attempt: what was answered, or why nothing was. ``response`` is a preview of the body."""

    __tablename__ = "webhook_attempts"

    id: Mapped[PrimaryKey]
    delivery_pk: Mapped[int] = mapped_column(ForeignKey("webhook_deliveries.id"), index=True)
    number: Mapped[int]
    attempted_at: Mapped[datetime]
    duration_ms: Mapped[int]
    status_code: Mapped[int | None]
    error: Mapped[str | None]
    response: Mapped[str | None]
