"""The demo makes a month once, and tells its story and says so; where a step fails, it says which."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from pathlib import Path

import pytest

from cambist.db.engine import connect
from cambist.embedded import reached_database
from cambist.embedded.processes import free_port
from tests.support.books import broken

CAMBIST = str(Path(sys.executable).with_name("cambist"))


async def run_demo(folder: Path, *arguments: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        CAMBIST, "demo", "--once", "--data-dir", str(folder), *arguments,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env=os.environ,
    )  # fmt: skip
    output, _ = await asyncio.wait_for(process.communicate(), 300)
    assert process.returncode is not None
    return process.returncode, output.decode()


STATES = {"pending", "detected", "confirming", "paid", "overpaid", "underpaid", "expired", "failed", "refunded"}

# Each selects what there must be in the month of the shop whose people are named, as (what, how often).
THERE = {
    "payments by state": "SELECT status, count(*) FROM payments WHERE merchant_pk = $1 GROUP BY 1",
    "chains that are paid on": "SELECT chain, count(*) FROM payments WHERE merchant_pk = $1 GROUP BY 1",
    "days with payments": "SELECT created_at::date::text, count(*) FROM payments WHERE merchant_pk = $1 GROUP BY 1",
    "days in the books": """SELECT t.created_at::date::text, count(DISTINCT t.id) FROM ledger_transactions t
        JOIN ledger_movements m ON m.transaction_pk = t.id JOIN ledger_accounts a ON a.id = m.credit_account_pk
        WHERE a.merchant_pk = $1 GROUP BY 1""",
    "what went out": "SELECT kind || ' ' || status, count(*) FROM payouts WHERE merchant_pk = $1 GROUP BY 1",
    "exchanges": "SELECT kind || ' ' || status, count(*) FROM exchanges WHERE merchant_pk = $1 GROUP BY 1",
    "deposits to accounts": """SELECT status, count(*) FROM deposits
        WHERE merchant_pk = $1 AND account_pk IS NOT NULL GROUP BY 1""",
    "trackers with movements": """SELECT t.name, count(x.id) FROM trackers t
        JOIN projects p ON p.id = t.project_pk LEFT JOIN tracker_transactions x ON x.tracker_pk = t.id
        WHERE p.merchant_pk = $1 GROUP BY 1""",
    "webhooks": """SELECT d.status, count(*) FROM webhook_deliveries d JOIN projects p ON p.id = d.project_pk
        WHERE p.merchant_pk = $1 GROUP BY 1""",
    "trail": "SELECT 'entries', count(*) FROM audit_entries e JOIN merchants m USING (merchant_id) WHERE m.id = $1",
}


# When something was posted is the database's own moment again.
DEFAULT = """
SELECT column_default FROM information_schema.columns
WHERE table_name = 'ledger_transactions' AND column_name = 'created_at'
"""


async def seen_month(folder: Path) -> dict[str, dict[str, int]]:
    """Return what there is of the shop that has had a month, and check that the books hold."""
    email = json.loads((folder / "month.json").read_text())["email"]
    with reached_database(folder, os.urandom) as url:
        assert url is not None
        database = connect(url, application_name="test", pool_size=1)
        try:
            async with database.autocommit() as conn:
                assert await broken(conn) == {}
                assert (await conn.exec_driver_sql(DEFAULT)).scalar_one() == "now()"
                merchant = (
                    await conn.exec_driver_sql("SELECT id FROM merchants WHERE email = $1", (email,))
                ).scalar_one()
                return {
                    name: {str(what): int(count) for what, count in await conn.exec_driver_sql(statement, (merchant,))}
                    for name, statement in THERE.items()
                }
        finally:
            await database.close()


async def test_it_makes_a_month_once_and_plays_the_story_at_each_start_on_the_same_folder(tmp_path):
    months = []
    for _ in range(2):
        code, output = await run_demo(tmp_path / "demo", "--port", str(free_port()))
        assert code == 0, output
        told = [line.split()[1] for line in output.splitlines() if line.strip().startswith("webhook")]
        paid = ["payment.detected", "payment.confirming", "payment.paid"]
        assert told == [*paid, "payout.completed", "payment.refunded"]
        assert output.count("signature verified") == 5
        assert "exactly what was paid" in output
        assert "exactly what is left" in output
        assert "\\u001b" not in output
        months.append(await seen_month(tmp_path / "demo"))
    month, later = months
    assert set(month["payments by state"]) == STATES
    assert set(month["chains that are paid on"]) == {"ethereum", "base", "tron"}
    assert len(month["days with payments"]) >= 28
    assert len(month["days in the books"]) >= 28
    out = {"payout completed", "payout failed", "payout broadcast", "refund completed", "withdrawal completed"}
    assert set(month["what went out"]) == out
    assert set(month["exchanges"]) == {"swap succeeded", "bridge succeeded"}
    assert month["deposits to accounts"]["confirmed"] >= 30
    assert len(month["trackers with movements"]) == 2
    assert all(month["trackers with movements"].values())
    assert set(month["webhooks"]) == {"delivered"}
    # Nothing is added by a later start.
    assert later == month
    process = await asyncio.create_subprocess_exec(
        CAMBIST, "reconcile", "--config", str(tmp_path / "demo" / "cambist.toml"), "--data-dir", str(tmp_path / "demo")
    )
    assert await process.wait() == 0


async def test_a_port_that_is_taken_is_named_in_its_failure(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, output = await run_demo(tmp_path / "demo", "--port", str(taken.getsockname()[1]))
    assert code == 1
    assert "The demo failed: port" in output


@pytest.mark.parametrize("there", ["postgres/PG_VERSION", "cambist.toml"])
async def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path, there):
    (tmp_path / there).parent.mkdir(exist_ok=True)
    (tmp_path / there).write_text("[web]\nport = 8080\n")
    before = sorted(tmp_path.rglob("*"))
    code, output = await run_demo(tmp_path)
    assert code == 1
    assert "not the demo's" in output
    assert (tmp_path / there).read_text() == "[web]\nport = 8080\n"
    assert sorted(tmp_path.rglob("*")) == before
