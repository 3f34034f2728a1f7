"""Account keys: the stock that the signing side derives ahead, merchants' claims on it, and leases of indexes.

An account index belongs to one merchant in both modes and for every coin type; index 0 is the platform's own.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence

import structlog
from msgspec import Struct
from sqlalchemy import func, literal_column, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.engine import Database
from cambist.db.structs import AnyRow
from cambist.plugin import AddressFamily
from cambist.ports import Clock
from cambist.secrets import SecretsBox
from cambist.services.errors import UnavailableError
from cambist.signer import XpubSource
from cambist.signer.files import KeystoreError
from cambist.signer.keystore import MODES

log = structlog.get_logger(__name__)

PLATFORM_ACCOUNT = 0
INDEXES = 2**31
ROWS_PER_TOP_UP_MAX = 500
CACHED_KEYS_MAX = 100_000
LEASED_KEYS_MAX = 20_000
LEASE_MAX = 1_000
LEASE_GROWS_WITHIN_S = 1.0

FIELD = "account_keys.xpub"

# Claims share it, topping up holds it alone: a coin type that is being added cannot split a merchant's index.
_STOCK_LOCK = 0x63616D6269737402

_key = models.AccountKey
_free = select(_key.account_index).where(_key.account_index > PLATFORM_ACCOUNT).group_by(_key.account_index)
_unclaimed = func.count(_key.merchant_pk) == 0, func.max(_key.next_index) == 0
_FREE = select(func.count()).select_from(_free.having(*_unclaimed).subquery())
_owner = select(_key.account_index, _key.merchant_pk).where(_key.merchant_pk.is_not(None)).distinct().subquery("owner")
_BACK_FILL = (
    update(_key)
    .where(_key.account_index == _owner.c.account_index, _key.merchant_pk.is_(None))
    .values(merchant_pk=_owner.c.merchant_pk)
)
# What was set aside stays so in a coin type that is new: a claim looks at the lowest one alone.
_SET_ASIDE = (
    "UPDATE account_keys SET next_index = $1 WHERE merchant_pk IS NULL AND account_index > 0 AND next_index < $1"
    " AND (account_index <= $2 OR account_index IN (SELECT account_index FROM account_keys"
    " WHERE merchant_pk IS NULL AND account_index > 0 AND next_index > 0))"
)
_PLATFORMS = select(_key.mode, _key.coin_type, _key.xpub_encrypted).where(_key.account_index == PLATFORM_ACCOUNT)
_MISSING = (
    "SELECT mode, coin_type, wanted AS account_index"
    " FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS kind (mode, coin_type, place)"
    " CROSS JOIN generate_series(0, $3::bigint) AS wanted WHERE NOT EXISTS (SELECT FROM account_keys AS key"
    " WHERE key.mode = kind.mode AND key.coin_type = kind.coin_type AND key.account_index = wanted)"
    " ORDER BY place, wanted LIMIT $4"
)
_CLAIM = (
    "WITH unused AS (SELECT account_index FROM account_keys WHERE merchant_pk IS NULL AND account_index > 0"
    " AND next_index = 0 AND mode = 'live' AND coin_type = (SELECT min(coin_type) FROM account_keys)"
    " ORDER BY account_index LIMIT 1 FOR UPDATE SKIP LOCKED)"
    " UPDATE account_keys AS key SET merchant_pk = $1 FROM unused WHERE key.account_index = unused.account_index"
    " RETURNING key.account_index"
)
_LEASE = (
    "UPDATE account_keys SET next_index = next_index + $2 WHERE id = $1 AND next_index + $2 <= $3"
    " RETURNING next_index - $2"
)


class KeysUnavailableError(UnavailableError):
    """No account keys are left, or none yet: the worker derives more within seconds."""

    def __init__(self) -> None:
        super().__init__("KEYS_UNAVAILABLE", "No account keys are in stock right now; try again in a moment.")


class NotDerivedError(UnavailableError):
    """The plugin of this family failed to derive an address: its own chains have none, and the others have theirs."""

    def __init__(self, family: str) -> None:
        super().__init__("CHAIN_UNAVAILABLE", f"Addresses of the family {family} cannot be made right now.")


class AccountKey(Struct, frozen=True):
    """What the addresses of one merchant, mode and coin type are derived from. ``pk`` is for leasing indexes."""

    pk: int
    account_index: int
    xpub: str


class LeasedIndex(Struct, frozen=True):
    """What a new address is derived from: the account's key, and an index that nobody had before, in any branch."""

    xpub: str
    account_index: int
    index: int


class StockLevel(Struct, frozen=True):
    """How many merchants can still register, and how many keys were added. ``complete`` is False with more to do."""

    free: int
    added: int
    complete: bool


def row_name(mode: str, coin_type: int, account_index: int) -> str:
    return f"{mode}/{coin_type}/{account_index}"


def kinds_of(coin_types: Collection[int]) -> Sequence[tuple[str, int]]:
    """Return of which modes and coin types each account has a key."""
    return [(mode, coin_type) for mode in MODES for coin_type in sorted(coin_types)]


