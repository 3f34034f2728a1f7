"""Merchants' second factor: an authenticator app's secret, and recovery codes for when the app is lost."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base


class TwoFactorState(Base):
    """What is known of a merchant's authenticator. ``secret_encrypted`` is None until the first one is confirmed.

    ``pending_encrypted`` is a secret that was shown and waits for its first code. ``last_step`` is the newest time
    step of which a code was taken: no older one is. ``wrong_codes`` counts since the last right one.
    """

    __tablename__ = "two_factor_states"
    __table_args__ = (
        CheckConstraint("wrong_codes >= 0", name="wrong_codes"),
        CheckConstraint("(secret_encrypted IS NULL) = (enabled_at IS NULL)", name="enabled"),
        CheckConstraint("(pending_encrypted IS NULL) = (pending_at IS NULL)", name="pending"),
    )

    merchant_pk: Mapped[int] = mapped_column(ForeignKey("merchants.id", ondelete="CASCADE"), primary_key=True)
    secret_encrypted: Mapped[bytes | None] = mapped_column(LargeBinary)
    enabled_at: Mapped[datetime | None]
    pending_encrypted: Mapped[bytes | None] = mapped_column(LargeBinary)
    pending_at: Mapped[datetime | None]
    last_step: Mapped[int] = mapped_column(server_default="0")
    wrong_codes: Mapped[int] = mapped_column(server_default="0")
    locked_until: Mapped[datetime | None]


class RecoveryCode(Base):
    """A code that stands in for the authenticator once: only its SHA-256 is kept."""

    __tablename__ = "recovery_codes"

    merchant_pk: Mapped[int] = mapped_column(
        ForeignKey("two_factor_states.merchant_pk", ondelete="CASCADE"), primary_key=True
    )
    code_hash: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    used_at: Mapped[datetime | None]
