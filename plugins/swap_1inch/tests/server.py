"""A server on loopback that speaks as 1inch's Swap API does, truthfully or not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer
from eth_abi import encode

RECORDED = Path(__file__).parent / "recorded"
KEY = "k3y-of-the-tests"

ROUTER = "0x111111125421cA6dc452d289314280a0f8842A65"
EXECUTOR = "0x990636ecb3ff04d33d92e970d3d588bf5cd8d086"
NATIVE = "0x" + "e" * 40
ZERO = "0x" + "0" * 40
TYPES = ["address", "(address,address,address,address,uint256,uint256,uint256)", "bytes"]
TAIL = bytes.fromhex("d1f115cb")

QUOTE_PARAMS = {"src", "dst", "amount", "fee"}
SWAP_PARAMS = QUOTE_PARAMS | {
    *("from", "origin", "receiver", "referrer", "slippage"),
    *("disableEstimate", "allowPartialFill", "usePermit2"),
}


def recorded(name: str) -> dict[str, Any]:
    """Return a recorded file."""
    return json.loads((RECORDED / name).read_text())


def calldata(
    src: str,
    dst: str,
    receiver: str,
    amount: int,
    amount_min: int,
    flags: int = 0,
    *,
    executor: str = EXECUTOR,
    data: bytes = b"\x01" * 75,
    tail: bytes = TAIL,
) -> bytes:
    """Return a call of the router's ``swap``."""
    description = (src, dst, executor, receiver, amount, amount_min, flags)
    return bytes.fromhex("07ed2379") + encode(TYPES, [executor, description, data]) + tail


class OneInchServer:
    """Gives ``rate`` units for each, and ``moves`` the rate with each swap that it builds.

    ``change`` gets the arguments of ``calldata`` and the transaction around it, and may change both. ``status``,
    ``body`` and ``headers`` stand in for the usual answer while one of them is set.
    """

    def __init__(self) -> None:
        self.requests: list[web.Request] = []
        self.rate = Fraction(99, 100)
        self.moves = Fraction(1)
        self.change: Callable[[dict[str, Any], dict[str, Any]], None] = lambda _arguments, _tx: None
        self.answer_with: Callable[[dict[str, Any]], None] = lambda _answer: None
        self.versions = {"v6.0": frozenset(SWAP_PARAMS), "v6.1": frozenset(SWAP_PARAMS | {"compatibility"})}
        self.status: int | None = None
        self.body = b""
        self.headers: dict[str, str] = {}
        self.delay_s = 0.0
        self.endless = False
        self._server: TestServer | None = None

    @property
    def base_url(self) -> str:
        """Where it can be reached."""
        return str(self._server.make_url("")).rstrip("/")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[OneInchServer]:
        """Listen on a free port of the loopback until the context ends."""
        app = web.Application()
        app.router.add_get("/swap/{version}/{chain}/{what}", self._answer)
        app.router.add_get("/elsewhere", self._answer)
        async with TestServer(app) as self._server:
            yield self

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        await asyncio.sleep(self.delay_s)
        if self.endless:
            return await _endless(request)
        if self.status is not None:
            return web.Response(status=self.status, body=self.body, headers=self.headers)
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return web.Response(status=401, text="Unauthorized")
        known = self.versions.get(request.match_info["version"])
        if known is None:
            return web.Response(status=404, text="no such version")
        what = request.match_info["what"]
        allowed = QUOTE_PARAMS if what == "quote" else known
        if strange := set(request.query) - allowed:
            return refused(f"property {min(strange)} should not exist")
        answer = self._quote(request) if what == "quote" else self._swap(request)
        self.answer_with(answer)
        return web.json_response(answer)

    def _out(self, request: web.Request) -> int:
        fee = Fraction(request.query.get("fee", "0")) / 100
        return int(int(request.query["amount"]) * self.rate * (1 - fee))

    def _quote(self, request: web.Request) -> dict[str, Any]:
        return {"dstAmount": str(self._out(request)), "gas": 452704, "protocols": [[[{"name": "SUSHI", "part": 100}]]]}

    def _swap(self, request: web.Request) -> dict[str, Any]:
        asked = request.query
        out = self._out(request)
        self.rate *= self.moves
        arguments: dict[str, Any] = {
            "src": asked["src"],
            "dst": asked["dst"],
            "receiver": asked["receiver"],
            "amount": int(asked["amount"]),
            "amount_min": int(out * (100 - Fraction(asked["slippage"])) / 100),
        }
        native = asked["src"].lower() == NATIVE
        tx: dict[str, Any] = {
            "from": asked["from"].lower(),
            "to": ROUTER.lower(),
            "value": asked["amount"] if native else "0",
            "gas": 0,
            "gasPrice": "9525172167",
        }
        self.change(arguments, tx)
        tx.setdefault("data", "0x" + calldata(**arguments).hex())
        return {"dstAmount": str(out), "tx": tx}


def refused(description: str, status: int = 400) -> web.Response:
    """Return an error in 1inch's shape."""
    return web.json_response(refusal_body(description, status), status=status)


def refusal_body(description: str, status: int = 400) -> dict[str, Any]:
    """Return the body of an error."""
    answer = recorded("openapi_examples_v6_1.json")["examples"]["QuoteRequestError"]
    return answer | {"description": description, "statusCode": status}


async def _endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    try:
        while True:
            await response.write(b'{"dstAmount":"' + b"1" * 65_536)
    except ConnectionError:
        return response
