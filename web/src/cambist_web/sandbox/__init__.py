"""The sandbox."""

from cambist_web.auth import key_routes, project_routes

from .routes import SandboxChains

controllers = [key_routes("/api/sandbox", SandboxChains), project_routes("/sandbox", SandboxChains)]
