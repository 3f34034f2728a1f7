"""What an account's page shows, as JSON for anybody: addresses while it is active, deposits, and nobody's name."""

import pytest

from tests.support.account_rows import insert_deposit
from tests.support.payout_env import person
from tests.support.web import refused


@pytest.fixture
async def made(client, merchant):
    body = {"externalId": "carol", "chains": ["memory"], "metadata": {"note": "a secret of the shop"}}
    answer = await client.post("/api/account", json=body, headers=merchant.key)
    assert answer.status_code == 201, answer.text
    return answer.json()["account"]


def public_id(account):
    return account["depositUrl"].rpartition("/")[2]


async def read(client, account):
    answer = await client.get(f"/api/public/account/{public_id(account)}")
    assert answer.status_code == 200, answer.text
    return answer


async def test_whoever_has_the_link_reads_where_to_deposit_and_nothing_of_who_does(client, made):
    answer = await read(client, made)
    shown = answer.json()["account"]
    assert (shown["publicId"], shown["isActive"], shown["mode"]) == (public_id(made), True, "live")
    (address,) = shown["addresses"]
    assert (address["chain"], address["address"]) == ("memory", made["addresses"][0]["address"])
    assert address["address"] in address["uri"]
    assert address["isDelayed"] is True, "nothing reads the chain here"
    assert {"MEM", "USDX"} <= {token["token"] for token in address["tokens"]}
    assert (shown["deposits"], shown["hasEarlier"]) == ([], False)
    for secret in ("carol", made["accountId"], "a secret of the shop"):
        assert secret not in answer.text
    assert answer.headers["access-control-allow-origin"] == "*"


async def test_deposits_say_how_far_they_are_and_whether_they_count(gateway, client, made):
    token = gateway.registry.chains["memory"].token("USDX")
    common = {"height": 1, "mined_at": gateway.clock.now()}
    await insert_deposit(gateway.db, public_id(made), token, 2_500_000, status="confirmed", tx_id="tx1", **common)
    await insert_deposit(gateway.db, public_id(made), token, 1, matches=False, tx_id="tx2", **common)
    shown = (await read(client, made)).json()["account"]["deposits"]
    told = [(one["txHash"], one["amount"], one["status"], one["counted"], one["confirmations"]) for one in shown]
    assert told == [("tx2", "0.000001", "detected", False, 0), ("tx1", "2.5", "confirmed", True, 3)]
    assert {one["requiredConfirmations"] for one in shown} == {3}


async def test_an_account_that_is_switched_off_keeps_its_addresses_to_itself(client, merchant, made):
    await client.post(f"/api/account/{made['accountId']}/deactivate", headers=merchant.key)
    shown = (await read(client, made)).json()["account"]
    assert (shown["isActive"], shown["addresses"]) == (False, [])
    page = await client.get(f"/account/{public_id(made)}")
    assert "No deposits at present" in page.text
    await client.post(f"/api/account/{made['accountId']}/activate", headers=merchant.key)
    assert len((await read(client, made)).json()["account"]["addresses"]) == 1


async def test_an_address_that_was_changed_is_not_told(gateway, client, made):
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE addresses SET address = $1 WHERE account_pk IS NOT NULL", (person("thief"),))
    refused(await client.get(f"/api/public/account/{public_id(made)}"), 503, "ADDRESS_NOT_VERIFIED")
    assert (await client.get(f"/account/{public_id(made)}")).status_code == 404


@pytest.mark.parametrize("name", ["pub_none", "%ff", "a" * 100])
async def test_an_unknown_account_is_told_so(client, name):
    refused(await client.get(f"/api/public/account/{name}"), 404, "ACCOUNT_NOT_FOUND")
