"""What people who sign in have, whichever table they are in: a password, sessions, a second factor, one-time links.

Each kind of people has tables of its own, so that what belongs to one kind is never found for another. In all of them
``person_pk`` is the person; its column is named after the kind.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, func
from sqlalchemy.orm import Mapped, declared_attr, mapped_column
from sqlalchemy.schema import SchemaItem

from .base import Base, PrimaryKey


def person_column(name: str, refers_to: str, **options: Any) -> Any:  # noqa: ANN401  SQLAlchemy's own options
    """Return the column ``person_pk``, of this name in the database. A row goes with what it refers to."""
    return mapped_column(name, ForeignKey(refers_to, ondelete="CASCADE"), key="person_pk", **options)


class Person(Base):
    """Somebody who signs in. ``email`` is stored in lower case."""

    __abstract__ = True

    id: Mapped[PrimaryKey]
    email: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str]
    password_hash: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class PersonSession(Base):
    """A dashboard session: one chain of rotating refresh tokens, of which only the newest hash is valid.

    ``previous_hash`` is the one before, exchanged at ``rotated_at``: who presents it again later than a moment after
    has stolen it, or been robbed. ``last_used_at`` and ``ip`` are noted about once a minute. Until ``step_up_until``
    the session may do what needs a second factor.
    """

    __abstract__ = True

    id: Mapped[PrimaryKey]
    session_id: Mapped[str] = mapped_column(unique=True)
    person_pk: Mapped[int]
    refresh_hash: Mapped[bytes] = mapped_column(unique=True)
    previous_hash: Mapped[bytes | None]
    rotated_at: Mapped[datetime | None]
    ip: Mapped[str | None]
    user_agent: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    last_used_at: Mapped[datetime] = mapped_column(server_default=func.now())
    step_up_until: Mapped[datetime | None]
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]


class PasswordLink(Base):
    """A way in, or back in, used once: whoever has its token sets a password."""

    __abstract__ = True

    token_hash: Mapped[bytes] = mapped_column(primary_key=True)
    person_pk: Mapped[int]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class PersonTwoFactor(Base):
    """What is known of a person's authenticator. ``secret_encrypted`` is None until the first one is confirmed.

    ``pending_encrypted`` is a secret that was shown and waits for its first code. ``last_step`` is the newest time
    step of which a code was taken: no older one is. ``wrong_codes`` counts since the last right one.
    """

    __abstract__ = True

    person_pk: Mapped[int]
    secret_encrypted: Mapped[bytes | None]
    enabled_at: Mapped[datetime | None]
    pending_encrypted: Mapped[bytes | None]
    pending_at: Mapped[datetime | None]
    last_step: Mapped[int] = mapped_column(server_default="0")
    wrong_codes: Mapped[int] = mapped_column(server_default="0")
    locked_until: Mapped[datetime | None]

    @declared_attr.directive
    def __table_args__(self) -> tuple[SchemaItem, ...]:
        """Return the checks of each of the tables."""
        return (
            CheckConstraint("wrong_codes >= 0", name="wrong_codes"),
            CheckConstraint("(secret_encrypted IS NULL) = (enabled_at IS NULL)", name="enabled"),
            CheckConstraint("(pending_encrypted IS NULL) = (pending_at IS NULL)", name="pending"),
        )


class PersonRecoveryCode(Base):
    """A code that stands in for the authenticator once: only its SHA-256 is kept."""

    __abstract__ = True

    person_pk: Mapped[int]
    code_hash: Mapped[bytes] = mapped_column(primary_key=True)
    used_at: Mapped[datetime | None]
