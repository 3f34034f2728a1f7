"""Stakes."""

from __future__ import annotations

from litestar import Router

from cambist_web.auth import ADMIN_SCHEME, limit_address, require_admin

from .routes import Stakes

controllers = [
    Router(
        path="/api/admin/stakes",
        route_handlers=[Stakes],
        guards=[limit_address, require_admin],
        security=[{ADMIN_SCHEME: []}],
    )
]
