"""Who of the senders of a chain is tried when, and which of what it sends: it is decided in memory."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

from cambist.domain.intents import IntentKind
from cambist.services.sending.turns import (
    APART_MAX,
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


def is_failing(turns, pk):
    return pk in turns._failing


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
    assert not is_failing(turns, 1), "what is remembered is bounded"


def test_who_failed_long_ago_and_has_nothing_left_lengthens_nobodys_pause(clock):
    turns, now = Turns(), clock.now()
    for pk in range(10, 60):
        fail(turns, pk, now)
    later = now + PAUSE + PAUSE_MAX
    turns.forget_past(later)
    fail(turns, 1, later)
    assert fail(turns, 1, later) == 2 * PAUSE
    assert not is_failing(turns, 10)


def test_what_waits_for_long_keeps_no_other_failure_from_being_forgotten(clock):
    turns, now = Turns(), clock.now()
    for pk in range(1, TRIED_MAX):
        for _ in range(2):
            turns.served(1, [0])
            turns.failed(1, now, [pk], alone=True)
    for _ in range(2):
        turns.failed(2, now, [5, 6])
    turns.forget_past(now + PAUSE + PAUSE_MAX)
    assert (is_failing(turns, 1), is_failing(turns, 2)) == (True, False)
    turns.forget_past(now + SUSPECT_PAUSE_MAX + PAUSE_MAX)
    assert not is_failing(turns, 1)


def test_failures_are_forgotten_with_the_last_that_failed_and_not_when_something_else_is_planned(clock):
    turns, now = Turns(), clock.now()
    turns.failed(1, now, [5])
    turns.served(1, [6])
    assert (is_failing(turns, 1), turns.rests(1, now)) == (True, False)
    assert turns.failed(1, now, [5], alone=True) - now == PAUSE
    turns.gone(1, [5])
    assert not is_failing(turns, 1)
    turns.failed(1, now, [5, 6])
    turns.served(1, [6])
    assert not is_failing(turns, 1), "together they failed once, and now one of them did not"


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
        assert turns.failed(1, now, [pk + 1], alone=True) - now == PAUSE, "as in an outage"
        turns.served(99)
        pauses.append(turns.failed(1, now, [pk + 1], alone=True) - now)
    assert pauses[:6] == [2 * PAUSE] * 5 + [4 * PAUSE]
    assert pauses[29] == 20 * PAUSE
    assert pauses == sorted(pauses)
    assert pauses[-1] == SUSPECT_PAUSE_MAX
    for _ in range(12):
        turns.served(99)
        turns.failed(1, now, [1], alone=True)
    assert turns.failed(1, now, [1], alone=True) - now == SUSPECT_PAUSE_MAX


def test_with_each_suspect_that_is_planned_after_all_others_are_due_again_in_their_order(clock):
    turns, now = Turns(), clock.now()
    for pk in range(1, 31):
        turns.failed(1, now, [pk], alone=True)
    assert turns.served(1, [99]) == [], "nothing that had failed"
    assert turns.served(1, [1]) == [2, 3, 4] == list(range(2, 2 + WOKEN_MAX))
    # They have not failed since: it is the turn of the others.
    assert turns.served(1, [2]) == [5, 6, 7]
    assert turns.served(1, [3, 4]) == list(range(8, 14))
    assert set(turns.failed_intents(1)) == set(range(5, 31))
    turns.gone(1, range(5, 30))
    assert turns.served(1, [99], rested=True) == [30], "it was to rest, and something else of it was planned"
    assert turns.served(1, [30]) == []
    assert not is_failing(turns, 1)


def test_what_failed_in_the_same_tick_takes_no_others_turn(clock):
    turns, now = Turns(), clock.now()
    for pk in range(1, 9):
        turns.failed(1, now, [pk], alone=True)
    assert turns.served(1, [1], [2, 4]) == [3, 5, 6]


def test_what_waits_by_itself_is_told_from_what_waits_no_more(clock):
    turns, now = Turns(), clock.now()
    turns.failed(1, now, [1], alone=True)
    turns.failed(1, now + PAUSE, [2], alone=True)
    assert (turns.suspects(1, now), turns.suspects(1, now + PAUSE)) == ([1, 2], [2])
    assert turns.suspects(1, now + 2 * PAUSE) == turns.suspects(2, now) == []


def test_of_what_another_process_had_let_wait_some_of_each_sender_are_tried_by_themselves_after_the_others(clock):
    turns, now = Turns(), clock.now()
    dues = {pk: now + pk * PAUSE for pk in range(1, TRIED_MAX + 1)}
    assert turns.learn(1, dues) == list(range(1, APART_MAX + 1))
    assert turns.learn(2, {5_000: now + PAUSE}) == [5_000]
    assert turns.in_order([1, 2, 3]) == [3, 1, 2]
    assert not turns.rests(1, now)
    assert [
        [one.id for one in group] for group in turns.groups(1, [intent(9_000), intent(2), intent(9_001), intent(1)])
    ] == [
        [9_000, 9_001],
        [1],
        [2],
    ]
    assert turns.served(1, [1]) == [2, 3, 4], "one is planned, and others are tried again"
    turns.forget_past(now + 2 * PAUSE + PAUSE_MAX)
    assert (is_failing(turns, 1), is_failing(turns, 2)) == (True, False)


def test_how_often_something_failed_by_itself_counts_until_it_is_planned(clock):
    turns, now = Turns(), clock.now()
    for times in range(3):
        turns.served(99)
        assert turns.failed(1, now, [5], alone=True) - now == PAUSE * 2**times
        turns.failed(1, now, [6], alone=True)
        now += 2 * PAUSE_MAX  # it was due long ago, and it was not its turn
    turns.served(1, [5])
    assert turns.failed(1, now, [5], alone=True) - now == PAUSE


def test_many_that_nobody_can_plan_fail_few_ticks_though_one_is_tried_at_a_time(clock):
    turns, began = Turns(), clock.now()
    now, failed, dues = began, [], dict.fromkeys(range(1, 51), began)
    while now < began + timedelta(hours=6):
        turns.forget_past(now)
        turns.served(1, [999])  # other payouts of the wallet go out, and those of others
        turns.served(99)
        suspects = turns.failed_intents(1)
        due = [pk for pk in (*(one for one in dues if one not in suspects), *suspects) if dues[pk] <= now]
        if not due or turns.rests(1, now):
            now += PAUSE
            continue
        dues[due[0]] = turns.failed(1, now, due[:1], alone=True)
        failed.append(now)
        now += 2 * PAUSE  # as long as a worker waits
    lately = [at for at in failed if at > now - timedelta(hours=1)]
    assert 40 <= len(lately) <= 60, "each of them once"


def test_what_an_operator_has_tried_again_and_what_closes_a_gap_is_tried_first(clock):
    turns, now = Turns(), clock.now()
    intents = [intent(pk) for pk in range(1, 21)]
    for one in intents[:15]:
        turns.failed(1, now, [one.id], alone=True)
    retried, gap = intent(15, is_retried=True), intent(14, kind=IntentKind.REPAIR)
    given = [*intents[:13], gap, retried, *intents[15:]]
    others, *suspects = turns.groups(1, given)
    assert [one.id for one in others] == list(range(16, 21))
    assert [one.id for (one,) in suspects] == [14, 15, *range(1, 9)]
    for _ in range(2):
        turns.failed(1, now, range(16, 21))
    judged = turns.groups(1, given)
    assert [one.id for (one,) in judged] == [14, 15, *range(16, 21), 1, 2, 3]


def intent(pk, *, kind=IntentKind.PAYOUT, is_retried=False):
    """Return what is decided by of an intent."""
    return SimpleNamespace(id=pk, is_retried=is_retried, update=SimpleNamespace(kind=kind))
