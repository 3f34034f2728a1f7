"""A benchmark's side in a process of its own: what it has imported, what it says when it fails, and how it ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"

SIDES = """
import sys

class Side:
    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass

    def knows(self, module):
        return module in sys.modules

    async def fail(self):
        raise ValueError("it has failed")
"""
SCRIPT = """
import only_here
from _child import Child

first, second = Child("sides:Side"), Child("sides:Side")
print(first.call("knows", "only_here"))
print(first.end())
try:
    second.call("fail")
except RuntimeError as error:
    print("ValueError: it has failed" in str(error))
print(second.end())
try:
    Child("sides:Nobody")
except RuntimeError as error:
    print("has no attribute 'Nobody'" in str(error))
"""


@pytest.mark.parametrize("size, is_copy", [("full", False), ("tiny", True)])
def test_it_answers_and_fails_and_ends_whether_it_is_a_copy_or_has_imported_nothing(tmp_path, size, is_copy):
    for name, text in (("sides", SIDES), ("only_here", ""), ("script", SCRIPT)):
        (tmp_path / f"{name}.py").write_text(text)
    environment = {**os.environ, "CAMBIST_BENCH_SIZE": size, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(BENCH)])}
    ended = subprocess.run(
        [sys.executable, tmp_path / "script.py"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.split() == [str(is_copy), "0", "True", "0", "True"]
