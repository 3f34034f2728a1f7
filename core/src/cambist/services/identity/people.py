"""People who sign in: members of merchants, and the operators of the gateway.

What both kinds do is written once, for ``People``.

::

    Sessions(MEMBERS, ...)                    sessions.py     MEMBERS stands in members.py
    TwoFactor(OPERATORS, ...)                 two_factor/     OPERATORS stands in operators.py
    credentials.check_password(OPERATORS, ...)

Each kind has tables of its own, and keys of its own for its tokens: nothing that one kind holds opens anything for the
other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct
from sqlalchemy import ColumnElement, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.structs import AnySelect, columns_of, to_struct
from cambist.services.errors import ServiceError


class Person(Struct, frozen=True, kw_only=True):
    """Somebody who signs in. ``pk`` is for statements."""

    pk: int
    email: str
    name: str

    @property
    def person_id(self) -> str:
        """The public identifier."""
        raise NotImplementedError


class Principal(Struct, frozen=True, kw_only=True):
    """Somebody in person, in one session."""

    session_id: str
    step_up_until: datetime | None = None

    @property
    def person_pk(self) -> int:
        """Whose session it is."""
        raise NotImplementedError

    @property
    def person_id(self) -> str:
        """The public identifier."""
        raise NotImplementedError

    def has_stepped_up(self, now: datetime) -> bool:
        return self.step_up_until is not None and now < self.step_up_until


V = TypeVar("V", bound=Person)
P = TypeVar("P", bound=Principal)


class People(Struct, Generic[V, P], frozen=True, kw_only=True, eq=False):
    """One kind of people: the tables, and what becomes of rows of them. Each is itself alone, and has a hash.

    ``may_sign_in`` says whose password is looked at, ``may_have_session`` whose sessions are found, and
    ``needs_two_factor`` whether nobody is let in without a second factor. ``link_holds`` says of a link whether whoever
    issued it may still do so, and ``lock_issuers`` keeps that so until the transaction ends.
    """

    kind: Literal["member", "operator"]
    table: type[models.Person]
    public_id: Any
    view: type[V]
    principal: type[P]
    principal_columns: Any
    session: type[models.PersonSession]
    link: type[models.PasswordLink]
    two_factor: type[models.PersonTwoFactor]
    recovery_code: type[models.PersonRecoveryCode]
    may_sign_in: ColumnElement[bool]
    may_have_session: ColumnElement[bool]
    needs_two_factor: bool
    issuer: str
    step_up_path: str
    more_columns: Mapping[str, ColumnElement[Any]] = {}
    link_prefix: str
    link_holds: ColumnElement[bool] = true()
    lock_issuers: Callable[[AsyncConnection, V], Awaitable[None]] | None = None
    no_such_email: Callable[[], ServiceError]

    @property
    def columns(self) -> Any:  # noqa: ANN401  columns of any kind
        """What ``view`` is made of."""
        return columns_of(self.view, self.table, **self.more_columns)


@cache
def having_session(people: People[V, P]) -> AnySelect:
    """Return what finds the principals of sessions, to be narrowed down.

    Made once: SQLAlchemy looks at every column of what is made anew, and this is for each request.
    """
    session, person = people.session, people.table
    found = select(*people.principal_columns).select_from(session).join(person, person.id == session.person_pk)
    return found.where(people.may_have_session)


async def get(conn: AsyncConnection, people: People[V, P], pk: int) -> V:
    """Return a person that exists."""
    found = await conn.execute(select(*people.columns).where(people.table.id == pk))
    return to_struct(people.view, found.one())


async def lock(conn: AsyncConnection, people: People[V, P], pk: int) -> None:
    """Let one transaction at a time change what a person has, until this one ends."""
    locked = select(people.table.id).where(people.table.id == pk)
    await conn.execute(locked.with_for_update(key_share=True))
