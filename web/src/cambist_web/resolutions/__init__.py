"""The resolution list."""

from cambist_web.auth import key_routes, project_routes

from .routes import Resolutions

controllers = [key_routes("/api/merchant/resolutions", Resolutions), project_routes("/resolutions", Resolutions)]
