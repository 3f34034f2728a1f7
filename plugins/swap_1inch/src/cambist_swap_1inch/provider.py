"""Quotes and builds swaps. What the server builds is read back here, and differs from what was asked nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import ClassVar, Final, NamedTuple

from cambist.plugin import (
    Call,
    CallReader,
    ChainToken,
    ExchangeEffects,
    ExchangeRefusedError,
    ExchangeRequest,
    ProviderUnavailableError,
    Quote,
    SwapProvider,
    Units,
    UnreadablePayloadError,
)
from cambist_chainkit.providers import other_than
from cambist_chainkit.remembered import RememberedByKey

from .api import WORD_MAX, BuiltSwap, OneInchApi
from .config import NATIVE, Routers

WHOLE_BPS: Final = 10_000
SLIPPAGE_BPS_MAX: Final = 5_000
FEE_BPS_MAX: Final = 300

ATTEMPTS_MAX: Final = 3
ROUNDING: Final = 1_000_000
"""The server may compute the least output with floats: it may be less than it should be by this part."""

QUOTES_KEPT_MAX: Final = 1_000


class _Asked(NamedTuple):
    """What a quote depends on."""

    chain_id: int
    src: str
    dst: str
    units: int
    fee_bps: int

    @property
    def params(self) -> Mapping[str, str]:
        fee = {"fee": _percent(self.fee_bps)} if self.fee_bps else {}
        return {"src": self.src, "dst": self.dst, "amount": str(self.units), **fee}


class OneInchSwaps(SwapProvider):
    """1inch's classic swaps. What it keeps for itself is in the price, so quotes name no fees."""

    name: ClassVar[str] = "1inch"

    def __init__(  # noqa: PLR0913 - by keyword
        self,
        api: OneInchApi,
        routers: Routers,
        reader: Callable[[], CallReader],
        *,
        compatibility: bool,
        monotonic: Callable[[], float],
        quote_ttl_s: float,
    ) -> None:
        """``reader`` is called when swaps are built, in a thread: it may take its time once."""
        self._api = api
        self._routers = routers
        self._reader = reader
        self._compatibility = compatibility
        self._quotes = RememberedByKey(self._read_quote, monotonic, seconds=quote_ttl_s, keys_max=QUOTES_KEPT_MAX)

    def supports(self, sells: ChainToken, buys: ChainToken) -> bool:
        return (
            sells.chain.id == buys.chain.id
            and sells.token.contract != buys.token.contract
            and self._routers.of(sells.chain) is not None
        )

    async def quote(self, request: ExchangeRequest) -> Quote:
        """Return what would come out, as it was within the last seconds."""
        units = await self._quotes.now(self._asked(request))
        if not units:
            raise ExchangeRefusedError("1inch would give nothing for this", reason="no_liquidity")
        return Quote(units=Units(units), units_min=Units(_least(units, request.slippage_bps)))

    async def build(self, request: ExchangeRequest, units_min: Units) -> Call:
        asked = self._asked(request)
        reader = await self._imported()
        slippage_bps = request.slippage_bps
        for _ in range(ATTEMPTS_MAX):
            built = await self._api.swap(asked.chain_id, self._swap_params(asked, request, slippage_bps))
            if built.units < units_min:
                break
            call, bought_min = self._checked(reader, request, built)
            if bought_min >= units_min:
                return call
            least = _least(built.units, slippage_bps)
            if bought_min < least - least // ROUNDING - 1:
                raise ProviderUnavailableError("1inch built a call that guarantees less than was asked for")
            if not slippage_bps:
                break
            # The price has moved since the quote, but not too far: less slippage guarantees as much as was promised.
            slippage_bps = min(slippage_bps - 1, (built.units - units_min) * WHOLE_BPS // built.units)
        raise ExchangeRefusedError("1inch does not give as much as was quoted any more", reason="price_moved")

    async def _imported(self) -> CallReader:
        """Return the reader, before anything is asked for that grows old while it is imported."""
        try:
            return await asyncio.to_thread(self._reader)
        except ImportError as error:
            raise ProviderUnavailableError(f"swaps of 1inch cannot be read here: {error}") from error

    def _asked(self, request: ExchangeRequest) -> _Asked:
        """Return what to ask for. Raises ExchangeRefusedError for what need not be asked."""
        chain = request.sells.chain
        if not self.supports(request.sells, request.buys) or chain.chain_id_num is None:
            raise ExchangeRefusedError("1inch does not swap these", reason="unsupported")
        if request.units <= 0:
            raise ExchangeRefusedError("there is nothing to swap", reason="amount_too_low")
        if request.units > WORD_MAX:
            raise ExchangeRefusedError("no chain can hold so much", reason="amount_too_high")
        if not 0 <= request.slippage_bps <= SLIPPAGE_BPS_MAX:
            raise ExchangeRefusedError("1inch takes a slippage of 0 to 50 percent")
        if not 0 <= request.fee_bps <= FEE_BPS_MAX or (request.fee_bps and not request.fee_recipient):
            raise ExchangeRefusedError("1inch takes a fee of 0 to 3 percent, for somebody")
        src, dst = (one.token.contract or NATIVE for one in (request.sells, request.buys))
        return _Asked(chain.chain_id_num, src, dst, request.units, request.fee_bps)

    async def _read_quote(self, asked: _Asked) -> int:
        return await self._api.quote(asked.chain_id, asked.params)

    def _swap_params(self, asked: _Asked, request: ExchangeRequest, slippage_bps: int) -> Mapping[str, str]:
        params = {
            **asked.params,
            "from": request.sender,
            "origin": request.sender,
            "receiver": request.recipient,
            "slippage": _percent(slippage_bps),
            "disableEstimate": "true",  # approval and call are tried together, by the chain
            "allowPartialFill": "false",
            "usePermit2": "false",
        }
        if request.fee_bps and request.fee_recipient:
            params["referrer"] = request.fee_recipient
        if self._compatibility:
            params["compatibility"] = "true"
        return params

    def _checked(self, reader: CallReader, request: ExchangeRequest, built: BuiltSwap) -> tuple[Call, int]:
        """Return the call and its least output. Raises ProviderUnavailableError where anything else is not as asked."""
        chain = request.sells.chain
        call = Call(to_address=built.to_address, data=built.data, value=Units(built.value))
        try:
            effects = reader.read(chain, request.sender, call, {chain.id: chain})
        except UnreadablePayloadError as error:
            raise ProviderUnavailableError(f"1inch built a call that is not sent: {error}") from error
        if effects is None:
            raise ProviderUnavailableError(f"1inch built a call of {call.to_address}, which is not the pinned router")
        sold = request.sells.token.contract
        wanted = ExchangeEffects(
            sold_contract=sold,
            sold=request.units,
            spender=None if sold is None else self._routers.of(chain),
            chain=chain.id,
            bought_contract=request.buys.token.contract,
            bought_min=effects.bought_min,
            recipient=request.recipient,
        )
        wrong = [*other_than(wanted, effects)]
        if built.sender != request.sender:
            wrong.append("sender")
        if wrong:
            raise ProviderUnavailableError(f"1inch built a call with another {' and '.join(wrong)} than was asked for")
        return call, effects.bought_min


def _least(units: int, slippage_bps: int) -> int:
    return units * (WHOLE_BPS - slippage_bps) // WHOLE_BPS


def _percent(bps: int) -> str:
    return f"{bps // 100}.{bps % 100:02d}"
