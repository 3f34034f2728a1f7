"""What keeps the event loop waiting is noticed, and what does not is not."""

from __future__ import annotations

import asyncio
import time
import urllib.request

import pytest
from aiohttp import ClientSession, web

from cambist.testing.blocking import blocking_noticed


async def test_a_library_that_blocks_is_noticed_on_the_loop_and_not_in_a_thread():
    async def tell(_: web.Request) -> web.Response:
        return web.Response(text="told")

    app = web.Application()
    app.router.add_get("/", tell)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/"

    def ask(timeout_s: float = 5) -> bytes:
        with urllib.request.urlopen(url, timeout=timeout_s) as answer:
            told: bytes = answer.read()
            return told

    try:
        with blocking_noticed() as blocking:
            async with ClientSession() as session, session.get(url) as answer:
                assert await answer.text() == "told"
            await asyncio.sleep(0.001)
            assert await asyncio.to_thread(ask) == b"told"
            await asyncio.to_thread(time.sleep, 0.001)
            assert blocking == []
            with pytest.raises(TimeoutError):  # whoever would answer waits, too
                ask(0.05)
            assert blocking[0] == "socket.connect"
            time.sleep(0.001)  # noqa: ASYNC251  what is noticed
            assert blocking[-1] == "time.sleep"
    finally:
        await runner.cleanup()
