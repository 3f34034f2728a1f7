"""What came to an account: its deposits page by page, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from msgspec import Struct
from sqlalchemy import case, func, literal_column, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Account, Address, Cursor, Deposit
from cambist.db.structs import AnyRow, AnySelect
from cambist.domain.money import format_units
from cambist.services.listing import ALWAYS, Listed, ListOf, Part, Period, read_list

from .read import find_pk
from .snapshots import FiatValue, show


class DepositStatus(StrEnum):
    """What has become of a deposit to an account."""

    DETECTED = "detected"
    CONFIRMED = "confirmed"
    ORPHANED = "orphaned"


class AccountDeposit(Struct, frozen=True, kw_only=True, rename="camel"):
    """A transfer to an account's address.

    ``counted`` is False where it does not count for the account: ``held_reason`` says why, ``resolution`` what was
    decided, and ``held_amount`` what is still to be decided about. ``incarnation`` counts how often it was mined.
    ``fiat`` is what it was worth when it was first seen; ``fiat_reason`` is ``pending`` while a price is waited for,
    and ``no_price`` where one will not come.
    """

    deposit_id: str
    account_id: str
    external_id: str
    chain: str
    token: str
    contract_address: str | None
    decimals: int
    amount: str
    address: str
    from_address: str | None
    tx_hash: str
    status: DepositStatus
    counted: bool
    held_amount: str
    held_reason: str | None
    resolution: str | None
    confirmations: int
    required_confirmations: int
    incarnation: int
    fiat: Sequence[FiatValue]
    fiat_reason: str | None
    seen_at: datetime
    mined_at: datetime
    confirmed_at: datetime | None
    orphaned_at: datetime | None


class AssetBalance(Struct, frozen=True, kw_only=True, rename="camel"):
    """What an account has received of one token.

    ``balance`` is confirmed and counts for the account, ``pending`` was seen and waits for confirmations, ``held``
    waits for a decision. All that is credited is the merchant's: what was paid out of it is not subtracted here.
    """

    chain: str
    token: str
    contract_address: str | None
    decimals: int
    balance: str
    pending: str
    held: str
    deposits: int


class Wanted(Struct, frozen=True, kw_only=True):
    """Which deposits are wanted."""

    status: DepositStatus | None = None
    chain: str | None = None
    token: str | None = None


_counted = or_(Deposit.matches, func.coalesce(Deposit.resolution, "") == "accepted")
_held = Deposit.units - Deposit.available_units - Deposit.returned_units
_confirmed = Deposit.status == "confirmed"

_SELECT: AnySelect = (
    select(
        Deposit.deposit_id,
        Account.account_id,
        Account.external_id,
        Deposit.chain,
        Deposit.token,
        Deposit.contract,
        Deposit.decimals,
        Deposit.units,
        Address.address,
        Deposit.sender,
        Deposit.tx_id,
        Deposit.status,
        _counted.label("counted"),
        case((_confirmed, _held), else_=0).label("held_units"),
        Deposit.held_reason,
        Deposit.resolution,
        Deposit.height,
        Cursor.head,
        Deposit.required_confirmations,
        Deposit.incarnation,
        literal_column("deposits.fiat::text").label("fiat"),
        Deposit.fiat_reason,
        Deposit.detected_at,
        Deposit.mined_at,
        Deposit.confirmed_at,
        Deposit.orphaned_at,
    )
    .join(Account, Account.id == Deposit.account_pk)
    .join(Address, Address.id == Deposit.address_pk)
    .outerjoin(Cursor, (Cursor.chain == Deposit.chain) & (Cursor.scope == Deposit.scope))
)


_LIST = ListOf(Deposit.id, Deposit.first_seen_at)


async def list_deposits(  # noqa: PLR0913, PLR0917  what is wanted of whom
    conn: AsyncConnection, project_pk: int, account_id: str, wanted: Wanted, part: Part, period: Period = ALWAYS
) -> Listed[AccountDeposit]:
    """Return one part of what came to an account, orphaned deposits included. Raises NotFoundError."""
    account_pk = await find_pk(conn, project_pk, account_id)
    filters = {Deposit.status: wanted.status, Deposit.chain: wanted.chain, Deposit.token: wanted.token}
    own = {Deposit.account_pk: account_pk}
    return await read_list(conn, _SELECT, _view, _LIST, part, own=own, filters=filters, period=period)


async def find_deposit(conn: AsyncConnection, account_pk: int, chain: str, tx_id: str) -> AccountDeposit | None:
    """Return the first deposit that a transaction brought to an account, or None where it is not stored yet."""
    wanted = _SELECT.where(Deposit.account_pk == account_pk, Deposit.chain == chain, Deposit.tx_id == tx_id)
    row = (await conn.execute(wanted.order_by(Deposit.id).limit(1))).one_or_none()
    return None if row is None else _view(row)


async def balances(conn: AsyncConnection, project_pk: int, account_id: str) -> Sequence[AssetBalance]:
    """Return what an account has received of each token, by chain and token. Raises NotFoundError.

    Tokens of which nothing has come, or nothing that still stands, are left out.
    """
    account_pk = await find_pk(conn, project_pk, account_id)
    kept = Deposit.available_units - Deposit.released_units
    asset = Deposit.chain, Deposit.contract, Deposit.token, Deposit.decimals
    rows = await conn.execute(
        select(
            *asset,
            func.sum(case((_confirmed, kept), else_=0)).label("balance"),
            func.sum(case((_counted & ~_confirmed, Deposit.units), else_=0)).label("pending"),
            func.sum(case((_confirmed, _held), else_=0)).label("held"),
            func.count().label("deposits"),
        )
        .where(Deposit.account_pk == account_pk, Deposit.status != "orphaned")
        .group_by(*asset)
        .order_by(Deposit.chain, Deposit.token, Deposit.contract)
    )
    return [_balance(row) for row in rows]


def _balance(row: AnyRow) -> AssetBalance:
    return AssetBalance(
        chain=row.chain,
        token=row.token,
        contract_address=row.contract,
        decimals=row.decimals,
        balance=format_units(int(row.balance), row.decimals),
        pending=format_units(int(row.pending), row.decimals),
        held=format_units(int(row.held), row.decimals),
        deposits=row.deposits,
    )


def _view(row: AnyRow) -> AccountDeposit:
    stands = row.status != DepositStatus.ORPHANED
    return AccountDeposit(
        deposit_id=row.deposit_id,
        account_id=row.account_id,
        external_id=row.external_id,
        chain=row.chain,
        token=row.token,
        contract_address=row.contract,
        decimals=row.decimals,
        amount=format_units(row.units, row.decimals),
        address=row.address,
        from_address=row.sender,
        tx_hash=row.tx_id,
        status=DepositStatus(row.status),
        counted=row.counted,
        held_amount=format_units(int(row.held_units), row.decimals),
        held_reason=row.held_reason,
        resolution=row.resolution,
        confirmations=max(0, (row.head or row.height) - row.height) if stands else 0,
        required_confirmations=row.required_confirmations,
        incarnation=row.incarnation,
        fiat=show(row.fiat, row.units, row.decimals),
        fiat_reason=row.fiat_reason,
        seen_at=row.detected_at,
        mined_at=row.mined_at,
        confirmed_at=row.confirmed_at if stands else None,
        orphaned_at=row.orphaned_at,
    )
