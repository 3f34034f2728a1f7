"""Rate limits: who is counted, how, and what happens when Redis is gone."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections import Counter
from contextlib import suppress

import pytest
from litestar.connection import ASGIConnection
from redis.asyncio import Redis

from cambist.services.errors import TooManyError, UnauthenticatedError
from cambist.services.identity import api_keys
from cambist.services.identity.members import MEMBERS
from cambist.settings import RateLimitSettings
from cambist_web.client_address import (
    ADDRESSES_CACHED_MAX,
    FORWARDED_CHARS_MAX,
    HOPS_MAX,
    client_host,
    counted_as,
    parse_networks,
)
from cambist_web.context import BAD_CREDENTIALS_PER_MINUTE, FAILED_LOGINS_PER_MINUTE, KEY_CACHE_TTL_S
from cambist_web.login_attempts import check_password
from cambist_web.ratelimit import BATCH_LIFETIME_S, RateLimit, RateLimiter
from tests.support.operators import AUTH, Officer
from tests.support.web import PASSWORD, Merchant, memory_gateway, refused, web_client, web_settings

LIMIT = RateLimit("test", 60)


@pytest.fixture
async def redis(redis_url):
    async with Redis.from_url(redis_url) as redis:
        yield redis


async def taken(limiter, tries, limit=LIMIT, who="ada"):
    """Return how many of so many requests were let through."""
    count = 0
    for _ in range(tries):
        with suppress(TooManyError):
            await limiter.take(limit, who)
            count += 1
    return count


async def test_a_minutes_worth_may_come_at_once_and_then_no_more(redis, clock):
    limiter = RateLimiter(redis, clock)
    assert await taken(limiter, 100) == 60
    assert await taken(limiter, 5, who="bob") == 5


async def test_workers_share_one_limit(redis, clock):
    workers = [RateLimiter(redis, clock) for _ in range(3)]
    counts = await asyncio.gather(*[taken(worker, 60) for worker in workers])
    assert 58 <= sum(counts) <= 62  # what trickles in while they count


async def test_many_at_once_fetch_no_more_than_they_use(redis, clock):
    limiter, limit = RateLimiter(redis, clock), RateLimit("test", 6000)
    results = await asyncio.gather(*[limiter.take(limit, "ada") for _ in range(64)])
    assert len(results) == 64
    assert 5800 <= await taken(RateLimiter(redis, clock), 6000, limit) <= 6000 - 64 + 100


async def test_a_batch_that_lies_around_is_not_hoarded(redis, clock):
    limiter, limit = RateLimiter(redis, clock), RateLimit("test", 600)
    await limiter.take(limit, "ada")
    clock.advance(BATCH_LIFETIME_S)
    assert await taken(limiter, 700, limit) <= 600


async def test_without_redis_each_worker_counts_for_itself_and_time_refills(clock):
    gone = Redis.from_url("redis://127.0.0.1:1")
    for limiter in (RateLimiter(None, clock), RateLimiter(gone, clock)):
        assert await taken(limiter, 100) == 60
        clock.advance(1)
        assert await taken(limiter, 5) == 1
        clock.advance(60)
        assert await taken(limiter, 100) == 60
    await gone.aclose()


async def test_every_refusal_says_when_there_is_room_again_and_then_there_is(redis, clock):
    limit = RateLimit("slow", 6)
    for limiter in (RateLimiter(None, clock), RateLimiter(redis, clock)):
        assert await taken(limiter, 6, limit) == 6
        for _ in range(3):
            with pytest.raises(TooManyError) as refused_again:
                await limiter.take(limit, "ada")
            assert 9 <= refused_again.value.retry_after_s <= 10
    local = RateLimiter(None, clock)
    assert await taken(local, 7, limit) == 6
    clock.advance(10)
    assert await taken(local, 2, limit) == 1


async def test_zero_means_no_limit(clock):
    assert await taken(RateLimiter(None, clock), 1000, RateLimit("test", 0)) == 1000


@pytest.mark.parametrize(
    "peer, forwarded, address",
    [
        ("198.51.100.1", None, "198.51.100.1"),
        ("198.51.100.1", "203.0.113.9", "198.51.100.1"),
        ("10.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "1.1.1.1, 203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "1.1.1.1, 203.0.113.9, 10.0.0.2", "203.0.113.9"),
        ("10.0.0.1", "rubbish", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.9, rubbish", "10.0.0.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", None, "2001:db8:1:2::/64"),
        ("::ffff:198.51.100.1", None, "198.51.100.1"),
        ("", None, ""),
    ],
)
def test_a_proxy_is_believed_as_far_as_it_is_trusted(peer, forwarded, address):
    lines = [] if forwarded is None else [forwarded]
    assert counted_as(client_host(peer, lines, parse_networks(["10.0.0.0/8"]))) == address


def test_nobody_is_believed_unless_trusted():
    assert client_host("10.0.0.1", ["203.0.113.9"], ()) == "10.0.0.1"


@pytest.mark.parametrize(
    "peer, lines, address",
    [
        # HAProxy adds a line of its own below what it was sent.
        ("10.0.0.1", ["1.1.1.1", "203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["1.1.1.1, 2.2.2.2", "203.0.113.9, 10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", ["203.0.113.9", "10.0.0.3", "10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", ["203.0.113.9", ""], "10.0.0.1"),
        ("10.0.0.1", ["10.9.9.9", "203.0.113.9"], "203.0.113.9"),
        # What the proxy was told with a port, in brackets, or as it comes from a socket for both families.
        ("10.0.0.1", ["203.0.113.9:51234"], "203.0.113.9"),
        ("10.0.0.1", ["[2001:db8::7]:51234"], "2001:db8::7"),
        ("::ffff:10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["203.0.113.9, ::ffff:10.0.0.2"], "203.0.113.9"),
        # More than any chain of proxies writes is not looked at, and what is cut is no address.
        ("10.0.0.1", ["1.1.1.1," * 10_000 + "203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["9" * FORWARDED_CHARS_MAX + "1.1.1.1"], "10.0.0.1"),
        ("10.0.0.1", ["1.1.1.1"] + ["10.0.0.2"] * HOPS_MAX, "10.0.0.2"),
    ],
)
def test_all_lines_of_the_header_are_one_list_that_is_read_from_the_right(peer, lines, address):
    assert client_host(peer, lines, parse_networks(["10.0.0.0/8"])) == address


@pytest.mark.parametrize("trusted", ["::ffff:10.0.0.1", "::ffff:10.0.0.0/104"])
def test_a_proxy_that_is_written_as_ipv6_is_believed(trusted):
    assert client_host("10.0.0.1", ["203.0.113.9"], parse_networks([trusted])) == "203.0.113.9"
    assert client_host("192.0.2.1", ["203.0.113.9"], parse_networks([trusted])) == "192.0.2.1"


@pytest.mark.slow
def test_large_headers_are_not_kept():
    trusted = parse_networks(["10.0.0.0/8"])
    client_host("10.0.0.1", ["203.0.113.9"], trusted)
    gc.collect()
    tracemalloc.start()
    for number in range(ADDRESSES_CACHED_MAX):
        client_host("10.0.0.1", [f"{number}" + "x" * 100_000, f"1.1.1.1, {number}" + "y" * 100_000], trusted)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 1_000_000


async def test_a_second_line_of_the_header_does_not_get_around_the_limit(database_url, redis_url, clock, ids):
    limits = RateLimitSettings(per_address=3)
    settings = web_settings(database_url, redis_url, rate_limits=limits, trusted_proxies=("192.0.2.0/24",))
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        codes = []
        for number in range(6):
            lines = [("X-Forwarded-For", f"198.51.100.{number}"), ("X-Forwarded-For", "203.0.113.9")]
            codes.append((await client.get("/api/public/chains", headers=lines)).status_code)
    assert codes == [200, 200, 200, 429, 429, 429]


async def test_too_many_requests_are_told_when_to_come_again(database_url, redis_url, clock, ids):
    limits = RateLimitSettings(per_key=5, per_address=20, login_per_address=10)
    settings = web_settings(database_url, redis_url, rate_limits=limits)
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        merchant = await Merchant(client).open(mode="sandbox")
        answers = [await client.get("/api/merchant/wallet", headers=merchant.key) for _ in range(7)]
        assert [answer.status_code for answer in answers[:5]] == [200] * 5
        refused(answers[-1], 429, "RATE_LIMITED")
        assert int(answers[-1].headers["retry-after"]) >= 1
        first = merchant.key
        other = await Merchant(client).open("bob@shop.example", mode="sandbox")
        assert other.key != first
        assert (await client.get("/api/merchant/wallet", headers=other.key)).status_code == 200


LOGIN = "/api/auth/login"
WRONG = {"email": "ada@shop.example", "password": "wrong"}


async def test_guessing_passwords_is_limited_for_the_one_who_guesses_and_keeps_nobody_else_out(
    database_url, redis_url, clock, ids
):
    settings = web_settings(database_url, redis_url, rate_limits=RateLimitSettings(login_per_address=5))
    async with memory_gateway(settings, clock, ids) as gateway:
        async with web_client(gateway, "198.51.100.9") as client:
            await Merchant(client).register("ada@shop.example")
            client.cookies.clear()
        async with web_client(gateway, "192.0.2.0") as client:
            codes = [(await client.post(LOGIN, json=WRONG)).status_code for _ in range(7)]
            assert codes == [401] * 5 + [429] * 2
            right = await client.post(LOGIN, json=WRONG | {"password": PASSWORD})
            refused(right, 429, "RATE_LIMITED")
        async with web_client(gateway, "192.0.2.1") as client:
            assert (await client.post(LOGIN, json=WRONG | {"password": PASSWORD})).status_code == 200


async def test_a_right_password_is_not_counted_however_often_it_is_shown(database_url, redis_url, clock, ids):
    settings = web_settings(database_url, redis_url, rate_limits=RateLimitSettings(login_per_address=5))
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        await Merchant(client).register("ada@shop.example")
        client.cookies.clear()
        web = client._transport.app.state.web
        for _ in range(12):
            await check_password(web, MEMBERS, connection_of(client), "ada@shop.example", PASSWORD)
        answers = []
        for _ in range(6):
            with pytest.raises((UnauthenticatedError, TooManyError)) as error:
                await check_password(web, MEMBERS, connection_of(client), "ada@shop.example", "wrong")
            answers.append(error.type)
    assert answers == [UnauthenticatedError] * 5 + [TooManyError]


async def test_what_is_guessed_at_merchants_keeps_no_operator_out_whatever_is_typed(
    database_url, redis_url, clock, ids
):
    settings = web_settings(database_url, redis_url, rate_limits=RateLimitSettings(login_per_address=5))
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        officer = await Officer(client).sign_in("owner")
        for typed in (officer.made.email, f"operator {officer.made.email}"):
            for _ in range(5):
                with suppress(UnauthenticatedError):
                    await check_password(client._transport.app.state.web, MEMBERS, connection_of(client), typed, "x")
        assert (await client.post(f"{AUTH}/sign-in", json=officer.credentials())).status_code == 200


@pytest.mark.parametrize(
    "path, body",
    [
        ("/api/auth/password", {"currentPassword": PASSWORD, "newPassword": "password123"}),
        ("/api/dashboard/two-factor/enrol", {"password": PASSWORD}),
    ],
)
async def test_what_costs_as_much_as_signing_in_is_counted_with_it_also_for_the_right_password(
    database_url, redis_url, clock, ids, path, body
):
    settings = web_settings(database_url, redis_url, rate_limits=RateLimitSettings(login_per_address=5))
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        merchant = Merchant(client)
        await merchant.register("ada@shop.example")
        answers = [await client.post(path, json=body, headers=merchant.bearer) for _ in range(5)]
        assert [answer.status_code == 429 for answer in answers] == [False] * 4 + [True]
        refused(answers[-1], 429, "RATE_LIMITED")


@pytest.mark.parametrize("shared", [True, False])
async def test_a_crowd_of_guessers_is_braked_and_the_merchant_gets_in_from_the_usual_address(
    database_url, redis_url, clock, ids, shared
):
    limits = RateLimitSettings(login_per_address=1, per_address=0)
    settings = web_settings(database_url, redis_url if shared else "redis://127.0.0.1:1", rate_limits=limits)
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        await Merchant(client).register("ada@shop.example")
        client.cookies.clear()
        web = client._transport.app.state.web
        guessed = []
        for number in range(FAILED_LOGINS_PER_MINUTE + 5):
            there = connection_of(client, f"198.51.100.{number}")
            try:
                await check_password(web, MEMBERS, there, "ada@shop.example", "wrong")
            except (UnauthenticatedError, TooManyError) as error:
                guessed.append(error.code)
        braked = guessed.index("RATE_LIMITED")
        assert FAILED_LOGINS_PER_MINUTE <= braked < len(guessed)
        with pytest.raises(TooManyError):
            await check_password(web, MEMBERS, connection_of(client, "198.51.100.250"), "ada@shop.example", PASSWORD)
        await check_password(web, MEMBERS, connection_of(client), "ada@shop.example", PASSWORD)


def connection_of(client, ip="192.0.2.7"):
    """Return a request to the client's gateway from this address, as handlers get it."""
    scope = {"type": "http", "headers": [], "client": (ip, 1), "litestar_app": client._transport.app}
    return ASGIConnection(scope)


