"""The treasury on TRON: the same merchant and engine, with the TRON plugin on the emulator of its node."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib.metadata import EntryPoint

from msgspec import structs

from cambist.plugin import ChainError, LendingChain, Stake
from cambist.registry import GROUP, Registry
from cambist.services.sending.engine import Engine
from cambist.services.sending.gas import gas_stations
from cambist.services.sending.gas.gas_stations import LowMarks
from cambist.services.sending.gas.stakes import StakeAction, request_stake
from cambist.settings import OutboundSettings
from cambist_tron_node import Face, TronNode, TronToken
from tests.support.node_treasury import NodeTreasury, plugin_context

REPRESENTATIVES = 4
"""So few that a block is solid when two others stand on it."""
SUN = 10**6
STATION_SUN = 10_000 * SUN
LIFETIME_BLOCKS = 110
"""After so many blocks a transaction of the plugin's has expired, and the block that proves it is solid."""
PLUGIN = EntryPoint("tron", "cambist_tron.plugin", GROUP)


class TronTreasury(NodeTreasury):
    """On the emulator, whose gas station can stake."""

    node: TronNode
    tokens: dict[str, TronToken]
    faces: list[Face]
    chain: LendingChain
    station_units = STATION_SUN

    async def pay(self, symbol: str, address: str, units: int) -> None:
        if symbol in self.tokens:
            await self.tokens[symbol].mint(address, units)
        else:
            await self.node.send_trx(address, units)

    async def forget(self) -> None:
        await self.node.forget_pool()

    def price_energy(self, sun: int) -> None:
        """Have the network ask for another price."""
        self.change_parameters(energy_fee=sun)

    def change_parameters(self, **values: int) -> None:
        """Have the network decide on other values, from now on."""
        chain = self.node.chain
        chain.parameters = chain.state.parameters = structs.replace(chain.parameters, **values)

    async def outlive(self, engine: Engine) -> None:
        """Let the time pass after which nothing that is signed now can be mined, with the engine at work."""
        for _ in range(LIFETIME_BLOCKS // 10 + 1):
            with suppress(ChainError):  # its nodes may be unable to tell of these blocks
                await self.mine(10, seconds=30)
            await engine.tick()

    async def signed_for(self, payout_id: str) -> list[tuple[str, str]]:
        """Return id and state of each transaction that was signed for a payout, the oldest first."""
        async with self.db.autocommit() as conn:
            rows = await conn.exec_driver_sql(
                "SELECT t.tx_id, t.state FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk"
                " JOIN outbound_intents i ON i.id = s.intent_pk WHERE i.reference LIKE '%:' || $1 ORDER BY t.id",
                (payout_id,),
            )
            return [tuple(row) for row in rows]

    async def change_stake(self, action: StakeAction, units: int | None) -> Stake:
        """Stake or unstake as the operator does, and return what is staked when that is done."""
        await gas_stations.check(self.db, self.chain, LowMarks(), self.clock.now())
        async with self.db.transaction() as conn:
            await request_stake(conn, self.ids, self.info, action, units, self.clock.now())
        await self.work(self.engine())
        return await self.chain.stake(self.station)


@asynccontextmanager
async def tron_treasury(
    db, clock, ids, folder, *,
    settings: OutboundSettings | None = None, kind: type[TronTreasury] = TronTreasury,
    representatives: int = REPRESENTATIVES, faces: int = 0, usdt_like: bool = True, **chain_settings,
) -> AsyncIterator[TronTreasury]:  # fmt: skip
    """Run a node with USDT that has further faces, and open a treasury on it."""
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(TronNode(representatives=representatives))
        others = [await stack.enter_async_context(node.face()) for _ in range(faces)]
        token = await node.deploy_token("USDT", 6, usdt_like=usdt_like)
        await node.mine()
        local = {
            "network": "local",
            "rpc_urls": [node.url, *(face.url for face in others)],
            "confirmations": 3,
            "tokens": [{"symbol": "USDT", "contract": token.address, "decimals": 6}],
            **chain_settings,
        }
        chains = Registry({"tron": local}, found=[PLUGIN])
        connected = await stack.enter_async_context(chains.connect_chains(plugin_context(clock.monotonic)))
        treasury = kind(db, clock, ids, folder, chain=connected["tron"], chains=chains, settings=settings)
        treasury.node, treasury.faces, treasury.tokens = node, others, {"USDT": token}
        treasury.prices.board |= {("USDT", "usd"): "1", ("TRX", "usd"): "0.25"}
        yield await stack.enter_async_context(treasury)
