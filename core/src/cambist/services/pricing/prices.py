"""What tokens cost in fiat money: all sources asked at once, the median of the fresh answers, kept for a moment."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, OrderedDict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import structlog
from msgspec import Struct

from cambist.deadlines import within
from cambist.domain.prices import (
    DoubtfulRateError,
    NoRateError,
    Observation,
    Rate,
    RatePolicy,
    Verdict,
    agree_on_rate,
    is_fresh,
    judge_observations,
    outliers,
)
from cambist.plugin import PricePair, PriceSource, PriceUnavailableError
from cambist.ports import Clock
from cambist.services.errors import UnavailableError

from .answers import Answer, observations_of, read_answer
from .questions import PacedQuestions, Sleep
from .set_aside import SetAsideSources
from .source_prices import Said, SourcePoller

_log = structlog.get_logger(__name__)

PAIRS_MAX = 4096
"""How many pairs are remembered; the one asked longest ago makes room."""

ASKED_AGAIN_MAX = 3
"""A source that is set aside while others are asked has them asked once more."""

BATCH_MAX = 50
"""How many pairs one question to the sources holds at most."""

REFRESHED_MIN = BATCH_MAX // 2
"""So many of them are rates in use whose time is over, where there are so many: new pairs do not keep them waiting."""

WAIT_S_MAX = 5
"""How long a caller without a rate waits for the turn of its pair, beside the time that the sources may take."""

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

    Whatever callers ask, there are ``burst`` questions in a row and then one every ``gap_s``, in each process. Until
    the next one, what is known of a pair serves, if it is no older than ``warm_s``.
    """

    ttl_s: float = 15
    retry_s: float = 2
    timeout_ms: int = 5000
    warm_s: float = 120
    gap_s: float = 3
    burst: int = 10


class JudgedPrices(Struct, frozen=True, kw_only=True):
    """What each source said of each symbol when they were asked, and whether it is believed now.

    The verdict is None for what was said by a source that is set aside. Who is ``away`` gave no answer.
    """

    asked_at: datetime
    judged: Mapping[str, Sequence[tuple[Observation, Verdict | None]]]
    away: Collection[str] = ()
    set_aside: Collection[str] = ()


class _Entry(Struct, kw_only=True):
    """What is known of one pair; times are monotonic seconds."""

    asked_at: float
    refreshed_at: float = float("-inf")
    rate: Rate | None = None
    last: Rate | None = None
    refused: bool = False
    unknown: bool = False
    without: frozenset[str] = frozenset()


