"""The provider: asks the service for quotes and calls, and hands on no call that is not what was asked for."""

from __future__ import annotations

from typing import ClassVar

from cambist.plugin import (
    Call,
    ChainInfo,
    ChainToken,
    ExchangeEffects,
    ExchangeRefusedError,
    ExchangeRequest,
    ProviderFee,
    ProviderUnavailableError,
    Quote,
    SwapProvider,
    Units,
    UnreadablePayloadError,
)
from cambist_chainkit.eip55 import parse_address
from cambist_chainkit.providers import other_than

from .reader import FlorinReader
from .service import Service
from .wire import CallAsked, CallTold, QuoteAsked, QuoteTold
from .words import address_of

WHOLE_BPS = 10_000
BUILD_WAIT_MAX_S = 5.0
"""Longer than quotes wait, so that many of them cannot keep a call that is to be signed from its turn."""


class FlorinSwaps(SwapProvider):
    """One service and its contracts. Keeps nothing."""

    name: ClassVar[str] = "florin"

    def __init__(self, service: Service, reader: FlorinReader) -> None:
        self._service = service
        self.reader = reader

    def supports(self, sells: ChainToken, buys: ChainToken) -> bool:
        """Whether the contract is on the chain, with EVM addresses. Which tokens there are, the service says."""
        chain = sells.chain
        served = chain.id in self.reader.contracts and chain.is_evm
        return served and buys.chain.id == chain.id and sells.token != buys.token

    async def quote(self, request: ExchangeRequest) -> Quote:
        """Ask what would come out."""
        _refuse_fee(request)
        asked = QuoteAsked(
            chain=_number(request.sells.chain),
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
        )

    async def build(self, request: ExchangeRequest, units_min: Units) -> Call:
        """Ask for the call, and read it back: the service may err, and so may whoever speaks in its name."""
        _refuse_fee(request)
        asked = CallAsked(
            chain=_number(request.sells.chain),
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
        )
        wrong = other_than(wanted, self._effects(request, call))
        if wrong:
            raise ProviderUnavailableError(f"{self.name} has built a call with another {' and '.join(wrong)}")
        return call

    def _effects(self, request: ExchangeRequest, call: Call) -> ExchangeEffects:
        chain = request.sells.chain
        try:
            effects = self.reader.read(chain, request.sender, call, {chain.id: chain})
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
