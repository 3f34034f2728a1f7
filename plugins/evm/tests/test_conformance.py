"""The gateway's conformance kit, on a real node."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count, cycle
from random import Random

import msgspec
import pytest

from cambist.plugin import Call, Chain, ChainInfo, PluginContext, Token, Units
from cambist.testing.conformance import ChainConformance, SweepConformance
from cambist.testing.harness import Abilities, Callee, ChainHarness, FamilySamples, Sender
from cambist_evm.config import EvmConfig
from cambist_evm.family import EvmFamily
from cambist_evm.plugin import EvmPlugin
from cambist_evm.sweeper import agent_of, deployment
from cambist_evm.testing import Anvil, Contract, Fault, FaultyProxy, Wallet

ACCOUNTS_COUNT = 30
ALWAYS_REVERT = "0x60006000fd"
"""The code ``revert(0, 0)``: an account with it refuses to be paid."""

XPUBS = [
    "xpub6Ce9NcJvTk36xtLSrJLZqE7wtgA5deCeYs7rSQtreh4cj6ByPtrg9sD7V2FNFLPnf8heNP3FGkeV9qwfzvZNSd54JoNXVsXFYSYwHsnJxqP",
    "xpub6Ce9NcJvTk372KjsGfWqbcex5DumjpNquQLApoeQUavSCjEc823BV1tb4rXUuPuht8h2hSxkg2EXUaKUJmniJvRZAELxypsCzBFdtosmV76",
]
SPELLED = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
USDT = Token(symbol="USDT", contract="0xdAC17F958D2ee523a2206206994597C13D831ec7", decimals=6, label="Tether USD")
ETH = Token(symbol="ETH", contract=None, decimals=18, label="Ether")

SAMPLES = FamilySamples(
    account_xpubs=XPUBS,
    spellings={
        SPELLED: SPELLED,
        SPELLED.lower(): SPELLED,
        "0x" + SPELLED[2:].upper(): SPELLED,
    },
    refused=[
        SPELLED[:-2] + "c8",
        SPELLED[:-1],
        SPELLED + "0",
        SPELLED[2:],
        "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
        "vitalik.eth",
    ],
    chain=ChainInfo(
        id="ethereum", name="Ethereum", family="evm", tokens=(ETH, USDT), confirmations=12, chain_id_num=1, is_evm=True
    ),
    # What Foundry and Hardhat print for the mnemonic "test test ... junk".
    derived={
        (XPUBS[0], 0, 0): "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
        (XPUBS[0], 0, 1): SPELLED,
        (XPUBS[0], 1, 0): "0x4b39F7b0624b9dB86AD293686bc38B903142dbBc",
        (XPUBS[1], 0, 2**31 - 1): "0xAcea0f22a3B921796A165E22b256Ed548ec612A3",
        (XPUBS[1], 1, 2): "0xC7783D2550a32B5622c2EF2Df6224C216990680b",
    },
)


SPONSOR = Wallet("sponsor")
SWEEPER = deployment(SPONSOR.address)


class AnvilHarness(ChainHarness):
    """Anvil behind a proxy that can be cut off. Each transfer comes from another account, so none waits for another."""

    abilities = Abilities(
        several_per_tx=True,
        several_native_per_tx=True,
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
        finding=True,
        calls=True,
        sweeping=True,
    )

    def __init__(self, chain: Chain, node: Anvil, proxy: FaultyProxy, contracts: dict[str, Contract]) -> None:
        super().__init__(chain, EvmFamily(), SAMPLES)
        self._node = node
        self._proxy = proxy
        self._token = contracts["token"]
        self._impostor = contracts["impostor"]
        self._splitter = contracts["splitter"]
        self._taker = contracts["taker"]
        self._senders = cycle(node.accounts[1:])
        self._names = count()

    async def mine(self, blocks: int = 1) -> None:
        await self._node.mine(blocks)

    async def transfer(self, token: Token, recipient: str, amount: int) -> str:
        sender = next(self._senders)
        if token.is_native:
            return await self._node.send_native(recipient, amount, sender=sender)
        return await self._token.send("transfer", recipient, amount, sender=sender)

    async def transfer_many(self, token: Token, payments: Sequence[tuple[str, int]]) -> str:
        sender = next(self._senders)
        to = [recipient for recipient, _ in payments]
        amounts = [amount for _, amount in payments]
        if token.is_native:
            return await self._splitter.send("splitNative", to, amounts, value=sum(amounts), sender=sender)
        return await self._splitter.send("splitToken", self._token.address, to, amounts, sender=sender)

    async def transfer_reverted(self, token: Token, recipient: str, amount: int) -> str:
        sender = next(self._senders)
        if token.is_native:
            payments = ([recipient, self._token.address], [amount, 1])
            return await self._splitter.send("splitNative", *payments, value=amount + 1, sender=sender)
        return await self._token.send("transferThenRevert", recipient, amount, sender=sender)

    async def transfer_impostor(self, token: Token, recipient: str, amount: int) -> str:
        assert token.symbol == "USDT"
        sender = next(self._senders)
        return await self._impostor.send("forge", sender, recipient, amount, 1, sender=sender)

    async def reorg(self, depth: int) -> None:
        # Two empty blocks of one second and one maker are one block.
        await self._node.call("anvil_setCoinbase", [f"0x{0xC01 + next(self._names):040x}"])
        await self._node.reorg(depth)

    async def remine(self, depth: int, tx_id: str) -> None:
        signed = await self._node.raw(tx_id)
        await self._node.reorg(depth)
        await self._token.send("transfer", self.fresh_address(), 1, sender=self._node.accounts[0])
        await self._node.send_raw(signed)
        await self._node.mine()

    async def sender(self, *holdings: tuple[Token, int]) -> Sender:
        wallet = Wallet(f"sender {next(self._names)}")
        for token, amount in holdings:
            if token.is_native:
                await self._node.call("anvil_setBalance", [wallet.address, hex(amount)])
            else:
                await self._token.send("mint", wallet.address, amount)
        await self._node.mine()
        return Sender(address=wallet.address, private_key=wallet.secret)

    async def sweep_sponsor(self) -> Sender:
        await self._node.call("anvil_setBalance", [SPONSOR.address, hex(10**20)])
        return Sender(address=SPONSOR.address, private_key=SPONSOR.secret)

    async def callee(self) -> Callee:
        return Callee(
            address=self._taker.address,
            token=self.chain.info.tokens[1],
            take=lambda amount: self._call("take", self._token.address, amount),
            pay=lambda amount: self._call("pay", value=amount),
            refuse=self._call("refuse", "not today"),
            reason="not today",
        )

    def _call(self, function: str, *args: object, value: int = 0) -> Call:
        data = bytes.fromhex(self._taker.data(function, *args)[2:])
        return Call(to_address=self._taker.address, data=data, value=Units(value))

    async def refuse(self, recipient: str) -> Token:
        await self._node.call("anvil_setCode", [recipient, ALWAYS_REVERT])
        return self.chain.info.native

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        self._proxy.faults = {Fault.RESET}
        yield
        self._proxy.faults = set()


@pytest.fixture(scope="module")
async def network() -> AsyncIterator[tuple[Anvil, dict[str, Contract]]]:
    """Run a node on which every account holds the token."""
    async with Anvil(chain_id=4242, automine=False, accounts_count=ACCOUNTS_COUNT) as node:
        token = await node.deploy("TestToken", "USDT", 6)
        contracts = {
            "token": token,
            "impostor": await node.deploy("Impostor"),
            "splitter": await node.deploy("Splitter"),
            "taker": await node.deploy("Taker"),
        }
        await node.send(SWEEPER.to_address, data="0x" + SWEEPER.data.hex())
        for holder in (*node.accounts, contracts["splitter"].address):
            await token.send("mint", holder, 10**30)
        await node.mine()
        yield node, contracts


@pytest.fixture
async def connected(network: tuple[Anvil, dict[str, Contract]]) -> AsyncIterator[AnvilHarness]:
    """Connect to the node, and put it back afterwards."""
    node, contracts = network
    state = await node.snapshot()
    context = PluginContext(
        now=lambda: datetime.now(UTC), monotonic=time.monotonic, random=Random(3), user_agent="cambist-tests"
    )
    async with FaultyProxy(node.url) as proxy:
        local = {
            "rpc_urls": [proxy.url],
            "chain_id": node.chain_id,
            "native_symbol": "ETH",
            "confirmations": 3,
            "tokens": [{"symbol": "USDT", "contract": contracts["token"].address, "decimals": 6}],
            "sweeper": SWEEPER.address,
        }
        config = msgspec.convert({"chains": {"local": local}}, EvmConfig)
        async with EvmPlugin().connect(config, context) as (chain,):
            yield AnvilHarness(chain, node, proxy, contracts)
    await node.revert(state)


class TestEvmChain(ChainConformance):
    """Everything that a chain plugin promises."""

    @pytest.fixture
    async def harness(self, connected: AnvilHarness) -> ChainHarness:
        return connected


class TestEvmSweeps(SweepConformance):
    """And what one promises that sweeps."""

    @pytest.fixture
    async def harness(self, connected: AnvilHarness) -> ChainHarness:
        return connected


async def test_the_kit_catches_a_delegate_whose_code_stays(
    network: tuple[Anvil, dict[str, Contract]], connected: AnvilHarness
) -> None:
    """One step of it is one too many for a plain transfer: here it has come back when the first sweep is over."""
    node, _ = network
    transfer, paid = connected.transfer, []

    async def late(token: Token, recipient: str, amount: int) -> str:
        await node.call("anvil_setCode", [agent_of(SWEEPER.address), "0x5b"])
        paid.append((token, recipient))
        return await transfer(token, recipient, amount)

    connected.transfer = late
    with pytest.raises(AssertionError):
        await TestEvmSweeps().test_who_was_swept_is_paid_and_swept_again(connected)
    arrived = [bool(await connected.chain.balance(recipient, token)) for token, recipient in paid]
    assert arrived == [not token.is_native for token, _ in paid]
