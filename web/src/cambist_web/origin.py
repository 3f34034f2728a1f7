"""From whom and from where a request comes: for limits, and for the audit log.

A handler that changes something asks for ``audit``, and writes down what it did in the transaction that does it::

    async def issue(self, ..., audit: NamedDependency[Audit]) -> KeyIssued:
        async with web.db.transaction() as conn:
            issued = await api_keys.issue(conn, ...)
            await audit.record(conn, Action.KEY_ISSUED, subject=issued.key.key_id, name=issued.key.name)

What is refused is counted where errors are answered (``cambist_web/errors.py``), and needs nothing of a handler. What
else anybody may do without end is counted, too: ``audit.count(Action.PASSWORD_RESET_ASKED, email=email)``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.di import NamedDependency
from msgspec.structs import replace
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.audit.entries import Action, Origin, record
from cambist.services.audit.sums import Kind
from cambist.services.identity.sessions import SessionPrincipal

from .client_address import client_host, counted_as
from .context import Web, web_of

Connection: TypeAlias = ASGIConnection[Any, Any, Any, Any]

FORWARDED_FOR = b"x-forwarded-for"


def host_of(connection: Connection) -> str:
    """Return the address that the request comes from."""
    client = connection.scope["client"]
    peer = client[0] if client is not None else ""
    trusted = web_of(connection.app).trusted_proxies
    lines = [value.decode("latin-1") for name, value in connection.scope["headers"] if name == FORWARDED_FOR]
    return client_host(peer, lines if trusted else (), trusted)


def address_of(connection: Connection) -> str:
    """Return what the request is counted for: its address, or the /64 that it is in."""
    return counted_as(host_of(connection))


def origin_of(connection: Connection) -> Origin:
    """Return who asks, as far as guards have found out, and from where."""
    state = connection.state
    session, actor, tracker = state.get("session"), state.get("actor"), state.get("tracker")
    origin = Origin(
        actor_kind="stranger",
        address=host_of(connection),
        project_id=None if actor is None else actor.project_id,
    )
    if session is not None:
        return replace(origin, actor_kind="merchant", **_in_person(session))
    if actor is not None:
        return replace(origin, actor_kind="key", key_pk=actor.key_pk, merchant_id=actor.merchant_id)
    if tracker is not None:
        whose = tracker.actor
        told = replace(origin, merchant_id=whose.merchant_id, project_id=whose.project_id)
        return replace(told, actor_kind="tracker", actor=tracker.webhook_id)
    operator = state.get("operator")
    if operator is not None:
        in_person = state.get("operator_session")
        session_id = None if in_person is None else in_person.session_id
        return replace(origin, actor_kind="operator", actor=operator, session_id=session_id)
    return origin


def _in_person(session: SessionPrincipal) -> Mapping[str, str]:
    return {"actor": session.member_id, "merchant_id": session.merchant_id, "session_id": session.session_id}


class Audit:
    """Writes down what one request does."""

    def __init__(self, web: Web, origin: Origin) -> None:
        self._web = web
        self.origin = origin

    @property
    def operator_id(self) -> str | None:
        """The operator in person who asks for what is operators'; None for a program with the admin key."""
        return None if self.origin.session_id is None else self.origin.actor

    def of_member(self, member_id: str, merchant_id: str, session_id: str | None = None) -> Audit:
        """Return the same for a member who has proven their identity in this request, in the session that it opened."""
        told = {"actor": member_id, "merchant_id": merchant_id, "session_id": session_id}
        return Audit(self._web, replace(self.origin, actor_kind="merchant", **told))

    def of_operator(self, operator_id: str) -> Audit:
        """Return the same for an operator who has proven their identity in this request."""
        return Audit(self._web, replace(self.origin, actor_kind="operator", actor=operator_id))

    def about(self, merchant_id: str, project_id: str) -> Audit:
        """Return the same for what an operator does about a project of a merchant, who reads of it there."""
        return Audit(self._web, replace(self.origin, merchant_id=merchant_id, project_id=project_id))

    async def record(
        self,
        conn: AsyncConnection,
        action: Action,
        /,
        *,
        subject: str | None = None,
        merchant_id: str | None = None,
        **details: object,
    ) -> None:
        """Write an entry, in the transaction of the act. Details that are None are left out.

        ``merchant_id`` is for acts of the operator that concern one.
        """
        origin = self.origin if merchant_id is None else replace(self.origin, merchant_id=merchant_id)
        told = {name: value for name, value in details.items() if value is not None}
        await record(conn, origin, action, self._web.clock.now(), subject=subject, details=told)

    def count(
        self, action: Action, *, code: str | None = None, email: str | None = None, people: str | None = None
    ) -> None:
        """Count what anybody may do without end: the sum of its minute becomes an entry, with some e-mail addresses.

        Summed by the address that requests are counted for, the /64 of IPv6.
        """
        address = None if self.origin.address is None else counted_as(self.origin.address)
        origin = replace(self.origin, address=address)
        self._web.audit_sums.add(Kind(action=action, origin=origin, code=code, people=people), email=email)

    def recorder(self, action: Action) -> Callable[[AsyncConnection], Awaitable[None]]:
        """Return what writes this entry, for use cases that open their transactions themselves."""
        return partial(self._record_alone, action)

    async def _record_alone(self, action: Action, conn: AsyncConnection) -> None:
        await self.record(conn, action)


async def provide_audit(request: Request[Any, Any, Any], web: NamedDependency[Web]) -> Audit:
    return Audit(web, origin_of(request))
