"""Quotes."""

from cambist_web.auth import key_routes, project_routes

from .routes import Quotes

controllers = [key_routes("/api/payment/quote", Quotes), project_routes("/payments/quote", Quotes)]
