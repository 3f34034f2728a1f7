"""How long a part of a list takes among a million payments, deposits and events, whatever it is asked for.

One owner has half of all rows, and another has ten: what is quick for the one must not be slow for the other. Filters
look for what is everywhere, for what is rare, and for what there is none of. Each question is judged by itself: a slow
one must not hide among many quick ones.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, TypeAlias

import uvloop
from _harness import Row, at_most, percentile, report, sized, unjudged
from _servers import migrated_servers
from msgspec.structs import replace
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database, connect
from cambist.domain.payments import HeldReason, Status
from cambist.registry import Registry
from cambist.services.actor import Actor
from cambist.services.listing import ALWAYS, Listed, Part, Period
from cambist.services.oversight.kinds import Name
from cambist.services.oversight.lists import Wanted, list_of, search
from cambist.services.receiving.accounts.deposits import Wanted as Came
from cambist.services.receiving.accounts.deposits import list_deposits
from cambist.services.receiving.payments.read import Filters, list_payments
from cambist.services.reversals.resolutions.operators import list_everywhere
from cambist.services.reversals.resolutions.read import list_resolutions
from cambist.services.webhooks.events import EventFilters, list_events

OWNERS = sized((1, 2, 50), tiny=(1,))
ROWS = sized(1_000_000, tiny=2_000)
TIMES = sized(101, tiny=1)
"""How often each question is asked, after once for the caches: its p99 is the slowest answer but one."""
AIM_MS = 50.0

# Merchant 1 has half of all rows, merchant 2 the last ten, and 98 others the rest. A row each half minute, for a year.
FILL = """
INSERT INTO merchants (merchant_id, email, name) SELECT 'mer_' || n, n || '@b.example', 'Shop ' || n
    FROM generate_series(1, 100) n;
INSERT INTO projects (project_id, merchant_pk, name, mode) SELECT 'prj_' || n, n, 'Shop ' || n, 'live'
    FROM generate_series(1, 100) n;
INSERT INTO addresses (mode, family, address, merchant_pk, account_index, change, address_index)
    VALUES ('live', 'evm', 'a1', 1, 1, 0, 1);
CREATE TEMPORARY TABLE rows AS SELECT n,
    CASE WHEN n > {rows} - 10 THEN 2 WHEN n % 2 = 0 THEN 1 ELSE 3 + n % 98 END AS owner,
    CASE WHEN n % 100000 = 7 THEN 'failed' WHEN n % 5000 = 3 THEN 'underpaid' WHEN n % 3 = 0 THEN 'expired'
        ELSE 'paid' END AS status,
    CASE WHEN n % 50000 = 11 THEN 'tron' WHEN n % 4 = 0 THEN 'base' ELSE 'ethereum' END AS chain,
    timestamptz '2026-01-01' + n * interval '30 seconds' AS at
    FROM generate_series(1, {rows}) n;
INSERT INTO accounts (account_id, public_id, project_pk, merchant_pk, mode, external_id)
    SELECT 'acc_' || n, 'pua_' || n, n, n, 'live', 'user-' || n FROM generate_series(1, 100) n;
INSERT INTO payments (payment_id, public_id, project_pk, merchant_pk, mode, chain, scope, token, decimals, address,
    address_mac, pricing_mode, amount, expected_units, required_confirmations, status, order_id, customer_email,
    expires_at, created_at, updated_at)
SELECT 'pay_' || n, 'pub_' || n, owner, owner, 'live', chain, 0, 'USDX', 6, 'a' || n, '', 'direct_crypto', 1 + n % 100,
    1000000, 12, status, 'order-' || n, 'c' || n || '@d.example', at, at, at FROM rows ORDER BY n;
INSERT INTO deposits (deposit_id, chain, scope, tx_id, position, mode, merchant_pk, address_pk, payment_pk, account_pk,
    matches, token, decimals, units, available_units, height, block_hash, ordinal, mined_at, required_confirmations,
    status, first_seen_at)
SELECT 'dep_' || n, chain, 0, '0x' || md5(n::text) || md5(n::text), '0', 'live', owner, 1,
    CASE WHEN n % 4 <> 2 THEN n END, CASE WHEN n % 4 = 2 THEN owner END, true, 'USDX', 6, 1000000,
    CASE WHEN n % 10 = 4 OR n % 100000 = 7 THEN 0 ELSE 1000000 END, n, 'b', 0, at, 12,
    CASE WHEN n % 100000 = 7 THEN 'orphaned' ELSE 'confirmed' END, at FROM rows ORDER BY n;
