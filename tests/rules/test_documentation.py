"""What can be used is documented, and what is documented can be used: endpoints, events, commands, hooks."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from cambist.cli import cambist
from cambist.domain.webhooks import EVENTS, EXTENDED_EVENTS
from cambist.plugin import hookspecs
from cambist_web import auth
from cambist_web.app import create_app
from cambist_web.errors import camel
from tests.support.web import memory_gateway, web_settings

DOCS = Path(__file__).resolve().parents[2] / "docs"

CREDENTIALS = {"require_key": "K", "require_session": "B", "require_admin": "A"}


def page(name: str) -> str:
    return DOCS.joinpath(name).read_text()


def rows(name: str, columns: int) -> set[tuple[str, ...]]:
    """Return the first columns of every table of a page, whose first one is in backticks."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in page(name).splitlines() if "|" in line]
    return {tuple(cells[:columns]) for cells in lines if re.fullmatch(r"`[^`]+`", cells[0])}


@pytest.fixture
async def app(database_url, redis_url, clock, ids):
    async with memory_gateway(web_settings(database_url, redis_url), clock, ids, stock=0) as gateway:
        yield create_app(gateway)


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
    assert set(CREDENTIALS) <= set(vars(auth))
    found = set(endpoints(app))
    assert len(found) > 40
    assert rows("merchants/api.md", 2) == found


def test_every_event_is_documented_with_its_resource_and_nothing_else_is():
    told = {(name.strip("`"), resource.strip("`")) for name, resource in rows("merchants/webhooks.md", 2)}
    assert {row for row in told if "." in row[0]} == set((EVENTS | EXTENDED_EVENTS).items())


def commands(group: click.Group, above: str):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{above} {name}")
        else:
            arguments = "".join(
                f" {one.human_readable_name}" for one in command.params if one.param_type_name == "argument"
            )
            yield f"`{above} {name}{arguments}`"


def test_every_command_is_documented_and_nothing_else_is():
    told = {row[0] for row in rows("operators/running.md", 1) if row[0].startswith("`cambist ")}
    assert told == set(commands(cambist, "cambist"))


def test_every_hook_is_documented_with_its_arguments_and_nothing_else_is():
    specified = {
        f"`{name}({', '.join(vars(hookspecs)[name].__code__.co_varnames)})`"
        for name, value in vars(hookspecs).items()
        if hasattr(value, f"{hookspecs.PROJECT}_spec")
    }
    assert len(specified) >= 2
    assert {row[0] for row in rows("plugins/README.md", 1) if "(" in row[0]} == specified
