"""Merchants, their sessions and second factors, and the account keys that their addresses are derived from."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, UniqueConstraint, func
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base, PrimaryKey, holds_one_of, partial_index


class Merchant(Base):
    """One who is paid. ``email`` is stored in lower case. ``live`` says whether the operator has granted live mode."""

    __tablename__ = "merchants"

    id: Mapped[PrimaryKey]
    merchant_id: Mapped[str] = mapped_column(unique=True)
    email: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str]
    password_hash: Mapped[str]
    live: Mapped[bool] = mapped_column(server_default="false")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Session(Base):
    """A dashboard session: one chain of rotating refresh tokens, of which only the newest hash is valid.

    ``previous_hash`` is the one before: who presents it again has stolen it, or been robbed. ``last_used_at`` and
    ``ip`` are noted about once a minute. Until ``step_up_until`` the session may do what needs a second factor.
    """

    __tablename__ = "sessions"

    id: Mapped[PrimaryKey]
    session_id: Mapped[str] = mapped_column(unique=True)
    merchant_pk: Mapped[int] = mapped_column(ForeignKey("merchants.id", ondelete="CASCADE"), index=True)
    refresh_hash: Mapped[bytes] = mapped_column(unique=True)
    previous_hash: Mapped[bytes | None] = mapped_column(index=True)
    ip: Mapped[str | None]
    user_agent: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    last_used_at: Mapped[datetime] = mapped_column(server_default=func.now())
    step_up_until: Mapped[datetime | None]
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]


class PasswordReset(Base):
    """A way back in, used once."""

    __tablename__ = "password_resets"

    token_hash: Mapped[bytes] = mapped_column(primary_key=True)
    merchant_pk: Mapped[int] = mapped_column(ForeignKey("merchants.id", ondelete="CASCADE"), index=True)
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


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
    secret_encrypted: Mapped[bytes | None]
    enabled_at: Mapped[datetime | None]
    pending_encrypted: Mapped[bytes | None]
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
    code_hash: Mapped[bytes] = mapped_column(primary_key=True)
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
        holds_one_of("mode", "live", "sandbox"),
        CheckConstraint("next_index BETWEEN 0 AND 2147483648", name="index_range"),
        partial_index("ix_account_keys_stock", "mode", "coin_type", "account_index", where="merchant_pk IS NULL"),
    )

    id: Mapped[PrimaryKey]
    mode: Mapped[str]
    coin_type: Mapped[int]
    account_index: Mapped[int]
    xpub_encrypted: Mapped[bytes]
    merchant_pk: Mapped[int | None] = mapped_column(ForeignKey("merchants.id"))
    next_index: Mapped[int] = mapped_column(server_default="0")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
