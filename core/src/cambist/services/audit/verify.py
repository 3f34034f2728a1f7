"""Comparing the audit log with its seals: says of each entry and seal whether it was changed, removed or slipped in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import AuditEntry
from cambist.db.structs import one_of, to_struct
from cambist.secrets import SecretsBox

from .entries import ENTRY_COLUMNS, Entry
from .seals import (
    DIGEST_BYTES,
    FIRST_PREVIOUS,
    LATE_S,
    PURPOSE,
    Seal,
    SealLine,
    digest_of,
    hash_of,
    numbers,
    read_seals,
    written,
)

PROBLEMS_MAX = 1_000
"""More than these are counted, and not told one by one."""

# What stands below the newest hour of seals and in none of them was written there later than any transaction lasts.
_FLOOR = """
SELECT coalesce(min(lower(entries)) - 1, 0) FROM audit_seals
WHERE sealed_at > (SELECT max(sealed_at) FROM audit_seals) - make_interval(secs => $1)
"""
_SLIPPED_IN = """
SELECT id FROM audit_entries WHERE id <= $1 AND NOT id <@ $2::text::int8multirange ORDER BY id LIMIT $3
"""
_WAITING = """
SELECT count(*) AS waiting, min(at) AS since FROM audit_entries WHERE id > $1 AND NOT id <@ $2::text::int8multirange
"""


class Report(Struct, frozen=True, kw_only=True):
    """What was found. ``waiting`` entries have no seal yet, the oldest of them since ``waiting_since``."""

    seals: int
    entries: int
    waiting: int
    waiting_since: datetime | None
    problems: Sequence[str]

    @property
    def agrees(self) -> bool:
        return not self.problems


async def verify(conn: AsyncConnection, box: SecretsBox, lines: Sequence[SealLine], now: datetime) -> Report:
    """Compare entries, seals, and what was told of the seals outside the database.

    One transaction with a snapshot of its own (``REPEATABLE READ``), or entries that come meanwhile are told of.
    """
    problems: list[str] = []
    seals = entries = 0
    previous, expected = FIRST_PREVIOUS, 1
    outside = _by_number(lines, problems)
    last: Seal | None = None
    covered: list[range] = []
    async for one in read_seals(conn):
        problems += _missing_seals(expected, one.number)
        # After a gap the chain cannot be followed; that it is broken has been said.
        chained = previous if one.number == expected else one.previous_hash
        problems += _seal_problems(one, chained, box)
        problems += _outside_problems(one, outside.pop(one.number, ()))
        problems += await _entry_problems(conn, one)
        covered += numbers(one.entries)
        seals, entries, expected, previous, last = seals + 1, entries + one.count, one.number + 1, one.hash, one
    newest = 0 if last is None else last.number
    problems += [_removed(number, newest) for number in sorted(outside)]
    floor = (await conn.exec_driver_sql(_FLOOR, (LATE_S,))).scalar_one()
    sealed = written(sorted(covered, key=lambda one: one.start))
    slipped = await conn.exec_driver_sql(_SLIPPED_IN, (floor, sealed, PROBLEMS_MAX))
    problems += [f"entry {pk} is in no seal, among others that are: it was added later" for pk in slipped.scalars()]
    unsealed = (await conn.exec_driver_sql(_WAITING, (floor, sealed))).one()
    waiting, since = unsealed.waiting, unsealed.since
    if since is not None and now - since > timedelta(seconds=LATE_S):
        problems.append(f"{waiting} entries wait for their seal, the oldest since {since:%Y-%m-%d %H:%M}")
    return Report(seals=seals, entries=entries, waiting=waiting, waiting_since=since, problems=_shortened(problems))


def _by_number(lines: Iterable[SealLine], problems: list[str]) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for line in lines:
        hashes = found.setdefault(line.number, set())
        if hashes and line.hash not in hashes:
            problems.append(
                f"the file tells of two seals {line.number}: the database was set back to an older state, "
                f"or its newest seals and their entries were removed, before {line.sealed_at:%Y-%m-%d %H:%M}"
            )
        hashes.add(line.hash)
    return found


def _missing_seals(expected: int, number: int) -> list[str]:
    if number == expected:
        return []
    if number == expected + 1:
        return [f"seal {expected} was removed"]
    return [f"seals {expected} to {number - 1} were removed"]


def _removed(number: int, newest: int) -> str:
    where = ", which ends before it" if number > newest else ""
    return f"seal {number} is in the file and not in the database{where}: it was removed"


def _seal_problems(one: Seal, previous: bytes, box: SecretsBox) -> list[str]:
    found = []
    if one.previous_hash != previous:
        found.append(f"seal {one.number} does not follow the one before: one of them was changed")
    if one.hash != hash_of(one.number, one.entries, one.digests, one.previous_hash, one.sealed_at):
        found.append(f"seal {one.number} was changed")
    if not box.is_mac(one.mac, one.hash, purpose=PURPOSE):
        found.append(f"seal {one.number} was not made by this gateway, or with a key that is not configured any more")
    if sum(map(len, numbers(one.entries))) != one.count:
        found.append(f"seal {one.number} does not hold as many entries as it names: it was changed")
    return found


def _outside_problems(one: Seal, hashes: Iterable[str]) -> list[str]:
    told = set(hashes)
    if not told or one.hash.hex() in told:
        return []
    return [f"seal {one.number} is another one than in the file: it was made anew"]


async def _entry_problems(conn: AsyncConnection, one: Seal) -> list[str]:
    spans = numbers(one.entries)
    if sum(map(len, spans)) != one.count:
        return []
    covered = [pk for span in spans for pk in span]
    rows = await conn.execute(select(*ENTRY_COLUMNS).where(one_of(AuditEntry.id, covered)))
    there = {row.id: digest_of(to_struct(Entry, row)) for row in rows}
    found = []
    for position, pk in enumerate(covered):
        digest = one.digests[position * DIGEST_BYTES : (position + 1) * DIGEST_BYTES]
        if pk not in there:
            found.append(f"entry {pk} of seal {one.number} was removed")
        elif there[pk] != digest:
            found.append(f"entry {pk} of seal {one.number} was changed")
    return found


def _shortened(problems: list[str]) -> list[str]:
    if len(problems) <= PROBLEMS_MAX:
        return problems
    return [*problems[:PROBLEMS_MAX], f"and {len(problems) - PROBLEMS_MAX} more"]
