"""What can be used is documented, and what is documented can be used: endpoints, events, commands, hooks."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import get_args, get_type_hints

import click
import pytest

from cambist.cli import cambist
from cambist.db.models import Base
from cambist.domain.webhooks import EVENTS, EXTENDED_EVENTS, TRACKER_EVENTS
from cambist.plugin import (
    Action,
    AddressFamily,
    Broadcast,
    Chain,
    ChainPlugin,
    ChainView,
    LendingChain,
    PluginError,
    PricePlugin,
    PriceSource,
    SweepingChain,
    hookspecs,
)
from cambist.services.audit import entries
from cambist.services.identity.api_keys import SCOPES
from cambist.services.webhooks.delivery import Counters
from cambist.testing.harness import Abilities, ChainHarness
from cambist_tasks.crons import CRONS, MINUTE_S
from cambist_tasks.job_metrics import StoredFacts
from cambist_tasks.metrics import WorkerCollector
from cambist_tasks.requested import REQUESTED
from cambist_web import auth, operator_auth, request_metrics, tracker_auth
from cambist_web.errors import camel
from cambist_web.permissions import MEMBER_PERMISSIONS, PERMISSIONS, member_permission_of
from tests.support.web import lent_app, memory_gateway, web_settings

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FOLDERS = [ROOT, ROOT / "core/src/cambist", ROOT / "web/src", ROOT / "tasks/src"]
"""Where file names in the documents about the code begin."""

CREDENTIALS = {
    "require_creator": "K, B or A",
    "require_tracker": "T",
    "require_key": "K",
    "require_session": "B",
    "require_admin": "A",
    "require_operator": "O",
}


def page(name: str) -> str:
    return DOCS.joinpath(name).read_text()


def rows(name: str, columns: int) -> set[tuple[str, ...]]:
    """Return the first columns of every table of a page, whose first one is in backticks."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in page(name).splitlines() if "|" in line]
    return {tuple(cells[:columns]) for cells in lines if re.fullmatch(r"`[^`]+`", cells[0])}


@pytest.fixture
async def app(database_url, redis_url, clock, ids):
    settings = web_settings(database_url, redis_url)
    async with memory_gateway(settings, clock, ids, stock=0) as gateway, lent_app(gateway) as app:
        yield app


def endpoints(app):
    for route in app.routes:
        for handler in getattr(route, "route_handlers", ()):
            if re.match(r"/api/openapi(/|$)", route.path):
                continue  # the framework's own pages, which answer that they are not there
            path = re.sub(r"\{(\w+):\w+\}", lambda found: f"{{{camel(found[1])}}}", route.path)
            guards = [getattr(guard, "__name__", "") for guard in handler.resolve_guards()]
            credential = next((CREDENTIALS[guard] for guard in guards if guard in CREDENTIALS), "none")
            for method in handler.http_methods - {"OPTIONS"}:
                yield f"`{method} {path}`", credential


async def test_every_endpoint_is_documented_with_its_credential_and_nothing_else_is(app):
    assert set(CREDENTIALS) <= set(vars(auth)) | set(vars(tracker_auth)) | set(vars(operator_auth))
    found = set(endpoints(app))
    assert len(found) > 40
    assert rows("merchants/api.md", 2) == found


async def test_what_each_role_may_do_is_documented_as_it_is(app):
    endpoints_of = {name: set() for name in PERMISSIONS}
    for route in app.routes:
        for handler in getattr(route, "route_handlers", ()):
            if "permission" in handler.opt:
                path = re.sub(r"\{(\w+):\w+\}", lambda found: f"{{{camel(found[1])}}}", route.path)
                endpoints_of[handler.opt["permission"]] |= {f"`{method} {path}`" for method in handler.http_methods}
    found = {
        (
            f"`{name}`",
            one.what,
            ", ".join(one.roles),
            "yes" if one.step_up else "no",
            ", ".join(sorted(endpoints_of[name])),
        )
        for name, one in PERMISSIONS.items()
    }
    assert rows("operators/people.md", 5) == found
    assert all(endpoints_of.values()), "a permission that no route names"


