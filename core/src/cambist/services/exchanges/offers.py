"""Asks every provider at once, each with a deadline, and takes the best offer that is no bad bargain."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from decimal import Decimal

import structlog
from msgspec import Struct

from cambist.deadlines import within
from cambist.domain.exchanges import BPS, Kind, Side, least_at_rate, least_worth, share_of
from cambist.domain.money import UNITS_MAX, format_units
from cambist.plugin import (
    BridgeProvider,
    ChainToken,
    ExchangeRefusedError,
    ExchangeRequest,
    ProviderUnavailableError,
    Quote,
    RefusalReason,
    Units,
)
from cambist.plugin.text import printable
from cambist.services.errors import InvalidError, ServiceError, UnavailableError
from cambist.services.platform import PlatformSettings
from cambist.services.pricing.prices import NotPricedError, RateUnavailableError
from cambist.services.pricing.quotes import Asset

from .context import ExchangeContext
from .requests import Wish
from .simulated import Quoting

PROVIDERS_MAX = 20
TIMES_WORTH_MAX = 4
"""More than so many times what is given, by our own prices, is a mistake or a lie: other offers come before it."""
REASON_CHARS_MAX = 200
LATEST = 32_503_680_000
"""The year 3000, in seconds since 1970 UTC: no deadline is later."""
FILL_S_MAX = 86_400 * 365

CODES: dict[RefusalReason, str] = {
    "unsupported": "PAIR_NOT_SUPPORTED",
    "amount_too_low": "EXCHANGE_AMOUNT_TOO_LOW",
    "amount_too_high": "EXCHANGE_AMOUNT_TOO_HIGH",
    "no_liquidity": "EXCHANGE_NO_LIQUIDITY",
    "price_moved": "EXCHANGE_REFUSED",
    "refused": "EXCHANGE_REFUSED",
}

log = structlog.get_logger(__name__)


class Terms(Struct, frozen=True, kw_only=True):
    """Under which conditions somebody exchanges, besides what is wished for.

    ``fee_bps`` is the platform's share of the output, which a provider pays to ``fee_recipient``; ``fee_units`` what is
    kept of what is given, where no provider pays such a fee.
    """

    mode: str
    sender: str
    recipient: str
    fee_bps: int = 0
    fee_units: Units = Units(0)
    fee_recipient: str | None = None


class Bounds(Struct, frozen=True, kw_only=True):
    """Less than ``least`` is a bad bargain, more than ``most`` cannot be meant; None where we have no price."""

    least: Units
    most: Units | None

    def allow(self, units: int) -> bool:
        return self.least <= units and (self.most is None or units <= self.most)


class Offer(Struct, frozen=True, kw_only=True):
    """The best of what was offered. ``units_min`` is what a merchant is promised who takes it."""

    provider: str
    quote: Quote
    units_min: Units
    slippage_bps: int


async def best_offer(context: ExchangeContext, settings: PlatformSettings, wish: Wish, terms: Terms) -> Offer:
    """Return the offer with the highest output, but one that cannot be meant only where there is no other.

    Raises InvalidError where nobody will do it, or only as a bad bargain, UnavailableError where nobody answers now.
    """
    slippage_bps = _slippage_bps(settings, wish)
    request = ExchangeRequest(
        sells=ChainToken(chain=wish.source.chain, token=wish.source.token),
        buys=ChainToken(chain=wish.dest.chain, token=wish.dest.token),
        units=Units(wish.units - terms.fee_units),
        sender=terms.sender,
        recipient=terms.recipient,
        slippage_bps=slippage_bps,
        fee_bps=terms.fee_bps,
        fee_recipient=terms.fee_recipient,
    )
    asked = supporting(context, settings, wish.kind, terms.mode, request.sells, request.buys)[:PROVIDERS_MAX]
    if request.units <= 0:
        raise InvalidError("EXCHANGE_AMOUNT_TOO_LOW", "Nothing is left of so little after the platform's fee.")
    if not asked:
        raise InvalidError("PAIR_NOT_SUPPORTED", "No provider of this gateway exchanges these two tokens.")
    asked = [one for one in asked if comes_back(one, request.sells)]
    if not asked:
        sentence = f"What nobody pays out comes back wrapped, and {wish.source.chain.name} has no such token here."
        raise InvalidError("PAIR_NOT_SUPPORTED", sentence)
    bounds = await _bounds(context, settings, wish.source, wish.units, wish.dest, terms)
    answers = await asyncio.gather(*(_ask(context, one, request) for one in asked))
    offers = [
        (one.name, answer) for one, answer in zip(asked, answers, strict=True) if not isinstance(answer, ServiceError)
    ]
    if not offers:
        raise _refusal([answer for answer in answers if isinstance(answer, ServiceError)])
    meant = [offer for offer in offers if bounds.allow(offer[1].units)]
    name, quote = max(meant or offers, key=lambda offer: offer[1].units)
    unmeant = [other for other, higher in offers if higher.units > quote.units]
    if unmeant:
        log.warning("exchange_offer_not_meant", providers=unmeant, most=str(bounds.most))
    if quote.units < bounds.least:
        said = format_units(quote.units, wish.dest.token.decimals)
        wanted = format_units(bounds.least, wish.dest.token.decimals)
        raise InvalidError(
            "PRICE_BELOW_GUARD", f"The best offer is {said} {wish.dest.token.symbol}; less than {wanted} is refused."
        )
    return Offer(provider=name, quote=quote, units_min=max(quote.units_min, bounds.least), slippage_bps=slippage_bps)


def still_holds(offer: Offer, wish: Wish, before: PlatformSettings, now: PlatformSettings) -> bool:
    """Whether an offer that was judged by other settings could be made by those of now."""
    return now.exchanges.is_enabled(offer.provider) and _judging(before, wish) == _judging(now, wish)


def _judging(settings: PlatformSettings, wish: Wish) -> tuple[object, ...]:
    """Return what of the settings decides which offer is a good one."""
    rule = settings.exchanges
    return rule.price_guard_bps, rule.least_rates.get(_pair(wish.source, wish.dest)), _slippage_bps(settings, wish)


def _slippage_bps(settings: PlatformSettings, wish: Wish) -> int:
    return settings.exchanges.default_slippage_bps if wish.slippage_bps is None else wish.slippage_bps


async def _bounds(  # noqa: PLR0913, PLR0917  both sides and the terms
    context: ExchangeContext, settings: PlatformSettings, source: Asset, units: Units, dest: Asset, terms: Terms
) -> Bounds:
    """Return the least output that is no bad bargain, by our own prices, and by what the operator has said.

    What can be meant is told by our own prices alone: an operator's rate is a least one, and may be far below what the
    token is worth. The platform's own fee is no part of the bargain. Raises InvalidError where neither knows the pair,
    and UnavailableError where there is no price at the moment.
    """
    rule = settings.exchanges
    given = Side(token=source.token, units=Units(units - terms.fee_units), usd=None)
    stated = rule.least_rates.get(_pair(source, dest))
    least = [] if stated is None else [least_at_rate(given, dest.token, Decimal(stated))]
    worth: Units | None = None
    try:
        usd = (await context.rates.rate(source.token.symbol, "usd")).value
        sold = Side(token=given.token, units=given.units, usd=usd)
        bought = (await context.rates.rate(dest.token.symbol, "usd")).value
        least.append(least_worth(sold, dest.token, bought, rule.price_guard_bps))
        worth = least_worth(sold, dest.token, bought, 0)
    except RateUnavailableError as error:
        if least:
            log.info("exchange_by_least_rate", source=_name(source), dest=_name(dest), reason=str(error))
        elif isinstance(error, NotPricedError):
            sentence = "Nobody can tell whether it is a bad bargain: one of the tokens has no price here."
            raise InvalidError("EXCHANGE_PRICE_UNKNOWN", sentence) from None
        else:
            raise
    worst = max(least)
    worst = max(Units(1), Units(worst - share_of(worst, terms.fee_bps)))
    return Bounds(least=worst, most=None if worth is None else Units(TIMES_WORTH_MAX * max(worth, worst)))


def _pair(source: Asset, dest: Asset) -> str:
    """Return a pair as the operator writes it."""
    return f"{_name(source)}>{_name(dest)}"


def _name(asset: Asset) -> str:
    return f"{asset.chain.id}/{asset.token.symbol}"


def supporting(  # noqa: PLR0913, PLR0917  what is exchanged for what, and whose providers decide
    context: ExchangeContext, settings: PlatformSettings, kind: Kind, mode: str, sells: ChainToken, buys: ChainToken
) -> list[Quoting]:
    """Return the providers that may be asked about a pair, without asking any."""
    return [
        one
        for one in context.quoting(kind, mode)
        if settings.exchanges.is_enabled(one.name) and _supports(one, sells, buys)
    ]


def _supports(provider: Quoting, sells: ChainToken, buys: ChainToken) -> bool:
    """Whether it may be asked. A bug of one provider hurts no other."""
    try:
        return provider.supports(sells, buys)
    except Exception:  # a plugin may raise anything, and only it is affected
        log.exception("exchange_provider_broken", provider=provider.name)
        return False


def comes_back(provider: Quoting, sells: ChainToken) -> bool:
    """Whether what a bridge gives back would be seen: the watcher knows registered tokens alone.

    One that cannot say what it gives back is not asked for more. A bug of one provider hurts no other.
    """
    if not isinstance(provider, BridgeProvider):
        return True
    try:
        contract = provider.refund_contract(sells)
    except Exception:  # a plugin may raise anything, and only it is affected
        log.exception("exchange_provider_broken", provider=provider.name)
        return False
    return any(token.contract == contract for token in sells.chain.tokens)


async def _ask(context: ExchangeContext, provider: Quoting, request: ExchangeRequest) -> Quote | ServiceError:
    """Return a quote that makes sense, or why there is none. A bug of one provider hurts no other."""
    facts = {"provider": provider.name, "source": request.sells.chain.id, "dest": request.buys.chain.id}
    try:
        quote = await within(context.quote_timeout_ms / 1000, provider.quote(request), of=provider)
        _check(quote, request)
    except ExchangeRefusedError as error:
        log.info("exchange_refused", reason=error.reason, error=str(error), **facts)
        sentence = printable(str(error))[:REASON_CHARS_MAX]
        return InvalidError(CODES.get(error.reason, "EXCHANGE_REFUSED"), f"{provider.name} will not do it: {sentence}")
    except TimeoutError:
        log.warning("exchange_provider_slow", **facts)
    except ProviderUnavailableError as error:
        log.warning("exchange_provider_away", error=str(error), **facts)
    except Exception:  # a plugin may raise anything, and only it is affected
        log.exception("exchange_provider_broken", **facts)
    else:
        return quote
    return UnavailableError("EXCHANGE_UNAVAILABLE", f"{provider.name} does not answer right now.")


def _check(quote: Quote, request: ExchangeRequest) -> None:
    """Raise ProviderUnavailableError for a quote that makes no sense."""
    fees, times = [fee.units for fee in quote.fees], [quote.fill_deadline or 0, quote.fill_s or 0]
    if any(type(number) is not int for number in (quote.units, quote.units_min, *fees, *times)):
        raise ProviderUnavailableError("its quote is not in whole numbers")
    if not 0 < quote.units_min <= quote.units <= UNITS_MAX:
        raise ProviderUnavailableError(f"its quote makes no sense: {quote.units}, at least {quote.units_min}")
    if quote.units_min < quote.units * (BPS - request.slippage_bps) // BPS - 1:
        raise ProviderUnavailableError(f"it promises {quote.units_min} of {quote.units}, which is too little")
    if not all(0 <= units <= UNITS_MAX for units in fees):
        raise ProviderUnavailableError("its fees make no sense")
    if not 0 <= times[0] <= LATEST or not 0 <= times[1] <= FILL_S_MAX:
        raise ProviderUnavailableError(f"its times make no sense: until {times[0]}, in {times[1]} seconds")


def _refusal(refusals: Sequence[ServiceError]) -> ServiceError:
    """Return what is told where nobody offers anything: what the merchant could change comes first."""
    return min(refusals, key=lambda one: (isinstance(one, UnavailableError), one.code == "PAIR_NOT_SUPPORTED"))
