"""A statement as a file that is too long to be made while somebody waits."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import insert

from cambist.bootstrap import Gateway
from cambist.db import models
from cambist.services.accounting.statements import entries, export
from cambist.services.accounting.statements.entries import Bounds, Filters
from cambist_tasks.job_lease import Lease


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far the file is: pieces and entries that are stored, and the movements that are left."""

    pieces: int
    entries: int
    first: int
    end: int


async def export_statement(gateway: Gateway, lease: Lease) -> Mapping[str, Any] | None:
    """Store the next piece of the file, compressed; pieces that follow each other are one gzip file."""
    job = lease.job
    if job.merchant_pk is None or job.mode is None:
        raise ValueError("a statement is a merchant's, in a mode")
    filters = msgspec.convert(job.arguments, Filters)
    async with gateway.db.autocommit() as conn:
        scope = await entries.scope_of(conn, gateway.registry, job.merchant_pk, job.mode, filters)
        if job.progress:
            done = msgspec.convert(job.progress, Progress)
        else:
            bounds = await entries.bounds_of(conn, filters)
            done = Progress(pieces=0, entries=0, first=bounds.first, end=bounds.end)
        piece = await export.read_piece(
            conn, scope, filters, Bounds(done.first, done.end), with_heading=not done.pieces
        )
    done = Progress(
        pieces=done.pieces + 1, entries=done.entries + piece.entries, first=piece.left.first, end=piece.left.end
    )
    async with lease.saving(msgspec.to_builtins(done)) as conn:
        content = gzip.compress(piece.text, mtime=0)
        await conn.execute(insert(models.JobOutput).values(job_pk=job.pk, number=done.pieces - 1, content=content))
    if piece.more and done.entries < export.STORED_ENTRIES_MAX:
        return None
    return {"entries": done.entries, "complete": not piece.more, "mediaType": "text/csv", "encoding": "gzip"}
