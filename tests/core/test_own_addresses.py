"""Gas stations and main wallets are found by an index, however many addresses of payments stand beside them."""

import pytest

from cambist.services.addresses import wallets

PAYMENT_ADDRESSES = 20_000


@pytest.fixture
async def crowded(db):
    """Fill the table with addresses of payments; foreign keys are not looked up meanwhile."""
    async with db.transaction() as conn:
        await conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
        await conn.exec_driver_sql(
            "INSERT INTO addresses (mode, family, address, merchant_pk, account_index, change, address_index)"
            " SELECT 'live', 'evm', n::text, 1, 1, 0, n FROM generate_series(1, $1::int) n",
            (PAYMENT_ADDRESSES,),
        )
    async with db.autocommit() as conn:
        await conn.exec_driver_sql("ANALYZE addresses")
    return db


@pytest.mark.parametrize(
    "statement, values",
    [(wallets._GAS_STATION, ("live", "evm")), (wallets._FIND, ("live", "evm", 1))],
    ids=["the gas station", "a merchant's main wallet"],
)
async def test_it_is_found_without_reading_all_addresses(crowded, statement, values):
    async with crowded.transaction() as conn:
        rows = await conn.exec_driver_sql(f"EXPLAIN {statement}", values)
        plan = "\n".join(rows.scalars())
    assert "ix_addresses_own" in plan
    assert "Seq Scan" not in plan
