"""The three sources, against servers that give recorded answers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from decimal import Decimal
from random import Random

import msgspec
import pytest

from cambist.plugin import PluginContext, PricePair, PriceSource, PriceUnavailableError
from cambist.registry import Registry, RegistryError
from cambist.testing.clock import ManualClock
from cambist.testing.conformance import PriceHarness, PriceSourceConformance
from cambist_prices.config import CoinGeckoConfig, KrakenConfig, PricesConfig
from cambist_prices.plugin import PricesPlugin

from .servers import CoinGeckoServer, KrakenServer, PriceServer, recorded

ETH_USD, ETH_EUR, USDT_USD, BTC_USD = ("ETH", "usd"), ("ETH", "eur"), ("USDT", "usd"), ("BTC", "usd")


class Harness(PriceHarness):
    """A source of the plugin, and the server behind it."""

    def __init__(self, source: PriceSource, clock: ManualClock, server: PriceServer | None, known: Sequence[PricePair]):
        self.source = source
        self.clock = clock
        self.server = server
        self.known = known

    def now(self) -> datetime:
        return self.clock.now()

    def outage(self):
        return self._outage() if self.server else None

    @asynccontextmanager
    async def _outage(self):
        self.server.status = 503
        yield
        self.server.status = 200


@asynccontextmanager
async def connected(clock: ManualClock, config: PricesConfig):
    """Connect the plugin as the gateway does."""
    context = PluginContext(now=clock.now, monotonic=clock.monotonic, random=Random(1), user_agent="cambist/tests")
    async with PricesPlugin().connect(config, context) as sources:
        yield sources


@asynccontextmanager
async def served(clock: ManualClock, name: str, *, timeout_ms: int = 60_000):
    """Give one of the two services' sources, with its server."""
    server_type, config_type = {
        "coingecko": (CoinGeckoServer, CoinGeckoConfig),
        "kraken": (KrakenServer, KrakenConfig),
    }[name]
    async with server_type().running() as server:
        config = PricesConfig(**{name: config_type(base_url=server.base_url + "/", timeout_ms=timeout_ms)})
        async with connected(clock, config) as (source,):
            yield Harness(source, clock, server, [ETH_USD, ETH_EUR, USDT_USD, BTC_USD])


@pytest.fixture
async def coingecko(clock):
    async with served(clock, "coingecko") as harness:
        yield harness


@pytest.fixture
async def kraken(clock):
    async with served(clock, "kraken") as harness:
        yield harness


@pytest.fixture(params=["coingecko", "kraken"])
async def either(clock, request):
    async with served(clock, request.param) as harness:
        yield harness


class TestStatic(PriceSourceConformance):
    @pytest.fixture
    async def harness(self, clock):
        static = {"USDX": {"usd": "1", "eur": "0.92"}}
        async with connected(clock, PricesConfig(static=static)) as (source,):
            yield Harness(source, clock, None, [("USDX", "usd"), ("USDX", "eur")])


class TestCoinGecko(PriceSourceConformance):
    @pytest.fixture
    async def harness(self, coingecko):
        return coingecko


class TestKraken(PriceSourceConformance):
    @pytest.fixture
    async def harness(self, kraken):
        return kraken


async def test_static_prices_are_as_of_now_whatever_the_letter_case(clock):
    async with connected(clock, PricesConfig(static={"usdx": {"EUR": "0.92"}})) as (source,):
        clock.advance(86_400)
        (price,) = (await source.prices([("USDX", "eur")])).values()
    assert (price.value, price.observed_at) == (Decimal("0.92"), clock.now())


async def test_coingecko_is_asked_once_for_all_pairs(coingecko):
    await coingecko.source.prices([ETH_USD, USDT_USD, ETH_EUR, ("NOSUCH", "usd")])
    (request,) = coingecko.server.requests
    assert dict(request.query) == {
        "ids": "ethereum,tether",
        "vs_currencies": "eur,usd",
        "include_last_updated_at": "true",
        "precision": "full",
    }
    assert request.headers["User-Agent"] == "cambist/tests"
    assert not [name for name in request.headers if name.lower().startswith("x-cg")]


async def test_coingecko_prices_keep_every_digit_and_their_own_time(coingecko):
    prices = await coingecko.source.prices([USDT_USD, ("USDT", "eur"), BTC_USD])
    assert prices[USDT_USD].value == Decimal("1.000123456789012345")
    assert prices["USDT", "eur"].value == Decimal("0.92287")
    assert prices[BTC_USD].value == Decimal("67187.3358936566")
    assert prices[BTC_USD].observed_at == datetime(2024, 3, 25, 8, 45, tzinfo=UTC)


@pytest.mark.parametrize("plan", ["demo", "pro"])
async def test_coingecko_gets_its_key_in_a_header(clock, plan):
    async with CoinGeckoServer().running() as server:
        config = CoinGeckoConfig(base_url=server.base_url, api_key="CG-made-for-tests", plan=plan)
        async with connected(clock, PricesConfig(coingecko=config)) as (source,):
            await source.prices([ETH_USD])
            server.status = 401
            with pytest.raises(PriceUnavailableError) as refused:
                await source.prices([ETH_USD])
    assert server.requests[0].headers[f"x-cg-{plan}-api-key"] == "CG-made-for-tests"
    assert "CG-made-for-tests" not in str(refused.value)


