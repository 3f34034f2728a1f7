"""The description of the API split by who calls it: merchants' programs, their dashboard, and operators.

What an operation's credentials are decides whose it is, so a new route finds its place by itself; what asks for
none is told apart by its path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final

from cambist_web.auth import ADMIN_SCHEME, API_KEY_SCHEME, OPERATOR_SCHEME, SESSION_SCHEME, STEP_UP, TRACKER_SCHEME
from cambist_web.permissions import MEMBER_PERMISSIONS, PERMISSION, PERMISSIONS, SCOPE, member_permission_of


class Audience(Enum):
    """Who reads a description; the value is its name in addresses."""

    MERCHANT = "merchant"
    DASHBOARD = "dashboard"
    OPERATOR = "operator"


SCHEMES: Final[Mapping[Audience, frozenset[str]]] = {
    Audience.MERCHANT: frozenset({API_KEY_SCHEME, TRACKER_SCHEME}),
    Audience.DASHBOARD: frozenset({SESSION_SCHEME}),
    Audience.OPERATOR: frozenset({ADMIN_SCHEME, OPERATOR_SCHEME}),
}
"""The credentials of each audience; every security scheme stands in exactly one."""

_TITLES: Final[Mapping[Audience, str]] = {
    Audience.MERCHANT: "Cambist for merchants' programs",
    Audience.DASHBOARD: "Cambist for merchants in person",
    Audience.OPERATOR: "Cambist for operators",
}

_OPEN: Final[Sequence[tuple[str, frozenset[Audience]]]] = (
    ("/api/admin/", frozenset({Audience.OPERATOR})),
    ("/api/auth/", frozenset({Audience.DASHBOARD})),
    ("/api/", frozenset({Audience.MERCHANT, Audience.DASHBOARD})),
    ("/", frozenset()),
)
"""Whose is what asks for no credential: the first prefix that fits. Health and metrics are no part of an API."""


def of_audience(whole: Mapping[str, Any], audience: Audience) -> dict[str, Any]:
    """Return what an audience may call, with its credentials only, and no schema, scheme or tag that nothing uses.

    ``whole`` is the whole description, which is left as it is. Without an operation of theirs, ``paths`` is empty.
    """
    paths: dict[str, dict[str, Any]] = {}
    # With an address of operators' own, the public one has trackers' operations, which take the admin key too.
    is_served = audience is not Audience.OPERATOR or any(path.startswith("/api/admin/") for path in whole["paths"])
    for path, item in whole["paths"].items() if is_served else ():
        for method, operation in item.items():
            if (security := _security(path, operation, audience)) is not None:
                paths.setdefault(path, {})[method] = _for(operation, audience) | {"security": security}
    told = {} if audience is Audience.OPERATOR else whole.get("webhooks", {})
    operations = [operation for item in (*paths.values(), *told.values()) for operation in item.values()]
    tags = {tag for operation in operations for tag in operation.get("tags", ())}
    schemes = {name for operation in operations for way in operation["security"] for name in way}
    components = whole["components"]
    schemas = _reachable({**paths, **told}, components["schemas"])
    return {
        **whole,
        "info": whole["info"] | {"title": _TITLES[audience]},
        "tags": [tag for tag in whole["tags"] if tag["name"] in tags],
        "paths": paths,
        "webhooks": told,
        "components": {
            **components,
            "schemas": {name: one for name, one in components["schemas"].items() if name in schemas},
            "securitySchemes": {name: one for name, one in components["securitySchemes"].items() if name in schemes},
        },
    }


def describe_needs(operation: dict[str, Any], opt: Mapping[str, Any]) -> None:
    """Say what a handler's ``opt`` asks for, beside the credential: a key's scope, operators' roles, a step-up."""
    said = []
    if any(API_KEY_SCHEME in way for way in operation["security"]) and (scope := opt.get(SCOPE)) is not None:
        operation["x-scope"] = scope = str(getattr(scope, "value", scope))
        said.append(f"API keys need the scope `{scope}`.")
    if (name := opt.get(PERMISSION)) is not None:
        permission = PERMISSIONS[name]
        operation |= {"x-permission": name, "x-roles": list(permission.roles), "x-step-up": permission.step_up}
        said.append(f"Operators need the permission `{name}`, which these roles have: {', '.join(permission.roles)}.")
    elif any(SESSION_SCHEME in way for way in operation["security"]):
        name = member_permission_of(opt)
        roles = MEMBER_PERMISSIONS[name].roles
        operation |= {"x-member-permission": name, "x-member-roles": list(roles)}
        said.append(f"Members need the permission `{name}`, which these roles have: {', '.join(roles)}.")
    if opt.get(STEP_UP):
        operation["x-step-up"] = True
    if operation.get("x-step-up"):
        said.append("A session must have stepped up.")
    if said:
        operation["description"] = "\n\n".join([operation["description"], *said])


def _for(operation: Mapping[str, Any], audience: Audience) -> dict[str, Any]:
    """Return the operation without the marks that concern others."""
    foreign = {
        Audience.MERCHANT: {"x-permission", "x-roles", "x-member-permission", "x-member-roles", "x-step-up"},
        Audience.DASHBOARD: {"x-permission", "x-roles", "x-scope"},
        Audience.OPERATOR: {"x-scope", "x-member-permission", "x-member-roles"},
    }[audience]
    return {name: value for name, value in operation.items() if name not in foreign}


def _security(path: str, operation: Mapping[str, Any], audience: Audience) -> list[dict[str, Any]] | None:
    """Return the ways by which an audience calls an operation, or None if it does not."""
    ways: list[dict[str, Any]] = operation["security"]
    if any(ways):
        theirs = [way for way in ways if way and way.keys() <= SCHEMES[audience]]
        return theirs + [way for way in ways if not way] if theirs else None
    (whose, *_) = (audiences for prefix, audiences in _OPEN if path.startswith(prefix))
    return ways if audience in whose else None


def _reachable(paths: Mapping[str, Any], schemas: Mapping[str, Any]) -> set[str]:
    found: set[str] = set()
    waiting = list(_references(paths))
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += _references(schemas[name])
    return found


def _references(part: Any) -> Iterator[str]:  # noqa: ANN401  any part of a description
    """Yield the names of the schemas that a part of a description refers to."""
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"].rpartition("/")[2]
        for one in part.values():
            yield from _references(one)
    elif isinstance(part, list):
        for one in part:
            yield from _references(one)
