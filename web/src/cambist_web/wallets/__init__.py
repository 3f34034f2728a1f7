"""Wallets."""

from cambist_web.auth import key_routes, project_routes

from .routes import Wallets

controllers = [key_routes("/api/merchant/wallet", Wallets), project_routes("/wallet", Wallets)]
