"""Asking providers' servers: within the budget, bounded, led nowhere else, and with no secret in any message."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from msgspec import Struct

from cambist.plugin import OwnBudgets, PluginContext, ProviderUnavailableError
from cambist.testing.clock import ManualClock
from cambist_chainkit.providers import QUOTE_WAIT_MAX_S, ProviderClient, ProviderSetup, provider_client

KEY = "k3y-of-the-tests"
BYTES_MAX = 100_000


class Told(Struct, frozen=True):
    """An answer."""

    units: int


class Asked(Struct, frozen=True):
    """A question."""

    amount: int


class Server:
    """Answers as it is told, and remembers what it was asked."""

    def __init__(self) -> None:
        self.requests: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.answer: Callable[[web.Request], Awaitable[web.StreamResponse]] | None = None
        self.status, self.body, self.headers = 200, b'{"units": 7}', dict[str, str]()
        self.url = ""

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Do it."""
        self.requests.append(request)
        self.bodies.append(await request.read())
        if self.answer is not None:
            return await self.answer(request)
        return web.Response(status=self.status, body=self.body, headers=self.headers)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server, app = Server(), web.Application()
    app.router.add_route("*", "/{path:.*}", server.serve)
    async with TestServer(app) as running:
        server.url = str(running.make_url("/api/"))
        yield server


def lent(clock: ManualClock, budgets: OwnBudgets | None = None) -> PluginContext:
    return PluginContext(
        now=clock.now,
        monotonic=clock.monotonic,
        random=Random(3),
        user_agent="cambist-tests",
        budgets=budgets or OwnBudgets(clock.monotonic),
    )


@asynccontextmanager
async def asking(server: Server, context: PluginContext, **other: Any) -> AsyncIterator[ProviderClient]:
    usual = {"name": "example", "table": "plugins.example", "base_url": server.url, "key": KEY, "timeout_ms": 60_000}
    usual |= {"requests_per_second": 1000, "answer_bytes_max": BYTES_MAX, "refusals": frozenset({400})}
    async with provider_client(ProviderSetup(**usual | other), context) as client:
        yield client


@pytest.fixture
async def client(server: Server, clock: ManualClock) -> AsyncIterator[ProviderClient]:
    async with asking(server, lent(clock)) as client:
        yield client


async def ask(client: ProviderClient) -> int:
    answer = await client.get("/quote", {})
    return client.decode(answer, Told, "a quote").units


async def test_what_is_asked_arrives_with_the_key_and_the_answer_is_a_value(server, client):
    assert client.decode(await client.get("/quote", {"amount": "5", "to": "a&b"}), Told, "a quote") == Told(7)
    assert client.decode(await client.post("/build", Asked(5)), Told, "a call") == Told(7)
    got, posted = server.requests
    assert (got.method, got.path, dict(got.query)) == ("GET", "/api/quote", {"amount": "5", "to": "a&b"})
    assert (posted.method, posted.path, server.bodies[1]) == ("POST", "/api/build", b'{"amount":5}')
    for request in server.requests:
        assert request.headers["Authorization"] == f"Bearer {KEY}"
        assert request.headers["User-Agent"] == "cambist-tests"
    assert posted.content_type == "application/json"


async def test_without_a_key_none_is_sent(server, clock):
    async with asking(server, lent(clock), key=None) as client:
        await ask(client)
        assert client.redacted("as it is") == "as it is"
    assert "Authorization" not in server.requests[0].headers


async def test_a_refusal_is_an_answer_and_is_told_without_the_key(server, client):
    server.status, server.body = 400, f'{{"units": 3, "why": "{KEY} is poor"}}'.encode()
    answer = await client.get("/quote", {})
    assert (answer.refused, answer.status) == (True, 400)
    assert client.decode(answer, Told, "a refusal") == Told(3)
    assert client.redacted(answer.body.decode()) == '{"units": 3, "why": "*** is poor"}'


@pytest.mark.parametrize(
    "status, told",
    [
        (401, "plugins.example.key"),
        (402, "plugins.example.key"),
        (403, "plugins.example.key"),
        (404, "plugins.example.base_url"),
        *((status, "elsewhere") for status in (301, 302, 303, 307, 308)),
        *((status, f"status {status}") for status in (201, 204, 405, 418, 422, 500, 502, 503)),
    ],
)
async def test_any_other_status_is_no_answer_and_nobody_is_led_elsewhere(server, client, status, told):
    server.status, server.headers, server.body = status, {"Location": "/api/quote"}, KEY.encode()
    with pytest.raises(ProviderUnavailableError, match=told) as unavailable:
        await ask(client)
    assert KEY not in str(unavailable.value)
    assert len(server.requests) == 1


