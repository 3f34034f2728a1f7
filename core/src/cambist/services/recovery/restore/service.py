"""The restore itself: rebuild, read every chain, book what had happened, and compare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import Cursor, Deposit
from cambist.db.structs import transposed
from cambist.plugin import Chain
from cambist.ports import Clock, Ids
from cambist.registry import Registry
from cambist.secrets import SecretsBox
from cambist.services.addresses.account_keys import AccountKeys
from cambist.services.addresses.macs import AddressMacs
from cambist.services.audit.entries import GATEWAY, Action, record
from cambist.services.receiving.deposits import AddressCache, opening_balances
from cambist.services.recovery import unfinished
from cambist.services.recovery.reconcile import ChainReport, Impossible, reconcile_chain
from cambist.services.recovery.reconcile.balances import Pause, a_moment, look_up
from cambist.services.recovery.reconcile.books import MODE, SCOPE
from cambist.signer import XpubSource

from .account_rows import AccountRebuilder
from .accounts import Line
from .balances import Facts, confirmed_deposits, rebuild_balances, wallet_floats
from .manifest import Manifest, RestoreError
from .rebuild import BRANCHES, Rebuilder
from .scan import Scanner, Told

GAP = 1_000
"""How many indexes are looked at, and never handed out again, beyond those that the manifest knows."""
ACCOUNT_GAP = 100
"""How many accounts are kept from new merchants beyond the highest that is known: somebody may have had them since."""
ATTEMPTS = 5
_FURTHER = """
SELECT DISTINCT f.merchant_id FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
    AS f (merchant_id, family, account_index, first_index, next_index)
    JOIN addresses a ON a.mode = $6 AND a.family = f.family AND a.account_index = f.account_index
        AND a.change = ANY($7::bigint[]) AND a.address_index >= f.first_index AND a.address_index < f.next_index
