"""People who run the gateway, their sessions and second factors."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from .base import holds_one_of
from .people import PasswordLink, Person, PersonRecoveryCode, PersonSession, PersonTwoFactor, person_column


class Operator(Person):
    """One who runs the gateway, and signs in at ``/api/admin/auth``. Who is disabled has no session and gets none."""

    __tablename__ = "operators"
    __table_args__ = (holds_one_of("role", "owner", "operator", "support", "auditor"),)

    operator_id: Mapped[str] = mapped_column(unique=True)
    role: Mapped[str]
    disabled_at: Mapped[datetime | None]


class OperatorSession(PersonSession):
    """A session of an operator. No request finds it before its operator has a second factor."""

    __tablename__ = "operator_sessions"

    person_pk: Mapped[int] = person_column("operator_pk", "operators.id", index=True)


class OperatorLink(PasswordLink):
    """The link by which an operator sets a password, the first one or a new one. It goes with who issued it."""

    __tablename__ = "operator_links"

    person_pk: Mapped[int] = person_column("operator_pk", "operators.id", index=True)
    issued_by_pk: Mapped[int | None] = mapped_column(ForeignKey("operators.id", ondelete="CASCADE"), index=True)


class OperatorTwoFactor(PersonTwoFactor):
    """What is known of an operator's authenticator."""

    __tablename__ = "operator_two_factors"

    person_pk: Mapped[int] = person_column("operator_pk", "operators.id", primary_key=True)


class OperatorRecoveryCode(PersonRecoveryCode):
    """A recovery code of an operator."""

    __tablename__ = "operator_recovery_codes"

    person_pk: Mapped[int] = person_column("operator_pk", "operator_two_factors.person_pk", primary_key=True)
