"""What the tests of the local Across share: it, with our own plugins pointed at it."""

from __future__ import annotations

import time
import tomllib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any

import msgspec
import pytest

from cambist.plugin import (
    BridgeDeposit,
    BridgeFill,
    BridgeProvider,
    ChainInfo,
    ChainToken,
    ContractChain,
    ExchangeRequest,
    PluginContext,
    Units,
)
from cambist.testing.anvil import AnvilClient, AnvilProcess
from cambist.testing.contracts import load
from cambist_across_node import AcrossNetwork, Side
from cambist_across_node.__main__ import fund, introduction
from cambist_bridge_across.codec import codec
from cambist_bridge_across.config import AcrossConfig
from cambist_bridge_across.plugin import AcrossPlugin
from cambist_chainkit.eip55 import spell
from cambist_evm.config import EvmConfig
from cambist_evm.plugin import EvmPlugin

codec()  # before a test module imports web3.py by itself, and leaves its limit to all tests of the process

WALLET = spell("a1" * 20)
RECIPIENT = spell("c0ffee" + "00" * 16 + "07")


def new_context() -> PluginContext:
    """Return what a process lends its plugins: a budget that one test has used up is no other's."""
    return PluginContext(
        now=lambda: datetime.now(UTC), monotonic=time.monotonic, random=Random(1), user_agent="cambist/tests"
    )


class Bridging:
    """A gateway's plugins, configured by the tables that the network prints, and what they are asked in turn."""

    def __init__(self, network: AcrossNetwork, chains: Sequence[ContractChain], bridge: BridgeProvider, config) -> None:
        self.network = network
        self.chains: Mapping[str, ContractChain] = {chain.info.id: chain for chain in chains}
        self.bridge = bridge
        (self.reader,) = AcrossPlugin().readers(config)

    @property
    def infos(self) -> Mapping[str, ChainInfo]:
        return {name: chain.info for name, chain in self.chains.items()}

    def side(self, name: str) -> Side:
        return self.network.sides[name]

    def request(
        self, symbol: str, units: int, *, origin: str = "one", destination: str = "two", recipient: str = RECIPIENT
    ) -> ExchangeRequest:
        sells, buys = (
            ChainToken(chain=self.infos[name], token=self.infos[name].token(symbol)) for name in (origin, destination)
        )
        return ExchangeRequest(
            sells=sells, buys=buys, units=Units(units), sender=WALLET, recipient=recipient, slippage_bps=50
        )

    async def deposit(self, request: ExchangeRequest) -> BridgeDeposit:
        """Quote, build, read back, send, and return what the receipt tells, all of which has to agree."""
        side, chain = self.side(request.sells.chain.id), self.chains[request.sells.chain.id]
        quote = await self.bridge.quote(request)
        call = await self.bridge.build(request, quote.units_min)
        read = self.reader.read(chain.info, WALLET, call, self.infos)
        assert (read.sold_contract, read.sold) == (request.sells.token.contract, request.units)
        assert (read.chain, read.bought_contract) == (request.buys.chain.id, request.buys.token.contract)
        assert (read.recipient, read.refund_to) == (request.recipient, WALLET)
        assert read.bought_min == quote.units
        if read.spender is not None:
            allowed = load("TestToken").call_data("approve", read.spender, request.units)
            await side.send(WALLET, request.sells.token.contract, allowed)
        sent = await side.send(WALLET, call.to_address, call.data, call.value)
        receipt = await chain.receipt(sent["transactionHash"])
        deposit = self.bridge.deposit(chain.info, receipt, self.infos)
        assert (deposit.units, deposit.units_out, deposit.recipient) == (read.sold, read.bought_min, request.recipient)
        assert (deposit.refund_to, deposit.fill_deadline) == (read.refund_to, read.valid_until)
        return deposit

    async def fill(self, deposit: BridgeDeposit, *, origin: str = "one") -> BridgeFill | None:
        """Return the fill that the other chain shows."""
        chain, info = self.chains[deposit.chain], self.infos[origin]
        query = self.bridge.fill_query(chain.info, deposit, info, 0, await head(chain))
        fills = [self.bridge.fill(chain.info, deposit, info, found) for found in await chain.logs(query)]
        (found,) = [one for one in fills if one is not None] or [None]
        return found

    async def refunds(self, deposit: BridgeDeposit, *, origin: str = "one") -> Sequence[tuple[str, int | None]]:
        """Return the transactions that may pay the deposit back, and what they pay."""
        chain = self.chains[origin]
        query = self.bridge.refund_query(chain.info, deposit, 0, await head(chain))
        found = dict.fromkeys([log.tx_id for log in await chain.logs(query)])
        return [(tx_id, self.bridge.refund(chain.info, deposit, await chain.receipt(tx_id))) for tx_id in found]

    async def status(self, deposit: BridgeDeposit, *, origin: str = "one") -> Any:
        return await self.bridge.status(self.infos[origin], deposit)


