"""``cambist plugins``: what is installed, and the beginning of a new one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from cambist.logs import redact_text
from cambist.plugin import API_VERSION
from cambist.registry import Registry, RegistryError, installed_plugins
from cambist.settings import Settings, SettingsError
from cambist.signer.rules import check_caps, load_rules

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
    """List the installed plugins, and which are enabled. Exits with 1 where a process would not start with them.

    Their tables are read as at the start, and nothing is connected: what cannot be reached, 'cambist doctor' says.
    """
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
    settings = invocation.settings()
    found = installed_plugins(settings.plugins)
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
    try:
        names = _start(settings)
    except (RegistryError, SettingsError) as error:
        echo(f"No process would start: {redact_text(str(error))}")
        raise SystemExit(1) from None
    echo(f"The tables of all that are enabled are right: {', '.join(names) or 'none'}.")


def _start(settings: Settings) -> Sequence[str]:
    """Do all that processes do with plugins and their tables before they connect anything; return the plugins' names.

    The rules of a signer name chains and tokens that the tables bring. One that is elsewhere has a file of its own.
    """
    registry = Registry(settings.plugins)
    registry.call_readers()
    signs_elsewhere = settings.signer_socket is not None or (settings.production and settings.keys.keystore is None)
    if not signs_elsewhere:
        rules = load_rules(settings, registry.chains, registry.families)
        if settings.production:
            check_caps(rules, registry.chains)
    return registry.plugins
