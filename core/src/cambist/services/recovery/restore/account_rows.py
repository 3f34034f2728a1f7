"""Accounts made again, each with the addresses that it had: what its end user has written down stays good."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice

from msgspec import Struct
from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import AccountKey, Merchant, Project
from cambist.db.structs import transposed
from cambist.domain.branches import PERMANENT_BRANCH
from cambist.registry import Registry
from cambist.services.addresses.account_keys import INDEXES, AccountKeys
from cambist.services.addresses.macs import AddressMacs
from cambist.services.recovery.reconcile.books import MODE

from .accounts import AccountLine, Line, ProjectLine
from .manifest import RestoreError

LINES_AT_ONCE = 1_000

_INSERT = """
INSERT INTO accounts (account_id, public_id, project_pk, merchant_pk, mode, external_id, is_active, created_at,
    updated_at)
SELECT n.account_id, n.public_id, n.project_pk, n.merchant_pk, $1, n.external_id, n.is_active, $2, $2
FROM unnest($3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[], $8::bool[])
    AS n (account_id, public_id, project_pk, merchant_pk, external_id, is_active)
ON CONFLICT DO NOTHING
"""
# Addresses that the manifest counts are there by now, as nobody's; what it does not count yet is added.
_ADDRESSES = """
INSERT INTO addresses (mode, family, address, purpose, merchant_pk, account_pk, account_index, change, address_index)
SELECT $1, n.family, n.address, 'account', a.merchant_pk, a.id, n.account_index, $2, n.address_index
FROM unnest($3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[])
    AS n (account_id, family, address, account_index, address_index)
    JOIN accounts a ON a.account_id = n.account_id
ON CONFLICT (mode, family, account_index, change, address_index)
    DO UPDATE SET account_pk = excluded.account_pk
    WHERE addresses.account_pk IS NULL OR addresses.account_pk = excluded.account_pk
"""
_CHAINS = """
INSERT INTO account_chains (account_pk, chain, address_pk, address_mac, created_at)
SELECT a.id, n.chain, d.id, n.mac, $1 FROM unnest($2::text[], $3::text[], $4::text[], $5::bytea[])
    AS n (account_id, chain, family, mac)
    JOIN accounts a ON a.account_id = n.account_id JOIN addresses d ON d.account_pk = a.id AND d.family = n.family
ON CONFLICT DO NOTHING
"""


class _Owner(Struct, frozen=True):
    """A project that is there again, and its merchant."""

    project_pk: int
    merchant_pk: int


class AccountRebuilder(Struct, frozen=True, kw_only=True):
    """What making accounts again needs."""

    db: Database
    registry: Registry
    keys: AccountKeys
    macs: AddressMacs

    async def rebuild(self, lines: Iterable[Line], now: datetime) -> int:
        """Make projects and accounts with their addresses, and return how many accounts; repeated, it adds nothing.

        After the merchants are there, and before anything is read of the chains. Raises RestoreError.
        """
        owners: dict[str, _Owner] = {}
        accounts, left = 0, iter(lines)
        while some := list(islice(left, LINES_AT_ONCE)):
            async with self.db.transaction() as conn:
                for line in some:
                    if isinstance(line, ProjectLine):
                        owners[line.project_id] = await _project(conn, line, now)
                found = [line for line in some if isinstance(line, AccountLine)]
                if found:
                    await self._accounts(conn, found, owners, now)
            accounts += len(found)
        return accounts

    async def _accounts(
        self, conn: AsyncConnection, lines: Sequence[AccountLine], owners: dict[str, _Owner], now: datetime
    ) -> None:
        rows, addresses, chains = [], [], []
        highest: dict[tuple[int, int], int] = {}
        for line in lines:
            owner = owners.get(line.project_id)
            if owner is None:
                raise RestoreError(f"The accounts' file does not say whose project {line.project_id} is.")
            own = (line.external_id, line.is_active)
            rows.append((line.account_id, line.public_id, owner.project_pk, owner.merchant_pk, *own))
            derived = {}
            for name, index in line.indexes.items():
                family = self.registry.families.get(name)
                if family is None:
                    raise RestoreError(f"{line.account_id} has an address of {name}: enable the plugin that brings it.")
                key = await self.keys.get(conn, owner.merchant_pk, MODE, family.coin_type)
                derived[name] = family.derive_address(key.xpub, PERMANENT_BRANCH, index)
                addresses.append((line.account_id, name, derived[name], key.account_index, index))
                whose = owner.merchant_pk, family.coin_type
                highest[whose] = max(highest.get(whose, 0), index)
            chains += self._chains(line, derived)
        await conn.exec_driver_sql(_INSERT, (MODE, now, *transposed(rows)))
        if addresses:
            given = await conn.exec_driver_sql(_ADDRESSES, (MODE, PERMANENT_BRANCH, *transposed(addresses)))
            if given.rowcount != len(addresses):
                raise RestoreError("The database has given an address of the accounts' file to another account.")
        if chains:
            await conn.exec_driver_sql(_CHAINS, (now, *transposed(chains)))
        for (merchant_pk, coin_type), index in highest.items():
            await _reserve(conn, merchant_pk, coin_type, index)

    def _chains(self, line: AccountLine, derived: dict[str, str]) -> list[tuple[str, str, str, bytes]]:
        """Return an account's chains with the proofs of their addresses; those that are not configured are left out."""
        found = []
        for name in line.chains:
            chain = self.registry.chains.get(name)
            if chain is None or chain.family not in derived:
                continue
            proven = {
                "account_id": line.account_id,
                "public_id": line.public_id,
                "mode": MODE,
                "external_id": line.external_id,
                "chain": name,
                "address": derived[chain.family],
            }
            found.append((line.account_id, name, chain.family, self.macs.of_account(proven)))
        return found


async def _project(conn: AsyncConnection, line: ProjectLine, now: datetime) -> _Owner:
    """Add the project under its merchant. Raises RestoreError for a merchant that the manifest does not name."""
    merchant_pk = await conn.scalar(select(Merchant.id).where(Merchant.merchant_id == line.merchant_id))
    if merchant_pk is None:
        raise RestoreError(f"The manifest does not name the merchant {line.merchant_id}, who has accounts.")
    new = insert(Project).values(
        project_id=line.project_id,
        merchant_pk=merchant_pk,
        name=line.name,
        mode=MODE,
        is_active=line.is_active,
        created_at=now,
    )
    await conn.execute(new.on_conflict_do_nothing(index_elements=[Project.project_id]))
    there = select(Project.id, Project.merchant_pk).where(Project.project_id == line.project_id)
    found = (await conn.execute(there)).one()
    if found.merchant_pk != merchant_pk:
        raise RestoreError(f"The project {line.project_id} belongs to somebody else.")
    return _Owner(found.id, merchant_pk)


async def _reserve(conn: AsyncConnection, merchant_pk: int, coin_type: int, index: int) -> None:
    """Never hand out again what an account has."""
    key = AccountKey.mode == MODE, AccountKey.coin_type == coin_type, AccountKey.merchant_pk == merchant_pk
    next_index = func.greatest(AccountKey.next_index, min(index + 1, INDEXES))
    await conn.execute(update(AccountKey).where(*key).values(next_index=next_index))
