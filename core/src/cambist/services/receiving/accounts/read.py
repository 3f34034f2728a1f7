"""Finds accounts: one of a project's by either of its ids, or a page of them."""

from __future__ import annotations

from collections.abc import Iterable

import structlog
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Account
from cambist.db.structs import one_of
from cambist.services.addresses.macs import AddressMacs, account_not_verified
from cambist.services.errors import NotFoundError
from cambist.services.listing import ALWAYS, Listed, ListOf, Part, Period, read_list
from cambist.services.paging import read_one

from .views import ACCOUNTS, AccountView, Presenter, verified

log = structlog.get_logger(__name__)


def not_found() -> NotFoundError:
    """Return the refusal for an account that is not there, or not this project's."""
    return NotFoundError("ACCOUNT_NOT_FOUND", "There is no such account.")


async def get_account(conn: AsyncConnection, project_pk: int, account_id: str, presenter: Presenter) -> AccountView:
    """Return one of the project's accounts. Raises NotFoundError."""
    wanted = ACCOUNTS.where(Account.account_id == account_id, Account.project_pk == project_pk)
    return presenter.view(await read_one(conn, wanted, not_found()))


async def find_account(conn: AsyncConnection, project_pk: int, external_id: str, presenter: Presenter) -> AccountView:
    """Return the project's account of this end user. Raises NotFoundError."""
    wanted = ACCOUNTS.where(Account.external_id == external_id, Account.project_pk == project_pk)
    return presenter.view(await read_one(conn, wanted, not_found()))


_LIST = ListOf(Account.id, Account.created_at, orders={"externalId": Account.external_id})


async def list_accounts(  # noqa: PLR0913  filters, each by name
    conn: AsyncConnection,
    project_pk: int,
    presenter: Presenter,
    part: Part,
    *,
    is_active: bool | None = None,
    period: Period = ALWAYS,
) -> Listed[AccountView]:
    """Return one part of a project's accounts. ``externalId`` is a further order of them."""
    own, filters = {Account.project_pk: project_pk}, {Account.is_active: is_active}
    return await read_list(conn, ACCOUNTS, presenter.view, _LIST, part, own=own, filters=filters, period=period)


async def check_addresses(conn: AsyncConnection, shown: Iterable[tuple[str, str]], macs: AddressMacs) -> None:
    """Refuse to show addresses as accounts', pairs of account id and address, unless all are proven to be.

    A deposit on a chain that its account does not have came to the address of another chain of the family: that one's
    proof holds for it. Raises UnavailableError.
    """
    pairs = set(shown)
    if not pairs:
        return
    rows = (await conn.execute(ACCOUNTS.where(one_of(Account.account_id, sorted({one for one, _ in pairs}))))).all()
    proven = {(row.account_id, own.address) for row in rows for own in verified(row, macs)}
    for account_id, _ in sorted(pairs - proven):
        log.error("ADDRESS NOT VERIFIED: a deposit's row was changed", account_id=account_id)
        raise account_not_verified()


async def find_pk(conn: AsyncConnection, project_pk: int, account_id: str) -> int:
    """Return the primary key of one of the project's accounts. Raises NotFoundError."""
    wanted = select(Account.id).where(Account.account_id == account_id, Account.project_pk == project_pk)
    pk: int = (await read_one(conn, wanted, not_found())).id
    return pk
