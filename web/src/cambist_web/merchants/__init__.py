"""Merchants and their sessions."""

from __future__ import annotations

from litestar import Router

from cambist_web.auth import ADMIN_SCHEME, limit_address, public_routes, require_admin

from .routes import Auth, PasswordResets

controllers = [
    public_routes("/api/auth", Auth),
    Router(
        path="/api/admin",
        route_handlers=[PasswordResets],
        guards=[limit_address, require_admin],
        security=[{ADMIN_SCHEME: []}],
    ),
]
