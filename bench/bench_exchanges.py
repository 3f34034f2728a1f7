"""What a swap costs beside the provider's answer, over HTTP, and what a provider that never answers costs others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from _child import Child
from _gateway import Shop, gateway, open_shop
from _harness import Row, alternate, at_most, percentile, report, sized, unjudged
from _http import Run
from _servers import migrated_servers

from cambist.db.engine import connect
from cambist.embedded.processes import free_port
from cambist.plugin import Units
from cambist.services.accounting.ledger import Account, Movement, Posting, Purpose, asset_key, post

WORKERS = sized(2, tiny=1)
AIMED = sized(8, tiny=2)
CLIENTS = sized((AIMED, 64), tiny=(AIMED, 4))
HANGING = sized(16, tiny=2)
DELAY_S = 0.1
QUOTE_TIMEOUT_S = sized(1.0, tiny=2.0)
SECONDS = sized(2.0, tiny=0.1)
UNTIL_ALL_HANG_S = 0.2
USDC = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
RICH = Units(10**24)

PLUGINS = """\
[exchanges]
quote_timeout_ms = {timeout_ms}
[plugins.evm.chains]
ethereum = {{ rpc_urls = ["http://127.0.0.1:{dead_port}"] }}
base = {{ rpc_urls = ["http://127.0.0.1:{dead_port}"] }}
[plugins.prices.static]
USDC = {{ usd = "1" }}
USDT = {{ usd = "1" }}
[plugins.swap_1inch]
key = "benchmark"
base_url = "{answers}"
requests_per_second = 1000
quote_ttl_ms = 0
[plugins.bridge_across]
base_url = "{silent}"
requests_per_second = 1000
"""


class Load:
    """The clients of one shop, each kind in a process of its own."""

    def __init__(self, shop: Shop, clients: Child, hanging: Child) -> None:
        self._shop, self._clients, self._hanging = shop, clients, hanging
        self.swapped = 0

    def swap(self, count: int) -> Run:
        run = self._run(self._clients, "_exchange_sides:swaps", count, SECONDS)
        self.swapped += len(run.latencies_s)
        return run

    def pay(self) -> Run:
        return self._run(self._clients, "_payment_sides:creations", AIMED, SECONDS)

    @contextmanager
    def beside_hanging(self) -> Iterator[None]:
        """Have others wait for a provider that never answers, all the while."""
        with ThreadPoolExecutor(1) as pool:
            seconds = UNTIL_ALL_HANG_S + SECONDS
            waiting = pool.submit(self._run, self._hanging, "_exchange_sides:bridges", HANGING, seconds)
            time.sleep(UNTIL_ALL_HANG_S)
            yield
            assert min(waiting.result().latencies_s) > QUOTE_TIMEOUT_S * 0.99

    def _run(self, clients: Child, requests: str, count: int, seconds: float) -> Run:
        run: Run = clients.call("run", self._shop.port, requests, (self._shop.api_key,), count, seconds)
        return run


class Measured:
    """The runs of every side; a latency is of all its rounds together, a rate the median of theirs."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._runs: dict[str, list[Run]] = {}

    def all(self) -> None:
        """Let the sides take turns."""
        load = self._load
        swaps = {
            f"swap {count}": lambda count=count: self._keep(f"swap {count}", load.swap(count)) for count in CLIENTS
        }
        alternate(
            {
                **swaps,
                "pay": lambda: self._keep("pay", load.pay()),
                "swap, hanging": lambda: self._beside("swap, hanging"),
                "pay, hanging": lambda: self._beside("pay, hanging"),
            }
        )

    def _beside(self, name: str) -> float:
        with self._load.beside_hanging():
            return self._keep(name, self._load.pay() if name.startswith("pay") else self._load.swap(AIMED))

    def _keep(self, name: str, run: Run) -> float:
        self._runs.setdefault(name, []).append(run)
        return run.per_second

    def per_second(self, name: str) -> float:
        return percentile([run.per_second for run in self._runs[name]], 0.5)

    def ms(self, name: str, share: float) -> float:
        """Return a percentile of the latencies; of a swap's without the provider's delay."""
        waited_s = DELAY_S if name.startswith("swap") else 0.0
        return percentile([latency - waited_s for run in self._runs[name] for latency in run.latencies_s], share) * 1000


