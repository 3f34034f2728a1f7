"""Auto-convert over HTTP: who may switch it on, what is refused, and what its merchant reads of it."""

from __future__ import annotations

import pytest

from cambist.registry import Registry
from tests.support.web import memory_gateway, refused, web_settings

COINS = "/api/merchant/wallet/coins"
TABLES = {"evm": {"chains": {name: {"simulated": True} for name in ("ethereum", "polygon")}}}
TO_USDT = {"autoConvertEnabled": True, "autoConvertDestChain": "ethereum", "autoConvertDestToken": "USDT"}
TO_USDC = {**TO_USDT, "autoConvertDestToken": "USDC"}


def open_with_evm(database_url, redis_url, clock, ids, *, stock):
    return memory_gateway(web_settings(database_url, redis_url), clock, ids, stock=stock, registry=Registry(TABLES))


@pytest.fixture
def opening():
    return open_with_evm


async def change(client, headers, coin, body, base=COINS):
    return await client.patch(f"{base}/{coin}/settings", json=body, headers=headers)


async def test_a_key_switches_it_on_and_reads_what_it_waits_for(client, merchant, gateway):
    answer = await change(client, merchant.key, "ethereum/USDC", TO_USDT)
    assert answer.status_code == 200, answer.text
    coin = answer.json()["coin"]
    assert coin["autoConvertEnabled"] is True
    assert coin["autoConvertMinimumUsd"] == "10"
    codes = [reason["code"] for reason in coin["autoConvertWaitsFor"]]
    assert codes == ["CHAIN_UNAVAILABLE", "NOTHING_AVAILABLE"]
    assert all(reason["message"] for reason in coin["autoConvertWaitsFor"])
    listed = (await client.get(COINS, headers=merchant.key)).json()["coins"]
    assert [one for one in listed if one["autoConvertEnabled"]] == [coin]
    assert all(not one["autoConvertWaitsFor"] for one in listed if one != coin)
    async with gateway.db.autocommit() as conn:
        found = await conn.exec_driver_sql("SELECT details FROM audit_entries WHERE action = 'coin_settings.changed'")
        assert found.scalar_one()["changed"] == TO_USDT


async def test_switched_off_it_waits_for_nothing(client, merchant):
    await change(client, merchant.key, "ethereum/USDC", TO_USDT)
    answer = await change(client, merchant.key, "ethereum/USDC", {"autoConvertEnabled": False})
    coin = answer.json()["coin"]
    assert (coin["autoConvertEnabled"], coin["autoConvertWaitsFor"]) == (False, [])
    assert coin["autoConvertDestToken"] == "USDT"


async def test_what_cannot_be_meant_is_refused_by_its_field(client, merchant):
    field = ["autoConvertDestToken"]
    rows = [
        ({"autoConvertEnabled": True}, "VALIDATION_ERROR", field),
        (TO_USDC, "VALIDATION_ERROR", field),
        ({**TO_USDT, "autoConvertDestToken": "BTC"}, "UNSUPPORTED_TOKEN", field),
        ({**TO_USDT, "autoConvertDestChain": "tron"}, "SWAP_NOT_SUPPORTED_FOR_CHAIN", []),
    ]
    for body, code, fields in rows:
        refused(await change(client, merchant.key, "ethereum/USDC", body), 400, code, *fields)
    await client.put(COINS, json={"coins": [{"chain": "ethereum", "token": "USDC"}]}, headers=merchant.key)
    disabled = await change(client, merchant.key, "ethereum/USDC", TO_USDT)
    refused(disabled, 400, "TOKEN_NOT_ENABLED", "autoConvertDestToken")


async def test_a_circle_is_refused(client, merchant):
    assert (await change(client, merchant.key, "ethereum/USDC", TO_USDT)).status_code == 200
    refused(await change(client, merchant.key, "ethereum/USDT", TO_USDC), 409, "AUTO_CONVERT_CIRCLE")


async def test_a_session_needs_a_code_and_a_key_for_reading_may_not(client, merchant):
    base = f"/api/dashboard/projects/{merchant.project_id}/wallet/coins"
    refused(await change(client, merchant.bearer, "ethereum/USDC", TO_USDT, base), 403, "TWO_FACTOR_REQUIRED")
    await merchant.step_up()
    answer = await change(client, merchant.bearer, "ethereum/USDC", TO_USDT, base)
    assert answer.status_code == 200, answer.text
    await merchant.add_key(scopes=["read"])
    refused(await change(client, merchant.key, "ethereum/USDC", {"autoConvertEnabled": False}), 403, "SCOPE_MISSING")
