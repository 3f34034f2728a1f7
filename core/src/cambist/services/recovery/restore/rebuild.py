"""Merchants, keys and addresses of a manifest, made again in a database that has none."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import case, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import AccountKey, Address, Cursor, Deposit, LedgerTransaction, Member, Merchant
from cambist.db.structs import transposed
from cambist.domain.branches import ONE_TIME_BRANCH, PERMANENT_BRANCH
from cambist.plugin import AddressFamily
from cambist.registry import Registry
from cambist.secrets import SecretsBox
from cambist.services.addresses.account_keys import (
    INDEXES,
    PLATFORM_ACCOUNT,
    AccountKeys,
    fill_stock,
    register_gas_stations,
    set_aside,
)
from cambist.services.addresses.wallets import main_wallet
from cambist.services.identity.merchants import find_pk
from cambist.services.identity.suspension import suspend
from cambist.services.recovery import unfinished
from cambist.services.recovery.reconcile.books import MODE
from cambist.signer import XpubSource
from cambist.signer.keystore import MODES

from .manifest import Manifest, MerchantEntry, RestoreError

NO_PASSWORD = "!"  # noqa: S105  no hash, so no password opens it until the operator issues a reset
ADDRESSES_AT_ONCE = 2_000
BRANCHES = {"payment": ONE_TIME_BRANCH, "account": PERMANENT_BRANCH}
"""What an index may have been handed out for: only the accounts' file knows, and it may be lost."""

_FILLED = (Merchant, Address, Cursor, Deposit, LedgerTransaction)
"""The tables in which a database that is in use has rows."""

_ADDRESSES = (
    "INSERT INTO addresses (mode, family, address, purpose, merchant_pk, account_index, change, address_index)"
    " SELECT $1, $2, a.address, $3, $4, $5, $6, a.index FROM unnest($7::text[], $8::bigint[]) AS a (address, index)"
    " ON CONFLICT DO NOTHING"
)

_WITHOUT_ADDRESS = """
SELECT wanted FROM generate_series(0, $5::bigint - 1) AS wanted WHERE NOT EXISTS (
    SELECT FROM addresses a WHERE a.mode = $1 AND a.family = $2 AND a.account_index = $3
        AND a.change = ANY($4::bigint[]) AND a.address_index = wanted
)
ORDER BY wanted
"""

_KEEP = """
UPDATE account_keys k SET next_index = f.next_index
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[])
    AS f (merchant_id, account_index, mode, coin_type, next_index)
    JOIN merchants m ON m.merchant_id = f.merchant_id
WHERE k.merchant_pk = m.id AND k.account_index = f.account_index AND k.mode = f.mode AND k.coin_type = f.coin_type
    AND k.next_index < f.next_index
"""


