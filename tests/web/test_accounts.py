"""The Account API over HTTP: what it takes and answers, for programs and for people."""

from tests.support.payout_env import person
from tests.support.web import refused

USER = {"externalId": "user-1", "chains": ["memory"], "metadata": {"plan": "pro"}}


async def test_an_account_is_made_once_and_found_by_both_of_its_ids(client, merchant):
    made = await client.post("/api/account", json=USER, headers=merchant.key)
    assert made.status_code == 201
    account = made.json()["account"]
    assert made.json() == {"success": True, "account": account}
    assert account.keys() == {
        *("accountId", "externalId", "addresses", "depositUrl", "isActive", "metadata", "createdAt", "updatedAt")
    }
    (address,) = account["addresses"]
    assert address.keys() == {"chain", "address"}
    assert account["depositUrl"].startswith("http://gateway.example/account/pub_")
    again = await client.post("/api/account", json=USER, headers=merchant.key)
    assert (again.status_code, again.json()) == (200, {"success": True, "idempotent": True, "account": account})
    one = await client.get(f"/api/account/{account['accountId']}", headers=merchant.key)
    assert one.json() == {"success": True, "account": account}
    found = (await client.get("/api/account?externalId=user-1", headers=merchant.key)).json()
    assert (found["account"], found["accounts"], found["total"]) == (account, [account], 1)
    refused(await client.get("/api/account?externalId=user-2", headers=merchant.key), 404, "ACCOUNT_NOT_FOUND")


async def post(merchant, path, **body):
    answer = await merchant.client.post(path, json=body, headers=merchant.key)
    assert answer.status_code in {200, 201}, answer.text
    return answer.json()


async def test_what_came_is_listed_page_by_page_and_adds_up(sandbox_merchant):
    shop = sandbox_merchant
    account = (await post(shop, "/api/account", **USER))["account"]
    path, sent = f"/api/account/{account['accountId']}", []
    for amount in ("1", "2", "3.5"):
        asked = {"accountId": account["accountId"], "token": "USDX", "amount": amount, "confirmations": 3}
        made = await post(shop, "/api/sandbox/deposit", **asked)
        assert made.keys() == {"success", "chain", "height", "blockHash", "txHash", "deposit"}
        sent.append(made["deposit"])
    last = await post(
        shop, "/api/sandbox/deposit", address=account["addresses"][0]["address"], token="USDX", amount="4"
    )
    assert last["deposit"].keys() == {
        *("depositId", "accountId", "externalId", "chain", "token", "contractAddress", "decimals", "amount", "address"),
        *("fromAddress", "txHash", "status", "counted", "heldAmount", "heldReason", "resolution", "confirmations"),
        *(
            "requiredConfirmations",
            "incarnation",
            "fiat",
            "fiatReason",
            "seenAt",
            "minedAt",
            "confirmedAt",
            "orphanedAt",
        ),
    }
    first = (await shop.client.get(f"{path}/deposits?limit=2", headers=shop.key)).json()
    assert [one["amount"] for one in first["deposits"]] == ["4", "3.5"]
    rest = (await shop.client.get(f"{path}/deposits?limit=2&cursor={first['nextCursor']}", headers=shop.key)).json()
    assert [one["amount"] for one in rest["deposits"]] == ["2", "1"]
    assert (first["total"], rest["nextCursor"]) == (4, None)
    waiting = (await shop.client.get(f"{path}/deposits?status=detected", headers=shop.key)).json()
    assert [one["depositId"] for one in waiting["deposits"]] == [last["deposit"]["depositId"]]
    found = (await shop.client.get(f"{path}/balances", headers=shop.key)).json()
    (balance,) = found["balances"]
    assert (balance["balance"], balance["pending"], balance["held"], balance["deposits"]) == ("6.5", "4", "0", 4)
    unknown = await shop.client.get(f"{path}/deposits?status=paid", headers=shop.key)
    refused(unknown, 400, "VALIDATION_ERROR", "status")


async def test_a_coins_minimum_is_set_shown_and_taken_away(sandbox_merchant):
    shop = sandbox_merchant
    path = "/api/merchant/wallet/coins/memory/USDX/settings"
    for wanted, shown in (("5.50", "5.5"), (None, None)):
        answer = await shop.client.patch(path, json={"minDeposit": wanted}, headers=shop.key)
        assert (answer.status_code, answer.json()["coin"]["minDeposit"]) == (200, shown)
    wrong = await shop.client.patch(path, json={"minDeposit": "0.0000001"}, headers=shop.key)
    refused(wrong, 400, "INVALID_AMOUNT", "minDeposit")


async def test_people_do_the_same_below_their_project(client, merchant):
    here = f"/api/dashboard/projects/{merchant.project_id}/accounts"
    account = (await client.post(here, json=USER, headers=merchant.bearer)).json()["account"]
    more = await client.post(
        f"{here}/{account['accountId']}/chains", json={"chains": ["memory"]}, headers=merchant.bearer
    )
    assert (more.status_code, more.json()["account"]) == (200, account)
    assert (await client.get(here, headers=merchant.bearer)).json()["accounts"] == [account]


