"""Merchants, their sessions, and the account keys that their addresses are derived from."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Identity, Index, LargeBinary, UniqueConstraint, func, text
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base


class Merchant(Base):
    """One who is paid. ``email`` is stored in lower case."""

    __tablename__ = "merchants"

    id: Mapped[int] = mapped_column(Identity(always=True), primary_key=True)
    merchant_id: Mapped[str] = mapped_column(unique=True)
    email: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str]
    password_hash: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Session(Base):
    """A dashboard session: one chain of rotating refresh tokens, of which only the newest hash is valid.

    ``previous_hash`` is the one before: who presents it again has stolen it, or been robbed.
    """

    __tablename__ = "sessions"

    id: Mapped[int] = mapped_column(Identity(always=True), primary_key=True)
    session_id: Mapped[str] = mapped_column(unique=True)
    merchant_pk: Mapped[int] = mapped_column(ForeignKey("merchants.id", ondelete="CASCADE"), index=True)
    refresh_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    previous_hash: Mapped[bytes | None] = mapped_column(LargeBinary, index=True)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]


class PasswordReset(Base):
    """A way back in, used once."""

    __tablename__ = "password_resets"

    token_hash: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    merchant_pk: Mapped[int] = mapped_column(ForeignKey("merchants.id", ondelete="CASCADE"), index=True)
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class AccountKey(Base):
    """An account-level extended public key, derived ahead by the signing side and claimed by a merchant.

    ``next_index`` is the first deposit index that was never leased. ``xpub_encrypted`` is bound to
    ``(mode, coin_type, account_index)``.
    """

    __tablename__ = "account_keys"
    __table_args__ = (
        UniqueConstraint("mode", "coin_type", "account_index"),
        UniqueConstraint("mode", "coin_type", "merchant_pk"),
        CheckConstraint("mode IN ('live', 'sandbox')", name="mode"),
        CheckConstraint("next_index BETWEEN 0 AND 2147483648", name="index_range"),
        Index(
            "ix_account_keys_stock", "mode", "coin_type", "account_index", postgresql_where=text("merchant_pk IS NULL")
        ),
    )

    id: Mapped[int] = mapped_column(Identity(always=True), primary_key=True)
    mode: Mapped[str]
    coin_type: Mapped[int]
    account_index: Mapped[int]
    xpub_encrypted: Mapped[bytes] = mapped_column(LargeBinary)
    merchant_pk: Mapped[int | None] = mapped_column(ForeignKey("merchants.id"))
    next_index: Mapped[int] = mapped_column(server_default="0")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
