"""The gateway's conformance kit, on a node that imitates TRON."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count
from random import Random

import msgspec
import pytest
from msgspec.structs import replace

from cambist.plugin import Chain, PluginContext, Token, Units
from cambist.testing.conformance import ChainConformance
from cambist.testing.conformance.activation import ActivationConformance
from cambist.testing.conformance.sending import SendingConformance
from cambist.testing.harness import Abilities, ChainHarness, FamilySamples, Sender
from cambist_tron.config import TronConfig, resolve
from cambist_tron.family import TronFamily
from cambist_tron.plugin import TronPlugin
from cambist_tron_node import Face, Fault, Faults, TronContract, TronNode, TronToken

SUN_PER_TRX = 10**6
PLENTY = 10**30
INT64_MAX = 2**63 - 1
STAKE_TRX = 200_000
UNSTAKING_S = 15 * 86_400
BLOCK_S = 3
INDEXES, NAMES = count(1000), count()

XPUBS = [
    "xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd",
    "xpub6D1AabNHCupeoA3sb15rvtDPuaeZSRWg39QsynNZQETJfbuy3fFsEqY44mJEP2j4XxLgZUbZZxuFWf67Srqf6Ucu9spE8AmbWZu5ZET1ELw",
]
ADDRESS = "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH"

SAMPLES = FamilySamples(
    account_xpubs=XPUBS,
    spellings={ADDRESS: ADDRESS},
    refused=[
        ADDRESS[:-1],
        ADDRESS[:-1] + "h",
        ADDRESS + "1",
        "T" + ADDRESS,
        "41c8599111f29c1e1e061265b4af93ea1f274ad78a",  # the same, as nodes write it
        "0xc8599111F29c1E1e061265b4AF93ea1F274aD78a",  # the same 20 bytes, as Ethereum's wallets write them
        "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
    ],
    chain=resolve(TronConfig(simulated=True)).info,
    # What bip-utils derives from the mnemonic "abandon abandon ... about".
    derived={
        (XPUBS[0], 0, 0): ADDRESS,
        (XPUBS[0], 0, 1): "TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK",
        (XPUBS[0], 1, 0): "THLNguYKN3S8RUzVyi9ErynW4YmXLU5c8n",
        (XPUBS[1], 0, 2**31 - 1): "TWFu8BtMjcqoTMXe3DamyknnUWocz5dWA1",
        (XPUBS[1], 1, 2): "TBJXhMQVfngiA1ofWsdB4ENUyKJmMZdyGs",
    },
)


class Clock:
    """The node's time, which can be told to run ahead: blocks are never older."""

    def __init__(self) -> None:
        self._ahead_ms = 0

    def ms(self) -> int:
        """Return milliseconds since 1970."""
        return time.time_ns() // 1_000_000 + self._ahead_ms

    def reach(self, seconds: int) -> None:
        """Be at least as late as this."""
        self._ahead_ms += max(0, seconds * 1000 - self.ms())


class Network:
    """A node, and what is deployed on it: USDT, an ordinary token, and what sends several transfers at once."""

    def __init__(self, node: TronNode, clock: Clock, usdt: TronToken, usdx: TronToken) -> None:
        self.node = node
        self.clock = clock
        self.usdt = usdt
        self.tokens = {token.address: token for token in (usdt, usdx)}
        self.splitter: TronContract
        self.impostor: TronContract

    def token(self, token: Token) -> TronToken:
        """Return the contract of a token."""
        assert token.contract is not None
        return self.tokens[token.contract]


