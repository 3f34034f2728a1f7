"""What workers see of chains, as rows: web has no nodes. Written by whoever watches a chain, every few seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import ChainEndpoint, ChainState
from cambist.db.structs import columns_of, to_struct
from cambist.plugin import EndpointHealth, NetworkSetup, printable
from cambist.ports import Ids
from cambist.secrets import SecretsBox

from .hosts import name_of
from .setups import opened, seal

ERROR_CHARS_MAX = 400
WATCHED_LATELY = timedelta(seconds=30)


class ChainStateRow(Struct, frozen=True, kw_only=True):
    """How a chain stands: ``problem`` is why it is not connected, ``error`` what polls fail with.

    Each has its code, a ``ChainProblem``, a ``SetupProblem`` or a ``Trouble``.
    """

    chain: str
    problem: str | None = None
    problem_code: str | None = None
    setup_problem: str | None = None
    setup_problem_code: str | None = None
    error: str | None = None
    error_code: str | None = None
    failing_since: datetime | None = None
    quorum: int = 1
    seen_at: datetime


async def save(conn: AsyncConnection, state: ChainStateRow) -> None:
    """Store how a chain stands."""
    values = asdict(state)
    values |= {name: _short(values[name]) for name in ("problem", "setup_problem", "error")}
    new = insert(ChainState).values(values)
    await conn.execute(new.on_conflict_do_update(index_elements=["chain"], set_=values))


async def save_problem(conn: AsyncConnection, state: ChainStateRow) -> None:
    """Store why one worker is not connected to a chain, unless another one watches it."""
    values = asdict(state)
    new = insert(ChainState).values(values)
    nobody_else = ChainState.problem.is_not(None) | (ChainState.seen_at < state.seen_at - WATCHED_LATELY)
    await conn.execute(new.on_conflict_do_update(index_elements=["chain"], set_=values, where=nobody_else))


async def load(conn: AsyncConnection) -> Mapping[str, ChainStateRow]:
    """Return how every chain stood, by its id."""
    rows = await conn.execute(select(*columns_of(ChainStateRow, ChainState)))
    return {row.chain: to_struct(ChainStateRow, row) for row in rows}


_ROWS = """
SELECT id, endpoint_id, name, url_encrypted, origin, state FROM chain_endpoints
WHERE chain = $1 AND (state IN ('in_use', 'absent') OR origin = 'file' AND state IN ('removed', 'checking'))
"""


class StoredRow(Struct, frozen=True, kw_only=True):
    """An endpoint's row, by its address, or by its name where that is not known."""

    pk: int
    key: str
    origin: str
    state: str


class Counted(Struct, frozen=True):
    """Calls to an endpoint until a moment, for how many there are a minute."""

    calls: int
    at: float


class Readings:
    """Writes what one worker's connection to a chain knows of its endpoints."""

    def __init__(self, box: SecretsBox, ids: Ids) -> None:
        self._box = box
        self._ids = ids
        self._counted: dict[str, Counted] = {}

    async def save(  # noqa: PLR0913  whose, what, and when by two clocks
        self,
        conn: AsyncConnection,
        chain: str,
        setup: NetworkSetup | None,
        file: NetworkSetup | None,
        health: Sequence[EndpointHealth],
        *,
        now: datetime,
        monotonic: float,
    ) -> None:
        """Store each endpoint's health in its row. Those of the file get one when they are seen first."""
        stored = await self._rows(conn, chain)
        rows = {one.key: one.pk for one in stored}
        urls = () if setup is None else setup.endpoints
        in_file = frozenset(() if file is None else file.endpoints)
        seen: set[int] = set()
        for one in health:
            url = urls[one.position] if one.position is not None and one.position < len(urls) else None
            row_pk = rows.get(one.name if url is None else url)
            if row_pk is None:
                if url is not None and url not in in_file:
                    continue  # it was added, and its row is gone: the next refresh follows
                row_pk = await self._new_row(conn, chain, one, url, now)
            seen.add(row_pk)
            values = self._values(f"{chain} {row_pk}", one, now, monotonic)
            await conn.execute(update(ChainEndpoint).where(ChainEndpoint.id == row_pk).values(values))
        of_file = [one for one in stored if one.origin == "file"]
        gone = [one.pk for one in of_file if one.state == "in_use" and one.pk not in seen]
        back = [one.pk for one in of_file if one.state == "absent" and one.pk in seen]
        await self._change(conn, gone, "in_use", "absent", now)
        await self._change(conn, back, "absent", "in_use", now)

    async def _rows(self, conn: AsyncConnection, chain: str) -> Sequence[StoredRow]:
        """Return the rows of endpoints that may be in use."""
        found = await conn.exec_driver_sql(_ROWS, (chain,))
        return [
            StoredRow(
                pk=row.id,
                key=row.name if row.url_encrypted is None else opened(self._box, row.endpoint_id, row.url_encrypted),
                origin=row.origin,
                state=row.state,
            )
            for row in found
        ]

    async def _new_row(
        self, conn: AsyncConnection, chain: str, one: EndpointHealth, url: str | None, now: datetime
    ) -> int:
        endpoint_id = self._ids.new("end")
        made = await conn.execute(
            insert(ChainEndpoint)
            .values(
                endpoint_id=endpoint_id,
                chain=chain,
                origin="file",
                name=one.name if url is None else name_of(url) or one.name,
                url_encrypted=None if url is None else seal(self._box, endpoint_id, url),
                state="in_use",
                created_at=now,
                changed_at=now,
            )
            .returning(ChainEndpoint.id)
        )
        pk: int = made.scalar_one()
        return pk

    def _values(self, key: str, one: EndpointHealth, now: datetime, monotonic: float) -> dict[str, object]:
        before, self._counted[key] = self._counted.get(key), Counted(one.calls, monotonic)
        # A new connection counts anew.
        known = before is not None and one.calls >= before.calls and monotonic > before.at
        per_minute = None
        if before is not None and known:
            per_minute = round((one.calls - before.calls) * 60 / (monotonic - before.at))
        return {
            "healthy": one.healthy,
            "head": one.head,
            "set_aside": _short(one.set_aside),
            "last_error": _short(one.last_error),
            "calls": one.calls,
            "failures": one.failures,
            "rate_limited": one.rate_limited,
            "calls_per_minute": per_minute,
            "latency_ms": None if one.latency_ms is None else round(one.latency_ms),
            "seen_at": now,
        }

    async def _change(self, conn: AsyncConnection, pks: Sequence[int], state: str, into: str, now: datetime) -> None:
        """Let go of rows for what stood in the file, or take them back; nearly always there are none."""
        if pks:
            theirs = update(ChainEndpoint).where(ChainEndpoint.id.in_(pks), ChainEndpoint.state == state)
            await conn.execute(theirs.values(state=into, changed_at=now))


def _short(text: object) -> str | None:
    return None if text is None else printable(str(text))[:ERROR_CHARS_MAX]
