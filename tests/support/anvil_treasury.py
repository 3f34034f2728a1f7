"""The treasury on a real node: the same merchant and engine, with the EVM plugin on anvil, and a sweeper if wanted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from cambist.plugin import Chain
from cambist.settings import OutboundSettings
from cambist.signer.rules import Rules
from cambist_evm.sweeper import deployment
from cambist_evm.testing import Anvil, Contract
from tests.support.node_treasury import NodeTreasury, plugin_context
from tests.support.payment_env import KEYSTORE, registry

CHAIN_ID = 1337
STATION_WEI = 10**19
BATCHED = '{"collection": {"batched": true}}'


def station_address() -> str:
    """Return the gas station's address on every EVM chain."""
    xpub = KEYSTORE.account_xpub("live", 60, 0)
    address: str = registry().families["evm"].derive_address(xpub, 0, 0)
    return address


class AnvilTreasury(NodeTreasury):
    """On anvil, with the sweeper if wanted."""

    node: Anvil
    tokens: dict[str, Contract]
    station_units = STATION_WEI

    async def pay(self, symbol: str, address: str, units: int) -> None:
        if symbol in self.tokens:
            token = self.tokens[symbol]
            await self.node.send(token.address, data=token.data("mint", address, units), gas=200_000)
        else:
            await self.node.send_native(address, units)

    async def forget(self) -> None:
        await self.node.call("anvil_dropAllTransactions")

    async def batch(self) -> None:
        """Switch sweeps on, as the operator does."""
        async with self.db.autocommit() as conn:
            await conn.exec_driver_sql(
                "INSERT INTO platform_settings (id, settings, updated_at) VALUES (1, $1, now())", (BATCHED,)
            )

    async def wei(self, address: str) -> int:
        return int(await self.node.call("eth_getBalance", [address, "latest"]), 16)

    async def withdraw(self, address: str, units: int) -> None:
        """Have an exchange send native coin with exactly 21,000 gas, until it is confirmed."""
        tx_id = await self.node.send_native(address, units)
        await self.mine(1 + self.info.confirmations)
        assert (await self.node.receipt(tx_id))["status"] == "0x1"

    async def code(self, address: str) -> str:
        code: str = await self.node.call("eth_getCode", [address, "latest"])
        return code

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
            await node.send(sweeper.to_address, data="0x" + sweeper.data.hex())
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
        rules = Rules(delegates={"local": frozenset({sweeper.delegate})} if delegates else {})
        async with chains.connect_chains(plugin_context()) as connected:
            chain: Chain = connected["local"]
            treasury = kind(db, clock, ids, folder, chain=chain, chains=chains, rules=rules, settings=settings)
            treasury.node, treasury.tokens = node, {"USDT": token}
            treasury.prices.board |= {("USDT", "usd"): "1", ("ETH", "usd"): "3000"}
            async with treasury:
                assert treasury.station == station_address()
                yield treasury


@asynccontextmanager
async def paying_treasury(db, clock, ids, folder) -> AsyncIterator[AnvilTreasury]:
    """Open a treasury without a sweeper that has paid out once: the first payout has the wallet get gas for others."""
    async with anvil_treasury(db, clock, ids, folder, swept=False) as treasury:
        await treasury.open()
        await treasury.receive_many("USDT", [100_000_000])
        await treasury.pay_out("USDT", 1_000_000, await treasury.stranger(9))
        await treasury.work(treasury.engine())
        yield treasury
        await treasury.check_books()