async def top_up_stock(
    conn: AsyncConnection, signer: XpubSource, box: SecretsBox, *, coin_types: Collection[int], stock: int
) -> StockLevel:
    """Derive account keys until ``stock`` merchants can register, a bounded number of them at a time.

    Coin types that are new are added for every index, and given to the merchants who have it. Raises
    KeystoreError when the stock comes from another keystore, and SignerUnavailableError.
    """
    await conn.exec_driver_sql("SELECT pg_advisory_xact_lock($1)", (_STOCK_LOCK,))
    free = (await conn.execute(_FREE)).scalar_one()
    highest = await conn.scalar(select(func.max(_key.account_index))) or 0
    wanted = highest + max(0, stock - free)
    kinds = kinds_of(coin_types)
    await check_origin(conn, signer, box, kinds)
    asked = ([mode for mode, _ in kinds], [coin_type for _, coin_type in kinds], wanted, ROWS_PER_TOP_UP_MAX)
    missing = (await conn.exec_driver_sql(_MISSING, asked)).all()
    if missing:
        rows = [await _derived(signer, box, key.mode, key.coin_type, key.account_index) for key in missing]
        await conn.execute(insert(_key), rows)
    await conn.execute(_BACK_FILL)
    await set_aside(conn)
    free = (await conn.execute(_FREE)).scalar_one()
    return StockLevel(free=free, added=len(missing), complete=len(missing) < ROWS_PER_TOP_UP_MAX)


async def set_aside(conn: AsyncConnection, highest: int = 0) -> None:
    """Keep every account up to this one from new merchants, but for those that were claimed: somebody may have had it.

    Such an account has no index left. What was set aside before stays so.
    """
    await conn.exec_driver_sql(_SET_ASIDE, (INDEXES, highest))


async def fill_stock(
    db: Database, signer: XpubSource, box: SecretsBox, *, coin_types: Collection[int], stock: int
) -> StockLevel:
    """Top the stock up until it is complete, each step in a transaction of its own."""
    while True:
        async with db.transaction() as conn:
            level = await top_up_stock(conn, signer, box, coin_types=coin_types, stock=stock)
        if level.complete:
            return level


async def check_origin(
    conn: AsyncConnection, signer: XpubSource, box: SecretsBox, kinds: Collection[tuple[str, int]]
) -> None:
    """Compare the platform's keys of these modes and coin types with the signer's.

    Raises KeystoreError where they are of another keystore, SecretsError, and SignerUnavailableError.
    """
    for mode, coin_type, encrypted in await conn.execute(_PLATFORMS):
        if (mode, coin_type) not in kinds:
            continue
        xpub = _decrypt(box, encrypted, row_name(mode, coin_type, PLATFORM_ACCOUNT))
        if xpub != await signer.account_xpub(mode, coin_type, PLATFORM_ACCOUNT):
            raise KeystoreError(
                "The database's account keys were derived from another keystore than the configured one. Nothing was"
                " changed: configure the keystore that belongs to this database."
            )


async def _derived(signer: XpubSource, box: SecretsBox, mode: str, coin_type: int, index: int) -> Mapping[str, object]:
    xpub = (await signer.account_xpub(mode, coin_type, index)).encode()
    encrypted = box.encrypt(xpub, field=FIELD, row=row_name(mode, coin_type, index))
    return {"mode": mode, "coin_type": coin_type, "account_index": index, "xpub_encrypted": encrypted}


async def _find(conn: AsyncConnection, merchant_pk: int | None, mode: str, coin_type: int) -> AnyRow | None:
    """Return the row of a merchant's key, or of the platform's for None."""
    whose = _key.account_index == PLATFORM_ACCOUNT if merchant_pk is None else _key.merchant_pk == merchant_pk
    wanted = select(_key.id, _key.account_index, _key.xpub_encrypted)
    return (await conn.execute(wanted.where(_key.mode == mode, _key.coin_type == coin_type, whose))).one_or_none()


async def claim_accounts(conn: AsyncConnection, merchant_pk: int) -> int:
    """Give a new merchant an account index with all its keys, and return it. Raises KeysUnavailableError."""
    await conn.exec_driver_sql("SELECT pg_advisory_xact_lock_shared($1)", (_STOCK_LOCK,))
    index: int | None = (await conn.exec_driver_sql(_CLAIM, (merchant_pk,))).scalars().first()
    if index is None:
        raise KeysUnavailableError
    return index


def derived(family: AddressFamily, xpub: str, *, change: int, index: int) -> str:
    """Return an address that the family derives. Raises NotDerivedError, whatever its plugin raises."""
    try:
        address: object = family.derive_address(xpub, change, index)
    except Exception as error:
        log.exception("address_not_derived", family=family.name)
        raise NotDerivedError(family.name) from error
    if not isinstance(address, str) or not address:
        log.error("address_not_derived", family=family.name, made=repr(address)[:100])
        raise NotDerivedError(family.name)
    return address


