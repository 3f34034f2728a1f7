"""Who asks about trackers: a program with a tracker's own token, or whoever may make one.

Handlers below ``tracker_routes`` get a ``tracker``; the one below ``creator_routes`` takes three kinds of credentials
and gets a ``creator``, which says whose it was. See ``cambist_web/auth.py`` for all others.
"""

from __future__ import annotations

from litestar import Router
from litestar.di import Provide
from litestar.handlers import BaseRouteHandler
from litestar.types import ControllerRouterHandler
from msgspec import Struct

from cambist.services.actor import Actor
from cambist.services.errors import UnauthenticatedError, merchant_suspended
from cambist.services.identity.api_keys import key_hash
from cambist.services.identity.sessions import SessionPrincipal
from cambist.services.kept_answers import replay
from cambist.services.trackers import credentials
from cambist.services.trackers.credentials import TrackerAccess

from .auth import (
    ADMIN_SCHEME,
    API_KEY_SCHEME,
    SESSION_SCHEME,
    TRACKER_SCHEME,
    refuse_inactive,
    require_key,
    require_session,
)
from .context import Web, web_of
from .errors import AnyRequest
from .once import keyed_request, of_token
from .operator_auth import require_admin_key
from .origin import Connection, address_of
from .requests import IDEMPOTENCY_KEY

TOKEN_ENDS = "token_ends"  # noqa: S105  the name of an option
"""In a handler's ``opt``: the token is invalid after it, and good for a repetition under the same key all the same."""


class Creator(Struct, frozen=True, kw_only=True):
    """Who makes a tracker: a project's key, a merchant in person, or with neither the operator."""

    actor: Actor | None
    session: SessionPrincipal | None


async def require_tracker(connection: Connection, handler: BaseRouteHandler) -> None:
    """Let in whoever has a tracker's token. A guard; sets the request's ``tracker``.

    Every request looks the token up: a replaced one is invalid at once, in every worker.
    """
    web = web_of(connection.app)
    tracker = await _tracker_of(web, connection.headers.get("x-auth-token", ""), connection, handler)
    connection.state.tracker = tracker
    await web.limiter.take(web.limits.of_tracker(tracker.requests_per_minute), tracker.webhook_id)
    if tracker.suspended:
        raise merchant_suspended()
    refuse_inactive(connection, tracker.actor)


async def _tracker_of(web: Web, token: str, connection: Connection, handler: BaseRouteHandler) -> TrackerAccess:
    """Return the tracker. Guesses are counted before they are looked up, as API keys are.

    Raises AnsweredBefore for a repetition of what made the token invalid, under the same key.
    """
    limit, who = web.limits.bad_credentials, address_of(connection)
    if not credentials.is_token(token):
        await web.limiter.take(limit, who)
        if not token:
            raise UnauthenticatedError("AUTH_TOKEN_MISSING", "Send the tracker's token in the header X-Auth-Token.")
        raise credentials.no_such_token()
    hashed = key_hash(token)
    counted = not web.good_tokens.was_good(hashed)
    if counted:
        await web.limiter.take(limit, who)
    async with web.db.autocommit() as conn:
        tracker = await credentials.find_access(conn, hashed)
    if tracker is None:
        web.good_tokens.forget(hashed)
        if not counted:
            await web.limiter.take(limit, who)
        if handler.opt.get(TOKEN_ENDS) and (key := connection.headers.get(IDEMPOTENCY_KEY)):
            async with web.db.autocommit() as conn:
                await replay(conn, web.gateway.secrets, keyed_request(connection, of_token(hashed), key))
        raise credentials.no_such_token()
    if counted:
        await web.limiter.give_back(limit, who)
        web.good_tokens.add(hashed)
    return tracker


async def require_creator(connection: Connection, handler: BaseRouteHandler) -> None:
    """Let in who may make a tracker: an API key with the handler's scope, a session, or the operator. A guard.

    Of several credentials the first in this order counts, whether it is good or not.
    """
    if "x-api-key" in connection.headers:
        await require_key(connection, handler)
    elif "authorization" in connection.headers:
        await require_session(connection, handler)
    elif "x-admin-key" in connection.headers:
        web = web_of(connection.app)
        await web.limiter.take(web.limits.per_address, address_of(connection))
        await require_admin_key(connection, handler)
    else:
        await require_key(connection, handler)


async def _tracker(request: AnyRequest) -> TrackerAccess:
    tracker: TrackerAccess = request.state.tracker
    return tracker


async def _creator(request: AnyRequest) -> Creator:
    return Creator(actor=request.state.get("actor"), session=request.state.get("session"))


def tracker_routes(path: str, *handlers: ControllerRouterHandler) -> Router:
    """Mount handlers for programs that send ``X-Auth-Token``, a tracker's token."""
    return Router(
        path=path,
        route_handlers=handlers,
        guards=[require_tracker],
        dependencies={"tracker": Provide(_tracker)},
        security=[{TRACKER_SCHEME: []}],
    )


def creator_routes(path: str, *handlers: ControllerRouterHandler) -> Router:
    """Mount handlers for whoever may make a tracker, by any of three credentials."""
    return Router(
        path=path,
        route_handlers=handlers,
        guards=[require_creator],
        dependencies={"creator": Provide(_creator)},
        security=[{API_KEY_SCHEME: []}, {SESSION_SCHEME: []}, {ADMIN_SCHEME: []}],
    )
