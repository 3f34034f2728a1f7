"""Merchants, their members' sessions and second factors, and the account keys that their addresses are derived from."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ARRAY, BigInteger, CheckConstraint, ForeignKey, UniqueConstraint, func
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base, PrimaryKey, holds_one_of, partial_index
from .people import PasswordLink, Person, PersonRecoveryCode, PersonSession, PersonTwoFactor, person_column


class Merchant(Base):
    """One who is paid. ``live`` says whether the operator has granted live mode. ``email`` is the one signed up with.

    Without ``plan_pk`` the merchant has the default plan, whichever that is. Since ``suspended_at``, where it is set,
    the operator lets nothing of the merchant's leave. ``limits`` are what the operator has set for this merchant alone,
    by ``<chain>/<SYMBOL>``: ``MerchantLimit`` of ``outgoing_limits.py``; each change adds one to ``limits_version``.
    Likewise which coins are enabled, in each mode, and ``live_coins_version`` or ``sandbox_coins_version``.
    """

    __tablename__ = "merchants"
    __table_args__ = (
        CheckConstraint("(suspended_at IS NULL) = (suspension_reason IS NULL)", name="suspension_whole"),
        partial_index("ix_merchants_suspended", "id", where="suspended_at IS NOT NULL"),
    )

    id: Mapped[PrimaryKey]
    merchant_id: Mapped[str] = mapped_column(unique=True)
    email: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str]
    live: Mapped[bool] = mapped_column(server_default="false")
    plan_pk: Mapped[int | None] = mapped_column(ForeignKey("plans.id"), index=True)
    suspended_at: Mapped[datetime | None]
    suspension_reason: Mapped[str | None]
    limits: Mapped[dict[str, object]] = mapped_column(server_default="{}")
    limits_version: Mapped[int] = mapped_column(server_default="0")
    live_coins_version: Mapped[int] = mapped_column(server_default="0")
    sandbox_coins_version: Mapped[int] = mapped_column(server_default="0")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


ROLES = "role IN ('owner', 'admin', 'finance', 'developer', 'viewer')"
WHOLE = "role NOT IN ('owner', 'admin') OR project_pks IS NULL"


class Member(Person):
    """Somebody who signs in for a merchant. Who signs up is the first, and an owner.

    Without ``project_pks`` every project of the merchant is open to the member, also those that are made later. Each
    change of role or projects adds one to ``version``.
    """

    __tablename__ = "members"
    __table_args__ = (
        CheckConstraint(ROLES, name="role"),
        CheckConstraint(WHOLE, name="project_pks"),
    )

    member_id: Mapped[str] = mapped_column(unique=True)
    merchant_pk: Mapped[int] = mapped_column(ForeignKey("merchants.id"), index=True)
    role: Mapped[str] = mapped_column(server_default="owner")
    project_pks: Mapped[list[int] | None] = mapped_column(ARRAY(BigInteger))
    version: Mapped[int] = mapped_column(server_default="0")


class MemberInvitation(Base):
    """A way to become a member, used once: whoever has its token sets the password. It goes with who made it."""

    __tablename__ = "member_invitations"
    __table_args__ = (
        UniqueConstraint("merchant_pk", "email"),
        CheckConstraint(ROLES, name="role"),
        CheckConstraint(WHOLE, name="project_pks"),
    )

    id: Mapped[PrimaryKey]
    invitation_id: Mapped[str] = mapped_column(unique=True)
    merchant_pk: Mapped[int] = mapped_column(ForeignKey("merchants.id"))
    invited_by_pk: Mapped[int] = mapped_column(ForeignKey("members.id", ondelete="CASCADE"), index=True)
    email: Mapped[str]
    name: Mapped[str]
    role: Mapped[str]
    project_pks: Mapped[list[int] | None] = mapped_column(ARRAY(BigInteger))
    token_hash: Mapped[bytes] = mapped_column(unique=True)
    expires_at: Mapped[datetime]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Session(PersonSession):
    """A session of a member."""

    __tablename__ = "sessions"

    person_pk: Mapped[int] = person_column("member_pk", "members.id", index=True)


class PasswordReset(PasswordLink):
    """The link by which a member sets a password. It goes with who issued it: an owner of the team, or an operator."""

    __tablename__ = "password_resets"

    person_pk: Mapped[int] = person_column("member_pk", "members.id", index=True)
    issued_by_pk: Mapped[int | None] = mapped_column(ForeignKey("members.id", ondelete="CASCADE"), index=True)
    issued_by_operator_pk: Mapped[int | None] = mapped_column(
        ForeignKey("operators.id", ondelete="CASCADE"), index=True
    )


class TwoFactorState(PersonTwoFactor):
    """What is known of a member's authenticator."""

    __tablename__ = "two_factor_states"

    person_pk: Mapped[int] = person_column("member_pk", "members.id", primary_key=True)


class RecoveryCode(PersonRecoveryCode):
    """A recovery code of a member."""

    __tablename__ = "recovery_codes"

    person_pk: Mapped[int] = person_column("member_pk", "two_factor_states.person_pk", primary_key=True)


class AccountKey(Base):
    """An account-level extended public key, derived ahead by the signing side and claimed by a merchant.

    ``next_index`` is the first deposit index that was never leased; what nobody has claimed and has none left is set
    aside, for somebody may have had it before a restore. ``xpub_encrypted`` is bound to
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
