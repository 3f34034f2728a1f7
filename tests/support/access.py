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
from cambist_web.permissions import PERMISSIONS, member_permission_of

DOORS = {
    "require_creator": "creator",
    "require_tracker": "tracker",
    "require_key": "key",
    "require_project": "project",
    "require_session": "session",
    "require_admin": "operator",
    "require_operator": "operator in person",
}
BY_MEMBERS = {"project", "session", "creator"}
"""The doors through which members go in person."""
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
refunds   -        POST   /api/payment/refunds/{refundId}/cancel
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
read      -        GET    /api/merchant/swap-bridge/pairs
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
payouts   -        POST   /api/merchant/wallet/payout/batch/check
read      -        GET    /api/merchant/wallet/payouts
read      -        GET    /api/merchant/wallet/payouts/{payoutId}
payouts   -        POST   /api/merchant/wallet/payouts/{payoutId}/cancel
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
-:read             -        GET    /api/dashboard/projects/{projectId}/search
-:read             -        GET    /api/dashboard/projects/{projectId}/wallet/worth
-:read             -        GET    /api/dashboard/projects/{projectId}/deliveries
-:read             -        GET    /api/dashboard/projects/{projectId}/deliveries/{deliveryId}
-:webhooks         -        POST   /api/dashboard/projects/{projectId}/deliveries/{deliveryId}/redeliver
read      -        GET    /api/dashboard/projects/{projectId}/trackers
trackers  -        POST   /api/dashboard/projects/{projectId}/trackers
read      -        GET    /api/dashboard/projects/{projectId}/trackers/{webhookId}
trackers  -        DELETE /api/dashboard/projects/{projectId}/trackers/{webhookId}
trackers  -        POST   /api/dashboard/projects/{projectId}/trackers/{webhookId}/activate
trackers  -        POST   /api/dashboard/projects/{projectId}/trackers/{webhookId}/deactivate
trackers  -        POST   /api/dashboard/projects/{projectId}/trackers/{webhookId}/history/cancel
trackers  -        POST   /api/dashboard/projects/{projectId}/trackers/{webhookId}/history/restart
trackers  -        POST   /api/dashboard/projects/{projectId}/trackers/{webhookId}/redeliver
-:read             -        GET    /api/merchant/projects/{projectId}
-:projects.change  step-up  PATCH  /api/merchant/projects/{projectId}
-:projects.change  step-up  POST   /api/merchant/projects/{projectId}/rotate-webhook-secret
-:webhooks         -        POST   /api/merchant/projects/{projectId}/test-webhook
-:webhooks         -        POST   /api/merchant/projects/{projectId}/check-webhook
-:read             -        GET    /api/merchant/projects/{projectId}/webhook-endpoints
-:webhooks         step-up  POST   /api/merchant/projects/{projectId}/webhook-endpoints
-:read             -        GET    /api/merchant/projects/{projectId}/webhook-endpoints/{endpointId}
-:webhooks         step-up  PATCH  /api/merchant/projects/{projectId}/webhook-endpoints/{endpointId}
-:webhooks         step-up  DELETE /api/merchant/projects/{projectId}/webhook-endpoints/{endpointId}
-:read             -        GET    /api/merchant/projects/{projectId}/webhook-endpoints/{endpointId}/deliveries
-:webhooks         step-up  POST   /api/merchant/projects/{projectId}/webhook-endpoints/{endpointId}/rotate-secret
-:webhooks         -        POST   /api/merchant/projects/{projectId}/webhook-endpoints/{endpointId}/test
-:webhooks         -        POST   /api/merchant/projects/{projectId}/webhook-endpoints/{endpointId}/check
-:read             -        GET    /api/merchant/projects/{projectId}/api-keys
-:keys             step-up  POST   /api/merchant/projects/{projectId}/api-keys
-:keys             -        DELETE /api/merchant/projects/{projectId}/api-keys/{keyId}
"""

# `code` is a code of the authenticator in the body, a step-up or not. Whoever makes a secret for an authenticator, or
# puts one into force, shows the password or that secret's own code; who turns it off, or renews recovery codes, both.
SESSION = """
-:trackers         -        GET    /api/merchant/webhooks
-:read             -        GET    /api/merchant/projects
-:projects.add     -        POST   /api/merchant/projects
-:withdrawals.read -        GET    /api/dashboard/withdrawals
-:withdrawals      code     POST   /api/dashboard/withdrawals
-:withdrawals.read -        GET    /api/dashboard/withdrawals/{withdrawalId}
-:withdrawals      -        POST   /api/dashboard/withdrawals/{withdrawalId}/cancel
-:withdrawals.read -        GET    /api/dashboard/approved-addresses
-:approvals        code     POST   /api/dashboard/approved-addresses
-:approvals        -        DELETE /api/dashboard/approved-addresses/{approvalId}
-:self             -        GET    /api/dashboard/two-factor
-:self             code     POST   /api/dashboard/two-factor/enrol
-:self             code     POST   /api/dashboard/two-factor/confirm
-:self             code     POST   /api/dashboard/two-factor/recovery-codes
-:self             code     POST   /api/dashboard/two-factor/disable
-:self             code     POST   /api/auth/step-up
-:self             code     POST   /api/auth/password
-:read             -        GET    /api/dashboard/stream
-:read             -        GET    /api/dashboard/overview
-:audit.read       -        GET    /api/dashboard/audit
-:team.read        -        GET    /api/dashboard/members
-:self             -        GET    /api/dashboard/members/me
-:self             step-up  POST   /api/dashboard/members/leave
-:team.manage      step-up  PATCH  /api/dashboard/members/{memberId}
-:team.manage      step-up  DELETE /api/dashboard/members/{memberId}
-:team.recover     step-up  POST   /api/dashboard/members/{memberId}/two-factor/reset
-:team.read        -        GET    /api/dashboard/invitations
-:team.manage      step-up  POST   /api/dashboard/invitations
-:team.manage      -        DELETE /api/dashboard/invitations/{invitationId}
-:self             -        GET    /api/auth/sessions
-:self             -        DELETE /api/auth/sessions
-:self             -        DELETE /api/auth/sessions/{sessionId}
"""

# In the place of a scope: the role that has the fewest permissions of those that are let in.
OPERATOR = """
auditor   -        GET    /api/admin/chains
auditor   -        GET    /api/admin/chains/{chain}
operator  step-up  POST   /api/admin/chains/{chain}/endpoints
auditor   -        GET    /api/admin/chains/{chain}/endpoints/{endpointId}
operator  step-up  DELETE /api/admin/chains/{chain}/endpoints/{endpointId}
operator  -        POST   /api/admin/chains/{chain}/pause
operator  step-up  POST   /api/admin/chains/{chain}/rescan
operator  step-up  POST   /api/admin/chains/{chain}/resume
auditor   -        GET    /api/admin/stream
auditor   -        GET    /api/admin/jobs
auditor   -        GET    /api/admin/jobs/recurring
auditor   -        GET    /api/admin/jobs/{jobId}
auditor   -        GET    /api/admin/jobs/{jobId}/output
operator  -        POST   /api/admin/jobs
operator  -        POST   /api/admin/jobs/{jobId}/retry
operator  -        POST   /api/admin/jobs/{jobId}/cancel
auditor   -        GET    /api/admin/reconcile
auditor   -        GET    /api/admin/reconcile/{jobId}
auditor   -        GET    /api/admin/reconcile/{jobId}/differences
support   -        POST   /api/admin/reconcile
auditor   -        GET    /api/admin/webhooks/deliveries
auditor   -        GET    /api/admin/webhooks/deliveries/{deliveryId}
auditor   -        GET    /api/admin/webhooks/failing
support   -        POST   /api/admin/webhooks/deliveries/{deliveryId}/redeliver
support   -        POST   /api/admin/webhooks/redeliver
auditor   -        GET    /api/admin/resolutions
auditor   -        GET    /api/admin/resolutions/{depositId}
support   step-up  POST   /api/admin/resolutions/{depositId}/accept
support   step-up  POST   /api/admin/resolutions/{depositId}/release
auditor   -        GET    /api/admin/collections
auditor   -        GET    /api/admin/collections/uncollected
auditor   -        GET    /api/admin/collections/uncollected/sums
auditor   -        GET    /api/admin/collections/addresses/{address}
operator  step-up  POST   /api/admin/collections/uncollected/{uncollectedId}/collect
operator  step-up  DELETE /api/admin/collections/uncollected/{uncollectedId}/collect
auditor   -        GET    /api/admin/plugins
auditor   -        GET    /api/admin/overview
auditor   -        GET    /api/admin/audit
support   -        POST   /api/admin/audit/verify
auditor   -        GET    /api/admin/search
auditor   -        GET    /api/admin/payments
auditor   -        GET    /api/admin/payments/{paymentId}
auditor   -        GET    /api/admin/deposits
auditor   -        GET    /api/admin/deposits/{depositId}
auditor   -        GET    /api/admin/payouts
auditor   -        GET    /api/admin/payouts/{payoutId}
auditor   -        GET    /api/admin/refunds
auditor   -        GET    /api/admin/refunds/{refundId}
auditor   -        GET    /api/admin/withdrawals
auditor   -        GET    /api/admin/withdrawals/{withdrawalId}
auditor   -        GET    /api/admin/exchanges
auditor   -        GET    /api/admin/exchanges/{txnId}
auditor   -        GET    /api/admin/accounts
auditor   -        GET    /api/admin/accounts/{accountId}
auditor   -        GET    /api/admin/trackers
auditor   -        GET    /api/admin/trackers/{webhookId}
auditor   -        GET    /api/admin/gas-stations
auditor   -        GET    /api/admin/outbound
auditor   -        GET    /api/admin/outbound/{intentId}
operator  step-up  POST   /api/admin/outbound/{intentId}/cancel
operator  step-up  POST   /api/admin/outbound/{intentId}/raise-fee
operator  step-up  POST   /api/admin/outbound/{intentId}/retry
owner     step-up  POST   /api/admin/outbound/{intentId}/settle
operator  step-up  POST   /api/admin/merchants
operator  step-up  PUT    /api/admin/merchants/{merchantId}
support   -        DELETE /api/admin/merchants/{merchantId}/sessions
operator  step-up  POST   /api/admin/merchants/{merchantId}/credits
operator  step-up  POST   /api/admin/merchants/two-factor/reset
auditor   -        GET    /api/admin/merchants
auditor   -        GET    /api/admin/merchants/{merchantId}
owner     step-up  PUT    /api/admin/merchants/{merchantId}/limits
operator  step-up  POST   /api/admin/merchants/{merchantId}/suspend
operator  step-up  POST   /api/admin/merchants/{merchantId}/reinstate
operator  step-up  POST   /api/admin/password-resets
operator  step-up  PUT    /api/admin/merchants/{merchantId}/plan
auditor   -        GET    /api/admin/plans
owner     step-up  POST   /api/admin/plans
owner     step-up  PATCH  /api/admin/plans/{planId}
auditor   -        GET    /api/admin/settings
owner     step-up  PUT    /api/admin/settings
auditor   -        GET    /api/admin/tokens
operator  step-up  POST   /api/admin/tokens
auditor   -        GET    /api/admin/tokens/{tokenId}
operator  step-up  PATCH  /api/admin/tokens/{chain}/{symbol}
auditor   -        GET    /api/admin/prices
operator  step-up  POST   /api/admin/prices/sources/{name}/set-aside
operator  step-up  POST   /api/admin/prices/sources/{name}/take-back
auditor   -        GET    /api/admin/signer
operator  step-up  POST   /api/admin/signer/approvals/{approvalId}/approve
operator  step-up  POST   /api/admin/signer/approvals/{approvalId}/deny
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
-         -        GET    /api/admin/auth/sessions
-         -        DELETE /api/admin/auth/sessions
-         -        DELETE /api/admin/auth/sessions/{sessionId}
-         -        POST   /api/admin/auth/sign-out-everywhere
-         code     POST   /api/admin/auth/step-up
"""

PUBLIC = """
-         -        POST   /api/admin/auth/refresh
-         -        POST   /api/admin/auth/set-password
-         -        POST   /api/admin/auth/sign-in
-         -        POST   /api/admin/auth/sign-out
-         -        POST   /api/admin/auth/two-factor/confirm
-         -        POST   /api/admin/auth/two-factor/enrol
-         -        POST   /api/auth/invitations/accept
-         -        POST   /api/auth/invitations/read
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
    ``member`` is the permission of members in person: the scope by default, or what stands behind the colon.
    """

    door: str
    method: str
    path: str
    scope: str | None = None
    member: str | None = None
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
            member = member_permission_of(handler.opt) if door in BY_MEMBERS else None
            for method in handler.http_methods:
                yield Access(door=door, method=method, path=path, scope=needed, member=member, step_up=steps_up)


def filled(path: str, **ids: Any) -> str:
    """Return the path with these identifiers in it, and with others that nobody has."""
    return re.sub(r"\{(\w+)\}", lambda found: str(ids.get(found[1], "unknown")), path)


def _mirrored(lines: str) -> str:
    for key_path, rest in MIRRORED.items():
        lines = lines.replace(f" {key_path}", f" /api/dashboard/projects/{{projectId}}{rest}")
    return lines


def _row(door: str, line: str) -> Access:
    named, needed, method, path = line.split()
    scope, _, member = named.partition(":")
    return Access(
        door=door,
        method=method,
        path=path,
        scope=None if scope == "-" else scope,
        member=(member or scope) if door in BY_MEMBERS else None,
        step_up=needed == "step-up",
        own_code=needed == "code",
    )
