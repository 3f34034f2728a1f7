"""What can go wrong with 1inch, on demand: an aggregator that is slow, broken, or lies about what was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web
from msgspec import Struct, structs

from cambist_chainkit.eip55 import spell

from . import answers
from .calls import PERMIT2_FLAG, SwapCall

HANG_S: Final = 60.0
CHUNK_BYTES: Final = 65_536

STRANGER: Final = spell("bad" + "0" * 34 + "bad")
"""Whom lies favour."""


class Fault(StrEnum):
    """What can go wrong. The first group meets every path, the second what is quoted and built."""

    SLOW = "slow"
    HTTP_500 = "500"
    HTTP_429 = "429"
    GARBAGE = "garbage"
    REDIRECT = "redirect"
    ENDLESS = "endless answer"

    STALE_QUOTE = "quotes what it quoted before"
    OTHER_ROUTER = "other router"
    OTHER_RECIPIENT = "other recipient"
    OTHER_SPENDER = "allowance for somebody else"
    MORE_THAN_ASKED = "more than asked"
    LESS_THAN_ASKED = "less than asked, so that allowance is left over"
    OUTPUT_OF_ONE = "output of 1"


_LIES: Final[Mapping[Fault, Mapping[str, Any]]] = {
    Fault.OTHER_ROUTER: {"router": STRANGER},
    Fault.OTHER_RECIPIENT: {"receiver": STRANGER},
    Fault.OTHER_SPENDER: {"flags": PERMIT2_FLAG},
    Fault.OUTPUT_OF_ONE: {"amount_min": 1},
}
_AMOUNTS: Final = {Fault.MORE_THAN_ASKED: 1, Fault.LESS_THAN_ASKED: -1}


class _Rule(Struct):
    fault: Fault
    paths: frozenset[str]
    times: int | None


class Faults:
    """Honest until told otherwise."""

    def __init__(self) -> None:
        self._rules: list[_Rule] = []
        self._closing = asyncio.Event()

    def add(self, fault: Fault, *paths: str, times: int | None = None) -> None:
        """Let a fault meet requests of these paths ("quote", "approve/spender"; all by default), or so many of them."""
        self._rules.append(_Rule(fault, frozenset(paths), times))

    def clear(self) -> None:
        """Be honest again."""
        self._rules.clear()

    def close(self) -> None:
        """Let go of requests that hang."""
        self._closing.set()

    def strike(self, path: str) -> frozenset[Fault]:
        """Return what meets this request."""
        struck = [rule for rule in self._rules if rule.times != 0 and (not rule.paths or path in rule.paths)]
        for rule in struck:
            rule.times = None if rule.times is None else rule.times - 1
        return frozenset(rule.fault for rule in struck)

    async def instead(self, struck: frozenset[Fault], request: web.Request) -> web.StreamResponse | None:
        """Return an answer instead of the true one, or None."""
        if Fault.SLOW in struck:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), HANG_S)
            return web.Response(status=504)
        if Fault.ENDLESS in struck:
            return await _endless(request)
        if Fault.REDIRECT in struck:
            return web.Response(status=302, headers={"Location": str(request.rel_url)})
        if Fault.GARBAGE in struck:
            return web.Response(body=b'{"dstAmount": "1e30", \xff', content_type="application/json")
        if Fault.HTTP_429 in struck:
            return web.Response(status=429, headers={"Retry-After": "7"}, text="Too Many Requests")
        if Fault.HTTP_500 in struck:
            body = answers.refusal("something went wrong", {}, HTTPStatus.INTERNAL_SERVER_ERROR)
            return web.json_response(body, status=500)
        return None


def lie(call: SwapCall, struck: frozenset[Fault]) -> SwapCall:
    """Return what is built in place of an honest call."""
    for fault in struck:
        call = structs.replace(call, **_LIES.get(fault, {}), amount=call.amount + _AMOUNTS.get(fault, 0))
    return call


async def _endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    with suppress(ConnectionError):
        await response.write(b'{"dstAmount": "')
        while True:
            await response.write(b"1" * CHUNK_BYTES)
    return response
