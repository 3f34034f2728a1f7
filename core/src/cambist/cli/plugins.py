"""``cambist plugins``."""

from __future__ import annotations

import click

from cambist.plugin import API_VERSION
from cambist.registry import installed_plugins

from .options import Invocation, settings_options

_HEADINGS = ("name", "enabled", "distribution", "version", "API")


@click.command()
@settings_options
def plugins(invocation: Invocation) -> None:
    """List the installed plugins, and which are enabled. Exits with 1 when an enabled one cannot be used."""
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
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    click.echo(f"\nThis gateway's plugin API is version {API_VERSION}.")
    for plugin in found:
        if plugin.problem is not None:
            click.echo(f"{plugin.name}: {plugin.problem}")
    if any(plugin.enabled and plugin.problem is not None for plugin in found):
        raise SystemExit(1)
