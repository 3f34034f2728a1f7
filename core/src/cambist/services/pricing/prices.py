"""What tokens cost in fiat money: all sources asked at once, the median of the fresh answers, kept for a moment."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal

import structlog
from msgspec import Struct

from cambist.domain.prices import DoubtfulRateError, NoRateError, Observation, Rate, RatePolicy, agree_on_rate, is_fresh
from cambist.plugin import Price, PricePair, PriceSource, PriceUnavailableError
from cambist.ports import Clock
from cambist.services.errors import UnavailableError

_log = structlog.get_logger(__name__)

PAIRS_MAX = 1024
"""How many pairs are remembered; the one asked longest ago makes room."""

BATCH_MAX = 50
"""How many pairs one question to the sources holds at most."""

_SYMBOL = re.compile(r"[!-~]{1,32}", re.ASCII)
_FIAT = re.compile(r"[a-z]{3}", re.ASCII)


class RateUnavailableError(UnavailableError):
    """There is no rate that may be used now; an old one is refused rather than used."""

    def __init__(self, symbol: str, fiat: str) -> None:
        super().__init__("RATE_UNAVAILABLE", f"There is no current {fiat.upper()} price for {symbol}; try again later")


class NotPricedError(RateUnavailableError):
    """Every source has answered, and none of them prices this token in this currency, now or ever before."""


class RateBookLimits(Struct, frozen=True, kw_only=True):
    """How the sources are asked.

    A rate is kept ``ttl_s``; after a refusal the sources are asked again ``retry_s`` later, and until then a rate
    from before serves as long as it is not too old, unless the sources contradicted it. A source that takes
    longer than ``timeout_ms`` is left out. Pairs asked for within ``warm_s`` are refreshed together, so that
    public sources see few requests.
    """

    ttl_s: float = 15
    retry_s: float = 2
    timeout_ms: int = 5000
    warm_s: float = 120


class _Entry(Struct, kw_only=True):
    """What is known of one pair; times are monotonic seconds."""

    asked_at: float
    refreshed_at: float = float("-inf")
    rate: Rate | None = None
    last: Rate | None = None
    refused: bool = False
    unknown: bool = False


class RateBook:
    """Tells rates to any number of callers at once; a pair is asked for by one of them, and the others wait."""

    def __init__(
        self,
        sources: Sequence[PriceSource],
        clock: Clock,
        *,
        policy: RatePolicy | None = None,
        limits: RateBookLimits | None = None,
    ) -> None:
        """Ask these sources, whose connections the caller keeps open."""
        self._sources = sources
        self._clock = clock
        self._policy = policy or RatePolicy()
        self._limits = limits or RateBookLimits()
        self._entries: OrderedDict[PricePair, _Entry] = OrderedDict()
        self._flights: dict[PricePair, asyncio.Task[None]] = {}

    async def rate(self, symbol: str, fiat: str) -> Rate:
        """Return what one token costs, or raise RateUnavailableError. Letter case does not count.

        It is NotPricedError where no source has such a price at all, so that asking later will not help.
        """
        pair = (symbol.upper(), fiat.lower())
        if not _SYMBOL.fullmatch(pair[0]) or not _FIAT.fullmatch(pair[1]):
            raise RateUnavailableError(symbol[:32], fiat[:3])
        entry = self._entry(pair)
        kept_s = self._limits.retry_s if entry.refused else self._limits.ttl_s
        if self._clock.monotonic() - entry.refreshed_at >= kept_s:
            # Shielded: a caller who goes away must not take the others' answer along.
            await asyncio.shield(self._flights.get(pair) or self._take_off(pair))
        if entry.unknown:
            raise NotPricedError(*pair)
        if entry.rate is None or not is_fresh(entry.rate.observed_at, self._clock.now(), self._policy.max_age_s):
            raise RateUnavailableError(*pair)
        return entry.rate

    def _entry(self, pair: PricePair) -> _Entry:
        asked_at = self._clock.monotonic()
        entry = self._entries.setdefault(pair, _Entry(asked_at=asked_at))
        entry.asked_at = asked_at
        self._entries.move_to_end(pair)
        while len(self._entries) > PAIRS_MAX:
            self._entries.popitem(last=False)
        return entry

    def _take_off(self, pair: PricePair) -> asyncio.Task[None]:
        since = self._clock.monotonic() - self._limits.warm_s
        warm = [
            other
            for other, entry in reversed(self._entries.items())
            if other != pair and other not in self._flights and entry.asked_at >= since and entry.rate is not None
        ]
        pairs = [pair, *warm[: BATCH_MAX - 1]]
        flight = asyncio.create_task(self._refresh(pairs))
        self._flights |= dict.fromkeys(pairs, flight)
        return flight

    async def _refresh(self, pairs: Sequence[PricePair]) -> None:
        try:
            answers = await asyncio.gather(*(self._ask(source, pairs) for source in self._sources))
            for pair in pairs:
                self._update_rate(pair, dict(zip((source.name for source in self._sources), answers, strict=True)))
        finally:
            for pair in pairs:
                del self._flights[pair]

    async def _ask(self, source: PriceSource, pairs: Collection[PricePair]) -> Mapping[PricePair, Price] | None:
        """Return the source's prices, or None where it gave no answer."""
        try:
            async with asyncio.timeout(self._limits.timeout_ms / 1000):
                return await source.prices(pairs)
        except PriceUnavailableError as error:
            _log.warning("prices.source_unavailable", source=source.name, reason=str(error))
        except TimeoutError:
            _log.warning("prices.source_unavailable", source=source.name, reason="it did not answer in time")
        except Exception:  # noqa: BLE001 - a bug of one source must not take the others along
            _log.exception("prices.source_failed", source=source.name)
        return None

    def _update_rate(self, pair: PricePair, answers: Mapping[str, Mapping[PricePair, Price] | None]) -> None:
        entry = self._entries.get(pair)
        if entry is None:
            return
        observations = [
            Observation(source=source, value=prices[pair].value, observed_at=prices[pair].observed_at)
            for source, prices in answers.items()
            if prices is not None and pair in prices and _is_well_formed(source, prices[pair])
        ]
        entry.refreshed_at = self._clock.monotonic()
        answered = [prices for prices in answers.values() if prices is not None]
        entry.unknown = (
            entry.last is None
            and len(answered) == len(self._sources)
            and not any(pair in prices for prices in answered)
        )
        try:
            entry.rate = agree_on_rate(observations, now=self._clock.now(), policy=self._policy, last=entry.last)
        except NoRateError as error:
            entry.refused = True
            if isinstance(error, DoubtfulRateError):
                entry.rate = None
            _log.warning("prices.no_rate", symbol=pair[0], fiat=pair[1], reason=str(error))
        else:
            entry.last = entry.rate
            entry.refused = False


def _is_well_formed(source: str, price: Price) -> bool:
    if type(price.value) is Decimal and price.observed_at.tzinfo is not None:
        return True
    _log.error("prices.source_failed", source=source, reason="a price is no Decimal, or its time has no time zone")
    return False