INSERT INTO webhook_events (event_id, project_pk, event, resource, resource_id, body, created_at)
SELECT 'evt_' || n, owner, CASE WHEN n % 100000 = 7 THEN 'payment.failed' ELSE 'payment.paid' END, 'payment',
    'pay_' || n, '{{"event":"payment.paid"}}', at FROM rows ORDER BY n;
"""

Read: TypeAlias = Callable[[AsyncConnection, Part], Awaitable[Listed[Any]]]
REGISTRY = Registry({}, found=[])


class Unchecked:
    """In the place of the proofs of addresses, which these rows have none of."""

    def check(self, payment: object) -> None:
        pass


def questions() -> Iterator[tuple[str, str, Read]]:
    """Yield what is asked: of which list, for what, and how."""
    since = Period(_day(200), _day(201))
    for owner in OWNERS:
        for what, wanted in _of_payments(since).items():
            yield (
                "a project's payments",
                f"{what}, project {owner}",
                lambda conn, part, owner=owner, wanted=wanted: list_payments(conn, owner, Unchecked(), wanted, part),  # type: ignore[arg-type, misc]
            )
        for names in ((), ("payment.failed",), ("payment.failed", "refund.sent", "payment.paid"), ("no.such",)):
            yield _events(owner, f"{names}, project {owner}", EventFilters(names=names))
        yield _events(owner, f"one payment's, project {owner}", EventFilters(resource_id="pay_500"))
        on_a_day = EventFilters(since=since.since, until=since.until)
        yield _events(owner, f"a day, project {owner}", on_a_day)
        rare_on_a_day = EventFilters(names=("payment.failed",), since=since.since, until=since.until)
        yield _events(owner, f"a rare one on a day, project {owner}", rare_on_a_day)
        for what, came, when in _OF_ACCOUNTS:
            yield (
                "an account's deposits",
                f"{what}, project {owner}",
                lambda conn, part, owner=owner, came=came, when=when: list_deposits(  # type: ignore[misc]
                    conn, owner, f"acc_{owner}", came, part, when
                ),
            )
        for what, filters in _of_resolutions(since).items():
            yield (
                "a project's resolutions",
                f"{what}, project {owner}",
                lambda conn, part, owner=owner, filters=filters: list_resolutions(  # type: ignore[misc]
                    conn, _actor(owner), part, **filters
                ),
            )
    nobody = {"merchant_id": None, "mode": None, "reason": None, "chain": None}
    for what, filters in _of_resolutions(since).items():
        yield (
            "all resolutions",
            what,
            lambda conn, part, filters=filters: list_everywhere(conn, part, **(nobody | filters)),  # type: ignore[misc]
        )
    for name, (what, fields) in product((Name.PAYMENTS, Name.DEPOSITS), _of_all(since).items()):
        if name is Name.DEPOSITS and "status" in fields:
            fields = fields | {"status": "orphaned"}  # noqa: PLW2901  its own rare one
        wanted_all = Wanted(**fields)
        yield (
            f"all {name}",
            what,
            lambda conn, part, name=name, wanted=wanted_all: list_of(  # type: ignore[misc]
                conn, REGISTRY, name, wanted, part, with_people=True
            ),
        )


def _events(owner: int, what: str, wanted: EventFilters) -> tuple[str, str, Read]:
    return "a project's events", what, lambda conn, part: list_events(conn, owner, wanted, part)


def _actor(owner: int) -> Actor:
    return Actor(
        project_pk=owner, project_id=f"prj_{owner}", merchant_pk=owner, merchant_id=f"mer_{owner}", mode="live"
    )


def _of_resolutions(period: Period) -> Mapping[str, dict[str, Any]]:
    return {
        "everything": {},
        "a reason": {"reason": HeldReason.LATE},
        "a rare chain": {"chain": "tron"},
        "a chain of which there is none": {"chain": "polygon"},
        "a day": {"period": period},
    }


def _day(number: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)


def _of_payments(period: Period) -> Mapping[str, Filters]:
    return {
        "everything": Filters(),
        "a rare status": Filters(status=Status.FAILED),
        "a status of which there is none": Filters(status=Status.CONFIRMING),
        "a rare chain": Filters(chain="tron"),
        "a chain of which there is none": Filters(chain="polygon"),
        "status and chain": Filters(status=Status.PAID, chain="tron"),
        "an amount of which there is none": Filters(amount="500"),
        "an order": Filters(order_id="order-500"),
        "a day": Filters(since=period.since, until=period.until),
        "a status on a day": Filters(status=Status.EXPIRED, since=period.since, until=period.until),
    }


def _of_all(period: Period) -> Mapping[str, dict[str, Any]]:
    return {
        "everything": {},
        "a rare status": {"status": "failed"},
        "a rare chain": {"chain": "tron"},
        "a chain of which there is none": {"chain": "polygon"},
        "the large merchant": {"merchant": "mer_1"},
        "the small merchant": {"merchant": "mer_2"},
        "the small merchant, a status": {"merchant": "2@b.example", "status": "failed"},
        "a project, a chain": {"project": "prj_50", "chain": "tron"},
        "live, a token": {"mode": "live", "token": "NONE"},
        "a day": {"period": period},
        "an order": {"search": "order-777"},
        "a customer": {"search": "c777@d.example"},
        "no hit": {"search": "nothing of this name"},
        "a merchant's e-mail": {"search": "1@b.example"},
    }


_OF_ACCOUNTS: Sequence[tuple[str, Came, Period]] = (
    ("everything", Came(), ALWAYS),
    ("a rare status", Came(status="orphaned"), ALWAYS),
    ("a chain of which there is none", Came(chain="polygon"), ALWAYS),
    ("a day", Came(), Period(_day(200), _day(201))),
)

PARTS: Mapping[str, Part] = {
    "newest": Part(),
    "oldest": Part(sort="createdAt"),
    "100 at a time": Part(limit=100),
    "the oldest 100 at a time": Part(sort="createdAt", limit=100),
    "the last page by number": Part(page=100, limit=100),
    "the oldest's last page by number": Part(sort="createdAt", page=100, limit=100),
    "the last page by number, behind a cursor": Part(page=100, limit=100),
    "the oldest's last page by number, behind a cursor": Part(sort="createdAt", page=100, limit=100),
}
TINY = ("newest", "the oldest 100 at a time", "the last page by number, behind a cursor")
"""On from page to page either way, and a page by its number: at the tiny size the others differ in nothing else.

