"""Budgets of requests to providers: what one process counts, what all count, and what is left without Redis."""

from __future__ import annotations

import asyncio
import signal
from time import perf_counter

import msgspec
import pytest
from redis.asyncio import Redis

from cambist.bootstrap import open_gateway, open_redis
from cambist.budgets import AWAY_S, PREFIX, REDIS_TIMEOUT_S, SharedBudgets
from cambist.plugin import OwnBudgets, PluginContext, ProviderUnavailableError, account_name
from cambist.plugin.budgets import BACKOFF_MAX_S, PAUSE_MAX_S
from tests.support.valkey import mortal_valkey

ACCOUNT = account_name("example", "k3y")


class Sleeper:
    """Lets the clock run for as long as somebody sleeps."""

    def __init__(self, clock):
        self.clock = clock
        self.slept = []

    async def __call__(self, seconds):
        self.slept.append(seconds)
        self.clock.advance(seconds)


async def noted(waits, seconds):
    waits.append(seconds)
    await asyncio.sleep(0)


@pytest.fixture
def sleeper(clock):
    return Sleeper(clock)


@pytest.fixture
async def redis(redis_url):
    async with Redis.from_url(redis_url) as redis:
        yield redis


@pytest.fixture
async def processes(redis_url, clock):
    """Give two processes' budgets, and the list of how long anybody slept."""
    waits = []
    async with Redis.from_url(redis_url) as one, Redis.from_url(redis_url) as two:
        yield [SharedBudgets(redis, clock, lambda seconds: noted(waits, seconds)) for redis in (one, two)], waits


async def refusals(budgets, tries, wait_max_s=0.0):
    """Return the errors of so many requests, asked for in turns of these budgets."""
    found = []
    for number in range(tries):
        try:
            await budgets[number % len(budgets)].take(wait_max_s)
        except ProviderUnavailableError as error:
            found.append(error)
    return found


async def test_no_second_sees_more_requests_than_it_may(clock, sleeper):
    budget = OwnBudgets(clock.monotonic, sleeper).of(ACCOUNT, per_second=4)
    sent = []
    for _ in range(12):
        await budget.take()
        sent.append(clock.monotonic())
    assert all(later - earlier >= 1 for earlier, later in zip(sent, sent[4:], strict=False))
    clock.advance(60)
    await budget.take()
    assert clock.monotonic() - sent[-1] == 60  # nobody waits after a rest
    await budget.take()
    assert sleeper.slept[-1] == 0.25  # but a rest saves nothing up


async def test_a_burst_goes_at_once_after_a_rest(clock, sleeper):
    budget = OwnBudgets(clock.monotonic, sleeper).of(ACCOUNT, per_second=2, burst=3)
    for _ in range(5):
        await budget.take()
    assert sleeper.slept == [0.5, 0.5]
    clock.advance(10)
    sleeper.slept.clear()
    for _ in range(4):
        await budget.take()
    assert sleeper.slept == [0.5]


async def test_those_who_ask_at_once_queue_and_who_would_wait_too_long_is_told_so_at_once(clock):
    waits = []
    budget = OwnBudgets(clock.monotonic, lambda seconds: noted(waits, seconds)).of(ACCOUNT, per_second=1)
    answers = await asyncio.gather(*(budget.take() for _ in range(10)), return_exceptions=True)
    assert waits == [1, 2, 3, 4, 5]
    refused = [one for one in answers if one is not None]
    assert len(refused) == 4
    assert all(isinstance(one, ProviderUnavailableError) and one.retry_after == 6 for one in refused)
    assert "example" in str(refused[0])


async def test_what_is_patient_gets_its_turn_where_what_is_not_queues_without_end(clock):
    waits = []
    budget = OwnBudgets(clock.monotonic, lambda seconds: noted(waits, seconds)).of(ACCOUNT, per_second=1)
    assert len(await refusals([budget], 50, wait_max_s=2)) == 47
    await budget.take()
    assert waits == [1, 2, 3]


async def test_a_paused_account_rests_for_twice_as_long_each_time_up_to_a_ceiling(clock, sleeper):
    budgets = OwnBudgets(clock.monotonic, sleeper)
    budget = budgets.of(ACCOUNT, per_second=10)
    waits = []
    for _ in range(9):
        waits.append(await budget.pause())
        with pytest.raises(ProviderUnavailableError, match="example asked for fewer") as refused:
            await budgets.of(ACCOUNT, per_second=99).take()
        assert refused.value.retry_after == waits[-1]
        clock.advance(waits[-1])
        await budget.take()
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    clock.advance(BACKOFF_MAX_S)
    assert await budget.pause() == 1


