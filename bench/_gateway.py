"""A gateway for benchmarks, run as an operator runs it, with a merchant, a project and a key."""

from __future__ import annotations

import base64
import hmac
import json
import os
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from _servers import migrated_servers
from msgspec import Struct

from cambist.cli.supervisor import PROGRAM
from cambist.embedded.processes import free_port

START_S_MAX = 180
STOP_S_MAX = 30
SHARED_GATEWAY = "CAMBIST_BENCH_GATEWAY"
"""Names a gateway that runs already, by its port and its database's URL, for benchmarks at their tiny size."""
PASSWORD = "correct horse battery staple"

SETTINGS = """\
[database]
url = "{database_url}"
[redis]
url = "{redis_url}"
[webhooks]
allow_private_targets = true
[web]
workers = {workers}
[web.rate_limits]
per_key = 0
per_address = 0
login_per_address = 0
{plugins}
"""

SIMULATED = """\
[plugins.evm.chains.ethereum]
simulated = true
"""


class Shop(Struct, frozen=True):
    """A merchant's project and its key, who signs in for it with ``PASSWORD``, and where the gateway is."""

    port: int
    api_key: str
    project_id: str
    email: str

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to one request of the merchant's."""
        return _post(self.port, path, body, {"X-Api-Key": self.api_key})


@contextmanager
def gateway(database_url: str, redis_url: str, *, workers: int, plugins: str = SIMULATED) -> Iterator[int]:
    """Run ``cambist up`` on these servers, with so many web workers and no rate limits; yield its port."""
    settings = SETTINGS.format(database_url=database_url, redis_url=redis_url, workers=workers, plugins=plugins)
    port = free_port()
    with TemporaryDirectory(prefix="cambist-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        config = folder / "cambist.toml"
        config.write_text(settings)
        argv = [*PROGRAM, "up", "--config", str(config), "--data-dir", str(folder / "data"), "--port", str(port)]
        with (folder / "log").open("wb") as log, serving(argv, b"ready ", log):
            yield port


@contextmanager
def simulated_gateway(*, workers: int) -> Iterator[tuple[int, str]]:
    """Run a gateway whose chain is simulated, on servers of its own; yield its port and its database's URL."""
    if SHARED_GATEWAY in os.environ:
        port, _, database_url = os.environ[SHARED_GATEWAY].partition(" ")
        yield int(port), database_url
        return
    with migrated_servers() as (database_url, redis_url), gateway(database_url, redis_url, workers=workers) as port:
        yield port, database_url


@contextmanager
def serving(argv: list[str], mark: bytes, errors: Any = None) -> Iterator[None]:
    """Run a server; go on when it prints a line that begins with this mark, and stop it at the end."""
    # The gateway refuses CAMBIST_* variables that name no setting.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CAMBIST_BENCH_")}
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=errors, env={**inherited, "PYTHONUNBUFFERED": "1"})
    ready = threading.Event()

    def read() -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                if line.startswith(mark):
                    ready.set()

    threading.Thread(target=read, daemon=True).start()
    try:
        deadline = time.monotonic() + START_S_MAX
        while not ready.wait(0.1):
            if process.poll() is not None or time.monotonic() > deadline:
                said = Path(errors.name).read_text() if errors is not None else ""
                raise RuntimeError(f"{argv[:2]} did not get ready: {said[-3000:]}")
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()


def open_shop(port: int, *, mode: str, webhook_url: str | None = None) -> Shop:
    """Register a merchant, and make a project and a key."""
    email = f"{os.urandom(6).hex()}@shop.example"
    account = {"email": email, "password": PASSWORD}
    _post(port, "/api/auth/register", {**account, "name": "Shop"})
    bearer = {"Authorization": f"Bearer {_post(port, '/api/auth/login', account)['accessToken']}"}
    body = {"name": "Shop", "mode": mode, **({"paymentWebhookUrl": webhook_url} if webhook_url else {})}
    project = _post(port, "/api/merchant/projects", body, bearer)["project"]["projectId"]
    if mode == "live":
        _step_up(port, bearer)
    key = _post(port, f"/api/merchant/projects/{project}/api-keys", {"name": "checkout"}, bearer)
    return Shop(port, key["apiKey"], project, email)


def _step_up(port: int, bearer: Mapping[str, str]) -> None:
    """Turn two-factor authentication on and step the session up: live keys are issued to nobody else."""
    shown = _post(port, "/api/dashboard/two-factor/enrol", {"password": PASSWORD}, bearer)
    for path, steps in (("/api/dashboard/two-factor/confirm", 0), ("/api/auth/step-up", 1)):
        _post(port, path, {"totpCode": _code(shown["secret"], int(time.time()) // 30 + steps)}, bearer)


def _code(secret: str, step: int) -> str:
    mac = hmac.digest(base64.b32decode(secret), step.to_bytes(8, "big"), "sha1")
    start = mac[-1] & 15
    number = int.from_bytes(mac[start : start + 4], "big") & 0x7FFFFFFF
    return str(number % 10**6).zfill(6)


def _post(port: int, path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **(headers or {})},
    )
    with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310  always http
        answer: dict[str, Any] = json.load(response)
        return answer