async def test_an_account_is_switched_off_and_on_and_listed_by_that(client, merchant):
    account = (await client.post("/api/account", json=USER, headers=merchant.key)).json()["account"]
    path = f"/api/account/{account['accountId']}"
    off = await client.post(f"{path}/deactivate", headers=merchant.key)
    assert (off.status_code, off.json()["account"]["isActive"]) == (200, False)
    listed = {
        state: (await client.get(f"/api/account?isActive={state}", headers=merchant.key)).json()["total"]
        for state in ("true", "false")
    }
    assert listed == {"true": 0, "false": 1}
    on = await client.post(f"{path}/activate", headers=merchant.key)
    assert on.json()["account"]["isActive"] is True


async def test_what_cannot_be_an_account_is_refused_by_field(client, merchant):
    for change, field in (
        ({"externalId": ""}, "externalId"),
        ({"externalId": "x" * 256}, "externalId"),
        ({"externalId": "a\u202eb"}, "externalId"),
        ({"chains": []}, "chains"),
        ({"chains": ["memory"] * 65}, "chains"),
        ({"metadata": {"x": "y" * 20_000}}, "metadata"),
        ({"label": "x"}, "label"),
    ):
        refused(
            await client.post("/api/account", json=USER | change, headers=merchant.key), 400, "VALIDATION_ERROR", field
        )
    wrong = await client.post("/api/account", json=USER | {"chains": ["nowhere"]}, headers=merchant.key)
    refused(wrong, 400, "UNSUPPORTED_CHAIN", "chains[0]")
    away = await client.post("/api/account", json=USER | {"chains": ["idle"]}, headers=merchant.key)
    refused(away, 503, "CHAIN_UNAVAILABLE")
    for path in ("", "/chains", "/activate", "/deactivate"):
        method = "POST" if path else "GET"
        body = {"chains": ["memory"]} if path == "/chains" else None
        answer = await client.request(method, f"/api/account/acc_nobody{path}", json=body, headers=merchant.key)
        refused(answer, 404, "ACCOUNT_NOT_FOUND")


async def answers_with_the_address(shop, account, held):
    """Ask for every answer of the API that tells an address of an account."""
    ask, account_id = shop.client.request, account["accountId"]
    path, case = f"/api/account/{account_id}", f"/api/merchant/resolutions/{held}"
    sandbox = {"accountId": account_id, "token": "USDX", "amount": "1"}
    asked = [
        ("POST", "/api/account", USER),
        ("GET", "/api/account", None),
        ("GET", "/api/account?externalId=user-1", None),
        ("GET", path, None),
        ("GET", f"{path}/deposits", None),
        ("POST", f"{path}/chains", {"chains": ["memory"]}),
        ("POST", f"{path}/deactivate", None),
        ("POST", f"{path}/activate", None),
        ("GET", "/api/merchant/resolutions", None),
        ("GET", case, None),
        ("POST", f"{case}/accept", None),
        ("POST", f"{case}/release", None),
        ("POST", "/api/sandbox/deposit", sandbox),
    ]
    return {f"{how} {at}": await ask(how, at, json=body, headers=shop.key) for how, at, body in asked}


async def test_no_answer_tells_an_address_of_an_account_that_somebody_swapped(gateway, sandbox_merchant):
    shop = sandbox_merchant
    account = (await post(shop, "/api/account", **USER))["account"]
    held = {"accountId": account["accountId"], "token": "USDX", "amount": "2", "confirmations": 3}
    minimum = (
        "INSERT INTO coin_settings (merchant_pk, mode, chain, symbol, min_deposit, updated_at)"
        " SELECT merchant_pk, mode, 'memory', 'USDX', 2500000, now() FROM projects"
    )
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(minimum)
    deposit_id = (await post(shop, "/api/sandbox/deposit", **held))["deposit"]["depositId"]
    swap = "UPDATE addresses SET address = $1 WHERE purpose = 'account' AND address = $2"
    own, thief = account["addresses"][0]["address"], person("thief")
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(swap, (thief, own))
    for door, answer in (await answers_with_the_address(shop, account, deposit_id)).items():
        assert answer.status_code == 503, door
        refused(answer, 503, "ADDRESS_NOT_VERIFIED")
        assert thief not in answer.text
    # A deposit that was handed to another address is not shown as one to the account's either.
    stranger = (
        "UPDATE deposits SET address_pk = (SELECT a.id FROM addresses a WHERE a.address <> $1 LIMIT 1)"
        " WHERE deposit_id = $2"
    )
    await post(shop, "/api/payment", chain="memory", token="USDX", pricingMode="direct_crypto", amount="1")
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(swap, (own, thief))
        assert (await conn.exec_driver_sql(stranger, (own, deposit_id))).rowcount == 1
    path = f"/api/account/{account['accountId']}"
    refused(await shop.client.get(f"{path}/deposits", headers=shop.key), 503, "ADDRESS_NOT_VERIFIED")
    assert (await shop.client.get(path, headers=shop.key)).status_code == 200
