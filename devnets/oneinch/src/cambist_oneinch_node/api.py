"""The Swap API over HTTP, on loopback: its paths, its key, its limit and its refusals."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiohttp import web
from eth_abi.abi import encode

from cambist.testing.anvil import RpcRefusedError
from cambist_chainkit.eip55 import keccak

from . import answers
from .amm import Amm, Route
from .answers import Json
from .asking import V6_0, V6_1, Asked, RefusedError, address, flag, number, read_quote, read_swap
from .calls import NATIVE, SwapCall, plan
from .faults import STRANGER, Fault, Faults, lie

WINDOW_S: Final = 1.0
ENDLESS: Final = (1 << 256) - 1

_APPROVE: Final = keccak(b"approve(address,uint256)")[:4]


class Api:
    """Answers on a loopback port. ``calls`` counts requests by path, ``limited`` those beyond the limit."""

    def __init__(  # noqa: PLR0913 - by keyword
        self,
        amm: Amm,
        faults: Faults,
        *,
        chain_id: int,
        key: str,
        requests_per_second: int,
        port: int,
        monotonic: Callable[[], float],
    ) -> None:
        self.calls: Counter[str] = Counter()
        self.limited = 0
        self.url = ""
        self._amm = amm
        self._faults = faults
        self._chain_id = chain_id
        self._key = key
        self._per_second = requests_per_second
        self._port = port
        self._monotonic = monotonic
        self._recent: deque[float] = deque()
        self._quoted: dict[Asked, Route] = {}
        self._runner: web.AppRunner | None = None
        self._paths: Mapping[str, Callable[[str, Mapping[str, str], frozenset[Fault]], Awaitable[Json]]] = {
            "quote": self._quote,
            "swap": self._swap,
            "tokens": self._tokens,
            "approve/spender": self._spender,
            "approve/allowance": self._allowance,
            "approve/transaction": self._approval,
        }

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/swap/{version}/{chain}/{path:.+}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        """Close the port; ``start`` opens the same one again."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        path, version = request.match_info["path"], request.match_info["version"]
        self.calls[path] += 1
        if request.headers.get("Authorization") != f"Bearer {self._key}":
            return web.Response(status=401, text="Unauthorized")
        if wait := self._wait():
            self.limited += 1
            text = "The limit of requests per second has been exceeded"
            return web.Response(status=429, text=text, headers={"Retry-After": str(wait)})
        struck = self._faults.strike(path)
        if (instead := await self._faults.instead(struck, request)) is not None:
            return instead
        answer = self._paths.get(path)
        if answer is None or version not in {V6_0, V6_1} or request.match_info["chain"] != str(self._chain_id):
            return web.json_response({"statusCode": 404, "message": f"Cannot GET {request.path}"}, status=404)
        try:
            return web.json_response(await answer(version, request.query, struck))
        except RefusedError as error:
            return web.json_response(answers.refusal(str(error), error.meta), status=400)

    def _wait(self) -> int:
        """Return how many seconds to wait where the last second has seen enough, 0 where there is room."""
        now = self._monotonic()
        while self._recent and self._recent[0] <= now - WINDOW_S:
            self._recent.popleft()
        if len(self._recent) >= self._per_second:
            return 1
        self._recent.append(now)
        return 0

    # --- Swaps ---

    async def _quote(self, version: str, query: Mapping[str, str], struck: frozenset[Fault]) -> Json:
        asked = read_quote(version, query)
        route = await self._route(asked)
        if Fault.STALE_QUOTE in struck:
            route = self._quoted.get(asked, route)
        self._quoted[asked] = route
        gas: Json = {"gas": answers.gas(route)} if flag(query, "includeGas") else {}
        return {"dstAmount": str(route.units), **self._told(version, query, asked, route), **gas}

    async def _swap(self, version: str, query: Mapping[str, str], struck: frozenset[Fault]) -> Json:
        asked = read_swap(version, query)
        route = await self._route(asked)
        call = lie(self._call(asked, route), struck)
        gas = await self._estimated(asked, call) if asked.estimates else 0
        gas_price = await self._amm.rpc.number("eth_gasPrice")
        return {
            "dstAmount": str(route.units),
            **self._told(version, query, asked, route),
            "tx": {
                "from": asked.sender.lower(),
                "to": call.router.lower(),
                "data": "0x" + call.data.hex(),
                "value": str(call.value),
                "gasPrice": str(gas_price),
                "gas": gas,
            },
        }

    async def _route(self, asked: Asked) -> Route:
        for name, token in (("src", asked.src), ("dst", asked.dst)):
            if token not in self._amm.tokens:
                raise RefusedError(f"{name} token is not supported: unknown address {token}")
        route = await self._amm.best(asked.src, asked.dst, asked.amount - asked.fee_units)
        if route is None:
            raise RefusedError("insufficient liquidity")
        return route

    def _call(self, asked: Asked, route: Route) -> SwapCall:
        return SwapCall(
            router=self._amm.router,
            executor=self._amm.executor,
            src=asked.src,
            dst=asked.dst,
            receiver=asked.receiver,
            amount=asked.amount,
            amount_min=int(route.units * (1 - asked.slippage)),
            plan=plan(route.path, buys_coin=asked.dst == NATIVE, referrer=asked.referrer, fee=asked.fee_units),
        )

    def _told(self, version: str, query: Mapping[str, str], asked: Asked, route: Route) -> Json:
        told: Json = {}
        if flag(query, "includeTokensInfo"):
            told["srcToken"] = answers.token(version, self._amm.tokens[asked.src])
            told["dstToken"] = answers.token(version, self._amm.tokens[asked.dst])
        if flag(query, "includeProtocols"):
            told["protocols"] = answers.protocols(version, route.path)
        return told

    async def _estimated(self, asked: Asked, call: SwapCall) -> int:
        """Try the swap with the balance and the allowance that there are. Raises RefusedError."""
        amount = str(asked.amount)
        balance = await self._amm.balance(asked.src, asked.sender)
        if balance < asked.amount:
            symbol = self._amm.tokens[asked.src].symbol
            raise RefusedError(f"Not enough {symbol} balance. Amount: {amount}. Balance: {balance}.", amount=amount)
        if asked.src != NATIVE:
            allowance = str(await self._amm.allowance(asked.src, asked.sender))
            if int(allowance) < asked.amount:
                text = f"Not enough allowance. Amount: {amount}. Allowance: {allowance}. Spender: {self._amm.router}"
                raise RefusedError(text, amount=amount, allowance=allowance)
        data = "0x" + call.data.hex()
        transaction = {"from": asked.sender, "to": call.router, "data": data, "value": hex(call.value)}
        try:
            return await self._amm.rpc.number("eth_estimateGas", transaction)
        except RpcRefusedError as error:
            raise RefusedError("cannot estimate") from error

    # --- Tokens and allowances ---

    async def _tokens(self, version: str, query: Mapping[str, str], struck: frozenset[Fault]) -> Json:  # noqa: ARG002
        return {"tokens": {each.address.lower(): answers.token(version, each) for each in self._amm.tokens.values()}}

    async def _spender(self, version: str, query: Mapping[str, str], struck: frozenset[Fault]) -> Json:  # noqa: ARG002
        return {"address": self._allowed(struck).lower()}

    async def _allowance(self, version: str, query: Mapping[str, str], struck: frozenset[Fault]) -> Json:  # noqa: ARG002
        token, owner = address(query, "tokenAddress"), address(query, "walletAddress")
        if token not in self._amm.tokens:
            raise RefusedError(f"token is not supported: unknown address {token}")
        return {"allowance": str(ENDLESS if token == NATIVE else await self._amm.allowance(token, owner))}

    async def _approval(self, version: str, query: Mapping[str, str], struck: frozenset[Fault]) -> Json:  # noqa: ARG002
        token = address(query, "tokenAddress")
        amount = number(query, "amount") if "amount" in query else ENDLESS
        data = _APPROVE + encode(["address", "uint256"], [self._allowed(struck), amount])
        gas_price = await self._amm.rpc.number("eth_gasPrice")
        return {"data": "0x" + data.hex(), "gasPrice": str(gas_price), "to": token.lower(), "value": "0"}

    def _allowed(self, struck: frozenset[Fault]) -> str:
        return STRANGER if Fault.OTHER_SPENDER in struck else self._amm.router
