"""Payouts, and what a merchant has decided about each coin."""

from cambist_web.auth import key_routes, project_routes

from .coins import Coins
from .routes import Payouts

controllers = [key_routes("/api/merchant/wallet", Payouts, Coins), project_routes("/wallet", Payouts, Coins)]
