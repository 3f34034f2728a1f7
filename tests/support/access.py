"""Who is let in where: every route, its door, the scope that a key needs, and what a session needs.

Written by hand and compared with the app's own routes, so that a route that nobody has decided about fails the tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from litestar import Litestar
from msgspec import Struct

from cambist.services.identity.operators import ROLES
from cambist_web.errors import camel
from cambist_web.permissions import PERMISSIONS

DOORS = {
    "require_creator": "creator",
    "require_tracker": "tracker",
    "require_key": "key",
    "require_project": "project",
    "require_session": "session",
    "require_admin": "operator",
    "require_operator": "operator in person",
}
MIRRORED = {
    "/api/account": "/accounts",
    "/api/payment": "/payments",
    "/api/merchant/wallet": "/wallet",
    "/api/merchant/swap-bridge": "/swap-bridge",
    "/api/merchant/usage": "/usage",
    "/api/merchant/plan": "/plan",
    "/api/merchant/resolutions": "/resolutions",
    "/api/sandbox": "/sandbox",
    "/api/events": "/events",
}
"""Where keys do something, and where sessions do the same, below ``/api/dashboard/projects/{projectId}``."""

BOTH = """
read      -        GET    /api/account
accounts  -        POST   /api/account
read      -        GET    /api/account/{accountId}
accounts  -        POST   /api/account/{accountId}/activate
accounts  -        POST   /api/account/{accountId}/chains
accounts  -        POST   /api/account/{accountId}/deactivate
read      -        GET    /api/account/{accountId}/balances
read      -        GET    /api/account/{accountId}/deposits
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
exchange  -        POST   /api/merchant/swap-bridge/swap/quote
exchange  step-up  POST   /api/merchant/swap-bridge/swap/execute
exchange  -        POST   /api/merchant/swap-bridge/bridge/quote
exchange  step-up  POST   /api/merchant/swap-bridge/bridge/execute
read      -        GET    /api/merchant/swap-bridge/history
read      -        GET    /api/merchant/swap-bridge/history/{txnId}
read      -        GET    /api/merchant/swap-bridge/platform-fees
read      -        GET    /api/merchant/plan
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
read      -        GET    /api/events
payments  -        POST   /api/events/redeliver
read      -        GET    /api/events/{eventId}
payments  -        POST   /api/events/{eventId}/redeliver
payments  -        POST   /api/sandbox/advance-time
payments  -        POST   /api/sandbox/deposit
exchange  -        POST   /api/sandbox/fail-exchange
payouts   -        POST   /api/sandbox/fail-payout
payments  -        POST   /api/sandbox/mine
payments  -        POST   /api/sandbox/reorg
"""

PROJECT = """
payments  -        POST   /api/dashboard/projects/{projectId}/payments/{paymentId}/recalculate
-         -        GET    /api/dashboard/projects/{projectId}/deliveries
-         -        GET    /api/dashboard/projects/{projectId}/deliveries/{deliveryId}
-         -        POST   /api/dashboard/projects/{projectId}/deliveries/{deliveryId}/redeliver
read      -        GET    /api/dashboard/projects/{projectId}/trackers
trackers  -        POST   /api/dashboard/projects/{projectId}/trackers
read      -        GET    /api/dashboard/projects/{projectId}/trackers/{webhookId}
trackers  -        DELETE /api/dashboard/projects/{projectId}/trackers/{webhookId}
trackers  -        POST   /api/dashboard/projects/{projectId}/trackers/{webhookId}/activate
trackers  -        POST   /api/dashboard/projects/{projectId}/trackers/{webhookId}/deactivate
trackers  -        POST   /api/dashboard/projects/{projectId}/trackers/{webhookId}/history/cancel
trackers  -        POST   /api/dashboard/projects/{projectId}/trackers/{webhookId}/history/restart
trackers  -        POST   /api/dashboard/projects/{projectId}/trackers/{webhookId}/redeliver
-         -        GET    /api/merchant/projects/{projectId}
-         step-up  PATCH  /api/merchant/projects/{projectId}
-         step-up  POST   /api/merchant/projects/{projectId}/rotate-webhook-secret
-         -        POST   /api/merchant/projects/{projectId}/test-webhook
-         -        GET    /api/merchant/projects/{projectId}/webhook-endpoints
-         step-up  POST   /api/merchant/projects/{projectId}/webhook-endpoints
-         -        GET    /api/merchant/projects/{projectId}/webhook-endpoints/{endpointId}
-         step-up  PATCH  /api/merchant/projects/{projectId}/webhook-endpoints/{endpointId}
-         step-up  DELETE /api/merchant/projects/{projectId}/webhook-endpoints/{endpointId}
-         -        GET    /api/merchant/projects/{projectId}/webhook-endpoints/{endpointId}/deliveries
-         step-up  POST   /api/merchant/projects/{projectId}/webhook-endpoints/{endpointId}/rotate-secret
-         -        POST   /api/merchant/projects/{projectId}/webhook-endpoints/{endpointId}/test
-         -        GET    /api/merchant/projects/{projectId}/api-keys
-         step-up  POST   /api/merchant/projects/{projectId}/api-keys
-         -        DELETE /api/merchant/projects/{projectId}/api-keys/{keyId}
"""

# `code` is a code of the authenticator in the body, a step-up or not. Whoever makes a secret for an authenticator, or
# puts one into force, shows the password or that secret's own code; who turns it off, or renews recovery codes, both.
SESSION = """
-         -        GET    /api/merchant/webhooks
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

