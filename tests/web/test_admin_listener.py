"""An address that operators have to themselves: the real server, at both addresses."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from contextlib import asynccontextmanager
from functools import cache

import aiohttp
import psutil
import pytest
from litestar.routes import HTTPRoute

from cambist.embedded.processes import free_port
from cambist.settings import WebSettings
from cambist_web.app import build_app
from cambist_web.openapi.audiences import Audience, of_audience
from cambist_web.openapi.pages import whole_description
from tests.support.forked import ForkedProcess
from tests.support.web import ADMIN_KEY, shown_app

pytestmark = pytest.mark.slow

ADMIN = {"X-Admin-Key": ADMIN_KEY}
SPELLINGS = (
    "/api/admin", "/api/admin/", "/api/admin/settings", "/api/admin/settings/", "//api/admin/settings",
    "/api//admin/settings", "/api/./admin/settings", "/api/x/../admin/settings", "/api/%61dmin/settings",
    "/api/admin%2fsettings", "/api/admin/auth/me", "/api/admin/auth/sign-in", "/api/admin/auth/set-password",
)  # fmt: skip


class Server:
    """`cambist web` with two addresses, as an operator runs it."""

    def __init__(self, process, public, admin, session):
        self.process, self.public, self.admin, self._session = process, public, admin, session

    async def ask(self, port, path, method="GET", **headers):
        url = f"http://127.0.0.1:{port}{path}"
        # As it stands: what a client's library would tidy up is what this is about.
        async with self._session.request(method, aiohttp.client.URL(url, encoded=True), headers=headers) as answer:
            return answer.status, await answer.text()

    async def live(self, port):
        try:
            return (await self.ask(port, "/health/live"))[0] == 200
        except aiohttp.ClientError:
            return False

    async def until(self, *, lives):
        async with asyncio.timeout(120):
            while {await self.live(port) for port in (self.public, self.admin)} != {lives}:  # noqa: ASYNC110  a process
                await asyncio.sleep(0.2)


@asynccontextmanager
async def serving(databases, folder, start):
    public, admin = free_port(), free_port()
    with databases.fresh() as database_url:
        settings = {
            "DATABASE__URL": database_url,
            "REDIS__URL": databases.redis_url,
            "DATA_DIR": str(folder),
            "WEB__PORT": str(public),
            "WEB__ADMIN_PORT": str(admin),
            "AUTH__ADMIN_KEY": ADMIN_KEY,
        }
        environment = os.environ | {f"CAMBIST_{name}": value for name, value in settings.items()}
        process = await start(environment, folder)
        try:
            async with aiohttp.ClientSession() as session:
                server = Server(process, public, admin, session)
                await server.until(lives=True)
                yield server
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


async def as_a_program(environment, folder):
    command = (sys.executable, "-m", "cambist.cli", "web")
    return await asyncio.create_subprocess_exec(*command, env=environment, cwd=folder)


async def forked(environment, folder):
    return ForkedProcess(("web",), environment, folder / "out", folder / "log", cwd=folder)


async def test_the_public_address_has_nothing_of_operators_and_theirs_has_nothing_else(databases, tmp_path):
    async with serving(databases, tmp_path, forked) as server:
        for path in SPELLINGS:
            for method in ("GET", "POST", "PUT", "OPTIONS", "HEAD"):
                status, body = await server.ask(server.public, path, method, **ADMIN)
                assert status == 404, (method, path)
                assert method == "HEAD" or '"ROUTE_NOT_FOUND"' in body, (method, path)
        assert (await server.ask(server.public, "/api/public/chains"))[0] == 200
        assert "/api/admin" not in (await server.ask(server.public, "/api/openapi.json"))[1]
        assert (await server.ask(server.admin, "/api/admin/settings", **ADMIN))[0] == 200
        assert (await server.ask(server.admin, "/api/admin/settings"))[0] == 401
        for path in ("/api/public/chains", "/api/payment", "/api/auth/login", "/pay/pub_x", "/dashboard/join"):
            assert (await server.ask(server.admin, path))[0] == 404, path
        server.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(server.process.wait(), 60) == 0
        await server.until(lives=False)


async def test_both_end_when_one_of_them_is_killed(databases, tmp_path):
    async with serving(databases, tmp_path, as_a_program) as server:
        (operators,) = (
            child
            for child in psutil.Process(server.process.pid).children()
            if any(
                one.laddr.port == server.admin for kin in [child, *child.children()] for one in kin.net_connections()
            )
        )
        operators.kill()
        assert await asyncio.wait_for(server.process.wait(), 60) == 1
        await server.until(lives=False)
    async with serving(databases, tmp_path, as_a_program) as server:
        server.process.kill()
        await server.until(lives=False)


@cache
def app_of(which):
    return shown_app() if which == "all" else build_app(WebSettings(), which)


def paths(which):
    return {route.path for route in app_of(which).routes if isinstance(route, HTTPRoute)}


@pytest.mark.parametrize("serves", ["public", "admin"])
def test_of_the_two_apps_each_has_its_own_routes_and_together_they_have_all(serves):
    shared = {
        path for path in paths("all") if re.match(r"/($|health|metrics|dashboard-assets|api/(openapi|swagger))", path)
    }
    admin = {path for path in paths("all") if re.match(r"/(api/admin|operator)", path)}
    assert len(admin) > 20
    assert paths(serves) == (admin if serves == "admin" else paths("all") - admin) | shared


@pytest.mark.parametrize("serves, wanted", [("public", {"merchant", "dashboard"}), ("admin", {"operator"})])
def test_an_address_of_operators_tells_of_operators_alone(serves, wanted):
    whole = json.loads(whole_description(app_of(serves)))
    assert {one.value for one in Audience if of_audience(whole, one)["paths"]} == wanted
