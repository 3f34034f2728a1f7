"""The second factor of merchants in person."""

from __future__ import annotations

from litestar import Router

from cambist_web.auth import ADMIN_SCHEME, limit_address, require_admin, session_routes

from .routes import TwoFactorReset, TwoFactorRoutes

controllers = [
    session_routes("/api/dashboard/two-factor", TwoFactorRoutes),
    Router(
        path="/api/admin",
        route_handlers=[TwoFactorReset],
        guards=[limit_address, require_admin],
        security=[{ADMIN_SCHEME: []}],
    ),
]