async def test_answers_that_were_under_way_when_the_pause_began_count_once(clock, sleeper):
    budget = OwnBudgets(clock.monotonic, sleeper).of(ACCOUNT, per_second=10)
    assert [await budget.pause(wish) for wish in (0, 0, 3, 1)] == [1, 1, 3, 3]
    clock.advance(3)
    assert await budget.pause() == 2


async def test_what_the_server_says_is_waited_for_within_reason(clock, sleeper):
    budget = OwnBudgets(clock.monotonic, sleeper).of(ACCOUNT, per_second=10)
    assert await budget.pause(17) == 17
    clock.advance(16)
    assert await budget.pause(0.5) == 1
    assert await budget.pause(10**9) == PAUSE_MAX_S


async def test_who_waits_while_the_account_is_paused_is_not_sent(clock, redis_url):
    async def sleep(seconds):
        clock.advance(seconds)
        await other.pause(30)

    async with Redis.from_url(redis_url) as here, Redis.from_url(redis_url) as there:
        own, shared = OwnBudgets(clock.monotonic, sleep), SharedBudgets(here, clock, sleep)
        for budgets, theirs in ((own, own), (shared, SharedBudgets(there, clock))):
            budget, other = (one.of(ACCOUNT, per_second=1) for one in (budgets, theirs))
            await budget.take()
            with pytest.raises(ProviderUnavailableError, match="fewer"):
                await budget.take()


def test_a_name_tells_one_key_from_another_and_discloses_none():
    names = [account_name("a", "key"), account_name("a", "other"), account_name("b", "key"), account_name("a", None)]
    assert len(set(names)) == 4
    assert [name.partition(":")[0] for name in names] == ["a", "a", "b", "a"]
    assert not any("key" in name.partition(":")[2] for name in names[:3])
    assert account_name("a", "key") == names[0]


async def test_a_context_counts_by_its_own_clock_unless_it_was_given_budgets(clock):
    lent = {"now": clock.now, "monotonic": clock.monotonic, "random": None, "user_agent": "tests"}
    budget = PluginContext(**lent).budgets.of(ACCOUNT, per_second=1)
    assert len(await refusals([budget], 3)) == 2
    clock.advance(1)
    assert not await refusals([budget], 1)
    given = OwnBudgets(clock.monotonic)
    assert PluginContext(**lent, budgets=given).budgets is given
    assert PluginContext(**lent).budgets is not PluginContext(**lent).budgets


async def test_processes_share_one_budget_and_other_accounts_have_their_own(processes):
    both, _ = processes
    shared = [one.of(ACCOUNT, per_second=0.1, burst=4) for one in both]
    refused = await refusals(shared, 10)
    assert len(refused) == 6
    assert all(9 < one.retry_after <= 10 for one in refused)
    assert not await refusals([both[1].of(account_name("example", "another"), per_second=0.1)], 1)


async def test_processes_queue_in_one_line(processes):
    both, waits = processes
    shared = [one.of(ACCOUNT, per_second=1) for one in both]
    answers = await asyncio.gather(*(shared[number % 2].take() for number in range(10)), return_exceptions=True)
    refused = [one for one in answers if one is not None]
    assert sorted(round(wait) for wait in waits) == [1, 2, 3, 4, 5]
    assert [round(one.retry_after) for one in refused] == [6] * 4


async def test_a_rest_brings_the_requests_back_by_the_servers_clock(processes):
    both, _ = processes
    shared = [one.of(ACCOUNT, per_second=20, burst=2) for one in both]
    assert len(await refusals(shared, 20)) >= 10
    await asyncio.sleep(0.15)
    assert len(await refusals(shared, 2)) == 0


async def test_one_processes_pause_is_everybodys(processes, clock):
    both, _ = processes
    one, two = (budgets.of(ACCOUNT, per_second=1000) for budgets in both)
    assert await one.pause(7) == 7
    (refused,) = await refusals([two], 1)
    assert 6 < refused.retry_after <= 7
    assert 6.5 < await two.pause() <= 7
    assert "fewer" in str(refused)


