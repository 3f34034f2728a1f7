"""The restore itself: rebuild, read every chain, book what had happened, and compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from cambist.db.engine import Database
from cambist.plugin import Chain
from cambist.ports import Clock, Ids
from cambist.registry import Registry
from cambist.secrets import SecretsBox
from cambist.services.deposits import AddressWatch, opening
from cambist.services.deposits.store import Site
from cambist.services.keys import AccountKeys
from cambist.services.reconcile import ChainReport, Impossible, reconcile_chain
from cambist.services.reconcile.looking import Pause, a_moment, look_up
from cambist.services.signer import XpubSource

from .errors import RestoreError
from .manifest import Manifest
from .rebuild import MODE, Rebuilder
from .scan import SCOPE, Scanner, Told
from .settle import Facts, settle_chain, settled_deposits, wallet_floats

__all__ = ["GAP", "RestoreError", "Restorer", "Summary"]

GAP = 1_000
"""How many indexes are looked at, and never handed out again, beyond those that the manifest knows."""
ATTEMPTS = 5


class Summary(Struct, frozen=True, kw_only=True):
    """What a restore brought back."""

    merchants: int
    addresses: int
    deposits: int
    reports: Sequence[ChainReport]
    skipped: Sequence[str]

    @property
    def agrees(self) -> bool:
        """Whether chains and ledger say the same."""
        return not any(report.differences for report in self.reports)


class Restorer:
    """Restores one database. What was done is kept when it stops, and repeating it goes on from there."""

    def __init__(  # noqa: PLR0913  a composition root's parts, each by name
        self,
        *,
        db: Database,
        registry: Registry,
        chains: Mapping[str, Chain],
        signer: XpubSource,
        box: SecretsBox,
        keys: AccountKeys,
        clock: Clock,
        ids: Ids,
        gap: int = GAP,
    ) -> None:
        """Take what it needs; nothing else may use the database meanwhile."""
        self._db = db
        self._registry = registry
        self._chains = chains
        self._clock = clock
        self._ids = ids
        self._rebuilder = Rebuilder(db=db, registry=registry, signer=signer, box=box, keys=keys, gap=gap)

    async def restore(self, manifest: Manifest, told: Told) -> Summary:
        """Do it all, telling how it goes. Raises RestoreError; KeystoreError and SignerUnavailableError for keys."""
        missing = sorted({chain.chain for chain in manifest.chains} - self._chains.keys())
        if missing:
            raise RestoreError(f"The manifest names chains that are not configured here: {', '.join(missing)}.")
        addresses = await self._rebuilder.rebuild(manifest, self._clock.now())
        told(f"{len(manifest.merchants)} merchants and {addresses} addresses are derived")
        watches = {name: AddressWatch(self._db, family, MODE) for name, family in self._registry.families.items()}
        reports = []
        for entry in manifest.chains:
            chain = self._chains[entry.chain]
            read_on = await self._scan(chain, watches[chain.info.family], entry.first_height, told)
            await self._settle(chain, manifest, read_on)
            report = await self._compare(chain, read_on)
            reports.append(report)
            told(f"{entry.chain}: {len(report.differences) or 'no'} differences at height {report.height}")
        async with self._db.transaction() as conn:
            deposits = (await conn.exec_driver_sql("SELECT count(*) FROM deposits")).scalar_one()
        known = {entry.chain for entry in manifest.chains}
        return Summary(
            merchants=len(manifest.merchants),
            addresses=addresses,
            deposits=deposits,
            reports=reports,
            skipped=sorted(self._chains.keys() - known),
        )

    async def _scan(self, chain: Chain, watch: AddressWatch, first_height: int, told: Told) -> Pause:
        """Read a chain, and return what reads on after a moment, as a worker would."""
        family = self._registry.families[chain.info.family]
        scanner = Scanner(db=self._db, chain=chain, family=family, watch=watch, clock=self._clock, ids=self._ids)
        await scanner.begin(first_height)
        height = await scanner.read(told)
        told(f"{chain.info.id}: read to height {height}")

        async def read_on() -> None:
            await a_moment()
            await scanner.read(told)

        return read_on

    async def _settle(self, chain: Chain, manifest: Manifest, read_on: Pause) -> None:
        """Book the past of a chain as of one height, at which nothing changes meanwhile."""
        site = self._site(chain)
        for _ in range(ATTEMPTS):
            try:
                books, held, transit = await look_up(self._db, chain, read_on)
            except Impossible as error:
                raise RestoreError(f"{error}. The same command goes on from there.") from error
            async with self._db.transaction() as conn:
                if not await opening.is_open(conn, site.info, site.mode):
                    raise RestoreError(
                        f"{chain.info.id}: its node does not tell what the gas station held; try again in a minute."
                    )
                # Settling locks the cursor, as every look does: what is booked is what was read.
                still = await conn.exec_driver_sql(
                    "SELECT height FROM chain_cursors WHERE chain = $1 AND scope = $2 AND height = $3 AND hash = $4"
                    " FOR UPDATE",
                    (*site.key, *books.cursor),
                )
                if still.first() is None:
                    continue
                settled = {key: units - transit.get(key, 0) for key, units in held.items()}
                facts = Facts(
                    books=books,
                    held=settled,
                    deposits=await settled_deposits(conn, chain.info),
                    wallet_floats=wallet_floats(manifest, chain.info.id, books.merchants),
                )
                await settle_chain(conn, chain.info, facts, self._clock.now())
                return
        raise RestoreError(f"{chain.info.id}: something else reads this chain; stop every worker.")

    async def _compare(self, chain: Chain, read_on: Pause) -> ChainReport:
        try:
            return await reconcile_chain(self._db, chain, pause=read_on)
        except Impossible as error:
            raise RestoreError(f"{error}. The same command goes on from there.") from error

    def _site(self, chain: Chain) -> Site:
        family = self._registry.families[chain.info.family]
        return Site(info=chain.info, family=family, scope=SCOPE, mode=MODE, ids=self._ids)
