"""What each price source says, which of them are believed, and setting one aside that is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from litestar import Controller, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Meta, Struct

from cambist.domain.money import CURRENCIES, format_rate
from cambist.domain.prices import NoRate, NoRateError, Observation, Rate, RatePolicy, Verdict, agree_on_rate, spread
from cambist.services.audit.entries import Action
from cambist.services.errors import InvalidError, check_text
from cambist.services.pricing import price_points, set_aside
from cambist.services.pricing.set_aside import SetAside, Sources
from cambist_web.context import Web
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, Body

Currency = Annotated[str, QueryParameter(description="An ISO 4217 code in lower case.", pattern="^[a-z]{3}$")]


class SourceReason(Body, frozen=True, kw_only=True):
    """Why: for the audit log, and whoever wonders."""

    reason: Annotated[str, Meta(min_length=3, max_length=500)]


class SourceView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A price source. `setAsideBy` is an operator's identifier, or `admin key`; null while the source is believed."""

    name: str
    is_set_aside: bool
    reason: str | None
    set_aside_by: str | None
    set_aside_at: datetime | None


class PriceSeen(Struct, frozen=True, kw_only=True, rename="camel"):
    """What one source says. `status` is `used`, `too_old`, `too_far` from the others, `impossible` or `set_aside`."""

    source: str
    price: str
    observed_at: datetime
    age_seconds: int
    status: str


class CoinPrices(Struct, frozen=True, kw_only=True, rename="camel"):
    """A coin's price now. Without `rate`, `refused` says why none is used: what needs one is refused meanwhile.

    `spreadPercent` is by how much the highest of the fresh prices is above the lowest.
    """

    token: str
    rate: str | None
    source: str | None
    refused: str | None
    refused_code: NoRate | None
    spread_percent: str | None
    sources: Sequence[PriceSeen]


class PricesView(Answer, frozen=True, kw_only=True):
    """Every coin in one currency, as the sources said when they were last asked. Ages are as of now."""

    currency: str
    asked_at: datetime
    max_age_seconds: int
    max_deviation_percent: str
    min_sources: int
    sources: Sequence[SourceView]
    prices: Sequence[CoinPrices]


class SourceChanged(Answer, frozen=True, kw_only=True):
    """The source as it is now."""

    source: SourceView


class Prices(Controller):
    tags = ("Operator",)

    @get("/", summary="Read what price sources say", opt=permits("prices.read"))
    async def read(self, web: NamedDependency[Web], *, currency: Currency = "usd") -> PricesView:
        """Say what each source says, those that are set aside as well, and which prices are believed now.

        The sources were asked at `askedAt`: at most half a minute ago, as long as it was not too often.
        """
        if currency not in CURRENCIES:
            raise InvalidError.field("currency", "must be an ISO 4217 code, such as usd", "UNSUPPORTED_CURRENCY")
        rates, policy = web.gateway.rates, web.gateway.rates.policy
        symbols = price_points.symbols_of(web.gateway.registry, live=True)
        polled = await rates.poll_sources(symbols, currency)
        async with web.db.autocommit() as conn:
            aside = await set_aside.load(conn)
        now = web.clock.now()
        lasts = {symbol: rates.last(symbol, currency, without=polled.set_aside) for symbol in symbols}
        coins = [_coin(symbol, polled.judged[symbol], lasts[symbol], now, policy) for symbol in symbols]
        return PricesView(
            currency=currency,
            asked_at=polled.asked_at,
            max_age_seconds=policy.max_age_s,
            max_deviation_percent=format_rate(policy.deviation_max * 100),
            min_sources=policy.min_sources,
            sources=[_source(name, aside) for name in sorted({*rates.names, *aside})],
            prices=coins,
        )

    @post("/sources/{name:str}/set-aside", status_code=200, summary="Set a source aside", opt=permits("prices.change"))
    async def set_aside(
        self,
        name: FromPath[str],
        data: JSONBody[SourceReason],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> SourceChanged:
        """Have nobody believe a source, in any process, within seconds. Rates that it had part in are forgotten.

        Where the others are too few, or disagree, what needs a rate is refused: 503 `RATE_UNAVAILABLE`.
        """
        check_text(data.reason, "reason")
        by = audit.origin.actor or audit.origin.actor_kind
        new = SetAside(source=name, reason=data.reason, set_aside_by=by, set_aside_at=web.clock.now())
        async with web.db.transaction() as conn:
            await set_aside.set_aside(conn, web.gateway.rates.names, new)
            await audit.record(conn, Action.PRICE_SOURCE_SET_ASIDE, subject=name, reason=data.reason)
        web.gateway.rates.forget_set_aside()
        return SourceChanged(source=_source(name, {name: new}))

    @post("/sources/{name:str}/take-back", status_code=200, summary="Take a source back", opt=permits("prices.change"))
    async def take_back(
        self,
        name: FromPath[str],
        data: JSONBody[SourceReason],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> SourceChanged:
        """Believe a source again, as far as the others let it."""
        check_text(data.reason, "reason")
        async with web.db.transaction() as conn:
            await set_aside.take_back(conn, name)
            await audit.record(conn, Action.PRICE_SOURCE_TAKEN_BACK, subject=name, reason=data.reason)
        web.gateway.rates.forget_set_aside()
        return SourceChanged(source=_source(name, {}))


def _source(name: str, aside: Sources) -> SourceView:
    found = aside.get(name)
    return SourceView(
        name=name,
        is_set_aside=found is not None,
        reason=None if found is None else found.reason,
        set_aside_by=None if found is None else found.set_aside_by,
        set_aside_at=None if found is None else found.set_aside_at,
    )


def _coin(
    symbol: str,
    seen: Sequence[tuple[Observation, Verdict | None]],
    last: Rate | None,
    now: datetime,
    policy: RatePolicy,
) -> CoinPrices:
    believed = [one for one, verdict in seen if verdict is not None]
    apart = spread([one.value for one, verdict in seen if verdict in {"used", "too_far"}])
    rate, refused, why = None, None, None
    try:
        rate = agree_on_rate(believed, now=now, policy=policy, last=last)
    except NoRateError as error:
        refused, why = str(error), error.why
    return CoinPrices(
        token=symbol,
        rate=None if rate is None else format_rate(rate.value),
        source=None if rate is None else rate.source,
        refused=refused,
        refused_code=why,
        spread_percent=None if apart is None else format_rate(round(apart * 100, 4)),
        sources=[
            PriceSeen(
                source=one.source,
                price=str(one.value) if verdict == "impossible" else format_rate(one.value),
                observed_at=one.observed_at,
                age_seconds=max(0, int((now - one.observed_at).total_seconds())),
                status=verdict or "set_aside",
            )
            for one, verdict in sorted(seen, key=lambda found: found[0].source)
        ],
    )


controllers = [admin_routes("/api/admin/prices", Prices)]
