"""What the operator decides while the gateway runs. Opened by ``X-Admin-Key``."""

from __future__ import annotations

from litestar import Router

from cambist_web.auth import ADMIN_SCHEME, limit_address, require_admin

from .routes import Credits, PlatformSettingsRoutes

controllers = [
    Router(
        path="/api/admin",
        route_handlers=[PlatformSettingsRoutes, Credits],
        guards=[limit_address, require_admin],
        security=[{ADMIN_SCHEME: []}],
    )
]
