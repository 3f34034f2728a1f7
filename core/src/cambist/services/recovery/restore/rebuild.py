"""Merchants, keys and addresses of a manifest, made again in a database that has none."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.plugin import AddressFamily
from cambist.registry import Registry
from cambist.secrets import SecretsBox
from cambist.services.accounting.ledger import Posting, post
from cambist.services.addresses.account_keys import INDEXES, AccountKeys, fill_stock, register_gas_stations
from cambist.services.addresses.wallets import main_wallet
from cambist.signer import XpubSource
from cambist.signer.keystore import MODES

from .errors import RestoreError
from .manifest import Manifest, MerchantEntry

KIND = "restore"
BEGUN = "begun"
MODE = "live"
NO_PASSWORD = "!"  # noqa: S105  no hash, so no password opens it until the operator issues a reset
ADDRESSES_AT_ONCE = 2_000

_BEGUN = "SELECT EXISTS (SELECT FROM ledger_transactions WHERE kind = $1 AND reference = $2)"
_USED = (
    "SELECT EXISTS (SELECT FROM merchants) OR EXISTS (SELECT FROM addresses) OR EXISTS (SELECT FROM chain_cursors)"
    " OR EXISTS (SELECT FROM deposits) OR EXISTS (SELECT FROM ledger_transactions)"
)
_MERCHANT = (
    "INSERT INTO merchants (merchant_id, email, name, password_hash, created_at) VALUES ($1, $2, $3, $4, $5)"
    " ON CONFLICT (merchant_id) DO NOTHING"
)
_CLAIM = (
    "UPDATE account_keys k SET merchant_pk = m.id FROM merchants m WHERE m.merchant_id = $1 AND k.account_index = $2"
    " AND (k.merchant_pk IS NULL OR k.merchant_pk = m.id) RETURNING m.id"
)
_NEXT = (
    "UPDATE account_keys SET next_index = greatest(next_index, $4) WHERE mode = $1 AND coin_type = $2"
    " AND account_index = $3"
)
_ADDRESSES = (
    "INSERT INTO addresses (mode, family, address, merchant_pk, account_index, change, address_index)"
    " SELECT $1, $2, a.address, $3, $4, 0, a.place FROM unnest($5::text[], $6::bigint[]) AS a (address, place)"
    " ON CONFLICT DO NOTHING"
)


class Rebuilder(Struct, frozen=True, kw_only=True):
    """What making it all again needs. ``gap`` is how many indexes beyond the manifest's are looked at, too."""

    db: Database
    registry: Registry
    signer: XpubSource
    box: SecretsBox
    keys: AccountKeys
    gap: int

    async def rebuild(self, manifest: Manifest, now: datetime) -> int:
        """Make merchants, keys and addresses; return how many addresses there are. Repeating it adds nothing.

        Raises RestoreError for a database that is in use, and for a seed or plugins that do not fit.
        """
        coin_types = {family.coin_type for family in self.registry.families.values()}
        _check_coin_types(manifest, coin_types)
        async with self.db.transaction() as conn:
            await _check_database(conn)
        highest = max((merchant.account for merchant in manifest.merchants), default=0)
        if highest or coin_types:
            await self._derive_keys(coin_types, highest)
        async with self.db.transaction() as conn:
            await self._check_seed(conn, manifest)
            await post(conn, MODE, [Posting(mode=MODE, kind=KIND, reference=BEGUN, movements=[])])
            await register_gas_stations(conn, self.keys, self.registry.families.values())
        addresses = 0
        for merchant in manifest.merchants:
            async with self.db.transaction() as conn:
                addresses += await self._merchant(conn, merchant, now)
        return addresses

    async def _derive_keys(self, coin_types: Collection[int], highest: int) -> None:
        async with self.db.transaction() as conn:
            used = await conn.exec_driver_sql(
                "SELECT count(DISTINCT account_index) FROM account_keys WHERE merchant_pk IS NOT NULL"
            )
            free = highest - used.scalar_one()
        # The stock is derived in order, so with so many free ones every account of the manifest is among them.
        await fill_stock(self.db, self.signer, self.box, coin_types=coin_types, target=max(1, free))

    async def _check_seed(self, conn: AsyncConnection, manifest: Manifest) -> None:
        for entry in manifest.families:
            family = self.registry.families.get(entry.family)
            if family is None or entry.gas_station is None:
                continue
            key = await self.keys.get(conn, None, MODE, family.coin_type)
            if family.derive_address(key.xpub, 0, 0) != entry.gas_station:
                raise RestoreError(
                    f"The keystore is not the one of the manifest: its gas station would not be {entry.gas_station}."
                )

    async def _merchant(self, conn: AsyncConnection, merchant: MerchantEntry, now: datetime) -> int:
        await conn.exec_driver_sql(_MERCHANT, (merchant.merchant_id, merchant.email, merchant.name, NO_PASSWORD, now))
        claimed = (await conn.exec_driver_sql(_CLAIM, (merchant.merchant_id, merchant.account))).scalars().all()
        if not claimed:
            raise RestoreError(f"Account {merchant.account} of {merchant.merchant_id} belongs to somebody else.")
        families = self.registry.families.values()
        for mode, coin_type in {(mode, family.coin_type) for mode in MODES for family in families}:
            # What was handed out since the manifest was written is searched, and never handed out again.
            first_unused = min(merchant.indexes.get(f"{mode}/{coin_type}", 0) + self.gap, INDEXES)
            await conn.exec_driver_sql(_NEXT, (mode, coin_type, merchant.account, first_unused))
        addresses = 0
        for family in families:
            await main_wallet(conn, self.keys, family, claimed[0], MODE)
            count = min(merchant.indexes.get(f"{MODE}/{family.coin_type}", 0) + self.gap, INDEXES)
            await self._addresses(conn, family, claimed[0], count)
            addresses += count + 1
        return addresses

    async def _addresses(self, conn: AsyncConnection, family: AddressFamily, merchant_pk: int, count: int) -> None:
        key = await self.keys.get(conn, merchant_pk, MODE, family.coin_type)
        for first in range(0, count, ADDRESSES_AT_ONCE):
            places = list(range(first, min(count, first + ADDRESSES_AT_ONCE)))
            derived = [family.derive_address(key.xpub, 0, place) for place in places]
            await conn.exec_driver_sql(_ADDRESSES, (MODE, family.name, merchant_pk, key.account_index, derived, places))


def _check_coin_types(manifest: Manifest, enabled: Collection[int]) -> None:
    wanted = {
        int(place.partition("/")[2])
        for merchant in manifest.merchants
        for place, index in merchant.indexes.items()
        if place.startswith(f"{MODE}/") and index
    }
    if missing := sorted(wanted - set(enabled)):
        kinds = ", ".join(map(str, missing))
        raise RestoreError(f"There are addresses of coin type {kinds}: enable the plugins that bring it.")


async def _check_database(conn: AsyncConnection) -> None:
    if (await conn.exec_driver_sql(_BEGUN, (KIND, BEGUN))).scalar_one():
        return
    if (await conn.exec_driver_sql(_USED)).scalar_one():
        raise RestoreError(
            "The database is in use already. A restore needs one that 'cambist migrate' has just made, and that no"
            " worker has seen."
        )
