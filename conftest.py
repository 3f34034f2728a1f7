"""How a run goes: which tests are the inner loop's, and in which order and shares all of them are handed out."""

from __future__ import annotations

import gc
import itertools
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import structlog
from execnet.xspec import XSpec
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from cambist_chainkit.imports import limit_kept
from tests.support.command import share_fork_server
from tests.support.payloads import compare_all
from tests.support.runners import serve_runners

# Modules import web3.py or eth_account, which raise the process' recursion limit, and kits look at it in the same one.
with limit_kept():
    pass

gc.disable()  # until all tests are imported: nothing of them is garbage

# How long something takes says how busy the machine is, and nothing of what is tried.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")

MEMORY = Path("/dev/shm")  # noqa: S108  read by nobody else: each folder made in it is the run's own
MEMORY_FREE_MIN = 4 * 2**30
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_FREE_MIN:
    # A database per test and a cluster per gateway: a disk that others use, too, makes each of them wait.
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# What it would use otherwise renders a traceback with every frame's variables: a second and more for one.
_RENDERER = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
structlog.configure(processors=[*structlog.get_config()["processors"][:-1], _RENDERER])
_CONFIGURED, _configure = structlog.get_config(), structlog.configure

SLOW_FOLDERS = ("tests/e2e/", "tests/browser/", "tests/bench/")
LONGEST = (
    "tests/e2e/exchanging/",
    "tests/e2e/mangling/",
    "tests/e2e/",
    "tests/browser/test_filled_pages.py",
    "tests/web/test_dashboard.py",
    "tests/browser/test_dashboard.py",
    "tests/bench/test_benchmarks.py",
)
"""What one worker has half a minute or more to do with: begun last, it would keep the others waiting at the end."""
WAITING = (
    "tests/e2e/",
    "tests/tasks/",
    "tests/core/test_vanished.py",
    "tests/browser/test_checkout_live.py",
    "tests/web/test_streamed_kinds.py",
    "tests/web/test_unfinished.py",
    "tests/web/test_worker.py",
    "plugins/evm/tests/test_faults.py",
    "plugins/evm/tests/test_sending_faults.py",
    "devnets/oneinch/tests/test_faults.py",
)
"""What waits for blocks and deadlines most of its time."""
NEVER_WAITING = "tests/e2e/test_demo.py"
CORES = os.cpu_count() or 1
TELLS_STORIES = "tells_stories"
BEGINS_WITH_STORIES = "begins_with_stories"
GOLDEN_RATIO = (5**0.5 - 1) / 2
"""Its multiples share out a whole evenly, however many there are."""
ONE_GATEWAY = re.compile(r"tests/e2e/\w+/")
SLOW_FIXTURES = frozenset({"deployed", "net", "network", "node", "pytester", "shared_node"})
SLOW_NAMES = frozenset(
    {
        "Anvil",
        "AnvilMachine",
        "AnvilNetwork",
        "AnvilProcess",
        "EmbeddedServers",
        "TronNode",
        "anvil_treasury",
        "tron_treasury",
    }
    | {"create_subprocess_exec", "network_of", "run_command", "runpytest_subprocess", "subprocess"}
)
"""What a module imports, or a test calls, that starts a chain's node or a process."""


