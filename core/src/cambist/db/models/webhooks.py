"""The outbox: events that merchants are told, where each goes, and the log of every attempt to tell it."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ARRAY, CheckConstraint, Computed, ForeignKey, Index, Text, func
from sqlalchemy.orm import Mapped, mapped_column

from cambist.domain.webhooks import SignatureCheck

from .base import Base, PrimaryKey, holds_one_of, partial_index


class WebhookEndpoint(Base):
    """A URL of a project that hears of its events beside the default one. With no ``events`` it hears of all.

    A paused one queues. A deleted one has no secret any more, and stays for the log. Until ``previous_secret_until``
    the secret before signs beside the new one. ``signature_check`` is what it was last found to do with signatures, and
    None once its URL or its secret is another.
    """

    __tablename__ = "webhook_endpoints"
    __table_args__ = (
        CheckConstraint("(secret_encrypted IS NULL) = (deleted_at IS NOT NULL)", name="secret_until_deleted"),
        CheckConstraint(
            "(previous_secret_encrypted IS NULL) = (previous_secret_until IS NULL)", name="previous_has_end"
        ),
        holds_one_of("signature_check", *SignatureCheck),
        CheckConstraint("(signature_check IS NULL) = (signature_checked_at IS NULL)", name="check_has_time"),
        Index("ix_webhook_endpoints_project_pk", "project_pk"),
    )

    id: Mapped[PrimaryKey]
    endpoint_id: Mapped[str] = mapped_column(unique=True)
    project_pk: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    url: Mapped[str]
    events: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default="{}")
    secret_encrypted: Mapped[bytes | None]
    secret_rotated_at: Mapped[datetime]
    previous_secret_encrypted: Mapped[bytes | None]
    previous_secret_until: Mapped[datetime | None]
    signature_check: Mapped[str | None]
    signature_checked_at: Mapped[datetime | None]
    paused: Mapped[bool] = mapped_column(server_default="false")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    deleted_at: Mapped[datetime | None]


class WebhookEvent(Base):
    """Something that a merchant is told, written in the transaction that caused it, and never changed.

    ``body`` is sent byte for byte. ``resource`` is the kind of what it is about, ``resource_id`` its name.
    """

    __tablename__ = "webhook_events"
    __table_args__ = (
        Index("ix_webhook_events_project_pk", "project_pk", "created_at", "id"),
        Index("ix_webhook_events_event", "project_pk", "event", "created_at", "id"),
        Index("ix_webhook_events_resource_id", "resource_id"),
        Index("ix_webhook_events_created_at", "created_at", postgresql_using="brin"),
    )

    id: Mapped[PrimaryKey]
    event_id: Mapped[str] = mapped_column(unique=True)
    project_pk: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    event: Mapped[str]
    resource: Mapped[str]
    resource_id: Mapped[str]
    body: Mapped[bytes]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


_TARGET_KEY = """CASE
    WHEN tracker_pk IS NOT NULL THEN 4611686018427387904 + tracker_pk
    WHEN endpoint_pk IS NOT NULL THEN endpoint_pk
    ELSE 2305843009213693952 + (hashtextextended(lower(substring(url, '^[^/]*//[^/?#]*')), project_pk)
        & 2305843009213693951)
END"""
"""Who hears of a delivery, as a number: an endpoint, from 2**61 on a project's receiver (scheme, host and port), from
2**62 on a tracker. Whoever reads in this order comes to trackers last."""


class WebhookDelivery(Base):
    """One event for one target: an endpoint, a tracker, or with neither the default, a payment's or project's URL.

    ``status``: ``pending`` (has attempts left; ``due_at`` says when), ``paused`` (waits for its endpoint),
    ``delivered``, ``dropped`` (every attempt failed, or a tracker's merchant was suspended; kept, and can be sent
    again), ``no_target`` (nobody to tell when it happened), ``cancelled`` (a tracker was switched off, or the address
    left its list, before it was delivered), ``tested`` (sent once, to see what the receiver does with it; it has a body
    of its own and no event). A worker that claims one sets ``due_at`` ahead, so that a crash returns it
    by itself. What a tracker hears is no event of the project's: its body is here. ``target_key`` says who hears of it:
    each has a queue of its own. ``created_at`` is when it happened. No project and no tracker is ever deleted:
    ``project_pk`` is the event's or the tracker's, and whoever writes it has just read that one. Constraints that check
    both again for each row would take a sixth of the time in which trackers are told.
    """

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        holds_one_of("status", "pending", "paused", "delivered", "dropped", "no_target", "cancelled", "tested"),
        CheckConstraint("num_nonnulls(endpoint_pk, tracker_pk) <= 1", name="one_target"),
        CheckConstraint(
            "num_nonnulls(event_pk, tracker_pk) = CASE status WHEN 'tested' THEN 0 ELSE 1 END", name="event_or_tracker"
        ),
        CheckConstraint("num_nonnulls(event_pk, body) = 1", name="one_body"),
        partial_index("ix_webhook_deliveries_due", "due_at", "id", where="status = 'pending'"),
        partial_index("ix_webhook_deliveries_target", "target_key", "due_at", "id", where="status = 'pending'"),
        Index("ix_webhook_deliveries_project_pk", "project_pk", "created_at", "id"),
        Index("ix_webhook_deliveries_created_at", "created_at", postgresql_using="brin"),
        partial_index("ix_webhook_deliveries_event_pk", "event_pk", where="event_pk IS NOT NULL"),
        partial_index(
            "ix_webhook_deliveries_endpoint_pk", "endpoint_pk", "created_at", "id", where="endpoint_pk IS NOT NULL"
        ),
        partial_index(
            "ix_webhook_deliveries_open",
            "endpoint_pk",
            "status",
            "id",
            where="endpoint_pk IS NOT NULL AND status IN ('pending', 'paused')",
        ),
        partial_index(
            "ix_webhook_deliveries_resource",
            "resource_id",
            where="tracker_pk IS NULL AND status IN ('pending', 'paused')",
        ),
        partial_index("ix_webhook_deliveries_failing", "id", where="status = 'pending' AND attempts > 0"),
        partial_index(
            "ix_webhook_deliveries_ended_badly",
            "status",
            "id",
            where="status IN ('dropped', 'paused', 'no_target', 'cancelled')",
        ),
        partial_index(
            "ix_webhook_deliveries_failed", "project_pk", "created_at", where="status IN ('dropped', 'no_target')"
        ),
    )

    id: Mapped[PrimaryKey]
    # Compared by its bytes, whatever the database's language: what begins alike stands together.
    delivery_id: Mapped[str] = mapped_column(Text(collation="C"), unique=True)
    project_pk: Mapped[int]
    event_pk: Mapped[int | None] = mapped_column(ForeignKey("webhook_events.id"))
    endpoint_pk: Mapped[int | None] = mapped_column(ForeignKey("webhook_endpoints.id"))
    tracker_pk: Mapped[int | None]
    event: Mapped[str]
    resource_id: Mapped[str]
    url: Mapped[str | None]
    body: Mapped[bytes | None]
    target_key: Mapped[int | None] = mapped_column(Computed(_TARGET_KEY, persisted=True))
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
