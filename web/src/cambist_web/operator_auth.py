"""Operators: what they do for the gateway, each by a permission of the role, and about their own credentials.

``admin_routes`` mounts the first, also for programs with the admin key. ``operator_routes`` mounts the second, whose
handlers get an ``operator``.
"""

from __future__ import annotations

import hmac

from litestar import Router
from litestar.di import Provide
from litestar.handlers import BaseRouteHandler
from litestar.types import ControllerRouterHandler

from cambist.services.errors import ForbiddenError, UnauthenticatedError
from cambist.services.identity import api_keys
from cambist.services.identity.operators import OperatorPrincipal

from .auth import ADMIN_SCHEME, OPERATOR_SCHEME, LimitAddress, asks_for_methods, session_of
from .context import web_of
from .errors import AnyRequest
from .origin import Connection, address_of
from .permissions import PERMISSION, PERMISSIONS, check_permitted


async def require_admin_key(connection: Connection, _: BaseRouteHandler) -> None:
    """Let in a program with the admin key. A guard; without a key in the settings there is none."""
    web, key = web_of(connection.app), connection.headers.get("x-admin-key", "")
    if web.admin_key_hash is None or not hmac.compare_digest(api_keys.key_hash(key), web.admin_key_hash):
        await web.limiter.take(web.limits.bad_credentials, address_of(connection))
        words = (
            "Sign in as an operator and send Authorization: Bearer, or send the admin key in the header X-Admin-Key."
        )
        raise UnauthenticatedError("ADMIN_KEY_INVALID", words)
    connection.state.operator = "admin key"


async def require_operator(connection: Connection, _: BaseRouteHandler) -> None:
    """Let in an operator who is signed in. A guard; sets the request's ``operator_session``."""
    web = web_of(connection.app)
    try:
        principal = await session_of(web, web.operators, connection)
    except UnauthenticatedError:
        await web.limiter.take(web.limits.bad_credentials, address_of(connection))
        raise
    connection.state.operator_session, connection.state.operator = principal, principal.operator_id


async def require_admin(connection: Connection, handler: BaseRouteHandler) -> None:
    """Let in the admin key, or an operator whose role has the handler's permission. A guard.

    A key that is sent counts, whether it is good or not.
    """
    if "x-admin-key" in connection.headers or "authorization" not in connection.headers:
        await require_admin_key(connection, handler)
        return
    await require_operator(connection, handler)
    if asks_for_methods(connection):
        return
    principal, permission = connection.state.operator_session, PERMISSIONS[handler.opt[PERMISSION]]
    if principal.role not in permission.roles:
        raise ForbiddenError(
            "ROLE_NOT_ALLOWED", f"This is for {' and '.join(permission.roles)}, not for {principal.role}."
        )
    if permission.step_up:
        await web_of(connection.app).operators.two_factor.check_step_up(principal)


async def _operator(request: AnyRequest) -> OperatorPrincipal:
    principal: OperatorPrincipal = request.state.operator_session
    return principal


def admin_routes(path: str, *handlers: ControllerRouterHandler) -> Router:
    """Mount handlers for operators, and for their programs, which send ``X-Admin-Key``.

    Each names a permission: ``@get("/", opt=permits("money.read"))``. Raises TypeError for one that does not.
    """
    check_permitted(*handlers)
    return Router(
        path=path,
        route_handlers=handlers,
        middleware=[LimitAddress()],
        guards=[require_admin],
        security=[{ADMIN_SCHEME: []}, {OPERATOR_SCHEME: []}],
    )


def operator_routes(path: str, *handlers: ControllerRouterHandler) -> Router:
    """Mount handlers for an operator in person, about that person alone: they need no permission."""
    return Router(
        path=path,
        route_handlers=handlers,
        middleware=[LimitAddress()],
        guards=[require_operator],
        dependencies={"operator": Provide(_operator)},
        security=[{OPERATOR_SCHEME: []}],
    )
