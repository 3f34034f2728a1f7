"""Who asks: API keys and dashboard sessions, checked before anything of a request's body is read.

Handlers of a project get an ``actor``, wherever they are mounted::

    class Payments(Controller):
        @get("/{payment_id:str}")
        async def read(self, actor: NamedDependency[Actor], payment_id: FromPath[str]) -> ...: ...


    controllers = [key_routes("/api/payment", Payments), project_routes("/payments", Payments)]

The first answers to ``X-Api-Key`` at ``/api/payment``, the second to a Bearer token at
``/api/dashboard/projects/{projectId}/payments``, for the merchant whose project it is. ``session_routes`` gives
handlers a ``session``, and ``public_routes`` only counts who comes.
"""

from __future__ import annotations

import hmac

from litestar import Router
from litestar.connection import ASGIConnection
from litestar.di import NamedDependency, Provide
from litestar.enums import ScopeType
from litestar.handlers import BaseRouteHandler
from litestar.middleware import ASGIMiddleware
from litestar.params import FromPath
from litestar.types import ASGIApp, ControllerRouterHandler, Receive, Scope, Send

from cambist.services.actor import Actor
from cambist.services.errors import NotFoundError, UnauthenticatedError
from cambist.services.identity import api_keys, projects, sessions
from cambist.services.identity.sessions import SessionPrincipal

from .context import Web, web_of
from .errors import AnyRequest
from .origin import Connection, address_of

TOKEN_CHARS_MAX = 4_096
"""Of an access token. Ours are shorter."""

API_KEY_SCHEME = "apiKey"
SESSION_SCHEME = "session"
ADMIN_SCHEME = "adminKey"


class LimitAddress(ASGIMiddleware):
    """Counts a request for the address it comes from. No guard: Litestar copies the handler for each of a request."""

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Let the request pass, or raise TooManyError."""
        connection: Connection = ASGIConnection(scope)
        web = web_of(connection.app)
        await web.limiter.take(web.limits.per_address, address_of(connection))
        await next_app(scope, receive, send)


async def require_key(connection: Connection, _: BaseRouteHandler) -> None:
    """Let in whoever has a working API key. A guard; the request's ``actor`` is whom it acts for."""
    web = web_of(connection.app)
    secret = connection.headers.get("x-api-key", "")
    actor = await _actor_of(web, secret, connection)
    if actor is None:
        if not secret:
            raise UnauthenticatedError("API_KEY_MISSING", "Send the project's API key in the header X-Api-Key.")
        raise UnauthenticatedError("API_KEY_INVALID", "This API key does not exist, or was revoked.")
    await web.limiter.take(web.limits.per_key, str(actor.key_pk))
    connection.state.actor = actor


async def _actor_of(web: Web, secret: str, connection: Connection) -> Actor | None:
    """Return for whom the key acts. What cannot be a key costs no query, and neither does a guess beyond the limit.

    A guess is counted before it is looked up: otherwise many at once would all be looked up. A key that turns out
    to be good gives back what it was counted for, and one that was good in this worker lately is not counted.
    """
    limit, who = web.limits.bad_credentials, address_of(connection)
    if not api_keys.is_key(secret):
        await web.limiter.take(limit, who)
        return None
    hashed = api_keys.key_hash(secret)
    now = web.clock.monotonic()
    actor = web.key_cache.get(hashed, now)
    if actor is not None:
        return actor
    counted = not web.key_cache.was_good(hashed)
    if counted:
        await web.limiter.take(limit, who)
    async with web.db.autocommit() as conn:
        actor = await api_keys.find_actor(conn, hashed)
    if actor is None:
        web.key_cache.forget(hashed)
        if not counted:
            await web.limiter.take(limit, who)
        return None
    if counted:
        web.limiter.give_back(limit, who)
    web.key_cache.put(hashed, actor, now)
    return actor


async def require_session(connection: Connection, _: BaseRouteHandler) -> None:
    """Let in a merchant who is signed in. A guard; the request's ``session`` is the principal."""
    web = web_of(connection.app)
    try:
        connection.state.session = await _session_of(web, connection.headers.get("authorization", ""))
    except UnauthenticatedError:
        await web.limiter.take(web.limits.bad_credentials, address_of(connection))
        raise


