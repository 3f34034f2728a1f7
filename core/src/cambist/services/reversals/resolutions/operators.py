"""What waits for a decision at all merchants, and for which project an operator decides.

Operators accept and release: both leave the money with its merchant. They cannot send it anywhere; a refund is the
merchant's own act (``docs/decisions/0044-operators-decide-and-send-nothing.md``).
"""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Account, Deposit, Merchant, Payment, Project
from cambist.db.structs import AnyRow, columns_of, to_struct
from cambist.domain.payments import HeldReason
from cambist.services.actor import Actor
from cambist.services.listing import ALWAYS, Listed, Part, Period, read_list
from cambist.services.paging import read_one

from .read import HELD, LIST, SELECT, ResolutionView, not_found, resolution_view, waiting


class OperatorResolution(Struct, frozen=True, kw_only=True, rename="camel"):
    """A deposit that waits at a merchant. `projectId` is null where it came for no payment and no account."""

    merchant_id: str
    merchant_name: str
    project_id: str | None
    mode: str
    can_release: bool
    deposit: ResolutionView


_PROJECT = func.coalesce(Payment.project_pk, Account.project_pk, func.nullif(Deposit.scope, 0))
_SELECT = (
    SELECT.add_columns(
        Merchant.merchant_id,
        Merchant.name.label("merchant_name"),
        Project.project_id,
        Deposit.mode,
    )
    .join(Merchant, Merchant.id == Deposit.merchant_pk)
    .outerjoin(Project, Project.id == _PROJECT)
)


async def list_everywhere(  # noqa: PLR0913  filters, each by name
    conn: AsyncConnection,
    part: Part,
    *,
    merchant_id: str | None,
    mode: str | None,
    reason: HeldReason | None,
    chain: str | None,
    period: Period = ALWAYS,
) -> Listed[OperatorResolution]:
    """Return one part of what waits for a decision, of all merchants."""
    filters = {Merchant.merchant_id: merchant_id, Deposit.mode: mode, Deposit.chain: chain}
    return await read_list(
        conn, _SELECT, _view, LIST, part, where=HELD, filters=filters, also=waiting(reason), period=period
    )


async def read(conn: AsyncConnection, deposit_id: str) -> OperatorResolution:
    """Return one deposit, also when it is decided about. Raises NotFoundError."""
    return _view(await read_one(conn, _SELECT.where(Deposit.deposit_id == deposit_id), not_found()))


async def actor_of(conn: AsyncConnection, deposit_id: str) -> Actor:
    """Return who decides about a deposit: its project, or for one that came for none the merchant's oldest.

    Raises NotFoundError, also for a merchant that has no project in the deposit's mode.
    """
    of_deposit = (
        select(Deposit.merchant_pk, Deposit.mode, _PROJECT.label("project_pk"))
        .outerjoin(Payment, Payment.id == Deposit.payment_pk)
        .outerjoin(Account, Account.id == Deposit.account_pk)
        .where(Deposit.deposit_id == deposit_id, Deposit.merchant_pk.is_not(None))
    )
    found = await read_one(conn, of_deposit, not_found())
    columns = columns_of(Actor, Project, merchant_id=Merchant.merchant_id, project_pk=Project.id)
    of_merchant = Project.merchant_pk == found.merchant_pk, Project.mode == found.mode
    project = select(*columns).join(Merchant, Merchant.id == Project.merchant_pk).where(*of_merchant)
    if found.project_pk is not None:
        project = project.where(Project.id == found.project_pk)
    oldest = project.order_by(Project.is_active.desc(), Project.id).limit(1)
    return to_struct(Actor, await read_one(conn, oldest, not_found()))


def _view(row: AnyRow) -> OperatorResolution:
    deposit = resolution_view(row)
    return OperatorResolution(
        merchant_id=row.merchant_id,
        merchant_name=row.merchant_name,
        project_id=row.project_id,
        mode=row.mode,
        can_release=deposit.held_amount != "0",
        deposit=deposit,
    )
