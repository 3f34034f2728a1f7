"""What is known of a person's second factor, and how wrong codes are counted."""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog
from msgspec import Struct
from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.structs import columns_of, to_struct
from cambist.services.identity.people import P, People, V

WRONG_CODES_MAX = 5
LOCK_S = 900
LOCK_S_MAX = 86_400

log = structlog.get_logger(__name__)


class State(Struct, frozen=True, kw_only=True):
    """What is known of a person's authenticator; see the model."""

    secret_encrypted: bytes | None
    pending_encrypted: bytes | None
    pending_at: datetime | None
    last_step: int
    wrong_codes: int
    locked_until: datetime | None


async def read(conn: AsyncConnection, people: People[V, P], person_pk: int) -> State | None:
    """Return the state and lock it: a person's codes are judged one after another."""
    table = people.two_factor
    wanted = select(*columns_of(State, table)).where(table.person_pk == person_pk)
    row = (await conn.execute(wanted.with_for_update())).one_or_none()
    return None if row is None else to_struct(State, row)


async def change(conn: AsyncConnection, people: People[V, P], person_pk: int, **columns: object) -> None:
    """Set columns of the person's state, where there is one."""
    table = people.two_factor
    await conn.execute(update(table).where(table.person_pk == person_pk).values(columns))


async def count_wrong(
    conn: AsyncConnection, people: People[V, P], person_pk: int, wrong_codes: int, now: datetime
) -> None:
    rounds, within = divmod(wrong_codes, WRONG_CODES_MAX)
    locked_until = None
    if within == 0:
        locked_until = now + timedelta(seconds=min(LOCK_S * 2 ** min(rounds - 1, 10), LOCK_S_MAX))
        whose = {f"{people.kind}_pk": person_pk}
        log.warning("two_factor_locked", **whose, wrong_codes=wrong_codes, until=locked_until.isoformat())
    await change(conn, people, person_pk, wrong_codes=wrong_codes, locked_until=locked_until)


async def forgive(conn: AsyncConnection, people: People[V, P], person_pk: int) -> None:
    await change(conn, people, person_pk, wrong_codes=0, locked_until=None)


async def forget(conn: AsyncConnection, people: People[V, P], person_pk: int) -> None:
    await conn.execute(delete(people.two_factor).where(people.two_factor.person_pk == person_pk))
