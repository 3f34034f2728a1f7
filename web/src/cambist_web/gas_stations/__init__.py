"""Gas stations."""

from __future__ import annotations

from litestar import Router

from cambist_web.auth import ADMIN_SCHEME, limit_address, require_admin

from .routes import GasStations

controllers = [
    Router(
        path="/api/admin/gas-stations",
        route_handlers=[GasStations],
        guards=[limit_address, require_admin],
        security=[{ADMIN_SCHEME: []}],
    )
]
