"""A tiny provider of swaps and one of a bridge, on chains in memory: the second of each kind, beside the real ones."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import msgspec
from msgspec import Struct, structs

from cambist.plugin import (
    Block,
    BridgeDeposit,
    BridgeFill,
    BridgeProvider,
    BridgeStatus,
    Call,
    ChainInfo,
    ChainToken,
    ExchangeEffects,
    ExchangeProvider,
    ExchangeRefusedError,
    ExchangeRequest,
    FoundLog,
    Log,
    LogQuery,
    ProviderFee,
    ProviderUnavailableError,
    Quote,
    Receipt,
    SwapProvider,
    Units,
)
from cambist.testing.conformance import BridgeHarness, ExchangeHarness
from cambist.testing.memory import MemoryChainConfig, memory_chain_info
from cambist.testing.memory.family import named_address

from .exchanges import ROUTER, FairReader, exchange_call

CHAINS: Mapping[str, ChainInfo] = {
    name: memory_chain_info(name, MemoryChainConfig()) for name in ("memory", "other", "third")
}
SENDER, RECIPIENT = named_address("sender"), named_address("recipient")
DEADLINE = 1_800_000_000


def token(chain: str, symbol: str) -> ChainToken:
    found = CHAINS[chain].token(symbol)
    assert found is not None
    return ChainToken(chain=CHAINS[chain], token=found)


class FairService:
    """What would be a server: it gives two for one, and can be down or lie about one field of a call's effects."""

    def __init__(self) -> None:
        self.down = False
        self.lie: dict[str, Any] = {}

    def quoted(self, request: ExchangeRequest) -> int:
        if self.down:
            raise ProviderUnavailableError("fair is down")
        return request.units * 2

    def built(self, effects: ExchangeEffects) -> Call:
        said = structs.replace(effects, **{name: value for name, value in self.lie.items() if name != "to_address"})
        return exchange_call(said, **{name: value for name, value in self.lie.items() if name == "to_address"})


