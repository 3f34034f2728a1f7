"""Which endpoint is asked: failover, back-off, those that lag and those that lie, and quorums."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from cambist.plugin import (
    Block,
    ChainError,
    ChainUnavailableError,
    Head,
    InconsistentChainError,
    InvalidAddressError,
    RateLimitedError,
    SpanTooWideError,
    TxStatus,
    UnreadablePayloadError,
)
from cambist.testing.clock import ManualClock
from cambist_chainkit import quorum
from cambist_chainkit.answers import UnsupportedError
from cambist_chainkit.pool import BACKOFF_MAX_S, SURVEY_INTERVAL_S
from cambist_chainkit.quorum import agreed, finally_agreed, most_agree

from .scripted import Scripted, block, pool_of

BROKEN = ChainUnavailableError("broken")


def asking(height: int) -> Callable[[Scripted], Awaitable[Block]]:
    """Return a question for a block."""
    return lambda endpoint: endpoint.block(height)


async def test_the_first_endpoint_is_preferred_as_long_as_it_answers(clock: ManualClock) -> None:
    """The operator's order is kept."""
    one, two = Scripted("one"), Scripted("two")
    pool = pool_of(clock, one, two)
    for _ in range(3):
        async with pool.pin() as endpoint:
            assert endpoint is one


async def test_an_error_that_leaves_the_view_counts_and_the_next_endpoint_is_lent(clock: ManualClock) -> None:
    """Until the first has rested, and then it must show again that it serves the right chain."""
    one, two = Scripted("one"), Scripted("two")
    pool = pool_of(clock, one, two)
    with pytest.raises(ChainUnavailableError, match="broken"):
        async with pool.pin():
            raise BROKEN
    async with pool.pin() as endpoint:
        assert endpoint is two
    assert [(health.name, health.healthy) for health in pool.health()] == [("two", True), ("one", False)]
    asked = one.asked
    clock.advance(1.0)
    pool.blame(two, BROKEN)
    async with pool.pin() as endpoint:
        assert endpoint is one
    assert one.asked == asked + 1


STUMBLES = [
    *(ValueError("digits"), OverflowError("int too large"), KeyError("x"), RecursionError("deep")),
    *(InvalidAddressError("none"), UnreadablePayloadError("bytes")),
]


@pytest.mark.parametrize("stumble", STUMBLES, ids=lambda error: type(error).__name__)
async def test_whatever_an_answer_makes_a_decoder_stumble_over_counts_against_the_endpoint(
    clock: ManualClock, stumble: Exception
) -> None:
    """In a view, among all, in a quorum and in a survey; the next one is asked."""
    one, two, three = Scripted("one"), Scripted("two"), Scripted("three")
    pool = pool_of(clock, one, two, three)
    async with pool.pin():
        pass
    one.error = stumble
    assert await pool.ask_any(asking(5)) == block(5)
    assert [endpoint.name for endpoint in pool.usable()] == ["two", "three"]
    two.error = stumble
    assert await pool.ask_all(asking(5)) == [block(5)]
    assert [endpoint.name for endpoint in pool.usable()] == ["three"]
    with pytest.raises(InconsistentChainError, match=type(stumble).__name__):
        await agreed(pool, two, 2, asking(5))
    three.error = stumble
    clock.advance(SURVEY_INTERVAL_S)
    await pool.survey()
    assert pool.usable() == []


async def test_who_claims_a_head_that_it_has_not_makes_nobody_lag(clock: ManualClock) -> None:
    """Else one number would be enough to be asked before all others, and to be compared with none."""
    one, two, boaster = Scripted("one"), Scripted("two"), Scripted("boaster")
    boaster.claimed = 10**9
    pool = pool_of(clock, one, two, boaster)
    await pool.survey()
    assert pool.usable() == [one, two]
    assert [one.lagging, two.lagging] == [False, False]
    boaster.claimed, boaster.top = None, 200
    clock.advance(SURVEY_INTERVAL_S)
    await pool.survey()
    assert pool.usable() == [boaster, one, two]
    assert one.lagging


async def test_other_errors_are_nobodys_fault(clock: ManualClock) -> None:
    """A bug of the caller's, or a span that must only be narrower."""
    one = Scripted("one")
    pool = pool_of(clock, one)
    for error in (RuntimeError("bug"), SpanTooWideError("too wide")):
        with pytest.raises(type(error)):
            async with pool.pin():
                raise error
    assert (one.strikes, one.failures) == (0, 0)