class Rebuilder(Struct, frozen=True, kw_only=True):
    """What making it all again needs. ``gap`` is how many indexes beyond the manifest's are looked at, too.

    ``account_gap`` is how many accounts beyond the highest that is known are kept from new merchants.
    """

    db: Database
    registry: Registry
    signer: XpubSource
    box: SecretsBox
    keys: AccountKeys
    gap: int
    account_gap: int

    async def rebuild(self, manifest: Manifest, now: datetime) -> int:
        """Make merchants, keys and addresses; return how many addresses there are. Repeating it adds nothing.

        Raises RestoreError for a database that is in use, and for a seed or plugins that do not fit.
        """
        coin_types = {family.coin_type for family in self.registry.families.values()}
        _check_coin_types(manifest, coin_types)
        async with self.db.transaction() as conn:
            await _check_database(conn)
        await self._check_seed(manifest)
        await self._derive_keys(coin_types, manifest)
        async with self.db.transaction() as conn:
            await unfinished.begin(conn)
            await register_gas_stations(conn, self.keys, self.registry.families.values())
        addresses = 0
        for merchant in manifest.merchants:
            async with self.db.transaction() as conn:
                addresses += await self._merchant(conn, merchant, await _claim(conn, merchant, now))
        return addresses

    async def add(self, manifest: Manifest, now: datetime) -> tuple[int, int, int]:
        """Add to a database what a manifest knows beyond it.

        Return how many merchants and addresses were added, and how many merchants suspended. Repeating it adds nothing.
        Raises RestoreError for an empty database, and for a manifest of another gateway.
        """
        coin_types = {family.coin_type for family in self.registry.families.values()}
        _check_coin_types(manifest, coin_types)
        async with self.db.transaction() as conn:
            if not await conn.scalar(select(exists().select_from(Merchant))):
                raise RestoreError("The database has no merchants, so it is no backup: restore without --backup.")
        await self._check_seed(manifest)
        await self._derive_keys(coin_types, manifest)
        merchants = addresses = suspended = 0
        for merchant in manifest.merchants:
            async with self.db.transaction() as conn:
                merchant_pk = await _known(conn, merchant)
                if merchant_pk is None:
                    merchant_pk, merchants = await _claim(conn, merchant, now), merchants + 1
                else:
                    suspended += await _suspend(conn, merchant, now)
                addresses += await self._merchant(conn, merchant, merchant_pk, beyond=True)
        return merchants, addresses, suspended

    async def _derive_keys(self, coin_types: Collection[int], manifest: Manifest) -> None:
        """Have keys of every account that may have been somebody's, and keep new merchants from all of them.

        Who registered after the manifest was written, or whose registration ended later than the next one's, is not in
        it: whoever got that account would get the same addresses.
        """
        named = max((merchant.account for merchant in manifest.merchants), default=0)
        taken = or_(AccountKey.merchant_pk.is_not(None), AccountKey.next_index > 0)
        held = select(
            func.count(AccountKey.account_index.distinct()),
            func.coalesce(func.max(AccountKey.account_index).filter(AccountKey.merchant_pk.is_not(None)), 0),
        ).where(AccountKey.account_index > PLATFORM_ACCOUNT, taken)
        async with self.db.transaction() as conn:
            count, claimed = (await conn.execute(held)).one()
        highest = max(named, claimed) + self.account_gap
        # The stock is derived in order, so with so many free ones every account up to the highest is among them.
        stock = max(1, highest - count)
        await fill_stock(self.db, self.signer, self.box, coin_types=coin_types, stock=stock)
        async with self.db.transaction() as conn:
            await set_aside(conn, highest)

    async def _check_seed(self, manifest: Manifest) -> None:
        """Ask the signer itself, before a key of its is stored: with another seed's the database could not be used."""
        for entry in manifest.families:
            family = self.registry.families.get(entry.family)
            if family is None or entry.gas_station is None:
                continue
            xpub = await self.signer.account_xpub(MODE, family.coin_type, PLATFORM_ACCOUNT)
            if family.derive_address(xpub, 0, 0) != entry.gas_station:
                raise RestoreError(
                    f"The keystore is not the one of the manifest: its gas station would not be {entry.gas_station}."
                )

    async def _merchant(
        self, conn: AsyncConnection, merchant: MerchantEntry, merchant_pk: int, *, beyond: bool = False
    ) -> int:
        """Make a merchant's addresses, or those ``beyond`` what the database knows; return how many."""
        families = self.registry.families.values()
        for mode, coin_type in {(mode, family.coin_type) for mode in MODES for family in families}:
            # What was handed out since the manifest was written is searched, and never handed out again.
            first_unused = min(merchant.indexes.get(f"{mode}/{coin_type}", 0) + self.gap, INDEXES)
            key = AccountKey.mode == mode, AccountKey.coin_type == coin_type, AccountKey.merchant_pk == merchant_pk
            next_index = func.greatest(AccountKey.next_index, first_unused)
            await conn.execute(update(AccountKey).where(*key).values(next_index=next_index))
        addresses = 0
        for family in families:
            await main_wallet(conn, self.keys, family, merchant_pk, MODE)
            count = min(merchant.indexes.get(f"{MODE}/{family.coin_type}", 0) + self.gap, INDEXES)
            indexes: Sequence[int] = range(count)
            if beyond:
                indexes = await _without_address(conn, family, merchant.account, count)
            for purpose, branch in BRANCHES.items():
                await self._addresses(conn, family, merchant_pk, indexes, purpose, branch)
            addresses += len(BRANCHES) * len(indexes) + (not beyond)
        return addresses

    async def _addresses(  # noqa: PLR0913, PLR0917  which addresses, and whose
        self,
        conn: AsyncConnection,
        family: AddressFamily,
        merchant_pk: int,
        wanted: Sequence[int],
        purpose: str,
        branch: int,
    ) -> None:
        key = await self.keys.get(conn, merchant_pk, MODE, family.coin_type)
        for first in range(0, len(wanted), ADDRESSES_AT_ONCE):
            indexes = list(wanted[first : first + ADDRESSES_AT_ONCE])
            derived = [family.derive_address(key.xpub, branch, index) for index in indexes]
            await conn.exec_driver_sql(
                _ADDRESSES, (MODE, family.name, purpose, merchant_pk, key.account_index, branch, derived, indexes)
            )


async def _known(conn: AsyncConnection, merchant: MerchantEntry) -> int | None:
    """Return the primary key of a merchant that the database knows. Raises RestoreError for one with other keys."""
    merchant_pk = await conn.scalar(select(Merchant.id).where(Merchant.merchant_id == merchant.merchant_id))
    if merchant_pk is None:
        return None
    account = await conn.scalar(select(func.min(AccountKey.account_index)).where(AccountKey.merchant_pk == merchant_pk))
    if account != merchant.account:
        raise RestoreError(f"{merchant.merchant_id} has account {account} in the database, not {merchant.account}.")
    return merchant_pk


