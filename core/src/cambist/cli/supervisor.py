"""Keeps child processes running: starts them, starts them again when they end, and stops them all together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from .options import EXIT_SETTINGS
from .processes import SUPERVISOR_FD

PROGRAM = (sys.executable, "-m", "cambist.cli")
"""What a process of ours is started with, before its command."""

FIRST_DELAY_S = 0.5
DELAY_S_MAX = 5.0
STABLE_AFTER_S = 60.0
FAILURES_BEFORE_READY_MAX = 5
STOP_TIMEOUT_S = 20.0
POLL_S = 0.05

log = structlog.get_logger(__name__)


class GivenUpError(Exception):
    """A child cannot run at all; the message is a sentence for the operator."""


@dataclass
class Child:
    """A process that should always run. After each failure it waits twice as long as before to be started again."""

    name: str
    argv: Sequence[str]
    environ: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    start_at: float = 0.0
    failures: int = 0

    def delay_s(self) -> float:
        return float(min(FIRST_DELAY_S * 2 ** min(self.failures - 1, 10), DELAY_S_MAX))


class Supervisor:
    """Runs children until it is told to stop. Signals only set a flag; everything happens in ``run``."""

    def __init__(
        self,
        children: Sequence[Child],
        *,
        is_ready: Callable[[], bool],
        on_ready: Callable[[], None],
        keep_up: Callable[[], None],
    ) -> None:
        """Call ``on_ready`` once ``is_ready`` says so, and ``keep_up`` time and again while running."""
        self._children = children
        self._is_ready = is_ready
        self._on_ready = on_ready
        self._keep_up = keep_up
        self._ready = False
        self._stopping = False
        # A child reads this pipe's end; it sees the end of it when this process is gone, even by kill -9.
        self._alive, self._keeps_alive = os.pipe()

    def stop(self, *_: object) -> None:
        """Ask ``run`` to stop everything and return; fit to be a signal's handler."""
        self._stopping = True

    @property
    def stopping(self) -> bool:
        """Whether it was asked to stop."""
        return self._stopping

    def run(self) -> None:
        """Run until stopped. Raises GivenUpError when a child cannot run at all."""
        try:
            while not self._stopping:
                now = time.monotonic()  # processes run in real time, whatever clock the gateway has
                for child in self._children:
                    self._look_after(child, now)
                self._keep_up()
                if not self._ready and self._is_ready():
                    self._ready = True
                    self._on_ready()
                time.sleep(POLL_S)
        finally:
            self._stop_all()
            os.close(self._alive)
            os.close(self._keeps_alive)

    def _look_after(self, child: Child, now: float) -> None:
        if child.process is None:
            if now >= child.start_at:
                self._start(child, now)
            return
        code = child.process.poll()
        if code is None:
            return
        if code == EXIT_SETTINGS:
            raise GivenUpError(f"The {child.name} process refuses its settings; its message is above.")
        child.failures = 1 if now - child.started_at > STABLE_AFTER_S else child.failures + 1
        if not self._ready and child.failures >= FAILURES_BEFORE_READY_MAX:
            raise GivenUpError(f"The {child.name} process ended {child.failures} times without becoming ready.")
        child.process = None
        child.start_at = now + child.delay_s()
        log.error("process_ended", process=child.name, exit_code=code, again_in_s=round(child.delay_s(), 1))

    def _start(self, child: Child, now: float) -> None:
        child.process = subprocess.Popen(
            child.argv,
            env={**child.environ, SUPERVISOR_FD: str(self._alive)},
            pass_fds=[self._alive],
            start_new_session=True,  # so that Ctrl-C in a terminal reaches us first, and we stop them in order
        )
        child.started_at = now
        log.info("process_started", process=child.name, pid=child.process.pid)

    def _stop_all(self) -> None:
        running = [child.process for child in self._children if child.process is not None]
        for process in running:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        for process in running:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.warning("process_killed", pid=process.pid, reason="it did not stop in time")
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