async def test_what_each_role_of_members_may_do_is_documented_as_it_is(app):
    """Endpoints that keys have, too, are told by the scope's name."""
    endpoints_of = {name: set() for name in MEMBER_PERMISSIONS}
    for route in app.routes:
        for handler in getattr(route, "route_handlers", ()):
            guards = [getattr(guard, "__name__", "") for guard in handler.resolve_guards()]
            if "require_session" in guards and "OPTIONS" not in handler.http_methods:
                path = re.sub(r"\{(\w+):\w+\}", lambda found: f"{{{camel(found[1])}}}", route.path)
                found = endpoints_of[member_permission_of(handler.opt)]
                if handler.opt.get("scope") is None:
                    found |= {f"`{method} {path}`" for method in handler.http_methods}
    expected = {
        (
            f"`{name}`",
            one.what,
            ", ".join(one.roles),
            "yes" if one.whole else "no",
            ", ".join(sorted(endpoints_of[name])),
        )
        for name, one in MEMBER_PERMISSIONS.items()
    }
    assert {row for row in rows("merchants/team.md", 5) if not row[0].startswith("`GET")} == expected
    assert all(endpoints_of[name] or name in SCOPES for name in endpoints_of), "a permission that no route names"


def test_every_event_is_documented_with_its_resource_and_nothing_else_is():
    told = {(name.strip("`"), resource.strip("`")) for name, resource in rows("merchants/webhooks.md", 2)}
    assert {row for row in told if "." in row[0]} == set((EVENTS | EXTENDED_EVENTS).items())


def test_every_event_of_trackers_is_documented_and_nothing_else_is():
    told = {(name.strip("`"), resource.strip("`")) for name, resource in rows("merchants/trackers.md", 2)}
    assert {row for row in told if row[0].startswith("transaction.")} == set(TRACKER_EVENTS.items())


def commands(group: click.Group, above: str):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            if command.invoke_without_command:
                yield f"`{above} {name}`"
            yield from commands(command, f"{above} {name}")
        else:
            arguments = "".join(
                f" {one.human_readable_name}" for one in command.params if one.param_type_name == "argument"
            )
            yield f"`{above} {name}{arguments}`"


def test_every_command_is_documented_and_nothing_else_is():
    told = {row[0] for row in rows("operators/running.md", 1) if row[0].startswith("`cambist ")}
    assert told == set(commands(cambist, "cambist"))


def test_every_action_of_the_audit_log_is_documented_and_no_other_is():
    lines = [
        line.strip("|").split("|")[0] for line in page("operators/audit.md").splitlines() if line.startswith("| `")
    ]
    told = {word for cell in lines for word in re.findall(r"`(\w+\.\w+)`", cell)}
    assert told == set(entries.Action)


def test_every_recurring_job_is_documented_with_its_interval_and_no_other_is():
    jobs = page("operators/worker.md").partition("## Jobs")[2].partition("\n## ")[0]
    told = dict(re.findall(r"^\| `(\w+)` \| (\d+ \w+) \|", jobs, re.MULTILINE))
    every = {
        one.name: f"{one.every_s} s" if one.every_s < MINUTE_S else f"{one.every_s // MINUTE_S} min" for one in CRONS
    }
    assert told == every


def test_every_kind_of_job_is_documented_for_operators_and_no_other_is():
    table = page("operators/jobs.md").partition("| kind |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| (\w+) \|", table, re.MULTILINE)) == set(REQUESTED)


def test_every_metric_is_documented_as_it_is_served_and_nothing_else_is():
    """Those of a worker that has no chains and no jobs, and those of web."""
    nothing = SimpleNamespace(states={})
    runners = SimpleNamespace(gateway=SimpleNamespace(chains={}), jobs=nothing, crons=nothing)
    idle = SimpleNamespace(counters=Counters(), in_flight=0)
    of_worker = WorkerCollector([], [], idle, []), StoredFacts(runners)
    metrics = [metric for collector in (*of_worker, request_metrics.REGISTRY) for metric in collector.collect()]
    served = {f"{one.name}_total" if one.type == "counter" else one.name for one in metrics}
    served = {name for name in served if name.startswith("cambist_")}
    documented = set()
    for cell in re.findall(r"^\| (`cambist_.*?) \|", page("operators/worker.md"), re.MULTILINE):
        first, *others = re.findall(r"`(\w+)", cell)
        shared = first.removesuffix("_total").rpartition("_")[0]
        documented |= {first, *(other if other.startswith("cambist_") else f"{shared}{other}" for other in others)}
    assert documented == served
    named = {word for path in DOCS.rglob("*.md") for word in re.findall(r"`(cambist_\w+)", path.read_text())}
    assert {word for word in named - served if any(name.startswith(f"{word}_") for name in served)} == set()


