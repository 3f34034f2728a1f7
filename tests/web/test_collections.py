"""What merchants and the operator see of collections, and of what they cost."""

from __future__ import annotations

from tests.support.web import ADMIN_KEY, refused

PATH = "/api/merchant/wallet/collections"


async def collected(gateway, merchant_id: str) -> None:
    """Insert a finished collection: 50 USDX for a fee of 0.001, and 0.0005 for the gas that was sent before."""
    async with gateway.db.transaction() as conn:
        merchant = await conn.exec_driver_sql("SELECT id FROM merchants WHERE merchant_id = $1", (merchant_id,))
        row = merchant.scalar_one()
        await conn.exec_driver_sql(
            "INSERT INTO addresses (mode, family, address, purpose, merchant_pk, account_index, change, address_index)"
            " VALUES ('live', 'memory', 'mem1from', 'payment', $1, 7, 0, 900)",
            (row,),
        )
        for kind, fee, token, units in (("top_up", 5 * 10**14, "MEM", 1), ("collection", 10**15, "USDX", 50_000_000)):
            await conn.exec_driver_sql(
                "WITH a AS (SELECT id FROM addresses WHERE address = 'mem1from'), i AS (INSERT INTO outbound_intents"
                " (reference, kind, mode, chain, scope, merchant_pk, source_address_pk, recipient_address_pk,"
                " to_address, token, contract, decimals, units, state, due_at, created_at, updated_at, finished_at)"
                " SELECT $1 || ':one', $1, 'live', 'memory', 0, $2, a.id, a.id, 'mem1to', $3, NULL, 6, $4, 'done',"
                " now(), now(), now(), now() + interval '1 minute' FROM a RETURNING id, source_address_pk),"
                " s AS (INSERT INTO"
                " outbound_slots (intent_pk, address_pk, chain, scope, sequence, state, created_at) SELECT id,"
                " source_address_pk, 'memory', 0, $4, 'done', now() FROM i RETURNING id) INSERT INTO outbound_txs"
                " (slot_pk, chain, scope, tx_id, raw, fee_limit, fee_price, fee_extra, state, succeeded, fee_paid,"
                " created_at) SELECT id, 'memory', 0, $1, ''::bytea, 1, 1, 0, 'final', true, $5, now() FROM s",
                (kind, row, token, units, fee),
            )


async def test_a_merchant_sees_what_was_collected_and_what_it_cost_the_platform(client, merchant, gateway):
    assert (await client.get(PATH, headers=merchant.key)).json()["total"] == 0
    await collected(gateway, merchant.merchant_id)
    answer = (await client.get(PATH, headers=merchant.key)).json()
    (found,) = answer["collections"]
    assert (answer["total"], found["amount"], found["token"], found["status"]) == (1, "50", "USDX", "done")
    assert (found["fee"], found["txHash"]) == ({"amount": "0.0015", "token": "MEM"}, "collection")
    assert (await client.get(f"{PATH}?chain=other", headers=merchant.key)).json()["total"] == 0


async def test_the_operator_sees_everybodys(client, merchant, gateway):
    await collected(gateway, merchant.merchant_id)
    path, admin = "/api/admin/collections", {"X-Admin-Key": ADMIN_KEY}
    (found,) = (await client.get(path, headers=admin)).json()["collections"]
    assert found["merchantId"] == merchant.merchant_id
    assert (await client.get(f"{path}?mode=sandbox", headers=admin)).json()["total"] == 0
    refused(await client.get(path, headers=merchant.key), 401, "ADMIN_KEY_INVALID")
