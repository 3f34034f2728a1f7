"""The supervisor: children are started again when they end, given up when that is in vain, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import psutil
import pytest

from cambist.cli.options import EXIT_SETTINGS
from cambist.cli.supervisor import Child, GivenUpError, Supervisor

STEADY = "import time, pathlib, os, sys; pathlib.Path(sys.argv[1]).open('a').write(f'{os.getpid()}\\n'); time.sleep(60)"


def _child(name: str, code: str, *args: str) -> Child:
    return Child(name, [sys.executable, "-c", code, *args], dict(os.environ))


def _pids(path) -> list[int]:
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def _wait_for(condition, timeout_s: float = 15):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


class _Running:
    """A supervisor in a thread."""

    def __init__(self, *children: Child, is_ready=lambda: True) -> None:
        self.ready = threading.Event()
        self.supervisor = Supervisor(children, is_ready=is_ready, on_ready=self.ready.set, keep_up=lambda: None)
        self.thread = threading.Thread(target=self.supervisor.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.supervisor.stop()
        self.thread.join(20)
        assert not self.thread.is_alive()


def test_a_killed_child_is_started_again_and_the_others_are_left_alone(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    with _Running(_child("first", STEADY, str(first)), _child("second", STEADY, str(second))):
        _wait_for(lambda: _pids(first) and _pids(second))
        os.kill(_pids(first)[0], signal.SIGKILL)
        _wait_for(lambda: len(_pids(first)) == 2)
        assert len(_pids(second)) == 1
    assert not any(psutil.pid_exists(pid) for pid in _pids(first) + _pids(second))


def test_a_child_that_ends_again_and_again_waits_longer_each_time(tmp_path):
    child = _child(
        "short",
        "import sys, pathlib, os; pathlib.Path(sys.argv[1]).open('a').write(f'{os.getpid()}\\n')",
        str(tmp_path / "pids"),
    )
    with _Running(child):
        _wait_for(lambda: len(_pids(tmp_path / "pids")) == 3)
    assert child.failures >= 2
    assert [Child("x", [], {}, failures=number).delay_s() for number in (1, 2, 3, 7, 500)] == [0.5, 1, 2, 5, 5]


def test_a_child_that_refuses_its_settings_ends_everything(tmp_path):
    other = tmp_path / "other"
    children = [_child("other", STEADY, str(other)), _child("picky", f"raise SystemExit({EXIT_SETTINGS})")]
    supervisor = Supervisor(children, is_ready=lambda: False, on_ready=lambda: None, keep_up=lambda: None)
    with pytest.raises(GivenUpError, match="picky process refuses its settings"):
        supervisor.run()
    assert not any(psutil.pid_exists(pid) for pid in _pids(other))


def test_a_child_that_never_gets_going_is_given_up(monkeypatch):
    monkeypatch.setattr("cambist.cli.supervisor.FIRST_DELAY_S", 0.01)
    children = [_child("weak", "raise SystemExit(3)")]
    supervisor = Supervisor(children, is_ready=lambda: False, on_ready=lambda: None, keep_up=lambda: None)
    with pytest.raises(GivenUpError, match="weak process ended 5 times"):
        supervisor.run()


def test_readiness_is_announced_once_and_only_when_it_is_so(tmp_path):
    asked = []

    def is_ready() -> bool:
        asked.append(1)
        return len(asked) > 3

    with _Running(_child("one", STEADY, str(tmp_path / "pids")), is_ready=is_ready) as running:
        assert running.ready.wait(10)
        time.sleep(0.2)
    assert len(asked) == 4


def test_a_process_of_ours_ends_when_its_supervisor_was_killed(tmp_path):
    pids = tmp_path / "pids"
    child = f"from cambist.cli.processes import stop_with_the_supervisor as s; s(); {STEADY}"
    owner = textwrap.dedent(
        """
        import os, sys
        from cambist.cli.supervisor import Child, Supervisor
        child = Child("child", [sys.executable, "-c", sys.argv[1], sys.argv[2]], dict(os.environ))
        Supervisor([child], is_ready=lambda: False, on_ready=lambda: None, keep_up=lambda: None).run()
        """
    )
    process = subprocess.Popen([sys.executable, "-c", owner, child, str(pids)])
    _wait_for(lambda: _pids(pids))
    process.kill()
    process.wait()
    _wait_for(lambda: not psutil.pid_exists(_pids(pids)[0]) or psutil.Process(_pids(pids)[0]).status() == "zombie")
