"""`cambist plugins new` writes a plugin of each kind, which installs, passes its kit, and is found and loaded."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from urllib.request import urlopen

import msgspec
import pytest

import cambist
from cambist.cli.plugin_project import KINDS, TEMPLATES, PluginProjectError, release_range, write_project
from tests.support.command import run_command

LONG_NAMES = {kind: f"a_chain_of_some_length_{number}" for number, kind in enumerate(KINDS, 2)}
# What is installed here beside what a plugin's project asks for, and takes pytest half its time to load.
WITHOUT = [
    f"-pno:{name}" for name in ("cacheprovider", "anyio", "faker", "platformdirs", "schemathesis", "valkey", "xdist")
]
FOLDER = Path(cambist.__file__).parent / TEMPLATES
ROOT = Path(__file__).parents[2]

# What comes with each is run at an address of its own, named in the sample settings, and asked as the gateway asks.
LOADED = """
import asyncio, importlib, sys, time, tomllib
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from cambist.plugin import ChainToken, ExchangeRequest, PluginContext
from cambist.registry import Registry

context = PluginContext(
    now=lambda: datetime.now(UTC), monotonic=time.monotonic, random=Random(1), user_agent="tests"
)

def asked(registry):
    chains = [chain for chain in registry.chains.values() if chain.is_evm]
    here, there = chains[0], chains[-1]
    sells = ChainToken(chain=here, token=here.native)
    buys = ChainToken(chain=there, token=there.tokens[1])
    address = "0x0A367B92CF0b037dfD89960eE832D56f7Fc15168"
    return ExchangeRequest(
        sells=sells, buys=buys, units=10**18, sender=address, recipient=address, slippage_bps=100
    )

async def ask(name, kind, settings):
    example = importlib.import_module(f"cambist_{name}.testing")
    running = {"chain": "ExampleNode", "price": "ExampleServer"}.get(kind, "ExampleService")
    tables = tomllib.loads(Path(settings).read_text())["plugins"]
    async with getattr(example, running)(time.time) as server:
        told = {"chain": {"rpc_urls": [server.url]}, "price": {"url": server.url}}
        tables[name] |= told.get(kind, {"base_url": server.url})
        registry = Registry(tables)
        if kind == "chain":
            server.ledger.mine()
            async with registry.connect_chains(context) as chains, chains[name].view() as view:
                print("the head is", (await view.head()).height)
        elif kind == "price":
            async with registry.connect_prices(context) as sources:
                found = await next(one for one in sources if one.name == name).prices([("ETH", "usd")])
                print("a coin is", found["ETH", "usd"].value)
        else:
            connect = registry.connect_swaps if kind == "swap" else registry.connect_bridges
            request, (reader,) = asked(registry), registry.call_readers()
            async with connect(context) as (provider,):
                assert provider.supports(request.sells, request.buys)
                quote = await provider.quote(request)
                call = await provider.build(request, quote.units_min)
            effects = reader.read(request.sells.chain, request.sender, call, registry.chains)
            print("at least", effects.bought_min)

for one in sys.argv[1:]:
    asyncio.run(ask(*one.split(":")))
