"""Public discovery."""

from cambist_web.auth import public_routes

from .routes import Discovery

controllers = [public_routes("/api/public", Discovery)]
