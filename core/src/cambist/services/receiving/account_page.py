"""What an account's hosted page is drawn from: its addresses, and the newest of what came to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct
from sqlalchemy import and_, case, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Account, AccountChain, Address, CoinSettings, Cursor, Deposit, Merchant, Project
from cambist.db.structs import AnyRow, columns_of, to_struct
from cambist.plugin import Units
from cambist.services.addresses.macs import AddressMacs

from .accounts.views import proven

DEPOSITS_SHOWN_MAX = 20
"""A permanent address has a history without end; the newest are what its owner looks for."""


DepositStatus: TypeAlias = Literal["detected", "confirmed", "orphaned"]


class PageChain(Struct, frozen=True, kw_only=True):
    """A chain on which the account takes deposits. ``read_at`` is when the gateway last looked at it, if ever.

    ``least`` are the least amounts that count, by token's symbol, where the merchant asks for more than the chain does.
    """

    chain: str
    address: str
    read_at: datetime | None
    least: Mapping[str, Units]


class PageDeposit(Struct, frozen=True, kw_only=True):
    """A transfer to one of the account's addresses.

    ``head`` is the newest block known of its own chain. ``matches`` is False where it does not count for the account.
    """

    chain: str
    token: str
    decimals: int
    units: Units
    tx_id: str
    height: int
    head: int | None
    finalized: int | None
    required_confirmations: int
    status: DepositStatus
    matches: bool
    mined_at: datetime

    @property
    def confirmed(self) -> bool:
        return self.status == "confirmed"


class AccountPage(Struct, frozen=True, kw_only=True):
    """An account as whoever has its link may see it: neither who the end user is, nor what the merchant noted.

    ``deposits`` are the newest ``DEPOSITS_SHOWN_MAX``, newest first; ``has_earlier`` says that there are more.
    ``chains`` are there whether or not the account is active: what is shown of them, its page decides.
    """

    public_id: str
    shop_name: str
    mode: str
    is_active: bool
    chains: Sequence[PageChain]
    deposits: Sequence[PageDeposit]
    has_earlier: bool


_ACCOUNT = select(
    Account.id,
    Account.account_id,
    Account.public_id,
    Account.external_id,
    Account.mode,
    Account.merchant_pk,
    Account.project_pk,
    # Nobody answers for what comes to the account of a project that was switched off, or of a suspended merchant.
    and_(Account.is_active, Project.is_active, Merchant.suspended_at.is_(None)).label("is_active"),
    Project.name.label("shop_name"),
)
_ACCOUNT = _ACCOUNT.join(Project, Project.id == Account.project_pk).join(Merchant, Merchant.id == Account.merchant_pk)

_SCOPE = case((Account.mode == "sandbox", Account.project_pk), else_=0)

_CHAINS = (
    select(AccountChain.chain, AccountChain.address_mac, Address.address, Cursor.updated_at.label("read_at"))
    .join(Address, Address.id == AccountChain.address_pk)
    .join(Account, Account.id == AccountChain.account_pk)
    .outerjoin(Cursor, and_(Cursor.chain == AccountChain.chain, Cursor.scope == _SCOPE))
    .order_by(AccountChain.created_at, AccountChain.chain)
)

_LEAST = select(CoinSettings.chain, CoinSettings.symbol, CoinSettings.min_deposit).where(
    CoinSettings.min_deposit.is_not(None)
)

# What did not count at first does once the merchant has accepted it for the account.
_COUNTED = or_(Deposit.matches, func.coalesce(Deposit.resolution, "") == "accepted")

_DEPOSITS = (
    select(*columns_of(PageDeposit, Deposit, head=Cursor.head, finalized=Cursor.finalized, matches=_COUNTED))
    .outerjoin(Cursor, and_(Cursor.chain == Deposit.chain, Cursor.scope == Deposit.scope))
    .order_by(Deposit.id.desc())
    .limit(DEPOSITS_SHOWN_MAX + 1)
)


async def load_account_page(conn: AsyncConnection, public_id: str, macs: AddressMacs) -> AccountPage | None:
    """Return the account with this public id, or None where there is none.

    Raises UnavailableError where one of its addresses was changed, which is logged: nobody shall pay to that one.
    """
    account = (await conn.execute(_ACCOUNT.where(Account.public_id == public_id))).one_or_none()
    if account is None:
        return None
    found = (await conn.execute(_CHAINS.where(AccountChain.account_pk == account.id))).all()
    for row in found:
        macs.check_account(proven(account, row.chain, row.address), row.address_mac)
    least = await _least(conn, account)
    rows = (await conn.execute(_DEPOSITS.where(Deposit.account_pk == account.id))).all()
    return AccountPage(
        public_id=account.public_id,
        shop_name=account.shop_name,
        mode=account.mode,
        is_active=account.is_active,
        chains=[
            PageChain(chain=row.chain, address=row.address, read_at=row.read_at, least=least.get(row.chain, {}))
            for row in found
        ],
        deposits=[to_struct(PageDeposit, row) for row in rows[:DEPOSITS_SHOWN_MAX]],
        has_earlier=len(rows) > DEPOSITS_SHOWN_MAX,
    )


async def _least(conn: AsyncConnection, account: AnyRow) -> Mapping[str, Mapping[str, Units]]:
    """Return the least amounts that the merchant asks for, by chain and token's symbol."""
    own = CoinSettings.merchant_pk == account.merchant_pk, CoinSettings.mode == account.mode
    least: dict[str, dict[str, Units]] = {}
    for row in await conn.execute(_LEAST.where(*own)):
        least.setdefault(row.chain, {})[row.symbol] = Units(int(row.min_deposit))
    return least
