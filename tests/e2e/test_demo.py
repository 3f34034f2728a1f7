"""The demo makes a month once, and tells its story and says so; where a step fails, it says which."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import sys
from pathlib import Path

import pytest

from cambist.db.engine import connect
from cambist.embedded import reached_database
from cambist.embedded.processes import free_port
from cambist.testing.anvil import AnvilProcess, find_anvil
from tests.support.books import broken
from tests.support.command import run_command
from tests.support.forked import ForkedProcess

CAMBIST = str(Path(sys.executable).with_name("cambist"))


async def run_demo(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run it, and the gateway that it starts, in processes that need not import the program anew."""
    told = folder.with_name("told")
    told.write_bytes(b"")
    command = ("demo", "--once", "--anvil", str(find_anvil()), "--data-dir", str(folder), *arguments)
    process = ForkedProcess(command, os.environ, told, told)
    try:
        return await asyncio.wait_for(process.wait(), 600), told.read_text()
    finally:
        process.kill()


STATES = {"pending", "detected", "confirming", "paid", "overpaid", "underpaid", "expired", "failed", "refunded"}

# Each selects what there must be in the month of the shop whose people are named, as (what, how often).
THERE = {
    "payments by state": """SELECT status, count(*) FROM payments
        WHERE merchant_pk = $1 AND mode = 'sandbox' GROUP BY 1""",
    "chains that are paid on": """SELECT chain, count(*) FROM payments
        WHERE merchant_pk = $1 AND mode = 'sandbox' GROUP BY 1""",
    "days with payments": "SELECT created_at::date::text, count(*) FROM payments WHERE merchant_pk = $1 GROUP BY 1",
    "days in the books": """SELECT t.created_at::date::text, count(DISTINCT t.id) FROM ledger_transactions t
        JOIN ledger_movements m ON m.transaction_pk = t.id JOIN ledger_accounts a ON a.id = m.credit_account_pk
        WHERE a.merchant_pk = $1 AND a.mode = 'sandbox' GROUP BY 1""",
    "what went out": """SELECT kind || ' ' || status, count(*) FROM payouts
        WHERE merchant_pk = $1 AND mode = 'sandbox' GROUP BY 1""",
    "exchanges": "SELECT kind || ' ' || status, count(*) FROM exchanges WHERE merchant_pk = $1 GROUP BY 1",
    "deposits to accounts": """SELECT status, count(*) FROM deposits
        WHERE merchant_pk = $1 AND account_pk IS NOT NULL GROUP BY 1""",
    "trackers with movements": """SELECT t.name, count(x.id) FROM trackers t
        JOIN projects p ON p.id = t.project_pk LEFT JOIN tracker_transactions x ON x.tracker_pk = t.id
        WHERE p.merchant_pk = $1 GROUP BY 1""",
    "webhooks": """SELECT d.status, count(*) FROM webhook_deliveries d JOIN projects p ON p.id = d.project_pk
        WHERE p.merchant_pk = $1 AND p.mode = 'sandbox' GROUP BY 1""",
    "team": "SELECT role, count(*) FROM members WHERE merchant_pk = $1 GROUP BY 1",
    "invited": "SELECT role, count(*) FROM member_invitations WHERE merchant_pk = $1 GROUP BY 1",
    "plan": "SELECT p.name, count(*) FROM plans p JOIN merchants m ON m.plan_pk = p.id WHERE m.id = $1 GROUP BY 1",
    "live": """SELECT 'payments', count(*) FROM payments WHERE merchant_pk = $1 AND mode = 'live'
        UNION ALL SELECT 'payouts', count(*) FROM payouts WHERE merchant_pk = $1 AND mode = 'live'
        UNION ALL SELECT 'asked of operators', count(*) FROM jobs WHERE kind = 'reconcile' AND $1::bigint > 0
        UNION ALL SELECT 'projects', count(*) FROM projects WHERE merchant_pk = $1 AND mode = 'live'""",
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
    assert set(month["team"]) == {"owner", "admin", "finance", "developer"}
    assert set(month["invited"]) == {"viewer"}
    assert set(month["plan"]) == {"Business"}
    assert month["live"] == {"payments": 5, "payouts": 2, "asked of operators": 1, "projects": 1}
    # Nothing is added by a later start, which goes on with the blocks that the local chain had.
    assert later == month
    config, state = (tmp_path / "demo" / name for name in ("cambist.toml", "local-chain.json"))
    (port,) = re.findall(r"http://127\.0\.0\.1:(\d+)", config.read_text())
    async with AnvilProcess(["--chain-id", "31337", "--state", str(state)], port=int(port)):
        options = ("--config", str(config), "--data-dir", str(tmp_path / "demo"))
        done = await asyncio.to_thread(run_command, "reconcile", *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


async def test_a_folder_with_a_local_chain_is_not_started_without_its_node(tmp_path):
    folder = tmp_path / "demo"
    folder.mkdir()
    (folder / "cambist.toml").write_text("# What `cambist demo` runs on")
    (folder / "local-chain.json").write_text("{}")
    process = await asyncio.create_subprocess_exec(
        CAMBIST, "demo", "--once", "--data-dir", str(folder),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "PATH": str(Path(CAMBIST).parent)},
    )  # fmt: skip
    output, _ = await process.communicate()
    assert process.returncode == 1
    assert "name it with --anvil" in output.decode()


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
