"""A sandbox project whose money is exchanged between simulated chains, and how it looks then."""

from __future__ import annotations

from typing import Any

from cambist.db.models import Exchange
from cambist.domain.exchanges import MadeFor
from cambist.domain.intents import AskedBy
from cambist.plugin import Units
from cambist.services import platform
from cambist.services.accounting.ledger import Account, Purpose, asset_key, lock_balances
from cambist.services.actor import Actor
from cambist.services.exchanges.context import ExchangeContext
from cambist.services.exchanges.create import prepare
from cambist.services.exchanges.offers import best_offer
from cambist.services.exchanges.owner import Owner
from cambist.services.exchanges.requests import Wish
from cambist.services.exchanges.rows import SELECT, ExchangeRow, exchange_row
from cambist.services.exchanges.starting import NewExchange, start_exchange
from cambist.services.pricing.quotes import Asset
from cambist.services.sandbox.requests import FailExchange
from tests.support.books import broken
from tests.support.payment_env import PaymentEnv

ONE = 1_000_000
MEM = 10**18
DEEP = 3


class ExchangeBooth:
    """A sandbox project that was paid 100 USDX, and what it exchanges. A MEM is worth three."""

    def __init__(self, payment_env: PaymentEnv) -> None:
        self.payment_env, self.db, self.clock = payment_env, payment_env.db, payment_env.clock
        self.sandbox, self.actor = payment_env.sandbox, payment_env.test
        self.context = ExchangeContext(
            registry=payment_env.registry,
            keys=payment_env.context.leaser._keys,
            clock=payment_env.clock,
            ids=payment_env.ids,
            rates=payment_env.rates,
        )

    async def earn(self, amount: str, actor: Actor | None = None, **fields: Any) -> None:
        actor = actor or self.actor
        payment = (await self.payment_env.create(actor, amount=amount, **fields)).payment
        await self.payment_env.deposit(payment.payment_id, actor, confirmations=DEEP)

    def asset_of(self, name: str) -> Asset:
        chain, symbol = name.split("/")
        info = self.payment_env.registry.chains[chain]
        return Asset(info, info.token(symbol))

    async def ask(
        self, sold: str, units: int, bought: str, *, actor: Actor | None = None, recipient: str | None = None
    ) -> str:
        """Ask for an exchange, such as ``memory/USDX`` for ``other/USDX``, without having it sent; return its id."""
        actor = actor or self.actor
        wish = Wish(source=self.asset_of(sold), units=Units(units), dest=self.asset_of(bought), slippage_bps=None)
        owner = Owner(project_pk=actor.project_pk, merchant_pk=actor.merchant_pk, mode=actor.mode, asked_by=AskedBy.KEY)
        async with self.db.transaction() as conn:
            settings = await platform.load(conn)
            made_for = MadeFor.MANUAL
            ready = await prepare(conn, self.context, settings, owner, wish, made_for=made_for, recipient=recipient)
        offer = await best_offer(self.context, settings, ready.wish, ready.terms)
        txn_id: str = self.payment_env.ids.new("xch")
        async with self.db.transaction() as conn:
            new = NewExchange(txn_id=txn_id, settings=settings, prepared=ready, offer=offer)
            await start_exchange(conn, self.context, new)
        return txn_id

    async def exchange(self, sold: str, units: int, bought: str, **more: Any) -> str:
        """Ask for an exchange as the API does, and have it sent at once."""
        txn_id = await self.ask(sold, units, bought, **more)
        project = (more.get("actor") or self.actor).project_pk
        await self.sandbox.send_queued(project, [sold.partition("/")[0]])
        return txn_id

    async def fail(self, txn_id: str, how: str = "revert", actor: Actor | None = None) -> ExchangeRow:
        return await self.sandbox.fail_exchange(actor or self.actor, FailExchange(txn_id=txn_id, how=how))

    async def row(self, txn_id: str) -> ExchangeRow:
        async with self.db.transaction() as conn:
            return exchange_row((await conn.execute(SELECT.where(Exchange.txn_id == txn_id))).one())

    async def state(self, txn_id: str) -> tuple[str, str]:
        row = await self.row(txn_id)
        return row.status, row.step

    async def mine(self, chain: str = "memory", blocks: int = DEEP) -> None:
        await self.payment_env.mine(blocks, chain)

    async def balance(self, name: str) -> dict[str, int]:
        chain, symbol = name.split("/")
        return await self.payment_env.balance(symbol, chain)

    async def lies(self, name: str) -> dict[str, int]:
        """Return where the merchant's money of a token lies, without the zeros."""
        asset = self.asset_of(name)
        key = asset_key(asset.chain.id, asset.token.contract)
        purposes = Purpose.CUSTODY_DEPOSITS, Purpose.CUSTODY_WALLET, Purpose.BETWEEN_CHAINS, Purpose.FLOAT_WALLET
        async with self.db.transaction() as conn:
            accounts = [Account(self.actor.merchant_pk, key, purpose) for purpose in purposes]
            found = await lock_balances(conn, "sandbox", accounts)
        return {str(account.purpose): -units for account, units in found.items() if units}

    async def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        async with self.db.autocommit() as conn:
            return [tuple(row) for row in await conn.exec_driver_sql(statement, values)]

    async def deposits(self, txn_id: str) -> list[tuple[Any, ...]]:
        """Return what was claimed for an exchange: role, units, and the deposit's own state."""
        return await self.rows(
            "SELECT p.role, p.units, d.chain, d.token, d.status, d.available_units FROM exchange_parts p"
            " JOIN exchanges e ON e.id = p.exchange_pk JOIN deposits d ON d.id = p.deposit_pk WHERE e.txn_id = $1",
            txn_id,
        )

    async def events(self) -> list[str]:
        rows = await self.rows("SELECT event FROM webhook_events WHERE event LIKE 'exchange.%' ORDER BY id")
        return [name for (name,) in rows]

    async def check_books(self) -> None:
        async with self.db.autocommit() as conn:
            assert await broken(conn) == {}