@pytest.mark.parametrize(
    "error",
    [BROKEN, UnsupportedError("closed"), InconsistentChainError("short"), RateLimitedError("busy")],
    ids=lambda error: type(error).__name__,
)
async def test_the_wait_doubles_with_each_failure_in_a_row_up_to_a_limit(clock: ManualClock, error: ChainError) -> None:
    """With some chance in it, so that many do not come back at once; what an endpoint asks for is kept."""
    one = Scripted("one")
    pool = pool_of(clock, one)
    waits = []
    for _ in range(12):
        pool.blame(one, error)
        waits.append(one.retry_at - clock.monotonic())
    assert 0.5 <= waits[0] <= 0.625
    assert all(later > before * 1.5 for before, later in pairwise(waits[:6]))
    assert all(BACKOFF_MAX_S <= wait <= BACKOFF_MAX_S * 1.25 for wait in waits[8:])
    pool.blame(one, RateLimitedError("slow down", retry_after=100.0))
    assert one.retry_at - clock.monotonic() >= 100.0


async def test_an_endpoint_of_another_chain_is_never_lent(clock: ManualClock) -> None:
    """And where there is no other, the error says why."""
    one, two = Scripted("one", right=False), Scripted("two")
    async with pool_of(clock, one, two).pin() as endpoint:
        assert endpoint is two
    with pytest.raises(ChainUnavailableError, match=r"^no endpoint can be asked for .* serves another chain"):
        async with pool_of(clock, one).pin():
            pass


async def test_a_question_goes_to_the_next_endpoint_until_one_answers_well(clock: ManualClock) -> None:
    """A poor answer is better than none, and the last error better than silence."""
    one, two, three = Scripted("one"), Scripted("two"), Scripted("three", chain="b")
    pool = pool_of(clock, one, two, three)
    for endpoint in (one, two, three):
        endpoint.verified = True
    one.error = BROKEN
    assert (await pool.ask_any(asking(7))).hash == "a7"
    assert (await pool.ask_any(asking(7), lambda found: found.hash == "b7")).hash == "b7"
    assert (await pool.ask_any(asking(7), lambda found: found.hash == "c7")).hash in {"a7", "b7"}
    assert [found.hash for found in await pool.ask_all(asking(7))] == ["a7", "b7"]
    two.error = three.error = RateLimitedError("slow down")
    with pytest.raises(RateLimitedError):
        await pool.ask_any(asking(7))
    with pytest.raises(ChainUnavailableError, match="can be asked now"):
        await pool.ask_all(asking(7))


async def test_why_no_endpoint_answered_all_is_told(clock: ManualClock) -> None:
    """Else operators read for ever that none can be asked, of endpoints that are asked and refuse."""
    one, two = Scripted("one"), Scripted("two")
    pool = pool_of(clock, one, two)
    assert len(await pool.ask_all(asking(7))) == 2
    one.error, two.error = ChainUnavailableError("one does not offer it"), SpanTooWideError("two finds it too long")
    with pytest.raises(ChainUnavailableError, match=r"^one does not offer it; two finds it too long$"):
        await pool.ask_all(asking(7))
    two.error = one.error
    for ask in (pool.ask_all, pool.ask_all, pool.ask_any):
        with pytest.raises(ChainUnavailableError, match="one does not offer it"):
            await ask(asking(7))


async def test_an_endpoint_that_is_behind_is_asked_last_until_it_has_caught_up(clock: ManualClock) -> None:
    """By more blocks than are allowed."""
    one, two = Scripted("one", top=90), Scripted("two")
    pool = pool_of(clock, one, two)
    async with pool.pin() as endpoint:
        assert endpoint is two
    assert pool.health()[-1].last_error == "one is 10 blocks behind"
    one.top = 98
    await pool.survey()
    assert pool.usable() == [one, two]


async def test_surveys_are_made_now_and_then_and_only_where_there_is_a_choice(clock: ManualClock) -> None:
    """A lone endpoint has nobody to be compared with."""
    lone = Scripted("lone")
    async with pool_of(clock, lone).pin():
        assert lone.asked == 1
    one, two = Scripted("one"), Scripted("two")
    pool = pool_of(clock, one, two)
    for _ in range(3):
        async with pool.pin():
            pass
    assert (one.asked, two.asked) == (3, 3)
    clock.advance(SURVEY_INTERVAL_S)
    async with pool.pin():
        for _ in range(10):
            await asyncio.sleep(0)
    await pool.close()
    assert two.asked > 3


