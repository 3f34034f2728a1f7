"""``cambist doctor``: what is wrong, in sentences."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import click

from cambist.diagnosis import Finding, diagnose
from cambist.settings import SettingsError

from .options import Invocation, settings_options
from .terminal import echo


@click.command()
@settings_options
def doctor(invocation: Invocation) -> None:
    """Check settings, servers, keys and chains, and say what is wrong. Exits with 1 when anything is."""
    try:
        settings = invocation.settings(passphrase=True)
    except SettingsError as error:
        echo(f"✗ settings: {error}")
        raise SystemExit(1) from None
    echo(f"✓ settings: they are complete, for {settings.environment}")
    if not asyncio.run(_print(diagnose(settings))):
        raise SystemExit(1)


async def _print(findings: AsyncIterator[Finding]) -> bool:
    healthy = True
    async for finding in findings:
        echo(f"{'✗' if finding.problem else '✓'} {finding.subject}: {finding.text}")
        healthy = healthy and not finding.problem
    return healthy
