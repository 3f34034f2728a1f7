"""What many tests of sending begin with: played once per process, and written down again for each of them."""

from __future__ import annotations

import pickle
from collections.abc import Awaitable, Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from cambist.db.engine import Database
from cambist.testing.clock import chance_of
from cambist.testing.databases import COLUMNS, SEQUENCES, TABLES

if TYPE_CHECKING:
    from .treasury import Treasury

Act: TypeAlias = Callable[..., Awaitable[Any]]

SIGNED = "signed.sqlite*"
"""The signer's files."""

_BEGUN: dict[tuple[Hashable, ...], tuple[str, Any, bytes]] = {}
_ENDED: dict[tuple[Hashable, ...], End] = {}
_TABLES: list[str] = []


class End(Struct, frozen=True, kw_only=True):
    """How everything was when a play was over. ``rows`` is what writes them; ``made`` what came of it."""

    rows: str
    time: dict[str, Any]
    chance: object
    signed: dict[str, bytes]
    known: bytes
    made: bytes


async def begin(treasury: Treasury, act: Act, *arguments: Hashable) -> None:
    """Do what all treasuries begin with, in an empty database: their chain is of no matter yet, nothing is signed."""
    chance = chance_of(treasury.ids)
    key = (act.__qualname__, chance.getstate(), *arguments)
    if key in _BEGUN:
        rows, state, remembered = _BEGUN[key]
        await _write(treasury.db, rows)
        chance.setstate(state)
        vars(treasury).update(pickle.loads(remembered))  # noqa: S301  written below
        return
    before = await _filled(treasury.db)
    await act(*arguments)
    _BEGUN[key] = (await _written(treasury.db, before), chance.getstate(), pickle.dumps(treasury.remembered()))


async def play(treasury: Treasury, act: Act, *arguments: Hashable) -> Any:
    """Do something with a treasury that has signed nothing but in plays, and return what came of it.

    Where another test of this process has done the same before, and all was as it is now, it is not done again: the
    treasury goes on from its end, as if the gateway had been restarted then, as it also does the first time.
    Whoever patches the gateway's code does so afterwards: what was played with the patch would be others' as well.
    """
    before = await _filled(treasury.db)
    key = (act, arguments, treasury.known(), *_moment(treasury), *before.items())
    if key in _ENDED:
        await _write(treasury.db, _ENDED[key].rows)
    else:
        made = await act(treasury, *arguments)
        await treasury.signer.aclose()
        _ENDED[key] = End(
            rows=await _written(treasury.db, before),
            time=dict(vars(treasury.clock)),
            chance=chance_of(treasury.ids).getstate(),
            signed={file.name: file.read_bytes() for file in treasury.folder.glob(SIGNED)},
            known=treasury.known(),
            made=pickle.dumps(made),
        )
    end = _ENDED[key]
    vars(treasury.clock).update(end.time)
    chance_of(treasury.ids).setstate(end.chance)
    await treasury.signer.aclose()
    for file in treasury.folder.glob(SIGNED):
        file.unlink()
    for name, content in end.signed.items():
        file = treasury.folder / name
        file.touch(0o600)
        file.write_bytes(content)
    treasury.go_on(end.known)
    return pickle.loads(end.made)  # noqa: S301  written above


def _moment(treasury: Treasury) -> tuple[Hashable, ...]:
    return treasury.clock.now(), treasury.clock.monotonic(), chance_of(treasury.ids).getstate()


async def _write(db: Database, rows: str) -> None:
    """Run all the statements at once."""
    async with db.autocommit() as conn:
        await (await conn.get_raw_connection()).driver_connection.execute(rows)


async def _rows(db: Database, statement: str, *arguments: object) -> list[Any]:
    async with db.autocommit() as conn:
        return list(await conn.exec_driver_sql(statement, arguments))


async def _filled(db: Database) -> dict[str, str]:
    """Return the rows of the tables that have any, as PostgreSQL writes them."""
    if not _TABLES:
        _TABLES.extend([row[0] for row in await _rows(db, TABLES)])
    asked = [
        f"SELECT '{name}', string_agg(quote_literal(t::text), ', ' ORDER BY ctid) FROM public.{name} t"  # noqa: S608  a name of the catalogue
        " HAVING count(*) > 0"
        for name in _TABLES
    ]
    return dict(tuple(row) for row in await _rows(db, " UNION ALL ".join(asked)))


async def _written(db: Database, before: dict[str, str]) -> str:
    """Return the statements that make of the rows from before what is there now."""
    now = await _filled(db)
    # What triggers would do was done when it was played.
    steps = ["BEGIN", "SET LOCAL session_replication_role = replica"]
    changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    steps += [f"DELETE FROM public.{name}" for name in changed if name in before]  # noqa: S608  as above
    for name in changed:
        if name in now:
            columns = (await _rows(db, COLUMNS, f"public.{name}"))[0][0]
            steps.append(
                f"INSERT INTO public.{name} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns}"  # noqa: S608  as above
                f" FROM unnest(ARRAY[{now[name]}]::public.{name}[])"
            )
    asked = [f"SELECT '{row[0]}', last_value, is_called FROM public.{row[0]}" for row in await _rows(db, SEQUENCES)]  # noqa: S608  as above
    steps += [
        f"SELECT setval('public.{name}', {last})"
        for name, last, is_called in await _rows(db, " UNION ALL ".join(asked))
        if is_called
    ]
    return ";\n".join([*steps, "COMMIT"])
