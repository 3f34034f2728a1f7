"""Which plan a merchant has, what is used of it, and what it does not allow.

A merchant without a plan of its own has the default one: the operator's, or the built-in one while there is none.
Who is given a smaller plan keeps what there is, and can add nothing while there is as much as the plan allows, or more.
"""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import ColumnElement, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.structs import columns_of, to_struct
from cambist.domain.plans import BUILT_IN, Plan
from cambist.services.actor import Actor
from cambist.services.errors import ForbiddenError

from .merchants import lock_merchant

PLAN_COLUMNS = columns_of(Plan, models.Plan)


def plan_pk_in_force() -> ColumnElement[int | None]:
    """Return the primary key of the plan that a row of ``merchants`` has; NULL stands for the built-in one."""
    default = select(models.Plan.id).where(models.Plan.is_default).scalar_subquery()
    return func.coalesce(models.Merchant.plan_pk, default)


async def plan_of(conn: AsyncConnection, merchant_pk: int) -> Plan:
    """Return the plan of a merchant."""
    merchant = models.Merchant
    wanted = select(*PLAN_COLUMNS).join(merchant, models.Plan.id == plan_pk_in_force())
    row = (await conn.execute(wanted.where(merchant.id == merchant_pk))).one_or_none()
    return BUILT_IN if row is None else to_struct(Plan, row)


async def default_plan(conn: AsyncConnection) -> Plan:
    """Return the plan of everybody who was given no other."""
    row = (await conn.execute(select(*PLAN_COLUMNS).where(models.Plan.is_default))).one_or_none()
    return BUILT_IN if row is None else to_struct(Plan, row)


class PlanUse(Struct, frozen=True, kw_only=True):
    """What a merchant uses of a plan in one mode: active trackers, their addresses, and the most that one has."""

    webhooks: int
    addresses: int
    addresses_most: int


_USE = """
SELECT count(*) AS webhooks, coalesce(sum(listed), 0)::bigint AS addresses, coalesce(max(listed), 0) AS addresses_most
FROM (
    SELECT (SELECT count(*) FROM tracker_addresses a WHERE a.tracker_pk = t.id) AS listed
    FROM trackers t JOIN projects p ON p.id = t.project_pk
    WHERE p.merchant_pk = $1 AND p.mode = $2 AND t.is_active
) AS active
"""


async def use_of(conn: AsyncConnection, merchant_pk: int, mode: str) -> PlanUse:
    """Return what a merchant uses of the plan in a mode."""
    found = await conn.exec_driver_sql(_USE, (merchant_pk, mode))
    return to_struct(PlanUse, found.one())


async def require_webhook(conn: AsyncConnection, owner: Actor, chain: str) -> Plan:
    """Return the plan if it has room for one more active tracker on a chain, and let nobody else take that room.

    A tracker that is deactivated takes no room, so whoever activates it asks again. The merchant is locked until the
    transaction ends. Raises ForbiddenError.
    """
    await lock_merchant(conn, owner.merchant_pk)
    plan = await plan_of(conn, owner.merchant_pk)
    require_tracker(plan, chain)
    tracker, project = models.Tracker, models.Project
    owned = project.merchant_pk == owner.merchant_pk, project.mode == owner.mode, tracker.is_active
    counted = select(func.count()).select_from(tracker).join(project).where(*owned)
    used = (await conn.execute(counted)).scalar_one()
    if used >= plan.webhooks_max:
        raise plan_limit(
            f"Your plan {plan.name} allows {plan.webhooks_max} active webhooks (maxWebhooks), and you have {used}."
        )
    return plan


def require_tracker(plan: Plan, chain: str) -> None:
    """Refuse trackers on a chain where the plan does not have them. Raises ForbiddenError."""
    if not plan.has_tracker:
        raise plan_limit(f"Your plan {plan.name} has no trackers (hasTracker is false).")
    if not plan.allows_chain(chain):
        allowed = ", ".join(plan.chains or ())
        raise plan_limit(f"Your plan {plan.name} allows trackers on {allowed} (chains), and not on {chain}.")


def require_addresses(plan: Plan, wanted: int) -> None:
    """Refuse more addresses for one tracker than the plan allows, whatever it has now. Raises ForbiddenError."""
    if wanted > plan.addresses_max:
        allowed = f"Your plan {plan.name} allows {plan.addresses_max} addresses for each webhook (maxAddresses)"
        raise plan_limit(f"{allowed}, and not {wanted}.")


def plan_limit(sentence: str) -> ForbiddenError:
    """Return the refusal of what a plan does not allow. The sentence names the limit and its value."""
    return ForbiddenError("PLAN_LIMIT", sentence)
