"""Whether a chain is read as it should be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cambist.domain.chain_status import ChainReading, judge, overall
from cambist.services.receiving.chain_readings import read_chains

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def reading(*, quiet_s=0.0, age_s=0.0, gap_s=12.0, lag=0):
    return ChainReading(
        head=100 + lag,
        height=100,
        polled_at=NOW - timedelta(seconds=quiet_s),
        mined_at=None if age_s is None else NOW - timedelta(seconds=age_s),
        longest_gap=None if gap_s is None else timedelta(seconds=gap_s),
    )


@pytest.mark.parametrize(
    "facts, status",
    [
        ({}, "working"),
        ({"quiet_s": 60, "age_s": 60}, "working"),
        ({"quiet_s": 61, "age_s": 61}, "delayed"),
        ({"quiet_s": 300, "age_s": 300}, "delayed"),
        ({"quiet_s": 301, "age_s": 301}, "down"),
        ({"age_s": 120}, "working"),
        ({"age_s": 121}, "delayed"),
        ({"age_s": 121, "lag": 5000}, "delayed"),
        ({"age_s": 20, "lag": 80}, "working"),
        ({"age_s": 900, "gap_s": 300}, "working"),
        ({"age_s": 901, "gap_s": 300}, "delayed"),
        ({"age_s": 121, "gap_s": None}, "delayed"),
        ({"age_s": None, "gap_s": None}, "working"),
        ({"age_s": -30}, "working"),
    ],
)
def test_silence_and_old_blocks_are_a_delay_and_long_silence_is_more(facts, status):
    assert judge(reading(**facts), 1_000, NOW) == status


def test_a_chain_that_was_never_read_is_down_and_one_that_is_polled_seldom_may_be_silent_for_longer():
    assert judge(None, 1_000, NOW) == "down"
    assert judge(reading(quiet_s=150), 15_000, NOW) == "working"
    assert judge(reading(quiet_s=151), 15_000, NOW) == "delayed"
    assert judge(reading(quiet_s=751), 15_000, NOW) == "down"


@pytest.mark.parametrize(
    "chains, impaired, status",
    [
        ((), False, "working"),
        (("working", "working"), False, "working"),
        (("working", "working"), True, "degraded"),
        (("working", "delayed"), False, "degraded"),
        (("working", "down"), False, "degraded"),
        (("down", "down"), False, "down"),
    ],
)
def test_the_whole_is_down_where_every_chain_is(chains, impaired, status):
    assert overall(chains, impaired=impaired) == status


async def test_what_the_watcher_stored_is_what_is_read(shop, chain, watcher, clock):
    async def read():
        async with shop.db.autocommit() as conn:
            return await read_chains(conn, ["memory", "other"])

    begun = (await read())["memory"]
    assert (begun.head, begun.height, begun.polled_at) == (begun.height, chain.height, clock.now())
    chain.mine(3)
    clock.advance(30)
    await shop.poll(watcher)
    found = await read()
    assert found.keys() == {"memory"}
    after = found["memory"]
    assert (after.height, after.polled_at) == (begun.height + 3, clock.now())
    assert after.mined_at > begun.mined_at
    assert timedelta() < after.longest_gap <= timedelta(minutes=10)