async def test_status_429_pauses_everybody_who_asks_with_the_key_and_nobody_else(server, clock):
    context = lent(clock)
    async with (
        asking(server, context) as one,
        asking(server, context) as two,
        asking(server, context, key="another") as other,
        asking(server, context, name="else") as elsewhere,
    ):
        server.status, server.headers = 429, {"Retry-After": "20"}
        with pytest.raises(ProviderUnavailableError, match="429") as limited:
            await ask(one)
        assert limited.value.retry_after == 20
        server.status = 200
        clock.advance(15)
        for client in (one, two):
            with pytest.raises(ProviderUnavailableError, match="example asked for fewer") as paused:
                await ask(client)
            assert paused.value.retry_after == 5
        assert len(server.requests) == 1
        assert [await ask(other), await ask(elsewhere)] == [7, 7]
        clock.advance(5)
        assert [await ask(one), await ask(two)] == [7, 7]


@pytest.mark.parametrize("said, wait", [(None, 1), ("0", 1), ("90", 90), ("999999999", 300), ("soon", 1)])
async def test_a_limit_lasts_as_long_as_is_said_within_reason(server, client, said, wait):
    server.status, server.headers = 429, {} if said is None else {"Retry-After": said}
    for _ in range(2):
        with pytest.raises(ProviderUnavailableError) as unavailable:
            await ask(client)
        assert unavailable.value.retry_after == wait
    assert len(server.requests) == 1


async def test_a_busy_server_that_says_for_how_long_is_left_alone(server, client, clock):
    server.status, server.headers = 503, {"Retry-After": "12"}
    for _ in range(2):
        with pytest.raises(ProviderUnavailableError) as unavailable:
            await ask(client)
        assert unavailable.value.retry_after == 12
    assert len(server.requests) == 1


async def test_a_build_finds_room_behind_any_number_of_quotes(server, clock):
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await asyncio.sleep(0)

    context = lent(clock, OwnBudgets(clock.monotonic, sleep))
    async with asking(server, context, requests_per_second=2) as client:
        quotes = [client.get("/quote", {}, wait_max_s=QUOTE_WAIT_MAX_S) for _ in range(40)]
        answers = await asyncio.gather(*quotes, client.post("/build", Asked(1)), return_exceptions=True)
    assert [type(one) for one in answers[5:40]] == [ProviderUnavailableError] * 35
    assert not isinstance(answers[40], BaseException)
    assert waits == [0.5, 1.0, 1.5, 2.0, 2.5]
    assert len(server.requests) == 6


GARBAGE = {
    "nothing": b"",
    "a page": b"<html>busy</html>",
    "broken": b'{"units": 1',
    "another kind": b'{"units": "7"}',
    "no UTF-8": b"\xff\xfe",
    "nested": b'{"x":' + b"[" * 50_000 + b"]" * 40_000,
    "packed": gzip.compress(b'{"units": 7}'),
}


@pytest.mark.parametrize("body", GARBAGE.values(), ids=GARBAGE.keys())
async def test_garbage_is_no_answer(server, client, body):
    server.body = body
    if body[:1] == b"\x1f":
        server.headers = {"Content-Encoding": "gzip"}
    with pytest.raises(ProviderUnavailableError, match="example answers with something else than a quote"):
        await ask(client)


async def test_an_answer_that_is_too_long_or_endless_ends(server, client):
    server.body = b" " * (BYTES_MAX - 12) + b'{"units": 7}'
    assert await ask(client) == 7

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" " * 65_536)

    server.body = b" " + server.body
    for answer in (None, endless):
        server.answer = answer
        with pytest.raises(ProviderUnavailableError, match=f"more than {BYTES_MAX}"):
            await ask(client)


@pytest.mark.slow
async def test_silence_ends_also_in_the_middle_of_an_answer(server, clock):
    async def silent(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if server.status:
            await response.prepare(request)
            await response.write(b'{"units"')
        await asyncio.sleep(3)
        return response

    server.answer = silent
    async with asking(server, lent(clock), timeout_ms=300) as client:
        for server.status in (0, 1):
            with pytest.raises(ProviderUnavailableError, match="300 ms"):
                await ask(client)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/sEcReT", "http://[::1/sEcReT"])
async def test_nobody_there_is_told_without_the_address(server, clock, url):
    async with asking(server, lent(clock), base_url=url) as client:
        with pytest.raises(ProviderUnavailableError, match="cannot be reached") as unavailable:
            await ask(client)
    assert not any(secret in str(unavailable.value) for secret in ("sEcReT", "127.0.0.1", KEY))


@pytest.mark.parametrize("path", ["@elsewhere.example/quote", ".elsewhere.example/quote", ""])
async def test_a_path_cannot_name_another_host(server, clock, path):
    async with asking(server, lent(clock)) as client:
        with pytest.raises(ValueError, match="slash"):
            await client.get(path, {})
    assert not server.requests
