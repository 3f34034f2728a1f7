"""Comparing the audit log with its seals: says of each entry and seal whether it was changed, removed or slipped in.

It goes in steps that take seconds, however long the log is: first every seal with its entries, then every entry, for
those that no seal covers.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Text, cast, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import AuditEntry
from cambist.db.structs import AnyRow, columns_of, one_of
from cambist.secrets import SecretsBox

from .entries import Entry
from .seals import (
    DIGEST_BYTES,
    FIRST_PREVIOUS,
    LATE_S,
    PAGE,
    PURPOSE,
    Seal,
    SealLine,
    digest_of,
    hash_of,
    numbers,
    read_seals,
)

PROBLEMS_MAX = 1_000
"""More than these are counted, and not told one by one."""
_LATE = timedelta(seconds=LATE_S)
SEALS_MAX = 20_000
COMPARED_MAX = 100_000
"""So many seals, or entries of theirs, are compared in one step."""
ENTRIES_AT_ONCE = 5_000
"""One query reads so many entries, or those of one seal that has more."""
SEARCHED_MAX = 2_000_000
"""Among so many entries one step searches for those in no seal."""

# What stands below the newest hour of seals and in none of them was written there later than any transaction lasts.
_FLOOR = """
SELECT coalesce(min(lower(entries)) FILTER (WHERE lower(entries) > 0) - 1, 0) FROM audit_seals
WHERE sealed_at > (SELECT max(sealed_at) FROM audit_seals) - make_interval(secs => $1)
"""
_SEARCHED = """
SELECT max(id) FROM (SELECT id FROM audit_entries WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3) AS next
"""
_SLIPPED_IN = """
SELECT id FROM audit_entries WHERE id > $1 AND id <= $2 AND NOT id <@ (
    SELECT coalesce(range_agg(entries), '{}') FROM audit_seals WHERE entries && int8range($1, $2, '(]')
) ORDER BY id LIMIT $3
"""
_WAITING = """
SELECT count(*) AS waiting, min(at) AS since FROM audit_entries WHERE id > $1 AND NOT id <@ (
    SELECT coalesce(range_agg(entries), '{}') FROM audit_seals WHERE entries && int8range($1, NULL, '()')
)
"""


class Report(Struct, frozen=True, kw_only=True):
    """What was found. ``waiting`` entries have no seal yet, the oldest of them since ``waiting_since``.

    ``compared_with_file``: every step knew what was told of the seals outside the database, up to those of the last
    minutes. Otherwise nobody would notice that the newest seals were removed together with their entries.
    """

    seals: int
    entries: int
    waiting: int
    waiting_since: datetime | None
    problems: Sequence[str]
    compared_with_file: bool

    @property
    def agrees(self) -> bool:
        return not self.problems


class Progress(Struct, frozen=True, kw_only=True):
    """How far a comparison has come: to the seal of this ``number`` and ``hash``, in hexadecimal digits.

    Once all seals are compared, ``floor`` says up to which entry each must be in a seal, and ``searched`` up to which
    they have been looked at. ``untold`` problems are beyond those that are told.
    """

    number: int = 0
    hash: str = FIRST_PREVIOUS.hex()
    seals: int = 0
    entries: int = 0
    floor: int | None = None
    searched: int = 0
    problems: tuple[str, ...] = ()
    untold: int = 0
    compared_with_file: bool = True


class Verifier:
    """Compares entries, seals, and what was told of the seals outside the database, step by step.

    ``lines`` are read before the first step, or they know more than the database. ``after`` is the ``number`` of the
    progress that it goes on from. Of the problems ``told_max`` are told.
    """

    def __init__(
        self, box: SecretsBox, lines: Sequence[SealLine], *, after: int = 0, told_max: int = PROBLEMS_MAX
    ) -> None:
        self._box, self._told_max = box, told_max
        self._told_twice: list[str] = []
        self._newest_outside = max((line.number for line in lines), default=0)
        self._outside = _by_number((line for line in lines if line.number > after), self._told_twice)

    async def step(self, conn: AsyncConnection, progress: Progress, now: datetime) -> Progress | Report:
        """Go on from there; return the report once all is done.

        Each step is one transaction with a snapshot of its own (``REPEATABLE READ``), or entries that come meanwhile
        are told of.
        """
        if progress.floor is None:
            return await self._compare(conn, progress, now)
        if progress.searched < progress.floor:
            return await self._search(conn, progress, progress.floor)
        return await self._report(conn, progress, progress.floor, now)

    async def _compare(self, conn: AsyncConnection, progress: Progress, now: datetime) -> Progress:
        problems = [] if progress.seals else self._told_twice
        number, previous = progress.number, bytes.fromhex(progress.hash)
        seals = entries = 0
        floor, knows_all = None, self._newest_outside > 0
        async with aclosing(_by_entries(conn, number)) as groups:
            async for some in groups:
                there = await _digests(conn, some)
                for one in some:
                    problems += _missing_seals(number + 1, one.number)
                    # After a gap the chain cannot be followed; that it is broken has been said.
                    chained = previous if one.number == number + 1 else one.previous_hash
                    problems += _seal_problems(one, chained, self._box)
                    problems += _outside_problems(one, self._outside.pop(one.number, ()))
                    problems += _entry_problems(one, there)
                    knows_all &= one.number <= self._newest_outside or now - one.sealed_at <= _LATE
                    seals, entries, number, previous = seals + 1, entries + one.count, one.number, one.hash
                if seals >= SEALS_MAX or entries >= COMPARED_MAX:
                    break
            else:
                floor = (await conn.exec_driver_sql(_FLOOR, (LATE_S,))).scalar_one()
        for removed in sorted(one for one in self._outside if floor is not None or one < number):
            del self._outside[removed]
            problems.append(_removed(removed, number))
        compared = replace(
            progress,
            number=number,
            hash=previous.hex(),
            seals=progress.seals + seals,
            entries=progress.entries + entries,
            floor=floor,
            compared_with_file=progress.compared_with_file and knows_all,
        )
        return self._told(compared, problems)

    async def _search(self, conn: AsyncConnection, progress: Progress, floor: int) -> Progress:
        found = await conn.exec_driver_sql(_SEARCHED, (progress.searched, floor, SEARCHED_MAX))
        end = found.scalar_one()
        if end is None:
            return replace(progress, searched=floor)
        slipped = await conn.exec_driver_sql(_SLIPPED_IN, (progress.searched, end, PROBLEMS_MAX))
        words = "is in no seal, among others that are: it was added later"
        return self._told(replace(progress, searched=end), [f"entry {pk} {words}" for pk in slipped.scalars()])

    async def _report(self, conn: AsyncConnection, progress: Progress, floor: int, now: datetime) -> Report:
        unsealed = (await conn.exec_driver_sql(_WAITING, (floor,))).one()
        waiting, since = unsealed.waiting, unsealed.since
        if since is not None and now - since > _LATE:
            words = f"{waiting} entries wait for their seal, the oldest since {since:%Y-%m-%d %H:%M}"
            progress = self._told(progress, [words])
        more = [f"and {progress.untold} more"] if progress.untold else []
        return Report(
            seals=progress.seals,
            entries=progress.entries,
            waiting=waiting,
            waiting_since=since,
            problems=[*progress.problems, *more],
            compared_with_file=progress.compared_with_file,
        )

    def _told(self, progress: Progress, problems: Sequence[str]) -> Progress:
        told = (*progress.problems, *problems)
        untold = progress.untold + max(0, len(told) - self._told_max)
        return replace(progress, problems=told[: self._told_max], untold=untold)


async def verify(conn: AsyncConnection, box: SecretsBox, lines: Sequence[SealLine], now: datetime) -> Report:
    """Take all steps of a ``Verifier`` in one transaction, with a snapshot of its own (``REPEATABLE READ``)."""
    verifier = Verifier(box, lines)
    found: Progress | Report = Progress()
    while not isinstance(found, Report):
        found = await verifier.step(conn, found, now)
    return found


async def _by_entries(conn: AsyncConnection, after: int) -> AsyncGenerator[Sequence[Seal], None]:
    """Yield seals together whose entries one query reads."""
    some: list[Seal] = []
    entries = 0
    async with aclosing(read_seals(conn, after=after)) as seals:
        async for one in seals:
            if some and (entries + one.count > ENTRIES_AT_ONCE or len(some) >= PAGE):
                yield some
                some, entries = [], 0
            some.append(one)
            entries += one.count
    if some:
        yield some


# As of seals: a forged moment is one that Python knows.
_MOMENTS = datetime(2, 1, 1, tzinfo=UTC), datetime(9998, 1, 1, tzinfo=UTC)
_COLUMNS = columns_of(
    Entry,
    AuditEntry,
    at=func.least(func.greatest(AuditEntry.at, _MOMENTS[0]), _MOMENTS[1]),
    details=cast(AuditEntry.details, Text),
)


async def _digests(conn: AsyncConnection, seals: Sequence[Seal]) -> Mapping[int, bytes]:
    """Return the digests of what is there of the seals' entries."""
    covered = [pk for one in seals if _is_whole(one) for span in numbers(one.entries) for pk in span]
    rows = await conn.execute(select(*_COLUMNS).where(one_of(AuditEntry.id, covered)))
    return {row.id: _digest(row) for row in rows}


