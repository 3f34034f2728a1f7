"""Payments."""

from cambist_web.auth import key_routes, project_routes, public_routes

from .dashboard import PaymentsInPerson
from .public import PublicPayments
from .routes import Payments

controllers = [
    key_routes("/api/payment", Payments),
    project_routes("/payments", Payments, PaymentsInPerson),
    public_routes("/api/payment/public", PublicPayments),
]
