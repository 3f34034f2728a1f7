"""Main wallets, one per merchant, family and mode: ``m/44'/coin'/merchant'/1/0``; and the platform's gas stations."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.branches import WALLET_BRANCH
from cambist.plugin import AddressFamily

from .account_keys import AccountKeys, derived

# Statements in which the purpose is a constant: only then is the small index of our own addresses found.
_FIND = "SELECT id, address FROM addresses WHERE mode = $1 AND family = $2 AND merchant_pk = $3 AND purpose = 'wallet'"
_GAS_STATION = "SELECT id, address FROM addresses WHERE mode = $1 AND family = $2 AND purpose = 'gas'"
_INSERT = (
    "INSERT INTO addresses (mode, family, address, purpose, merchant_pk, account_index, change, address_index)"
    " VALUES ($1, $2, $3, 'wallet', $4, $5, $6, 0) ON CONFLICT DO NOTHING"
)


class OwnAddress(Struct, frozen=True):
    """An address of ours. ``pk`` is for statements."""

    pk: int
    address: str


async def main_wallet(
    conn: AsyncConnection, keys: AccountKeys, family: AddressFamily, merchant_pk: int, mode: str
) -> OwnAddress:
    """Return the merchant's main wallet, which comes into being when it is first asked for.

    Raises KeysUnavailableError while the merchant has no key of the family's coin type yet, and NotDerivedError.
    """
    wanted = (mode, family.name, merchant_pk)
    row = (await conn.exec_driver_sql(_FIND, wanted)).one_or_none()
    if row is None:
        key = await keys.get(conn, merchant_pk, mode, family.coin_type)
        address = derived(family, key.xpub, change=WALLET_BRANCH, index=0)
        await conn.exec_driver_sql(_INSERT, (mode, family.name, address, merchant_pk, key.account_index, WALLET_BRANCH))
        row = (await conn.exec_driver_sql(_FIND, wanted)).one()
    return OwnAddress(row.id, row.address)


async def known_wallet(conn: AsyncConnection, family: str, merchant_pk: int, mode: str) -> OwnAddress | None:
    """Return the merchant's main wallet, or None where nobody has asked for it yet, and so nobody can know it."""
    row = (await conn.exec_driver_sql(_FIND, (mode, family, merchant_pk))).one_or_none()
    return None if row is None else OwnAddress(row.id, row.address)


async def gas_station(conn: AsyncConnection, family: str, mode: str) -> OwnAddress | None:
    """Return the address that pays fees for a family's chains, or None before the worker has made it known."""
    row = (await conn.exec_driver_sql(_GAS_STATION, (mode, family))).first()
    return None if row is None else OwnAddress(row.id, row.address)