@pytest.mark.parametrize("chains, suspects", [("aab", "b"), ("baa", "b"), ("ab", "ab"), ("abc", "abc"), ("aa", "")])
async def test_those_who_tell_another_story_than_most_are_set_aside(
    clock: ManualClock, chains: str, suspects: str
) -> None:
    """Where no majority tells who is right, all are: crediting a lie is worse than waiting."""
    endpoints = [Scripted(f"{number}{chain}", chain=chain) for number, chain in enumerate(chains)]
    pool = pool_of(clock, *endpoints)
    await pool.survey()
    clock.advance(BACKOFF_MAX_S * 2)
    assert {endpoint.chain for endpoint in endpoints if endpoint.suspect} == set(suspects)
    assert [endpoint for endpoint in pool.usable() if endpoint.suspect] == []
    for endpoint in endpoints:
        endpoint.chain = "a"
    await pool.survey()
    assert len(pool.usable()) == len(endpoints)


async def test_a_quorum_is_so_many_who_say_the_same(clock: ManualClock) -> None:
    """One that contradicts them is left alone for long; one that is silent counts for nothing."""
    one, two, three = Scripted("one"), Scripted("two", chain="b"), Scripted("three")
    pool = pool_of(clock, one, two, three)
    assert (await agreed(pool, one, 2, asking(7))).hash == "a7"
    assert two.strikes == 5
    three.error = BROKEN
    with pytest.raises(InconsistentChainError, match=r"of 2 endpoints that must agree 1 do, 0 contradict"):
        await agreed(pool, one, 2, asking(7))


async def test_the_first_ones_error_is_the_answer_of_a_quorum(clock: ManualClock) -> None:
    """The view that asked is ended by it."""
    one, two = Scripted("one"), Scripted("two")
    one.error = BROKEN
    with pytest.raises(ChainError, match="broken"):
        await agreed(pool_of(clock, one, two), one, 2, asking(7))


@pytest.mark.parametrize(
    "final, agreed_on",
    [
        ((100, 90, 80), 90),
        ((80, 90, 100), 90),
        ((90, 500, 400), 100),  # the head of who was asked first
        ((100, None, 80), 80),
        ((100, None, None), None),
        ((None, None, None), None),
    ],
)
async def test_final_is_what_so_many_call_final(
    clock: ManualClock, final: tuple[int | None, ...], agreed_on: int | None
) -> None:
    """The first one tells the head, and no more of what is final than anybody else."""
    endpoints = [Scripted(name) for name in ("one", "two", "three")]
    for endpoint, height in zip(endpoints, final, strict=True):
        endpoint.final = height
    head = await finally_agreed(pool_of(clock, *endpoints), endpoints[0], 2)
    assert (head.height, head.hash, head.finalized_height) == (100, "a100", agreed_on)


async def test_who_does_not_answer_calls_nothing_final(clock: ManualClock) -> None:
    """It counts against that one; the first one's error ends the view."""
    one, two = Scripted("one"), Scripted("two")
    one.final = two.final = 90
    two.error = BROKEN
    assert (await finally_agreed(pool_of(clock, one, two), one, 2)).finalized_height is None
    assert two.strikes == 1
    one.error = BROKEN
    with pytest.raises(ChainError, match="broken"):
        await finally_agreed(pool_of(clock, one, two), one, 2)


async def test_who_hangs_does_not_keep_the_others_from_telling_what_is_final(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each poll would wait for it."""

    class Hanging(Scripted):
        async def newest(self) -> Head:
            await asyncio.Event().wait()
            return await super().newest()

    one, two, three = Scripted("one"), Scripted("two"), Hanging("three")
    one.final = two.final = 90
    monkeypatch.setattr(quorum, "SURVEY_TIMEOUT_S", 0.01)
    head = await finally_agreed(pool_of(clock, one, two, three), one, 2)
    assert (head.finalized_height, three.strikes) == (90, 1)


def test_a_transaction_is_mined_once_so_many_say_so() -> None:
    """Until then it waits, if anybody has heard of it."""
    mined = TxStatus(state="succeeded", block=block(7))
    other = TxStatus(state="succeeded", block=block(7, "b"))
    unknown = TxStatus(state="unknown")
    assert most_agree([mined, other, mined], 2) == mined
    assert most_agree([mined, other, unknown], 2).state == "pending"
    assert most_agree([unknown, unknown], 2).state == "unknown"
