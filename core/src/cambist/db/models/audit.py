"""The audit log: what people and programs did or were refused, and the seals that show a later change.

A trigger of the first migration refuses to change or delete rows of either table.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, func
from sqlalchemy.dialects.postgresql import INT8MULTIRANGE, Range
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base, PrimaryKey, holds_one_of


class AuditEntry(Base):
    """One act, or ``count`` equal ones within a minute of those that anybody may repeat without end.

    People and things are named by their public identifiers, so that an entry outlives what it is about. ``actor`` is
    a session or an API key; a stranger has none.
    """

    __tablename__ = "audit_entries"
    __table_args__ = (
        holds_one_of("actor_kind", "merchant", "key", "tracker", "operator", "stranger", "gateway"),
        CheckConstraint("count > 0", name="count_positive"),
        Index("ix_audit_entries_at", "at", "id"),
        Index("ix_audit_entries_merchant_id", "merchant_id", "at", "id"),
        Index("ix_audit_entries_actor", "actor", "at", "id"),
        Index("ix_audit_entries_subject", "subject", "at", "id"),
        Index("ix_audit_entries_address", "address", "at", "id"),
        Index("ix_audit_entries_action", "action", "at", "id"),
    )

    id: Mapped[PrimaryKey]
    at: Mapped[datetime]
    action: Mapped[str]
    actor_kind: Mapped[str]
    actor: Mapped[str | None]
    address: Mapped[str | None]
    merchant_id: Mapped[str | None]
    project_id: Mapped[str | None]
    subject: Mapped[str | None]
    details: Mapped[dict[str, object]] = mapped_column(server_default="{}")
    count: Mapped[int] = mapped_column(server_default="1")


class AuditSeal(Base):
    """A batch of entries, sealed: ``digests`` are their SHA-256 in the order of their ids, one after the other.

    ``hash`` covers all of the row but ``mac``, and with ``previous_hash`` the seal before. ``mac`` is made with a key
    that the database does not hold.
    """

    __tablename__ = "audit_seals"
    __table_args__ = (
        CheckConstraint("number > 0", name="number_positive"),
        CheckConstraint("mod(octet_length(digests), 32) = 0", name="digests_whole"),
        Index("ix_audit_seals_sealed_at", "sealed_at"),
    )

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    entries: Mapped[list[Range[int]]] = mapped_column(INT8MULTIRANGE)
    digests: Mapped[bytes]
    previous_hash: Mapped[bytes]
    hash: Mapped[bytes]
    mac: Mapped[bytes]
    sealed_at: Mapped[datetime] = mapped_column(server_default=func.now())
