"""What the API's description gives as examples, made into answers of a gateway that has had a month.

Examples have one row in each list. Here a list has as many as a page wants, in all states that a row can be in and on
several chains, and what came in is told of thirty days.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

App = Literal["merchant", "operator"]

SOURCES = Path("web/dashboard/src")
# What is in a tracker is read as the merchant's own programs read it.
DESCRIPTIONS: Mapping[App, tuple[str, ...]] = {"merchant": ("dashboard", "merchant"), "operator": ("operator",)}
CHAINS: Mapping[str, str] = {
    "ethereum": "Ethereum",
    "base": "Base",
    "polygon": "Polygon",
    "arbitrum": "Arbitrum",
    "bsc": "BNB Smart Chain",
    "optimism": "Optimism",
    "gnosis": "Gnosis",
    "linea": "Linea",
}
"""What rows are on, one after the other. Examples are on the first."""
CHAIN, CHAIN_NAME = next(iter(CHAINS.items()))
ONE_COIN = frozenset({"/api/admin/collections/addresses/{address}"})
"""What answers parts of one thing, told apart by their coin, of which examples have one."""
CSV = "text/csv"
DAYS = 30
WEEK = (9, 4, 7, 12, 6, 14, 10)
"""How many payments come on the days of a week."""


class Described(NamedTuple):
    """One operation's answer: of one that only gives a file, what is in it."""

    method: str
    pattern: re.Pattern[str]
    answer: Mapping[str, Any] | str


class Answers:
    """The examples of one app's API."""

    def __init__(self, app: App, rows: int) -> None:
        self._all = sorted(
            (one for name in DESCRIPTIONS[app] for one in _described(name, rows)),
            # Of two that fit, the one that leaves less open: what lists all is not one that is called "list".
            key=lambda one: one.pattern.pattern.count("[^/]+"),
        )

    def find(self, method: str, path: str) -> Mapping[str, Any] | str | None:
        """Return what an operation answers; None for one that is not described."""
        fit = (one.answer for one in self._all if one.method == method and one.pattern.fullmatch(path))
        return next(fit, None)


@cache
def _described(name: str, rows: int) -> tuple[Described, ...]:
    # Reading a description takes longer than most of what is done with it.
    return tuple(_read(name, rows))


def _read(name: str, rows: int) -> Iterator[Described]:
    document = json.loads((SOURCES / "api/generated" / f"{name}.json").read_text())
    schemas = document["components"]["schemas"]
    for path, item in document["paths"].items():
        for method, operation in item.items():
            contents = operation["responses"].get("200", {}).get("content", {})
            pattern = re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)))
            if "example" in (content := contents.get("application/json", {})):
                filling = Filling(schemas, 1 if path in ONE_COIN else rows)
                yield Described(method.upper(), pattern, filling.filled(content["example"], content["schema"]))
            elif contents.keys() == {CSV}:
                yield Described(method.upper(), pattern, contents[CSV]["example"])


