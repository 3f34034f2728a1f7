"""Projects, their secrets and their webhooks."""

from cambist_web.auth import owned_project_routes, project_routes, session_routes

from .deliveries import Deliveries, WebhookTests
from .routes import Project, Projects

controllers = [
    session_routes("/api/merchant/projects", Projects),
    owned_project_routes("/api/merchant/projects/{project_id:str}", Project, WebhookTests),
    project_routes("/deliveries", Deliveries),
]
