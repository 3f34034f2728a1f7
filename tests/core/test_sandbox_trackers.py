"""Sandbox trackers see the simulated chains of their project, told in the request that changes them."""

import pytest

from cambist.hints import Hints
from cambist.services.trackers import fan_out as fan_out_module
from cambist.services.trackers.fan_out import FanOut
from tests.support.trackers import Watchers

pytestmark = pytest.mark.slow


def watchers_of(env, actor):
    family = env.registry.chains["memory"].family
    return Watchers(env.db, actor.project_pk, mode="sandbox", scope=actor.project_pk, family=family)


def statuses(told):
    return [one["data"]["status"] for one in told]


async def test_a_simulated_payment_is_told_and_taken_back_as_a_real_one(payment_env):
    mine, other = (watchers_of(payment_env, actor) for actor in (payment_env.test, payment_env.test2))
    made = (await payment_env.create(payment_env.test)).payment
    tracker, strangers = await mine.make([made.deposit_address]), await other.make([made.deposit_address])
    await payment_env.deposit(made.payment_id)
    [seen] = await mine.told(tracker)
    assert (seen["event"], seen["data"]["direction"], seen["data"]["amount"]) == ("transaction.detected", "in", "10")
    await payment_env.reorg(1, transactions="return")
    await payment_env.mine(4)
    assert statuses(await mine.told(tracker)) == ["detected", "orphaned", "detected", "confirmed"]
    assert await other.told(strangers) == []


async def test_what_a_crash_left_untold_is_told_by_the_recurring_job(payment_env, clock, monkeypatch):
    mine = watchers_of(payment_env, payment_env.test)
    made = (await payment_env.create(payment_env.test)).payment
    tracker = await mine.make([made.deposit_address])

    async def dead(*_args, **_kwargs):
        raise ConnectionResetError

    with monkeypatch.context() as patch:
        patch.setattr(fan_out_module, "fan_out", dead)
        with pytest.raises(ConnectionResetError):
            await payment_env.deposit(made.payment_id, confirmations=3)
    assert await mine.told(tracker) == []
    assert await payment_env.sandbox.judge_due(clock.now()) == 1
    assert statuses(await mine.told(tracker)) == ["detected", "confirmed"]
    assert await FanOut(payment_env.db, clock, Hints(None)).drain("memory", payment_env.test.project_pk) == 0
