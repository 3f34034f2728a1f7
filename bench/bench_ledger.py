"""How fast the ledger is written: batches of credits through the service, and single ones, each a transaction."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import asyncpg
import uvloop
from _harness import Row, alternate_async, at_least, compare, report, sized, unjudged
from _servers import migrated_servers

from cambist.db.engine import Database, connect
from cambist.plugin import Units
from cambist.services.accounting.ledger import Account, Movement, Posting, Purpose, asset_key, lock_balances, post

BATCH = 100
MERCHANTS = sized(500, tiny=50)
CLIENTS = 4
SINGLES = 16
SECONDS = sized(3.0, tiny=0.05)
WARM_UP_SECONDS = sized(1.0, tiny=0.05)
ASSETS = [asset_key("ethereum", contract) for contract in (None, "0xdAC17F958D2ee523a2206206994597C13D831ec7")]
UNITS = 125_500_000

# The accounts are known, everything is one statement, and nothing is around it: what PostgreSQL itself needs.
BEST = """
WITH posted AS (
    INSERT INTO ledger_transactions (mode, kind, reference) SELECT 'live', 'deposit', * FROM unnest($1::text[])
    ON CONFLICT (kind, reference) DO NOTHING RETURNING id, reference
)
INSERT INTO ledger_movements (transaction_pk, mode, asset, debit_account_pk, credit_account_pk, units)
SELECT posted.id, 'live', m.asset, m.debit, m.credit, m.units
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::numeric[])
    AS m (reference, asset, debit, credit, units) JOIN posted USING (reference)
"""


class Ledger:
    """Merchants with accounts, and credits that are not posted yet."""

    def __init__(self, database_url: str, db: Database) -> None:
        self.database_url, self.db = database_url, db
        self._numbers = itertools.count()

    async def open(self) -> Ledger:
        async with self.db.transaction() as conn:
            rows = await conn.exec_driver_sql(
                "INSERT INTO merchants (merchant_id, email, name)"
                " SELECT 'mer_' || n, n || '@example.com', 'Shop' FROM generate_series(1, $1::bigint) n"
                " RETURNING id",
                (MERCHANTS,),
            )
            owners = list(rows.scalars())
        self.pairs = [
            (Account(owner, asset, Purpose.CUSTODY_DEPOSITS), Account(owner, asset, Purpose.HELD))
            for asset in ASSETS
            for owner in owners
        ]
        async with self.db.transaction() as conn:
            await lock_balances(conn, "live", [account for pair in self.pairs for account in pair])
            found = await conn.exec_driver_sql("SELECT id, merchant_pk, asset, purpose FROM ledger_accounts")
            self.ids = {Account(row.merchant_pk, row.asset, Purpose(row.purpose)): row.id for row in found}
        return self

    def credits(self, count: int) -> Iterator[tuple[str, Account, Account]]:
        for _ in range(count):
            number = next(self._numbers)
            yield f"dep_{number:026}:1", *self.pairs[number % len(self.pairs)]

    async def ours(self, count: int) -> None:
        """Post through the service, as a poll of a chain does."""
        postings = [
            Posting(mode="live", kind="deposit", reference=reference, movements=[Movement(debit, credit, Units(UNITS))])
            for reference, debit, credit in self.credits(count)
        ]
        async with self.db.transaction() as conn:
            await post(conn, "live", postings)

    @asynccontextmanager
    async def best(self) -> AsyncIterator[Callable[[int], Awaitable[None]]]:
        """Yield the other side, on a connection of its own."""
        connection = await asyncpg.connect(self.database_url, server_settings={"jit": "off"})
        statement = await connection.prepare(BEST)

        async def work(count: int) -> None:
            made = list(self.credits(count))
            await statement.fetch(
                [reference for reference, _, _ in made],
                [debit.asset for _, debit, _ in made],
                [self.ids[debit] for _, debit, _ in made],
                [self.ids[credit] for _, _, credit in made],
                [UNITS] * count,
            )

        yield work
        await connection.close()


async def run(workers: Sequence[Callable[[int], Awaitable[None]]], batch: int, seconds: float = SECONDS) -> float:
    """Return credits per second, by so many workers at once."""
    started = time.perf_counter()

    async def one(work: Callable[[int], Awaitable[None]]) -> int:
        done = 0
        while time.perf_counter() < started + seconds:
            await work(batch)
            done += batch
        return done

    done = sum(await asyncio.gather(*map(one, workers)))
    return done / (time.perf_counter() - started)


async def measure(database_url: str) -> list[Row]:
    rows: list[Row] = []
    db = connect(database_url, application_name="cambist-bench", pool_size=SINGLES)
    ledger = await Ledger(database_url, db).open()
    async with AsyncExitStack() as stack:
        others = [await stack.enter_async_context(ledger.best()) for _ in range(SINGLES)]
        for count in (1, CLIENTS):
            ours, best = [ledger.ours] * count, others[:count]
            await run(ours, BATCH, WARM_UP_SECONDS)
            await run(best, BATCH, WARM_UP_SECONDS)
            found = await alternate_async(
                {"ours": lambda ours=ours: run(ours, BATCH), "best": lambda best=best: run(best, BATCH)}
            )
            name = f"batches of {BATCH}, {count} at once"
            rows.append(compare(name, found["ours"], found["best"], aim=0.6, percent=True))
        found = await alternate_async(
            {
                "ours": lambda: run([ledger.ours] * SINGLES, 1),
                "best": lambda: run(others, 1),
                "alone": lambda: run([ledger.ours], 1),
            }
        )
        rows.append(at_least(f"single credits, {SINGLES} at once", statistics.median(found["ours"]), 1_000, "/s"))
        rows.append(compare("beside single statements", found["ours"], found["best"], aim=None, percent=True))
        rows.append(unjudged("single credits, one after the other", f"{statistics.median(found['alone']):,.0f}/s"))
    await db.close()
    return rows


def main() -> None:
    with migrated_servers() as (database_url, _):
        rows = uvloop.run(measure(database_url))
    report(
        "Posting to the ledger (credits per second)",
        rows,
        note=f"{MERCHANTS} merchants with {len(ASSETS)} tokens; other side: one prepared statement of asyncpg",
    )


if __name__ == "__main__":
    main()
