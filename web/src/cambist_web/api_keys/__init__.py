"""API keys."""

from cambist_web.auth import owned_project_routes

from .routes import Keys

controllers = [owned_project_routes("/api/merchant/projects/{project_id:str}/api-keys", Keys)]
