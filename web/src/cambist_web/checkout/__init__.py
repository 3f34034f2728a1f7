"""The pages a customer sees: hosted checkout and receipt."""

from __future__ import annotations

from litestar import Router
from litestar.di import Provide

from cambist.bootstrap import Gateway
from cambist_web.auth import limit_address

from .live import Checkout
from .routes import CheckoutPages, asset_file, attach, checkout_of, close, provide_checkout

_dependencies = {"checkout": Provide(provide_checkout, sync_to_thread=False)}

controllers = [
    Router(path="/", route_handlers=[CheckoutPages], guards=[limit_address], dependencies=_dependencies),
    Router(path="/", route_handlers=[asset_file], dependencies=_dependencies),
]


def make_checkout(gateway: Gateway) -> Checkout:
    """Build the worker's checkout from an open gateway."""
    return Checkout(db=gateway.db, registry=gateway.registry, clock=gateway.clock, hints=gateway.hints)


__all__ = ["Checkout", "attach", "checkout_of", "close", "controllers", "make_checkout"]