async def test_pauses_grow_whoever_is_refused(processes, redis, clock):
    both, _ = processes
    shared = [one.of(ACCOUNT, per_second=1000) for one in both]
    waits = []
    for number in range(4):
        waits.append(await shared[number % 2].pause())
        # As if the pause had just passed.
        now, micros = await redis.time()
        await redis.hset(PREFIX + ACCOUNT, "paused_until", now * 1_000_000 + micros - 1)
        clock.advance(60)
    assert waits == [1, 2, 4, 8]


async def test_a_clock_that_was_set_back_stops_nobody(processes, redis):
    both, _ = processes
    now, _ = await redis.time()
    later = (now + 3600) * 1_000_000
    await redis.hset(PREFIX + ACCOUNT, mapping={"free_at": later, "paused_until": later})
    shared = both[0].of(ACCOUNT, per_second=0.1)
    assert len(await refusals([shared], 2)) == 1


async def test_nothing_in_redis_lasts_or_tells_the_key(processes, redis):
    both, _ = processes
    budget = both[0].of(ACCOUNT, per_second=1)
    await budget.take()
    await budget.pause(5)
    (name,) = await redis.keys("*")
    assert name.decode() == PREFIX + ACCOUNT
    assert 0 < await redis.ttl(name) < 1000
    assert "k3y" not in name.decode()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["killed", "stopped"])
async def test_without_redis_each_process_counts_for_itself_and_soon(tmp_path, clock, how):
    with mortal_valkey(tmp_path) as server:
        client = open_redis(server.url)
        budgets = SharedBudgets(client, clock)
        budget = budgets.of(ACCOUNT, per_second=0.1)
        assert len(await refusals([budget], 2)) == 1
        await budget.pause(5)
        if how == "killed":
            server.kill()
        else:
            server._process.send_signal(signal.SIGSTOP)
        clock.advance(5)
        began = perf_counter()
        assert len(await refusals([budget], 20)) == 19
        assert perf_counter() - began < REDIS_TIMEOUT_S + 1
        assert await budget.pause() == 2  # goes on from what was noted here
        if how == "killed":
            server.start()
        else:
            server._process.send_signal(signal.SIGCONT)
        clock.advance(AWAY_S + 1)
        theirs = SharedBudgets(client, clock).of(ACCOUNT, per_second=0.1)
        await theirs.pause(20)
        (refused,) = await refusals([SharedBudgets(client, clock).of(ACCOUNT, per_second=0.1)], 1)
        assert refused.retry_after > 15
        await client.aclose()


async def test_what_is_no_state_in_redis_is_an_outage(processes, redis):
    both, _ = processes
    await redis.set(PREFIX + ACCOUNT, "garbage")
    assert len(await refusals([both[0].of(ACCOUNT, per_second=0.1)], 3)) == 2


COUNTING = """
    from contextlib import asynccontextmanager
    from msgspec import Struct
    from cambist.plugin import SwapPlugin, SwapProvider, account_name, hookimpl

    class Config(Struct, frozen=True, forbid_unknown_fields=True):
        pass

    class Swapper(SwapProvider):
        name = "counting"

        def __init__(self, budget):
            self.budget = budget

        def supports(self, sells, buys): ...
        async def build(self, request, units_min): ...

        async def quote(self, request):
            await self.budget.take(0)

    class Swaps(SwapPlugin[Config]):
        name = "counting"
        api_version = 1
        config_type = Config

        def readers(self, config):
            return []

        @asynccontextmanager
        async def connect(self, config, context):
            yield [Swapper(context.budgets.of(account_name("counting", "key"), per_second=0.1, burst=3))]

    @hookimpl
    def register_swap_providers():
        return [Swaps()]
"""


async def test_web_and_worker_ask_a_provider_within_one_budget(install, gateway_settings, gateway_parts):
    install("counting", COUNTING)
    settings = msgspec.structs.replace(gateway_settings, plugins={"counting": {}})
    async with (
        open_gateway(settings, role="web", parts=gateway_parts) as web,
        open_gateway(settings, role="worker", parts=gateway_parts) as worker,
    ):
        done = [
            await asyncio.gather(*(one.quote(None) for one in gateway.swaps), return_exceptions=True)
            for gateway in (web, worker, web, worker)
        ]
    assert [one[0] is None for one in done] == [True, True, True, False]
