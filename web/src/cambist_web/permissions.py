"""What each role may do: one table for operators, and one for members of merchants.

Every route below ``/api/admin`` names a permission of the first::

    @get("/", summary="List gas stations", opt=permits("money.read"))

``docs/operators/people.md`` shows it, and a rules test compares the two. The admin key may do all of it, without a
second factor, which a program has none of.

Every route for a merchant in person names one of the second, which is the scope that a key must have for the same, or
stands beside it: ``opt=needs("payouts")``, ``opt=needs(member="team.read")``. ``docs/merchants/team.md`` shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from litestar import Controller
from litestar.datastructures import State
from litestar.handlers import BaseRouteHandler
from msgspec import Struct

from cambist.services.errors import ForbiddenError
from cambist.services.identity.api_keys import SCOPES, Scope
from cambist.services.identity.operators import LET_MERCHANTS_IN, ROLES, Role
from cambist.services.identity.sessions import MemberRole, SessionPrincipal
from cambist.services.identity.team import MEMBER_ROLES

PERMISSION = "permission"
SCOPE, MEMBER = "scope", "member"


class Permission(Struct, frozen=True, kw_only=True):
    """Who may do something, and whether the session must have stepped up. ``what`` is for people."""

    roles: Sequence[Role]
    step_up: bool = False
    what: str


READ: Sequence[Role] = ROLES
RESOLVE: Sequence[Role] = ("owner", "operator", "support")
ACT: Sequence[Role] = ("owner", "operator")
OWN: Sequence[Role] = ("owner",)

PERMISSIONS: Mapping[str, Permission] = {
    "stream.read": Permission(roles=READ, what="hear what changes, as it happens"),
    "jobs.read": Permission(roles=READ, what="requested and recurring jobs, files of statements"),
    "jobs.change": Permission(roles=ACT, what="ask for statements; retry and cancel jobs"),
    "reconcile.read": Permission(roles=READ, what="comparisons of books and chains"),
    "reconcile.start": Permission(roles=RESOLVE, what="have books and chains compared"),
    "webhooks.read": Permission(roles=READ, what="deliveries of all merchants, failing receivers"),
    "webhooks.redeliver": Permission(roles=RESOLVE, what="send webhooks again, one or in bulk"),
    "resolutions.read": Permission(roles=READ, what="deposits of all merchants that wait for a decision"),
    "resolutions.decide": Permission(
        roles=RESOLVE, step_up=True, what="accept and release deposits for a merchant, which sends nothing"
    ),
    "money.read": Permission(roles=READ, what="collections and what is not collected, gas stations, stakes"),
    "collections.ask": Permission(roles=ACT, step_up=True, what="have an address collected now"),
    "records.read": Permission(
        roles=READ, what="payments, deposits, accounts, trackers and what is sent, of all merchants; search"
    ),
    "plugins.read": Permission(roles=READ, what="plugins, and their settings without secrets"),
    "overview.read": Permission(
        roles=READ, what="the overview: volume, conversion, fees, what is held, what needs attention"
    ),
    "audit.read": Permission(roles=READ, what="the audit log"),
    "audit.verify": Permission(roles=RESOLVE, what="have the audit log compared with its seals"),
    "outbound.read": Permission(roles=READ, what="what is to be sent, and what it waits for"),
    "outbound.change": Permission(roles=ACT, step_up=True, what="retry, cancel, raise the fee of what is to be sent"),
    "outbound.settle": Permission(
        roles=OWN, step_up=True, what="name the transaction by which what may have been sent is ended"
    ),
    "stakes.change": Permission(roles=ACT, step_up=True, what="stake, unstake, withdraw a gas station's coin"),
    "chains.read": Permission(roles=READ, what="chains as they stand, their endpoints and tokens"),
    "chains.endpoints": Permission(roles=ACT, step_up=True, what="add and remove endpoints of a chain"),
    "tokens.change": Permission(roles=ACT, step_up=True, what="add, disable and enable tokens"),
    "chains.pause": Permission(roles=ACT, what="pause watching a chain, or sending on it"),
    "chains.rescan": Permission(roles=ACT, step_up=True, what="have blocks of a chain read again"),
    "chains.resume": Permission(roles=ACT, step_up=True, what="resume watching a chain, or sending on it"),
    "prices.read": Permission(roles=READ, what="what price sources say"),
    "prices.change": Permission(roles=ACT, step_up=True, what="set a price source aside, take it back"),
    "signer.read": Permission(roles=READ, what="the signer's rules, what waits for a person, what was refused"),
    "signer.answer": Permission(roles=ACT, step_up=True, what="hand codes for approvals to the signer"),
    "settings.read": Permission(roles=READ, what="platform settings and fees"),
    "settings.change": Permission(roles=OWN, step_up=True, what="platform settings and fees"),
    "plans.read": Permission(roles=READ, what="plans"),
    "plans.change": Permission(roles=OWN, step_up=True, what="make, change and archive plans"),
    "merchants.sign_out": Permission(roles=RESOLVE, what="end every session of a merchant"),
    "merchants.plan": Permission(roles=ACT, step_up=True, what="give a merchant a plan"),
    "merchants.credits": Permission(roles=ACT, step_up=True, what="grant usage credits"),
    "merchants.live": Permission(roles=ACT, step_up=True, what="grant live mode, or take it back"),
    "merchants.read": Permission(roles=READ, what="merchants: people, projects, plan, balances, limits"),
    "merchants.limits": Permission(roles=OWN, step_up=True, what="set a merchant's own limits"),
    "merchants.suspend": Permission(roles=ACT, step_up=True, what="suspend a merchant, reinstate it"),
    "merchants.add": Permission(roles=LET_MERCHANTS_IN, step_up=True, what="make a merchant"),
    "merchants.recover": Permission(
        roles=LET_MERCHANTS_IN, step_up=True, what="let a merchant back in: a password link, no second factor"
    ),
    "operators.read": Permission(roles=READ, what="who runs the gateway"),
    "operators.manage": Permission(roles=OWN, step_up=True, what="invite, disable, let back in, change roles"),
}
"""Reading is for all. What moves money, opens access or concerns people takes a step-up; what only stops, does not."""


def sees_customers(state: State) -> bool:
    """Say whether who asks may see customers' names and e-mail addresses: whoever may have to answer them."""
    operator = getattr(state, "operator_session", None)
    return operator is None or operator.role in RESOLVE


