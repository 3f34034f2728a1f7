"""The gateway's conformance kit on the example chain: what every chain plugin promises, tested."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from random import Random

import msgspec
import pytest
from coincurve import PrivateKey

from cambist.plugin import Chain, PluginContext, Token
from cambist.testing.conformance import ChainConformance
from cambist.testing.harness import Abilities, ChainHarness, FamilySamples, Sender
from cambist_florin.addresses import address_of, spell
from cambist_florin.config import FlorinConfig, chain_info
from cambist_florin.family import FlorinFamily
from cambist_florin.plugin import FlorinPlugin
from cambist_florin.testing import ExampleNode
from cambist_florin.testing.ledger import kept

ADDRESS = spell(b"somebody".ljust(20, b"\0"))
USDX = spell(b"token USDX".ljust(20, b"\0"))
TOKENS = [{"symbol": "USDX", "contract": USDX, "decimals": 6, "label": "Example dollar"}]

# Account keys made for tests, from the words "test test ... junk".
XPUBS = [
    "xpub6Ce9NcJvTk36xtLSrJLZqE7wtgA5deCeYs7rSQtreh4cj6ByPtrg9sD7V2FNFLPnf8heNP3FGkeV9qwfzvZNSd54JoNXVsXFYSYwHsnJxqP",
    "xpub6Ce9NcJvTk372KjsGfWqbcex5DumjpNquQLApoeQUavSCjEc823BV1tb4rXUuPuht8h2hSxkg2EXUaKUJmniJvRZAELxypsCzBFdtosmV76",
]


def config(**changes: object) -> FlorinConfig:
    """Return the operator's table as the gateway decodes it."""
    return msgspec.convert({"confirmations": 2, "tokens": TOKENS, **changes}, FlorinConfig)


SAMPLES = FamilySamples(
    account_xpubs=XPUBS,
    spellings={ADDRESS: ADDRESS},
    refused=[ADDRESS[:-1], ADDRESS + "0", ADDRESS.upper(), ADDRESS[:-1] + ("0" if ADDRESS[-1] != "0" else "1")],
    chain=chain_info(config(simulated=True)),
)


class FlorinHarness(ChainHarness):
    """The example node, driven from inside. What it cannot do is left out, and the kit skips what needs it."""

    abilities = Abilities(
        reverts=True,
        impostors=True,
        zero_transfers=True,
        reorgs=True,
        remines=True,
        past_balances=True,
        finality=True,
        pending=True,
        outages=True,
        refusals=True,
        sending=True,
        sequences=True,
        replacement=True,
        payload_names_chain=True,
        fees_in_payload=True,
    )

    def __init__(self, chain: Chain, node: ExampleNode) -> None:
        super().__init__(chain, FlorinFamily(), SAMPLES)
        self._node = node
        self._ledger = node.ledger
        self._numbers = itertools.count()

    async def mine(self, blocks: int = 1) -> None:
        """Mine."""
        for _ in range(blocks):
            self._ledger.mine()

    async def transfer(self, token: Token, recipient: str, amount: int) -> str:
        """Send from the faucet."""
        return self._ledger.grant(token.contract, recipient, amount)

    async def transfer_reverted(self, token: Token, recipient: str, amount: int) -> str:
        """Send what will fail."""
        return self._ledger.grant(token.contract, recipient, amount, fails=True)

    async def transfer_impostor(self, token: Token, recipient: str, amount: int) -> str:
        """Send of a contract that nobody registered."""
        return self._ledger.grant(ADDRESS, recipient, amount)

    async def reorg(self, depth: int) -> None:
        """Replace the newest blocks."""
        self._ledger.reorg(depth)

    async def remine(self, depth: int, tx_id: str) -> None:
        """Replace the newest blocks, and keep one transaction behind another."""
        found = self._ledger.find(tx_id)
        assert found is not None
        self._ledger.grant(found[1].contract, ADDRESS, 1)
        self._ledger.reorg(depth, [kept(found[1])])

    async def sender(self, *holdings: tuple[Token, int]) -> Sender:
        """Make up a key, and give its address what it is to hold."""
        secret = hashlib.sha256(f"sender {next(self._numbers)}".encode()).digest()
        address = address_of(PrivateKey(secret).public_key.format(compressed=False)[1:])
        for token, amount in holdings:
            self._ledger.grant(token.contract, address, amount)
        self._ledger.mine()
        return Sender(address=address, private_key=secret)

    async def refuse(self, recipient: str) -> Token:
        """Freeze an account."""
        self._ledger.frozen.add(recipient)
        return self.chain.info.native

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        """Answer nothing for a while."""
        self._node.silent = True
        yield
        self._node.silent = False


class TestFlorinChain(ChainConformance):
    """Everything that a chain plugin promises."""

    @pytest.fixture
    async def harness(self) -> AsyncIterator[ChainHarness]:
        """Run a node of its own for each test, and connect to it as the gateway does."""
        context = PluginContext(
            now=lambda: datetime.now(UTC), monotonic=time.monotonic, random=Random(1), user_agent="tests"
        )
        async with AsyncExitStack() as stack:
            node = await stack.enter_async_context(ExampleNode(time.time))
            table = config(rpc_urls=[node.url])
            (chain,) = await stack.enter_async_context(FlorinPlugin().connect(table, context))
            yield FlorinHarness(chain, node)