"""
TOLD = {
    "chain": "the head is 1",
    "price": "a coin is 3120.55",
    "swap": "at least 1980000000000000000",
    "bridge": "at least 1980000000000000000",
}


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


@pytest.fixture(scope="module", params=KINDS)
def kind(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def projects(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("plugins")
    return {kind: write_project(name, folder, kind) for kind, name in LONG_NAMES.items()}


@pytest.fixture(scope="module")
def project(projects, kind) -> Path:
    return projects[kind]


@pytest.fixture(scope="module")
def known_types(tmp_path_factory) -> Path:
    """Give a folder where mypy keeps what it knows of the packages that plugins of each kind import."""
    return tmp_path_factory.mktemp("types")


@pytest.fixture(scope="module")
def python(projects, tmp_path_factory) -> Path:
    """Make an environment of its own, which sees what is installed here, too, and install a plugin of each kind."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", cwd=folder).check_returncode()
    site = sysconfig.get_path("purelib", vars={"base": str(folder / "venv")})
    here = sysconfig.get_path("purelib")
    Path(site, "here.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    python = folder / "venv/bin/python"
    installed = run(
        python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps",
        "--no-build-isolation", *(word for project in projects.values() for word in ("-e", project)),
        cwd=folder,
    )  # fmt: skip
    assert installed.returncode == 0, installed.stderr
    return python


def test_its_name_stands_in_every_place_and_the_templates_nowhere(kind, tmp_path):
    project = write_project(LONG_NAMES[kind], tmp_path, kind)
    text = "".join(path.read_text() + str(path) for path in project.rglob("*") if path.is_file())
    assert "florin" not in text.lower()
    assert not re.search(r"\bTODO\b|NotImplemented", text)


def test_it_installs_passes_the_kit_and_is_listed(project, kind, python, tmp_path):
    tested = run(python, "-m", "pytest", "-q", *WITHOUT, project, cwd=tmp_path)
    assert tested.returncode == 0, tested.stdout
    assert re.search(r"^\d\d+ passed", tested.stdout, re.MULTILINE)

    settings = project / "cambist.toml"
    listed = run(python, "-m", "cambist.cli", "plugins", "--config", settings, cwd=tmp_path)
    assert listed.returncode == 0, listed.stdout
    assert re.search(rf"^{LONG_NAMES[kind]} +yes +cambist-\S+ +0\.1\.0 +1$", listed.stdout, re.MULTILINE)


def test_each_kind_is_loaded_with_its_settings_and_asked(projects, python, tmp_path):
    which = [f"{LONG_NAMES[kind]}:{kind}:{project / 'cambist.toml'}" for kind, project in projects.items()]
    loaded = run(python, "-c", LOADED, *which, cwd=tmp_path)
    assert loaded.stdout.splitlines() == [TOLD[kind] for kind in projects], loaded.stderr


def test_its_readme_says_what_each_file_is_for(project):
    text = (project / "README.md").read_text()
    named = set(re.findall(r"`((?:tests/)?\w+\.py|testing/)`", text))
    package = next(project.glob("src/cambist_*"))
    there = {path.name for path in package.glob("*.py")} - {"__init__.py"} | {"testing/"}
    assert there <= named
    assert all((project / one).exists() for one in named if one.startswith("tests/"))


def test_it_pins_what_is_installed_and_nothing_that_may_break_it(project):
    own = tomllib.loads((project / "pyproject.toml").read_text())["project"]["dependencies"]
    ours = {"cambist-core": 1, "cambist-chainkit": 2}
    core = tomllib.loads((ROOT / "core/pyproject.toml").read_text())["project"]["dependencies"]
    for one in own:
        name = re.match(r"[a-z0-9-]+", one)[0]
        if name in ours:
            assert one == name + release_range(distribution(name).version, ours[name])
        else:
            assert one in core
    assert sum(one.startswith("cambist-core") for one in own) == 1


@pytest.mark.parametrize(
    "version, parts, told",
    [
        ("0.1.0", 1, ">=0.1.0,<1"),
        ("0.1.0", 2, ">=0.1.0,<0.2"),
        ("1.9.3", 2, ">=1.9.3,<1.10"),
        ("2.0.0rc1", 1, ">=2.0.0rc1,<3"),
        ("0.3.1.dev4+g12ab", 2, ">=0.3.1.dev4,<0.4"),
    ],
)
def test_a_range_begins_with_what_is_installed(version, parts, told):
    assert release_range(version, parts) == told


@pytest.mark.parametrize("file", ["words.py", "service.py", "config.py"])
def test_what_both_templates_of_exchanges_need_is_mended_in_both(file):
    swap, bridge = ((FOLDER / kind / "src/cambist_florin" / file).read_text() for kind in ("swap", "bridge"))
    assert swap.split("    if ")[0] == bridge.split("    if ")[0]
    assert file == "config.py" or swap == bridge


def test_linters_have_nothing_to_say_whatever_the_length_of_its_name(project, kind, tmp_path):
    for one in (project, write_project("kelvin", tmp_path, kind)):
        for command in (["check"], ["format", "--check"]):
            checked = run(sys.executable, "-m", "ruff", *command, cwd=one)
            assert checked.returncode == 0, checked.stdout


def test_types_have_nothing_to_say(project, known_types):
    checked = run(sys.executable, "-m", "mypy", cwd=project, MYPY_CACHE_DIR=str(known_types))
    assert checked.returncode == 0, checked.stdout


def is_given_coins(project: Path, package: str, url: str) -> None:
    """Have a chain that runs give coins to an address, as its README says, and wait for its next block."""
    code = f"from {package}.addresses import spell; print(spell(bytes(20)))"
    address = run(sys.executable, "-c", code, cwd=project, PYTHONPATH="src").stdout.strip()
    port = url.rpartition(":")[2]
    asked = run(sys.executable, "-m", f"{package}.testing", "--port", port, address, cwd=project, PYTHONPATH="src")
    assert (asked.returncode, asked.stdout) == (0, f"the chain that runs on port {port} gives coins to {address}\n")
    question = msgspec.json.encode({"wanted": [(address, None)], "height": None})
    for _ in range(100):
        with urlopen(f"{url}/balances", question, timeout=10) as answer:  # noqa: S310  on loopback
            if msgspec.json.decode(answer.read()) != [0]:
                return
        time.sleep(0.1)
    pytest.fail(f"{address} was given nothing")


def test_its_example_runs_until_it_is_interrupted(project, kind):
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
            line = process.stdout.readline()
            assert "listening on http://127.0.0.1:" in line
            if kind == "chain":
                is_given_coins(project, package, line.split()[2].rstrip(","))
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()
    if kind != "chain":
        return
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
    answer = run_command("plugins", "new", "kelvin", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "pip install -e 'cambist-kelvin[testing]'" in answer.stdout
    again = run_command("plugins", "new", "kelvin", cwd=tmp_path)
    assert again.returncode == 1
    assert again.stderr == "Error: cambist-kelvin exists already, and is not written over.\n"


def test_the_command_writes_each_kind(kind, tmp_path):
    answer = run_command("plugins", "new", "--kind", kind, "kelvin", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    word = {"chain": "chain", "price": "prices", "swap": "swaps", "bridge": "bridge"}[kind]
    assert re.match(rf"cambist-kelvin is a plugin for an example [a-z ]*\b{word} that comes with it", answer.stdout)
    shared = {path.name for path in (tmp_path / "cambist-kelvin").iterdir()}
    assert shared == {"README.md", "cambist.toml", "pyproject.toml", "src", "tests"}
