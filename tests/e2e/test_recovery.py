"""The database is gone, and comes back from words, manifest and a real node; the books agree before and after."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from cambist.db.engine import connect

CAMBIST = str(Path(sys.executable).with_name("cambist"))


async def cambist(gateway, *arguments: str, config: str = "cambist.toml") -> tuple[int, str]:
    """Run the command as the operator does, and return its exit code and all that it wrote."""
    process = await asyncio.create_subprocess_exec(
        CAMBIST, *arguments, "--config", config, "--data-dir", "data",
        cwd=gateway.folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await asyncio.wait_for(process.communicate(), 180)
    return process.returncode or 0, output.decode()


async def pay_until_paid(merchant, usdx, amount: int) -> None:
    payment = await merchant.pay(usdx, amount)
    await usdx.send(payment["depositAddress"], amount)
    await usdx.network.mine(5)
    await merchant.until(payment, "paid")


async def finished(merchant, network, payout_id: str) -> None:
    for _ in range(200):
        found = (await merchant.get(f"/api/merchant/wallet/payouts/{payout_id}"))["payout"]
        if found["status"] == "completed":
            return
        await network.mine()
        await asyncio.sleep(0.2)
    raise AssertionError(f"the payout is {found}")


async def state(url: str, coin) -> tuple[dict, set]:
    """Return what merchants have and where it lies, and every address."""
    database = connect(url, application_name="cambist-stories", pool_size=1)
    async with database.transaction() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT m.merchant_id, a.asset, CASE WHEN a.debit_normal THEN a.purpose ELSE 'owned' END AS what,"
            " sum(CASE WHEN a.debit_normal THEN -a.balance ELSE a.balance END) AS units FROM ledger_accounts a"
            " JOIN merchants m ON m.id = a.merchant_pk WHERE a.mode = 'live' AND a.asset = $1 GROUP BY 1, 2, 3",
            (coin.asset,),
        )
        money = {(row.merchant_id, row.asset, row.what): int(row.units) for row in rows if row.units}
        addresses = await conn.exec_driver_sql("SELECT address, purpose FROM addresses WHERE mode = 'live'")
        found = {tuple(row) for row in addresses}
    await database.close()
    return money, found


@pytest.fixture
def empty(databases):
    """Give the address of a second database, migrated and unused."""
    with databases.fresh() as url:
        yield url


async def test_a_lost_database_comes_back_with_its_money(
    gateway, merchant, station, network, usdx, story_database_url, empty
):
    for amount in (40, 25, 10):
        await pay_until_paid(merchant, usdx, amount)
    payout = await merchant.pay_out(usdx, 50, network.stranger())
    await finished(merchant, network, payout["payoutId"])
    await network.mine(5)
    await pay_until_paid(merchant, usdx, 7)
    assert (await merchant.balance(usdx)) == {"available": "32"}

    code, output = await cambist(gateway, "reconcile")
    assert code == 0, output
    assert f"{usdx.chain}: no difference" in output
    code, output = await cambist(gateway, "manifest", "recovery.json")
    assert code == 0, output
    await gateway.stop()
    before, addresses = await state(story_database_url, usdx)

    text = gateway.config.read_text().replace(story_database_url, empty)
    keys = '[keys]\nkeystore = "data/keystore.json"\npassphrase = { file = "data/keystore.passphrase" }\n'
    (gateway.folder / "new.toml").write_text(text + keys)
    code, output = await cambist(gateway, "restore", "recovery.json", "--gap", "20", config="new.toml")
    assert code == 0, output
    assert "Restored: 1 merchants" in output
    after, restored = await state(empty, usdx)
    assert after == before
    assert sum(units for (_, _, what), units in after.items() if what == "owned") == usdx.units(32)
    assert addresses <= restored
    code, output = await cambist(gateway, "reconcile", "--json", config="new.toml")
    assert (code, json.loads(output.splitlines()[-1])["agrees"]) == (0, True), output