def rows_of(measured: Measured) -> list[Row]:
    rows = []
    for count in CLIENTS:
        name = f"swap {count}"
        p50, p99 = (measured.ms(name, share) for share in (0.5, 0.99))
        said = f"{count} clients, beside the answer"
        rows += [
            unjudged(f"{count} clients", f"{measured.per_second(name):,.0f}/s"),
            at_most(f"{said}, p99", p99, 50, " ms") if count == AIMED else unjudged(f"{said}, p99", f"{p99:.1f} ms"),
            unjudged(f"{said}, p50", f"{p50:.1f} ms"),
        ]
    sides = (("swaps", f"swap {AIMED}", "swap, hanging"), ("payments", "pay", "pay, hanging"))
    for what, calm, hanging in sides:
        for share, aim in ((0.99, 1.5), (0.5, None)):
            name = f"{what} beside {HANGING} who wait for a silent provider, p{share * 100:.0f}"
            rows.append(_slower(name, measured.ms(hanging, share), measured.ms(calm, share), aim))
    return rows


def _slower(what: str, ours_ms: float, other_ms: float, aim: float | None) -> Row:
    ratio = ours_ms / other_ms
    return Row(
        what=what,
        ours=f"{ours_ms:.1f} ms",
        other=f"{other_ms:.1f} ms",
        ratio=f"{ratio:.2f}x",
        aim=None if aim is None else f"<= {aim}x",
        met=None if aim is None else ratio <= aim,
    )


async def fund(database_url: str) -> None:
    """Make the only merchant rich, in the books: no node is asked before something is sent."""
    db = connect(database_url, application_name="cambist-bench")
    async with db.transaction() as conn:
        merchant_pk = (await conn.exec_driver_sql("SELECT id FROM merchants")).scalar_one()
        wallet, available = (
            Account(merchant_pk, asset_key("ethereum", USDC), purpose)
            for purpose in (Purpose.CUSTODY_WALLET, Purpose.AVAILABLE)
        )
        movements: Sequence[Movement] = [Movement(wallet, available, RICH)]
        await post(conn, "live", [Posting(mode="live", kind="benchmark", reference="funded", movements=movements)])
    await db.close()


async def exchanges(database_url: str) -> int:
    """Return how many have begun."""
    db = connect(database_url, application_name="cambist-bench")
    async with db.autocommit() as conn:
        count: int = (await conn.exec_driver_sql("SELECT count(*) FROM exchanges")).scalar_one()
    await db.close()
    return count


def main() -> None:
    with (
        migrated_servers() as (database_url, redis_url),
        Child("_exchange_sides:Providers", DELAY_S) as providers,
        Child("_http:Load") as clients,
        Child("_http:Load") as hanging,
    ):
        answers, silent = providers.call("addresses")
        plugins = PLUGINS.format(
            timeout_ms=int(QUOTE_TIMEOUT_S * 1000), dead_port=free_port(), answers=answers, silent=silent
        )
        with gateway(database_url, redis_url, workers=WORKERS, plugins=plugins) as port:
            load = Load(open_shop(port, mode="live"), clients, hanging)
            asyncio.run(fund(database_url))
            load.swap(AIMED)
            load.pay()
            measured = Measured(load)
            measured.all()
        # Each was quoted for itself, and each has begun.
        assert providers.call("asked") == asyncio.run(exchanges(database_url)) == load.swapped
    report(
        "Swapping over HTTP",
        rows_of(measured),
        note=(
            f"{WORKERS} web workers; the provider answers after {DELAY_S * 1000:.0f} ms; the silent one is given up"
            f" after {QUOTE_TIMEOUT_S * 1000:,.0f} ms; other side: nobody waits for it"
        ),
    )


if __name__ == "__main__":
    main()