def _digest(row: AnyRow) -> bytes:
    """Return the digest of an entry, whose details are text here, or none for what nobody can have written.

    Such as a number of forty digits, or lists within lists, thousands deep.
    """
    try:
        fields = {name: getattr(row, name) for name in Entry.__struct_fields__}
        return digest_of(msgspec.convert(fields | {"details": msgspec.json.decode(row.details)}, Entry))
    except (OverflowError, RecursionError, TypeError, ValueError):
        return b""


def _is_whole(one: Seal) -> bool:
    """Return whether a seal names as many entries as it holds. One that was changed may name any number, or no end."""
    try:
        return sum(span.stop - span.start for span in numbers(one.entries)) == one.count
    except ValueError:
        return False


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
    if not _is_whole(one):
        found.append(f"seal {one.number} does not hold as many entries as it names: it was changed")
    return found


def _outside_problems(one: Seal, hashes: Iterable[str]) -> list[str]:
    told = set(hashes)
    if not told or one.hash.hex() in told:
        return []
    return [f"seal {one.number} is another one than in the file: it was made anew"]


def _entry_problems(one: Seal, there: Mapping[int, bytes]) -> list[str]:
    if not _is_whole(one):
        return []
    found = []
    for position, pk in enumerate(pk for span in numbers(one.entries) for pk in span):
        digest = one.digests[position * DIGEST_BYTES : (position + 1) * DIGEST_BYTES]
        if pk not in there:
            found.append(f"entry {pk} of seal {one.number} was removed")
        elif there[pk] != digest:
            found.append(f"entry {pk} of seal {one.number} was changed")
    return found
