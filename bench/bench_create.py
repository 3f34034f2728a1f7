"""How fast payments are made over HTTP, authenticated and idempotent, by two web workers."""

from __future__ import annotations

import statistics

from _child import Child
from _gateway import Shop, open_shop, simulated_gateway
from _harness import Row, alternate, at_least, at_most, compare, percentile, report, sized, unjudged
from _http import Run

WORKERS = sized(2, tiny=1)
CLIENTS = sized((1, 8, 16, 64), tiny=(1, 16))
AIMED = 16
SECONDS = sized(3.0, tiny=0.1)
WARM_UP_SECONDS = sized(2.0, tiny=0.1)


def load(clients: Child, shop: Shop, count: int, seconds: float) -> Run:
    run: Run = clients.call("run", shop.port, "_payment_sides:creations", (shop.api_key,), count, seconds)
    return run


def rows_of(runs: dict[int, list[Run]], bare: list[float]) -> list[Row]:
    rows = []
    for count, made in runs.items():
        rates = [run.per_second for run in made]
        p50, p99 = (
            statistics.median(percentile(run.latencies_s, share) * 1000 for run in made) for share in (0.5, 0.99)
        )
        name = f"{count} client{'s' * (count > 1)}"
        if count == AIMED:
            rows += [
                at_least(name, statistics.median(rates), 1_200, "/s"),
                at_most(f"{name}, p99", p99, 25, " ms"),
                compare(f"{name}, beside bare three-statement commits", rates, bare, aim=0.3, percent=True),
            ]
        else:
            rows += [unjudged(name, f"{statistics.median(rates):,.0f}/s"), unjudged(f"{name}, p99", f"{p99:.1f} ms")]
        rows.append(unjudged(f"{name}, p50", f"{p50:.1f} ms"))
    return rows


def main() -> None:
    runs: dict[int, list[Run]] = {count: [] for count in CLIENTS}

    def ours(count: int) -> float:
        run = load(clients, shop, count, SECONDS)
        runs[count].append(run)
        return run.per_second

    with simulated_gateway(workers=WORKERS) as (port, database_url):
        shop = open_shop(port, mode="sandbox")
        with Child("_http:Load") as clients, Child("_payment_sides:Bare", database_url, AIMED) as bare:
            load(clients, shop, AIMED, WARM_UP_SECONDS)
            bare.call("run", WARM_UP_SECONDS)
            sides = {str(count): lambda count=count: ours(count) for count in CLIENTS}
            found = alternate({**sides, "bare": lambda: bare.call("run", SECONDS)})
    report(
        "Making payments over HTTP",
        rows_of(runs, list(found["bare"])),
        note=f"{WORKERS} web workers; bare: asyncpg over {AIMED} connections into the same tables",
    )


if __name__ == "__main__":
    main()
