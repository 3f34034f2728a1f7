"""The pages a customer sees: hosted checkout and receipt."""

from litestar.types import ControllerRouterHandler

from cambist_web.auth import public_routes

from .routes import CheckoutPages, asset_file, checkout_of, close, provide_checkout

controllers: list[ControllerRouterHandler] = [public_routes("/", CheckoutPages), asset_file]

__all__ = ["checkout_of", "close", "controllers", "provide_checkout"]
