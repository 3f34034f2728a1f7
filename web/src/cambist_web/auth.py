"""Who asks: API keys and dashboard sessions, checked before anything of a request's body is read.

Handlers of a project get an ``actor``, wherever they are mounted::

    class Payments(Controller):
        @get("/{payment_id:str}")
        async def read(self, actor: NamedDependency[Actor], payment_id: FromPath[str]) -> ...: ...


    controllers = [key_routes("/api/payment", Payments), project_routes("/payments", Payments)]

The first answers to ``X-Api-Key`` at ``/api/payment``, the second to a Bearer token at
``/api/dashboard/projects/{projectId}/payments``, for the merchant whose project it is. ``session_routes`` gives
handlers a ``session``, and ``public_routes`` only counts who comes. What is for operators is in ``operator_auth.py``.

Beside each handler of a project stands what it takes to be let in: ``@post("/payout", opt=needs("payouts",
step_up=True))`` is for keys with the scope ``payouts``, and for sessions of members who may make payouts and have
stepped up, in live mode. What concerns the merchant as a whole takes the step-up in every mode: whoever is let in
before live mode is granted is there afterwards. A handler for keys without a scope lets none in.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from litestar import Router
from litestar.connection import ASGIConnection
from litestar.di import Provide
from litestar.enums import ScopeType
from litestar.handlers import BaseRouteHandler
from litestar.middleware import ASGIMiddleware
from litestar.params import FromPath
from litestar.types import ASGIApp, ControllerRouterHandler, Receive, Scope, Send

from cambist.services.actor import Actor
from cambist.services.errors import ForbiddenError, UnauthenticatedError, merchant_suspended, project_inactive
from cambist.services.identity import api_keys, projects
from cambist.services.identity.api_keys import KeyAccess
from cambist.services.identity.merchants import live_not_granted
from cambist.services.identity.people import P, V
from cambist.services.identity.sessions import USER_AGENT_CHARS_MAX, SessionPrincipal, Visitor, session_ended

from .context import SignIns, Web, web_of
from .errors import AnyRequest
from .origin import Connection, address_of, host_of
from .permissions import MEMBER, SCOPE, check_member, check_member_permissions

TOKEN_CHARS_MAX = 4_096
"""Of an access token. Ours are shorter."""

READING = frozenset({"GET", "HEAD", "OPTIONS"})

API_KEY_SCHEME = "apiKey"
SESSION_SCHEME = "session"
ADMIN_SCHEME = "adminKey"
OPERATOR_SCHEME = "operatorSession"
TRACKER_SCHEME = "trackerToken"

STEP_UP = "step_up"


def needs(
    scope: api_keys.Scope | None = None, *, member: str | None = None, step_up: bool = False
) -> Mapping[str, Any]:
    """Return the ``opt`` of a handler: the scope that a key must have, and what a session must.

    That is a member's permission, which goes by the scope's name where ``member`` names none, and maybe a step-up.
    """
    return {SCOPE: scope, MEMBER: member, STEP_UP: step_up}


def visitor_of(connection: Connection) -> Visitor:
    """Return where a session is used from."""
    agent = connection.headers.get("user-agent", "")[:USER_AGENT_CHARS_MAX]
    return Visitor(ip=host_of(connection), user_agent=agent if agent.isascii() and agent.isprintable() else None)


class LimitAddress(ASGIMiddleware):
    """Counts a request for the address it comes from. No guard: Litestar copies the handler for each of a request."""

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Let the request pass, or raise TooManyError."""
        connection: Connection = ASGIConnection(scope)
        web = web_of(connection.app)
        await web.limiter.take(web.limits.per_address, address_of(connection))
        await next_app(scope, receive, send)


