"""A whole gateway as its operator runs it, in processes of its own, and a merchant who talks to it over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar

import aiohttp
import psutil

from cambist.db.engine import Database
from cambist.embedded.processes import free_port
from cambist.services.jobs.cron_runs import last_successes
from tests.support.command import run_command
from tests.support.forked import ForkedProcess
from tests.support.networks import Amount, Coin
from tests.support.two_factor import Phone

START_S = 180
STOP_S = 60
ADMIN_KEY = "an admin key of stories, and long enough"
CAMBIST = str(Path(sys.executable).with_name("cambist"))
QUICK_PASSWORDS = Path(__file__).with_name("quick_passwords")
NAMES = frozenset({"web", "worker", "signer"})
ASK_S = 0.4
"""How often a story asks whether something has happened: to be asked costs a gateway as much as to wait longer does."""
STOCK = 20
"""Merchants that account keys are derived ahead for: stories have fewer."""

Found = TypeVar("Found")


async def until(check: Callable[[], Awaitable[Found | None]], *, seconds: float = 180) -> Found:
    """Ask again and again until there is something true to return."""
    for _ in range(int(seconds / ASK_S)):
        found = await check()
        if found:
            return found
        await asyncio.sleep(ASK_S)
    raise AssertionError(f"it did not happen in {seconds} s: {check}")


async def recurs(db: Database, job: str) -> None:
    """Wait until a recurring job has run once more, and ended well."""
    since = datetime.now(UTC)

    async def poll() -> bool:
        async with db.transaction() as conn:
            return (await last_successes(conn, [job])).get(job, since) > since

    assert await until(poll)


class GatewayProcess:
    """``cambist up`` with a file of settings, on free ports; its output goes to a log beside the file.

    ``secrets`` are variables that the file refers to. With ``by_exec`` it is the program itself, and not a fork that
    has it imported (see ``forked.py``): for stories that look into processes. Either way it hashes passwords in no time
    (see ``quick_passwords``). Its keystore's passphrase takes the program itself as long as ever.
    """

    def __init__(
        self, folder: Path, settings: str, secrets: Mapping[str, str] | None = None, *, by_exec: bool = False
    ) -> None:
        self.folder, self.url, self.database_url = folder, "", ""
        self._by_exec = by_exec
        self._environment = {
            **os.environ,
            **(secrets or {}),
            "PYTHONUNBUFFERED": "1",
            "CAMBIST_KEYS__STOCK": str(STOCK),
            "PYTHONPATH": str(QUICK_PASSWORDS),
        }
        self.config = folder / "cambist.toml"
        self.config.write_text(settings)
        self.log = folder / "gateway.log"
        self._process: asyncio.subprocess.Process | ForkedProcess | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start it and wait until it says that it serves."""
        out = self.folder / "gateway.out"
        out.write_bytes(b"")
        self._process = await self._started(
            "up", *self.options, "--host", "127.0.0.1", "--port", str(free_port()), out=out, log=self.log
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(START_S):
                while self._process.returncode is None:
                    if found := re.search(rb"^ready (http://\S+)", out.read_bytes(), re.MULTILINE):
                        self.url = found[1].decode()
                        return
                    await asyncio.sleep(0.1)
        raise AssertionError(f"the gateway did not get ready:\n{self.log.read_text()[-4000:]}")

    async def _started(self, *arguments: str, out: Path, log: Path) -> asyncio.subprocess.Process | ForkedProcess:
        if not self._by_exec:
            return ForkedProcess(arguments, self._environment, out, log)
        with out.open("ab") as told, log.open("ab") as logged:
            return await asyncio.create_subprocess_exec(
                CAMBIST, *arguments, stdout=told, stderr=logged, env=self._environment
            )

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop it as an operator does, and return its exit code."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(number)
        try:
            return await asyncio.wait_for(self._process.wait(), STOP_S)
        except TimeoutError:
            self._process.kill()
            raise AssertionError(f"the gateway did not stop:\n{self.log.read_text()[-4000:]}") from None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def workers(self) -> Sequence[psutil.Process]:
        """Return the worker processes that run now."""
        return [child for child, name in self._children() if name == "worker"]

    def child(self, name: str) -> psutil.Process:
        """Return the one process of this name that runs now: web, worker or signer."""
        (found,) = [child for child, other in self._children() if other == name]
        return found

    def _children(self) -> Iterator[tuple[psutil.Process, str]]:
        """Yield the processes that the gateway's own one has started, by name, without those that have just ended."""
        for child in psutil.Process(self.pid).children():
            with suppress(psutil.NoSuchProcess):  # a zombie counts as one that is gone
                # Forked processes have their name alone, others are told apart by what they were given to run.
                for name in NAMES.intersection([child.name(), *child.cmdline()[2:]]):
                    yield child, name

    async def run(self, *arguments: str, answers: Sequence[str] = ()) -> tuple[int, str]:
        """Run another command on the same settings, type the answers; return its exit code and what it printed."""
        typed = "".join(f"{answer}\n" for answer in answers)
        done = await asyncio.to_thread(
            run_command, *arguments, cwd=self.folder, stdin=typed, environment=self._environment
        )
        return done.returncode, done.stdout

    async def reconcile(self) -> dict[str, Any]:
        """Have the books compared with the chains, and return the report in which they agree, group by group."""
        for _ in range(20):
            # 1 is a difference, which must not be there at any time; 2 says that a chain could not be read.
            code, output = await self.run("reconcile", "--json", *self.options)
            report: dict[str, Any] = json.loads(output or "{}")
            assert code != 1, json.dumps(report, indent=1)[:4000]
            if code == 0:
                assert report["agrees"] is True
                return report
            await asyncio.sleep(0.5)
        raise AssertionError(output)

    @property
    def options(self) -> Sequence[str]:
        """Where its settings and its data are."""
        return ("--config", str(self.config), "--data-dir", str(self.folder / "data"))

    async def kill_worker(self) -> None:
        """Kill the worker with no chance to clean up."""
        for worker in self.workers():
            worker.kill()

    async def another_worker(self, log: Path | None = None) -> asyncio.subprocess.Process | ForkedProcess:
        """Start another worker beside its own, whose output goes to this file, or to the gateway's log."""
        log = log or self.log
        return await self._started("worker", *self.options, out=log, log=log)

    @asynccontextmanager
    async def second_worker(self) -> AsyncIterator[asyncio.subprocess.Process | ForkedProcess]:
        """Run another worker beside its own until the block ends, from when it is ready."""
        path = self.folder / "second-worker.log"
        path.write_bytes(b"")
        process = await self.another_worker(path)
        try:
            async with asyncio.timeout(START_S):
                while b"worker_ready" not in path.read_bytes():  # noqa: ASYNC110  another process writes it
                    await asyncio.sleep(0.1)
            yield process
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


class Merchant:
    """A merchant's program: one project, one key, every answer checked to be a success unless a status is named."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url, self.session = url, session
        self.headers: dict[str, str] = {}
        self.bearer: dict[str, str] = {}
        self.project: dict[str, Any] = {}
        self.email, self.password = f"{os.urandom(6).hex()}@shop.example", "correct horse battery staple"
        self.merchant_id = ""
        self.phone: Phone | None = None
        self.recovery_codes: list[str] = []

    async def open(self, *, mode: str = "live", webhook_url: str | None = None) -> Self:
        """Register, make a project and an API key."""
        whose = {"email": self.email, "password": self.password}
        made = await self.post("/api/auth/register", {**whose, "name": "Shop"}, status=201)
        self.merchant_id = made["merchant"]["merchantId"]
        # Stories pay out little on purpose, and the worker may derive minimums at any moment of theirs.
        await self.put("/api/admin/settings", {"payoutMinimumFees": 0}, headers={"X-Admin-Key": ADMIN_KEY})
        return await self.sign_in(mode=mode, webhook_url=webhook_url)

    async def sign_in(self, *, mode: str = "live", webhook_url: str | None = None) -> Self:
        """Sign in, make a project and an API key."""
        login = await self.post("/api/auth/login", {"email": self.email, "password": self.password})
        self.bearer = {"Authorization": f"Bearer {login['accessToken']}"}
        body: dict[str, Any] = {"name": "Shop", "mode": mode}
        if webhook_url is not None:
            body["paymentWebhookUrl"] = webhook_url
        made = await self.post("/api/merchant/projects", body, headers=self.bearer, status=201)
        await self.act_for({**made["project"], "webhookSecret": made["webhookSecret"]})
        return self

    async def act_for(self, project: dict[str, Any]) -> None:
        """Go on with another project of the merchant's, and a new key for it."""
        self.project = project
        self.headers = {"X-Api-Key": await self._issue_key()}

    async def _issue_key(self) -> str:
        """Issue a key. For a live one the session is stepped up, with a phone for the moment where there is none."""
        borrowed = self.project["mode"] == "live" and self.phone is None
        if self.project["mode"] == "live":
            phone = self.phone or await self.enrol()
            await self.post("/api/auth/step-up", {"totpCode": await phone.code()}, headers=self.bearer)
        path = f"/api/merchant/projects/{self.project['projectId']}/api-keys"
        key: str = (await self.post(path, {"name": "till"}, headers=self.bearer, status=201))["apiKey"]
        if borrowed:
            off = {"password": self.password, "totpCode": await phone.code()}
            await self.post("/api/dashboard/two-factor/disable", off, headers=self.bearer)
            self.phone = None
        return key

    async def enrol(self) -> Phone:
        """Turn two-factor authentication on."""
        here = "/api/dashboard/two-factor"
        begun = await self.post(f"{here}/enrol", {"password": self.password}, headers=self.bearer)
        self.phone = Phone(begun["secret"])
        told = await self.post(f"{here}/confirm", {"totpCode": await self.phone.code()}, headers=self.bearer)
        self.recovery_codes = told["recoveryCodes"]
        return self.phone

    async def post(
        self, path: str, body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        return await self._send("POST", path, status, headers, body)

    async def put(
        self, path: str, body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        return await self._send("PUT", path, status, headers, body)

    async def patch(
        self, path: str, body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        return await self._send("PATCH", path, status, headers, body)

    async def get(self, path: str, *, status: int = 200, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        return await self._send("GET", path, status, headers)

    async def delete(self, path: str, *, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        return await self._send("DELETE", path, 200, headers)

    async def _send(
        self, method: str, path: str, status: int, headers: Mapping[str, str] | None, body: Any = None
    ) -> dict[str, Any]:
        url, sent = self.url + path, self.headers if headers is None else headers
        async with self.session.request(method, url, json=body, headers=sent) as response:
            answer: dict[str, Any] = await response.json()
        if answer.get("code") == "STEP_UP_REQUIRED" and status != 403 and self.phone is not None:
            # It holds for five minutes, and a story may take longer.
            await self.post("/api/auth/step-up", {"totpCode": await self.phone.code()}, headers=self.bearer)
            return await self._send(method, path, status, headers, body)
        assert response.status == status, (path, response.status, answer)
        return answer

    async def pay(self, coin: Coin, amount: Amount, **more: Any) -> dict[str, Any]:
        """Create a payment in the coin itself, or as ``more`` says."""
        body = {**named(coin), "pricingMode": "direct_crypto", "amount": str(amount), **more}
        payment: dict[str, Any] = (await self.post("/api/payment", body, status=201))["payment"]
        return payment

    async def payment(self, payment: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = (await self.get(f"/api/payment/{payment['paymentId']}"))["payment"]
        return found

    async def until(self, payment: Mapping[str, Any], *statuses: str, seconds: float = 120) -> dict[str, Any]:
        """Return the payment once it has one of the statuses."""
        found: dict[str, Any] = {}

        async def poll() -> dict[str, Any] | None:
            nonlocal found
            found = await self.payment(payment)
            return found if found["status"] in statuses else None

        try:
            return await until(poll, seconds=seconds)
        except AssertionError as error:
            raise AssertionError(f"the payment is {found.get('status')}, not {statuses}, after {seconds} s") from error

    async def until_received(self, payment: Mapping[str, Any], amount: str) -> dict[str, Any]:
        """Return the payment once so much of it was seen."""

        async def received() -> dict[str, Any] | None:
            found = await self.payment(payment)
            return found if found["receivedAmount"] == amount else None

        return await until(received)

    async def pay_out(self, coin: Coin, amount: Amount, to: str, **more: Any) -> dict[str, Any]:
        """Ask for a payout."""
        body = {**named(coin), "amount": str(amount), "toAddress": to, **more}
        made: dict[str, Any] = (await self.post("/api/merchant/wallet/payout", body, status=201))["payout"]
        return made

    async def refund(self, payment: Mapping[str, Any], to: str, **more: Any) -> dict[str, Any]:
        """Ask for a refund, of all that is left or of what ``more`` says."""
        path = f"/api/payment/{payment['paymentId']}/refund"
        made: dict[str, Any] = (await self.post(path, {"toAddress": to, **more}, status=201))["refund"]
        return made

    async def withdraw(
        self, coin: Coin, amount: Amount, to: str, *, code: str | None = None, status: int = 201, **more: Any
    ) -> dict[str, Any]:
        """Ask for a withdrawal, with the phone's next code unless one is given; return the whole answer."""
        assert code is not None or self.phone is not None
        body = {
            "projectId": self.project["projectId"], **named(coin), "amount": str(amount),
            "toAddress": to, "totpCode": code or await self.phone.code(), **more,
        }  # fmt: skip
        return await self.post("/api/dashboard/withdrawals", body, headers=self.bearer, status=status)

    async def completed(self, made: Mapping[str, Any], *, seconds: float = 180) -> dict[str, Any]:
        """Wait for the end of a payout, a refund or a withdrawal; it must not fail."""
        for noun, path, headers in (
            ("payout", "/api/merchant/wallet/payouts", None),
            ("refund", "/api/payment/refunds", None),
            ("withdrawal", "/api/dashboard/withdrawals", self.bearer),
        ):
            if f"{noun}Id" in made:
                return await self._completed(noun, f"{path}/{made[f'{noun}Id']}", headers, seconds)
        raise AssertionError(f"what is {made}?")

    async def _completed(
        self, noun: str, path: str, headers: Mapping[str, str] | None, seconds: float
    ) -> dict[str, Any]:
        async def poll() -> dict[str, Any] | None:
            found: dict[str, Any] = (await self.get(path, headers=headers))[noun]
            assert found["status"] != "failed", found
            return found if found["status"] == "completed" else None

        return await until(poll, seconds=seconds)

    async def wallet(self, family: str) -> str:
        """Return the address of the main wallet on chains of this family."""
        (found,) = [
            one for one in (await self.get("/api/merchant/wallet/addresses"))["addresses"] if one["family"] == family
        ]
        address: str = found["address"]
        return address

    async def balance(self, coin: Coin) -> dict[str, str]:
        """Return what the wallet holds of a coin, without the zeros."""
        answer = await self.get(f"/api/merchant/wallet/balance?chain={coin.chain}&token={coin.symbol}")
        found = answer["balance"]
        return {name: found[name] for name in ("available", "pending", "held") if found.get(name, "0") != "0"}


def named(coin: Coin) -> dict[str, str]:
    """Return how a request names a coin."""
    return {"chain": coin.chain, "token": coin.symbol}


def settings_text(
    *,
    database_url: str,
    redis_url: str,
    tables: Mapping[str, Mapping[str, Any]],
    more: Sequence[str] = (),
    prices: Mapping[str, str] = {},
) -> str:
    """Return an operator's file: these servers, these tables, some prices, and whatever ``more`` says.

    ``prices`` are further ones, in dollars by symbol.
    """
    lines = [
        "[database]", f'url = "{database_url}"', "[redis]", f'url = "{redis_url}"',
        "[webhooks]", "allow_private_targets = true",
        "[trackers]", "history_pause_s = 1",
        "[auth]", f'admin_key = "{ADMIN_KEY}"',
        "access_token_s = 3600",  # a story may take long on a busy machine
        "[web.rate_limits]", "per_key = 0", "per_address = 0", "login_per_address = 0",
        *more,
        "[plugins.prices.static]", 'USDX = { usd = "1", eur = "0.92" }',
        'ETH = { usd = "2500" }', 'TRX = { usd = "0.25" }',
        *(f'{symbol} = {{ usd = "{usd}" }}' for symbol, usd in prices.items()),
    ]  # fmt: skip
    for name, table in tables.items():
        lines.append(f"[{name}]")
        lines += [f"{key} = {_toml(value)}" for key, value in table.items() if key != "tokens"]
        for token in table.get("tokens", ()):
            lines.append(f"[[{name}.tokens]]")
            lines += [f"{key} = {_toml(value)}" for key, value in token.items()]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)
