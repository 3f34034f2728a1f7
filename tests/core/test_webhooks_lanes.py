"""How ways out are shared: narrow for strangers, wide for the quick, bounded for all the slow together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cambist.services.webhooks.lanes import IDLE_LANES_MAX, LANE_SLOW_MIN, LANE_START, Lane, Lanes, Limits


def test_a_lane_widens_with_quick_ends_up_to_its_limit() -> None:
    lanes = Lanes(Limits(quick_max=100, lane_max=20))
    for _ in range(50):
        lanes.leave(lanes.enter("https://shop"), quick=True)
    assert lanes.room().by_origin == {"https://shop": 20}


def test_a_receiver_that_hangs_leaves_the_room_of_the_quick_at_once() -> None:
    lanes = Lanes(Limits(quick_max=10, lane_max=100))
    stuck = [lanes.enter("http://slow") for _ in range(LANE_START)]
    assert lanes.room().attempts == 2
    assert lanes.room().full == ["http://slow"]
    lanes.mark_slow(stuck[0])
    assert lanes.room().attempts == 10
    # One of one: half of the slow share of 20 is its own, the other half is kept for the next.
    assert lanes.room().by_origin == {"http://slow": 10 - LANE_START}
    for lane in stuck:
        lanes.leave(lane, quick=False)
    assert lanes.in_flight == 0


def test_a_quick_end_redeems_a_slow_receiver() -> None:
    lanes = Lanes(Limits(quick_max=10, lane_max=100))
    lane = lanes.enter("http://slow")
    lanes.mark_slow(lane)
    lanes.enter("http://slow")
    lanes.leave(lane, quick=True)
    assert lanes.room().attempts == 9
    assert lanes.room().by_origin == {"http://slow": LANE_START + 1 - 1}


def test_all_slow_receivers_together_have_a_bounded_share() -> None:
    lanes = Lanes(Limits(quick_max=8, lane_max=100))
    for number in range(4):
        lanes.mark_slow(lanes.enter(f"http://slow{number}"))
        for _ in range(3):
            lanes.enter(f"http://slow{number}")
    room = lanes.room()
    assert room.attempts == 8
    assert len(room.full) == 4
    assert lanes.in_flight == 16
    # Each keeps a few, however many they are; only what is free in the share can be taken.
    assert set(room.by_origin.values()) == {LANE_SLOW_MIN - 4}


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["enter", "slow", "quick", "silent"]))))
def test_whatever_happens_the_counts_add_up(steps: list[tuple[int, str]]) -> None:
    lanes = Lanes(Limits(quick_max=16, lane_max=12))
    running: dict[int, list[Lane]] = {}
    for origin, step in steps:
        mine = running.setdefault(origin, [])
        if step == "enter":
            mine.append(lanes.enter(str(origin)))
        elif mine and step == "slow":
            lanes.mark_slow(mine[0])
        elif mine:
            lanes.leave(mine.pop(), quick=step == "quick")
        assert lanes.in_flight == sum(len(entered) for entered in running.values())
        assert lanes._slow_in_flight == sum(len(entered) for entered in running.values() if entered and entered[0].slow)


def test_receivers_that_were_not_heard_of_for_long_are_forgotten() -> None:
    lanes = Lanes(Limits())
    busy = lanes.enter("http://busy")
    for number in range(IDLE_LANES_MAX * 3):
        lanes.leave(lanes.enter(f"http://{number}"), quick=True)
    assert len(lanes.room().by_origin) <= IDLE_LANES_MAX + 1
    lanes.leave(busy, quick=True)
    assert lanes.in_flight == 0
