"""A merchant whose money is swapped and bridged: two chains in memory with routers, engines, and the follower."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Self

from msgspec import convert, structs
from sqlalchemy import bindparam

from cambist.db.models import Exchange
from cambist.domain.exchanges import BPS, MadeFor
from cambist.domain.intents import AskedBy
from cambist.hints import Hints
from cambist.plugin import BridgeDeposit, ExchangeRequest, Units
from cambist.services import platform
from cambist.services.accounting import ledger
from cambist.services.chain_scope import ChainScope
from cambist.services.exchanges.calls import Readers
from cambist.services.exchanges.context import ExchangeContext
from cambist.services.exchanges.create import prepare
from cambist.services.exchanges.offers import best_offer
from cambist.services.exchanges.owner import Owner
from cambist.services.exchanges.requests import Wish
from cambist.services.exchanges.rows import SELECT, ExchangeRow, exchange_row
from cambist.services.exchanges.runner import claim_due, follow_exchange, reopen_orphaned
from cambist.services.exchanges.starting import NewExchange, start_exchange
from cambist.services.exchanges.worker import ExchangeWorker
from cambist.services.intent_handlers import endings, intent_handlers
from cambist.services.payouts.queue import PayoutContext
from cambist.services.platform import PlatformPatch
from cambist.services.pricing.quotes import Asset
from cambist.services.receiving.deposits import AddressCache, Watcher
from cambist.services.sending.context import EngineContext
from cambist.services.sending.engine import Engine
from cambist.signer.exchanges import ExchangeReader
from cambist.signer.local import LocalSigner
from cambist.signer.reading import Reader
from cambist.signer.store import Store
from tests.support.exchange_chain import RouterChain
from tests.support.exchanges import ROUTER, FairReader
from tests.support.fair import FairBridge, FairService, FairSwaps
from tests.support.memory_calls import MemoryCallFamily
from tests.support.payment_env import registry
from tests.support.treasury import RICH, Treasury

CHAINS = ("memory", "other")
FEE_BPS = 30
GAS = 10**18
USDX, MEM = 10**6, 10**18
PAID_BEFORE = """
INSERT INTO deposits (deposit_id, chain, scope, tx_id, position, mode, merchant_pk, address_pk, matches, token,
    contract, decimals, units, available_units, height, block_hash, ordinal, mined_at, required_confirmations, status)
SELECT 'dep_before_' || token, 'memory', 0, 'before', token, 'live', $1, $2, true, token, contract, decimals, units,
    units, 0, 'before', 0, '2026-01-01Z', 1, 'confirmed'
FROM unnest($3::text[], $4::text[], $5::smallint[], $6::numeric[]) AS t (token, contract, decimals, units)
"""
BY_TXN_ID = SELECT.where(Exchange.txn_id == bindparam("txn_id"))


class PricedService(FairService):
    """Exchanges at the prices of the board, less a fee of its own."""

    def __init__(self, board) -> None:
        super().__init__()
        self.board = board
        self.fee_bps = FEE_BPS
        self.asked = 0

    def quoted(self, request: ExchangeRequest) -> int:
        self.asked += 1
        super().quoted(request)
        sells, buys = request.sells.token, request.buys.token
        worth = Decimal(request.units).scaleb(-sells.decimals) * Decimal(self.board[sells.symbol, "usd"])
        units = int((worth / Decimal(self.board[buys.symbol, "usd"])).scaleb(buys.decimals))
        return units * (BPS - self.fee_bps - request.fee_bps) // BPS


class PricedSwaps(FairSwaps):
    """Swaps at these prices."""


class PricedBridge(FairBridge):
    """Bridges at these prices; whoever fills has so many seconds of the other chain's time."""

    def __init__(self, service: FairService, now) -> None:
        super().__init__(service)
        self._now = now
        self.fill_s = 600

    @property
    def deadline(self) -> int:
        return int(self._now()) + self.fill_s