class Filling:
    """Makes more of the one row that examples have in their lists, in all states that a row can be in."""

    def __init__(self, schemas: Mapping[str, Any], rows: int) -> None:
        self._schemas, self._rows = schemas, rows

    def filled(self, answer: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
        properties = self._resolved(schema).get("properties", {})
        more = {}
        for name, value in answer.items():
            if isinstance(value, list) and len(value) == 1 and _is_row(value[0]):
                row_schema = self._resolved(properties.get(name, {}).get("items", {}))
                # What is listed is on all chains, and what belongs to one thing is on the chain of that.
                is_everywhere = "total" in answer or not _has_id(value[0], within=False)
                more[name] = [self._copy(value[0], row_schema, number, is_everywhere) for number in range(self._rows)]
            elif name == "permissions" or (name == "operator" and "permissions" in value):
                more[name] = self._all_permissions(value, properties[name])
            elif name == "turnover":
                more[name] = month(self.filled(value, properties[name]))
            elif isinstance(value, dict):
                more[name] = self.filled(value, properties.get(name, {}))
        return {**answer, **more, **({"total": self._rows} if answer.get("total") == 1 else {})}

    def _all_permissions(self, value: Any, schema: Mapping[str, Any]) -> Any:
        schema = self._resolved(schema)
        if isinstance(value, list):
            return list(self._choices(schema["items"]))
        return {
            **value,
            "permissions": self._all_permissions(value["permissions"], schema["properties"]["permissions"]),
        }

    def _copy(
        self, row: Mapping[str, Any], schema: Mapping[str, Any], number: int, is_everywhere: bool
    ) -> Mapping[str, Any]:
        properties = schema.get("properties", {})
        copied = {name: _varied(name, value, number) for name, value in row.items()}
        if is_everywhere:
            copied = _moved(copied, number)
        if number and next(iter(row)) == "projectId":
            copied["projectId"] = f"{row['projectId']}{number}"
        for name in {"status", "state"} & row.keys():
            if choices := self._choices(properties.get(name, {})):
                at = choices.index(row[name]) if row[name] in choices else 0
                copied[name] = choices[(at + number) % len(choices)]
        return copied

    def _choices(self, schema: Mapping[str, Any]) -> tuple[str, ...]:
        schema = self._resolved(schema)
        parts = [schema, *map(self._resolved, (*schema.get("oneOf", ()), *schema.get("anyOf", ())))]
        return tuple(choice for part in parts for choice in part.get("enum", ()) if choice is not None)

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while (reference := schema.get("$ref")) is not None:
            schema = self._schemas[reference.rpartition("/")[2]]
        return schema


def _is_row(value: Any) -> bool:
    """Whether it has an id, or a chain, by which others are told from it."""
    return isinstance(value, dict) and ("chain" in value or _has_id(value))


def _has_id(value: Mapping[str, Any], *, within: bool = True) -> bool:
    """Whether it has an id, or, where that counts, something in it has one."""
    return any(
        (name.endswith("Id") and isinstance(one, str)) or (within and isinstance(one, dict) and _is_row(one))
        for name, one in value.items()
    )


def _varied(name: str, value: Any, number: int) -> Any:
    """Return what another row has in its place: the first stays as it is."""
    if number == 0 or value is None:
        return value
    if isinstance(value, dict):
        return {name: _varied(name, one, number) for name, one in value.items()}
    if name.endswith("Id") and isinstance(value, str) and name not in {"projectId", "merchantId"}:
        return f"{value[:-1]}{number}"
    if name.endswith("At") and isinstance(value, str):
        return _earlier(value, timedelta(hours=7 * number))
    return value


def _moved(value: Any, number: int) -> Any:
    """Return the same on another chain."""
    if isinstance(value, dict):
        return {name: _moved(one, number) for name, one in value.items()}
    chain, name = list(CHAINS.items())[number % len(CHAINS)]
    return {CHAIN: chain, CHAIN_NAME: name}.get(value, value) if isinstance(value, str) else value


def _earlier(moment: str, by: timedelta) -> str:
    return (datetime.fromisoformat(moment) - by).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def month(turnover: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what came in on one day as what came in on thirty, on several chains."""
    (day,) = turnover["series"]
    price = float(day["fiat"])
    made = [WEEK[number % len(WEEK)] + number // 4 for number in range(DAYS)]
    series = []
    for number, count in enumerate(made):
        other = {"pending": int(number == DAYS - 1), "expired": count // 8, "underpaid": count // 12}
        states = {**day["payments"]["states"], **other, "paid": count - sum(other.values())}
        series.append(
            {
                **day,
                "beginsAt": _earlier(day["beginsAt"], timedelta(days=DAYS - 1 - number)),
                "deposits": states["paid"],
                "fiat": f"{price * states['paid']:.2f}",
                "payments": {**day["payments"], "made": count, "paid": states["paid"], "states": states},
            }
        )
    paid = sum(part["payments"]["paid"] for part in series)
    coins = turnover["coins"]
    parts = sum(range(1, len(coins) + 1))
    shares = [paid * (len(coins) - number) // parts for number in range(len(coins))]
    shares[0] += paid - sum(shares)
    return {
        **turnover,
        "deposits": paid,
        "fiat": f"{price * paid:.2f}",
        "payments": {
            **turnover["payments"],
            "made": sum(made),
            "paid": paid,
            "conversionPercent": f"{100 * paid / sum(made):.2f}",
        },
        "series": series,
        "coins": [
            {**coin, "deposits": count, "amount": str(80 * count), "fiat": f"{price * count:.2f}"}
            for coin, count in zip(coins, shares, strict=True)
        ],
    }
