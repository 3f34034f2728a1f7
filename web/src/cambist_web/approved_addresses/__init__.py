"""Approved addresses: in person only."""

from cambist_web.auth import session_routes

from .routes import ApprovedAddresses

controllers = [session_routes("/api/dashboard/approved-addresses", ApprovedAddresses)]