async def test_ids_are_added_replaced_and_taken_away(clock):
    async with CoinGeckoServer().running() as server:
        ids = {"weth": "ethereum", "ETH": "", "USDT": "bitcoin"}
        config = PricesConfig(coingecko=CoinGeckoConfig(base_url=server.base_url, ids=ids))
        async with connected(clock, config) as (source,):
            prices = await source.prices([ETH_USD, ("WETH", "usd"), USDT_USD])
    assert {pair: price.value for pair, price in prices.items()} == {
        ("WETH", "usd"): Decimal("3449.2914586932"),
        USDT_USD: Decimal("67187.3358936566"),
    }


@pytest.mark.parametrize(
    "coin",
    [
        '{"usd":0,"last_updated_at":1711356300}',
        '{"usd":-1,"last_updated_at":1711356300}',
        '{"usd":null,"last_updated_at":1711356300}',
        '{"usd":"NaN","last_updated_at":1711356300}',
        '{"usd":1e13,"last_updated_at":1711356300}',
        '{"usd":1e-16,"last_updated_at":1711356300}',
        '{"usd":3449.29}',
        '{"usd":3449.29,"last_updated_at":null}',
        '{"usd":3449.29,"last_updated_at":0}',
        '{"usd":3449.29,"last_updated_at":99999999999999}',
        '{"last_updated_at":1711356300}',
    ],
)
async def test_a_coingecko_price_that_is_none_is_left_out(coingecko, coin):
    coingecko.server.body = f'{{"ethereum":{coin},"tether":{{"usd":1.5,"last_updated_at":1711356300}}}}'.encode()
    assert set(await coingecko.source.prices([ETH_USD, USDT_USD])) == {USDT_USD}


async def test_a_kraken_price_is_the_middle_of_bid_and_ask_as_of_now(kraken):
    prices = await kraken.source.prices([ETH_USD, BTC_USD, USDT_USD, ETH_EUR])
    assert {pair: price.value for pair, price in prices.items()} == {
        ETH_USD: Decimal("477.5"),
        BTC_USD: Decimal("30300.05"),
        USDT_USD: Decimal("0.999665"),
        ETH_EUR: Decimal("383.055"),
    }
    assert {price.observed_at for price in prices.values()} == {kraken.clock.now()}
    (request,) = kraken.server.requests
    assert request.query["pair"] == "ETHUSD,XBTUSD,USDTUSD,ETHEUR"


async def test_a_pair_unknown_to_kraken_spoils_nothing_and_is_not_asked_again_for_an_hour(kraken):
    pairs = [ETH_USD, ("TRX", "jpy"), BTC_USD]
    assert set(await kraken.source.prices(pairs)) == {ETH_USD, BTC_USD}
    assert [request.query["pair"] for request in kraken.server.requests] == [
        "ETHUSD,TRXJPY,XBTUSD",
        "ETHUSD",
        "TRXJPY",
        "XBTUSD",
    ]
    assert set(await kraken.source.prices(pairs)) == {ETH_USD, BTC_USD}
    assert kraken.server.requests[4].query["pair"] == "ETHUSD,XBTUSD"
    kraken.clock.advance(3600)
    await kraken.source.prices(pairs)
    assert kraken.server.requests[5].query["pair"] == "ETHUSD,TRXJPY,XBTUSD"


async def test_a_pair_unknown_to_kraken_does_not_have_all_known_ones_asked_for_one_by_one(kraken):
    known = [ETH_USD, BTC_USD, USDT_USD]
    assert set(await kraken.source.prices(known)) == set(known)
    assert set(await kraken.source.prices([("TRX", "jpy"), *known, ETH_EUR])) == {*known, ETH_EUR}
    assert [request.query["pair"] for request in kraken.server.requests[1:]] == [
        "TRXJPY,ETHUSD,XBTUSD,USDTUSD,ETHEUR",
        "ETHUSD,XBTUSD,USDTUSD",
        "TRXJPY",
        "ETHEUR",
    ]


async def test_a_pair_that_kraken_knows_no_more_spoils_nothing(kraken, monkeypatch):
    pairs = [ETH_USD, USDT_USD, BTC_USD]
    await kraken.source.prices(pairs)
    usual = kraken.server.usual
    unknown = recorded("kraken_unknown_pair.json")
    monkeypatch.setattr(
        kraken.server, "usual", lambda request: unknown if "USDT" in request.query["pair"] else usual(request)
    )
    for _ in range(2):
        assert set(await kraken.source.prices([*pairs, ("TRX", "jpy")])) == {ETH_USD, BTC_USD}
    assert kraken.server.requests[-1].query["pair"] == "ETHUSD,XBTUSD"


async def test_kraken_is_not_asked_for_currencies_that_it_does_not_have(kraken):
    assert await kraken.source.prices([("ETH", "brl"), ("NOSUCH", "usd")]) == {}
    assert kraken.server.requests == []


