"""The treasury on a real node: the same merchant and engine, with the EVM plugin on anvil, and a sweeper if wanted."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random

from cambist.plugin import Chain, PluginContext
from cambist.services.signer.rules import Rules
from cambist.settings import OutboundSettings
from cambist_evm.sweeper import deployment
from cambist_evm.testing import Anvil, Contract
from tests.support.till import KEYSTORE, registry
from tests.support.treasury import Treasury

CHAIN_ID = 1337
STATION_WEI = 10**19
BATCHED = '{"collection": {"batched": true}}'


def station_address() -> str:
    """Return the gas station's address on every EVM chain."""
    xpub = KEYSTORE.account_xpub("live", 60, 0)
    address: str = registry().families["evm"].derive_address(xpub, 0, 0)
    return address


class AnvilTreasury(Treasury):
    """``node`` mines when the treasury does, and never by itself."""

    node: Anvil
    tokens: dict[str, Contract]

    async def mine(self, blocks: int = 1, *, seconds: float = 2) -> None:
        await self.node.mine(blocks)
        self.clock.advance(seconds)
        await self.look()

    async def pay(self, symbol: str, address: str, units: int) -> None:
        """Have a customer pay; it waits to be mined."""
        if symbol in self.tokens:
            token = self.tokens[symbol]
            await self.node.send(token.address, data=token.data("mint", address, units), gas=200_000)
        else:
            await self.node.send_native(address, units)

    async def open(self, *, station: int = STATION_WEI) -> None:
        if station:
            await self.node.send_native(self.station, station)
        await self.mine()

    async def receive_many(self, symbol: str, units: list[int], *, merchant: int | None = None) -> list[str]:
        """Have customers pay to fresh addresses until all is settled and spendable; return the addresses."""
        addresses = [await self.deposit_address(merchant) for _ in units]
        for address, amount in zip(addresses, units, strict=True):
            await self.pay(symbol, address, amount)
        await self.mine(1 + self.info.confirmations)
        for amount in units:
            await self.release(symbol, amount, merchant or self.merchant)
        return addresses

    async def batch(self) -> None:
        """Switch sweeps on, as the operator does."""
        async with self.db.transaction() as conn:
            await conn.exec_driver_sql(
                "INSERT INTO platform_settings (id, settings, updated_at) VALUES (1, $1, now())", (BATCHED,)
            )

    async def intents(self, kind: str) -> list[tuple[str, bool]]:
        """Return state of each intent of a kind, and whether it has been in a sweep."""
        async with self.db.transaction() as conn:
            rows = await conn.exec_driver_sql(
                "SELECT state, sweep_id IS NOT NULL FROM outbound_intents WHERE kind = $1 ORDER BY id", (kind,)
            )
            return [tuple(row) for row in rows]

    async def wei(self, address: str) -> int:
        return int(await self.node.call("eth_getBalance", [address, "latest"]), 16)

    async def sent_from(self, address: str) -> int:
        return int(await self.node.call("eth_getTransactionCount", [address, "latest"]), 16)


@asynccontextmanager
async def anvil_treasury(
    db, clock, ids, folder, *, artifact: str = "UsdtLike", swept: bool = True, delegates: bool = True,
    settings: OutboundSettings | None = None, kind: type[AnvilTreasury] = AnvilTreasury,
    arguments: Sequence[str] = (), **chain_settings,
) -> AsyncIterator[AnvilTreasury]:  # fmt: skip
    """Run a node with USDT, perhaps deploy the sweeper of the gas station, and open a treasury on it."""
    sweeper = deployment(station_address())
    async with Anvil(chain_id=CHAIN_ID, automine=False, arguments=arguments) as node:
        token = await node.deploy(artifact, *(("USDT", 6) if artifact == "TestToken" else ()))
        if swept:
            await node.send(sweeper.target, data="0x" + sweeper.data.hex())
            await node.mine()
        local = {
            "rpc_urls": [node.url],
            "chain_id": CHAIN_ID,
            "native_symbol": "ETH",
            "confirmations": 3,
            "tokens": [{"symbol": "USDT", "contract": token.address, "decimals": 6}],
            "sweeper": sweeper.address,
            **chain_settings,
        }
        chains = registry({"evm": {"chains": {"local": local}}})
        context = PluginContext(
            now=lambda: datetime.now(UTC), monotonic=time.monotonic, random=Random(7), user_agent="cambist-tests"
        )
        rules = Rules(delegates={"local": frozenset({sweeper.address})} if delegates else {})
        async with chains.connect_chains(context) as connected:
            chain: Chain = connected["local"]
            treasury = kind(db, clock, ids, folder, chain=chain, chains=chains, rules=rules, settings=settings)
            treasury.node, treasury.tokens = node, {"USDT": token}
            treasury.prices.board |= {("USDT", "usd"): "1", ("ETH", "usd"): "3000"}
            async with treasury:
                assert treasury.station == station_address()
                yield treasury
