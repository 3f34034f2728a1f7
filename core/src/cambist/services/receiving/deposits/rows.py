"""A deposit as it is stored: where its parts lie, and whose they are."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import Row

from cambist.plugin import Units
from cambist.services.accounting.ledger import PLATFORM, Account, Purpose, asset_key

_CUSTODY = {"payment": Purpose.CUSTODY_DEPOSITS, "wallet": Purpose.CUSTODY_WALLET, "gas": Purpose.CUSTODY_GAS}


class DepositRow(Struct, frozen=True, kw_only=True):
    """A deposit as it is stored, with its asset's name in the ledger. ``purpose`` is that of its address."""

    id: int
    deposit_id: str
    merchant_pk: int
    purpose: str
    payment_pk: int | None
    asset: str
    units: Units
    available_units: Units
    returned_units: Units
    released_units: Units
    resolution: str | None
    status: str
    incarnation: int
    height: int
    mined_at: datetime
    tx_id: str

    @property
    def held_units(self) -> Units:
        """Return what of it is still held; nothing where it is not confirmed."""
        return Units(self.units - self.available_units - self.returned_units if self.status == "confirmed" else 0)

    @property
    def custody(self) -> Account:
        """Return the account that says where on the chain it lies."""
        return self.account(_CUSTODY[self.purpose])

    @property
    def owed(self) -> Account:
        """Return the account that says whose it is before anything else is decided."""
        return self.account(Purpose.FLOAT if self.purpose == "gas" else Purpose.HELD)

    def account(self, purpose: Purpose) -> Account:
        """Return the merchant's account of this purpose in the deposit's asset."""
        return Account(self.merchant_pk, self.asset, purpose)

    @property
    def reference(self) -> str:
        """The life of the deposit that a posting is about: one that comes back is credited again, once."""
        return f"{self.deposit_id}:{self.incarnation}"


COLUMNS = (
    "d.id, d.deposit_id, d.merchant_pk, d.payment_pk, d.matches, d.chain, d.contract, d.units, d.available_units,"
    " d.returned_units, d.released_units, d.resolution, d.status, d.incarnation, d.height, d.mined_at, d.tx_id,"
    " (SELECT purpose FROM addresses WHERE addresses.id = d.address_pk) AS purpose"
)
"""What ``deposit_row`` reads, of a table that goes by ``d``."""


def deposit_row(row: Row[Any]) -> DepositRow:
    """Read a row of ``COLUMNS``."""
    return DepositRow(
        id=row.id,
        deposit_id=row.deposit_id,
        merchant_pk=row.merchant_pk or PLATFORM,
        purpose=row.purpose,
        payment_pk=row.payment_pk,
        asset=asset_key(row.chain, row.contract),
        units=Units(int(row.units)),
        available_units=Units(int(row.available_units)),
        returned_units=Units(int(row.returned_units)),
        released_units=Units(int(row.released_units)),
        resolution=row.resolution,
        status=row.status,
        incarnation=row.incarnation,
        height=row.height,
        mined_at=row.mined_at,
        tx_id=row.tx_id,
    )
