"""A whole gateway as its operator runs it, in processes of its own, and a merchant who talks to it over HTTP."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import aiohttp
import psutil

from cambist.embedded.processes import free_port

START_S = 40
STOP_S = 20


class GatewayProcess:
    """``cambist up`` with a file of settings, on free ports; its output goes to a log beside the file."""

    def __init__(self, folder: Path, settings: str) -> None:
        self.folder, self.url = folder, ""
        self.config = folder / "cambist.toml"
        self.config.write_text(settings)
        self.log = folder / "gateway.log"
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start it and wait until it says that it serves."""
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                str(Path(sys.executable).with_name("cambist")), "up",
                "--config", str(self.config), "--data-dir", str(self.folder / "data"),
                "--host", "127.0.0.1", "--port", str(free_port()),
                stdout=asyncio.subprocess.PIPE, stderr=log, env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )  # fmt: skip
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(START_S):
                async for line in self._process.stdout:
                    if found := re.match(rb"ready (http://\S+)", line):
                        self.url = found[1].decode()
                        self._drain = asyncio.create_task(self._discard(self._process.stdout))
                        return
        except TimeoutError:
            pass
        raise AssertionError(f"the gateway did not get ready:\n{self.log.read_text()[-4000:]}")

    async def stop(self) -> int:
        """Stop it as an operator does, and return its exit code."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            return await asyncio.wait_for(self._process.wait(), STOP_S)
        except TimeoutError:
            self._process.kill()
            raise AssertionError(f"the gateway did not stop:\n{self.log.read_text()[-4000:]}") from None

    def workers(self) -> Sequence[psutil.Process]:
        """Return the worker processes that run now."""
        assert self._process is not None
        children = psutil.Process(self._process.pid).children()
        return [child for child in children if "worker" in child.cmdline()]

    async def kill_worker(self) -> None:
        """Kill the worker with no chance to clean up."""
        for worker in self.workers():
            worker.kill()

    async def _discard(self, stream: asyncio.StreamReader) -> None:
        while await stream.read(1 << 16):
            pass


class Merchant:
    """A merchant's program: one project, one key, every answer checked to be a success unless a status is named."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url, self.session = url, session
        self.headers: dict[str, str] = {}
        self.bearer: dict[str, str] = {}
        self.project: dict[str, Any] = {}

    async def open(self, *, mode: str = "live", webhook_url: str | None = None) -> Self:
        """Register, make a project and an API key."""
        email, password = f"{os.urandom(6).hex()}@shop.example", "correct horse battery staple"
        await self.post("/api/auth/register", {"email": email, "password": password, "name": "Shop"}, status=201)
        login = await self.post("/api/auth/login", {"email": email, "password": password})
        self.bearer = {"Authorization": f"Bearer {login['accessToken']}"}
        body: dict[str, Any] = {"name": "Shop", "mode": mode}
        if webhook_url is not None:
            body["paymentWebhookUrl"] = webhook_url
        made = await self.post("/api/merchant/projects", body, headers=self.bearer, status=201)
        self.project = {**made["project"], "webhookSecret": made["webhookSecret"]}
        key = await self.post(
            f"/api/merchant/projects/{self.project['projectId']}/api-keys", {"name": "till"},
            headers=self.bearer, status=201,
        )  # fmt: skip
        self.headers = {"X-Api-Key": key["apiKey"]}
        return self

    async def post(
        self, path: str, body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        async with self.session.post(self.url + path, json=body, headers=headers or self.headers) as response:
            answer: dict[str, Any] = await response.json()
            assert response.status == status, (path, response.status, answer)
            return answer

    async def get(self, path: str, *, status: int = 200, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        async with self.session.get(self.url + path, headers=headers or self.headers) as response:
            answer: dict[str, Any] = await response.json()
            assert response.status == status, (path, response.status, answer)
            return answer

    async def pay(self, chain: str, token: str, amount: str, **more: Any) -> dict[str, Any]:
        """Create a payment in the token itself, or as ``more`` says."""
        body = {"chain": chain, "token": token, "pricingMode": "direct_crypto", "amount": amount, **more}
        payment: dict[str, Any] = (await self.post("/api/payment", body, status=201))["payment"]
        return payment

    async def payment(self, payment: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = (await self.get(f"/api/payment/{payment['paymentId']}"))["payment"]
        return found

    async def until(self, payment: Mapping[str, Any], *statuses: str, seconds: float = 30) -> dict[str, Any]:
        """Return the payment once it has one of the statuses."""
        found = {}
        for _ in range(int(seconds * 10)):
            found = await self.payment(payment)
            if found["status"] in statuses:
                return found
            await asyncio.sleep(0.1)
        raise AssertionError(f"the payment is {found.get('status')}, not {statuses}, after {seconds} s")

    async def balance(self, chain: str, token: str) -> dict[str, str]:
        """Return what the wallet holds of a token, without the zeros."""
        answer = await self.get(f"/api/merchant/wallet/balance?chain={chain}&token={token}")
        found = answer["balance"]
        return {name: found[name] for name in ("available", "pending", "held") if found.get(name, "0") != "0"}


def settings_text(*, database_url: str, redis_url: str, chains: Mapping[str, Mapping[str, Any]]) -> str:
    """Return an operator's file: these servers, these EVM chains, one price."""
    lines = [
        "[database]", f'url = "{database_url}"', "[redis]", f'url = "{redis_url}"',
        "[webhooks]", "allow_private_targets = true",
        "[web.rate_limits]", "per_key = 0", "per_address = 0", "login_per_address = 0",
        "[plugins.prices.static]", 'USDX = { usd = "1", eur = "0.92" }', 'ETH = { usd = "2500" }',
    ]  # fmt: skip
    for name, chain in chains.items():
        lines.append(f"[plugins.evm.chains.{name}]")
        lines += [f"{key} = {_toml(value)}" for key, value in chain.items() if key != "tokens"]
        for token in chain.get("tokens", ()):
            lines.append(f"[[plugins.evm.chains.{name}.tokens]]")
            lines += [f"{key} = {_toml(value)}" for key, value in token.items()]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)
