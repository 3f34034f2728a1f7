"""``cambist plugins``: what is installed, and the beginning of a new one."""

from __future__ import annotations

from pathlib import Path

import click

from cambist.plugin import API_VERSION
from cambist.registry import installed_plugins

from .options import Invocation, settings_options
from .plugin_project import KINDS, PluginProjectError, write_project
from .terminal import echo

_HEADINGS = ("name", "enabled", "distribution", "version", "API")
_NEXT = """
{project} is a plugin for {example} that comes with it. It works as it is:

  pip install -e '{project}[testing]'
  python -m pytest {project}

Its README.md says where to begin."""
_EXAMPLES = {
    "chain": "an example chain",
    "price": "an example server of prices",
    "swap": "an example service for swaps",
    "bridge": "an example service for a bridge",
}


@click.group(invoke_without_command=True)
@settings_options
def plugins(invocation: Invocation) -> None:
    """List the installed plugins, and which are enabled. Exits with 1 when an enabled one cannot be used."""
    if click.get_current_context().invoked_subcommand is None:
        _list(invocation)


@plugins.command()
@click.argument("name")
@click.option(
    "--kind", type=click.Choice(KINDS), default=KINDS[0], show_default=True, help="What it teaches the gateway."
)
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Where the project's folder is made [default: here].",
)
def new(name: str, kind: str, into: Path) -> None:
    """Write a plugin called NAME, in a folder of its own: installable, tested, and yours to change.

    A folder that exists is never written over.
    """
    try:
        project = write_project(name, into, kind)
    except PluginProjectError as error:
        raise click.ClickException(str(error)) from error
    echo(_NEXT.format(project=project, example=_EXAMPLES[kind]).lstrip())


def _list(invocation: Invocation) -> None:
    found = installed_plugins(invocation.settings().plugins)
    rows = [
        (
            plugin.name,
            "yes" if plugin.enabled else "no",
            plugin.distribution,
            plugin.version,
            "?" if plugin.api_version is None else str(plugin.api_version),
        )
        for plugin in found
    ]
    widths = [max(len(row[column]) for row in (_HEADINGS, *rows)) for column in range(len(_HEADINGS))]
    for row in (_HEADINGS, *rows):
        echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    echo(f"\nThis gateway's plugin API is version {API_VERSION}.")
    for plugin in found:
        if plugin.problem is not None:
            echo(f"{plugin.name}: {plugin.problem}")
    if any(plugin.enabled and plugin.problem is not None for plugin in found):
        raise SystemExit(1)