async def test_what_was_counted_in_advance_can_be_given_back(redis, clock):
    for limiter in (RateLimiter(None, clock), RateLimiter(redis, clock)):
        limit = RateLimit("slow", 2, period_s=900)
        await limiter.take(limit, "ada")
        await limiter.give_back(limit, "ada")
        await limiter.give_back(limit, "nobody")
        assert await taken(limiter, 5, limit) == 2
        with pytest.raises(TooManyError) as error:
            await limiter.take(limit, "ada")
        assert 440 <= error.value.retry_after_s <= 450


async def test_guessing_keys_is_limited(database_url, redis_url, clock, ids):
    settings = web_settings(database_url, redis_url, rate_limits=RateLimitSettings())
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        codes = [
            (await client.get("/api/merchant/wallet", headers={"X-Api-Key": f"ck_live_{number}"})).status_code
            for number in range(70)
        ]
        assert codes[0] == 401
        assert codes[-1] == 429


@pytest.mark.parametrize(
    "secret",
    ["x", "ck_live_1", "ck_live_" + "0" * 51, "ck_prod_" + "0" * 52, "ck_live_" + "0" * 500, "CK_LIVE_" + "0" * 52],
)
async def test_what_cannot_be_a_key_is_not_looked_up(gateway, client, monkeypatch, secret):
    async def find_access(*_):
        raise AssertionError("it was looked up")

    monkeypatch.setattr(api_keys, "find_access", find_access)
    refused(await client.get("/api/merchant/wallet", headers={"X-Api-Key": secret}), 401, "API_KEY_INVALID")


