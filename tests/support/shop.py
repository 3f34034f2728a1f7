"""A merchant whose payments are rows: what tests of the chain side start from, without a web server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import msgspec

from cambist.bootstrap import Gateway
from cambist.db.engine import Database
from cambist.hints import Hints
from cambist.plugin import AddressFamily, Chain
from cambist.services.accounting import ledger
from cambist.services.chain_pauses import ChainPauses
from cambist.services.receiving.deposits import AddressCache, PollResult, Watcher
from cambist.testing.memory import MemoryChain


def memory_of(gateway: Gateway, chain: str = "memory") -> MemoryChain:
    """Return the chain in memory that a worker is connected to."""
    connected = gateway.connections.chains[chain].connected
    assert isinstance(connected, MemoryChain)
    return connected


class Shop:
    """One merchant with one project, paid on chains of one family."""

    def __init__(self, db: Database, family: AddressFamily, clock, ids) -> None:
        self.db, self.family, self.clock, self.ids = db, family, clock, ids
        self.address_cache = AddressCache(db, family, "live")
        self.pauses = ChainPauses(db, clock)
        self.addresses = 0
        self.extended_events = False

    async def open(self) -> Shop:
        async with self.db.transaction() as conn:
            self.merchant = (
                await conn.exec_driver_sql(
                    "INSERT INTO merchants (merchant_id, email, name)"
                    " VALUES ('mer_1', 'shop@example.com', 'Shop') RETURNING id"
                )
            ).scalar_one()
            self.project = (
                await conn.exec_driver_sql(
                    "INSERT INTO projects (project_id, merchant_pk, name, mode, payment_webhook_url, extended_events)"
                    " VALUES ('prj_1', $1, 'Shop', 'live', 'https://shop.example/hook', $2) RETURNING id",
                    (self.merchant, self.extended_events),
                )
            ).scalar_one()
        return self

    async def until_others_end(self) -> None:
        """Wait until all transactions that are open on this server, those of other tests as well, are over.

        What is only true of transactions that surely ended, as what a saved filter holds, is known after that.
        """
        async with self.db.autocommit() as conn, asyncio.timeout(60):
            newest = (await conn.exec_driver_sql("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")).scalar_one()
            over = "SELECT pg_snapshot_xmin(pg_current_snapshot()) >= $1::text::xid8"
            while not (await conn.exec_driver_sql(over, (newest,))).scalar_one():  # noqa: ASYNC110  the server knows
                await asyncio.sleep(0.02)

    def watcher(self, chain: Chain) -> Watcher:
        return Watcher(
            db=self.db,
            chain=chain,
            family=self.family,
            address_cache=self.address_cache,
            scope=0,
            mode="live",
            clock=self.clock,
            ids=self.ids,
            hints=Hints(None),
        )

    async def poll(self, watcher: Watcher) -> PollResult:
        """Look until the head is reached and judged."""
        polled = await watcher.poll()
        while polled.behind:
            polled = await watcher.poll()
        return polled

    async def payment(
        self, chain: Chain, symbol: str, expected: int, *, fiat: bool = False, minutes: int = 60, tolerance_bps: int = 0
    ) -> str:
        """Insert a payment, and return its address."""
        token = chain.info.token(symbol)
        assert token is not None
        index, self.addresses = self.addresses, self.addresses + 1
        address = self.family.derive_address("xpubOfTheShopsAccount", 0, index)
        now = self.clock.now()
        async with self.db.transaction() as conn:
            row = (
                await conn.exec_driver_sql(
                    "INSERT INTO payments (payment_id, public_id, project_pk, merchant_pk, mode, chain, scope, token,"
                    " contract, decimals, address, pricing_mode, amount, fiat_currency, exchange_rate, expected_units,"
                    " required_confirmations, grace_s, tolerance_bps, expires_at, created_at, updated_at, address_mac)"
                    " VALUES ($1, $2, $3, $4, 'live', $5, 0, $6, $7, $8, $9, $10, 1, $11, $12::numeric, $13, $14, $15,"
                    " $16, $17, $18, $18, '') RETURNING id",
                    (
                        f"pay_{index}",
                        f"pub_{index}",
                        self.project,
                        self.merchant,
                        chain.info.id,
                        symbol,
                        token.contract,
                        token.decimals,
                        address,
                        "fiat" if fiat else "direct_crypto",
                        "usd" if fiat else None,
                        1 if fiat else None,
                        expected,
                        chain.info.confirmations,
                        0 if fiat else 86_400,
                        tolerance_bps,
                        now + timedelta(minutes=minutes),
                        now,
                    ),
                )
            ).scalar_one()
            await conn.exec_driver_sql(
                "INSERT INTO addresses (mode, family, address, merchant_pk, payment_pk, account_index, change,"
                " address_index) VALUES ('live', $1, $2, $3, $4, 1, 0, $5)",
                (self.family.name, address, self.merchant, row, index),
            )
        return address

    async def status(self, address: str) -> tuple[str, int]:
        """Return a payment's status and what it received."""
        async with self.db.transaction() as conn:
            row = (
                await conn.exec_driver_sql("SELECT status, received_units FROM payments WHERE address = $1", (address,))
            ).one()
        return row.status, int(row.received_units)

    async def events(self, address: str) -> Sequence[tuple[str, str]]:
        """Return what the merchant was told about a payment: event and receivedAmount, in order."""
        async with self.db.transaction() as conn:
            rows = await conn.exec_driver_sql(
                "SELECT w.event, w.body FROM webhook_events w JOIN payments p ON p.payment_id = w.resource_id"
                " WHERE p.address = $1 ORDER BY w.id",
                (address,),
            )
            return [(row.event, msgspec.json.decode(row.body)["data"]["receivedAmount"]) for row in rows]

    async def balance(self, asset: str) -> dict[str, int]:
        """Return the merchant's balance of an asset, without the zeros."""
        async with self.db.transaction() as conn:
            found = await ledger.balances(conn, self.merchant, "live", asset)
        fields = msgspec.structs.asdict(found[0]) if found else {}
        return {name: value for name, value in fields.items() if name != "asset" and value}

    async def check_books(self) -> None:
        """Check that the ledger sums to zero, and that custody holds what confirmed deposits brought."""
        async with self.db.transaction() as conn:
            total = (await conn.exec_driver_sql("SELECT coalesce(sum(balance), 0) FROM ledger_accounts")).scalar_one()
            assert total == 0
            rows = await conn.exec_driver_sql(
                "SELECT a.asset, -a.balance AS custody, coalesce((SELECT sum(units) FROM deposits d WHERE"
                " d.status = 'confirmed' AND d.chain || '/' || coalesce(d.contract, 'native') = a.asset), 0) AS brought"
                " FROM ledger_accounts a WHERE a.purpose = 'custody_deposits'"
            )
            for row in rows:
                assert row.custody == row.brought, row.asset
