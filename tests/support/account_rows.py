"""Accounts and their deposits as rows, with the proofs that the gateway makes: for what reads them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from cambist.db.engine import Database
from cambist.domain.branches import PERMANENT_BRANCH
from cambist.plugin import AddressFamily, Token
from cambist.services.addresses.macs import AddressMacs

_ACCOUNT = """
INSERT INTO accounts (account_id, public_id, project_pk, merchant_pk, mode, external_id, metadata)
SELECT $1, $2, id, merchant_pk, mode, $3, '{"note": "a secret of the shop"}'::json FROM projects WHERE id = $4
RETURNING id, merchant_pk, mode
"""
_ADDRESS = """
INSERT INTO addresses (mode, family, address, purpose, merchant_pk, account_pk, account_index, change, address_index)
VALUES ($1, $2, $3, 'account', $4, $5, $6, 2, $7) RETURNING id
"""
_CHAIN = """
INSERT INTO account_chains (account_pk, chain, address_pk, address_mac, created_at) VALUES ($1, $2, $3, $4, $5)
"""
_DEPOSIT = """
INSERT INTO deposits (deposit_id, chain, scope, tx_id, position, mode, merchant_pk, address_pk, account_pk, matches,
    token, contract, decimals, units, height, block_hash, ordinal, mined_at, required_confirmations, status)
SELECT 'dep_' || $2, c.chain, 0, $2, '0', a.mode, a.merchant_pk, c.address_pk, a.id, $3, $4, $5, $6, $7, $8, 'hash', 0,
    $9, 3, $10
FROM account_chains c JOIN accounts a ON a.id = c.account_pk WHERE a.public_id = $1 AND c.chain = $11
"""


async def insert_account(
    db: Database,
    macs: AddressMacs,
    family: AddressFamily,
    *,
    project_pk: int,
    chains: list[str],
    now: datetime,
    name: str = "7",
) -> tuple[str, str]:
    """Make an account with one address on these chains of a family; return its public id and the address."""
    index = 1_000 + int(name)
    address = family.derive_address("xpubOfTheShopsAccount", PERMANENT_BRANCH, index)
    account = {"account_id": f"acc_{name}", "public_id": f"pub_a{name}", "external_id": f"carol-{name}"}
    async with db.transaction() as conn:
        row = (await conn.exec_driver_sql(_ACCOUNT, (*account.values(), project_pk))).one()
        address_pk = (
            await conn.exec_driver_sql(_ADDRESS, (row.mode, family.name, address, row.merchant_pk, row.id, 1, index))
        ).scalar_one()
        for number, chain in enumerate(chains):
            mac = macs.of_account({**account, "mode": row.mode, "chain": chain, "address": address})
            at = now + timedelta(seconds=number)
            await conn.exec_driver_sql(_CHAIN, (row.id, chain, address_pk, mac, at))
    return account["public_id"], address


async def insert_deposit(
    db: Database,
    public_id: str,
    token: Token,
    units: int,
    *,
    height: int,
    mined_at: datetime,
    chain: str = "memory",
    tx_id: str = "tx1",
    status: str = "detected",
    matches: bool = True,
) -> None:
    """Have a transfer stand in the chain at a height."""
    values: tuple[Any, ...] = (public_id, tx_id, matches, token.symbol, token.contract, token.decimals, units)
    async with db.transaction() as conn:
        await conn.exec_driver_sql(_DEPOSIT, (*values, height, mined_at, status, chain))


async def give_account(
    treasury: Any, name: str, *, merchant: int | None = None, project: int | None = None
) -> tuple[str, str]:
    """Give an end user of a treasury's merchant an account on its chain; return its public id and its address.

    The address comes from the merchant's keys, so that it can be derived again and spent from.
    """
    merchant, project = merchant or treasury.merchant, project or treasury.project
    treasury._index += 1
    account = {"account_id": f"acc_{name}", "public_id": f"pub_{name}", "external_id": name}
    async with treasury.db.transaction() as conn:
        key = await treasury.keys.get(conn, merchant, "live", treasury.family.coin_type)
        address = treasury.family.derive_address(key.xpub, PERMANENT_BRANCH, treasury._index)
        row = (await conn.exec_driver_sql(_ACCOUNT, (*account.values(), project))).one()
        new = (row.mode, treasury.family.name, address, merchant, row.id, key.account_index, treasury._index)
        address_pk = (await conn.exec_driver_sql(_ADDRESS, new)).scalar_one()
        proven = {**account, "mode": row.mode, "chain": treasury.info.id, "address": address}
        mac = AddressMacs(treasury.box).of_account(proven)
        await conn.exec_driver_sql(_CHAIN, (row.id, treasury.info.id, address_pk, mac, treasury.clock.now()))
    return account["public_id"], address