def permits(name: str) -> Mapping[str, Any]:
    """Return the ``opt`` of a handler for operators: what they need to be let in. Raises KeyError for what is none."""
    if name not in PERMISSIONS:
        raise KeyError(f"{name} is no permission: see PERMISSIONS.")
    return {PERMISSION: name}


def check_permitted(*handlers: Any) -> None:  # noqa: ANN401  controllers, as routers take them
    """Raise TypeError for a handler that names no permission: nobody has decided about it."""
    for handler in handlers:
        for one in _handlers_of(handler):
            if one.opt.get(PERMISSION) not in PERMISSIONS:
                raise TypeError(f"{one.fn.__qualname__} is for operators and names no permission: see permits().")


class MemberPermission(Struct, frozen=True, kw_only=True):
    """Which members may do something. ``whole`` is for what concerns the merchant and not one of its projects.

    Members to whom only some projects are open may not do that.
    """

    roles: Sequence[MemberRole]
    whole: bool = False
    what: str


MANAGE: Sequence[MemberRole] = ("owner", "admin")
MONEY: Sequence[MemberRole] = ("owner", "admin", "finance")
BUILD: Sequence[MemberRole] = ("owner", "admin", "developer")

MEMBER_PERMISSIONS: Mapping[str, MemberPermission] = {
    "self": MemberPermission(roles=MEMBER_ROLES, what="one's own sessions, password, second factor; leaving"),
    "read": MemberPermission(roles=MEMBER_ROLES, what="everything of a project but secrets"),
    "payments": MemberPermission(
        roles=("owner", "admin", "finance", "developer"),
        what="make payments, accept and release deposits, redeliver events, the sandbox",
    ),
    "refunds": MemberPermission(roles=MONEY, what="refund payments and deposits"),
    "payouts": MemberPermission(roles=MONEY, what="payouts, coin settings"),
    "exchange": MemberPermission(roles=MONEY, what="swaps and bridges"),
    "accounts": MemberPermission(roles=BUILD, what="end users' accounts"),
    "trackers": MemberPermission(roles=BUILD, what="trackers, and their tokens"),
    "webhooks": MemberPermission(roles=BUILD, what="webhook endpoints, their secrets and deliveries"),
    "keys": MemberPermission(roles=BUILD, what="issue and revoke API keys, with scopes of one's own"),
    "projects.change": MemberPermission(roles=BUILD, what="a project's settings and signing secret"),
    "projects.add": MemberPermission(roles=MANAGE, whole=True, what="make projects"),
    "withdrawals.read": MemberPermission(roles=MEMBER_ROLES, whole=True, what="withdrawals, approved addresses"),
    "withdrawals": MemberPermission(roles=MONEY, whole=True, what="withdraw money"),
    "approvals": MemberPermission(roles=MANAGE, whole=True, what="approve addresses for auto-payouts"),
    "audit.read": MemberPermission(roles=MANAGE, whole=True, what="the audit log: who did what, from where"),
    "team.read": MemberPermission(roles=MEMBER_ROLES, what="who belongs to the team"),
    "team.manage": MemberPermission(roles=MANAGE, whole=True, what="invite, change roles and projects, remove"),
    "team.recover": MemberPermission(roles=("owner",), whole=True, what="let another member back in"),
}


