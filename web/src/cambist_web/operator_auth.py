"""Operators in person, about their own sessions and credentials: handlers get an ``operator``.

What operators do for the gateway is mounted by ``admin_routes`` of ``cambist_web/auth.py``.
"""

from __future__ import annotations

from litestar import Router
from litestar.di import NamedDependency, Provide
from litestar.types import ControllerRouterHandler

from cambist.services.identity.operators import OperatorPrincipal

from .auth import OPERATOR_SCHEME, LimitAddress, require_operator
from .context import Web
from .errors import AnyRequest


async def _operator(request: AnyRequest, web: NamedDependency[Web]) -> OperatorPrincipal:  # noqa: ARG001  see auth.py
    principal: OperatorPrincipal = request.state.operator_session
    return principal


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
