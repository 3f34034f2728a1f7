"""What the operator sees of the gas stations over HTTP."""

from __future__ import annotations

from tests.support.web import ADMIN_KEY, refused

PATH = "/api/admin/gas-stations"


async def test_the_operator_sees_what_pays_for_gas(client, gateway):
    admin = {"X-Admin-Key": ADMIN_KEY}
    assert (await client.get(PATH, headers=admin)).json() == {"success": True, "gasStations": []}
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO gas_stations (mode, chain, address, symbol, decimals, balance, waiting, is_low, low_below,"
            " checked_at) VALUES ('live', 'memory', 'mem1abc', 'MEM', 18, 1500000000000000000, 2, true,"
            " 2000000000000000000, '2026-01-01T12:00Z')"
        )
    assert (await client.get(PATH, headers=admin)).json()["gasStations"] == [
        {
            "chain": "memory",
            "address": "mem1abc",
            "symbol": "MEM",
            "balance": "1.5",
            "isLow": True,
            "lowBelow": "2",
            "waiting": 2,
            "checkedAt": "2026-01-01T12:00:00.000Z",
        }
    ]


async def test_an_address_is_told_before_anybody_has_looked_at_it(client, gateway):
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO addresses (mode, family, address, purpose, account_index, change, address_index)"
            " VALUES ('live', 'memory', 'mem1abc', 'gas', 0, 0, 0)"
        )
    answer = await client.get(PATH, headers={"X-Admin-Key": ADMIN_KEY})
    assert answer.json()["gasStations"] == [
        {
            "chain": "memory",
            "address": "mem1abc",
            "symbol": "MEM",
            "balance": None,
            "isLow": None,
            "lowBelow": None,
            "waiting": 0,
            "checkedAt": None,
        }
    ], "and none for chains without a node"


async def test_nobody_else_does(client, merchant):
    refused(await client.get(PATH), 401, "ADMIN_KEY_INVALID")
    refused(await client.get(PATH, headers=merchant.key), 401, "ADMIN_KEY_INVALID")


async def test_a_station_that_stakes_tells_what_of_it_can_be_lent(client, gateway):
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO gas_stations (mode, chain, address, symbol, decimals, balance, staked, lent, lendable,"
            " leaving, withdrawable, free_at, is_stake_low, stake_low_below)"
            " VALUES ('live', 'memory', 'mem1abc', 'MEM', 6, 1, 5000000, 1500000, 0, 20, 3, '2026-02-14T12:00:00Z',"
            " true, 2500000)"
        )
    (station,) = (await client.get(PATH, headers={"X-Admin-Key": ADMIN_KEY})).json()["gasStations"]
    assert station["stake"] == {
        "staked": "5",
        "lent": "1.5",
        "lendable": "0",
        "leaving": "0.00002",
        "withdrawable": "0.000003",
        "freeAt": "2026-02-14T12:00:00.000Z",
        "isLow": True,
        "lowBelow": "2.5",
    }
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE gas_stations SET free_at = NULL")
    (station,) = (await client.get(PATH, headers={"X-Admin-Key": ADMIN_KEY})).json()["gasStations"]
    assert (station["stake"]["leaving"], station["stake"]["freeAt"]) == ("0.00002", None), "a plugin need not tell"