async def head(chain: ContractChain) -> int:
    async with chain.view() as view:
        return (await view.head()).height


@asynccontextmanager
async def bridging(network: AcrossNetwork, **more: Any) -> AsyncIterator[Bridging]:
    """Connect our plugins by the tables that the network prints."""
    tables = tomllib.loads("\n".join(introduction(network)))["plugins"]
    config = msgspec.convert(tables["bridge_across"] | {"requests_per_second": 1000} | more, AcrossConfig)
    context = new_context()
    async with AsyncExitStack() as stack:
        evm = msgspec.convert(tables["evm"], EvmConfig)
        chains = await stack.enter_async_context(EvmPlugin().connect(evm, context))
        (bridge,) = await stack.enter_async_context(AcrossPlugin().connect(config, context))
        yield Bridging(network, chains, bridge, config)


@asynccontextmanager
async def network_of(*arguments: str, **more: Any) -> AsyncIterator[AcrossNetwork]:
    """Run two nodes, the second with these arguments, and Across on them."""
    async with AsyncExitStack() as stack:
        nodes = [
            await stack.enter_async_context(AnvilProcess(["--chain-id", number, *said]))
            for number, said in (("31337", ()), ("31338", arguments))
        ]
        urls = dict(zip(("one", "two"), [node.url for node in nodes], strict=True))
        network = await stack.enter_async_context(AcrossNetwork(urls, **more))
        await fund(network, WALLET)
        yield network


class Deployed:
    """Two nodes with Across on them, put back to that after each test: to deploy it takes most of a second."""

    def __init__(self, network: AcrossNetwork) -> None:
        self._urls = {name: side.node.url for name, side in network.sides.items()}
        self._known = {name: vars(side) for name, side in network.sides.items()}

    @asynccontextmanager
    async def network(self) -> AsyncIterator[AcrossNetwork]:
        network = AcrossNetwork(self._urls)
        for name, side in network.sides.items():
            side.deploy = partial(self._find, side, self._known[name])
        async with AsyncExitStack() as stack:
            nodes = [await stack.enter_async_context(AnvilClient(url)) for url in self._urls.values()]
            for node in nodes:
                stack.push_async_callback(node.revert, await node.snapshot())
            yield await stack.enter_async_context(network)

    async def _find(self, side: Side, known: Mapping[str, Any], tokens: Mapping[str, int]) -> None:
        """Know what is deployed already, on a node that keeps the machine's time."""
        assert set(tokens) < set(known["tokens"])
        vars(side).update(known, node=side.node, tokens=dict(known["tokens"]))
        # Its time stood still meanwhile.
        await side.node.call("evm_increaseTime", [max(0, int(time.time()) - await side.time())])
        await side.node.call("evm_mine")


@pytest.fixture(scope="session")
async def deployed() -> AsyncIterator[Deployed]:
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(AnvilProcess(["--chain-id", number])) for number in ("31337", "31338")]
        # Its relayer and its server end before the first test has its own.
        async with AcrossNetwork(dict(zip(("one", "two"), [node.url for node in nodes], strict=True))) as network:
            await fund(network, WALLET)
        yield Deployed(network)


@pytest.fixture
async def network(deployed: Deployed) -> AsyncIterator[AcrossNetwork]:
    async with deployed.network() as network:
        yield network


@pytest.fixture
async def gateway(network: AcrossNetwork) -> AsyncIterator[Bridging]:
    async with bridging(network) as found:
        yield found
