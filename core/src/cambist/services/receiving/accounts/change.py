"""Switches accounts off and on. One that is off keeps its addresses: what comes to them is credited all the same."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Account
from cambist.services.actor import Actor

from .read import get_account
from .views import AccountView, Presenter


async def set_active(  # noqa: PLR0913  whose, and what it shall be
    conn: AsyncConnection, actor: Actor, account_id: str, presenter: Presenter, now: datetime, *, is_active: bool
) -> AccountView:
    """Say whether an account's addresses are shown as payable, and return it. Raises NotFoundError.

    Saying the same again changes nothing. After the commit, publish the hint ``account:<public id>``.
    """
    own = Account.account_id == account_id, Account.project_pk == actor.project_pk
    changed = update(Account).where(*own, Account.is_active != is_active)
    await conn.execute(changed.values(is_active=is_active, updated_at=now))
    return await get_account(conn, actor.project_pk, account_id, presenter)