async def require_key(connection: Connection, handler: BaseRouteHandler) -> None:
    """Let in whoever has a working API key with the handler's scope. A guard; sets the request's ``actor``."""
    web = web_of(connection.app)
    secret = connection.headers.get("x-api-key", "")
    access = await _access_of(web, secret, connection)
    connection.state.actor = access.actor
    now = web.clock.now()
    if access.expires_at is not None and access.expires_at <= now:
        await web.limiter.take(web.limits.bad_credentials, address_of(connection))
        raise UnauthenticatedError("API_KEY_EXPIRED", "This API key has expired. Issue another one.")
    if access.networks and not access.allows_ip(host_of(connection)):
        await web.limiter.take(web.limits.bad_credentials, address_of(connection))
        raise ForbiddenError("IP_NOT_ALLOWED", "This API key may not be used from this IP address.")
    await web.limiter.take(web.limits.of_key(access.requests_per_minute), str(access.actor.key_pk))
    if access.suspended:
        raise merchant_suspended()
    if asks_for_methods(connection):
        return
    scope = handler.opt.get(SCOPE)
    if scope not in access.scopes:
        raise ForbiddenError("SCOPE_MISSING", f"This API key lacks the scope {scope}.")
    if access.actor.mode == "live" and not access.live and scope != "read":
        raise live_not_granted()
    refuse_inactive(connection, access.actor)
    if access.last_used_at is None or now - access.last_used_at >= api_keys.NOTE_USE_AFTER:
        await _note_use(web, secret, access, connection, now)


def asks_for_methods(connection: Connection) -> bool:
    """Say whether OPTIONS is asked, which the framework answers for each path: it does nothing, and takes nothing."""
    return connection.scope.get("method") == "OPTIONS"


def refuse_inactive(connection: Connection, actor: Actor) -> None:
    """Let a project that is switched off be read, and nothing else. A quote is no reading: it is for a payment."""
    if not actor.is_active and connection.scope.get("method") not in READING:
        raise project_inactive()


async def _access_of(web: Web, secret: str, connection: Connection) -> KeyAccess:
    """Return what the key may do. What cannot be a key costs no query, and neither does a guess beyond the limit.

    A guess is counted before it is looked up: otherwise many at once would all be looked up. A key that turns out
    to be good gives back what it was counted for, and one that was good in this worker lately is not counted.
    Raises UnauthenticatedError and TooManyError.
    """
    limit, who = web.limits.bad_credentials, address_of(connection)
    if not api_keys.is_key(secret):
        await web.limiter.take(limit, who)
        if not secret:
            raise UnauthenticatedError("API_KEY_MISSING", "Send the project's API key in the header X-Api-Key.")
        raise _no_such_key()
    hashed = api_keys.key_hash(secret)
    now = web.clock.monotonic()
    access = web.key_cache.get(hashed, now)
    if access is not None:
        return access
    counted = not web.key_cache.was_good(hashed)
    if counted:
        await web.limiter.take(limit, who)
    cleared = web.key_cache.cleared
    async with web.db.autocommit() as conn:
        access = await api_keys.find_access(conn, hashed)
    if access is None:
        web.key_cache.forget(hashed)
        if not counted:
            await web.limiter.take(limit, who)
        raise _no_such_key()
    if counted:
        await web.limiter.give_back(limit, who)
    web.key_cache.put(hashed, access, now, cleared)
    return access


def _no_such_key() -> UnauthenticatedError:
    return UnauthenticatedError("API_KEY_INVALID", "This API key does not exist, or was revoked.")


async def _note_use(web: Web, secret: str, access: KeyAccess, connection: Connection, now: datetime) -> None:
    """Write the key's last use down, about once a minute: what comes meanwhile sees that it is being done."""
    noted = msgspec.structs.replace(access, last_used_at=now)
    web.key_cache.replace(api_keys.key_hash(secret), access, noted)
    if access.actor.key_pk is not None:
        async with web.db.autocommit() as conn:
            await api_keys.note_use(conn, access.actor.key_pk, host_of(connection), now=now)


async def require_session(connection: Connection, handler: BaseRouteHandler) -> None:
    """Let in a member who is signed in and permitted to. A guard; the request's ``session`` is the principal."""
    web = web_of(connection.app)
    try:
        session = connection.state.session = await session_of(web, web.merchants, connection)
    except UnauthenticatedError:
        await web.limiter.take(web.limits.bad_credentials, address_of(connection))
        raise
    if asks_for_methods(connection):
        return
    check_member(session, handler)
    # A project's own mode is looked at in ``require_step_up``.
    if handler.opt.get(STEP_UP) and "project_id" not in connection.path_params:
        await web.two_factor.check_step_up(session)


