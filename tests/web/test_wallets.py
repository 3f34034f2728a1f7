"""Reading the wallet: what is told of a balance, and to whom."""

from __future__ import annotations

from cambist.services.accounting.ledger import Account, Movement, Posting, Purpose, lock_balances, post
from tests.support.web import Merchant, refused

WALLET = "/api/merchant/wallet"


REPLACED_USDX = """
WITH paid AS (
    INSERT INTO addresses (mode, family, address, purpose, account_index, change, address_index, merchant_pk)
    SELECT 'live', 'memory', 'mem1paid', 'payment', 7, 0, 1, id FROM merchants RETURNING id, merchant_pk
)
INSERT INTO deposits (deposit_id, chain, scope, tx_id, position, mode, merchant_pk, address_pk, matches, token,
    contract, decimals, units, height, block_hash, ordinal, mined_at, required_confirmations)
SELECT 'dep_1', 'memory', 0, 'tx1', '0', 'live', merchant_pk, id, false, 'USDX',
    'replaced', 2, 700, 1, 'hash', 0, $1, 1
FROM paid
"""


async def credit(gateway, merchant, mode, asset, units, purpose=Purpose.AVAILABLE, reference="1"):
    """Have so much come; below zero, go again."""
    async with gateway.db.transaction() as conn:
        found = await conn.exec_driver_sql("SELECT id FROM merchants WHERE merchant_id = $1", (merchant.merchant_id,))
        row = found.scalar_one()
        custody, balance = Account(row, asset, Purpose.CUSTODY_DEPOSITS), Account(row, asset, purpose)
        movement = Movement(custody, balance, units) if units > 0 else Movement(balance, custody, -units)
        await post(conn, mode, [Posting(mode=mode, kind="test", reference=mode + reference, movements=[movement])])


def usdx(gateway):
    return f"memory/{gateway.registry.chains['memory'].token('USDX').contract}"


async def test_a_new_wallet_is_empty(merchant, client):
    wallet = (await client.get(WALLET, headers=merchant.key)).json()
    assert (wallet["success"], wallet["mode"], wallet["balances"]) == (True, "live", [])
    answer = (await client.get(f"{WALLET}/balance?chain=memory&token=MEM", headers=merchant.key)).json()
    assert answer["balance"] == {
        "chain": "memory",
        "token": "MEM",
        "contractAddress": None,
        "decimals": 18,
        "available": "0",
        "pending": "0",
        "held": "0",
    }


async def test_balances_are_told_in_whole_tokens_by_what_may_be_done_with_them(merchant, client, gateway):
    await credit(gateway, merchant, "live", usdx(gateway), 12_500_000)
    await credit(gateway, merchant, "live", usdx(gateway), 1, Purpose.HELD, "2")
    await credit(gateway, merchant, "live", "memory/native", 10**18, reference="3")
    balances = {
        balance["token"]: balance for balance in (await client.get(WALLET, headers=merchant.key)).json()["balances"]
    }
    assert {"available": "12.5", "held": "0.000001", "pending": "0"}.items() <= balances["USDX"].items()
    assert balances["MEM"]["available"] == "1"
    one = (await client.get(f"{WALLET}/balance?chain=memory&token=USDX", headers=merchant.key)).json()["balance"]
    assert one == balances["USDX"]
    in_person = f"/api/dashboard/projects/{merchant.project_id}/wallet"
    assert (await client.get(in_person, headers=merchant.bearer)).json()["balances"] == list(balances.values())


async def test_live_and_sandbox_see_nothing_of_each_other(merchant, client, gateway):
    live = merchant.key
    await merchant.add_project(mode="sandbox")
    await credit(gateway, merchant, "live", usdx(gateway), 5_000_000)
    await credit(gateway, merchant, "sandbox", usdx(gateway), 7_000_000)
    path = f"{WALLET}/balance?chain=memory&token=USDX"
    assert (await client.get(path, headers=live)).json()["balance"]["available"] == "5"
    assert (await client.get(path, headers=merchant.key)).json()["balance"]["available"] == "7"


async def test_merchants_see_their_own_money_only(merchant, client, gateway):
    await credit(gateway, merchant, "live", usdx(gateway), 5_000_000)
    other = await Merchant(client).open("bob@shop.example")
    assert (await client.get(WALLET, headers=other.key)).json()["balances"] == []


async def test_a_token_that_never_came_and_is_gone_by_now_does_not_close_the_wallet(merchant, client, gateway):
    await credit(gateway, merchant, "live", usdx(gateway), 5_000_000)
    async with gateway.db.transaction() as conn:
        found = await conn.exec_driver_sql("SELECT id FROM merchants WHERE merchant_id = $1", (merchant.merchant_id,))
        # As a batch does of which every row is beyond the operator's limit for a day.
        await lock_balances(conn, "live", [Account(found.scalar_one(), "memory/gone", Purpose.AVAILABLE)])
    (balance,) = (await client.get(WALLET, headers=merchant.key)).json()["balances"]
    assert balance["token"] == "USDX"
    for path in ("transactions", "transactions.csv"):
        assert (await client.get(f"{WALLET}/{path}", headers=merchant.key)).status_code == 200


async def test_a_token_whose_symbol_stands_for_another_one_is_no_balance_any_more_but_in_the_statement(
    merchant, client, gateway
):
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(REPLACED_USDX, (gateway.clock.now(),))
    await credit(gateway, merchant, "live", usdx(gateway), 5_000_000)
    await credit(gateway, merchant, "live", "memory/replaced", 700, reference="2")
    left = (await client.get(WALLET, headers=merchant.key)).json()["balances"]
    assert [(one["token"], one["available"]) for one in left] == [("USDX", "5"), ("USDX", "7")]
    await credit(gateway, merchant, "live", "memory/replaced", -700, reference="3")
    (balance,) = (await client.get(WALLET, headers=merchant.key)).json()["balances"]
    assert (balance["contractAddress"], balance["available"]) == (usdx(gateway).removeprefix("memory/"), "5")
    entries = (await client.get(f"{WALLET}/transactions", headers=merchant.key)).json()["transactions"]
    assert [one["amount"] for one in entries] == ["-7", "7", "5"]


async def test_the_balance_of_what_does_not_exist_is_refused_by_field(merchant, client):
    async def ask(query):
        return await client.get(f"{WALLET}/balance?{query}", headers=merchant.key)

    refused(await ask("chain=nowhere&token=USDX"), 400, "UNSUPPORTED_CHAIN", "chain")
    refused(await ask("chain=memory&token=usdx"), 400, "UNSUPPORTED_TOKEN", "token")
    refused(await ask("token=USDX"), 400, "VALIDATION_ERROR", "chain")
    refused(await ask("chain=memory"), 400, "VALIDATION_ERROR", "token")
    refused(await ask("chain=&token=USDX"), 400, "VALIDATION_ERROR", "chain")
    refused(await ask("chain=mem%00ory&token=USDX"), 400, "VALIDATION_ERROR", "query")
    refused(await ask("chain=%ff%fe&token=USDX"), 400, (await ask("chain=%ff%fe&token=USDX")).json()["code"])
