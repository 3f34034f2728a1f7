"""A merchant whose money really moves on a chain in memory: paid by customers, collected, and sent on by the engine."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, Self

from cambist.db.engine import Database
from cambist.domain.branches import PERMANENT_BRANCH
from cambist.domain.intents import AskedBy, IntentKind
from cambist.domain.payouts import Limits
from cambist.hints import Hints
from cambist.plugin import Chain, LendingChain, Token
from cambist.registry import Registry
from cambist.secrets import SecretsBox
from cambist.services.accounting import ledger
from cambist.services.actor import Actor
from cambist.services.addresses.account_keys import AccountKeys, fill_stock, register_gas_stations
from cambist.services.addresses.wallets import main_wallet
from cambist.services.chain_pauses import ChainPauses
from cambist.services.chain_scope import ChainScope
from cambist.services.intent_handlers import intent_handlers
from cambist.services.payouts import queue
from cambist.services.payouts.cancel import ask_to_cancel
from cambist.services.payouts.queue import NewPayout
from cambist.services.platform import PlatformSettings
from cambist.services.pricing.prices import RateBook
from cambist.services.receiving.deposits import AddressCache, Watcher
from cambist.services.sending.context import EngineContext
from cambist.services.sending.engine import Engine
from cambist.settings import OutboundSettings
from cambist.signer.keystore import Keystore
from cambist.signer.local import LocalSigner
from cambist.signer.reading import Reader
from cambist.signer.rules import Rules
from cambist.signer.store import Store
from cambist.testing.memory import MemoryChain
from tests.support.new_merchants import add_merchant
from tests.support.payment_env import KEYSTORE, Prices, registry
from tests.support.plays import begin, play

RICH = 10**20
REMEMBERED = ("station", "merchant", "project", "wallet", "alerts", "_index")


class Treasury:
    """One merchant on one chain. ``engine()`` makes an engine; several may run side by side."""

    def __init__(
        self,
        db: Database,
        clock,
        ids,
        folder,
        *,
        chain: Chain | None = None,
        chains: Registry | None = None,
        rules: Rules | None = None,
        settings: OutboundSettings | None = None,
        keystore: Keystore = KEYSTORE,
        stock: int = 3,
        box: SecretsBox | None = None,
    ) -> None:
        """``box`` is what encrypts keys where somebody else reads them as well."""
        self.db, self.clock, self.ids = db, clock, ids
        self.registry = chains or registry()
        self.chain = chain or MemoryChain(self.registry.chains["memory"])
        self.info = self.chain.info
        self.family = self.registry.families[self.info.family]
        self.settings = settings or OutboundSettings(rebroadcast_s=5, stuck_after_s=60, collect_interval_ms=100)
        self.keystore, self.stock = keystore, stock
        self.folder = folder
        self.rules = rules or Rules()
        self.prices = Prices(clock)
        self.prices.board |= {("USDX", "usd"): "1", ("DAIX", "usd"): "1", ("MEM", "usd"): "3"}
        self._shares_keys = box is not None
        self.box = box or SecretsBox([bytes(32)], ids.random_bytes)
        self._remember_nothing()
        self.platform = PlatformSettings()
        self.alerts: Counter[str] = Counter()
        self._stack = AsyncExitStack()
        self._index = 0

    def _remember_nothing(self) -> None:
        """Make anew what keeps in memory what it has read."""
        self.rates = RateBook([self.prices], self.clock)
        self.keys = AccountKeys(self.box)
        self.pauses = ChainPauses(self.db, self.clock)
        self.address_cache = AddressCache(self.db, self.family, "live")
        self.watcher = Watcher(
            db=self.db, chain=self.chain, family=self.family, address_cache=self.address_cache, scope=0, mode="live",
            clock=self.clock, ids=self.ids, hints=Hints(None),
        )  # fmt: skip

    def _sign(self) -> None:
        self.signer = LocalSigner(
            self.keystore,
            Reader(self.keystore, self.registry.families, self.registry.chains),
            rules=self.rules,
            store=Store(self.folder),
            clock=self.clock,
        )
        self._stack.push_async_callback(self.signer.aclose)

    async def __aenter__(self) -> Self:
        self._sign()
        coin_types = frozenset(family.coin_type for family in self.registry.families.values())
        if self._shares_keys:
            await self._stock_up(coin_types)
        else:
            await begin(self, self._stock_up, coin_types, self.family.name, self.keystore, self.stock)
        return self

    async def _stock_up(self, coin_types: frozenset[int], *_: object) -> None:
        await fill_stock(self.db, self.signer, self.box, coin_types=coin_types, stock=self.stock)
        async with self.db.transaction() as conn:
            await register_gas_stations(conn, self.keys, [self.family])
            self.station = (
                await conn.exec_driver_sql(
                    "SELECT address FROM addresses WHERE purpose = 'gas' AND mode = 'live' AND family = $1",
                    (self.family.name,),
                )
            ).scalar_one()
        self.merchant, self.project = await self.new_merchant("mer_1")
        async with self.db.transaction() as conn:
            self.wallet = await main_wallet(conn, self.keys, self.family, self.merchant, "live")

    def known(self) -> bytes:
        """Return all that ``go_on`` goes on with, and what else decides how it does."""
        made_of = (type(self), self.rules, self.settings, self.platform, self.prices.board)
        return pickle.dumps((made_of, self.chain, self.remembered()))

    def remembered(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in REMEMBERED}

    def go_on(self, known: bytes) -> None:
        """Go on as if the gateway had been restarted when this was known."""
        _, self.chain, remembered = pickle.loads(known)  # noqa: S301  of our own
        vars(self).update(remembered)
        self._remember_nothing()
        self._sign()

    @property
    def actor(self) -> Actor:
        return Actor(
            merchant_pk=self.merchant,
            merchant_id="mer_1",
            project_pk=self.project,
            project_id="prj_mer_1",
            mode="live",
        )

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def new_merchant(self, merchant_id: str) -> tuple[int, int]:
        merchant, (project,) = await add_merchant(self.db, merchant_id, [(f"prj_{merchant_id}", "live")])
        return merchant, project

    def token(self, symbol: str) -> Token:
        token = self.info.token(symbol)
        assert token is not None
        return token

    def asset(self, symbol: str) -> str:
        return ledger.asset_key(self.info.id, self.token(symbol).contract)

    def engine(self, settings: OutboundSettings | None = None) -> Engine:
        context = EngineContext(
            db=self.db,
            chain=self.chain,
            family=self.family,
            signer=self.signer,
            pauses=self.pauses,
            rates=self.rates,
            clock=self.clock,
            ids=self.ids,
            handlers=intent_handlers(self.ids),
            settings=settings or self.settings,
            chain_scope=ChainScope(info=self.info, scope=0, mode="live"),
            alerts=self.alerts,
        )
        return Engine(context, self.keys)

    async def stranger(self, number: int) -> str:
        """Return an address that is nobody's of ours."""
        xpub = await self.signer.account_xpub("sandbox", self.family.coin_type, 9)
        return self.family.derive_address(xpub, 0, number)

    async def deposit_address(self, merchant: int | None = None) -> str:
        """Hand out a one-time address, without a payment: what arrives is held, until it is released."""
        merchant = merchant or self.merchant
        async with self.db.autocommit() as conn:
            key = await self.keys.get(conn, merchant, "live", self.family.coin_type)
            self._index += 1
            address = self.family.derive_address(key.xpub, 0, self._index)
            await conn.exec_driver_sql(
                "INSERT INTO addresses (mode, family, address, merchant_pk, account_index, change, address_index)"
                " VALUES ('live', $1, $2, $3, $4, 0, $5)",
                (self.family.name, address, merchant, key.account_index, self._index),
            )
        return address

    async def permanent_address(self, merchant: int | None = None) -> str:
        """Give an end user of the merchant's an address for ever."""
        merchant = merchant or self.merchant
        async with self.db.transaction() as conn:
            key = await self.keys.get(conn, merchant, "live", self.family.coin_type)
            self._index += 1
            address = self.family.derive_address(key.xpub, PERMANENT_BRANCH, self._index)
            account = await conn.exec_driver_sql(
                "INSERT INTO accounts (account_id, public_id, project_pk, merchant_pk, mode, external_id)"
                " VALUES ('acc_' || $1::text, 'pub_' || $1, $2, $3, 'live', $1) RETURNING id",
                (str(self._index), self.project, merchant),
            )
            path = (key.account_index, PERMANENT_BRANCH, self._index)
            await conn.exec_driver_sql(
                "INSERT INTO addresses (mode, family, address, merchant_pk, account_index, change, address_index,"
                " purpose, account_pk) VALUES ('live', $1, $2, $3, $4, $5, $6, 'account', $7)",
                (self.family.name, address, merchant, *path, account.scalar_one()),
            )
        return address

    async def poll(self) -> None:
        polled = await self.watcher.poll()
        while polled.behind:
            polled = await self.watcher.poll()

    async def mine(self, blocks: int = 1, *, seconds: float = 2) -> None:
        self.chain.mine(blocks)
        self.clock.advance(seconds)
        await self.poll()

    async def open(self, *, station: int = RICH) -> None:
        """Fund the gas station, and read the chain for the first time."""
        if station:
            self.chain.transfer(self.info.native, self.station, station)
        await self.mine()

    async def open_paid(self, *payments: tuple[str, int]) -> None:
        """Open it, and have customers pay so much of each of these tokens."""
        await self.open()
        for symbol, units in payments:
            await self.receive(symbol, units)

    async def receive(self, symbol: str, units: int, *, merchant: int | None = None) -> str:
        """Have a customer pay to a fresh address until it is confirmed and spendable; return the address."""
        address = await self.deposit_address(merchant)
        self.chain.transfer(self.token(symbol), address, units)
        await self.mine(1 + self.info.confirmations)
        await self.release(symbol, units, merchant or self.merchant)
        return address

    async def release(self, symbol: str, units: int, merchant: int) -> None:
        accounts = [
            ledger.Account(merchant, self.asset(symbol), purpose)
            for purpose in (ledger.Purpose.HELD, ledger.Purpose.AVAILABLE)
        ]
        posting = ledger.Posting(
            mode="live",
            kind="test_release",
            reference=self.ids.new("rel"),
            movements=[ledger.Movement(accounts[0], accounts[1], units)],
        )
        async with self.db.autocommit() as conn:
            await ledger.post(conn, "live", [posting])

    async def pay_out(self, symbol: str, units: int, to_address: str, **more) -> str:
        return (await self.pay_out_many(symbol, [(to_address, units)], **more))[0]

    async def pay_out_many(
        self,
        symbol: str,
        wanted: Sequence[tuple[str, int]],
        *,
        kind: IntentKind = IntentKind.PAYOUT,
        asked_by: AskedBy = AskedBy.KEY,
        to_tag: str | None = None,
        merchant: int | None = None,
        project: int | None = None,
    ) -> Sequence[str]:
        context = queue.PayoutContext(registry=self.registry, keys=self.keys, clock=self.clock, ids=self.ids)
        payouts = [
            NewPayout(
                kind=kind,
                payout_id=self.ids.new("po"),
                project_pk=project or self.project,
                merchant_pk=merchant or self.merchant,
                mode="live",
                chain=self.info,
                token=self.token(symbol),
                to_address=to_address,
                to_tag=to_tag,
                units=units,
                asked_by=asked_by,
            )
            for to_address, units in wanted
        ]
        allowed = Limits(least=payouts[0].token.least_units)  # as a request says that has judged them before
        async with self.db.transaction() as conn:
            await queue.debit_and_queue(conn, context, self.platform, payouts, allowed)
        return [one.payout_id for one in payouts]

    async def cancel(self, payout_id: str, asked_by: AskedBy = AskedBy.SESSION) -> bool:
        """Ask to cancel a payout; return whether nobody had before. Raises ConflictError."""
        async with self.db.transaction() as conn:
            asked = await ask_to_cancel(conn, payout_id, asked_by, self.clock.now())
        return not asked.before

    async def work(self, engine: Engine, *, rounds: int = 40, until: str = "idle") -> None:
        """Let engine and chain run side by side, until nothing waits or is under way any more."""
        for _ in range(rounds):
            tick = await engine.tick()
            while tick.more:
                tick = await engine.tick()
            if until == "idle" and not tick.follows and await self.is_idle():
                return
            await self.mine()
        assert until != "idle", f"still open: {await self.open_intents()}"

    async def is_idle(self) -> bool:
        return not await self.open_intents()

    async def open_intents(self) -> Sequence[tuple[str, str, str | None]]:
        async with self.db.autocommit() as conn:
            rows = await conn.exec_driver_sql(
                "SELECT kind, state, reason FROM outbound_intents WHERE state IN ('waiting', 'sending') ORDER BY id"
            )
            return [tuple(row) for row in rows]

    async def ready(self) -> Engine:
        """Have the wallet hold money and gas, as it does in everyday life; return an engine."""
        await play(self, Treasury.pay_somebody)
        engine = self.engine()
        await engine.tick()
        return engine

    async def pay_somebody(self) -> None:
        await self.pay_out("USDX", 1, await self.stranger(999))
        await self.work(self.engine())

    async def payout(self, payout_id: str):
        async with self.db.autocommit() as conn:
            return (await conn.exec_driver_sql("SELECT * FROM payouts WHERE payout_id = $1", (payout_id,))).one()

    async def balance(self, symbol: str, merchant: int | None = None) -> ledger.Balance:
        async with self.db.autocommit() as conn:
            found = await ledger.balances(conn, merchant or self.merchant, "live", self.asset(symbol))
        return found[0] if found else ledger.Balance(asset=self.asset(symbol))

    async def on_chain(self, address: str, symbol: str) -> int:
        return await self.chain.balance(address, self.token(symbol))

    async def forget_sending(self, payout_id: str) -> None:
        """Have the database be as it was before a payout was signed: it is out of a backup."""
        async with self.db.transaction() as conn:
            intent_pk = (await self.payout(payout_id)).intent_pk
            for statement in (
                "DELETE FROM outbound_txs t USING outbound_slots s WHERE t.slot_pk = s.id AND s.intent_pk = $1",
                "DELETE FROM outbound_slots WHERE intent_pk = $1",
                "UPDATE outbound_intents SET state = 'waiting' WHERE id = $1",
                "UPDATE payouts SET status = 'requested', tx_id = NULL WHERE intent_pk = $1",
            ):
                await conn.exec_driver_sql(statement, (intent_pk,))
            await conn.exec_driver_sql("UPDATE outbound_senders SET next_sequence = mined_sequence")

    async def post_forgotten(self) -> None:
        """Let a person book what the main wallet sent and the database forgot: the payment and its fee."""
        async with self.db.transaction() as conn:
            native = self.info.native.symbol
            for symbol, purpose in ((native, ledger.Purpose.FLOAT_WALLET), ("USDX", ledger.Purpose.CUSTODY_WALLET)):
                account = ledger.Account(self.merchant, self.asset(symbol), purpose)
                suspense = ledger.Account(ledger.PLATFORM, self.asset(symbol), ledger.Purpose.SUSPENSE)
                books = -(await ledger.lock_balances(conn, "live", [account]))[account]
                units = books - await self.on_chain(self.wallet.address, symbol)
                movements = [ledger.Movement(suspense, account, units)]
                posting = ledger.Posting(mode="live", kind="test_booked", reference=symbol, movements=movements)
                await ledger.post(conn, "live", [posting])

    async def check_books(self) -> None:
        """Compare what the ledger says lies on addresses of ours with the chain, group by group."""
        async with self.db.autocommit() as conn:
            everybodys = list(
                await conn.exec_driver_sql("SELECT mode, merchant_pk, asset, purpose, balance FROM ledger_accounts")
            )
            addresses = list(
                await conn.exec_driver_sql(
                    "SELECT address, purpose, merchant_pk FROM addresses WHERE mode = 'live' AND family = $1",
                    (self.family.name,),
                )
            )
        assert sum(row.balance for row in everybodys) == 0
        accounts = [row for row in everybodys if row.mode == "live" and row.purpose.startswith(("custody", "float_"))]
        groups = {
            "payment": "deposits",
            "account": "deposits",
            "wallet": "wallet",
            "gas": "gas",
            "custody_staked": "gas",
        }
        for token in self.info.tokens:
            asset = ledger.asset_key(self.info.id, token.contract)
            chain: Counter[tuple[int | None, str]] = Counter()
            books: Counter[tuple[int | None, str]] = Counter()
            for row in addresses:
                chain[row.merchant_pk, groups[row.purpose]] += await self.chain.balance(row.address, token)
                if token.is_native and row.purpose == "gas" and isinstance(self.chain, LendingChain):
                    chain[row.merchant_pk, "gas"] += (await self.chain.stake(row.address)).total
            for row in accounts:
                if row.asset == asset:
                    group = groups.get(row.purpose, row.purpose.partition("_")[2])
                    books[row.merchant_pk, group] -= int(row.balance)
            assert +chain == +books, token.symbol
            assert all(units >= 0 for units in books.values()), token.symbol
