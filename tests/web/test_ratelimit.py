"""Rate limits: who is counted, how, and what happens when Redis is gone."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from redis.asyncio import Redis

from cambist.services.errors import TooManyError
from cambist.settings import RateLimitSettings
from cambist_web.client_address import client_address, parse_networks
from cambist_web.ratelimit import BATCH_LIFETIME_S, RateLimit, RateLimiter
from tests.support.web import Merchant, memory_gateway, refused, web_client, web_settings

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
        ("2001:db8:1:2:3:4:5:6", None, "2001:db8:1:2::"),
        ("::ffff:198.51.100.1", None, "198.51.100.1"),
        ("", None, ""),
    ],
)
def test_a_proxy_is_believed_as_far_as_it_is_trusted(peer, forwarded, address):
    assert client_address(peer, forwarded, parse_networks(["10.0.0.0/8"])) == address


def test_nobody_is_believed_unless_trusted():
    assert client_address("10.0.0.1", "203.0.113.9", ()) == "10.0.0.1"


async def test_too_many_requests_are_told_when_to_come_again(database_url, redis_url, clock, ids):
    limits = RateLimitSettings(per_key=5, per_address=20, login_per_address=10)
    settings = web_settings(database_url, redis_url, rate_limits=limits)
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        merchant = await Merchant(client).open()
        answers = [await client.get("/api/merchant/wallet", headers=merchant.key) for _ in range(7)]
        assert [answer.status_code for answer in answers[:5]] == [200] * 5
        refused(answers[-1], 429, "RATE_LIMITED")
        assert int(answers[-1].headers["retry-after"]) >= 1
        first = merchant.key
        other = await Merchant(client).open("bob@shop.example")
        assert other.key != first
        assert (await client.get("/api/merchant/wallet", headers=other.key)).status_code == 200


async def test_guessing_passwords_is_limited_for_the_one_who_guesses_and_for_the_account(
    database_url, redis_url, clock, ids
):
    settings = web_settings(database_url, redis_url, rate_limits=RateLimitSettings(login_per_address=5))
    async with memory_gateway(settings, clock, ids) as gateway:
        body = {"email": "ada@shop.example", "password": "wrong"}
        for number in range(2):
            async with web_client(gateway, f"192.0.2.{number}") as client:
                codes = [(await client.post("/api/auth/login", json=body)).status_code for _ in range(4)]
                assert codes == ([401] * 4 if number == 0 else [401, 429, 429, 429])


async def test_guessing_keys_is_limited(database_url, redis_url, clock, ids):
    settings = web_settings(database_url, redis_url, rate_limits=RateLimitSettings())
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        codes = [
            (await client.get("/api/merchant/wallet", headers={"X-Api-Key": f"ck_live_{number}"})).status_code
            for number in range(70)
        ]
        assert codes[0] == 401
        assert codes[-1] == 429


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
