"""Seals the audit log, and compares it with its seals where somebody asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from cambist.bootstrap import Gateway
from cambist.services.audit import seals
from cambist.services.audit.verify import Progress, Report, Verifier
from cambist_tasks.job_lease import Lease

PROBLEMS_MAX = 100
"""So many are told in a result; the command tells more."""


async def seal_audit_log(gateway: Gateway) -> bool:
    """Seal what was written since the last time; return True while there may be more."""
    async with gateway.db.transaction() as conn:
        made = await seals.seal(conn, gateway.secrets, gateway.clock.now())
    if made is None:
        return False
    seals.announce(made)
    return made.count >= seals.BATCH_MAX


async def verify_audit_log(gateway: Gateway, lease: Lease) -> Mapping[str, Any] | None:
    """Compare the next part of the log with its seals, and with this worker's file of them where there is one."""
    progress = msgspec.convert(lease.job.progress, Progress)
    verifier = lease.kept
    if not isinstance(verifier, Verifier):
        path = gateway.settings.audit.seals_file
        # The file first: of what is written meanwhile, it must not know more than the database.
        lines = [] if path is None else await asyncio.to_thread(seals.read_lines, path)
        verifier = lease.kept = Verifier(gateway.secrets, lines, after=progress.number, told_max=PROBLEMS_MAX)
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        found = await verifier.step(conn, progress, gateway.clock.now())
    if isinstance(found, Report):
        return _result(found)
    async with lease.saving(msgspec.to_builtins(found)):
        return None


def _result(report: Report) -> Mapping[str, Any]:
    return {
        "agrees": report.agrees,
        "seals": report.seals,
        "entries": report.entries,
        "waiting": report.waiting,
        "problems": list(report.problems),
        "compared_with_file": report.compared_with_file,
    }
