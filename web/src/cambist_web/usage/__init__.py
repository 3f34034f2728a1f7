"""Usage credits: what a merchant used, and what using the gateway costs."""

from cambist_web.auth import key_routes, project_routes, public_routes

from .routes import Calculator, Usage

controllers = [
    key_routes("/api/merchant/usage", Usage),
    project_routes("/usage", Usage),
    public_routes("/api/public/cpt-calculator-config", Calculator),
]
