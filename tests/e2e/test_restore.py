"""Words, manifest and the file of accounts are all that is left: a new gateway finds everything again, and pays out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from cambist.db.engine import connect
from tests.support.gateway import ADMIN_KEY, GatewayProcess, Merchant, until
from tests.support.networks import Coin, Customer
from tests.support.secrets import keystore_of

PASSPHRASE = "a passphrase of the new machine"
MONEY = """
SELECT m.merchant_id, a.asset,
    CASE WHEN a.purpose LIKE 'custody%' OR a.purpose LIKE 'float%' THEN a.purpose ELSE 'owned' END AS what,
    sum(CASE WHEN a.debit_normal THEN -a.balance ELSE a.balance END) AS units
FROM ledger_accounts a JOIN merchants m ON m.id = a.merchant_pk WHERE a.mode = 'live' AND a.asset <> 'cpt'
GROUP BY 1, 2, 3
"""


@pytest.fixture(scope="module")
async def shops(gateway, session, station, blocks):
    """Open two shops, so that nobody's money can be taken for another's."""
    return [await Merchant(gateway.url, session).open() for _ in range(2)]


@pytest.fixture
def new_machine(gateway, tmp_path, story_database_url, databases):
    """Give an empty database, and the same settings for it; nothing of the old machine but what is told."""
    with databases.fresh() as empty:
        text = gateway.config.read_text().replace(story_database_url, empty)
        keys = '\n[keys]\nkeystore = "keystore.json"\npassphrase = { file = "passphrase" }\n'
        (tmp_path / "passphrase").write_text(PASSPHRASE)
        machine = GatewayProcess(tmp_path, text + keys)
        machine.database_url = empty
        yield machine


async def sent(merchant: Merchant, customer: Customer, coin: Coin, amount: int, units: int) -> dict:
    """Have a customer send so much for a payment of an amount; return it as it was made."""
    payment = await merchant.pay(coin, amount)
    await customer.pay(payment["depositAddress"], coin, units)
    return payment


async def all_paid(made: Sequence[tuple[Merchant, dict]]) -> None:
    """Wait for all of them at once."""
    await asyncio.gather(*(merchant.until(one, "paid", "overpaid", seconds=180) for merchant, one in made))


async def all_completed(made: Sequence[tuple[Merchant, dict]]) -> None:
    """Wait for the ends of all of them at once."""
    await asyncio.gather(*(merchant.completed(one) for merchant, one in made))


async def restore_on(machine: GatewayProcess, words: str, manifest: str) -> None:
    """Do there what an operator does who has nothing but the words and the manifest."""
    code, output = await machine.run(
        "keys", "init", "--import", "keystore.json", "--passphrase-file", "passphrase", answers=[words]
    )
    assert code == 0, output
    code, output = await machine.run("migrate", *machine.options)
    assert code == 0, output
    code, output = await machine.run("restore", manifest, "--gap", "20", *machine.options)
    assert code == 0, output
    assert "Restored: 2 merchants" in output


async def user_with_deposits(merchant: Merchant, usdx: Coin, native: Coin) -> dict:
    """Make an account of an end user, who deposits 7 of the one and 2 of the other."""
    body = {"externalId": "user-1", "chains": [usdx.chain]}
    account = (await merchant.post("/api/account", body, status=201))["account"]
    (home,) = account["addresses"]
    await usdx.send(home["address"], 7)
    await native.send(home["address"], 2)
    await until(lambda: holds(merchant, account, {usdx.symbol: "7", native.symbol: "2"}))
    return account


async def goes_on(merchant: Merchant, account: dict, usdx: Coin, native: Coin) -> None:
    """Check that an account is what it was, and have its end user deposit 3 more to the address that was known."""
    (same,) = (await merchant.get(f"/api/account?externalId={account['externalId']}"))["accounts"]
    assert (same["accountId"], same["addresses"]) == (account["accountId"], account["addresses"])
    assert await holds(merchant, account, {usdx.symbol: "7", native.symbol: "2"})
    await usdx.send(account["addresses"][0]["address"], 3)
    await until(lambda: holds(merchant, account, {usdx.symbol: "10", native.symbol: "2"}))
    found = (await merchant.get(f"/api/account/{account['accountId']}/deposits"))["deposits"]
    brought = sorted((one["token"], one["amount"], one["status"]) for one in found)
    assert brought == sorted(
        [(usdx.symbol, "7", "confirmed"), (native.symbol, "2", "confirmed"), (usdx.symbol, "3", "confirmed")]
    )


async def holds(merchant: Merchant, account: dict, amounts: dict[str, str]) -> bool:
    """Whether just these amounts are credited to an account, by token, and nothing is on its way."""
    found = (await merchant.get(f"/api/account/{account['accountId']}/balances"))["balances"]
    assert all(one["held"] == "0" for one in found)
    return {one["token"]: one["balance"] for one in found} == amounts and all(one["pending"] == "0" for one in found)


async def state(db) -> tuple[dict, set]:
    """Return what merchants own and where it lies, without what is nothing; and every address with its purpose."""
    async with db.transaction() as conn:
        money = {(row.merchant_id, row.asset, row.what): int(row.units) for row in await conn.exec_driver_sql(MONEY)}
        rows = await conn.exec_driver_sql("SELECT address, purpose FROM addresses WHERE mode = 'live'")
        return {name: units for name, units in money.items() if units}, {tuple(row) for row in rows}


async def test_words_and_manifest_bring_everything_back(
    gateway, shops, new_machine, session, customer, other_customer, network, other, usdx, native, story_db
):
    first, second = shops
    order = await sent(first, customer, usdx, 30, 30)
    more = [
        (first, await sent(first, customer, native, 20, 20)),
        (first, await sent(first, other_customer, other.usdx, 12, 12)),
        (second, await sent(second, customer, usdx, 15, 17)),
    ]
    unpaid = await first.pay(usdx, 9)
    account = await user_with_deposits(first, usdx, native)
    await all_paid([(first, order), *more])
    made = [
        await first.pay_out(usdx, 10, network.stranger()),
        await first.refund(order, customer.address, amount="4"),
        await first.pay_out(native, 5, network.stranger()),
    ]
    await all_completed([(first, one) for one in made])
    await until(lambda: nothing_under_way(story_db))
    await gateway.reconcile()
    code, output = await gateway.run("reconcile", *gateway.options)
    assert code == 0, output
    assert all(f"{chain}: no difference" in output for chain in (network.chain, other.chain))
    manifest = str(new_machine.folder / "recovery.json")
    code, output = await gateway.run("manifest", manifest, *gateway.options)
    assert code == 0, output
    words = keystore_of(gateway.folder / "data").mnemonic
    await stop_at_rest(gateway, story_db)
    before, addresses = await state(story_db)
    assert len(before) > 6

    await restore_on(new_machine, words, manifest)
    database = connect(new_machine.database_url, application_name="cambist-stories", pool_size=1)
    after, restored = await state(database)
    await database.close()
    assert after == before
    assert addresses <= restored
    assert await new_machine.reconcile()

    async with new_machine:
        shop = first.project
        await comes_back(first, new_machine, session)
        await comes_back(second, new_machine, session)
        assert await first.balance(usdx) == {"available": "23"}
        assert await first.balance(native) == {"available": "17"}
        assert await first.balance(other.usdx) == {"available": "12"}
        assert await second.balance(usdx) == {"available": "17"}
        await first.act_for(shop)
        await goes_on(first, account, usdx, native)
        await customer.pay(unpaid["depositAddress"], usdx, 9)
        to_address = network.stranger()
        wanted = (first, usdx, 26), (first, native, 17), (second, usdx, 17)
        await all_completed([(one, await one.pay_out(coin, amount, to_address)) for one, coin, amount in wanted])
        assert await network.onlooker.holds(to_address, usdx, 43)
        assert await network.onlooker.holds(to_address, native, 17)

        async def late() -> list | None:
            return (await first.get("/api/merchant/resolutions"))["resolutions"]

        (found,) = await until(late)
        assert (found["heldAmount"], found["address"], found["reason"]) == ("9", unpaid["depositAddress"], "unexpected")
        await new_machine.reconcile()


async def comes_back(merchant: Merchant, gateway: GatewayProcess, session) -> None:
    """Have a merchant sign in at the new gateway with a password that the operator let the merchant set."""
    merchant.url = gateway.url
    issued = await merchant.post(
        "/api/admin/password-resets", {"email": merchant.email}, headers={"X-Admin-Key": ADMIN_KEY}, status=201
    )
    merchant.password = "another correct horse battery staple"
    body = {"token": issued["token"], "password": merchant.password}
    await merchant.post("/api/auth/password-reset/confirm", body)
    await merchant.sign_in()


async def stop_at_rest(gateway: GatewayProcess, db) -> None:
    """Stop the gateway while nothing is under way, so that its books are all that is on the chain.

    Until it has stopped, it may begin to collect at any moment: then it is started again to finish that.
    """
    for _ in range(20):
        await until(lambda: nothing_under_way(db))
        await gateway.stop()
        if await nothing_under_way(db):
            return
        await gateway.start()
    raise AssertionError("the gateway always begins something as it is stopped")


async def nothing_under_way(db) -> bool:
    async with db.transaction() as conn:
        found = await conn.exec_driver_sql(
            "SELECT NOT EXISTS (SELECT FROM outbound_intents WHERE state IN ('waiting', 'sending'))"
            " AND NOT EXISTS (SELECT FROM outbound_slots WHERE state = 'open')"
        )
        return bool(found.scalar_one())
