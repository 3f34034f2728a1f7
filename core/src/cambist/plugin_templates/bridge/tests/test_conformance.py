"""The gateway's conformance kit on the example service: what every bridge promises, tested."""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random

import pytest
from msgspec import structs

from cambist.plugin import (
    Block,
    BridgeProvider,
    Call,
    ChainInfo,
    ChainToken,
    ExchangeRequest,
    FoundLog,
    Log,
    PluginContext,
    Receipt,
    Token,
    Units,
)
from cambist.testing.conformance import BridgeConformance, BridgeHarness
from cambist_florin import codec
from cambist_florin.config import FlorinConfig
from cambist_florin.plugin import FlorinPlugin
from cambist_florin.testing import CONTRACTS, ExampleService

SENDER = "0x0A367B92CF0b037dfD89960eE832D56f7Fc15168"
RECIPIENT = "0x665D0698dbC8fB95AFC25C3A4d9cf280D87a585b"
THIEF = "0x8dd29Add9992F7006F4d0F57Bd9e468d6Cd32012"

COIN = Token(symbol="ETH", contract=None, decimals=18, label="Ether")
USDX = Token(symbol="USDX", contract="0x4fDe2AE17f20A2D4E6774f731bA8e889c7D948B4", decimals=6, label="Example dollar")
HERE, THERE, ELSEWHERE = (
    ChainInfo(id=name, name=name, family="evm", tokens=(COIN, USDX), confirmations=12, chain_id_num=number, is_evm=True)
    for name, number in (("here", 1), ("there", 2), ("elsewhere", 3))
)

LIES: Mapping[str, Mapping[str, object]] = {
    "another contract": {"to": THIEF},
    "another recipient": {"recipient": THIEF},
    "more than was asked for": {"units": 10**30},
    "an output of one unit": {"units_out": 1},
    "another token": {"buys": THIEF},
    "another chain": {"to_chain": 3},
    "native coin that nobody sells": {"value": "1"},
    "a deadline that is over": {"deadline": 1},
    "a deadline in a thousand years": {"deadline": 32_503_680_000},
    "a function that nobody knows": {"data": "0xa9059cbb" + "00" * 224},
}


def request(token: Token, units: int, origin: ChainInfo, there: ChainInfo) -> ExchangeRequest:
    """Return what a merchant would ask for."""
    return ExchangeRequest(
        sells=ChainToken(chain=origin, token=token),
        buys=ChainToken(chain=there, token=token),
        units=Units(units),
        sender=SENDER,
        recipient=RECIPIENT,
        slippage_bps=100,
    )


class FlorinHarness(BridgeHarness):
    """The example service, driven from inside, and the logs that its contracts would leave."""

    lies = tuple(LIES)

    def __init__(self, provider: BridgeProvider, config: FlorinConfig, service: ExampleService) -> None:
        self.provider = provider
        (self.reader,) = FlorinPlugin().readers(config)
        self.chains = {chain.id: chain for chain in (HERE, THERE, ELSEWHERE)}
        self.requests = [request(USDX, 5_000_003, HERE, THERE), request(COIN, 10**18 + 1, THERE, HERE)]
        self.unsupported = (ChainToken(chain=HERE, token=USDX), ChainToken(chain=ELSEWHERE, token=USDX))
        self._service = service

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        """Answer nothing for a while."""
        self._service.silent = True
        yield
        self._service.silent = False

    @asynccontextmanager
    async def lying(self, lie: str) -> AsyncIterator[None]:
        """Build calls that are not what was asked for, for a while."""
        self._service.lies = LIES[lie]
        yield
        self._service.lies = {}

    def receipt(self, request: ExchangeRequest, call: Call) -> Receipt:
        """Return the receipt of a deposit."""
        tx_id = hashlib.sha256(call.data).hexdigest()
        said = codec.Deposited(deposit_id=int(tx_id[:8], 16), sender=request.sender, deposit=codec.read(call.data))
        topics, data = codec.write_deposited(said)
        log = Log(address=call.to_address, topics=topics, data=data, position="log:1")
        block = Block(height=7, hash="aa", parent_hash="99", time=int(time.time()))
        return Receipt(tx_id=tx_id, block=block, succeeded=True, logs=(log,))

    def fill_log(self, request: ExchangeRequest, receipt: Receipt, *, recipient: str | None = None) -> FoundLog:
        """Return the log of its fill."""
        origin, there = request.sells.chain, request.buys.chain
        deposited = codec.read_deposited(receipt.logs[0])
        assert deposited is not None
        assert origin.chain_id_num is not None
        assert there.chain_id_num is not None
        said = codec.Filled(
            from_chain=origin.chain_id_num,
            deposit_id=deposited.deposit_id,
            contract=deposited.deposit.buys,
            recipient=recipient or request.recipient,
            units=deposited.deposit.units_out,
        )
        topics, data = codec.write_filled(said)
        log = Log(address=CONTRACTS[there.chain_id_num], topics=topics, data=data, position="log:3")
        return FoundLog(tx_id=receipt.tx_id[::-1], height=8, block_hash="bb", log=log)

    def refund_receipt(self, request: ExchangeRequest, receipt: Receipt, units: Units) -> Receipt:
        """Return the receipt of a refund to the request's sender."""
        deposited = codec.read_deposited(receipt.logs[0])
        assert deposited is not None
        said = codec.Refunded(recipient=request.sender, contract=deposited.deposit.sells, units=units)
        topics, data = codec.write_refunded(said)
        log = Log(address=receipt.logs[0].address, topics=topics, data=data, position="log:0")
        return structs.replace(receipt, tx_id=receipt.tx_id[::-1], logs=(log,))


class TestFlorinBridge(BridgeConformance):
    """Everything that a bridge promises."""

    @pytest.fixture
    async def harness(self) -> AsyncIterator[BridgeHarness]:
        """Run a service of its own for each test, and connect to it as the gateway does."""
        context = PluginContext(
            now=lambda: datetime.now(UTC), monotonic=time.monotonic, random=Random(1), user_agent="tests"
        )
        async with ExampleService(time.time) as service:
            contracts = {"here": CONTRACTS[1], "there": CONTRACTS[2]}
            config = FlorinConfig(base_url=service.url, requests_per_second=1000, contracts=contracts)
            async with FlorinPlugin().connect(config, context) as (provider,):
                yield FlorinHarness(provider, config, service)