def member_permission_of(opt: Mapping[str, Any]) -> str:
    """Return what a member in person must be permitted for a handler with this ``opt``, or "" where nobody decided.

    It is named beside the scope of keys, or goes by that name.
    """
    name: str = opt.get(MEMBER) or opt.get(SCOPE) or ""
    return name


def check_member(session: SessionPrincipal, handler: BaseRouteHandler) -> None:
    """Let a member do what the handler does. Raises ForbiddenError.

    Which projects are open to a member, ``projects.authorize()`` sees.
    """
    check_role(session, member_permission_of(handler.opt))


def check_role(session: SessionPrincipal, name: str) -> None:
    """Let a member do what one of ``MEMBER_PERMISSIONS`` is for. Raises ForbiddenError."""
    permission = MEMBER_PERMISSIONS[name]
    if session.role not in permission.roles:
        raise ForbiddenError(
            "ROLE_NOT_ALLOWED", f"This is for {' and '.join(permission.roles)}, not for {session.role}."
        )
    if permission.whole and session.project_pks is not None:
        words = "This concerns the merchant as a whole, and only some of the projects are open to you."
        raise ForbiddenError("PROJECTS_LIMITED", words)


def check_member_permissions(*handlers: Any) -> None:  # noqa: ANN401  controllers, as routers take them
    """Raise TypeError for a handler for members that names no permission: nobody has decided about it."""
    for handler in handlers:
        for one in _handlers_of(handler):
            if member_permission_of(one.opt) not in MEMBER_PERMISSIONS:
                raise TypeError(f"{one.fn.__qualname__} is for members and names no permission: see needs().")


def member_permissions_of(role: MemberRole) -> Sequence[str]:
    """Return the names of all that a member with this role may do."""
    return [name for name, permission in MEMBER_PERMISSIONS.items() if role in permission.roles]


def scopes_of(role: MemberRole) -> Sequence[Scope]:
    """Return the scopes that a member may give to a key: those of what the member may do."""
    return [scope for scope in SCOPES if role in MEMBER_PERMISSIONS[scope].roles]


def permissions_of(role: Role) -> Sequence[str]:
    """Return the names of all that a role may do."""
    return [name for name, permission in PERMISSIONS.items() if role in permission.roles]


def _handlers_of(handler: Any) -> Iterator[BaseRouteHandler]:  # noqa: ANN401  see above
    if isinstance(handler, BaseRouteHandler):
        yield handler
    elif isinstance(handler, type) and issubclass(handler, Controller):
        found = {name: value for kind in reversed(handler.__mro__) for name, value in vars(kind).items()}
        yield from (value for value in found.values() if isinstance(value, BaseRouteHandler))
    else:
        raise TypeError(f"{handler!r} is neither a handler nor a controller.")