async def session_of(web: Web, sign_ins: SignIns[V, P], connection: Connection) -> P:
    """Return who is signed in. Raises UnauthenticatedError for everybody else, and for people of another kind."""
    session_id, _ = sign_ins.access_tokens.read(_bearer_of(connection))
    # Signed by us, so nobody else's session is counted. It may have ended: that is looked up so many times, too.
    await web.limiter.take(web.limits.per_session, session_id)
    async with web.db.autocommit() as conn:
        principal = await sign_ins.sessions.use(conn, session_id, host_of(connection), now=web.clock.now())
    if principal is None:
        raise session_ended()
    return principal


def expiry_of(sign_ins: SignIns[V, P], connection: Connection) -> datetime:
    """Return when the access token of a request expires. Raises UnauthenticatedError."""
    return sign_ins.access_tokens.read(_bearer_of(connection))[1]


def _bearer_of(connection: Connection) -> str:
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token or len(token) > TOKEN_CHARS_MAX:
        raise UnauthenticatedError("SESSION_REQUIRED", "Sign in, and send Authorization: Bearer with the access token.")
    return token.strip()


async def require_project(connection: Connection, _: BaseRouteHandler) -> None:
    """Let the merchant who is signed in act for the project in the path. A guard, after ``require_session``."""
    web = web_of(connection.app)
    project_id = connection.path_params["project_id"]
    async with web.db.autocommit() as conn:
        connection.state.actor = await projects.authorize(conn, connection.state.session, project_id)


async def require_step_up(connection: Connection, handler: BaseRouteHandler) -> None:
    """Let a session do what the handler does, in live mode: once granted, and where asked for, after a step-up.

    A guard, after ``require_project``. Sandbox projects have neither, since their money is none.
    """
    if connection.state.actor.mode != "live":
        return
    session: SessionPrincipal = connection.state.session
    if not session.live and handler.opt.get(SCOPE) not in (None, "read"):
        raise live_not_granted()
    if handler.opt.get(STEP_UP):
        await web_of(connection.app).two_factor.check_step_up(session)


async def require_active(connection: Connection, _: BaseRouteHandler) -> None:
    """Let nothing be done for a project that is switched off. A guard, after ``require_project``."""
    refuse_inactive(connection, connection.state.actor)


async def _actor(request: AnyRequest) -> Actor:
    actor: Actor = request.state.actor
    return actor


async def _project_actor(
    request: AnyRequest,
    project_id: FromPath[str],  # noqa: ARG001  it is in the API's description because it is here
) -> Actor:
    actor: Actor = request.state.actor
    return actor


async def _session(request: AnyRequest) -> SessionPrincipal:
    principal: SessionPrincipal = request.state.session
    return principal


def key_routes(path: str, *handlers: ControllerRouterHandler) -> Router:
    """Mount handlers for programs, which send ``X-Api-Key``."""
    return Router(
        path=path,
        route_handlers=handlers,
        guards=[require_key],
        dependencies={"actor": Provide(_actor)},
        security=[{API_KEY_SCHEME: []}],
    )


def project_routes(path: str, *handlers: ControllerRouterHandler) -> Router:
    """Mount handlers for a merchant in person, below ``/api/dashboard/projects/{projectId}``."""
    router = owned_project_routes("/api/dashboard/projects/{project_id:str}" + path, *handlers)
    router.guards.append(require_active)
    return router


def owned_project_routes(path: str, *handlers: ControllerRouterHandler) -> Router:
    """Mount handlers for a merchant in person at a path that has ``{project_id:str}`` in it.

    They work for a project that is switched off, too: this is how it is switched on again. Raises TypeError for one
    that names no permission.
    """
    check_member_permissions(*handlers)
    return Router(
        path=path,
        route_handlers=handlers,
        guards=[require_session, require_project, require_step_up],
        dependencies={"actor": Provide(_project_actor), "session": Provide(_session)},
        security=[{SESSION_SCHEME: []}],
    )


def session_routes(path: str, *handlers: ControllerRouterHandler) -> Router:
    """Mount handlers for a merchant in person. Raises TypeError for one that names no permission."""
    check_member_permissions(*handlers)
    return Router(
        path=path,
        route_handlers=handlers,
        guards=[require_session],
        dependencies={"session": Provide(_session)},
        security=[{SESSION_SCHEME: []}],
    )


def public_routes(path: str, *handlers: ControllerRouterHandler) -> Router:
    """Mount handlers for everybody."""
    return Router(path=path, route_handlers=handlers, middleware=[LimitAddress()], security=[{}])
