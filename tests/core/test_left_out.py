"""What libraries would import if they could, and no process of ours ever uses: it stays out of their memory."""

from __future__ import annotations

import importlib
import subprocess
import sys

import click
import pytest

from cambist.cli.imports import left_out

WORKER = """
import cambist.cli.worker
from cambist.cli.processes import load_process
load_process("worker")
"""
WEB = """
import cambist.cli.web
from cambist_web.start import worker
with contextlib.suppress(Exception):  # it has no settings, and has imported everything when it notices
    worker()
assert "cambist_web.worker" in sys.modules
from cambist.settings import WebSettings
from cambist_web.app import build_app
build_app(WebSettings())
"""
STARTED = """
import contextlib, sys
{imports}

print(*sorted({unused} & set(sys.modules)))
"""
UNUSED = {"advanced_alchemy.service", "cryptography.x509", "pydantic", "rich", "zxcvbn"}
UNUSED_BY_WORKERS = UNUSED | {"aiohttp.web", "prometheus_client"}
UNUSED_BY_WEB = UNUSED | {"cambist.signer.local", "sqlite3"}


def test_a_library_does_without_what_is_left_out_and_everybody_has_it_again_afterwards(monkeypatch):
    monkeypatch.delitem(sys.modules, "this", raising=False)
    with left_out("this"), pytest.raises(ImportError):
        importlib.import_module("this")
    assert "this" not in sys.modules
    with left_out("click"):
        assert importlib.import_module("click") is click


@pytest.mark.parametrize("imports,unused", [(WORKER, UNUSED_BY_WORKERS), (WEB, UNUSED_BY_WEB)], ids=["worker", "web"])
def test_a_process_holds_nothing_that_it_never_uses(imports, unused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = STARTED.format(imports=imports, unused=unused)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr
