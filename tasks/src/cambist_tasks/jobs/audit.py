"""Seals the audit log, and compares it with its seals where somebody asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from cambist.bootstrap import Gateway
from cambist.services.audit import seals
from cambist.services.audit.verify import Report, verify
from cambist_tasks.job_lease import Lease

VERIFY_TIMEOUT_S = 40
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


async def verify_audit_log(gateway: Gateway, _: Lease) -> Mapping[str, Any]:
    """Compare the whole log with its seals, and with this worker's file of them where there is one."""
    path = gateway.settings.audit.seals_file
    try:
        async with asyncio.timeout(VERIFY_TIMEOUT_S):
            # The file first: of what is written meanwhile, it must not know more than the database.
            lines = [] if path is None else await asyncio.to_thread(seals.read_lines, path)
            async with gateway.db.transaction() as conn:
                await conn.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                return _result(await verify(conn, gateway.secrets, lines, gateway.clock.now()))
    except TimeoutError:
        return {"problem": f"It takes longer than {VERIFY_TIMEOUT_S} s: 'cambist audit verify' waits."}


def _result(report: Report) -> Mapping[str, Any]:
    problems = list(report.problems)
    if len(problems) > PROBLEMS_MAX:
        problems = [*problems[:PROBLEMS_MAX], f"and {len(problems) - PROBLEMS_MAX} more"]
    return {
        "agrees": report.agrees,
        "seals": report.seals,
        "entries": report.entries,
        "waiting": report.waiting,
        "problems": problems,
    }
