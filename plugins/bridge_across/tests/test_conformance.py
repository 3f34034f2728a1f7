"""The kit for bridges, on the plugin and a server that answers as Across's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from cambist.plugin import Block, Call, ExchangeRequest, FoundLog, Receipt, Units
from cambist.testing.conformance import BridgeConformance, BridgeHarness
from cambist_bridge_across.abi import DEPOSITED, DEPOSITED_TOPIC, FILLED, FILLED_TOPIC
from cambist_bridge_across.addresses import ZERO, spell
from cambist_bridge_across.bridge import AcrossBridge
from cambist_bridge_across.codec import codec
from cambist_chainkit.eip55 import keccak

from .samples import (
    ARBITRUM,
    BSC,
    CHAINS,
    ETHEREUM,
    RELAYER,
    STRANGER,
    event_log,
    reader,
    refunded_log,
    request,
    side,
    spoke_pool,
    transfer_log,
    word,
)
from .servers import AcrossServer

CUSTOMER = spell("0x" + "c5" * 20)
NO_MESSAGE = bytes(32)

LIES: Mapping[str, Mapping[str, Any]] = {
    "another spoke pool": {"spokePoolAddress": STRANGER},
    "another spoke pool there": {"destinationSpokePoolAddress": STRANGER},
    "another input token": {"inputToken": lambda told: told["inputToken"] | {"address": STRANGER}},
    "another output token": {"outputToken": lambda told: told["outputToken"] | {"address": STRANGER}},
    "other decimals": {"outputToken": lambda told: told["outputToken"] | {"decimals": 3}},
    "another chain": {"outputToken": lambda told: told["outputToken"] | {"chainId": 10}},
    "an output of one": {"outputAmount": "1"},
    "an output of nothing": {"outputAmount": "0"},
    "half of it": {"outputAmount": lambda told: str(int(told["outputAmount"]) // 2)},
    "more than goes in": {"outputAmount": lambda told: str(int(told["outputAmount"]) * 2)},
    "no time to fill": {"fillDeadline": lambda told: told["timestamp"]},
    "an absurd deadline": {"fillDeadline": str(2**32 - 1)},
    "a quote of yesterday": {"timestamp": lambda told: str(int(told["timestamp"]) - 86_400)},
    "a quote of tomorrow": {"timestamp": lambda told: str(int(told["timestamp"]) + 86_400)},
    "nobody else may fill": {"exclusiveRelayer": RELAYER, "exclusivityDeadline": lambda told: told["fillDeadline"]},
    "nobody may fill": {"exclusiveRelayer": ZERO, "exclusivityDeadline": 3600},
}


class AcrossHarness(BridgeHarness):
    """Drives the bridge. A recipient is in no answer: what the server says cannot change who gets the output."""

    lies = tuple(LIES)
    unsupported = (side(ETHEREUM, "USDT"), side(ARBITRUM, "ETH"))

    def __init__(self, bridge: AcrossBridge, server: AcrossServer) -> None:
        self.provider = bridge
        self.reader = reader()
        self.chains = CHAINS
        self.server = server
        self.requests = [
            request(side(*sells), side(*buys), units, recipient=CUSTOMER, slippage_bps=100)
            for sells, buys, units in (
                ((ETHEREUM, "USDT"), (ARBITRUM, "USDT"), 100_000_003),
                ((ARBITRUM, "ETH"), (ETHEREUM, "ETH"), 10**17 + 1),
                ((BSC, "USDT"), (ETHEREUM, "USDT"), 10**20 + 7),
            )
        ]

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        self.server.away = True
        yield
        self.server.away = False

    @asynccontextmanager
    async def lying(self, lie: str) -> AsyncIterator[None]:
        self.server.changes = dict(LIES[lie])
        yield
        self.server.changes = {}

    def receipt(self, request: ExchangeRequest, call: Call) -> Receipt:
        """Return what the SpokePool logs of a deposit, and what the token logs beside it."""
        here, told = request.sells.chain, codec().read_deposit_call(call.data)
        number = int.from_bytes(keccak(call.data)[:4], "big")
        exclusive = told.quote_timestamp + told.exclusivity if told.exclusivity else 0
        deposited = event_log(
            *(DEPOSITED, DEPOSITED_TOPIC, spoke_pool(here), 1),
            *(word(told.input_token), word(told.output_token), told.input_amount, told.output_amount),
            *(told.destination_chain_id, number, told.quote_timestamp, told.fill_deadline, exclusive),
            *(word(told.depositor), word(told.recipient), word(told.exclusive_relayer), told.message),
        )
        taken = transfer_log(spell(told.input_token), request.sender, spoke_pool(here), told.input_amount)
        block = Block(height=7, hash="0xaa", parent_hash="0x99", time=told.quote_timestamp + 60)
        tx_id = "0x" + keccak(call.data).hex()
        return Receipt(tx_id=tx_id, block=block, succeeded=True, logs=(taken, deposited))

    def fill_log(self, request: ExchangeRequest, receipt: Receipt, *, recipient: str | None = None) -> FoundLog:
        told = codec().read_deposited(receipt.logs[1])
        there, origin = request.buys.chain, request.sells.chain
        whom = word(recipient or request.recipient)
        log = event_log(
            *(FILLED, FILLED_TOPIC, spoke_pool(there), 3),
            *(told.input_token, told.output_token, told.input_amount, told.output_amount),
            *(there.chain_id_num, origin.chain_id_num, told.deposit_id, told.fill_deadline, told.exclusivity_deadline),
            *(told.exclusive_relayer, word(RELAYER), told.depositor, told.recipient, NO_MESSAGE),
            (whom, NO_MESSAGE, told.output_amount, 0),
        )
        return FoundLog(tx_id=receipt.tx_id[::-1], height=8, block_hash="0xbb", log=log)

    def refund_receipt(self, request: ExchangeRequest, receipt: Receipt, units: Units) -> Receipt:
        """Return what a bundle leaves that pays a relayer, too."""
        here, token = request.sells.chain, receipt.logs[0].address
        paid = [(RELAYER, 70), (request.sender, units)]
        transfers = [
            transfer_log(token, spoke_pool(here), who, each, position) for position, (who, each) in enumerate(paid)
        ]
        leaf = refunded_log(spoke_pool(here), token, paid, position=2, chain=here.chain_id_num)
        return replace(receipt, tx_id="0x" + receipt.tx_id[:1:-1], logs=(*transfers, leaf))


class TestAcross(BridgeConformance):
    @pytest.fixture
    async def harness(self, bridge, server):
        return AcrossHarness(bridge, server)
