"""``cambist worker``."""

from __future__ import annotations

import click

from .options import Invocation, settings_options
from .processes import run_process


@click.command()
@settings_options
def worker(invocation: Invocation) -> None:
    """Watch the chains, credit deposits and deliver webhooks. Run as many as you like."""
    run_process("worker", invocation)
