"""What each role of operators may do: the one table. Every route below ``/api/admin`` names a permission of it.

::

    @get("/", summary="List gas stations", opt=permits("money.read"))

``docs/operators/people.md`` shows the table, and a rules test compares the two. The admin key may do all of it, without
a second factor, which a program has none of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from litestar import Controller
from litestar.handlers import BaseRouteHandler
from msgspec import Struct

from cambist.services.identity.operators import ROLES, Role

PERMISSION = "permission"


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
    "money.read": Permission(roles=READ, what="collections, gas stations, stakes"),
    "stakes.change": Permission(roles=ACT, step_up=True, what="stake, unstake, withdraw a gas station's coin"),
    "settings.read": Permission(roles=READ, what="platform settings and fees"),
    "settings.change": Permission(roles=OWN, step_up=True, what="platform settings and fees"),
    "plans.read": Permission(roles=READ, what="plans"),
    "plans.change": Permission(roles=OWN, step_up=True, what="make, change and archive plans"),
    "merchants.sign_out": Permission(roles=RESOLVE, what="end every session of a merchant"),
    "merchants.plan": Permission(roles=ACT, step_up=True, what="give a merchant a plan"),
    "merchants.credits": Permission(roles=ACT, step_up=True, what="grant usage credits"),
    "merchants.live": Permission(roles=ACT, step_up=True, what="grant live mode, or take it back"),
    "merchants.add": Permission(roles=ACT, step_up=True, what="make a merchant"),
    "merchants.recover": Permission(
        roles=ACT, step_up=True, what="let a merchant back in: a password link, no second factor"
    ),
    "operators.read": Permission(roles=READ, what="who runs the gateway"),
    "operators.manage": Permission(roles=OWN, step_up=True, what="invite, disable, let back in, change roles"),
}
"""Reading is for all. What moves money, opens access or concerns people takes a step-up; ending sessions does not."""


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
