"""How an account is shown to its merchant, after the proof of each of its addresses was checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct
from sqlalchemy import literal_column, select

from cambist.db.models import Account
from cambist.db.structs import AnyRow, AnySelect
from cambist.services.addresses.macs import AddressMacs


class AccountAddress(Struct, frozen=True, kw_only=True, rename="camel"):
    """Where an account takes deposits on one chain. All chains of a family have the same address."""

    chain: str
    address: str


class AccountView(Struct, frozen=True, kw_only=True, rename="camel"):
    """An account. ``deposit_url`` is the page that shows its addresses; nobody should pay to one that is not active."""

    account_id: str
    external_id: str
    addresses: Sequence[AccountAddress]
    deposit_url: str
    is_active: bool
    metadata: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime


class StoredAddress(Struct, frozen=True):
    """One of an account's chains as the database's JSON tells it; ``mac`` is hexadecimal."""

    chain: str
    address: str
    mac: str


_addresses = msgspec.json.Decoder(list[StoredAddress])

_ADDRESSES = """
    coalesce((
        SELECT json_agg(json_build_object('chain', c.chain, 'address', a.address, 'mac', encode(c.address_mac, 'hex'))
                        ORDER BY c.chain)
        FROM account_chains c JOIN addresses a ON a.id = c.address_pk WHERE c.account_pk = accounts.id
    ), '[]')::text
"""

ACCOUNTS: AnySelect = select(
    Account.id,
    Account.account_id,
    Account.public_id,
    Account.project_pk,
    Account.mode,
    Account.external_id,
    literal_column("accounts.metadata::text").label("metadata"),
    Account.is_active,
    Account.created_at,
    Account.updated_at,
    literal_column(_ADDRESSES).label("addresses"),
)
"""Accounts with what ``verified`` and ``Presenter`` read."""


def verified(row: AnyRow, macs: AddressMacs) -> Sequence[AccountAddress]:
    """Return the addresses of an account, a row of ``ACCOUNTS``, by chain.

    Raises UnavailableError where one of them is not what the account was given.
    """
    stored = _addresses.decode(row.addresses)
    for one in stored:
        macs.check_account(proven(row, one.chain, one.address), bytes.fromhex(one.mac))
    return [AccountAddress(chain=one.chain, address=one.address) for one in stored]


def proven(row: AnyRow, chain: str, address: str) -> Mapping[str, Any]:
    """Return what the proof of an account's address on one chain is about."""
    return {
        "account_id": row.account_id,
        "public_id": row.public_id,
        "mode": row.mode,
        "external_id": row.external_id,
        "chain": chain,
        "address": address,
    }


class Presenter(Struct, frozen=True, kw_only=True):
    """Shows accounts. ``base_url`` is where customers reach the gateway's pages."""

    macs: AddressMacs
    base_url: str

    def view(self, row: AnyRow) -> AccountView:
        """Show a row of ``ACCOUNTS``. Raises UnavailableError for an address that was changed."""
        return AccountView(
            account_id=row.account_id,
            external_id=row.external_id,
            addresses=verified(row, self.macs),
            deposit_url=f"{self.base_url}/account/{row.public_id}",
            is_active=row.is_active,
            # JSON that came out of the database goes into the answer as it is.
            metadata=None if row.metadata is None else cast("dict[str, Any]", Raw(row.metadata.encode())),
            created_at=row.created_at,
            updated_at=row.updated_at,
        )
