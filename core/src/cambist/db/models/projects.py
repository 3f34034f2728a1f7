"""Projects, each live or sandbox, and the API keys that act for them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ARRAY, CheckConstraint, ForeignKey, Text, func
from sqlalchemy.orm import Mapped, mapped_column

from cambist.domain.webhooks import SignatureCheck

from .base import Base, PrimaryKey, holds_one_of


class Project(Base):
    """One shop of a merchant. ``webhook_secret_encrypted`` is None where the project signs nothing.

    Until ``previous_secret_until`` the signing secret before signs beside the new one. ``grace_s`` is how long after
    expiry a payment priced in the token still takes money. ``signature_check`` is what ``payment_webhook_url`` was last
    found to do with signatures, and None once it or the secret is another.
    """

    __tablename__ = "projects"
    __table_args__ = (
        CheckConstraint(
            "(previous_secret_encrypted IS NULL) = (previous_secret_until IS NULL)", name="previous_has_end"
        ),
        holds_one_of("signature_check", *SignatureCheck),
        CheckConstraint("(signature_check IS NULL) = (signature_checked_at IS NULL)", name="check_has_time"),
        holds_one_of("mode", "live", "sandbox"),
        CheckConstraint("underpayment_tolerance_bps BETWEEN 0 AND 1000", name="tolerance"),
        CheckConstraint("grace_s BETWEEN 0 AND 2592000", name="grace"),
    )

    id: Mapped[PrimaryKey]
    project_id: Mapped[str] = mapped_column(unique=True)
    merchant_pk: Mapped[int] = mapped_column(ForeignKey("merchants.id"), index=True)
    name: Mapped[str]
    mode: Mapped[str]
    payment_webhook_url: Mapped[str | None]
    webhook_secret_encrypted: Mapped[bytes | None]
    webhook_secret_rotated_at: Mapped[datetime | None]
    previous_secret_encrypted: Mapped[bytes | None]
    previous_secret_until: Mapped[datetime | None]
    signature_check: Mapped[str | None]
    signature_checked_at: Mapped[datetime | None]
    underpayment_tolerance_bps: Mapped[int] = mapped_column(server_default="0")
    grace_s: Mapped[int] = mapped_column(server_default="86400")
    extended_events: Mapped[bool] = mapped_column(server_default="true")
    sandbox_auto_mine: Mapped[bool] = mapped_column(server_default="false")
    is_active: Mapped[bool] = mapped_column(server_default="true")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class ApiKey(Base):
    """A key that acts for one project: only its SHA-256 is kept. ``hint`` is its beginning, for people.

    ``allowed_ips`` are addresses and networks; with none, every address may use the key. ``last_used_at`` and
    ``last_used_ip`` are noted about once a minute. ``created_by`` is the public identifier of the member who made it.
    """

    __tablename__ = "api_keys"
    __table_args__ = (
        CheckConstraint(
            "cardinality(scopes) > 0 AND scopes <@"
            " ARRAY['read', 'payments', 'refunds', 'payouts', 'exchange', 'accounts', 'trackers']",
            name="scopes",
        ),
    )

    id: Mapped[PrimaryKey]
    key_id: Mapped[str] = mapped_column(unique=True)
    project_pk: Mapped[int] = mapped_column(ForeignKey("projects.id"), index=True)
    name: Mapped[str]
    hint: Mapped[str]
    key_hash: Mapped[bytes] = mapped_column(unique=True)
    scopes: Mapped[list[str]] = mapped_column(ARRAY(Text))
    allowed_ips: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default="{}")
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    last_used_ip: Mapped[str | None]
    created_by: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    revoked_at: Mapped[datetime | None]
