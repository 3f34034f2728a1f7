"""Wallets."""

from litestar import Router

from cambist_web.auth import ADMIN_SCHEME, key_routes, limit_address, project_routes, require_admin

from .addresses import Addresses
from .collections import AllCollections, Collections
from .routes import Wallets
from .transactions import Transactions

controllers = [
    key_routes("/api/merchant/wallet", Wallets, Addresses, Collections, Transactions),
    project_routes("/wallet", Wallets, Addresses, Collections, Transactions),
    Router(
        path="/api/admin/collections",
        route_handlers=[AllCollections],
        guards=[limit_address, require_admin],
        security=[{ADMIN_SCHEME: []}],
    ),
]