class RateBook:
    """Tells rates to any number of callers at once; a pair is asked for by one of them, and the others wait."""

    def __init__(  # noqa: PLR0913  the last are for what differs from how it is used
        self,
        sources: Sequence[PriceSource],
        clock: Clock,
        *,
        policy: RatePolicy | None = None,
        limits: RateBookLimits | None = None,
        set_aside: SetAsideSources | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Ask these sources, whose connections the caller keeps open, but for those that an operator set aside."""
        self._sources = sources
        self._set_aside = set_aside
        self.outliers: Counter[str] = Counter()
        """How often each source was far off while others agreed, for metrics."""
        self._clock = clock
        self._policy = policy or RatePolicy()
        self._limits = limits or RateBookLimits()
        self._poller = SourcePoller(self._ask_all, clock)
        self._entries: OrderedDict[PricePair, _Entry] = OrderedDict()
        self._questions = PacedQuestions(
            self._refresh, self._choose, clock, gap_s=self._limits.gap_s, burst=self._limits.burst, sleep=sleep
        )

    async def rate(self, symbol: str, fiat: str, *, asked_by: str = "") -> Rate:
        """Return what one token costs, or raise RateUnavailableError. Letter case does not count.

        ``asked_by`` is the merchant who wants it: pairs that must wait are asked about in turn, a merchant's each.

        It is NotPricedError where no source has such a price at all, so that asking later will not help.
        """
        pair = (symbol.upper(), fiat.lower())
        if not _SYMBOL.fullmatch(pair[0]) or not _FIAT.fullmatch(pair[1]):
            raise RateUnavailableError(symbol[:32], fiat[:3])
        entry = self._entry(pair)
        for _ in range(ASKED_AGAIN_MAX):
            if await self._is_kept(entry):
                break
            asked = self._questions.want(pair, asked_by)
            if self._serves_meanwhile(entry) and not self._questions.is_free:
                break
            try:
                # Shielded: a caller who goes away must not take the others' answer along.
                await asyncio.wait_for(asyncio.shield(asked), WAIT_S_MAX + self._limits.timeout_ms / 1000)
            except TimeoutError:
                raise RateUnavailableError(*pair) from None
        # An answer that was asked for before a source was set aside is none.
        if entry.without != await self._without():
            raise RateUnavailableError(*pair)
        if entry.unknown:
            raise NotPricedError(*pair)
        if entry.rate is None or not is_fresh(entry.rate.observed_at, self._clock.now(), self._policy.max_age_s):
            raise RateUnavailableError(*pair)
        return entry.rate

    async def _is_kept(self, entry: _Entry) -> bool:
        """Whether what is known of the pair need not be asked for again now."""
        without = await self._without()
        if entry.without != without:
            # Nothing that a source said which is set aside now may be used, nor be the measure of others.
            entry.rate = entry.last = None
            entry.refreshed_at, entry.without = float("-inf"), without
        kept_s = self._limits.retry_s if entry.refused else self._limits.ttl_s
        return self._clock.monotonic() - entry.refreshed_at < kept_s

    def _serves_meanwhile(self, entry: _Entry) -> bool:
        """Whether what is known of the pair, a rate or a refusal, is an answer until the sources may be asked again."""
        return self._is_warm(entry) and (entry.refused or self._is_usable(entry.rate))

    def _can_wait(self, entry: _Entry) -> bool:
        """Whether the pair can wait: it has a rate, or no source prices it. Where sources failed, nobody knows yet."""
        return self._is_warm(entry) and (entry.unknown or self._is_usable(entry.rate))

    def _is_warm(self, entry: _Entry) -> bool:
        return self._clock.monotonic() - entry.refreshed_at < self._limits.warm_s

    def _is_usable(self, rate: Rate | None) -> bool:
        return rate is not None and is_fresh(rate.observed_at, self._clock.now(), self._policy.max_age_s)

    async def _without(self) -> frozenset[str]:
        """Return whom nobody is to believe now."""
        return frozenset() if self._set_aside is None else frozenset(await self._set_aside.get())

    def _entry(self, pair: PricePair) -> _Entry:
        asked_at = self._clock.monotonic()
        entry = self._entries.setdefault(pair, _Entry(asked_at=asked_at))
        entry.asked_at = asked_at
        self._entries.move_to_end(pair)
        while len(self._entries) > PAIRS_MAX:
            self._entries.popitem(last=False)
        return entry

    def _choose(self, wanted: Sequence[PricePair], asked: Collection[PricePair]) -> Sequence[PricePair]:
        """Return what the next question is about, the most urgent first."""
        now = self._clock.monotonic()
        warm = [
            (entry.refreshed_at, pair)
            for pair, entry in self._entries.items()
            if pair not in asked and entry.asked_at >= now - self._limits.warm_s and entry.rate is not None
        ]
        over = now - self._limits.ttl_s
        stale = [pair for refreshed_at, pair in sorted(warm) if refreshed_at <= over]
        known = {pair: entry for pair in wanted if (entry := self._entries.get(pair)) and self._can_wait(entry)}
        new = [pair for pair in wanted if pair not in known]
        # One that had a rate goes before what was never priced.
        again = sorted(known, key=lambda pair: (known[pair].last is None, known[pair].refreshed_at))
        first = [*stale[:REFRESHED_MIN], *new, *stale[REFRESHED_MIN:], *again, *(pair for _, pair in sorted(warm))]
        return list(dict.fromkeys(first))[:BATCH_MAX]

    async def _refresh(self, pairs: Sequence[PricePair]) -> None:
        without = await self._without()
        sources = [source for source in self._sources if source.name not in without]
        answers = await asyncio.gather(*(self._ask(source, pairs) for source in sources))
        told = dict(zip((source.name for source in sources), answers, strict=True))
        for pair in pairs:
            self._update_rate(pair, told, without)

    async def _ask(self, source: PriceSource, pairs: Collection[PricePair]) -> Answer | None:
        """Return the source's prices, or None where it gave no answer."""
        try:
            # A list of its own: one that takes pairs out of it as it asks takes them from nobody else.
            answer = await within(self._limits.timeout_ms / 1000, source.prices(list(pairs)), of=source)
            return read_answer(source.name, pairs, answer)
        except PriceUnavailableError as error:
            _log.warning("prices.source_unavailable", source=source.name, reason=str(error))
        except TimeoutError:
            _log.warning("prices.source_unavailable", source=source.name, reason="it did not answer in time")
        except Exception:  # noqa: BLE001 - a bug of one source must not take the others along
            _log.exception("prices.source_failed", source=source.name)
        return None

    async def poll_sources(self, symbols: Sequence[str], currency: str) -> JudgedPrices:
        """Return what every source says, those that are set aside as well, and judge it as of now.

        The sources were asked at most ``source_prices.KEPT_S`` ago, or longer ago where they were asked too often.
        No rate comes of it. Raises as ``SourcePoller.poll``.
        """
        polled, without = await self._poller.poll(symbols, currency), await self._without()
        found: dict[str, Sequence[tuple[Observation, Verdict | None]]] = {}
        for symbol in symbols:
            seen = polled.said.get((symbol, currency), ())
            believed = [one for one in seen if one.source not in without]
            judged = judge_observations(believed, now=self._clock.now(), policy=self._policy)
            found[symbol] = [*judged, *((one, None) for one in seen if one.source in without)]
        return JudgedPrices(asked_at=polled.asked_at, judged=found, away=polled.away, set_aside=without)

    async def _ask_all(self, pairs: Sequence[PricePair]) -> Said:
        found: dict[PricePair, Sequence[Observation]] = {}
        away: set[str] = set()
        for first in range(0, len(pairs), BATCH_MAX):
            some = pairs[first : first + BATCH_MAX]
            answers = await asyncio.gather(*(self._ask(source, some) for source in self._sources))
            told = dict(zip((source.name for source in self._sources), answers, strict=True))
            found |= {pair: observations_of(pair, told) for pair in some}
            away |= {name for name, prices in told.items() if prices is None}
        return Said(found, away)

    def forget_set_aside(self) -> None:
        """Read anew who is set aside: this process has changed it."""
        if self._set_aside is not None:
            self._set_aside.forget()

    @property
    def policy(self) -> RatePolicy:
        return self._policy

    @property
    def names(self) -> Sequence[str]:
        """Return the sources' names."""
        return [source.name for source in self._sources]

    def last(self, symbol: str, fiat: str, *, without: Collection[str]) -> Rate | None:
        """Return the rate that was told last while the same sources were set aside, however old. Nobody is asked."""
        entry = self._entries.get((symbol.upper(), fiat.lower()))
        return None if entry is None or entry.without != frozenset(without) else entry.last

    def _update_rate(self, pair: PricePair, answers: Mapping[str, Answer | None], without: frozenset[str]) -> None:
        entry = self._entries.get(pair)
        if entry is None:
            return
        if entry.without != without:
            entry.rate, entry.last, entry.without = None, None, without
        observations = observations_of(pair, answers)
        for outlier in outliers(judge_observations(observations, now=self._clock.now(), policy=self._policy)):
            self.outliers[outlier.source] += 1
            _log.warning("prices.source_far_off", source=outlier.source, symbol=pair[0], fiat=pair[1])
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
