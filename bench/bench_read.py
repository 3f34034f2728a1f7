"""How fast a payment is read in public, as every open checkout does, beside a Litestar route that does nothing."""

from __future__ import annotations

import statistics
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from _child import Child
from _gateway import open_shop, serving, simulated_gateway
from _harness import alternate, compare, percentile, report, sized, unjudged
from _http import Run
from _payment_sides import PAYMENT

from cambist.embedded.processes import free_port

WORKERS = sized(2, tiny=1)
CLIENTS = 16
PAYMENTS = sized(200, tiny=2)
SECONDS = sized(3.0, tiny=0.1)


def wait_for(url: str) -> None:
    for _ in range(100):
        try:
            urllib.request.urlopen(url, timeout=5).close()  # noqa: S310  always http
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"{url} does not answer")


def main() -> None:
    empty_port = free_port()
    empty = [sys.executable, str(Path(__file__).with_name("_empty_app.py")), str(empty_port), str(WORKERS)]
    runs: list[Run] = []

    def read() -> float:
        run: Run = clients.call("run", port, "_payment_sides:reads", (public_ids,), CLIENTS, SECONDS)
        runs.append(run)
        return run.per_second

    def nothing() -> float:
        run: Run = clients.call("run", empty_port, "_payment_sides:empty", (), CLIENTS, SECONDS)
        return run.per_second

    with (
        simulated_gateway(workers=WORKERS) as (port, _),
        serving(empty, b"ready"),
        Child("_http:Load") as clients,
    ):
        wait_for(f"http://127.0.0.1:{empty_port}/empty")
        shop = open_shop(port, mode="sandbox")
        public_ids = [shop.post("/api/payment", PAYMENT)["payment"]["publicId"] for _ in range(PAYMENTS)]
        read()
        nothing()
        runs.clear()
        found = alternate({"read": read, "nothing": nothing})
    p99_ms = statistics.median(percentile(run.latencies_s, 0.99) * 1000 for run in runs)
    report(
        "Reading a payment in public",
        [
            compare("read, beside an empty route", found["read"], found["nothing"], aim=0.25, percent=True),
            unjudged("read, p99", f"{p99_ms:.1f} ms"),
        ],
        note=f"{WORKERS} web workers and {CLIENTS} clients on both sides",
    )


if __name__ == "__main__":
    main()
