"""A checkout that serves: real payments on a chain in memory, behind the real web server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import EntryPoint
from typing import Any

from granian.constants import Interfaces
from granian.server.embed import Server
from litestar import Litestar
from litestar.di import Provide

from cambist.db.engine import Database
from cambist.embedded.processes import free_port
from cambist.hints import Hints
from cambist.plugin import Token
from cambist.registry import GROUP, Registry
from cambist.secrets import SecretsBox
from cambist.services.addresses.macs import AddressMacs
from cambist.services.receiving.deposits import Watcher
from cambist.testing.memory import MemoryChain, MemoryFamily, memory_chain_info
from cambist_web.checkout.live import Checkout
from cambist_web.checkout.routes import CheckoutPages, asset_file, checkout_of, close, provide_checkout
from cambist_web.checkout.streams import CheckoutOptions
from tests.support.account_rows import insert_account
from tests.support.shop import Shop

QUICK = CheckoutOptions(poll_open_s=0.1, poll_late_s=0.1)
STOP_S = 60


class CheckoutEnv:
    """A shop on one chain in memory, and what its customers do."""

    def __init__(self, db: Database, clock: Any, ids: Any) -> None:
        self.db, self.clock = db, clock
        self.shop = Shop(db, MemoryFamily(), clock, ids)
        self.chain = MemoryChain(memory_chain_info(), genesis_time=int(clock.now().timestamp()) - 600)
        self.hints = Hints(None)
        self.macs = AddressMacs(SecretsBox([bytes(32)], ids.random_bytes))
        self.watcher: Watcher

    async def open(self) -> CheckoutEnv:
        await self.shop.open()
        self.watcher = self.shop.watcher(self.chain)
        await self.shop.poll(self.watcher)
        return self

    def token(self, symbol: str = "USDX") -> Token:
        token = self.chain.info.token(symbol)
        assert token is not None
        return token

    async def payment(self, expected: int, symbol: str = "USDX", **columns: Any) -> tuple[str, str]:
        """Ask for so many units, with columns of the row as named, and return public id and address."""
        address = await self.shop.payment(self.chain, symbol, expected)
        public_id = f"pub_{self.shop.addresses - 1}"
        await self.prove(public_id)
        for name, value in columns.items():
            await self.change(public_id, name, value)
        return public_id, address

    async def change(self, public_id: str, column: str, value: Any) -> None:
        async with self.db.transaction() as conn:
            await conn.exec_driver_sql(f"UPDATE payments SET {column} = $1 WHERE public_id = $2", (value, public_id))  # noqa: S608  names are the tests' own
        await self.prove(public_id)

    async def prove(self, public_id: str) -> None:
        """Make the proof of the payment's address, as the gateway does when it derives one."""
        async with self.db.transaction() as conn:
            found = await conn.exec_driver_sql("SELECT * FROM payments WHERE public_id = $1", (public_id,))
            mac = self.macs.of(found.mappings().one())
            await conn.exec_driver_sql("UPDATE payments SET address_mac = $1 WHERE public_id = $2", (mac, public_id))

    async def account(self, chains: Sequence[str] = ("memory",), name: str = "7") -> tuple[str, str]:
        """Make an account that takes deposits on these chains, and return public id and address."""
        return await insert_account(
            self.db,
            self.macs,
            self.shop.family,
            project_pk=self.shop.project,
            chains=list(chains),
            now=self.clock.now(),
            name=name,
        )

    async def rename(self, name: str) -> None:
        async with self.db.transaction() as conn:
            await conn.exec_driver_sql("UPDATE projects SET name = $1", (name,))

    async def send(self, address: str, units: int, *, blocks: int = 1, symbol: str = "USDX") -> str:
        """Pay, mine so many blocks now, and let the gateway see it."""
        tx_id = self.chain.transfer(self.token(symbol), address, units)
        await self.mine(blocks)
        return tx_id

    async def mine(self, blocks: int = 1) -> None:
        self.chain.mine(blocks, time=int(self.clock.now().timestamp()))
        await self.shop.poll(self.watcher)

    def checkout(self, options: CheckoutOptions = QUICK) -> Checkout:
        entry_point = EntryPoint(name="memory", value="cambist.testing.memory.plugin", group=GROUP)
        registry = Registry({"memory": {}}, found=[entry_point])
        return Checkout(
            db=self.db, registry=registry, clock=self.clock, hints=self.hints, macs=self.macs, options=options
        )


def checkout_app(checkout: Checkout) -> Litestar:
    """Return an app of nothing but the customer's pages."""
    app = Litestar(
        [CheckoutPages, asset_file],
        dependencies={"checkout": Provide(provide_checkout, sync_to_thread=False)},
        on_shutdown=[close],
        openapi_config=None,
    )
    app.state.checkout = checkout
    return app


@asynccontextmanager
async def serving(app: Litestar) -> AsyncIterator[str]:
    """Serve on loopback with the server that operators run, and yield the address."""
    port = free_port()
    server = Server(app, address="127.0.0.1", port=port, interface=Interfaces.ASGI, log_enabled=False)
    task = asyncio.create_task(server.serve())
    await _until_open(port)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        # The server waits for open requests before it tells the app to shut down, so streams are ended first.
        checkout_of(app).close()
        if (live := app.state.get("live")) is not None:
            live.close()
        server.stop()
        await asyncio.wait_for(task, STOP_S)


async def _until_open(port: int) -> None:
    for _ in range(200):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise AssertionError("the server does not answer")