# In the place of a scope: the role that has the fewest permissions of those that are let in.
OPERATOR = """
auditor   -        GET    /api/admin/collections
auditor   -        GET    /api/admin/gas-stations
operator  step-up  POST   /api/admin/merchants
operator  step-up  PUT    /api/admin/merchants/{merchantId}
support   -        DELETE /api/admin/merchants/{merchantId}/sessions
operator  step-up  POST   /api/admin/merchants/{merchantId}/credits
operator  step-up  POST   /api/admin/merchants/two-factor/reset
operator  step-up  POST   /api/admin/password-resets
operator  step-up  PUT    /api/admin/merchants/{merchantId}/plan
auditor   -        GET    /api/admin/plans
owner     step-up  POST   /api/admin/plans
owner     step-up  PATCH  /api/admin/plans/{planId}
auditor   -        GET    /api/admin/settings
owner     step-up  PUT    /api/admin/settings
auditor   -        GET    /api/admin/stakes
operator  step-up  POST   /api/admin/stakes
auditor   -        GET    /api/admin/operators
owner     step-up  POST   /api/admin/operators
owner     step-up  PATCH  /api/admin/operators/{operatorId}
owner     step-up  POST   /api/admin/operators/{operatorId}/disable
owner     step-up  POST   /api/admin/operators/{operatorId}/enable
owner     step-up  POST   /api/admin/operators/{operatorId}/link
owner     step-up  POST   /api/admin/operators/{operatorId}/two-factor/reset
"""

# An operator in person, of any role.
OPERATOR_SELF = """
-         -        GET    /api/admin/auth/me
-         code     POST   /api/admin/auth/password
-         code     POST   /api/admin/auth/recovery-codes
-         -        POST   /api/admin/auth/sign-out-everywhere
-         code     POST   /api/admin/auth/step-up
"""

PUBLIC = """
-         -        POST   /api/admin/auth/refresh
-         -        GET    /api/admin/set-password
-         -        POST   /api/admin/auth/set-password
-         -        POST   /api/admin/auth/sign-in
-         -        POST   /api/admin/auth/sign-out
-         -        POST   /api/admin/auth/two-factor/confirm
-         -        POST   /api/admin/auth/two-factor/enrol
-         -        POST   /api/auth/login
-         -        POST   /api/auth/logout
-         -        POST   /api/auth/password-reset/confirm
-         -        POST   /api/auth/password-reset/request
-         -        POST   /api/auth/refresh
-         -        POST   /api/auth/register
-         -        GET    /api/payment/public/{publicId}
-         -        GET    /api/public/account/{publicId}
-         -        GET    /api/public/chains
-         -        GET    /api/public/cpt-calculator-config
-         -        GET    /api/public/tokens
-         -        GET    /api/status
"""


# By key, by session or by the operator: the first credential that is sent counts.
CREATOR = """
trackers  -        POST   /api/webhook/create
"""

TRACKER = """
-         -        GET    /api/webhook/get
-         -        POST   /api/webhook/update
-         -        POST   /api/webhook/activate
-         -        POST   /api/webhook/deactivate
-         -        POST   /api/webhook/history/cancel
-         -        POST   /api/webhook/history/restart
-         -        POST   /api/webhook/redeliver
-         -        POST   /api/webhook/regenerate-secret
-         -        POST   /api/webhook/test
-         -        GET    /api/webhook/address/list
-         -        POST   /api/webhook/address/add
-         -        POST   /api/webhook/address/add-bulk
-         -        POST   /api/webhook/address/update
-         -        POST   /api/webhook/address/remove
-         -        POST   /api/webhook/address/remove-bulk
-         -        GET    /api/webhook/transaction/list
"""


class Access(Struct, frozen=True, kw_only=True):
    """A route, and what it takes to be let in. Of merchants, ``step_up`` is asked for in live mode alone.

    ``scope`` is a key's; of operators' routes it is the role with the fewest permissions of those that are let in.
    """

    door: str
    method: str
    path: str
    scope: str | None = None
    step_up: bool = False
    own_code: bool = False


def decided() -> list[Access]:
    """Return what this file says of every route."""
    doors = {
        "key": BOTH,
        "project": _mirrored(BOTH) + PROJECT,
        "session": SESSION,
        "operator": OPERATOR,
        "operator in person": OPERATOR_SELF,
        "creator": CREATOR,
        "tracker": TRACKER,
        "": PUBLIC,
    }
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
            needed, steps_up = handler.opt.get("scope"), bool(handler.opt.get("step_up"))
            if door == "operator":
                permission = PERMISSIONS[handler.opt["permission"]]
                needed, steps_up = permission.roles[-1], permission.step_up
                assert tuple(permission.roles) == ROLES[: len(permission.roles)]
            for method in handler.http_methods:
                yield Access(door=door, method=method, path=path, scope=needed, step_up=steps_up)


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