class TronHarness(ChainHarness):
    """What the network can do; only old states it does not keep, and what is signed for it names no network."""

    abilities = Abilities(
        several_per_tx=True,
        several_native_per_tx=True,
        reverts=True,
        impostors=True,
        zero_transfers=True,
        reorgs=True,
        remines=True,
        finality=True,
        pending=True,
        outages=True,
        refusals=True,
        sending=True,
        expiry=True,
        activation=True,
        lending=True,
        finding=True,
    )

    def __init__(self, chain: Chain, network: Network, faces: Sequence[Faults]) -> None:
        """Keep the network and its addresses. It is shared, so no account is given out twice."""
        super().__init__(chain, TronFamily(), SAMPLES)
        self._indexes = INDEXES
        self._network = network
        self._node = network.node
        self._faces = faces

    def units_max(self, token: Token) -> int:
        """Return what 63 bits hold, for the native coin."""
        return INT64_MAX if token.is_native else super().units_max(token)

    async def mine(self, blocks: int = 1) -> None:
        """Make blocks."""
        await self._node.mine(blocks)

    async def transfer(self, token: Token, recipient: str, amount: int) -> str:
        """Send from an account that never runs out."""
        if not token.is_native:
            return await self._network.token(token).transfer(recipient, Units(amount))
        if amount == 0:
            # Nodes refuse to send nothing, but a contract can.
            return await self._network.splitter.send("splitNative", [recipient], [0])
        return await self._node.send_trx(recipient, amount)

    async def transfer_many(self, token: Token, payments: Sequence[tuple[str, int]]) -> str:
        """Have a contract send all."""
        to, amounts = [recipient for recipient, _ in payments], [amount for _, amount in payments]
        splitter = self._network.splitter
        if token.is_native:
            return await splitter.send("splitNative", to, amounts, call_value=sum(amounts))
        return await splitter.send("splitToken", token.contract, to, amounts)

    async def transfer_reverted(self, token: Token, recipient: str, amount: int) -> str:
        """Have a contract send it and then fail."""
        splitter = self._network.splitter
        if token.is_native:
            return await splitter.send("payOrRevert", recipient, amount, True, call_value=amount)
        return await splitter.send("payTokenOrRevert", token.contract, recipient, amount, True)

    async def transfer_impostor(self, token: Token, recipient: str, amount: int) -> str:
        """Have a contract that calls itself USDT write what a transfer would write."""
        assert token.symbol == "USDT"
        return await self._network.impostor.send("forge", self._node.accounts[0], recipient, amount, 1)

    async def reorg(self, depth: int) -> None:
        """Replace the newest blocks by one more."""
        await self._node.reorg(depth)

    async def remine(self, depth: int, tx_id: str) -> None:
        """Replace the newest blocks, and keep one of their transactions."""
        await self._node.reorg(depth, [tx_id])

    async def sender(self, *holdings: tuple[Token, int]) -> Sender:
        """Make up a key, and give its address what it is to hold. Without native coin it is not activated."""
        address = self._node.new_account(f"sender {next(NAMES)}")
        for token, amount in holdings:
            if token.is_native:
                await self._node.send_trx(address, amount)
            else:
                await self._network.token(token).mint(address, Units(amount))
        await self._node.mine()
        return Sender(address=address, private_key=self._node.keys[address])

    async def refuse(self, recipient: str) -> Token:
        """Have USDT's issuer freeze an address that has some already."""
        usdt = self._network.usdt
        await usdt.refuse(recipient)
        await self._node.mine()
        return next(token for token in self.chain.info.tokens if token.contract == usdt.address)

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        """Cut every connection."""
        for face in self._faces:
            face.faults = {Fault.RESET}
        yield
        for face in self._faces:
            face.clear()

    async def outlive(self, valid_until: int) -> None:
        """Make a block that is later; those between were missed."""
        self._network.clock.reach(valid_until + BLOCK_S)
        await self._node.mine()

    async def lose_next(self) -> None:
        """Have the node take it and forget it."""
        for face in self._faces:
            face.add(Fault.FORGETFUL, "broadcasthex", "broadcasttransaction", times=1)

    async def hide(self, tx_id: str) -> None:
        """Have the node tell of it in its block alone."""
        for face in self._faces:
            face.hidden.add(tx_id)

    async def sponsor(self) -> Sender:
        """Give somebody coin, and stake it for energy."""
        sender = await self.sender((self.chain.info.native, 2 * STAKE_TRX * SUN_PER_TRX))
        await self._node.stake(sender.address, STAKE_TRX * SUN_PER_TRX)
        return sender

    async def ripen(self) -> None:
        """Let the network's two weeks pass."""
        self._network.clock.reach(self._network.clock.ms() // 1000 + UNSTAKING_S)
        await self._node.mine()


@pytest.fixture(scope="module")
async def network() -> AsyncIterator[Network]:
    """Run a node, with tokens on it that everybody who sends has plenty of."""
    clock = Clock()
    async with TronNode(clock_ms=clock.ms) as node:
        usdt = await node.deploy_token("USDT", 6, usdt_like=True)
        network = Network(node, clock, usdt, await node.deploy_token("USDX", 6))
        network.splitter, network.impostor = await node.deploy("Splitter"), await node.deploy("Impostor")
        await node.give(node.accounts[0], 10**15)
        for token in network.tokens.values():
            for holder in (node.accounts[0], network.splitter.address):
                await token.mint(holder, Units(PLENTY))
        await node.mine(20)
        yield network


@asynccontextmanager
async def connected(network: Network, *faces: Face, **settings: object) -> AsyncIterator[TronHarness]:
    """Connect to the node, whose time is the only one there is, and to other addresses of it."""
    node = network.node
    context = PluginContext(
        now=lambda: datetime.fromtimestamp(network.clock.ms() / 1000, UTC),
        # Blocks are made much faster than time passes, and what is remembered must not outlive them.
        monotonic=lambda: time.monotonic() + node.chain.blocks.head.timestamp_ms / 1000,
        random=Random(3),
        user_agent="cambist-tests",
    )
    tokens = [
        {"symbol": symbol, "contract": address, "decimals": 6}
        for symbol, address in zip(("USDT", "USDX"), network.tokens, strict=True)
    ]
    urls = [node.url, *(face.url for face in faces)]
    table = {"network": "local", "rpc_urls": urls, "tokens": tokens, "fee_ceiling_trx": "1000", **settings}
    async with TronPlugin().connect(msgspec.convert(table, TronConfig), context) as (chain,):
        yield TronHarness(chain, network, [node.faults, *faces])
    node.faults.clear()


class TestTron(ChainConformance):
    """Everything that a chain plugin promises."""

    @pytest.fixture
    async def harness(self, network: Network) -> AsyncIterator[ChainHarness]:
        """Connect to one endpoint."""
        async with connected(network) as harness:
            yield harness


class TestTronThatBurns(SendingConformance, ActivationConformance):
    """What is sent, where the operator wants no stake to be lent: that is seen in plans alone."""

    @pytest.fixture
    async def harness(self, network: Network) -> AsyncIterator[ChainHarness]:
        """Connect without lending."""
        async with connected(network, energy="burn") as harness:
            harness.abilities = replace(harness.abilities, lending=False)
            yield harness


class TestTronBehindTwoEndpoints(ChainConformance):
    """The same, where nothing is believed that only one of two endpoints tells."""

    @pytest.fixture
    async def harness(self, network: Network) -> AsyncIterator[ChainHarness]:
        """Connect to two addresses of the node."""
        async with network.node.face() as face, connected(network, face, quorum=2) as harness:
            yield harness
