"""Seals: each covers a batch of entries and the seal before it, so that no entry can be changed or removed unseen.

A seal says which entries it covers, because ids are given out in another order than transactions are committed: what
was committed late is in a later seal. Who can write to the database could make all seals anew. Their MACs are made
with the application key, which the database does not hold, and their lines stand in the log and, where configured,
in a file: only those tell that the newest seals were removed together with their entries.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import structlog
from msgspec import Struct
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import AuditEntry
from cambist.db.structs import one_of, to_struct
from cambist.secrets import SecretsBox

from .entries import ENTRY_COLUMNS, Entry

log = structlog.get_logger(__name__)

BATCH_MAX = 5_000
LATE_S = 3_600
"""How long a transaction may take at most. Entries that come later than this are taken for forged."""
PURPOSE = "audit seal"
DIGEST_BYTES = 32
FIRST_PREVIOUS = bytes(DIGEST_BYTES)
LOCK_KEY = 0x63616D6261756474
PAGE = 200
TAIL_BYTES = 64 * 1024
"""How much of the file's end is compared with the database, to know where to go on."""

# Below this id, whatever is in no seal came too late. Without a seal in that time, everything above all seals is new.
# (Not above the newest: that may hold nothing but what came late.)
_FLOOR = """
SELECT coalesce(
    (SELECT min(lower(entries)) - 1 FROM audit_seals WHERE sealed_at > $1 AND lower(entries) > 0),
    (SELECT max(upper(entries)) - 1 FROM (SELECT entries FROM audit_seals ORDER BY number DESC LIMIT 200) AS newest),
    0)
"""
# What came late may have been sealed an hour after its neighbours: these are in seals of an hour before the floor's.
_UNSEALED = """
SELECT e.id FROM audit_entries e WHERE e.id > $1
    AND NOT EXISTS (SELECT FROM audit_seals s WHERE s.sealed_at > $2 AND e.id <@ s.entries)
ORDER BY e.id LIMIT $3
"""
_LAST = "SELECT number, hash FROM audit_seals ORDER BY number DESC LIMIT 1"
_HASHES = "SELECT number, hash FROM audit_seals WHERE number = ANY($1::bigint[])"
_INSERT = """
INSERT INTO audit_seals (number, entries, digests, previous_hash, hash, mac, sealed_at)
SELECT $1, range_agg(int8range(id, id, '[]')), $3, $4, $5, $6, $7 FROM unnest($2::bigint[]) AS id
"""
# A moment that only somebody who forges one would choose is told as one that Python knows: its hash says the rest.
_SEALS = """
SELECT number, entries::text AS entries, digests, previous_hash, hash, mac,
    least(greatest(sealed_at, '0002-01-01T00:00:00Z'), '9998-01-01T00:00:00Z') AS sealed_at
FROM audit_seals WHERE number > $1 ORDER BY number LIMIT $2
"""


class Seal(Struct, frozen=True, kw_only=True):
    """A seal as it is stored."""

    number: int
    entries: str
    digests: bytes
    previous_hash: bytes
    hash: bytes
    mac: bytes
    sealed_at: datetime

    @property
    def count(self) -> int:
        return len(self.digests) // DIGEST_BYTES

    @property
    def line(self) -> SealLine:
        return SealLine(
            number=self.number,
            sealed_at=self.sealed_at,
            entries=self.entries,
            count=self.count,
            previous=self.previous_hash.hex(),
            hash=self.hash.hex(),
        )


class SealLine(Struct, frozen=True, kw_only=True):
    """A seal as it is told outside the database: one line of the log, and of the file."""

    number: int
    sealed_at: datetime
    entries: str
    count: int
    previous: str
    hash: str


def digest_of(entry: Entry) -> bytes:
    """Return the SHA-256 of an entry, over its fields in their order as one JSON list."""
    told = [getattr(entry, name) for name in entry.__struct_fields__]
    return hashlib.sha256(msgspec.json.encode(told, order="deterministic")).digest()


def ranges(ids: Sequence[int]) -> str:
    """Return sorted numbers as PostgreSQL writes their set: ``{[1,4),[7,8)}``."""
    return written(range(one, one + 1) for one in ids)


def written(sorted_ranges: Iterable[range]) -> str:
    """Return sorted ranges, merged where they meet, as PostgreSQL writes their set."""
    found: list[range] = []
    for one in sorted_ranges:
        if found and found[-1].stop >= one.start:
            found[-1] = range(found[-1].start, max(found[-1].stop, one.stop))
        else:
            found.append(one)
    return "{" + ",".join(f"[{one.start},{one.stop})" for one in found) + "}"


