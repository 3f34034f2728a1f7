"""The bridge: what Across offers, the deposit that takes the offer, and what the two chains show of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from cambist.plugin import (
    BridgeDeposit,
    BridgeFill,
    BridgeProvider,
    BridgeStatus,
    Call,
    ChainInfo,
    ChainToken,
    ExchangeRefusedError,
    ExchangeRequest,
    FoundLog,
    LogQuery,
    ProviderUnavailableError,
    Quote,
    Receipt,
    Units,
)
from cambist.plugin.budgets import WAIT_MAX_S
from cambist_chainkit.providers import QUOTE_WAIT_MAX_S

from . import offers
from .addresses import ZERO, same, spell
from .api import AcrossApi, Offer, Route
from .codec import Codec, DepositCall, codec
from .config import AcrossConfig
from .deployments import Deployment, Deployments
from .events import Events

BPS: Final = 10_000
UINT256_MAX: Final = 2**256 - 1
_FAMILIES: Final = {
    "WETH": "ETH",
    "WBNB": "BNB",
    "WPOL": "POL",
    "MATIC": "POL",
    "WMATIC": "POL",
    "USDT0": "USDT",
    "USDC.E": "USDC",
    "USDBC": "USDC",
}
"""Symbols that go by another name on another chain, and are the same to Across."""


class AcrossBridge(BridgeProvider):
    """Across: relayers pay out from their own money, and get the deposit later."""

    name = "across"

    def __init__(self, api: AcrossApi, config: AcrossConfig, now: Callable[[], datetime]) -> None:
        self._api = api
        self._now = now
        self._deployments = Deployments(config)
        self._events = Events(self._deployments)
        self._fee_max_ppm = config.fee_max_ppm
        self._tail = config.tail

    def supports(self, sells: ChainToken, buys: ChainToken) -> bool:
        """Whether both chains have Across and both tokens are of a kind; what it bridges in fact, it says in a quote.

        Wrapped coin cannot be bought: a fill unwraps it.
        """
        there = self._deployments.of(buys.chain)
        if there is None or self._deployments.of(sells.chain) is None:
            return False
        if sells.chain.id == buys.chain.id or sells.chain.chain_id_num == buys.chain.chain_id_num:
            return False
        return _family(sells) == _family(buys) and not same(buys.token.contract, there.wrapped_native)

    def refund_contract(self, sells: ChainToken) -> str | None:
        """Return the token itself; for native coin the wrapped one."""
        here = self._deployments.of(sells.chain)
        return here.wrapped_native if sells.token.is_native and here is not None else sells.token.contract

    async def quote(self, request: ExchangeRequest) -> Quote:
        """Return what a relayer would pay out now, and how much less the slippage allows."""
        offer = await self._offer(request, QUOTE_WAIT_MAX_S)
        return Quote(
            units=Units(offer.units_out),
            units_min=Units(max(1, offer.units_out * (BPS - request.slippage_bps) // BPS)),
            fees=offers.fees(offer, request),
            fill_deadline=offer.fill_deadline,
            fill_s=offers.fill_s(offer),
        )

    async def build(self, request: ExchangeRequest, units_min: Units) -> Call:
        """Return the deposit for what is offered now. The contract holds fillers to the output that it names."""
        writer = await _imported()
        offer = await self._offer(request, WAIT_MAX_S)
        if offer.units_out < units_min:
            raise ExchangeRefusedError("Across offers less by now than was promised", reason="price_moved")
        here = self._deployments.of(request.sells.chain)
        if here is None:
            raise _unsupported()
        deposit = DepositCall(
            depositor=spell(request.sender),
            recipient=spell(request.recipient),
            input_token=spell(offer.input_side.contract),
            output_token=spell(offer.output_side.contract),
            input_amount=request.units,
            output_amount=offer.units_out,
            destination_chain_id=offer.output_side.chain,
            exclusive_relayer=spell(offer.exclusive_relayer) if offer.exclusivity else ZERO,
            quote_timestamp=offer.quoted_at,
            fill_deadline=offer.fill_deadline,
            exclusivity=offer.exclusivity,
        )
        return Call(
            to_address=here.spoke_pool,
            data=writer.deposit_call(deposit) + self._tail,
            value=request.units if request.sells.token.is_native else Units(0),
        )

    def deposit(self, chain: ChainInfo, receipt: Receipt, chains: Mapping[str, ChainInfo]) -> BridgeDeposit | None:
        """Return the one deposit of a receipt."""
        return self._events.deposit(chain, receipt, chains)

    def fill_query(
        self, chain: ChainInfo, deposit: BridgeDeposit, origin: ChainInfo, first: int, last: int
    ) -> LogQuery:
        """Return what finds a deposit's fill by its chain and number."""
        return self._events.fill_query(chain, deposit, origin, first, last)

    def fill(self, chain: ChainInfo, deposit: BridgeDeposit, origin: ChainInfo, found: FoundLog) -> BridgeFill | None:
        """Return the fill that a log tells of, where it is this deposit's."""
        return self._events.fill(chain, deposit, origin, found)

    def refund_query(self, chain: ChainInfo, deposit: BridgeDeposit, first: int, last: int) -> LogQuery:
        """Return what finds transfers from the SpokePool to the depositor. Native coin comes back wrapped."""
        return self._events.refund_query(chain, deposit, first, last)

    def refund(self, chain: ChainInfo, deposit: BridgeDeposit, receipt: Receipt) -> Units | None:
        """Return how much a receipt refunds to the depositor, for whichever of the depositor's deposits."""
        return self._events.refund(chain, deposit, receipt)

    async def status(self, origin: ChainInfo, deposit: BridgeDeposit) -> BridgeStatus:
        """Return what Across's server says: a hint where to look."""
        if origin.chain_id_num is None:
            raise ProviderUnavailableError(f"Across is not known on {origin.name}")
        tracked = await self._api.track(origin.chain_id_num, deposit.deposit_id)
        return BridgeStatus(state=tracked.state, tx_id=tracked.tx_id)

    async def _offer(self, request: ExchangeRequest, wait_max_s: float) -> Offer:
        route, here, there = self._route(request)
        try:
            offer = await self._api.offer(route, request.units, request.recipient, wait_max_s=wait_max_s)
        except ExchangeRefusedError as error:
            raise await self._with_limits(error, route, request) from error
        now = int(self._now().timestamp())
        offers.check(offer, route, request, here=here, there=there, now=now, max_ppm=self._fee_max_ppm)
        return offer

    def _route(self, request: ExchangeRequest) -> tuple[Route, Deployment, Deployment]:
        sells, buys = request.sells, request.buys
        here, there = self._deployments.of(sells.chain), self._deployments.of(buys.chain)
        origin, destination = sells.chain.chain_id_num, buys.chain.chain_id_num
        if here is None or there is None or origin is None or destination is None or not self.supports(sells, buys):
            raise _unsupported()
        if request.fee_bps:
            # A deposit has one recipient, and nobody else gets a share of it.
            raise ExchangeRefusedError("Across pays no fee to anybody else", reason="unsupported")
        if not offers.is_account(request.sender) or not offers.is_account(request.recipient):
            raise ExchangeRefusedError("Across bridges between addresses of EVM chains alone")
        if not 0 < request.units <= UINT256_MAX:
            raise ExchangeRefusedError("this is no amount that can be bridged")
        route = Route(
            origin=origin,
            destination=destination,
            input_token=sells.token.contract or here.wrapped_native,
            output_token=buys.token.contract or there.wrapped_native,
            same_decimals=sells.token.decimals == buys.token.decimals,
        )
        return route, here, there

    async def _with_limits(
        self, error: ExchangeRefusedError, route: Route, request: ExchangeRequest
    ) -> ExchangeRefusedError:
        """Return the refusal with the amount that would do, where Across says it."""
        if error.reason not in {"amount_too_low", "amount_too_high"}:
            return error
        try:
            limits = await self._api.limits(route)
        except (ExchangeRefusedError, ProviderUnavailableError):
            return error
        token = request.sells.token
        if error.reason == "amount_too_low" and limits.units_min > request.units:
            bound = f"at least {_written(limits.units_min, token.decimals)} {token.symbol}"
        elif error.reason == "amount_too_high" and limits.units_max < request.units:
            bound = f"at most {_written(limits.units_max, token.decimals)} {token.symbol}"
        else:
            return error
        return ExchangeRefusedError(f"Across takes {bound} here now", reason=error.reason)


async def _imported() -> Codec:
    """Return the codec, before anything is asked for that grows old while it is imported."""
    try:
        return await asyncio.to_thread(codec)
    except ImportError as error:
        raise ProviderUnavailableError(f"deposits of Across cannot be written here: {error}") from error


def _unsupported() -> ExchangeRefusedError:
    return ExchangeRefusedError("Across does not bridge this token between these chains", reason="unsupported")


def _family(side: ChainToken) -> str:
    symbol = side.token.symbol.upper()
    return _FAMILIES.get(symbol, symbol)


def _written(units: int, decimals: int) -> str:
    whole, rest = divmod(units, 10**decimals)
    return f"{whole}.{rest:0{decimals}}".rstrip("0").rstrip(".") if decimals else str(whole)
