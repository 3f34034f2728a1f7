"""`cambist plugins new` writes a plugin that installs, passes the kit on its example chain, and is found and loaded."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from cambist.cli.plugin_project import PluginProjectError, write_project

LONG_NAME = "a_chain_of_some_length_2"

LOADED = """
import asyncio, importlib, sys, time
from datetime import UTC, datetime
from random import Random
from cambist.plugin import PluginContext
from cambist.registry import Registry

name = sys.argv[1]
example = importlib.import_module(f"cambist_{name}.testing")
context = PluginContext(
    now=lambda: datetime.now(UTC), monotonic=time.monotonic, random=Random(1), user_agent="tests"
)

async def look():
    async with example.ExampleNode(time.time) as node:
        node.ledger.mine()
        registry = Registry({name: {"rpc_urls": [node.url]}})
        async with registry.connect_chains(context) as chains, chains[name].view() as view:
            print("the head is", (await view.head()).height)

asyncio.run(look())
"""


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "CAMBIST"))}
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=inherited | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    return write_project(LONG_NAME, tmp_path_factory.mktemp("plugin"))


@pytest.fixture
def python(tmp_path) -> Path:
    """Make an environment of its own, which sees what is installed here, too."""
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv", cwd=tmp_path).check_returncode()
    site = sysconfig.get_path("purelib", vars={"base": str(tmp_path / "venv")})
    here = sysconfig.get_path("purelib")
    Path(site, "here.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    return tmp_path / "venv/bin/python"


def test_its_name_stands_in_every_place_and_the_templates_nowhere(project):
    text = "".join(path.read_text() + str(path) for path in project.rglob("*") if path.is_file())
    assert "florin" not in text.lower()
    assert not re.search(r"\bTODO\b|NotImplemented", text)


def test_it_installs_passes_the_kit_and_is_loaded(project, python, tmp_path):
    installed = run(
        python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps",
        "--no-build-isolation", "-e", project,
        cwd=tmp_path,
    )  # fmt: skip
    assert installed.returncode == 0, installed.stderr
    tested = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", project, cwd=tmp_path)
    assert tested.returncode == 0, tested.stdout
    assert re.search(r"^\d\d+ passed, \d+ skipped", tested.stdout, re.MULTILINE)

    name = project.name.removeprefix("cambist-").replace("-", "_")
    (tmp_path / "cambist.toml").write_text(f'[plugins.{name}]\nrpc_urls = ["http://127.0.0.1:1"]\n')
    listed = run(python, "-m", "cambist.cli", "plugins", cwd=tmp_path)
    assert listed.returncode == 0, listed.stdout
    assert re.search(rf"^{name} +yes +cambist-\S+ +0\.1\.0 +1$", listed.stdout, re.MULTILINE)
    loaded = run(python, "-c", LOADED, name, cwd=tmp_path)
    assert loaded.stdout == "the head is 1\n", loaded.stderr


def test_linters_have_nothing_to_say_whatever_the_length_of_its_name(project, tmp_path):
    for one in (project, write_project("kelvin", tmp_path)):
        for command in (["check"], ["format", "--check"]):
            checked = run(sys.executable, "-m", "ruff", *command, cwd=one)
            assert checked.returncode == 0, checked.stdout


def test_types_have_nothing_to_say(project):
    checked = run(sys.executable, "-m", "mypy", cwd=project)
    assert checked.returncode == 0, checked.stdout


def test_its_example_chain_runs_until_it_is_interrupted(project):
    package = next(project.glob("src/cambist_*")).name
    environment = {"PYTHONPATH": "src", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", f"{package}.testing", "--port", "0"],
        cwd=project,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            assert "listening on http://127.0.0.1:" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()
    mistyped = run(sys.executable, "-m", f"{package}.testing", "nobody", cwd=project, **environment)
    assert (mistyped.returncode, mistyped.stderr) == (1, "'nobody' is no address of this chain\n")


@pytest.mark.parametrize(
    "name", ["", "Kelvin", "1st", "kel-vin", "_kelvin", "kelvin_", "kel__vin", "k" * 25, "ke/lvin", "..", "k\n"]
)
def test_a_name_that_is_none_is_refused(name, tmp_path):
    with pytest.raises(PluginProjectError, match="no name for a plugin"):
        write_project(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["evm", "core"])
def test_a_name_that_is_taken_is_refused(name, tmp_path):
    with pytest.raises(PluginProjectError, match=f"cambist-{name} is installed"):
        write_project(name, tmp_path)


def test_nothing_is_written_over(tmp_path):
    project = write_project("kelvin", tmp_path)
    (project / "README.md").write_text("mine")
    with pytest.raises(PluginProjectError, match="exists already"):
        write_project("kelvin", tmp_path)
    assert (project / "README.md").read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PluginProjectError, match="cannot be written"):
        write_project("kelvin", tmp_path / "file")


def test_the_command_says_what_comes_next(tmp_path):
    answer = run(sys.executable, "-m", "cambist.cli", "plugins", "new", "kelvin", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "pip install -e 'cambist-kelvin[testing]'" in answer.stdout
    again = run(sys.executable, "-m", "cambist.cli", "plugins", "new", "kelvin", cwd=tmp_path)
    assert again.returncode == 1
    assert again.stderr == "Error: cambist-kelvin exists already, and is not written over.\n"