NOT_AUDITED = {
    "accounts.Accounts.create": "gives out an address, and moves nothing",
    "accounts.Accounts.add_chains": "likewise",
    "payments.Payments.create": "asks for money, and moves none",
    "payments.PaymentsInPerson.recalculate": "likewise",
    "quotes.Quotes.quote": "changes nothing",
    "exchanges.Exchanges.quote_": "changes nothing",
    "payouts.Payouts.check_batch": "changes nothing",
    "deliveries.Deliveries.redeliver": "sends what was sent before, to where it was sent",
    "deliveries.WebhookTests.send": "changes nothing",
    "trackers.Trackers.test": "changes nothing",
    "events.Events": "sends what was sent before, to where the merchant has such things sent",
    "tracker_redelivery.Redelivery": "sends what was sent before, to where the tracker has it sent",
    "tracker_redelivery.ProjectRedelivery": "likewise",
    "webhook_endpoints.WebhookEndpoints.test": "changes nothing",
    "sandbox.SandboxChains": "no money is real",
    "team.Joining.read": "changes nothing",
}


async def test_every_handler_that_changes_something_writes_into_the_audit_log(app):
    silent = set()
    for route in app.routes:
        for handler in getattr(route, "route_handlers", ()):
            if handler.http_methods & {"POST", "PUT", "PATCH", "DELETE"}:
                module, name = handler.fn.__module__.rpartition(".")[2], handler.fn.__qualname__
                if "audit" not in inspect.signature(handler.fn).parameters:
                    silent.add(f"{module}.{name}")
    assert {one for one in silent if not any(one.startswith(known) for known in NOT_AUDITED)} == set()
    assert all(any(one.startswith(known) for one in silent) for known in NOT_AUDITED)


def test_every_hook_is_documented_with_its_arguments_and_nothing_else_is():
    specified = {
        f"`{name}({', '.join(vars(hookspecs)[name].__code__.co_varnames)})`"
        for name, value in vars(hookspecs).items()
        if hasattr(value, f"{hookspecs.PROJECT}_spec")
    }
    assert len(specified) >= 2
    assert {row[0] for row in rows("plugins/README.md", 1) if "(" in row[0]} == specified


def told(name: str, expected: Iterable[str]) -> set[str]:
    """Return which of these names begin a row of the page, several of them in one cell perhaps."""
    found = {word for row in rows(name, 1) for word in re.findall(r"`(\w+)`", row[0])}
    return found & set(expected)


def below(error: type) -> Iterator[type]:
    for kind in error.__subclasses__():
        if kind.__module__.startswith("cambist.plugin"):
            yield kind
            yield from below(kind)


def test_every_error_of_the_contract_is_documented():
    names = {error.__name__ for error in below(PluginError)} - {"ChainError", "ExchangeError"}
    assert len(names) >= 10
    assert told("plugins/README.md", names) == names


def test_every_answer_to_a_broadcast_is_documented():
    states = set(get_args(get_type_hints(Broadcast)["state"]))
    assert len(states) >= 6
    assert told("plugins/sending.md", states) == states


def test_every_action_is_documented():
    assert told("plugins/sending.md", get_args(Action)) == set(get_args(Action))
    assert len(get_args(Action)) >= 6


def test_every_ability_of_the_kit_is_documented_with_what_its_harness_implements():
    abilities = set(Abilities.__struct_fields__)
    assert told("plugins/kit.md", abilities) == abilities
    needed = {row[2] for row in rows("plugins/kit.md", 3) if row[0].strip("`") in abilities}
    methods = {word for cell in needed for word in re.findall(r"`(\w+)`", cell)}
    optional = {
        name
        for name, value in vars(ChainHarness).items()
        if inspect.isfunction(value) and "NotImplementedError" in inspect.getsource(value)
    }
    assert methods - {"transfer"} == optional


