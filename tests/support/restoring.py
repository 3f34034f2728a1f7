"""What tests of a restore do: write down what a treasury's database knows, restore it elsewhere, and compare."""

from __future__ import annotations

from cambist.secrets import SecretsBox
from cambist.services.addresses.account_keys import AccountKeys
from cambist.services.recovery import restore
from cambist.services.recovery.restore import Restorer
from cambist.signer.local import KeystoreXpubs
from tests.support.payment_env import KEYSTORE

GAP = 5
ACCOUNT_GAP = 3


async def manifest_of(treasury):
    """Write down what the database knows, as the worker does; the treasury hands out its addresses by hand."""
    async with treasury.db.transaction() as conn:
        await conn.exec_driver_sql(
            "UPDATE account_keys SET next_index = $1 WHERE mode = 'live' AND merchant_pk IS NOT NULL",
            (treasury._index + 1,),
        )
        return await restore.compose(conn, treasury.registry, treasury.clock.now())


def restorer(treasury, database, *, keystore=KEYSTORE, gap=GAP):
    box = SecretsBox([b"\1" * 32], treasury.ids.random_bytes)
    return Restorer(
        db=database,
        registry=treasury.registry,
        chains={treasury.info.id: treasury.chain},
        signer=KeystoreXpubs(keystore),
        box=box,
        keys=AccountKeys(box),
        clock=treasury.clock,
        ids=treasury.ids,
        gap=gap,
        account_gap=ACCOUNT_GAP,
    )


async def money(database):
    """Return what each merchant has of each asset, all places together, and where it lies."""
    async with database.transaction() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT m.merchant_id, a.asset, CASE WHEN a.debit_normal THEN a.purpose ELSE 'owned' END AS what,"
            " sum(CASE WHEN a.debit_normal THEN -a.balance ELSE a.balance END) AS units FROM ledger_accounts a"
            " JOIN merchants m ON m.id = a.merchant_pk WHERE a.mode = 'live' AND a.asset <> 'cpt'"
            " AND a.purpose NOT LIKE 'float%' GROUP BY 1, 2, 3"
        )
        return {(row.merchant_id, row.asset, row.what): int(row.units) for row in rows if row.units}


async def addresses(database):
    async with database.transaction() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT a.address, a.purpose, m.merchant_id FROM addresses a LEFT JOIN merchants m ON m.id = a.merchant_pk"
            " WHERE a.mode = 'live'"
        )
        return {row.address: (row.purpose, row.merchant_id) for row in rows}