async def _session_of(web: Web, header: str) -> SessionPrincipal:
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer" or not token or len(token) > TOKEN_CHARS_MAX:
        raise UnauthenticatedError("SESSION_REQUIRED", "Sign in, and send Authorization: Bearer with the access token.")
    session_id = web.access_tokens.session_of(token.strip())
    # Signed by us, so nobody else's session is counted. It may have ended: that is looked up so many times, too.
    await web.limiter.take(web.limits.per_session, session_id)
    async with web.db.autocommit() as conn:
        principal = await sessions.find_principal(conn, session_id, now=web.clock.now())
    if principal is None:
        raise UnauthenticatedError("SESSION_ENDED", "This session has ended. Sign in again.")
    return principal


async def require_project(connection: Connection, _: BaseRouteHandler) -> None:
    """Let the merchant who is signed in act for the project in the path. A guard, after ``require_session``."""
    web = web_of(connection.app)
    project_id = connection.path_params["project_id"]
    async with web.db.autocommit() as conn:
        connection.state.actor = await projects.authorize(conn, connection.state.session, project_id)


async def require_admin(connection: Connection, _: BaseRouteHandler) -> None:
    """Let in the operator with the admin key. A guard; without a key in the settings there is no such door."""
    web = web_of(connection.app)
    if web.admin_key_hash is None:
        raise NotFoundError("ROUTE_NOT_FOUND", "There is nothing at this path.")
    if not hmac.compare_digest(api_keys.key_hash(connection.headers.get("x-admin-key", "")), web.admin_key_hash):
        await web.limiter.take(web.limits.bad_credentials, address_of(connection))
        raise UnauthenticatedError("ADMIN_KEY_INVALID", "The header X-Admin-Key is missing or wrong.")
    connection.state.operator = True


# These ask for ``web`` so that they come after it: what could come at once, Litestar starts as tasks of a group,
# which takes longer than the work.
async def _actor(request: AnyRequest, web: NamedDependency[Web]) -> Actor:  # noqa: ARG001  see above
    actor: Actor = request.state.actor
    return actor


async def _project_actor(
    request: AnyRequest,
    web: NamedDependency[Web],  # noqa: ARG001  see above
    project_id: FromPath[str],  # noqa: ARG001  it is in the API's description because it is here
) -> Actor:
    actor: Actor = request.state.actor
    return actor


async def _session(request: AnyRequest, web: NamedDependency[Web]) -> SessionPrincipal:  # noqa: ARG001  see above
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
    return owned_project_routes("/api/dashboard/projects/{project_id:str}" + path, *handlers)


def owned_project_routes(path: str, *handlers: ControllerRouterHandler) -> Router:
    """Mount handlers for a merchant in person at a path that has ``{project_id:str}`` in it."""
    return Router(
        path=path,
        route_handlers=handlers,
        guards=[require_session, require_project],
        dependencies={"actor": Provide(_project_actor), "session": Provide(_session)},
        security=[{SESSION_SCHEME: []}],
    )


def session_routes(path: str, *handlers: ControllerRouterHandler) -> Router:
    """Mount handlers for a merchant in person."""
    return Router(
        path=path,
        route_handlers=handlers,
        guards=[require_session],
        dependencies={"session": Provide(_session)},
        security=[{SESSION_SCHEME: []}],
    )


def admin_routes(path: str, *handlers: ControllerRouterHandler) -> Router:
    """Mount handlers for the operator, whose programs send ``X-Admin-Key``."""
    return Router(
        path=path,
        route_handlers=handlers,
        middleware=[LimitAddress()],
        guards=[require_admin],
        security=[{ADMIN_SCHEME: []}],
    )


def public_routes(path: str, *handlers: ControllerRouterHandler) -> Router:
    """Mount handlers for everybody."""
    return Router(path=path, route_handlers=handlers, middleware=[LimitAddress()], security=[{}])
