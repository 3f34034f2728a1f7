"""Who of the senders of a chain is tried when, and which of what it sends: it is decided in memory."""

from __future__ import annotations

from datetime import timedelta

from cambist.services.sending.turns import (
    FAILING_MAX,
    PAUSE,
    PAUSE_MAX,
    SUSPECT_PAUSE_MAX,
    SUSPECTS_MAX,
    SWEEPS,
    TRIED_MAX,
    WOKEN_MAX,
    Turns,
)


def fail(turns, pk, now, times=1):
    for _ in range(times):
        until = turns.failed(pk, now)
        turns.served(99)
    return until - now


def test_each_failure_that_the_others_do_not_share_doubles_the_pause_up_to_ten_minutes(clock):
    turns, now = Turns(), clock.now()
    assert [fail(turns, 1, now) / PAUSE for _ in range(5)] == [1, 2, 4, 8, 16]
    assert fail(turns, 1, now, 20) == PAUSE_MAX == timedelta(minutes=10)
    turns.served(1)
    assert fail(turns, 1, now) == PAUSE


def test_the_more_senders_fail_the_longer_each_of_them_waits(clock):
    turns, now = Turns(), clock.now()
    for pk in range(1, 6):
        fail(turns, pk, now)
    assert [fail(turns, pk, now) / PAUSE for pk in range(1, 6)] == [10] * 5


def test_in_an_outage_nobodys_pause_grows(clock):
    turns, now = Turns(), clock.now()
    assert {turns.failed(pk, now) - now for _ in range(50) for pk in (1, 2, 3)} == {PAUSE}


def test_who_failed_comes_last_and_rests_until_the_pause_is_over(clock):
    turns, now = Turns(), clock.now()
    fail(turns, 2, now, 3)
    fail(turns, SWEEPS, now)
    fail(turns, 1, now)
    assert turns.in_order([1, 2, 3, 4]) == [3, 4, 1, 2]
    assert (turns.rests(SWEEPS, now), turns.rests(SWEEPS, now + PAUSE), turns.rests(3, now)) == (True, False, False)
    turns.served(2)
    assert turns.in_order([1, 2, 3, 4]) == [2, 3, 4, 1]
    for pk in range(10, FAILING_MAX + 20):
        turns.failed(pk, now)
    assert not turns.is_failing(1), "what is remembered is bounded"


def test_who_failed_long_ago_and_has_nothing_left_lengthens_nobodys_pause(clock):
    turns, now = Turns(), clock.now()
    for pk in range(10, 60):
        fail(turns, pk, now)
    later = now + PAUSE + PAUSE_MAX
    turns.forget_past(later)
    fail(turns, 1, later)
    assert fail(turns, 1, later) == 2 * PAUSE
    assert not turns.is_failing(10)


def test_what_waits_for_long_keeps_no_other_failure_from_being_forgotten(clock):
    turns, now = Turns(), clock.now()
    for pk in range(1, TRIED_MAX):
        turns.served(1, [0])
        turns.failed(1, now, [pk], alone=True)
    for _ in range(2):
        turns.failed(2, now, [5, 6])
    turns.forget_past(now + PAUSE + PAUSE_MAX)
    assert (turns.is_failing(1), turns.is_failing(2)) == (True, False)
    turns.forget_past(now + SUSPECT_PAUSE_MAX + PAUSE_MAX)
    assert not turns.is_failing(1)


def test_failures_are_forgotten_with_the_last_that_failed_and_not_when_something_else_is_planned(clock):
    turns, now = Turns(), clock.now()
    turns.failed(1, now, [5])
    turns.served(1, [6])
    assert (turns.is_failing(1), turns.rests(1, now)) == (True, False)
    assert turns.failed(1, now, [5], alone=True) - now == PAUSE
    turns.gone(1, [5])
    assert not turns.is_failing(1)
    turns.failed(1, now, [5, 6])
    turns.served(1, [6])
    assert not turns.is_failing(1), "together they failed once, and now one of them did not"


def test_a_sender_rests_where_one_after_another_of_its_intents_fails_by_itself(clock):
    turns, now = Turns(), clock.now()
    turns.failed(1, now, [1], alone=True)
    assert turns.rests(1, now)
    turns.served(1, [50])
    for new in (1, 2):
        turns.failed(1, now, [new], alone=True)
        assert not turns.rests(1, now), "another one was planned before"
    turns.failed(1, now, [3], alone=True)
    assert turns.rests(1, now)
    for new in range(4, TRIED_MAX + 20):
        turns.served(1, [50])
        turns.failed(1, now, [new], alone=True)
        assert turns.rests(1, now)
    assert len(turns.failed_intents(1)) == TRIED_MAX


def test_a_sender_of_which_nothing_can_be_planned_rests_also_once_all_of_it_is_known(clock):
    turns, now = Turns(), clock.now()
    for pk in range(1, SUSPECTS_MAX + 1):
        turns.served(1, [50])
        turns.failed(1, now, [pk], alone=True)
    turns.failed(1, now, [1], alone=True)
    assert not turns.rests(1, now), "some keep it from nothing"
    turns.served(1, [50])
    turns.failed(1, now, [4], alone=True)
    later = now + PAUSE
    assert not turns.rests(1, later)
    turns.failed(1, later, [1], alone=True)
    assert turns.rests(1, later), "nothing was planned since the last was found"
    turns.served(1, [50])
    turns.failed(1, later, [2], alone=True)
    assert not turns.rests(1, later), "it is those alone that cannot be planned"


def test_what_fails_by_itself_waits_longer_the_more_do_up_to_a_bound(clock):
    turns, now = Turns(), clock.now()
    pauses = []
    for pk in range(TRIED_MAX):
        turns.served(1, [0])
        pauses.append(turns.failed(1, now, [pk + 1], alone=True) - now)
    assert pauses[:6] == [PAUSE] * 6
    assert pauses[30] == 10 * PAUSE
    assert pauses == sorted(pauses)
    assert pauses[-1] == SUSPECT_PAUSE_MAX
    for _ in range(12):
        turns.served(99)
        turns.failed(1, now, [1], alone=True)
    assert turns.failed(1, now, [1], alone=True) - now == SUSPECT_PAUSE_MAX


def test_with_each_suspect_that_is_planned_after_all_others_are_due_again_in_their_order(clock):
    turns, now = Turns(), clock.now()
    untils = {}
    for pk in range(1, 31):
        untils[pk] = turns.failed(1, now, [pk], alone=True)
    assert turns.served(1, [99]) == {}, "nothing that had failed"
    assert turns.served(1, [1]) == {pk: untils[pk] for pk in range(2, 2 + WOKEN_MAX)}
    # They have not failed since: it is the turn of the others.
    assert list(turns.served(1, [2])) == list(range(12, 22))
    assert list(turns.served(1, [3, 4])) == [*range(22, 31), *range(5, 16)]
    assert set(turns.failed_intents(1)) == set(range(5, 31))
    turns.gone(1, range(5, 30))
    assert turns.served(1, [30]) == {}
    assert not turns.is_failing(1)
