"""The node's HTTP side, on loopback: TRON's paths, its ways to read a request, and its status 200 for errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from aiohttp import web

from cambist_chainkit.answers import decode_deep

from .accounts import ACCOUNTS, FULL_NODE_ACCOUNTS
from .asking import Answer, Ask, BadRequestError, Handler
from .builders import BUILDERS
from .calls import CALLS, FULL_NODE_CALLS
from .chain import Chain
from .reads import FULL_NODE_READS, QUERY_DECIDES, READS

if TYPE_CHECKING:
    from .faults import Faults

API_KEY_HEADER: Final = "TRON-PRO-API-KEY"
BODY_BYTES_MAX: Final = 4 << 20

_BODY: Final = msgspec.json.Decoder()

_SOLID: Final[Mapping[str, Handler]] = {**READS, **ACCOUNTS, **CALLS}
_FULL: Final[Mapping[str, Handler]] = {
    **_SOLID, **FULL_NODE_READS, **FULL_NODE_ACCOUNTS, **FULL_NODE_CALLS, **BUILDERS,
}  # fmt: skip
_SIDES: Final = {"wallet": _FULL, "walletsolidity": _SOLID}
ENDPOINTS: Final = frozenset(f"{side}/{name}" for side, handlers in _SIDES.items() for name in handlers)
"""All paths that it answers."""

_POST_ONLY: Final = frozenset({*BUILDERS, *CALLS, "triggersmartcontract", "deploycontract"})


class Server:
    """Answers on a loopback port. ``calls`` counts requests by path, ``api_keys`` by the key they carried."""

    def __init__(self, chain: Chain, faults: Faults, port: int) -> None:
        self.calls: Counter[str] = Counter()
        self.api_keys: Counter[str] = Counter()
        self.url = ""
        self._faults = faults
        self._chain = chain
        self._port = port
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        app.router.add_route("*", "/{side}/{path}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        """Close the port; ``start`` opens the same one again."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        side, path = request.match_info["side"], request.match_info["path"]
        name = f"{side}/{path}"
        self.calls[name] += 1
        if key := request.headers.get(API_KEY_HEADER):
            self.api_keys[key] += 1
        handler = _SIDES.get(side, {}).get(path)
        if handler is None:
            return web.json_response({"Error": "this API is unavailable due to config"}, status=404)
        if request.method not in {"GET", "POST"} or (request.method == "GET" and path in _POST_ONLY):
            return web.Response(status=405, text="HTTP method is not supported by this URL")
        try:
            values = await _values(request)
        except BadRequestError as error:
            return _json(_error(error))
        instead = await self._faults.before(name, values, request)
        if instead is not None:
            return instead
        answer = await self._answer(handler, side, path, values, request)
        answer = await self._faults.after(name, answer, request)
        return answer if isinstance(answer, web.StreamResponse) else _json(answer)

    async def _answer(
        self, handler: Handler, side: str, path: str, values: Mapping[str, Any], request: web.Request
    ) -> Answer:
        deciding = request.query if path in QUERY_DECIDES else values
        visible = str(deciding.get("visible", "")).lower() == "true"
        async with self._chain.lock:
            hidden = frozenset(bytes.fromhex(each) for each in self._faults.hidden)
            lag = self._faults.lag(request, self._chain.blocks.head.number)
            view = self._chain.view(solid=side == "walletsolidity", lag=lag, hidden=hidden)
            try:
                answer = handler(Ask(path, values, visible, self._chain, view))
                return await answer if isawaitable(answer) else answer
            except BadRequestError as error:
                return _error(error)


async def _values(request: web.Request) -> dict[str, Any]:
    """Return what is asked for: the query of a GET, the JSON or the form of a POST."""
    if request.method == "GET":
        return dict(request.query)
    if request.content_type == "application/x-www-form-urlencoded":
        form = await request.post()
        return {name: str(value) for name, value in form.items()}
    body = await request.read()
    try:
        values = decode_deep(_BODY, body or b"{}")
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadRequestError("com.alibaba.fastjson.JSONException", str(error)) from error
    if not isinstance(values, dict):
        raise BadRequestError("java.lang.ClassCastException", "the body is no object")
    return values


def _error(error: BadRequestError) -> Answer:
    return {"Error": f"class {error.kind} : {error}"}


def _json(answer: Answer) -> web.Response:
    return web.Response(body=msgspec.json.encode(answer), content_type="application/json", charset="utf-8")