def test_what_a_plugin_must_implement_is_documented():
    pages = "".join(path.read_text() for path in sorted(DOCS.glob("plugins/*.md")))
    kinds = [AddressFamily, Chain, ChainView, ChainPlugin, LendingChain, SweepingChain, PricePlugin, PriceSource]
    for kind in kinds:
        assert f"`{kind.__name__}`" in pages
    methods = {name for kind in (AddressFamily, ChainPlugin, LendingChain) for name in kind.__abstractmethods__}
    methods -= {"balance", "transaction"}  # of which `balances` and `transactions` are told
    missing = {name for name in methods if not re.search(rf"`(\w+\.)?{name}(\(.*?\))?`", pages)}
    assert missing == set()


def test_every_table_is_in_the_glossary_and_no_other_is():
    lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in page("glossary.md").splitlines()]
    terms = [cells for cells in lines if len(cells) == 4 and cells[0] != "term" and not cells[0].startswith("-")]
    # A cell may hold several terms, with what they are of in brackets: each is said once.
    said = [term.strip() for cells in terms for term in re.sub(r"\([^)]*\)", "", cells[0]).split(",")]
    assert [term for term in said if said.count(term) > 1] == []
    assert len(said) > 100
    tables = [name for cells in terms for name in re.findall(r"`(\w+)`", cells[2])]
    assert len(tables) == len(set(tables))
    assert set(tables) == set(Base.metadata.tables)


