"""What the plugin's tests share: one anvil for all, put back after each test, and chains connected to it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any

import msgspec
import pytest

from cambist.plugin import Chain, Intent, PluginContext, ScanResult, SignedTx, Span, Step, Token, Units
from cambist_evm.config import EvmConfig
from cambist_evm.family import EvmFamily
from cambist_evm.plugin import EvmPlugin
from cambist_evm.testing import Anvil, Contract, Wallet

Connect = Callable[..., AbstractAsyncContextManager[Chain]]

ETHER = 10**18

XPUB = "xpub6Ce9NcJvTk372KjsGfWqbcex5DumjpNquQLApoeQUavSCjEc823BV1tb4rXUuPuht8h2hSxkg2EXUaKUJmniJvRZAELxypsCzBFdtosmV76"
"""m/44'/60'/1' of the mnemonic "test test ... junk", which every EVM developer's tools share."""


@pytest.fixture
def context() -> PluginContext:
    """Return real time and seeded chance."""
    return PluginContext(
        now=lambda: datetime.now(UTC), monotonic=time.monotonic, random=Random(7), user_agent="cambist-tests"
    )


@pytest.fixture
def family() -> EvmFamily:
    """Return the family."""
    return EvmFamily()


@pytest.fixture(scope="session")
async def shared_node() -> AsyncIterator[Anvil]:
    """Run one anvil for the session."""
    async with Anvil(chain_id=1337) as node:
        yield node


@pytest.fixture
async def node(shared_node: Anvil) -> AsyncIterator[Anvil]:
    """Return the node, and put it back into the state it was in."""
    state = await shared_node.snapshot()
    yield shared_node
    await shared_node.revert(state)


@pytest.fixture
async def token(node: Anvil) -> Contract:
    """Return an ordinary token of six decimals; the first account holds a million."""
    token = await node.deploy("TestToken", "USDX", 6)
    await token.send("mint", node.accounts[0], 10**12)
    return token


@pytest.fixture
async def splitter(node: Anvil) -> Contract:
    """Return the batch payer."""
    return await node.deploy("Splitter")


@pytest.fixture
def connect(context: PluginContext) -> Connect:
    """Return a function that connects the chain ``local`` to endpoints, with any settings."""

    @asynccontextmanager
    async def connect(*urls: str, token: Contract | None = None, **settings: Any) -> AsyncIterator[Chain]:
        tokens = [] if token is None else [{"symbol": "USDX", "contract": token.address, "decimals": 6}]
        local = {
            "rpc_urls": urls,
            "chain_id": 1337,
            "native_symbol": "ETH",
            "confirmations": 3,
            "request_timeout_ms": 3000,
            "tokens": tokens,
            **settings,
        }
        config = msgspec.convert({"chains": {"local": local}}, EvmConfig)
        async with EvmPlugin().connect(config, context) as (chain,):
            yield chain

    return connect


@pytest.fixture
def scan(family: EvmFamily) -> Callable[..., Any]:
    """Return a function that scans from a height to the head for some addresses."""

    async def scan(chain: Chain, first: int, *addresses: str) -> ScanResult:
        async with chain.view() as view:
            head = await view.head()
            watch = frozenset(family.address_key(address) for address in addresses)
            return await view.scan(Span(first=first, last=head.height), watch)

    return scan


@pytest.fixture
def customer(family: EvmFamily) -> str:
    """Return an address of ours."""
    return family.derive_address(XPUB, 0, 1)


@pytest.fixture
def other_customer(family: EvmFamily) -> str:
    """Return another address of ours."""
    return family.derive_address(XPUB, 0, 2)


@pytest.fixture
async def wallet(node: Anvil) -> Wallet:
    """Return an account of ours with a thousand of the native coin."""
    wallet = Wallet("hot")
    await node.call("anvil_setBalance", [wallet.address, hex(1000 * ETHER)])
    return wallet


@pytest.fixture
def intent(wallet: Wallet) -> Callable[..., Intent]:
    """Return a function that makes an intent of the wallet's."""

    def intent(to_address: str, amount: int, token: Token, source: str = wallet.address) -> Intent:
        return Intent(source=source, to_address=to_address, token=token, amount=Units(amount))

    return intent


@pytest.fixture
def sealed(family: EvmFamily, wallet: Wallet) -> Callable[..., Any]:
    """Return a function that prepares steps of the wallet's from a sequence on, signs them, and seals them."""

    async def sealed(chain: Chain, first: int, *steps: Step) -> list[SignedTx]:
        prepared = await chain.prepare([(step, first + index) for index, step in enumerate(steps)])
        return [family.seal(tx, wallet.sign(family.digest(tx.payload))) for tx in prepared]

    return sealed