@pytest.mark.parametrize(
    "ticker",
    [
        '{"a":["0","1","1"],"b":["0","1","1"]}',
        '{"a":["-1","1","1"],"b":["-1","1","1"]}',
        '{"a":["NaN","1","1"],"b":["NaN","1","1"]}',
        '{"a":["1e3","1","1"],"b":["1e3","1","1"]}',
        '{"a":["100","1","1"],"b":["94.9","1","1"]}',
        '{"a":["99","1","1"],"b":["100","1","1"]}',
        '{"a":[],"b":["100","1","1"]}',
        '{"b":["100","1","1"]}',
    ],
)
async def test_a_kraken_ticker_without_a_price_is_left_out(kraken, ticker):
    good = '{"a":["1.01","1","1"],"b":["0.99","1","1"]}'
    kraken.server.body = f'{{"error":[],"result":{{"XETHZUSD":{ticker},"USDTZUSD":{good}}}}}'.encode()
    prices = await kraken.source.prices([ETH_USD, USDT_USD])
    assert {pair: price.value for pair, price in prices.items()} == {USDT_USD: 1}


async def test_krakens_own_errors_come_with_status_200(kraken):
    kraken.server.body = recorded("kraken_too_many_requests.json")
    with pytest.raises(PriceUnavailableError, match="kraken says: EGeneral:Too many requests"):
        await kraken.source.prices([ETH_USD])


async def test_a_rate_limit_is_an_outage(coingecko):
    coingecko.server.status, coingecko.server.body = 429, recorded("coingecko_rate_limited.json")
    with pytest.raises(PriceUnavailableError, match="coingecko answers with status 429"):
        await coingecko.source.prices([ETH_USD])


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"ethereum":3}', b'{"error":"no"}', b'{"result":[]}', b"\xff"]
)
async def test_what_is_no_answer_is_an_outage_or_no_price(either, body):
    either.server.body = body
    prices = {}
    with suppress(PriceUnavailableError):
        prices = await either.source.prices([ETH_USD])
    assert prices == {}


async def test_answers_are_bounded_in_size(either):
    either.server.body = b'{"error":[' + b" " * 1_000_000 + b"]}"
    with pytest.raises(PriceUnavailableError, match="more than 1000000 bytes"):
        await either.source.prices([ETH_USD])


async def test_redirects_are_not_followed(either):
    either.server.status = 302
    with pytest.raises(PriceUnavailableError, match="status 302"):
        await either.source.prices([ETH_USD])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["coingecko", "kraken"])
async def test_answers_are_bounded_in_time(clock, name):
    async with served(clock, name, timeout_ms=300) as harness:
        harness.server.delay_s = 5
        with pytest.raises(PriceUnavailableError, match="did not answer within 300 ms"):
            await harness.source.prices([ETH_USD])


async def test_nobody_there_is_an_outage(clock, unused_tcp_port):
    config = PricesConfig(kraken=KrakenConfig(base_url=f"http://127.0.0.1:{unused_tcp_port}"))
    async with connected(clock, config) as (source,):
        with pytest.raises(PriceUnavailableError, match="kraken cannot be reached"):
            await source.prices([ETH_USD])


def test_the_table_of_the_readme_is_accepted():
    static = {"USDX": {"usd": "1", "eur": "0.92"}}
    Registry({"prices": {"static": static, "coingecko": {"ids": {"WETH": "weth"}}, "kraken": {"fiats": ["usd"]}}})


@pytest.mark.parametrize(
    "table, sentence",
    [
        ({}, "no source is configured: add a table static, coingecko or kraken"),
        ({"static": {"USDX": {"usd": "0"}}}, "static.USDX.usd: a price is written like \"0.92\", not '0'"),
        ({"static": {"USDX": {"usd": "1e3"}}}, "a price is written like"),
        ({"static": {"USDX": {"usd": "NaN"}}}, "a price is written like"),
        ({"static": {"USDX": {"usd": 1.5}}}, "Expected `str`, got `float`"),
        ({"static": {"USDX": {"dollar": "1"}}}, "is no currency code of three letters"),
        ({"static": {"US DX": {"usd": "1"}}}, "is no token symbol"),
        ({"coingecko": {"plan": "pro"}}, "plan 'pro' needs an api_key"),
        ({"coingecko": {"base_url": "ftp://prices"}}, "base_url is an http or https address"),
        ({"kraken": {"timeout_ms": 0}}, "timeout_ms is between 1 and 60000"),
        ({"kraken": {"pairs": []}}, "[plugins.prices.kraken] has an unknown field 'pairs'"),
    ],
)
def test_a_wrong_table_stops_the_start(table, sentence):
    with pytest.raises(RegistryError) as refused:
        Registry({"prices": table})
    assert sentence in str(refused.value)


def test_configs_are_frozen():
    assert msgspec.structs.asdict(CoinGeckoConfig())["api_key"] is None
    with pytest.raises(AttributeError):
        KrakenConfig().timeout_ms = 5
