"""A test environment for payments: a merchant with a live and two sandbox projects, without a web server."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from importlib.metadata import EntryPoint
from typing import Any

import msgspec

from cambist.db.engine import Database
from cambist.hints import Hints
from cambist.plugin import Price, PricePair, PriceSource
from cambist.registry import Registry
from cambist.secrets import SecretsBox
from cambist.services.accounting import ledger
from cambist.services.actor import Actor
from cambist.services.addresses.account_keys import AccountKeys, IndexLeaser, fill_stock
from cambist.services.addresses.macs import AddressMacs
from cambist.services.chain_pauses import ChainPauses
from cambist.services.chains.rules import TokenRules
from cambist.services.platform import PlatformSettingsCache
from cambist.services.pricing.prices import RateBook
from cambist.services.receiving.payments import create, read
from cambist.services.receiving.payments.create import Created, PaymentContext
from cambist.services.receiving.payments.requests import CreatePayment
from cambist.services.sandbox import Sandbox
from cambist.services.sandbox.requests import AdvanceTime, Deposit, Mine, Reorg
from cambist.settings import WebhookTargets
from cambist.signer.keystore import Keystore
from cambist.signer.local import KeystoreXpubs
from tests.support.new_merchants import add_merchant

KEYSTORE = Keystore(" ".join(["abandon"] * 11 + ["about"]))
CHAINS = {
    "memory": {
        "chains": {
            "memory": {},
            "other": {},
            "simulated": {"availability": "simulated"},
            "unconfigured": {"availability": "unconfigured"},
        }
    },
    "evm": {"chains": {"bsc": {"simulated": True}}},
}


def registry(tables: Mapping[str, object] = CHAINS) -> Registry:
    """Enable the chain in memory and the EVM plugin as an operator does."""
    values = {"memory": "cambist.testing.memory.plugin", "evm": "cambist_evm.plugin"}
    found = [EntryPoint(name=name, value=value, group="cambist.plugins") for name, value in values.items()]
    return Registry(tables, found=found)


class Prices(PriceSource):
    """A source that says what the test says; None for a token means that it has no price now."""

    name = "board"

    def __init__(self, clock) -> None:
        self.clock = clock
        self.board: dict[PricePair, str] = {("USDX", "usd"): "1", ("MEM", "usd"): "3", ("USDT", "eur"): "0.92"}

    async def prices(self, pairs: Collection[PricePair]) -> Mapping[PricePair, Price]:
        return {
            pair: Price(value=Decimal(self.board[pair]), observed_at=self.clock.now())
            for pair in pairs
            if pair in self.board
        }


def _actor(merchant: int, project: int, project_id: str, mode: str) -> Actor:
    return Actor(merchant_pk=merchant, merchant_id="mer_1", project_pk=project, project_id=project_id, mode=mode)


class PaymentEnv:
    """Makes and reads payments, for the live project unless another actor is named."""

    def __init__(self, db: Database, clock, ids, chains: Registry | None = None) -> None:
        self.db, self.clock, self.ids = db, clock, ids
        self.registry = chains or registry()
        self.prices = Prices(clock)
        self.rates = RateBook([self.prices], clock)
        box = SecretsBox([bytes(32)], ids.random_bytes)
        self.box, keys = box, AccountKeys(box)
        self.macs = AddressMacs(box)
        self.context = PaymentContext(
            db=db,
            registry=self.registry,
            pauses=ChainPauses(db, clock),
            token_rules=TokenRules(),
            rates=self.rates,
            leaser=IndexLeaser(db, keys, clock),
            platform=PlatformSettingsCache(db, clock),
            clock=clock,
            ids=ids,
            macs=self.macs,
            targets=WebhookTargets(allow_private=False, allow_http=True),
        )
        self.sandbox = Sandbox(db=db, registry=self.registry, clock=clock, ids=ids, hints=Hints(None), macs=self.macs)

    async def open(self) -> PaymentEnv:
        coin_types = {family.coin_type for family in self.registry.families.values()}
        await fill_stock(self.db, KeystoreXpubs(KEYSTORE), self.box, coin_types=coin_types, stock=2)
        named = [("prj_live", "live"), ("prj_test", "sandbox"), ("prj_test2", "sandbox")]
        merchant, projects = await add_merchant(self.db, "mer_1", named)
        pairs = zip(projects, named, strict=True)
        self.live, self.test, self.test2 = (_actor(merchant, pk, name, mode) for pk, (name, mode) in pairs)
        return self

    async def merchant(self, merchant_id: str) -> int:
        return (await add_merchant(self.db, merchant_id, []))[0]

    async def project(self, merchant: int, project_id: str, mode: str) -> Actor:
        async with self.db.transaction() as conn:
            row = await conn.exec_driver_sql(
                "INSERT INTO projects (project_id, merchant_pk, name, mode, payment_webhook_url)"
                " VALUES ($1, $2, 'Shop', $3, 'https://shop.example/hook') RETURNING id",
                (project_id, merchant, mode),
            )
            return _actor(merchant, row.scalar_one(), project_id, mode)

    async def change_project(self, actor: Actor, **columns: Any) -> None:
        async with self.db.transaction() as conn:
            for name, value in columns.items():
                statement = f"UPDATE projects SET {name} = $1 WHERE id = $2"  # noqa: S608  the test's own column
                await conn.exec_driver_sql(statement, (value, actor.project_pk))

    async def create(self, actor: Actor | None = None, header_key: str | None = None, **fields: Any) -> Created:
        """Make a payment of 10 USDX on the chain in memory, unless told otherwise in the names of the JSON."""
        body = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "10", **fields}
        request = msgspec.convert(body, CreatePayment)
        return await create.create_payment(self.context, actor or self.live, request, header_key)

    async def read(self, payment_id: str, actor: Actor | None = None) -> read.PaymentDetail:
        async with self.db.autocommit() as conn:
            return await read.get_payment(conn, (actor or self.live).project_pk, payment_id, self.macs)

    async def count(self, table: str) -> int:
        async with self.db.autocommit() as conn:
            found: int = (await conn.exec_driver_sql(f"SELECT count(*) FROM {table}")).scalar_one()  # noqa: S608  its own
        return found

    async def deposit(self, payment_id: str, actor: Actor | None = None, **fields: Any):
        request = msgspec.convert({"paymentId": payment_id, **fields}, Deposit)
        return await self.sandbox.deposit(actor or self.test, request)

    async def mine(self, blocks: int = 1, chain: str = "memory"):
        return await self.sandbox.mine(self.test, Mine(chain=chain, blocks=blocks))

    async def reorg(self, depth: int, transactions: str = "drop", chain: str = "memory"):
        return await self.sandbox.reorg(self.test, Reorg(chain=chain, depth=depth, transactions=transactions))

    async def advance(self, seconds: int, chain: str | None = None):
        return await self.sandbox.advance_time(self.test, AdvanceTime(seconds=seconds, chain=chain))

    async def events(self, payment_id: str) -> Sequence[str]:
        async with self.db.autocommit() as conn:
            rows = await conn.exec_driver_sql(
                "SELECT event FROM webhook_events WHERE resource_id = $1 ORDER BY id", (payment_id,)
            )
            return [row.event for row in rows]

    async def data(self, payment_id: str) -> dict[str, Any]:
        """Return the data of the newest event of a payment."""
        async with self.db.autocommit() as conn:
            row = await conn.exec_driver_sql(
                "SELECT body FROM webhook_events WHERE resource_id = $1 ORDER BY id DESC LIMIT 1", (payment_id,)
            )
            data: dict[str, Any] = msgspec.json.decode(row.scalar_one())["data"]
        return data

    async def balance(self, symbol: str, chain: str = "memory") -> dict[str, int]:
        """Return the merchant's sandbox balance of a token, without the zeros."""
        token = self.registry.chains[chain].token(symbol)
        assert token is not None
        async with self.db.transaction() as conn:
            found = await ledger.balances(
                conn, self.test.merchant_pk, "sandbox", ledger.asset_key(chain, token.contract)
            )
        fields = msgspec.structs.asdict(found[0]) if found else {}
        return {name: value for name, value in fields.items() if name != "asset" and value}
