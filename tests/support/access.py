"""Who is let in where: every route, its door, the scope that a key needs, and what a session needs.

Written by hand and compared with the app's own routes, so that a route that nobody has decided about fails the tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from litestar import Litestar
from msgspec import Struct

from cambist_web.errors import camel

DOORS = {"require_key": "key", "require_project": "project", "require_session": "session", "require_admin": "operator"}
MIRRORED = {
    "/api/payment": "/payments",
    "/api/merchant/wallet": "/wallet",
    "/api/merchant/usage": "/usage",
    "/api/merchant/resolutions": "/resolutions",
    "/api/sandbox": "/sandbox",
}
"""Where keys do something, and where sessions do the same, below ``/api/dashboard/projects/{projectId}``."""

BOTH = """
read      -        GET    /api/payment
payments  -        POST   /api/payment
payments  -        POST   /api/payment/quote
read      -        GET    /api/payment/{paymentId}
read      -        GET    /api/payment/{paymentId}/receipt-links
refunds   step-up  POST   /api/payment/{paymentId}/refund
read      -        GET    /api/payment/refunds/list
read      -        GET    /api/payment/refunds/{refundId}
read      -        GET    /api/merchant/resolutions
read      -        GET    /api/merchant/resolutions/{depositId}
payments  -        POST   /api/merchant/resolutions/{depositId}/accept
payments  -        POST   /api/merchant/resolutions/{depositId}/release
refunds   step-up  POST   /api/merchant/resolutions/{depositId}/refund
read      -        GET    /api/merchant/usage
read      -        GET    /api/merchant/wallet
read      -        GET    /api/merchant/wallet/addresses
read      -        GET    /api/merchant/wallet/balance
read      -        GET    /api/merchant/wallet/coins
payouts   step-up  PUT    /api/merchant/wallet/coins
payouts   step-up  PATCH  /api/merchant/wallet/coins/{chain}/{symbol}/settings
read      -        GET    /api/merchant/wallet/collections
payouts   step-up  POST   /api/merchant/wallet/payout
payouts   step-up  POST   /api/merchant/wallet/payout/batch
read      -        GET    /api/merchant/wallet/payouts
read      -        GET    /api/merchant/wallet/payouts/{payoutId}
read      -        GET    /api/merchant/wallet/transactions
read      -        GET    /api/merchant/wallet/transactions.csv
payments  -        POST   /api/sandbox/advance-time
payments  -        POST   /api/sandbox/deposit
payouts   -        POST   /api/sandbox/fail-payout
payments  -        POST   /api/sandbox/mine
payments  -        POST   /api/sandbox/reorg
"""

PROJECT = """
payments  -        POST   /api/dashboard/projects/{projectId}/payments/{paymentId}/recalculate
-         -        GET    /api/dashboard/projects/{projectId}/deliveries
-         -        GET    /api/dashboard/projects/{projectId}/deliveries/{deliveryId}
-         -        POST   /api/dashboard/projects/{projectId}/deliveries/{deliveryId}/redeliver
-         -        GET    /api/merchant/projects/{projectId}
-         step-up  PATCH  /api/merchant/projects/{projectId}
-         step-up  POST   /api/merchant/projects/{projectId}/rotate-webhook-secret
-         -        POST   /api/merchant/projects/{projectId}/test-webhook
-         -        GET    /api/merchant/projects/{projectId}/api-keys
-         step-up  POST   /api/merchant/projects/{projectId}/api-keys
-         -        DELETE /api/merchant/projects/{projectId}/api-keys/{keyId}
"""

# `code` is a code of the authenticator in the body, a step-up or not. Whoever makes a secret for an authenticator, or
# puts one into force, shows the password or that secret's own code; who turns it off, or renews recovery codes, both.
SESSION = """
-         -        GET    /api/merchant/projects
-         -        POST   /api/merchant/projects
-         -        GET    /api/dashboard/withdrawals
-         code     POST   /api/dashboard/withdrawals
-         -        GET    /api/dashboard/withdrawals/{withdrawalId}
-         -        GET    /api/dashboard/approved-addresses
-         code     POST   /api/dashboard/approved-addresses
-         -        DELETE /api/dashboard/approved-addresses/{approvalId}
-         -        GET    /api/dashboard/two-factor
-         code     POST   /api/dashboard/two-factor/enrol
-         code     POST   /api/dashboard/two-factor/confirm
-         code     POST   /api/dashboard/two-factor/recovery-codes
-         code     POST   /api/dashboard/two-factor/disable
-         code     POST   /api/auth/step-up
-         code     POST   /api/auth/password
-         -        GET    /api/auth/sessions
-         -        DELETE /api/auth/sessions
-         -        DELETE /api/auth/sessions/{sessionId}
"""

OPERATOR = """
-         -        GET    /api/admin/collections
-         -        GET    /api/admin/gas-stations
-         -        POST   /api/admin/merchants
-         -        PUT    /api/admin/merchants/{merchantId}
-         -        DELETE /api/admin/merchants/{merchantId}/sessions
-         -        POST   /api/admin/merchants/{merchantId}/credits
-         -        POST   /api/admin/merchants/two-factor/reset
-         -        POST   /api/admin/password-resets
-         -        GET    /api/admin/settings
-         -        PUT    /api/admin/settings
-         -        GET    /api/admin/stakes
-         -        POST   /api/admin/stakes
"""

PUBLIC = """
-         -        POST   /api/auth/login
-         -        POST   /api/auth/logout
-         -        POST   /api/auth/password-reset/confirm
-         -        POST   /api/auth/password-reset/request
-         -        POST   /api/auth/refresh
-         -        POST   /api/auth/register
-         -        GET    /api/payment/public/{publicId}
-         -        GET    /api/public/chains
-         -        GET    /api/public/cpt-calculator-config
-         -        GET    /api/public/tokens
"""


class Access(Struct, frozen=True, kw_only=True):
    """A route, and what it takes to be let in. ``step_up`` is asked for in live mode alone."""

    door: str
    method: str
    path: str
    scope: str | None = None
    step_up: bool = False
    own_code: bool = False


def decided() -> list[Access]:
    """Return what this file says of every route."""
    doors = {"key": BOTH, "project": _mirrored(BOTH) + PROJECT, "session": SESSION, "operator": OPERATOR, "": PUBLIC}
    return [_row(door, line) for door, lines in doors.items() for line in lines.split("\n") if line]


def found_in(app: Litestar) -> Iterator[Access]:
    """Yield what the app says of its routes; which of them ask for a code of their own it does not tell."""
    for route in app.routes:
        if not route.path.startswith("/api/") or re.match(r"/api/(openapi|swagger)(/|$|\.)", route.path):
            continue
        path = re.sub(r"\{(\w+):\w+\}", lambda found: f"{{{camel(found[1])}}}", route.path)
        for handler in getattr(route, "route_handlers", ()):
            if "OPTIONS" in handler.http_methods:
                continue
            guards = [getattr(guard, "__name__", "") for guard in handler.resolve_guards()]
            door = next((DOORS[name] for name in DOORS if name in guards), "")
            for method in handler.http_methods:
                yield Access(
                    door=door,
                    method=method,
                    path=path,
                    scope=handler.opt.get("scope"),
                    step_up=bool(handler.opt.get("step_up")),
                )


def filled(path: str, **ids: Any) -> str:
    """Return the path with these identifiers in it, and with others that nobody has."""
    return re.sub(r"\{(\w+)\}", lambda found: str(ids.get(found[1], "unknown")), path)


def _mirrored(lines: str) -> str:
    for key_path, rest in MIRRORED.items():
        lines = lines.replace(f" {key_path}", f" /api/dashboard/projects/{{projectId}}{rest}")
    return lines


def _row(door: str, line: str) -> Access:
    scope, needed, method, path = line.split()
    return Access(
        door=door,
        method=method,
        path=path,
        scope=None if scope == "-" else scope,
        step_up=needed == "step-up",
        own_code=needed == "code",
    )
