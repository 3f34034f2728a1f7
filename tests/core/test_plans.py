"""Plans: who has which, and what they do not allow."""

from __future__ import annotations

import asyncio

import pytest

from cambist.domain.plans import BUILT_IN
from cambist.services.errors import ForbiddenError
from cambist.services.identity import plan_catalog, plans
from cambist.services.identity.plan_catalog import NewPlan


@pytest.fixture
def merchant(payment_env):
    return payment_env.live.merchant_pk


async def make(payment_env, **wanted):
    new = NewPlan(**{"name": "Small", "has_tracker": True, "max_webhooks": 2, "max_addresses": 5} | wanted)
    async with payment_env.db.transaction() as conn:
        return await plan_catalog.make_plan(
            conn, payment_env.registry, new, ids=payment_env.ids, now=payment_env.clock.now()
        )


async def give(payment_env, plan_id):
    async with payment_env.db.transaction() as conn:
        return await plan_catalog.give_plan(conn, "mer_1", plan_id)


async def plan_of(payment_env, merchant):
    async with payment_env.db.autocommit() as conn:
        return await plans.plan_of(conn, merchant)


async def track(payment_env, project, webhook_id, *addresses, active=True):
    """Insert a tracker, unless the plan has no room for it."""
    async with payment_env.db.transaction() as conn:
        await plans.require_webhook(conn, project, "memory")
        made = await conn.exec_driver_sql(
            "INSERT INTO trackers (webhook_id, project_pk, mode, chain, scope, url, name, start_block, max_addresses,"
            " is_active, token_hash, token_encrypted, secret_encrypted)"
            " VALUES ($1, $2, $3, 'memory', 0, 'https://shop.example', 'Hook', 0, 10, $4, $5, '', '') RETURNING id",
            (webhook_id, project.project_pk, project.mode, active, webhook_id.encode()),
        )
        tracker = made.scalar_one()
        for address in addresses:
            await conn.exec_driver_sql(
                "INSERT INTO tracker_addresses (tracker_pk, chain, scope, address) VALUES ($1, 'memory', 0, $2)",
                (tracker, address),
            )


async def set_active(payment_env, webhook_id, active):
    async with payment_env.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE trackers SET is_active = $2 WHERE webhook_id = $1", (webhook_id, active))


async def test_the_built_in_plan_is_everybodys_until_another_is_the_default(payment_env, merchant):
    assert await plan_of(payment_env, merchant) == BUILT_IN
    assert (BUILT_IN.has_tracker, BUILT_IN.chains, BUILT_IN.webhooks_max, BUILT_IN.addresses_max) == (
        True,
        None,
        10,
        1_000,
    )
    small = await make(payment_env)
    assert await plan_of(payment_env, merchant) == BUILT_IN
    await make(payment_env, name="Default", is_default=True)
    assert (await plan_of(payment_env, merchant)).name == "Default"
    await give(payment_env, small.plan_id)
    assert (await plan_of(payment_env, merchant)).name == "Small"
    other = await payment_env.merchant("mer_2")
    assert (await plan_of(payment_env, other)).name == "Default"


async def test_active_trackers_take_room_in_their_mode_and_others_none(payment_env, merchant):
    await give(payment_env, (await make(payment_env)).plan_id)
    await track(payment_env, payment_env.live, "whk_1", "a", "b", "c")
    await track(payment_env, payment_env.live, "whk_2", "a")
    with pytest.raises(ForbiddenError) as refused:
        await track(payment_env, payment_env.live, "whk_3")
    assert refused.value.code == "PLAN_LIMIT"
    assert refused.value.message == "Your plan Small allows 2 active webhooks (maxWebhooks), and you have 2."
    await track(payment_env, payment_env.test, "whk_4", "a")
    await track(payment_env, payment_env.test2, "whk_5", "a", "b")
    with pytest.raises(ForbiddenError, match="you have 2"):
        await track(payment_env, payment_env.test2, "whk_6")
    await set_active(payment_env, "whk_2", active=False)
    async with payment_env.db.autocommit() as conn:
        live, sandbox = [await plans.use_of(conn, merchant, mode) for mode in ("live", "sandbox")]
    assert (live.webhooks, live.addresses, live.addresses_most) == (1, 3, 3)
    assert (sandbox.webhooks, sandbox.addresses, sandbox.addresses_most) == (2, 3, 2)
    await track(payment_env, payment_env.live, "whk_3")


async def test_trackers_that_are_made_at_once_do_not_pass_the_limit(payment_env):
    await give(payment_env, (await make(payment_env, max_webhooks=3)).plan_id)
    made = await asyncio.gather(
        *(track(payment_env, payment_env.live, f"whk_{number}") for number in range(8)), return_exceptions=True
    )
    assert sum(result is None for result in made) == 3
    assert sum(isinstance(result, ForbiddenError) for result in made) == 5


async def test_who_is_given_a_smaller_plan_keeps_what_there_is_and_adds_nothing(payment_env, merchant):
    for number in range(3):
        await track(payment_env, payment_env.live, f"whk_{number}", "a", "b")
    await give(payment_env, (await make(payment_env, max_webhooks=1, max_addresses=1)).plan_id)
    with pytest.raises(ForbiddenError, match=r"allows 1 active webhooks .* you have 3"):
        await track(payment_env, payment_env.live, "whk_4")
    async with payment_env.db.autocommit() as conn:
        used = await plans.use_of(conn, merchant, "live")
        plan = await plans.plan_of(conn, merchant)
    assert (used.webhooks, used.addresses) == (3, 6)
    with pytest.raises(ForbiddenError, match=r"1 addresses for each webhook \(maxAddresses\), and not 3"):
        plans.require_addresses(plan, 2 + 1)
    plans.require_addresses(plan, 1)


async def test_a_plan_says_on_which_chains_trackers_are_and_whether_there_are_any(payment_env):
    await give(payment_env, (await make(payment_env, chains=("other", "memory"))).plan_id)
    plan = await plan_of(payment_env, payment_env.live.merchant_pk)
    plans.require_tracker(plan, "memory")
    with pytest.raises(ForbiddenError) as refused:
        plans.require_tracker(plan, "simulated")
    assert refused.value.message == "Your plan Small allows trackers on other, memory (chains), and not on simulated."
    plans.require_addresses(plan, 5)
    with pytest.raises(ForbiddenError, match=r"5 addresses for each webhook \(maxAddresses\), and not 6"):
        plans.require_addresses(plan, 6)
    await give(payment_env, (await make(payment_env, name="None", has_tracker=False)).plan_id)
    with pytest.raises(ForbiddenError, match="hasTracker is false") as refused:
        await track(payment_env, payment_env.live, "whk_1")
    assert refused.value.code == "PLAN_LIMIT"