There each question asks for one of them, in turn: of every list for each.
"""


Took: TypeAlias = dict[str, dict[str, list[float]]]
"""Milliseconds, by list and question."""


async def measure(db: Database) -> Took:
    """Return how many milliseconds each part took."""
    found: Took = {}
    for number, (of, what, read) in enumerate(questions()):
        for which in sized(tuple(PARTS), tiny=(TINY[number % len(TINY)],)):
            after = part = PARTS[which]
            took = found.setdefault(of, {}).setdefault(f"{what}, {which}", [])
            for time_no in range(TIMES + 1):
                started = time.perf_counter()
                async with db.transaction() as conn:
                    page = await read(conn, after)
                if time_no:
                    took.append((time.perf_counter() - started) * 1000)
                if page.last is not None and (part.page == 1 or which.endswith("behind a cursor")):
                    # On from page to page, as somebody does who looks through it.
                    after = replace(part, after=page.last)
    for text in ("order-777", "pay_777", "1@b.example", "nothing"):
        took = found.setdefault("search", {}).setdefault(text, [])
        for _ in range(TIMES):
            started = time.perf_counter()
            async with db.transaction() as conn:
                await search(conn, REGISTRY, text, with_people=True)
            took.append((time.perf_counter() - started) * 1000)
    return found


def judged(found: Took) -> Iterator[Row]:
    """Yield what is reported of each list: the slowest of its questions, each by its own p99, and all together."""
    for of, questions_of in found.items():
        p99, slowest = max((percentile(times, 0.99), what) for what, times in questions_of.items())
        every = [one for times in questions_of.values() for one in times]
        yield at_most(f"{of}: p99 of the slowest question", p99, AIM_MS, " ms")
        yield unjudged(
            f"{of}: p50 of all {len(questions_of)} questions; the slowest is: {slowest}",
            f"{percentile(every, 0.5):.1f} ms",
        )


async def run(database_url: str) -> None:
    db = connect(database_url, application_name="bench")
    async with db.transaction() as conn:
        await conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
        await conn.exec_driver_sql("SET LOCAL statement_timeout = 0")
        for statement in FILL.format(rows=ROWS).split(";"):
            if statement.strip():
                await conn.exec_driver_sql(statement)
    async with db.autocommit() as conn:
        await conn.exec_driver_sql("SET statement_timeout = 0")
        await conn.exec_driver_sql("VACUUM ANALYZE")
    # As every process of the gateway does once it has imported what it uses: a full collection is short then.
    gc.collect()
    gc.freeze()
    found = await measure(db)
    await db.close()
    report(
        f"Parts of lists among {ROWS:,} payments, deposits and events",
        list(judged(found)),
        note=f"one reader, each question {TIMES} times; from the question to the rows, without HTTP;"
        " by cursor and by number, either way",
    )


def main() -> None:
    with migrated_servers() as (database_url, _):
        uvloop.run(run(database_url))


if __name__ == "__main__":
    main()
