"""Refunds."""

from cambist_web.auth import key_routes, project_routes

from .routes import Refunds

controllers = [key_routes("/api/payment", Refunds), project_routes("/payments", Refunds)]
