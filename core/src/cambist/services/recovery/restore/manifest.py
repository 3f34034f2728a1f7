"""The recovery manifest: what seed and chains do not tell. It holds no secret, but people's names and addresses.

.. code-block:: json

    {"version": 1, "madeAt": "...",
     "families":  [{"family": "evm", "coinType": 60, "gasStation": "0x..."}],
     "merchants": [{"merchantId": "mer_...", "email": "...", "name": "...", "live": true, "account": 7,
                    "indexes": {"live/60": 120, "sandbox/60": 3}, "floats": {"ethereum": "21000000000000"},
                    "overdrawn": {"tron": "5000000"}}],
     "chains":    [{"chain": "ethereum", "firstHeight": 19000000}]}

``indexes`` are the first deposit indexes that were never handed out. ``floats`` say how much of a main wallet's
native coin is the platform's, for fees; below zero where fees were paid out of the merchant's. ``overdrawn`` is how
much of them was paid out for the merchant, whose own coin had not been collected yet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from sqlalchemy import Text as SqlText
from sqlalchemy import and_, cast, func, or_, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import AccountKey, Address, Cursor, Deposit, LedgerAccount, Merchant
from cambist.registry import Registry

BYTES_MAX = 2**30
ACCOUNTS_MAX = 1_000_000
INDEX_MAX = 2**31

Text = Annotated[str, Meta(min_length=1, max_length=512)]
Height = Annotated[int, Meta(ge=0, lt=2**53)]


class RestoreError(Exception):
    """A restore cannot begin, or cannot go on; the message is a sentence for the operator."""


class Family(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """A family of addresses. Its gas station tells whether the keystore is the one that everything came from."""

    family: Text
    coin_type: Annotated[int, Meta(ge=0, lt=2**31)]
    gas_station: Text | None


class MerchantEntry(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """A merchant, the account of the seed that its addresses come from, and whether it has live mode.

    ``suspension_reason`` is why the operator has suspended it, where that is so.
    """

    merchant_id: Text
    email: Text
    name: Text
    live: bool = False
    suspension_reason: Annotated[str, Meta(min_length=1, max_length=2_000)] | None = None
    account: Annotated[int, Meta(ge=1, le=ACCOUNTS_MAX)]
    indexes: dict[Annotated[str, Meta(pattern=r"^(live|sandbox)/[0-9]{1,10}$")], Annotated[int, Meta(ge=0, le=2**31)]]
    floats: dict[Text, Annotated[str, Meta(pattern=r"^-?[0-9]{1,78}$")]] = {}
    overdrawn: dict[Text, Annotated[str, Meta(pattern=r"^[0-9]{1,78}$")]] = {}


class ChainEntry(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """A chain, and the first height at which there can be money of ours."""

    chain: Text
    first_height: Height


class Manifest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """Everything that a restore needs besides the seed and the chains."""

    version: Literal[1] = 1
    made_at: datetime | None = None
    families: Sequence[Family] = ()
    merchants: Sequence[MerchantEntry]
    chains: Sequence[ChainEntry]


_MERCHANTS = (
    select(
        *(Merchant.merchant_id, Merchant.email, Merchant.name, Merchant.live, Merchant.suspension_reason),
        func.min(AccountKey.account_index).label("account"),
        func.jsonb_object_agg(
            AccountKey.mode + "/" + cast(AccountKey.coin_type, SqlText), AccountKey.next_index, type_=JSONB
        ).label("indexes"),
    )
    .join(AccountKey, AccountKey.merchant_pk == Merchant.id)
    .group_by(Merchant.id)
    .order_by(Merchant.id)
)
# What lies in a wallet is below zero in the ledger: coin of its merchant above it was paid out without being there.
_WALLETS = (
    select(Merchant.merchant_id, LedgerAccount.asset, LedgerAccount.purpose, LedgerAccount.balance)
    .join(Merchant, Merchant.id == LedgerAccount.merchant_pk)
    .where(
        LedgerAccount.mode == "live",
        LedgerAccount.asset.endswith("/native"),
        or_(
            and_(LedgerAccount.purpose == "float_wallet", LedgerAccount.balance != 0),
            and_(LedgerAccount.purpose == "custody_wallet", LedgerAccount.balance > 0),
        ),
    )
)
_first_deposit = select(func.min(Deposit.height)).where(Deposit.chain == Cursor.chain, Deposit.scope == Cursor.scope)
_CHAINS = (
    select(Cursor.chain, func.least(Cursor.height, _first_deposit.scalar_subquery() - 1).label("first_height"))
    .where(Cursor.scope == 0)
    .order_by(Cursor.chain)
)
_STATIONS = select(Address.family, Address.address).where(Address.mode == "live", Address.purpose == "gas")


async def compose(conn: AsyncConnection, registry: Registry, now: datetime) -> Manifest:
    stations = {row.family: row.address for row in await conn.execute(_STATIONS)}
    families = [
        Family(family=family.name, coin_type=family.coin_type, gas_station=stations.get(family.name))
        for family in registry.families.values()
    ]
    floats, overdrawn = defaultdict[str, dict[str, str]](dict), defaultdict[str, dict[str, str]](dict)
    for row in await conn.execute(_WALLETS):
        chain, _, _ = row.asset.partition("/")
        if row.purpose == "float_wallet":
            floats[row.merchant_id][chain] = str(-row.balance)
        else:
            overdrawn[row.merchant_id][chain] = str(row.balance)
    merchants = [
        MerchantEntry(
            **row._mapping,  # noqa: SLF001  SQLAlchemy's public name
            floats=floats[row.merchant_id],
            overdrawn=overdrawn[row.merchant_id],
        )
        for row in await conn.execute(_MERCHANTS)
    ]
    chains = [ChainEntry(chain=row.chain, first_height=max(0, row.first_height)) for row in await conn.execute(_CHAINS)]
    return Manifest(made_at=now, families=families, merchants=merchants, chains=chains)


def by_hand(registry: Registry, accounts: range, indexes: int, first_heights: Mapping[str, int]) -> Manifest:
    """Return a manifest for who lost it: so many deposit indexes of each of these accounts, whoever had them."""
    coin_types = sorted({family.coin_type for family in registry.families.values()})
    keys = [f"{mode}/{coin_type}" for mode in ("live", "sandbox") for coin_type in coin_types]
    return Manifest(
        merchants=[
            MerchantEntry(
                merchant_id=f"mer_account{account}",
                email=f"account-{account}@restored.invalid",
                name=f"Account {account}",
                live=True,
                account=account,
                indexes=dict.fromkeys(keys, indexes),
            )
            for account in accounts
        ],
        chains=[ChainEntry(chain=chain, first_height=height) for chain, height in first_heights.items()],
    )


def read_manifest(path: Path) -> Manifest:
    """Return the manifest in a file. Raises RestoreError."""
    try:
        with path.open("rb") as stream:
            content = stream.read(BYTES_MAX + 1)
    except OSError as error:
        raise RestoreError(f"The manifest {path} cannot be read: {error.strerror}.") from None
    if len(content) > BYTES_MAX:
        raise RestoreError(f"The manifest {path} is too large.")
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
    except msgspec.DecodeError as error:
        raise RestoreError(f"{path} is no recovery manifest of this version: {error}.") from None
    check(manifest)
    return manifest


def check(manifest: Manifest) -> None:
    """Refuse what contradicts itself. Raises RestoreError."""
    for what, values in (
        ("merchant", [merchant.merchant_id for merchant in manifest.merchants]),
        ("e-mail address", [merchant.email for merchant in manifest.merchants]),
        ("account", [str(merchant.account) for merchant in manifest.merchants]),
        ("chain", [chain.chain for chain in manifest.chains]),
    ):
        if len(set(values)) < len(values):
            raise RestoreError(f"The manifest names a {what} twice.")