async def test_guesses_beyond_the_limit_are_not_looked_up_also_when_they_come_at_once(
    database_url, redis_url, clock, ids, monkeypatch
):
    looked_up = []
    find_access = api_keys.find_access

    async def counting(conn, hashed):
        looked_up.append(hashed)
        return await find_access(conn, hashed)

    settings = web_settings(database_url, redis_url, rate_limits=RateLimitSettings())
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        monkeypatch.setattr(api_keys, "find_access", counting)
        guesses = [
            client.get("/api/merchant/wallet", headers={"X-Api-Key": f"ck_live_{number:052}"}) for number in range(300)
        ]
        codes = Counter(answer.status_code for answer in await asyncio.gather(*guesses))
    assert codes[401] == len(looked_up)
    assert codes[401] + codes[429] == 300
    assert BAD_CREDENTIALS_PER_MINUTE <= len(looked_up) <= BAD_CREDENTIALS_PER_MINUTE + 10


@pytest.mark.slow
async def test_good_keys_are_never_taken_for_guesses_and_one_that_was_good_works_while_others_guess(
    database_url, redis_url, clock, ids
):
    settings = web_settings(database_url, redis_url, rate_limits=RateLimitSettings(login_per_address=0))
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        merchant = await Merchant(client).open()
        await merchant.step_up()  # once: else each key would take two-factor authentication on and off again
        for _ in range(2):  # more than may be wrong in a minute
            for _ in range(49):
                await merchant.add_key()
                assert (await client.get("/api/merchant/wallet", headers=merchant.key)).status_code == 200
            await merchant.add_project()
        assert (await client.get("/api/merchant/wallet", headers=merchant.key)).status_code == 200
        for number in range(80):
            await client.get("/api/merchant/wallet", headers={"X-Api-Key": f"ck_live_{number:052}"})
        clock.advance(KEY_CACHE_TTL_S)
        assert (await client.get("/api/merchant/wallet", headers=merchant.key)).status_code == 200
        path = f"/api/merchant/projects/{merchant.project_id}/api-keys/{merchant.key_id}"
        assert (await client.delete(path, headers=merchant.bearer)).status_code == 200
        assert (await client.get("/api/merchant/wallet", headers=merchant.key)).status_code in {401, 429}


async def test_what_is_refused_before_its_route_is_counted_too(database_url, redis_url, clock, ids):
    settings = web_settings(database_url, redis_url, rate_limits=RateLimitSettings(per_address=3))
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        paths = ("/api/admin/settings", "/pay/pub_nobody", "/api/public/chains")
        for path in paths:
            codes = [(await client.get(path, headers={"X-Admin-Key": "guessed"})).status_code for _ in range(5)]
            assert codes[-1] == 429, path
        counted = (await client.get("/metrics")).text.splitlines()
    for route in ("/api/admin/settings", "/pay/{public_id}", "/api/public/chains"):
        assert any(f'route="{route}",status="429"' in line for line in counted), route
