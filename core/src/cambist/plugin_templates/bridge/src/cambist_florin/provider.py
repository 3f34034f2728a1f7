"""The provider: asks the service for quotes and calls, and hands on no call that is not what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import ClassVar

from msgspec import structs

from cambist.plugin import (
    BridgeDeposit,
    BridgeFill,
    BridgeProvider,
    BridgeStatus,
    Call,
    ChainInfo,
    ChainToken,
    ExchangeEffects,
    ExchangeRefusedError,
    ExchangeRequest,
    FoundLog,
    LogQuery,
    ProviderFee,
    ProviderUnavailableError,
    Quote,
    Receipt,
    Units,
    UnreadablePayloadError,
)
from cambist_chainkit.eip55 import parse_address
from cambist_chainkit.providers import other_than

from . import codec
from .reader import FlorinReader
from .service import Service
from .wire import CallAsked, CallTold, QuoteAsked, QuoteTold, StatusAsked, StatusTold
from .words import address_of

WHOLE_BPS = 10_000
BUILD_WAIT_MAX_S = 5.0
"""Longer than quotes wait, so that many of them cannot keep a call that is to be signed from its turn."""
DEADLINE_S_MAX = 86_400
"""Money that nobody fills is kept from its owner for so long at most."""


class FlorinBridge(BridgeProvider):
    """One service and its contracts. Keeps nothing."""

    name: ClassVar[str] = "florin"

    def __init__(self, service: Service, reader: FlorinReader, now: Callable[[], datetime]) -> None:
        self._service = service
        self.reader = reader
        self._now = now

    def supports(self, sells: ChainToken, buys: ChainToken) -> bool:
        """Whether both chains have a contract and EVM addresses. Which tokens there are, the service says."""
        chains = (sells.chain, buys.chain)
        served = all(chain.id in self.reader.contracts and chain.is_evm for chain in chains)
        return served and sells.chain.id != buys.chain.id

    async def quote(self, request: ExchangeRequest) -> Quote:
        """Ask what would come out, and until when."""
        _refuse_fee(request)
        asked = QuoteAsked(
            chain=_number(request.sells.chain),
            to_chain=_number(request.buys.chain),
            sells=address_of(request.sells.token.contract),
            buys=address_of(request.buys.token.contract),
            units=str(request.units),
        )
        told = await self._service.ask(QuoteTold, "quote", asked)
        units = int(told.units)
        return Quote(
            units=Units(units),
            units_min=Units(units * (WHOLE_BPS - request.slippage_bps) // WHOLE_BPS),
            fees=(ProviderFee(name="service", units=Units(int(told.fee))),),
            fill_deadline=told.deadline,
            fill_s=told.fill_s,
        )

    async def build(self, request: ExchangeRequest, units_min: Units) -> Call:
        """Ask for the call, and read it back: the service may err, and so may whoever speaks in its name."""
        _refuse_fee(request)
        asked = CallAsked(
            chain=_number(request.sells.chain),
            to_chain=_number(request.buys.chain),
            sells=address_of(request.sells.token.contract),
            buys=address_of(request.buys.token.contract),
            units=str(request.units),
            sender=request.sender,
            recipient=request.recipient,
            units_min=str(units_min),
        )
        told = await self._service.ask(CallTold, "call", asked, wait_max_s=BUILD_WAIT_MAX_S)
        call = Call(
            to_address=parse_address(told.to) or told.to,
            data=bytes.fromhex(told.data[2:]),
            value=Units(int(told.value)),
        )
        wanted = ExchangeEffects(
            sold_contract=request.sells.token.contract,
            sold=request.units,
            spender=None if request.sells.token.is_native else self.reader.contracts[request.sells.chain.id],
            chain=request.buys.chain.id,
            bought_contract=request.buys.token.contract,
            bought_min=units_min,
            recipient=request.recipient,
            refund_to=request.sender,
        )
        effects = self._effects(request, call)
        wrong = other_than(wanted, structs.replace(effects, valid_until=None))
        if wrong:
            raise ProviderUnavailableError(f"{self.name} has built a call with another {' and '.join(wrong)}")
        # The deadline is the service's to choose, within reason.
        if not 0 < (effects.valid_until or 0) - self._now().timestamp() <= DEADLINE_S_MAX:
            raise ProviderUnavailableError(f"{self.name} has chosen a deadline that is over, or too far away")
        return call

    def deposit(self, chain: ChainInfo, receipt: Receipt, chains: Mapping[str, ChainInfo]) -> BridgeDeposit | None:
        """Return the deposit that the contract's own log tells of."""
        for log in receipt.logs if receipt.succeeded else ():
            if log.address != self.reader.contracts.get(chain.id):
                continue
            try:
                found = codec.read_deposited(log)
                if found is None:
                    continue
                there = self.reader.numbered(found.deposit.to_chain, chains)
            except UnreadablePayloadError:
                continue
            return BridgeDeposit(
                deposit_id=str(found.deposit_id),
                tx_id=receipt.tx_id,
                units=Units(found.deposit.units),
                chain=there.id,
                contract=found.deposit.buys,
                units_out=Units(found.deposit.units_out),
                recipient=found.deposit.recipient,
                refund_to=found.sender,
                refund_contract=found.deposit.sells,
                fill_deadline=found.deposit.deadline,
            )
        return None

    def fill_query(
        self, chain: ChainInfo, deposit: BridgeDeposit, origin: ChainInfo, first: int, last: int
    ) -> LogQuery:
        """Return what finds the fill: its log names the chain and the number of its deposit."""
        topics = codec.fill_topics(_number(origin), int(deposit.deposit_id))
        return LogQuery(address=self.reader.contracts[chain.id], topics=topics, first=first, last=last)

    def fill(self, chain: ChainInfo, deposit: BridgeDeposit, origin: ChainInfo, found: FoundLog) -> BridgeFill | None:
        """Return the fill, where it gave this deposit's token to its recipient, and no less than was promised."""
        if found.log.address != self.reader.contracts.get(chain.id):
            return None
        try:
            said = codec.read_filled(found.log)
        except UnreadablePayloadError:
            return None
        if said is None or (said.from_chain, str(said.deposit_id)) != (_number(origin), deposit.deposit_id):
            return None
        if (said.contract, said.recipient) != (deposit.contract, deposit.recipient) or said.units < deposit.units_out:
            return None
        return BridgeFill(deposit_id=deposit.deposit_id, tx_id=found.tx_id, units=Units(said.units))

    def refund_query(self, chain: ChainInfo, deposit: BridgeDeposit, first: int, last: int) -> LogQuery:
        """Return what finds the refunds to the depositor."""
        topics = codec.refund_topics(deposit.refund_to)
        return LogQuery(address=self.reader.contracts[chain.id], topics=topics, first=first, last=last)

    def refund(self, chain: ChainInfo, deposit: BridgeDeposit, receipt: Receipt) -> Units | None:
        """Return the sum of what the contract's own logs say went back to the depositor, of the token that it gave."""
        units = 0
        for log in receipt.logs if receipt.succeeded else ():
            if log.address != self.reader.contracts.get(chain.id):
                continue
            try:
                said = codec.read_refunded(log)
            except UnreadablePayloadError:
                continue
            if said is not None and (said.contract, said.recipient) == (deposit.refund_contract, deposit.refund_to):
                units += said.units
        return Units(units) if units else None

    async def status(self, origin: ChainInfo, deposit: BridgeDeposit) -> BridgeStatus:
        """Ask the service, which hears of a deposit later than its chain does."""
        asked = StatusAsked(chain=_number(origin), deposit_id=deposit.deposit_id)
        told = await self._service.ask(StatusTold, "status", asked)
        return BridgeStatus(state=told.state, tx_id=told.tx_id)

    def _effects(self, request: ExchangeRequest, call: Call) -> ExchangeEffects:
        chains = {chain.id: chain for chain in (request.sells.chain, request.buys.chain)}
        try:
            effects = self.reader.read(request.sells.chain, request.sender, call, chains)
        except UnreadablePayloadError as error:
            raise ProviderUnavailableError(f"{self.name} has built a call that is not sent: {error}") from error
        if effects is None:
            raise ProviderUnavailableError(f"{self.name} has built a call of {call.to_address}, which is not pinned")
        return effects


def _number(chain: ChainInfo) -> int:
    """Return the number of a chain that is served, by which the service knows it."""
    if chain.chain_id_num is None:
        raise ExchangeRefusedError(f"{chain.name} has no number to ask by.", reason="unsupported")
    return chain.chain_id_num


def _refuse_fee(request: ExchangeRequest) -> None:
    """Refuse what the function has no argument for, instead of leaving the platform without its share."""
    if request.fee_bps:
        raise ExchangeRefusedError("It can pay no share to the platform.", reason="unsupported")