@pytest.fixture(autouse=True)
def _logs_as_ever(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo what a command that a test runs in this process makes of logs, or later tests could not look at theirs."""

    def configure(**changes: Any) -> None:  # noqa: ANN401  as structlog's own
        _configure(**changes | {"cache_logger_on_first_use": False})

    monkeypatch.setattr(structlog, "configure", configure)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    _configure(**_CONFIGURED)
    # Else all that libraries say is written from then on: of httpx, a line for each request of each test.
    root.handlers[:] = handlers
    root.setLevel(level)


def pytest_sessionstart(session: pytest.Session) -> None:
    compare_all()
    if _only_hears(session.config) and session.config.option.markexpr != "fast":
        share_fork_server()  # before the processes start that run tests


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out of a worker that tells stories what is none, and need not be imported."""
    if not _tells_stories(config) or collection_path.is_dir():
        return None
    return not is_waiting(os.path.relpath(collection_path, config.rootpath)) or None


class SharedOut(pytest.Dir):
    """A folder that each worker begins elsewhere: what one of them has rewritten and written down, the others read."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        found = list(super().collect())
        begin = int(len(found) * (_number(self.config.workerinput["workerid"]) * GOLDEN_RATIO % 1))
        return found[begin:] + found[:begin]


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Dir | None:
    """Leave a package as it is: a fixture of its scope ends with its last test, and not with the session."""
    if (path / "__init__.py").is_file() or not hasattr(parent.config, "workerinput"):
        return None
    return SharedOut.from_parent(parent, path=path)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is fast, and put first what takes longest, so that nothing of it is left for the end."""
    if _tells_stories(config):
        items[:] = [item for item in items if is_waiting(item.nodeid)]  # what was named is collected in any case
    slow_files = set()
    for item in items:
        if is_fast(item):
            item.add_marker("fast")
        else:
            slow_files.add(item.path)
    files = {item.path: item.nodeid for item in items}
    places = {path: (_rank(nodeid), path not in slow_files, str(path)) for path, nodeid in files.items()}
    items.sort(key=lambda item: places[item.path])


def _rank(nodeid: str) -> int:
    """Return the place of a test's file among what takes longest, or behind all of it."""
    return next((rank for rank, start in enumerate(LONGEST) if nodeid.startswith(start)), len(LONGEST))


def pytest_collection_finish() -> None:
    """Collect garbage again, but rarely, and without looking through all that was imported."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Spare the process that only hears of tests a look through all that it heard, as pytest has it in the end."""
    if _only_hears(session.config):
        gc.freeze()


def _only_hears(config: pytest.Config) -> bool:
    """Whether this process runs no test, and hears of those that its workers run."""
    return bool(getattr(config.option, "dist", "no") != "no")


def is_fast(item: pytest.Item) -> bool:
    """Whether a test needs no chain's node, no browser and no process start, and is not marked to take its time."""
    if not isinstance(item, pytest.Function) or item.nodeid.startswith(SLOW_FOLDERS):
        return False
    if item.get_closest_marker("campaign") or item.get_closest_marker("slow"):
        return False
    names = {*vars(item.module), *item.function.__code__.co_names}
    return SLOW_NAMES.isdisjoint(names) and SLOW_FIXTURES.isdisjoint(item.fixturenames)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: Sequence[XSpec]) -> None:
    """Have the processes that run tests forked from one that has imported what they test.

    Where there are only as many as cores, each imports it for itself, as soon as it could be forked.
    """
    if len(specs) > CORES:
        python = serve_runners(config.getini("filterwarnings"))
        for spec in specs:
            spec.python = python


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Have the workers that are more than there are cores run what waits: the first of them above all."""
    worker, number = node.workerinput, _number(node.gateway.id)
    # One that takes the place of another that died has a number after all others', and runs anything.
    begins = node.config.getoption("dist") == "loadfile" and CORES <= number < worker["workercount"]
    worker[BEGINS_WITH_STORIES] = begins
    worker[TELLS_STORIES] = begins and number > CORES


def _number(worker_id: str) -> int:
    """Return which of the workers one is, from 0 on."""
    return int(worker_id.removeprefix("gw"))


def _tells_stories(config: pytest.Config) -> bool:
    """Whether this process is a worker that runs nothing but what waits."""
    return bool(getattr(config, "workerinput", {}).get(TELLS_STORIES))


def is_waiting(scope: str) -> bool:
    return scope.startswith(WAITING) and not scope.startswith(NEVER_WAITING)


class FilesAndNetworks(LoadFileScheduling):
    """Gives a file's tests to one worker; where they are run once on each kind of chain, each time to any.

    A folder whose files share a gateway counts as one file.

    While something waits, what keeps a core busy is run by no more workers than there are cores: processes that take
    turns on a core find nothing of theirs in its caches. The other workers tell what waits, and take what the busy ones
    leave of the cores. They collect nothing else: a worker takes four seconds of a core for all of it. But the first of
    them does, and helps the busy ones once nothing is left that waits: two of them leave a sixth of two cores idle.
    """

    def schedule(self) -> None:
        """Begin, once all workers have said what they collected; or go on, where one of them took another's place."""
        collected = sorted(self.registered_collections.items(), key=lambda item: -len(item[1]))
        self.registered_collections = dict(collected)  # the first one's is taken for that of all
        self.config.pluginmanager.get_plugin("session").testscollected = len(collected[0][1])  # not the last one's
        # Where there are fewer files than workers, the last of these are ended: first those that run only what waits.
        self.assigned_work = dict(
            sorted(self.assigned_work.items(), key=lambda item: item[0].workerinput[TELLS_STORIES])
        )
        super().schedule()

    def _check_nodes_have_same_collection(self) -> bool:
        own = self.registered_collections
        waiting = list(filter(is_waiting, next(iter(own.values()))))
        self.registered_collections = {
            node: ids for node, ids in own.items() if not (node.workerinput[TELLS_STORIES] and ids == waiting)
        }
        try:
            return super()._check_nodes_have_same_collection()
        finally:
            self.registered_collections = own

    def _assign_work_unit(self, node: WorkerController) -> None:
        if (scope := self._next_of(node)) is not None:
            self.workqueue.move_to_end(scope, last=False)
            super()._assign_work_unit(node)
        else:
            node.shutdown()

    def _next_of(self, node: WorkerController) -> str | None:
        """Return what this worker is to do next, or nothing where all that it could do is given out."""
        waits = next(filter(is_waiting, self.workqueue), None)
        if node.workerinput[TELLS_STORIES] or (waits and node.workerinput[BEGINS_WITH_STORIES]):
            return waits
        return next(itertools.filterfalse(is_waiting, self.workqueue), waits)

    def _pending_of(self, workload: dict[str, dict[str, bool]]) -> int:
        """Return how many tests of these are left: those of the last files, for a worker runs one after the other."""
        left = (list(tests.values()).count(False) for tests in reversed(workload.values()))
        return sum(itertools.takewhile(bool, left))

    def _split_scope(self, nodeid: str) -> str:
        network = re.search(r"\[(anvil|tron)\b", nodeid)
        folder = ONE_GATEWAY.match(nodeid)
        return (folder[0] if folder else super()._split_scope(nodeid)) + (network[0] if network else "")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:  # noqa: ANN401 - not public
    """Share the tests out in the order in which they were put above."""
    config.option.loadscopereorder = False
    return FilesAndNetworks(config, log) if config.getoption("dist") == "loadfile" else None
