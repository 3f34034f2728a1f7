"""A server between a gateway and a provider's: it hands every answer on, or what a test makes of it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Self

import aiohttp
from aiohttp import web
from msgspec import Struct


class Answer(Struct, frozen=True):
    """What goes to the gateway."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}


Mangle = Callable[[Any], Answer]
"""Makes another answer of what the provider's server has told."""


class Mangler:
    """Stands at ``url`` for a server. Answers to ``path``, its last part, are mangled after the first ``spared``."""

    def __init__(self, real_url: str) -> None:
        scheme, _, rest = real_url.partition("://")
        host, _, prefix = rest.partition("/")
        self._real, self._prefix = f"{scheme}://{host}", prefix and f"/{prefix}"
        self.honest()

    def honest(self) -> None:
        self.mangle: Mangle | None = None
        self.path, self.spared, self.met = "", 0, 0

    def begin(self, mangle: Mangle, path: str, *, spared: int = 0) -> None:
        self.mangle, self.path, self.spared, self.met = mangle, path, spared, 0

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession()
        app = web.Application()
        app.router.add_get("/{path:.*}", self._hand_on)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}{self._prefix}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _hand_on(self, request: web.Request) -> web.Response:
        sent = {name: value for name, value in request.headers.items() if name == "Authorization"}
        async with self._session.get(f"{self._real}{request.path_qs}", headers=sent) as told:
            answer = Answer(told.status, await told.read(), {"Content-Type": "application/json"})
        if self.mangle is not None and request.path.endswith(f"/{self.path}") and answer.status == 200:
            self.spared -= 1
            if self.spared < 0:
                self.met += 1
                answer = self.mangle(json.loads(answer.body))
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)


STRANGER = "0x" + "5e" * 20
VALUES: tuple[Any, ...] = (
    None, True, "", "x", [], {}, 0, 1, -1, 1.5, 10**30, 2**256, "0", "1", "-1", "1e18", "0x10", "1.0", " 5", "٣",
    "9" * 77, "9" * 400, STRANGER, "0x" + "0" * 40, "0x", "\0",
)  # fmt: skip
"""What stands in a value's place."""
READ = {
    "dstAmount", "from", "to", "data", "value", "outputAmount", "address", "decimals", "chainId", "spokePoolAddress",
    "destinationSpokePoolAddress", "timestamp", "fillDeadline", "exclusiveRelayer", "exclusivityDeadline",
    "estimatedFillTimeSec", "isAmountTooLow", "total", "status", "fillTxnRef", "depositId", "originChainId",
}  # fmt: skip
"""The names of what plugins look at, which is changed more often than the rest."""
FACTORS = (0, 0.5, 0.99, 0.999999, 1.000001, 1.01, 2, 10**6)
"""By how much a number is changed."""
LATE = "Wed, 21 Oct 2015 07:28:00 GMT"
WHOLE: tuple[Answer, ...] = (
    Answer(200, b'{"error":"Bad Request","description":"insufficient liquidity","statusCode":400}'),
    Answer(200, b'{"type":"AcrossApiError","code":"AMOUNT_TOO_LOW","status":400,"message":"no"}'),
    Answer(400, b'{"error":"Bad Request","description":"a text that nobody has heard","statusCode":400}'),
    Answer(400, b'{"type":"AcrossApiError","code":"SIMULATION_ERROR","status":400,"message":"no"}'),
    Answer(400, b"no"),
    Answer(404, b'{"type":"AcrossApiError","code":"INVALID_PARAM","param":"token"}'),
    Answer(200, b""),
    Answer(200, b"null"),
    Answer(200, b"<html>busy</html>"),
    Answer(200, b"[" * 5_000 + b"]" * 5_000),
    Answer(200, zlib.compress(bytes(10**7), wbits=31), {"Content-Encoding": "gzip"}),
    Answer(204, b""),
    Answer(302, b"", {"Location": "/elsewhere"}),
    Answer(401, b"Unauthorized"),
    Answer(429, b"", {"Retry-After": "-1"}),
    Answer(429, b"", {"Retry-After": "soon"}),
    Answer(429, b"", {"Retry-After": LATE}),
    Answer(500, b'{"code":"UNEXPECTED_ERROR"}'),
    Answer(503, b"", {"Retry-After": "0.5"}),
)
"""What comes in the place of an answer."""


def mangled(random: Random) -> Mangle:
    """Return what changes each answer in the same one way, be it what is told, or all of it."""
    seed = random.getrandbits(64)
    if random.random() < 0.25:
        whole = random.choice(WHOLE)
        return lambda _: whole

    def mangle(told: Any) -> Answer:
        chance = Random(seed)
        places = list(_places(told))
        read = [place for place in places if place[1] in READ]
        holder, key = chance.choice(read if read and chance.random() < 0.8 else places)
        holder[key] = _changed(chance, holder[key])
        if chance.random() < 0.1:
            del holder[key]
        return Answer(200, json.dumps(told).encode(), {"Content-Type": "application/json"})

    return mangle


def _places(told: Any) -> Any:
    """Yield where each value stands that is no list or object: what holds it, and under which key."""
    for key, value in list(told.items()) if isinstance(told, dict) else enumerate(told):
        if isinstance(value, dict | list):
            yield from _places(value)
        else:
            yield told, key


def _changed(chance: Random, value: Any) -> Any:
    """Return another value: something else altogether, or of the same kind and nearly the same."""
    if isinstance(value, str) and value.startswith("0x") and len(value) > 42:
        return _another_call(chance, bytearray.fromhex(value[2:]))
    if chance.random() < 0.5:
        return chance.choice(VALUES)
    if isinstance(value, str) and value.isdigit():
        return str(int(int(value) * chance.choice(FACTORS)))
    if isinstance(value, int):
        return int(value * chance.choice(FACTORS))
    if isinstance(value, str):
        return chance.choice([value.upper(), value.lower(), value + "0", value[:-1], value[::-1]])
    return chance.choice(VALUES)


def _another_call(chance: Random, data: bytearray) -> str:
    """Return bytes of a call with one thing changed: a word of those that say what is done, the function, the end."""
    at = 4 + 32 * chance.randrange(0, max(1, (len(data) - 4) // 32))
    how = chance.choice(["word", "word", "word", "function", "cut", "more", "bit"])
    if how == "word":
        stranger = int(STRANGER, 16)
        word = chance.choice([0, 1, 2, stranger, 2**255, int.from_bytes(data[at : at + 32], "big") * 2 % 2**256])
        data[at : at + 32] = word.to_bytes(32, "big")
    elif how == "function":
        data[:4] = chance.choice([b"\x12\xaa\x3c\xaf", b"\x83\x80\x0a\x8e", b"\xa9\x05\x9c\xbb", bytes(4)])
    elif how == "cut":
        del data[-chance.choice([1, 4, 32, 64]) :]
    elif how == "more":
        data += bytes(chance.choice([1, 4, 32]))
    else:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return "0x" + data.hex()
