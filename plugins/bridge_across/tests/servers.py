"""A server on loopback that answers as Across's older interface does, and as it should not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from cambist.plugin import ChainInfo
from cambist.testing.clock import ManualClock
from cambist_bridge_across.addresses import ZERO
from cambist_bridge_across.config import AcrossConfig
from cambist_bridge_across.deployments import Deployments

from .samples import CHAINS

CAPITAL_PPM, LP_PPM, GAS_DIVISOR = 100, 50, 5_000
MIN_UNITS, MAX_UNITS = 1_000, 10**24


class AcrossServer:
    """Bridges between the sample chains. ``changes`` replace fields of its answers, or make them of an answer."""

    def __init__(self, clock: ManualClock) -> None:
        self.requests: list[web.Request] = []
        self.answers: list[dict[str, Any]] = []
        self.changes: dict[str, Any] = {}
        self.status = 200
        self.headers: dict[str, str] = {}
        self.body: bytes | None = None
        self.delay_s = 0.0
        self.endless = False
        self.away = False
        self.deposits: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._clock = clock
        self._deployments = Deployments(AcrossConfig())
        self._server: TestServer | None = None

    @property
    def base_url(self) -> str:
        """Where it can be reached."""
        return str(self._server.make_url("/api"))

    @property
    def now(self) -> int:
        """The server's time."""
        return int(self._clock.now().timestamp())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[AcrossServer]:
        """Listen on a free port of the loopback until the context ends."""
        app = web.Application()
        app.router.add_get("/api/suggested-fees", self._answering(self._fees))
        app.router.add_get("/api/limits", self._answering(self._limits))
        app.router.add_get("/api/deposit/status", self._answering(self._status))
        async with TestServer(app) as self._server:
            yield self

    def _answering(self, usual):
        async def answer(request: web.Request) -> web.StreamResponse:
            self.requests.append(request)
            await asyncio.sleep(self.delay_s)
            if self.away:
                request.transport.abort()
            if self.endless:
                return await self._forever(request)
            if self.body is not None or self.status != 200:
                return web.Response(status=self.status, body=self.body or b"", headers=self.headers)
            try:
                told = usual(request.query)
                self.answers.append(told | {k: v(told) if callable(v) else v for k, v in self.changes.items()})
                return web.json_response(self.answers[-1])
            except web.HTTPException as refusal:
                return web.Response(status=refusal.status, body=refusal.body, content_type="application/json")

        return answer

    async def _forever(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" " * 65_536)
            await asyncio.sleep(0)

    def _fees(self, query: Mapping[str, str]) -> dict[str, Any]:
        amount = int(query["amount"])
        origin, destination = self._chain(query["originChainId"]), self._chain(query["destinationChainId"])
        token_in, token_out = self._token(origin, query["inputToken"]), self._token(destination, query["outputToken"])
        if token_in["decimals"] != token_out["decimals"] and query.get("allowUnmatchedDecimals") != "true":
            raise _refusal("INVALID_PARAM")
        if amount < MIN_UNITS:
            raise _refusal("AMOUNT_TOO_LOW")
        if amount > MAX_UNITS:
            raise _refusal("AMOUNT_TOO_HIGH")
        fees = {
            "relayerCapitalFee": amount * CAPITAL_PPM // 10**6,
            "relayerGasFee": amount // GAS_DIVISOR,
            "lpFee": amount * LP_PPM // 10**6,
        }
        rest = amount - sum(fees.values())
        return {
            "estimatedFillTimeSec": 4,
            "timestamp": str(self.now - 30),
            "fillDeadline": str(self.now + 7200),
            "exclusiveRelayer": ZERO,
            "exclusivityDeadline": 0,
            "spokePoolAddress": self._deployments.of(origin).spoke_pool,
            "destinationSpokePoolAddress": self._deployments.of(destination).spoke_pool,
            "outputAmount": str(rest * 10 ** token_out["decimals"] // 10 ** token_in["decimals"]),
            "isAmountTooLow": False,
            "quoteBlock": "21000000",
            "inputToken": token_in,
            "outputToken": token_out,
            "totalRelayFee": {"pct": "0", "total": str(sum(fees.values()))},
            **{name: {"pct": "0", "total": str(units)} for name, units in fees.items()},
            "limits": self._limits(query),
        }

    def _limits(self, _: Mapping[str, str]) -> dict[str, Any]:
        return {"minDeposit": str(MIN_UNITS), "maxDeposit": str(MAX_UNITS), "maxDepositInstant": str(MAX_UNITS)}

    def _status(self, query: Mapping[str, str]) -> dict[str, Any]:
        found = self.deposits.get((query["originChainId"], query["depositId"]))
        if found is None:
            raise web.HTTPNotFound(text='{"error":"DepositNotFoundException"}')
        return {"originChainId": int(query["originChainId"]), "depositId": query["depositId"], **found}

    def _chain(self, number: str) -> ChainInfo:
        found = [one for one in CHAINS.values() if str(one.chain_id_num) == number]
        if not found:
            raise _refusal("ROUTE_NOT_ENABLED")
        return found[0]

    def _token(self, chain: ChainInfo, contract: str) -> dict[str, Any]:
        known = {self._deployments.of(chain).wrapped_native.lower(): 18}
        known |= {token.contract.lower(): token.decimals for token in chain.tokens if token.contract}
        if contract.lower() not in known:
            raise _refusal("ROUTE_NOT_ENABLED")
        return {"address": contract, "decimals": known[contract.lower()], "chainId": chain.chain_id_num}


def _refusal(code: str) -> web.HTTPException:
    return web.HTTPBadRequest(text=f'{{"type":"AcrossApiError","code":"{code}","status":400,"message":"no"}}')