def numbers(text: str) -> Sequence[range]:
    """Read what ``ranges`` writes. Raises ValueError for a set without an end, which no seal has."""
    parts = text.strip("{}").replace("[", "").replace(")", "").split(",") if text != "{}" else []
    return [range(int(first), int(end)) for first, end in zip(parts[::2], parts[1::2], strict=True)]


def hash_of(number: int, entries: str, digests: bytes, previous: bytes, sealed_at: datetime) -> bytes:
    """Return the hash of a seal: all of it but its MAC."""
    told = [number, entries, hashlib.sha256(digests).hexdigest(), previous.hex(), sealed_at.astimezone(UTC)]
    return hashlib.sha256(msgspec.json.encode(told)).digest()


async def seal(conn: AsyncConnection, box: SecretsBox, now: datetime) -> Seal | None:
    """Seal what was committed since the last time, ``BATCH_MAX`` entries at most; return None where there is nothing.

    After the commit, hand the seal to ``announce``.
    """
    await conn.exec_driver_sql("SELECT pg_advisory_xact_lock($1)", (LOCK_KEY,))
    since = now - timedelta(seconds=LATE_S)
    floor = (await conn.exec_driver_sql(_FLOOR, (since,))).scalar_one()
    nearby = now - timedelta(seconds=3 * LATE_S)
    found = (await conn.exec_driver_sql(_UNSEALED, (floor, nearby, BATCH_MAX))).scalars().all()
    if not found:
        return None
    rows = await conn.execute(select(*ENTRY_COLUMNS).where(one_of(AuditEntry.id, found)).order_by(AuditEntry.id))
    digests = b"".join(digest_of(to_struct(Entry, row)) for row in rows)
    last = (await conn.exec_driver_sql(_LAST)).one_or_none()
    number, previous = (1, FIRST_PREVIOUS) if last is None else (last.number + 1, last.hash)
    entries = ranges(found)
    hashed = hash_of(number, entries, digests, previous, now)
    mac = box.mac(hashed, purpose=PURPOSE)
    await conn.exec_driver_sql(_INSERT, (number, list(found), digests, previous, hashed, mac, now))
    return Seal(
        number=number, entries=entries, digests=digests, previous_hash=previous, hash=hashed, mac=mac, sealed_at=now
    )


def announce(made: Seal) -> None:
    """Write a seal to the log, where who can write to the database cannot take it back."""
    log.info("audit_sealed", **msgspec.to_builtins(made.line))


async def read_seals(conn: AsyncConnection, *, after: int = 0) -> AsyncGenerator[Seal, None]:
    """Yield seals in their order."""
    while True:
        rows = (await conn.exec_driver_sql(_SEALS, (after, PAGE))).all()
        for row in rows:
            yield to_struct(Seal, row)
            after = row.number
        if len(rows) < PAGE:
            return


def read_lines(path: Path, *, last_bytes: int | None = None) -> Sequence[SealLine]:
    """Read the file of seals, or the end of it; one that is not there has none.

    A line that a crash cut off is passed over: its seal is written again.
    """
    if not path.exists():
        return []
    with path.open("rb") as stream:
        if last_bytes is not None and stream.seek(0, os.SEEK_END) > last_bytes:
            stream.seek(-last_bytes, os.SEEK_END)
        else:
            stream.seek(0)
        found = []
        for line in stream:
            with contextlib.suppress(msgspec.DecodeError):
                found.append(msgspec.json.decode(line, type=SealLine))
        return found


async def missing(conn: AsyncConnection, newest_lines: Sequence[SealLine]) -> AsyncIterator[Seal]:
    """Yield the seals that come after the newest one of these lines that the database has.

    They begin at an older number than the file's last where the database was set back: then the file tells of both.
    """
    known = await conn.exec_driver_sql(_HASHES, ([line.number for line in newest_lines],))
    there = {(row.number, row.hash.hex()) for row in known}
    after = next((line.number for line in reversed(newest_lines) if (line.number, line.hash) in there), 0)
    async for one in read_seals(conn, after=after):
        yield one


def append_lines(path: Path, seals: Sequence[Seal]) -> None:
    """Append seals to the file, and have them on disk when this returns."""
    if not seals:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as stream:
        # A line that a crash cut off ends here.
        stream.write(b"\n" if stream.tell() else b"")
        stream.write(b"".join(msgspec.json.encode(one.line) + b"\n" for one in seals))
        stream.flush()
        os.fsync(stream.fileno())
