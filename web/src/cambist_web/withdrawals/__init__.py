"""Withdrawals: in person only."""

from cambist_web.auth import session_routes

from .routes import Withdrawals

controllers = [session_routes("/api/dashboard/withdrawals", Withdrawals)]
