"""A gateway whose chains in memory run contracts, with prices, and providers that offer whatever a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import EntryPoint

import httpx
import msgspec
from msgspec import structs

from cambist.bootstrap import Gateway
from cambist.plugin import ExchangeRequest, Quote, SwapProvider
from cambist.ports import Clock, Ids
from cambist.registry import GROUP, Registry
from cambist.services.accounting.ledger import Account, Movement, Posting, Purpose, asset_key, make_accounts, post
from cambist.settings import ExchangeSettings

from .fair import FairBridge, FairService, FairSwaps
from .web import ADMIN_KEY, MEMORY, Merchant, memory_gateway, web_settings

PRICES = EntryPoint("prices", "cambist_prices.plugin", GROUP)
BOARD = {"MEM": {"usd": "2"}, "USDX": {"usd": "1"}, "DAIX": {"usd": "1"}}
"""So that the two DAIX which a fair provider gives for one MEM are what it is worth."""
CHAINS = {
    "memory": {},
    "other": {},
    "third": {},
    "plain": {},
    "pretend": {"availability": "simulated"},
    "idle": {"availability": "unconfigured"},
}

HERE = "/api/merchant/swap-bridge"
ADMIN = {"X-Admin-Key": ADMIN_KEY}
ONE = 10**18
SWAP = {"srcChain": "memory", "srcToken": "MEM", "srcAmountRaw": str(ONE), "destToken": "DAIX"}
BRIDGE = {
    "srcChain": "memory", "srcToken": "USDX", "srcAmountRaw": "5000000", "destChain": "other", "destToken": "USDX",
}  # fmt: skip


@asynccontextmanager
async def open_with_exchanges(
    database_url: str, redis_url: str, clock: Clock, ids: Ids, *, stock: int
) -> AsyncIterator[Gateway]:
    """Open a web gateway with a fair provider of each kind. The chain ``plain`` runs no contracts."""
    plugins = {"memory": {"chains": CHAINS}, "prices": {"static": BOARD}}
    settings = structs.replace(
        web_settings(database_url, redis_url), plugins=plugins, exchanges=ExchangeSettings(quote_timeout_ms=1000)
    )
    registry = Registry(plugins, found=[MEMORY, PRICES])
    registry.chains = {
        name: info if name == "plain" else structs.replace(info, runs_contracts=True)
        for name, info in registry.chains.items()
    }
    registry.file_chains = dict(registry.chains)
    async with memory_gateway(settings, clock, ids, stock=stock, registry=registry) as gateway:
        yield structs.replace(gateway, swaps=(FairSwaps(FairService()),), bridges=(FairBridge(FairService()),))


def provided(client: httpx.AsyncClient, *swaps: SwapProvider) -> None:
    """Have these providers swap, in the place of those before."""
    web = client._transport.app.state.web  # type: ignore[attr-defined]
    web.gateway = structs.replace(web.gateway, swaps=swaps)


class Offering(FairSwaps):
    """Offers what a test says, or fails as it says: ``said`` gets the fair quote and returns another."""

    def __init__(self, name: str, said: Callable[[Quote, ExchangeRequest], Quote]) -> None:
        super().__init__(FairService())
        self.name = name  # type: ignore[misc]
        self.said = said
        self.asked: list[ExchangeRequest] = []

    async def quote(self, request: ExchangeRequest) -> Quote:
        self.asked.append(request)
        return self.said(await super().quote(request), request)


class Slow(FairSwaps):
    """Never answers."""

    name = "slow"

    async def quote(self, request: ExchangeRequest) -> Quote:
        await asyncio.sleep(3_600)
        return await super().quote(request)


class Meanwhile(FairSwaps):
    """Does something while it is asked."""

    def __init__(self, does: Callable[[], Awaitable[object]]) -> None:
        super().__init__(FairService())
        self.does = does

    async def quote(self, request: ExchangeRequest) -> Quote:
        await self.does()
        return await super().quote(request)


def times(factor: float) -> Callable[[Quote, ExchangeRequest], Quote]:
    """Return what offers so many times the fair output."""
    return lambda quote, _: structs.replace(
        quote,
        units=type(quote.units)(int(quote.units * factor)),
        units_min=type(quote.units)(int(quote.units_min * factor)),
    )


async def fund(
    gateway: Gateway, merchant: Merchant, symbol: str, units: int, *, mode: str = "live", spent_before: bool = False
) -> None:
    """Make so much of a token of the chain ``memory`` available, or owed where it is below zero.

    Who has ``spent_before`` has every account that an exchange needs: it is started at the first try.
    """
    token = gateway.registry.chains["memory"].token(symbol)
    assert token is not None
    asset = asset_key("memory", token.contract)
    async with gateway.db.transaction() as conn:
        found = await conn.exec_driver_sql("SELECT id FROM merchants WHERE merchant_id = $1", (merchant.merchant_id,))
        pk = found.scalar_one()
        custody = Account(pk, asset, Purpose.CUSTODY_WALLET)
        move = Movement(custody, Account(pk, asset, Purpose.AVAILABLE), units)
        if units < 0:
            move = Movement(Account(pk, asset, Purpose.RECEIVABLE), custody, -units)
        await post(conn, mode, [Posting(mode=mode, kind="test", reference=gateway.ids.new("t"), movements=[move])])
        if spent_before:
            await make_accounts(conn, mode, [Account(pk, asset, Purpose.PENDING)])


async def stored(gateway: Gateway, query: str) -> list[dict[str, object]]:
    """Return rows of the database, each as a dict."""
    async with gateway.db.autocommit() as conn:
        found = await conn.exec_driver_sql(query)
        return [msgspec.convert(dict(row._mapping), dict[str, object]) for row in found]


async def made_rich(gateway: Gateway, merchant: Merchant) -> Merchant:
    """Give a merchant enough of what ``SWAP`` and ``BRIDGE`` exchange, and the accounts that doing so needs."""
    await fund(gateway, merchant, "MEM", 10 * ONE, spent_before=True)
    await fund(gateway, merchant, "USDX", 100_000_000, spent_before=True)
    return merchant


async def asked(
    client: httpx.AsyncClient, headers: Mapping[str, str], path: str, fields: Mapping[str, object]
) -> httpx.Response:
    """Ask for a swap or a bridge, as its path says, with these fields changed; None takes one away."""
    body = {**(BRIDGE if path.startswith("bridge") else SWAP), **fields}
    body = {name: value for name, value in body.items() if value is not None}
    return await client.post(f"{HERE}/{path}", json=body, headers=headers)


async def put(client: httpx.AsyncClient, **exchanges: object) -> None:
    """Change the operator's settings of exchanges."""
    version = (await client.get("/api/admin/settings", headers=ADMIN)).json()["version"]
    body = {"exchanges": exchanges, "version": version}
    answer = await client.put("/api/admin/settings", json=body, headers=ADMIN)
    assert answer.status_code == 200, answer.text