async def _suspend(conn: AsyncConnection, merchant: MerchantEntry, now: datetime) -> bool:
    """Suspend a merchant who was suspended since: what waits in the backup would be sent. Return whether that was so.

    Who was reinstated since stays suspended: a manifest that is older than the backup must let nobody out.
    """
    one = Merchant.merchant_id == merchant.merchant_id
    if merchant.suspension_reason is None or await conn.scalar(select(Merchant.suspended_at).where(one)) is not None:
        return False
    await suspend(conn, merchant.merchant_id, merchant.suspension_reason, now=now)
    return True


async def _without_address(conn: AsyncConnection, family: AddressFamily, account: int, count: int) -> Sequence[int]:
    """Return the indexes below ``count`` of which an account has no address in a family.

    ``next_index`` does not tell: processes lease indexes ahead, so that a backup may count many that were handed out
    after it was made.
    """
    branches = list(BRANCHES.values())
    rows = await conn.exec_driver_sql(_WITHOUT_ADDRESS, (MODE, family.name, account, branches, count))
    return list(rows.scalars())


async def _claim(conn: AsyncConnection, merchant: MerchantEntry, now: datetime) -> int:
    """Add the merchant with the keys of the account.

    Raises RestoreError where another merchant has them, or the e-mail address.
    """
    others = select(Merchant.merchant_id).where(Merchant.merchant_id != merchant.merchant_id)
    members = others.join(Member, Member.merchant_pk == Merchant.id).where(Member.email == merchant.email)
    other = await conn.scalar(others.where(Merchant.email == merchant.email).union_all(members).limit(1))
    if other is not None:
        raise RestoreError(
            f"{merchant.email}, the e-mail address of {merchant.merchant_id}, is {other}'s in the database, or of one"
            " who signs in for it: name another one in the manifest."
        )
    entry = {"merchant_id": merchant.merchant_id, "email": merchant.email, "name": merchant.name}
    since = None if merchant.suspension_reason is None else now
    standing = {"live": merchant.live, "suspended_at": since, "suspension_reason": merchant.suspension_reason}
    new = insert(Merchant).values(**entry, **standing, created_at=now)
    await conn.execute(new.on_conflict_do_nothing(index_elements=[Merchant.merchant_id]))
    merchant_pk = await find_pk(conn, merchant.merchant_id)
    owner = {"email": merchant.email, "name": merchant.name, "password_hash": NO_PASSWORD}
    # Members are in the database alone. The manifest's e-mail address is the one who can be let in again.
    member_id = f"mem_{merchant.merchant_id.removeprefix('mer_')}"
    first = insert(Member).values(**owner, member_id=member_id, merchant_pk=merchant_pk, created_at=now)
    await conn.execute(first.on_conflict_do_nothing(index_elements=[Member.member_id]))
    free = or_(AccountKey.merchant_pk.is_(None), AccountKey.merchant_pk == merchant_pk)
    account = update(AccountKey).where(AccountKey.account_index == merchant.account, free)
    # One that was set aside has no index left. Now it is known whose it is.
    next_index = case((AccountKey.merchant_pk.is_(None), 0), else_=AccountKey.next_index)
    if not (await conn.execute(account.values(merchant_pk=merchant_pk, next_index=next_index))).rowcount:
        raise RestoreError(f"Account {merchant.account} of {merchant.merchant_id} belongs to somebody else.")
    return merchant_pk


def _check_coin_types(manifest: Manifest, enabled: Collection[int]) -> None:
    wanted = {
        int(key.partition("/")[2])
        for merchant in manifest.merchants
        for key, index in merchant.indexes.items()
        if key.startswith(f"{MODE}/") and index
    }
    if missing := sorted(wanted - set(enabled)):
        kinds = ", ".join(map(str, missing))
        raise RestoreError(f"There are addresses of coin type {kinds}: enable the plugins that bring it.")


async def keep_indexes(conn: AsyncConnection, manifest: Manifest) -> int:
    """Have no index be handed out again that the manifest says was, and no account that is in stock.

    Return of how many keys indexes would have been, of merchants whom the database knows. The addresses, and the other
    merchants, are added by ``Rebuilder.add()``.
    """
    rows = []
    for merchant in manifest.merchants:
        for key, next_index in merchant.indexes.items():
            mode, _, coin_type = key.partition("/")
            rows.append((merchant.merchant_id, merchant.account, mode, int(coin_type), next_index))
    if not rows:
        return 0
    await set_aside(conn, max(merchant.account for merchant in manifest.merchants))
    return (await conn.exec_driver_sql(_KEEP, (*transposed(rows),))).rowcount


async def _check_database(conn: AsyncConnection) -> None:
    if await unfinished.has_begun(conn):
        return
    if await conn.scalar(select(or_(*(exists().select_from(table) for table in _FILLED)))):
        raise RestoreError(
            "The database is in use already. A restore needs one that 'cambist migrate' has just made, and that no"
            " worker has seen."
        )
