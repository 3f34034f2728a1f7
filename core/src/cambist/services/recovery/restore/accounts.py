"""Accounts in a file of their own beside the manifest, for there may be millions of them: written and read in parts.

One JSON object in each line; a project's stands before those of its accounts::

    {"type": "project", "projectId": "prj_...", "merchantId": "mer_...", "name": "Shop", "isActive": true}
    {
        "type": "account",
        "accountId": "acc_...",
        "publicId": "pub_...",
        "externalId": "user-1",
        "projectId": "prj_...",
        "isActive": true,
        "chains": ["base", "ethereum"],
        "indexes": {"evm": 12},
    }

``indexes`` say from which index of the merchant's keys the address in each family is derived. Sandbox accounts and
``metadata`` are left out: they are lost, as payments are.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct
from sqlalchemy import func, select

from cambist.db import models
from cambist.db.engine import Database

from .files import replacing
from .manifest import INDEX_MAX, RestoreError, Text

ROWS_AT_ONCE = 2_000
LINE_BYTES_MAX = 65_536
CHAINS_MAX = 1_000


class ProjectLine(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="camel", tag_field="type", tag="project"
):
    """A project that has accounts. Its keys and its webhook are not here."""

    project_id: Text
    merchant_id: Text
    name: Text
    is_active: bool


class AccountLine(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="camel", tag_field="type", tag="account"
):
    """An account, the chains on which it takes deposits, and the index of its address in each family."""

    account_id: Text
    public_id: Text
    external_id: Annotated[str, Meta(min_length=1, max_length=4096)]
    project_id: Text
    is_active: bool
    chains: Annotated[Sequence[Text], Meta(max_length=CHAINS_MAX)]
    indexes: dict[Text, Annotated[int, Meta(ge=0, lt=INDEX_MAX)]]


Line: TypeAlias = ProjectLine | AccountLine

_decoder = msgspec.json.Decoder(Line)

_ACCOUNTS = """
SELECT a.id, a.account_id, a.public_id, a.external_id, a.is_active, j.id AS project_pk, j.project_id, j.name,
    j.is_active AS project_is_active, m.merchant_id,
    ARRAY(SELECT c.chain FROM account_chains c WHERE c.account_pk = a.id ORDER BY c.chain) AS chains,
    (SELECT json_object_agg(d.family, d.address_index) FROM addresses d WHERE d.account_pk = a.id)::text AS indexes
FROM accounts a JOIN projects j ON j.id = a.project_pk JOIN merchants m ON m.id = j.merchant_pk
WHERE a.id > $1 AND a.mode = 'live' ORDER BY a.id LIMIT $2
"""

_LOST = """
SELECT EXISTS (
    SELECT FROM unnest($1::text[]) AS f (account_id)
    WHERE NOT EXISTS (SELECT FROM accounts a WHERE a.account_id = f.account_id)
)
"""


async def newest_account(db: Database) -> int:
    """Return a number that grows with every account."""
    async with db.autocommit() as conn:
        return (await conn.execute(select(func.coalesce(func.max(models.Account.id), 0)))).scalar_one()


async def write_accounts(db: Database, path: Path) -> int:
    """Write every live account over what was there, in one piece, for its owner's eyes; return how many there are.

    Raises OSError.
    """
    written = 0
    with replacing(path) as stream:
        async for lines, accounts in _lines(db):
            await asyncio.to_thread(stream.write, lines)
            written += accounts
    return written


def read_accounts(path: Path) -> Iterator[Line]:
    """Yield what is in a file, line by line. Raises RestoreError."""
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(iter(lambda: stream.readline(LINE_BYTES_MAX), b""), start=1):
                try:
                    yield _decoder.decode(line)
                except msgspec.DecodeError as error:
                    raise RestoreError(f"Line {number} of {path} is none of a file of accounts: {error}.") from None
    except OSError as error:
        raise RestoreError(f"The accounts in {path} cannot be read: {error.strerror}.") from None


async def why_kept(db: Database, path: Path) -> str:
    """Say why a file of accounts is no file to write over; nothing where it is, or where there is none.

    Accounts stay, so one that the database does not have is of another database, such as one that was lost.
    """
    try:
        if not await asyncio.to_thread(path.exists):
            return ""
        lines = read_accounts(path)
        while some := await asyncio.to_thread(lambda: list(islice(lines, ROWS_AT_ONCE))):
            account_ids = [line.account_id for line in some if isinstance(line, AccountLine)]
            async with db.autocommit() as conn:
                if (await conn.exec_driver_sql(_LOST, (account_ids,))).scalar_one():
                    return "its accounts are not all in the database"
    except RestoreError as error:
        return str(error)
    return ""


async def _lines(db: Database) -> AsyncIterator[tuple[bytes, int]]:
    """Yield parts of the file, each with the number of its accounts."""
    known: set[int] = set()
    last = 0
    while True:
        async with db.autocommit() as conn:
            rows = (await conn.exec_driver_sql(_ACCOUNTS, (last, ROWS_AT_ONCE))).all()
        lines: list[Line] = []
        for row in rows:
            if row.project_pk not in known:
                known.add(row.project_pk)
                lines.append(
                    ProjectLine(
                        project_id=row.project_id,
                        merchant_id=row.merchant_id,
                        name=row.name,
                        is_active=row.project_is_active,
                    )
                )
            lines.append(
                AccountLine(
                    account_id=row.account_id,
                    public_id=row.public_id,
                    external_id=row.external_id,
                    project_id=row.project_id,
                    is_active=row.is_active,
                    chains=row.chains,
                    indexes=msgspec.json.decode(row.indexes or "{}"),
                )
            )
            last = row.id
        yield b"".join(msgspec.json.encode(line) + b"\n" for line in lines), len(rows)
        if len(rows) < ROWS_AT_ONCE:
            return