WHERE EXISTS (SELECT FROM deposits d WHERE d.address_pk = a.id) ORDER BY 1
"""


class Summary(Struct, frozen=True, kw_only=True):
    """What a restore brought back."""

    merchants: int
    accounts: int
    addresses: int
    deposits: int
    reports: Sequence[ChainReport]
    skipped: Sequence[str]
    further: Sequence[str]
    """Merchants to whom so late an address was paid that there may be more behind all that were looked at."""

    @property
    def agrees(self) -> bool:
        """Whether chains and ledger say the same."""
        return not any(report.differences for report in self.reports)


class Added(Struct, frozen=True, kw_only=True):
    """What a manifest knew beyond a backup. ``accounts`` are all of its file, those of the backup too.

    ``suspended`` are the merchants of the backup who were suspended since.
    """

    merchants: int
    addresses: int
    accounts: int
    suspended: int


class Restorer(Struct, frozen=True, kw_only=True):
    """Restores one database. What was done is kept when it stops, and repeating it goes on from there.

    Nothing else may use the database meanwhile.
    """

    db: Database
    registry: Registry
    chains: Mapping[str, Chain]
    signer: XpubSource
    box: SecretsBox
    keys: AccountKeys
    clock: Clock
    ids: Ids
    gap: int = GAP
    account_gap: int = ACCOUNT_GAP

    async def restore(self, manifest: Manifest, told: Told, accounts: Iterable[Line] = ()) -> Summary:
        """Do it all, telling how it goes; ``accounts`` are those beside the manifest.

        Raises RestoreError; KeystoreError and SignerUnavailableError for keys.
        """
        named = {entry.chain for entry in manifest.chains}
        if missing := sorted(named - self.chains.keys()):
            raise RestoreError(f"The manifest names chains that are not configured here: {', '.join(missing)}.")
        addresses = await self._rebuilder().rebuild(manifest, self.clock.now())
        told(f"{len(manifest.merchants)} merchants and {addresses} addresses are derived")
        rebuilt = AccountRebuilder(db=self.db, registry=self.registry, keys=self.keys, macs=AddressMacs(self.box))
        found = await rebuilt.rebuild(accounts, self.clock.now())
        if found:
            told(f"{found} accounts have their addresses again")
        caches = {name: AddressCache(self.db, family, MODE) for name, family in self.registry.families.items()}
        reports = []
        for entry in manifest.chains:
            chain = self.chains[entry.chain]
            read_on = await self._scan(chain, caches[chain.info.family], entry.first_height, told)
            try:
                await self._rebuild_balances(chain, manifest, read_on)
                report = await reconcile_chain(self.db, chain, pause=read_on)
            except Impossible as error:
                raise RestoreError(f"{error}. The same command goes on from there.") from error
            reports.append(report)
            told(f"{entry.chain}: {len(report.differences) or 'no'} differences at height {report.height}")
        async with self.db.transaction() as conn:
            deposits = (await conn.execute(select(func.count()).select_from(Deposit))).scalar_one()
            told_of = {"merchants": len(manifest.merchants), "addresses": addresses, "deposits": deposits}
            further = await self._further(conn, manifest)
            await record(conn, GATEWAY, Action.RESTORED, self.clock.now(), details=told_of)
            await unfinished.finish(conn)
        return Summary(
            merchants=len(manifest.merchants),
            accounts=found,
            addresses=addresses,
            deposits=deposits,
            reports=reports,
            skipped=sorted(self.chains.keys() - named),
            further=further,
        )

    async def add(self, manifest: Manifest, accounts: Iterable[Line] = ()) -> Added:
        """Add to a backup what manifest and accounts know beyond it; workers then read the chains on from there.

        Raises RestoreError; KeystoreError and SignerUnavailableError for keys.
        """
        now = self.clock.now()
        merchants, addresses, suspended = await self._rebuilder().add(manifest, now)
        rebuilt = AccountRebuilder(db=self.db, registry=self.registry, keys=self.keys, macs=AddressMacs(self.box))
        found = await rebuilt.rebuild(accounts, now)
        async with self.db.transaction() as conn:
            told_of = {"merchants": merchants, "addresses": addresses, "accounts": found, "suspended": suspended}
            await record(conn, GATEWAY, Action.RESTORED, now, details=told_of)
        return Added(merchants=merchants, addresses=addresses, accounts=found, suspended=suspended)

    async def _further(self, conn: AsyncConnection, manifest: Manifest) -> Sequence[str]:
        """Return the merchants of whom an address in the last fifth of the gap was paid.

        What lies behind the gap does not tell: a gateway at work, where a restore is repeated, hands it out.
        """
        rows = []
        for merchant in manifest.merchants:
            for family in self.registry.families.values():
                behind = merchant.indexes.get(f"{MODE}/{family.coin_type}", 0) + self.gap
                last_fifth = behind - self.gap // 5, behind
                rows.append((merchant.merchant_id, family.name, merchant.account, *last_fifth))
        if not rows:
            return []
        branches = list(BRANCHES.values())
        return list((await conn.exec_driver_sql(_FURTHER, (*transposed(rows), MODE, branches))).scalars())

    def _rebuilder(self) -> Rebuilder:
        return Rebuilder(
            db=self.db,
            registry=self.registry,
            signer=self.signer,
            box=self.box,
            keys=self.keys,
            gap=self.gap,
            account_gap=self.account_gap,
        )

    async def _scan(self, chain: Chain, address_cache: AddressCache, first_height: int, told: Told) -> Pause:
        """Read a chain, and return what reads on after a moment, as a worker would."""
        family = self.registry.families[chain.info.family]
        scanner = Scanner(
            db=self.db, chain=chain, family=family, address_cache=address_cache, clock=self.clock, ids=self.ids
        )
        await scanner.begin(first_height)
        height = await scanner.read(told)
        told(f"{chain.info.id}: read to height {height}")

        async def read_on() -> None:
            await a_moment()
            await scanner.read(told)

        return read_on

    async def _rebuild_balances(self, chain: Chain, manifest: Manifest, read_on: Pause) -> None:
        """Book the past of a chain as of one height, at which nothing changes meanwhile."""
        for _ in range(ATTEMPTS):
            books, held, transit = await look_up(self.db, chain, read_on)
            async with self.db.transaction() as conn:
                if await opening_balances.open_station(conn, chain.info, MODE) is None:
                    raise RestoreError(
                        f"{chain.info.id}: its node does not tell what the gas station held; try again in a minute."
                    )
                # Rebuilding locks the cursor, as every poll does: what is booked is what was read.
                height, block_hash = books.cursor
                cursor = Cursor.chain == chain.info.id, Cursor.scope == SCOPE
                read = select(Cursor.height).where(*cursor, Cursor.height == height, Cursor.hash == block_hash)
                if await conn.scalar(read.with_for_update()) is None:
                    continue
                at_rest = {key: units - transit.get(key, 0) for key, units in held.items()}
                facts = Facts(
                    books=books,
                    held=at_rest,
                    deposits=await confirmed_deposits(conn, chain.info),
                    wallet_floats=wallet_floats(manifest, chain.info.id, books.merchants),
                )
                # Only what is booked at this height begins here: after that, blocks may have to be read again.
                if await rebuild_balances(conn, chain.info, facts, self.clock.now()):
                    await opening_balances.note_books(conn, chain.info, SCOPE, height)
                return
        raise RestoreError(f"{chain.info.id}: something else reads this chain; stop every worker.")
