"""``cambist audit``: what was done and refused, and whether the record of it is what it was."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
from sqlalchemy.exc import SQLAlchemyError

from cambist.bootstrap import secrets_box
from cambist.ports import SystemClock, system_ids
from cambist.provision import provision
from cambist.services.audit import entries, seals
from cambist.services.audit.entries import Action, Entry
from cambist.services.audit.verify import Report
from cambist.services.audit.verify import verify as compare
from cambist.settings import Settings, SettingsError

from .opened import opened_database, reason
from .options import Invocation, settings_options
from .terminal import echo

EXIT_CHANGED = 1
EXIT_UNREADABLE = 2
LISTED_MAX = 10_000
WHY = "'cambist audit' reads the audit log of a gateway that runs."


@click.group(invoke_without_command=True)
@settings_options
@click.option("--merchant", metavar="ID", help="List what concerns this merchant alone.")
@click.option("--action", type=click.Choice([action.value for action in Action]), help="List this action alone.")
@click.option("--limit", type=click.IntRange(1, LISTED_MAX), default=50, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object per line.")
def audit(invocation: Invocation, merchant: str | None, action: str | None, limit: int, *, as_json: bool) -> None:
    """List the newest entries of the audit log."""
    if click.get_current_context().invoked_subcommand is not None:
        return
    try:
        found = asyncio.run(_listed(invocation.settings(), merchant, action, limit))
    except (SQLAlchemyError, OSError) as error:
        raise SettingsError(f"The database cannot be read: {reason(error)}.") from error
    for entry in found:
        echo(msgspec.json.encode(entry) if as_json else _line(entry))
    if not found and not as_json:
        echo("There are no entries.")


@audit.command()
@settings_options
@click.option(
    "--seals",
    "path",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Compare with this file of seals [default: audit.seals_file].",
)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object.")
def verify(invocation: Invocation, path: Path | None, *, as_json: bool) -> None:
    """Compare the audit log with its seals, and say what was changed, removed or added later.

    Exits with 0 when nothing was, with 1 when something was, and with 2 when the log could not be read.
    """
    settings = invocation.settings()
    os.environ.update(provision(settings, system_ids(), keystore=False))
    settings = invocation.settings()
    try:
        report = asyncio.run(_verified(settings, path or settings.audit.seals_file))
    except (SQLAlchemyError, OSError) as error:
        echo(f"cambist: The audit log cannot be read: {reason(error)}.", err=True)
        raise SystemExit(EXIT_UNREADABLE) from error
    if as_json:
        echo(msgspec.json.encode(report))
    else:
        echo(f"{report.entries} entries in {report.seals} seals; {report.waiting} wait for their seal.")
        if not report.compared_with_file:
            echo("There was no file of seals to compare with: removed newest entries would not be noticed (--seals).")
        for problem in report.problems:
            echo(problem)
    if not report.agrees:
        raise SystemExit(EXIT_CHANGED)


async def _listed(settings: Settings, merchant: str | None, action: str | None, limit: int) -> Sequence[Entry]:
    async with opened_database(settings, "audit", WHY) as database, database.autocommit() as conn:
        return await entries.newest(conn, merchant_id=merchant, action=action, limit=limit)


async def _verified(settings: Settings, path: Path | None) -> Report:
    box = secrets_box(settings, system_ids())
    # The file first: of what is written meanwhile, it must not know more than the database.
    lines = [] if path is None else seals.read_lines(path)
    async with opened_database(settings, "audit", WHY) as database, database.transaction() as conn:
        await conn.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        await conn.exec_driver_sql("SET LOCAL statement_timeout = 0")
        return await compare(conn, box, lines, SystemClock().now())


def _line(entry: Entry) -> str:
    who = " ".join(part for part in (entry.actor_kind, entry.actor, entry.address) if part)
    concerns = " ".join(part for part in (entry.merchant_id, entry.project_id, entry.subject) if part)
    times = f" x{entry.count}" if entry.count > 1 else ""
    details = msgspec.json.encode(entry.details).decode() if entry.details else ""
    told = [f"{entry.at:%Y-%m-%d %H:%M:%S}", f"{entry.action}{times}", f"by {who}", concerns, details]
    return "  ".join(part for part in told if part)
