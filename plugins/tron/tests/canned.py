"""A node that answers from a list of blocks, and in every wrong way on demand. It knows no rules: it only answers."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Self

from aiohttp import web

from .forging import Json, Mined

Answer = Callable[[Json], Any]


class CannedNode:
    """Serves ``wallet/...`` and ``walletsolidity/...`` on loopback.

    ``answers`` replaces the answer to a path, by what is to be sent or by a function of the question. ``spoil`` is
    asked before each answer, and may return another response in its place.
    """

    def __init__(self, mined: Sequence[Mined] = (), *, solid_depth: int = 18) -> None:
        """Know these blocks."""
        self.blocks = {block["block_header"]["raw_data"]["number"]: block for block, _ in mined}
        self.infos = {block["block_header"]["raw_data"]["number"]: infos for block, infos in mined}
        self.solid_depth = solid_depth
        self.calls: Counter[str] = Counter()
        self.keys: list[str | None] = []
        self.answers: dict[str, Any] = {}
        self.spoil: Callable[[], web.Response | None] | None = None
        self.delay_s = 0.0
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/{path:.+}", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def head(self) -> int:
        return max(self.blocks, default=0)

    async def _serve(self, request: web.Request) -> web.Response:
        path = request.match_info["path"]
        path = path[path.index("wallet") :]  # what stands before may be a key
        self.calls[path] += 1
        self.keys.append(request.headers.get("TRON-PRO-API-KEY"))
        body = json.loads(await request.read() or b"{}")
        await asyncio.sleep(self.delay_s)
        chosen = self.answers.get(path)
        if isinstance(chosen, dict) and {"status"} <= chosen.keys():
            return web.Response(status=chosen["status"], text=chosen["text"], headers=chosen.get("headers"))
        if chosen is not None:
            answer = chosen(body) if callable(chosen) else chosen
        else:
            answer = self.answer(path.rsplit("/", 1)[1], body, solid=path.startswith("walletsolidity"))
        if self.spoil is not None and (spoiled := self.spoil()) is not None:
            return spoiled
        if isinstance(answer, str):
            return web.Response(text=answer)
        return web.json_response(answer)

    def answer(self, name: str, body: Json, *, solid: bool) -> Any:
        """Return the true answer."""
        head = max(self.head - self.solid_depth, 0) if solid else self.head
        if name == "getnodeinfo":
            low = max(self.head - self.solid_depth, min(self.blocks))
            return {"block": self._place(self.head), "solidityBlock": self._place(low)}
        if name == "getnowblock":
            return self.blocks[max(head, min(self.blocks))]
        if name == "getblock":
            found = self.blocks.get(int(body["id_or_num"]), {})
            return {key: value for key, value in found.items() if key != "transactions"}
        if name == "getblockbynum":
            return self.blocks.get(body["num"], {})
        if name == "getblockbylimitnext":
            rows = [self.blocks[n] for n in range(body["startNum"], body["endNum"]) if n in self.blocks]
            return {"block": rows} if rows else {}
        if name == "gettransactioninfobyblocknum":
            return self.infos.get(body["num"], {})
        return {"Error": f"class org.tron.Nothing : {name}"}

    def _place(self, number: int) -> str:
        return f"Num:{number},ID:{self.blocks[number]['blockID']}"
