"""The HTTP side, on loopback: Across's paths under ``/api``, and ``/devnet``, by which it is driven by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import aiohttp
import msgspec
from aiohttp import web

from cambist.testing.anvil import RpcRefusedError

from .answers import Answer, Answers
from .faults import Fault, Faults, changed, instead
from .relayer import Behaviour
from .routes import RefusedError

PREFIX: Final = "/api/"


class Wish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be posted to ``/devnet``. None leaves it as it is."""

    relayer: Behaviour | None = None
    delay_s: float | None = None
    faults: list[Fault] | None = None
    refund: bool = False


Drive = Callable[[Wish], Awaitable[Mapping[str, Any]]]


class Server:
    """Answers on a loopback port. ``calls`` counts requests by path, ``keys`` by the key that they carried.

    ``drive`` is given what is posted to ``/devnet``, and an empty wish for a GET.
    """

    def __init__(self, answers: Answers, faults: Faults, drive: Drive, port: int) -> None:
        self.calls: Counter[str] = Counter()
        self.keys: Counter[str] = Counter()
        self.base_url = ""
        self._answers = answers
        self._faults = faults
        self._drive = drive
        self._port = port
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get(PREFIX + "{path:.*}", self._answer)
        app.router.add_route("*", "/devnet", self._devnet)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]
        self.base_url = f"http://127.0.0.1:{self._port}/api"

    async def stop(self) -> None:
        """Close the port; ``start`` opens the same one again."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        self.calls[path] += 1
        if key := request.headers.get("Authorization", "").removeprefix("Bearer "):
            self.keys[key] += 1
        faults = self._faults.meet(path)
        found = await instead(faults, request, self._faults.slow_s)
        if found is not None:
            return found
        answering = self._answers.paths.get(path)
        if answering is None:
            return web.Response(status=404, text="The page could not be found")
        try:
            told: Answer = await answering(request.query)
        except RefusedError as error:
            return web.json_response(error.body, status=error.status)
        except (aiohttp.ClientError, RpcRefusedError) as error:
            body = {"type": "AcrossApiError", "code": "UPSTREAM_RPC_ERROR", "status": 502, "message": str(error)}
            return web.json_response(body, status=502)
        return web.json_response(changed(faults, told) if isinstance(told, Mapping) else told)

    async def _devnet(self, request: web.Request) -> web.Response:
        try:
            body = await request.read() if request.method == "POST" else b"{}"
            return web.json_response(await self._drive(msgspec.json.decode(body, type=Wish)))
        except (msgspec.DecodeError, RpcRefusedError) as error:
            return web.json_response({"error": str(error)}, status=400)
