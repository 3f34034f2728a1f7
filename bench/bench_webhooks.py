"""How fast webhooks are signed, delivered and recorded, beside arq; and what hanging receivers cost the others."""

from __future__ import annotations

import time

from _child import Child
from _harness import Row, alternate, at_most, compare, percentile, report, sized, unjudged
from _servers import migrated_servers
from _webhook_sides import delays_s

RECEIVERS = 10
EVENTS = sized(2_000, tiny=20)
HANGING = 4
RECEIVERS_MIXED = 20
PER_SECOND = sized(300, tiny=20)
SECONDS = sized(15, tiny=1)


def delivered(side: Child, urls: list[str]) -> float:
    """Return webhooks per second, once a full queue has run empty."""
    side.call("put", urls, EVENTS)
    started = time.perf_counter()
    count = side.call("deliver_all", EVENTS)
    elapsed = time.perf_counter() - started
    assert count == EVENTS
    return EVENTS / elapsed


def throughput(ours: Child, redis_url: str) -> Row:
    with Child("_sink:Sink", RECEIVERS) as sink, Child("_webhook_sides:Arq", redis_url) as theirs:
        urls = sink.call("addresses")
        sides = {"ours": lambda: delivered(ours, urls), "arq": lambda: delivered(theirs, urls)}
        for side in sides.values():
            side()  # connections are open and statements prepared from here on
        found = alternate(sides)
        assert sink.call("count") == EVENTS * 2 * (len(found["ours"]) + 1)
    return compare("delivered, beside an arq job each", found["ours"], found["arq"], aim=2.5)


def mixed(ours: Child) -> list[Row]:
    """Hang a fifth of the receivers; tell how long the webhooks of the others take from commit to arrival."""
    with Child("_sink:Sink", RECEIVERS_MIXED, HANGING) as sink:
        ours.call("stream", sink.call("addresses"), PER_SECOND, SECONDS)
        delays_ms = [delay * 1000 for delay in delays_s(sink.call("take"))]
    expected = PER_SECOND * SECONDS * (RECEIVERS_MIXED - HANGING) // RECEIVERS_MIXED
    assert len(delays_ms) == expected
    share = f"{HANGING} of {RECEIVERS_MIXED} receivers hang"
    return [
        at_most(f"{share}, p99 of the others", percentile(delays_ms, 0.99), 2_000, " ms"),
        unjudged(f"{share}, p50 of the others", f"{percentile(delays_ms, 0.5):.1f} ms"),
    ]


def main() -> None:
    with migrated_servers() as (database_url, redis_url), Child("_webhook_sides:Ours", database_url) as ours:
        rows = [throughput(ours, redis_url), *mixed(ours)]
    report(
        "Webhooks",
        rows,
        note=f"{EVENTS} a round to {RECEIVERS} receivers; {PER_SECOND} a second for {SECONDS} s; arq keeps nothing",
    )


if __name__ == "__main__":
    main()