class ExchangeEnv(Treasury):
    """The treasury of one merchant on two chains that run contracts."""

    def __init__(self, db, clock, ids, folder, **more: Any) -> None:
        chains = registry({"memory": {"chains": {name: {} for name in CHAINS}}})
        family = MemoryCallFamily()
        chains.families = {family.name: family}
        chains.chains = {name: structs.replace(info, runs_contracts=True) for name, info in chains.chains.items()}
        self.routers = {name: RouterChain(chains.chains[name], seed=number) for number, name in enumerate(CHAINS)}
        super().__init__(db, clock, ids, folder, chain=self.routers["memory"], chains=chains, **more)
        self.other = self.routers["other"]
        self.swap_service, self.bridge_service = PricedService(self.prices.board), PricedService(self.prices.board)
        self.swaps = PricedSwaps(self.swap_service)
        self.bridge = PricedBridge(self.bridge_service, self.other.seen_time)
        self.context = ExchangeContext(
            registry=self.registry,
            keys=self.keys,
            clock=clock,
            ids=ids,
            rates=self.rates,
            swaps=[self.swaps],
            bridges=[self.bridge],
        )
        self.payouts = PayoutContext(registry=self.registry, keys=self.keys, clock=clock, ids=ids)
        caches = AddressCache(db, family, "live")
        self.watchers = {
            name: Watcher(
                db=db, chain=chain, family=family, address_cache=caches, scope=0, mode="live", clock=clock, ids=ids,
                hints=Hints(None),
            )
            for name, chain in self.routers.items()
        }  # fmt: skip
        self.watcher = self.watchers["memory"]
        self.used = {"memory"}  # the other chain is begun and followed once something is exchanged with it
        self.exchange_alerts: Counter[str] = Counter()

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await self.signer.aclose()
        readers = ExchangeReader([FairReader()], self.registry.chains, {})
        self.signer = LocalSigner(
            self.keystore,
            Reader(self.keystore, self.registry.families, self.registry.chains, readers),
            rules=self.rules,
            store=Store(self.folder),
            clock=self.clock,
        )
        self._stack.push_async_callback(self.signer.aclose)
        async with self.db.autocommit() as conn:
            await conn.exec_driver_sql("UPDATE projects SET extended_events = true")
        self.follower = self.new_follower()
        return self

    def new_follower(self) -> ExchangeWorker:
        return ExchangeWorker(
            db=self.db,
            infos=self.registry.chains,
            families=self.registry.families,
            chains=self.routers,
            swaps=[self.swaps],
            bridges=[self.bridge],
            readers=[FairReader()],
            clock=self.clock,
            endings=endings(self.ids),
            alerts=self.exchange_alerts,
        )

    def engine_of(self, name: str) -> Engine:
        info = self.registry.chains[name]
        context = EngineContext(
            db=self.db,
            chain=self.routers[name],
            family=self.family,
            signer=self.signer,
            pauses=self.pauses,
            rates=self.rates,
            clock=self.clock,
            ids=self.ids,
            handlers=intent_handlers(self.ids, Readers(readers=[FairReader()], infos=self.registry.chains)),
            settings=self.settings,
            chain_scope=ChainScope(info=info, scope=0, mode="live"),
            alerts=self.alerts,
        )
        return Engine(context, self.keys)

    async def opened(self, *, usdx: int = 0, mem: int = 0, collected: bool = True) -> Self:
        """Open both chains, with so much of each token in the wallet on the first, as collected before, and with gas.

        Or have customers pay it just now: then it is collected when it is needed, and gas is brought for that.
        """
        for chain in self.routers.values():
            chain.transfer(self.info.native, self.station, RICH)
        had = {symbol: units for symbol, units in (("USDX", usdx), ("MEM", mem)) if units}
        if collected:
            # They are read from the block on in which all this came.
            for symbol, units in had.items():
                self.chain.transfer(self.token(symbol), self.wallet.address, units)
            self.chain.transfer(self.info.native, self.wallet.address, GAS)
        await self.mine()
        if collected:
            await self._book_wallet(had)
        else:
            for symbol, units in had.items():
                await self.receive(symbol, units)
        self.engines = {name: self.engine_of(name) for name in CHAINS}
        return self

    async def _book_wallet(self, had: Mapping[str, int]) -> None:
        """Book what the wallet has as the merchant's, who was paid it once, and its gas as the platform's."""
        purpose, coin, movements = ledger.Purpose, self.asset("MEM"), []
        sides = purpose.CUSTODY_WALLET, purpose.AVAILABLE
        for symbol, units in had.items():
            lies, owned = (ledger.Account(self.merchant, self.asset(symbol), one) for one in sides)
            movements.append(ledger.Movement(lies, owned, Units(units)))
        gas = ledger.Account(self.merchant, coin, purpose.FLOAT_WALLET)
        movements.append(ledger.Movement(gas, ledger.Account(ledger.PLATFORM, coin, purpose.FLOAT), Units(GAS)))
        posting = ledger.Posting(mode="live", kind="test_opened", reference=self.wallet.address, movements=movements)
        tokens = [self.token(symbol) for symbol in had]
        async with self.db.transaction() as conn:
            await ledger.post(conn, "live", [posting])
            await conn.exec_driver_sql(
                PAID_BEFORE,
                (
                    self.merchant,
                    self.wallet.pk,
                    [token.symbol for token in tokens],
                    [token.contract for token in tokens],
                    [token.decimals for token in tokens],
                    list(had.values()),
                ),
            )

    async def poll(self) -> None:
        for name in sorted(self.used):
            while (await self.watchers[name].poll()).behind:
                pass

    async def mine(self, blocks: int = 1, *, seconds: float = 2) -> None:
        for chain in self.routers.values():
            chain.mine(blocks)
        self.clock.advance(seconds)
        await self.poll()

    def asset_of(self, chain: str, symbol: str) -> Asset:
        info = self.registry.chains[chain]
        token = info.token(symbol)
        assert token is not None
        return Asset(info, token)

    async def ask(self, sold: str, units: int, bought: str, **more: Any) -> str:
        """Ask for an exchange, such as ``memory/USDX`` for ``other/USDX``; return its id."""
        prepared, offer = await self.offered(sold, units, bought, **more)
        txn_id = self.ids.new("xch")
        async with self.db.transaction() as conn:
            settings = await platform.load(conn)
            new = NewExchange(txn_id=txn_id, settings=settings, prepared=prepared, offer=offer)
            await start_exchange(conn, self.context, new)
        return txn_id

    async def offered(self, sold: str, units: int, bought: str, *, slippage_bps: int | None = None, **more: Any):
        self.used |= {one.partition("/")[0] for one in (sold, bought)}
        wish = Wish(
            source=self.asset_of(*sold.split("/")),
            units=Units(units),
            dest=self.asset_of(*bought.split("/")),
            slippage_bps=slippage_bps,
        )
        owner = Owner(project_pk=self.project, merchant_pk=self.merchant, mode="live", asked_by=AskedBy.KEY)
        async with self.db.transaction() as conn:
            settings = await platform.load(conn)
            prepared = await prepare(conn, self.context, settings, owner, wish, **{"made_for": MadeFor.MANUAL} | more)
        return prepared, await best_offer(self.context, settings, prepared.wish, prepared.terms)

    async def row(self, txn_id: str) -> ExchangeRow:
        async with self.db.autocommit() as conn:
            return exchange_row((await conn.execute(BY_TXN_ID, {"txn_id": txn_id})).one())

    async def tick(self, follower: ExchangeWorker | None = None) -> None:
        """Let engines and the follower do what there is to do, once."""
        for name in sorted(self.used):
            while (await self.engines[name].tick()).more:
                pass
        follower = follower or self.follower
        await reopen_orphaned(follower)
        for due in await claim_due(follower):
            await follow_exchange(follower, due)

    async def go_on(self, txn_id: str, *, until: str = "ended", rounds: int = 80, seconds: float = 3) -> ExchangeRow:
        """Let everything run side by side until the exchange has come to a step."""
        # Until nobody can fill a deposit any more, nothing happens but blocks.
        blocks = 10 if until == "refunding" else 1
        for _ in range(rounds):
            await self.tick()
            row = await self.row(txn_id)
            if row.step == until:
                return row
            await self.mine(blocks, seconds=max(seconds, 2 * blocks))
        raise AssertionError(f"still {await self.row(txn_id)}")

    async def balance_of(self, chain: str, symbol: str) -> ledger.Balance:
        asset = self.asset_of(chain, symbol)
        name = ledger.asset_key(chain, asset.token.contract)
        async with self.db.autocommit() as conn:
            found = await ledger.balances(conn, self.merchant, "live", name)
        return found[0] if found else ledger.Balance(asset=name)

    async def held(self, chain: str, symbol: str) -> int:
        """Return what the wallet holds on a chain, as the chain says."""
        return await self.routers[chain].balance(self.wallet.address, self.asset_of(chain, symbol).token)

    async def events(self) -> list[str]:
        async with self.db.autocommit() as conn:
            rows = await conn.exec_driver_sql("SELECT event FROM webhook_events ORDER BY id")
            return [name for name in rows.scalars() if name.startswith("exchange.")]

    async def set(self, **fields: Any) -> None:
        """Change the operator's settings, in the names of the JSON."""
        async with self.db.transaction() as conn:
            await platform.save(conn, self.registry, convert(fields, PlatformPatch), self.clock.now())

    async def allowance(self) -> int:
        """Return how much of USDX the router may take from the wallet on the first chain."""
        token = self.asset_of("memory", "USDX").token
        return await self.routers["memory"].allowance(self.wallet.address, ROUTER, token)

    async def credits_used(self) -> int:
        async with self.db.autocommit() as conn:
            found = await conn.exec_driver_sql(
                "SELECT coalesce(sum(CASE operation WHEN 'return' THEN -weight ELSE weight END), 0) FROM usage_records"
                " WHERE operation IN ('swap', 'bridge', 'return')"
            )
            return int(found.scalar_one())

    async def bridged(self, units: int = 60 * USDX, symbol: str = "USDX") -> tuple[str, BridgeDeposit]:
        """Bridge to the other chain until the deposit is final; return the exchange's id and the deposit."""
        txn_id = await self.ask(f"memory/{symbol}", units, f"other/{symbol}")
        row = await self.go_on(txn_id, until="filling")
        await self.tick()
        deposit = next(one for one in self.routers["memory"].deposits() if one.tx_id == row.tx_id)
        return txn_id, deposit

    async def check_all_books(self) -> None:
        """Compare the ledger with both chains, once nothing else is under way."""
        for _ in range(40):
            if await self.is_idle():
                break
            await self.tick()
            await self.mine()
        for name in sorted(self.used):
            self.chain, self.info = self.routers[name], self.routers[name].info
            await self.check_books()
        self.chain, self.info = self.routers["memory"], self.routers["memory"].info
