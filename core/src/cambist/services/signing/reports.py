"""What the signer told of itself last: copied by workers, read by whoever asks."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import Struct
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.signer.reports import Report


class Copied(Struct, frozen=True, kw_only=True):
    """A report, and when it was copied."""

    report: Report
    reported_at: datetime


_new = insert(models.SignerReport)
_KEEP = _new.on_conflict_do_update(
    index_elements=[models.SignerReport.id],
    set_={"report": _new.excluded.report, "reported_at": _new.excluded.reported_at},
)


async def save(conn: AsyncConnection, report: Report, now: datetime) -> None:
    """Keep the report in the place of the one before."""
    await conn.execute(_KEEP, {"id": 1, "report": msgspec.to_builtins(report), "reported_at": now})


async def load(conn: AsyncConnection) -> Copied | None:
    """Return the last report, or None where no worker has copied one."""
    found = (await conn.execute(select(models.SignerReport.report, models.SignerReport.reported_at))).one_or_none()
    if found is None:
        return None
    return Copied(report=msgspec.convert(found.report, Report), reported_at=found.reported_at)
