"""Which of a run's workers is given which tests, and in which order these are put before."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

STORIES = [f"tests/tasks/test_{name}.py::test_it" for name in "abc"]
OTHERS = [f"tests/core/test_{name}.py::test_it" for name in "defg"]
OUTSIDE = "::test_it"
"""As pytest names a test of a file outside of the project."""


@pytest.fixture
def run(pytestconfig):
    """Give what hands the tests of a run out, as pytest has loaded it."""
    return pytestconfig.pluginmanager.get_plugin(str(pytestconfig.rootpath / "conftest.py"))


class Worker:
    """Keeps what it is given, in the place of a process that runs it."""

    def __init__(self, config, number, count):
        self.config, self.gateway = config, SimpleNamespace(id=f"gw{number}")
        self.workerinput = {"workercount": count}
        self.given, self.shutting_down = [], False

    def send_runtest_some(self, indices):
        assert not self.shutting_down
        self.given += indices

    def shutdown(self):
        self.shutting_down = True


def begun(run, tests):
    """Return a scheduler of these tests and its workers, of which the last began first."""
    count = run.CORES + 4
    session = SimpleNamespace(testscollected=0)
    config = SimpleNamespace(
        option=SimpleNamespace(loadscopereorder=False),
        pluginmanager=SimpleNamespace(get_plugin={"session": session}.get),
        getvalue={"tx": ["popen"] * count}.get,
        getoption={"dist": "loadfile"}.get,
    )
    workers = [Worker(config, number, count) for number in range(count)]
    scheduler = run.FilesAndNetworks(config)
    for worker in reversed(workers):
        run.pytest_configure_node(worker)
        scheduler.add_node(worker)
    for worker in reversed(workers):
        tells = worker.workerinput[run.TELLS_STORIES]
        scheduler.add_node_collection(worker, [test for test in tests if not tells or run.is_waiting(test)])
    scheduler.schedule()
    assert session.testscollected == len(tests)
    return scheduler, workers


def given(scheduler, worker):
    return [scheduler.registered_collections[worker][index] for index in worker.given]


@pytest.mark.parametrize(
    "tests", [OTHERS[:1], STORIES[:1], OTHERS[:2], [*STORIES[:1], *OTHERS[:1]], STORIES, OTHERS, [*OTHERS, OUTSIDE]]
)
def test_all_that_is_named_is_run_whichever_worker_is_ready_first(run, tests):
    scheduler, workers = begun(run, tests)
    done = set()
    for _ in tests:
        for worker in workers:
            for index in [index for index in worker.given if (worker, index) not in done]:
                done.add((worker, index))
                scheduler.mark_test_complete(worker, index)
    assert sorted(test for worker in workers for test in given(scheduler, worker)) == sorted(tests)


def test_a_worker_that_begins_with_stories_helps_the_others_once_all_are_told(run):
    many = [f"tests/core/test_{number}.py::test_{of}" for number in range(3 * run.CORES) for of in range(3)]
    stories = [f"tests/tasks/test_{number}.py::test_{of}" for number in range(5) for of in range(3)]
    scheduler, workers = begun(run, [*stories, *many])
    helper = workers[run.CORES]
    assert set(given(scheduler, helper)) < set(stories)
    assert all(set(given(scheduler, worker)) <= set(many) for worker in workers[: run.CORES])
    for worker in workers[run.CORES :]:
        for index in worker.given:  # what it is given meanwhile, too
            if run.is_waiting(scheduler.registered_collections[worker][index]):
                scheduler.mark_test_complete(worker, index)
    assert set(given(scheduler, helper)) & set(many)
    assert all(worker.shutting_down for worker in workers[run.CORES + 1 :])


def test_a_file_outside_of_the_project_comes_last(run, pytestconfig):
    inside = pytestconfig.rootpath / "tests/e2e/test_story.py"
    items = [
        SimpleNamespace(path=Path("/elsewhere/test_it.py"), nodeid="/elsewhere/test_it.py::test_it"),
        SimpleNamespace(path=inside, nodeid="tests/e2e/test_story.py::test_it"),
    ]
    run.pytest_collection_modifyitems(SimpleNamespace(rootpath=pytestconfig.rootpath), items)
    assert [item.path.name for item in items] == ["test_story.py", "test_it.py"]


def test_a_worker_that_tells_stories_leaves_out_a_file_outside_of_the_project(run, pytestconfig):
    config = SimpleNamespace(rootpath=pytestconfig.rootpath, workerinput={run.TELLS_STORIES: True})
    assert run.pytest_ignore_collect(Path("/elsewhere/test_it.py"), config) is True
    assert run.pytest_ignore_collect(pytestconfig.rootpath / "tests/core/test_text.py", config) is True
    assert run.pytest_ignore_collect(pytestconfig.rootpath / "tests/tasks/test_story.py", config) is None