def quoted(name: str) -> set[str]:
    """Return what a page quotes, outside of blocks of text."""
    return set(re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", page(name), flags=re.MULTILINE | re.DOTALL)))


FILES_MIN = {
    "../CONTRIBUTING.md": 6,
    "architecture.md": 100,
    "glossary.md": 2,
    "recipes.md": 80,
    "security.md": 20,
    "threat-model.md": 20,
}
"""Pages about the code, and how many files each names at least: a rule that finds none of them would hold nothing."""


@pytest.mark.parametrize("name", FILES_MIN)
def test_every_file_that_is_named_exists(name):
    words = {word for word in quoted(name) if re.fullmatch(r"[\w./<>-]*(/[\w.<>-]*|\.(py|md|toml))", word)}
    files = {word.partition("<")[0] for word in words if not word.startswith("/") and "node_modules" not in word}
    assert len(files) >= FILES_MIN[name]
    assert {file for file in files if not any((folder / file).exists() for folder in FOLDERS)} == set()


FUNCTION = r"`[\w.]+\(\)`"
FUNCTIONS_MIN = {"architecture.md": 80, "recipes.md": 5}
"""How many functions each page names with their file at least."""


@pytest.mark.parametrize("name", FUNCTIONS_MIN)
def test_every_function_that_is_named_is_in_the_file_that_is_named_with_it(name):
    text = " ".join(page(name).split())
    several = rf"{FUNCTION}(?:(?:, | and ){FUNCTION})*"
    found = [
        (function.rpartition(".")[2], file)
        for functions, file in re.findall(rf"({several}) (?:in|of) `([\w/.<>-]+\.py)`", text)
        for function in re.findall(r"([\w.]+)\(\)", functions)
    ]
    assert len(found) >= FUNCTIONS_MIN[name]
    missing = set()
    for function, file in found:
        code = next(((folder / file).read_text() for folder in FOLDERS if (folder / file).exists()), "")
        if not re.search(rf"\bdef {function}\(", code):
            missing.add((function, file))
    assert missing == set()
    assert re.findall(rf"{FUNCTION} (?:there\b|in (?!`))", text) == [], "a function whose file is said in other words"
    named = set(re.findall(r"`(\w+)\(\)`", text))
    assert named - {function for function, _ in found} == set(), "functions that are named without a file"


@pytest.mark.parametrize("name", ["security.md", "threat-model.md"])
def test_every_test_that_is_named_as_a_proof_exists_in_the_file_before_it(name):
    proofs = 0
    for line in page(name).splitlines():
        code = ""
        for word in re.findall(r"`([^`]+)`", line):
            if re.fullmatch(r"[\w/]+/test_\w+\.py", word):
                code = (ROOT / word).read_text()
            elif re.fullmatch(r"test_\w+", word):
                proofs += 1
                assert re.search(rf"\bdef {word}\(", code), f"{word} in {line}"
    assert proofs > 50


def test_every_row_of_the_standard_is_answered_once():
    first = [line.split("|")[1] for line in page("security.md").splitlines() if line.startswith("|")]
    answered = [row for cell in first for row in re.findall(r"\b[0-9]+\.[0-9]+\.[0-9]+\b", cell)]
    assert len(answered) == len(set(answered)) == 253, "those of levels 1 and 2 in OWASP ASVS 5.0"


def test_every_class_and_constant_of_the_glossary_exists():
    described = page("glossary.md").partition("\n## Pages\n")[0]
    meanings = " ".join(line.split("|")[2] for line in described.splitlines() if line.count("|") == 5)
    names = set(re.findall(r"`([A-Z]\w+)`", meanings))
    assert len(names) > 15
    code = "".join(path.read_text() for folder in FOLDERS[1:] for path in folder.rglob("*.py"))
    code += "".join(path.read_text() for path in ROOT.glob("chainkit/src/**/*.py"))
    defined = r"^(?:class {0}\b|{0}(?::| =))"
    assert {one for one in names if not re.search(defined.format(one), code, re.MULTILINE)} == set()


def test_every_component_of_the_glossary_exists():
    components = set(re.findall(r"`([A-Z]\w+)`", page("glossary.md").partition("\n## Pages\n")[2]))
    assert len(components) > 6
    code = "".join(path.read_text() for path in (ROOT / "web/dashboard/src").rglob("*.tsx"))
    assert {one for one in components if not re.search(rf"^(?:export )?function {one}\b", code, re.MULTILINE)} == set()


CORE = ROOT / "core/src/cambist"


def children(folder: Path) -> set[str]:
    """Return the modules and folders of a folder of code, without their endings."""
    return {path.stem for path in folder.iterdir() if path.suffix in {"", ".py"} and not path.name.startswith("__")}


def test_every_room_is_on_the_map():
    rooms = {path.name for path in (CORE / "services").iterdir() if not path.name.startswith("__")}
    assert {f"services/{room}" for room in rooms} <= quoted("architecture.md")


@pytest.mark.parametrize("name", ["../CONTRIBUTING.md", "architecture.md"])
def test_all_of_the_core_and_every_plugin_is_on_the_map(name):
    drawn = page(name).partition("## The map")[2].split("```")[1]
    members = {path.parent.name for path in ROOT.glob("*/*/pyproject.toml")}
    wanted = children(CORE) | members | {"core", "web", "tasks", "chainkit", "plugins", "devnets", "dashboard"}
    assert len(members) > 5
    assert wanted - set(re.findall(r"\w+", drawn)) == set()


def room_layers() -> Mapping[str, int]:
    """Return how deep each room of the use cases lies, as import-linter holds it; 0 is above all others."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one.get("containers") == ["cambist.services"])
    return {room: depth for depth, layer in enumerate(layers) for room in re.findall(r"\w+", layer)}


def test_rooms_are_told_of_in_the_order_that_is_held():
    depths = room_layers()
    rooms = [
        [depths[room.partition(".")[0]] for room in re.findall(r"`services/([\w.]+)`", line.split("|")[1])]
        for line in page("architecture.md").splitlines()
        if line.startswith("| `services/")
    ]
    flat = [(min(row), max(row)) for row in rooms]
    assert len(flat) > 15
    assert all(upper[1] <= lower[0] for upper, lower in pairwise(flat))
    drawn = page("../CONTRIBUTING.md").partition("that it may use:")[2].partition("signer/")[0]
    listed = re.findall(r"\w+", drawn)
    from_below = [depths[room] for room in listed]
    assert from_below == sorted(from_below, reverse=True)
    assert set(listed) == {room for room in depths if (CORE / "services" / room).is_dir()}