class FairProvider(ExchangeProvider):
    """What both have in common: quotes, and calls that are read back before they are handed on."""

    def __init__(self, service: FairService) -> None:
        self.service = service
        self.reader = FairReader()

    async def quote(self, request: ExchangeRequest) -> Quote:
        units = self.service.quoted(request)
        return Quote(
            units=Units(units),
            units_min=Units(units * (10_000 - request.slippage_bps) // 10_000),
            fees=(ProviderFee(name="fair", units=Units(0)),),
            fill_deadline=self.deadline,
        )

    deadline: ClassVar[int | None] = None

    async def build(self, request: ExchangeRequest, units_min: Units) -> Call:
        if units_min > self.service.quoted(request):
            raise ExchangeRefusedError("so much is not to be had", reason="price_moved")
        wanted = ExchangeEffects(
            sold_contract=request.sells.token.contract,
            sold=request.units,
            spender=None if request.sells.token.is_native else ROUTER,
            chain=request.buys.chain.id,
            bought_contract=request.buys.token.contract,
            bought_min=units_min,
            recipient=request.recipient,
            refund_to=None if self.deadline is None else request.sender,
            valid_until=self.deadline,
        )
        call = self.service.built(wanted)
        if self.reader.read(request.sells.chain, request.sender, call, CHAINS) != wanted:
            raise ProviderUnavailableError("fair has built something else than it was asked for")
        return call


class FairSwaps(FairProvider, SwapProvider):
    name = "fair"

    def supports(self, sells: ChainToken, buys: ChainToken) -> bool:
        return sells.chain.id == buys.chain.id and sells.token != buys.token


class FairBridge(FairProvider, BridgeProvider):
    name = "fair-bridge"
    deadline = DEADLINE

    def supports(self, sells: ChainToken, buys: ChainToken) -> bool:
        return sells.chain.id != buys.chain.id and "third" not in {sells.chain.id, buys.chain.id}

    def deposit(self, chain: ChainInfo, receipt: Receipt, chains: Mapping[str, ChainInfo]) -> BridgeDeposit | None:
        _ = chain, chains
        found = [log for log in receipt.logs if receipt.succeeded and _is(log, "deposit")]
        return msgspec.json.decode(found[0].data, type=BridgeDeposit) if found else None

    def fill_query(
        self, chain: ChainInfo, deposit: BridgeDeposit, origin: ChainInfo, first: int, last: int
    ) -> LogQuery:
        _ = chain, origin
        return LogQuery(address=ROUTER, topics=(topic(deposit.deposit_id),), first=first, last=last)

    def fill(self, chain: ChainInfo, deposit: BridgeDeposit, origin: ChainInfo, found: FoundLog) -> BridgeFill | None:
        _ = chain, origin
        said = msgspec.json.decode(found.log.data, type=FillData)
        if found.log.address != ROUTER or said.deposit_id != deposit.deposit_id or said.recipient != deposit.recipient:
            return None
        return BridgeFill(deposit_id=deposit.deposit_id, tx_id=found.tx_id, units=said.units)

    def refund_query(self, chain: ChainInfo, deposit: BridgeDeposit, first: int, last: int) -> LogQuery:
        _ = chain
        topics = (topic("refund"), topic(deposit.refund_to))
        return LogQuery(address=ROUTER, topics=topics, first=first, last=last)

    def refund(self, chain: ChainInfo, deposit: BridgeDeposit, receipt: Receipt) -> Units | None:
        _ = chain
        refunds = [log for log in receipt.logs if receipt.succeeded and _is(log, "refund")]
        told = [msgspec.json.decode(log.data, type=RefundData) for log in refunds]
        whose = (deposit.refund_contract, deposit.refund_to)
        return Units(sum(one.units for one in told if (one.contract, one.recipient) == whose)) or None

    async def status(self, origin: ChainInfo, deposit: BridgeDeposit) -> BridgeStatus:
        _ = origin, deposit
        if self.service.down:
            raise ProviderUnavailableError("fair is down")
        return BridgeStatus(state="pending")


class FillData(Struct, frozen=True, kw_only=True):
    """What the log of a fill says."""

    deposit_id: str
    recipient: str
    units: Units


class RefundData(Struct, frozen=True, kw_only=True):
    """What the log of a refund says."""

    contract: str | None
    recipient: str
    units: Units


def _is(log: Log, kind: str) -> bool:
    return log.address == ROUTER and log.topics[:1] == (topic(kind),)


def topic(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def request(sells: tuple[str, str], buys: tuple[str, str], units: int) -> ExchangeRequest:
    return ExchangeRequest(
        sells=token(*sells),
        buys=token(*buys),
        units=Units(units),
        sender=SENDER,
        recipient=RECIPIENT,
        slippage_bps=100,
    )


LIES: Mapping[str, Mapping[str, Any]] = {
    "another router": {"to_address": named_address("thief")},
    "another recipient": {"recipient": named_address("thief")},
    "more than asked": {"sold": Units(10**30)},
    "an output of one": {"bought_min": Units(1)},
    "another token": {"bought_contract": named_address("thief's token")},
}


class FairSwapHarness(ExchangeHarness[SwapProvider]):
    """Drives the swaps."""

    lies = tuple(LIES)

    def __init__(self, kind: type[FairSwaps] = FairSwaps) -> None:
        self.service = FairService()
        self.provider = kind(self.service)
        self.reader = self.provider.reader
        self.chains = CHAINS
        self.requests = [
            request(("memory", "USDX"), ("memory", "MEM"), 5_000_003),
            request(("memory", "MEM"), ("memory", "USDX"), 10**18 + 1),
        ]
        self.unsupported = (token("memory", "USDX"), token("other", "USDX"))

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        self.service.down = True
        yield
        self.service.down = False

    @asynccontextmanager
    async def lying(self, lie: str) -> AsyncIterator[None]:
        self.service.lie = dict(LIES[lie])
        yield
        self.service.lie = {}


class FairBridgeHarness(FairSwapHarness, BridgeHarness):
    """Drives the bridge."""

    def __init__(self, kind: type[FairBridge] = FairBridge) -> None:
        super().__init__()
        self.provider = kind(self.service)
        self.reader = self.provider.reader
        self.requests = [
            request(("memory", "USDX"), ("other", "USDX"), 5_000_003),
            request(("memory", "MEM"), ("other", "MEM"), 10**18 + 1),
        ]
        self.unsupported = (token("memory", "USDX"), token("third", "USDX"))

    def receipt(self, request: ExchangeRequest, call: Call) -> Receipt:
        effects = msgspec.json.decode(call.data, type=ExchangeEffects)
        tx_id = hashlib.sha256(call.data).hexdigest()
        deposit = BridgeDeposit(
            deposit_id=tx_id[:8],
            tx_id=tx_id,
            units=effects.sold,
            chain=effects.chain,
            contract=effects.bought_contract,
            units_out=effects.bought_min,
            recipient=effects.recipient,
            refund_to=request.sender,
            refund_contract=effects.sold_contract,
            fill_deadline=DEADLINE,
        )
        log = Log(address=ROUTER, topics=(topic("deposit"),), data=msgspec.json.encode(deposit), position="log:0")
        block = Block(height=7, hash="aa", parent_hash="99", time=DEADLINE - 7_200)
        return Receipt(tx_id=tx_id, block=block, succeeded=True, logs=(log,))

    def fill_log(self, request: ExchangeRequest, receipt: Receipt, *, recipient: str | None = None) -> FoundLog:
        deposit = msgspec.json.decode(receipt.logs[0].data, type=BridgeDeposit)
        data = FillData(
            deposit_id=deposit.deposit_id, recipient=recipient or request.recipient, units=deposit.units_out
        )
        log = Log(address=ROUTER, topics=(topic(deposit.deposit_id),), data=msgspec.json.encode(data), position="log:3")
        return FoundLog(tx_id=receipt.tx_id[::-1], height=8, block_hash="bb", log=log)

    def refund_receipt(self, request: ExchangeRequest, receipt: Receipt, units: Units) -> Receipt:
        deposit = msgspec.json.decode(receipt.logs[0].data, type=BridgeDeposit)
        data = RefundData(contract=deposit.refund_contract, recipient=request.sender, units=units)
        topics = (topic("refund"), topic(request.sender))
        log = Log(address=ROUTER, topics=topics, data=msgspec.json.encode(data), position="log:0")
        return structs.replace(receipt, tx_id=receipt.tx_id[::-1], logs=(log,))