async def register_gas_stations(conn: AsyncConnection, keys: AccountKeys, families: Iterable[AddressFamily]) -> None:
    """Make the platform's own addresses, m/44'/coin'/0'/0/0, known as ours: what they send is no deposit."""
    station = models.Address.purpose == literal_column("'gas'")  # a constant, as in the index
    rows = await conn.execute(select(models.Address.mode, models.Address.family).where(station))
    known = {(row.mode, row.family) for row in rows}
    for family in families:
        for mode in MODES:
            if (mode, family.name) in known:
                continue
            key = await keys.get(conn, None, mode, family.coin_type)
            try:
                address = derived(family, key.xpub, change=0, index=0)
            except NotDerivedError:  # the other families want their stations
                continue
            new = insert(models.Address).values(
                mode=mode,
                family=family.name,
                address=address,
                purpose="gas",
                account_index=0,
                change=0,
                address_index=0,
            )
            await conn.execute(new.on_conflict_do_nothing())


class AccountKeys:
    """Reads account keys. They never change once claimed, so each process reads each of them once."""

    def __init__(self, box: SecretsBox) -> None:
        self._box = box
        self._known: OrderedDict[tuple[int | None, str, int], AccountKey] = OrderedDict()

    def known(self, merchant_pk: int | None, mode: str, coin_type: int) -> AccountKey | None:
        return self._known.get((merchant_pk, mode, coin_type))

    async def get(self, conn: AsyncConnection, merchant_pk: int | None, mode: str, coin_type: int) -> AccountKey:
        """Return a merchant's key, or the platform's for None.

        Raises KeysUnavailableError for a coin type that was configured a moment ago.
        """
        wanted = (merchant_pk, mode, coin_type)
        if (key := self._known.get(wanted)) is not None:
            return key
        found = await _find(conn, merchant_pk, mode, coin_type)
        if found is None:
            raise KeysUnavailableError
        xpub = _decrypt(self._box, found.xpub_encrypted, row_name(mode, coin_type, found.account_index))
        key = AccountKey(found.id, found.account_index, xpub)
        self._known[wanted] = key
        if len(self._known) > CACHED_KEYS_MAX:
            self._known.popitem(last=False)
        return key


def _decrypt(box: SecretsBox, ciphertext: bytes, row: str) -> str:
    return box.decrypt(ciphertext, field=FIELD, row=row).decode("ascii")


class _Lease:
    __slots__ = ("end", "filled_at", "lock", "next", "size")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.next = self.end = 0
        self.size = 0
        self.filled_at = float("-inf")


class IndexLeaser:
    """Hands out derivation indexes, each once for ever, several of them per visit to the database when busy.

    A lease is committed before its first index is used, so a crash leaves a gap and never a repetition. It is of
    one index at first and doubles while demand is high: gaps cost a restore time.
    """

    def __init__(self, db: Database, keys: AccountKeys, clock: Clock) -> None:
        self._db = db
        self._keys = keys
        self._clock = clock
        self._leases: OrderedDict[int, _Lease] = OrderedDict()

    async def lease(self, merchant_pk: int | None, mode: str, coin_type: int) -> LeasedIndex:
        """Return an index for a new address of a merchant, or of the platform for None, and the key it is of.

        Not for use inside a transaction: the lease is committed on its own. Raises KeysUnavailableError.
        """
        key = self._keys.known(merchant_pk, mode, coin_type)
        if key is None:
            async with self._db.autocommit() as conn:
                key = await self._keys.get(conn, merchant_pk, mode, coin_type)
        return LeasedIndex(key.xpub, key.account_index, await self.next_index(key))

    async def next_index(self, key: AccountKey) -> int:
        """Return an index that nobody had before. Raises KeysUnavailableError when 2^31 were used."""
        lease = self._leases.get(key.pk)
        if lease is None:
            lease = self._leases[key.pk] = _Lease()
            oldest_pk, oldest = next(iter(self._leases.items()))
            if len(self._leases) > LEASED_KEYS_MAX and not oldest.lock.locked():
                del self._leases[oldest_pk]
        if lease.next >= lease.end:
            async with lease.lock:
                while lease.next >= lease.end:
                    await self._refill(key, lease)
                return self._take(lease)
        return self._take(lease)

    @staticmethod
    def _take(lease: _Lease) -> int:
        index = lease.next
        lease.next += 1
        return index

    async def _refill(self, key: AccountKey, lease: _Lease) -> None:
        now = self._clock.monotonic()
        busy = now - lease.filled_at < LEASE_GROWS_WITHIN_S
        lease.size = min(lease.size * 2, LEASE_MAX) if busy else max(lease.size // 2, 1)
        async with self._db.autocommit() as conn:
            first = (await conn.exec_driver_sql(_LEASE, (key.pk, lease.size, INDEXES))).scalar_one_or_none()
            if first is None:  # fewer are left than were asked for
                lease.size = 1
                first = (await conn.exec_driver_sql(_LEASE, (key.pk, 1, INDEXES))).scalar_one_or_none()
        if first is None:
            raise KeysUnavailableError
        lease.next, lease.end, lease.filled_at = first, first + lease.size, now
