"""Who of the senders of a chain is tried when, and which of what it sends: it is decided in memory."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

from cambist.domain.intents import IntentKind
from cambist.services.sending.rests import (
    APART_MAX,
    FAILING_MAX,
    PAUSE,
    PAUSE_MAX,
    SUSPECT_PAUSE_MAX,
    SUSPECTS_MAX,
    SWEEPS,
    TRIED_MAX,
    WOKEN_MAX,
    Rests,
)


def is_failing(rests, pk):
    return pk in rests._failing


def fail(rests, pk, now, times=1):
    for _ in range(times):
        until = rests.failed(pk, now)
        rests.served(99)
    return until - now


def test_each_failure_that_the_others_do_not_share_doubles_the_pause_up_to_ten_minutes(clock):
    rests, now = Rests(), clock.now()
    assert [fail(rests, 1, now) / PAUSE for _ in range(5)] == [1, 2, 4, 8, 16]
    assert fail(rests, 1, now, 20) == PAUSE_MAX == timedelta(minutes=10)
    rests.served(1)
    assert fail(rests, 1, now) == PAUSE


def test_the_more_senders_fail_the_longer_each_of_them_waits(clock):
    rests, now = Rests(), clock.now()
    for pk in range(1, 6):
        fail(rests, pk, now)
    assert [fail(rests, pk, now) / PAUSE for pk in range(1, 6)] == [10] * 5


def test_in_an_outage_nobodys_pause_grows(clock):
    rests, now = Rests(), clock.now()
    assert {rests.failed(pk, now) - now for _ in range(50) for pk in (1, 2, 3)} == {PAUSE}


def test_who_failed_comes_last_and_rests_until_the_pause_is_over(clock):
    rests, now = Rests(), clock.now()
    fail(rests, 2, now, 3)
    fail(rests, SWEEPS, now)
    fail(rests, 1, now)
    assert rests.in_order([1, 2, 3, 4]) == [3, 4, 1, 2]
    assert (rests.is_resting(SWEEPS, now), rests.is_resting(SWEEPS, now + PAUSE), rests.is_resting(3, now)) == (
        True,
        False,
        False,
    )
    rests.served(2)
    assert rests.in_order([1, 2, 3, 4]) == [2, 3, 4, 1]
    for pk in range(10, FAILING_MAX + 20):
        rests.failed(pk, now)
    assert not is_failing(rests, 1), "what is remembered is bounded"


def test_who_failed_long_ago_and_has_nothing_left_lengthens_nobodys_pause(clock):
    rests, now = Rests(), clock.now()
    for pk in range(10, 60):
        fail(rests, pk, now)
    later = now + PAUSE + PAUSE_MAX
    rests.forget_past(later)
    fail(rests, 1, later)
    assert fail(rests, 1, later) == 2 * PAUSE
    assert not is_failing(rests, 10)


def test_what_failed_while_the_clock_was_ahead_is_tried_once_it_is_right_again(clock):
    rests, now = Rests(), clock.now()
    fail(rests, 1, now + timedelta(days=30))
    fail(rests, 2, now)
    assert rests.is_resting(1, now)
    rests.forget_past(now)
    assert (rests.is_resting(1, now), rests.is_resting(2, now)) == (False, True)


def test_what_waits_for_long_keeps_no_other_failure_from_being_forgotten(clock):
    rests, now = Rests(), clock.now()
    for pk in range(1, TRIED_MAX):
        for _ in range(2):
            rests.served(1, [0])
            rests.failed(1, now, [pk], alone=True)
    for _ in range(2):
        rests.failed(2, now, [5, 6])
    rests.forget_past(now + PAUSE + PAUSE_MAX)
    assert (is_failing(rests, 1), is_failing(rests, 2)) == (True, False)
    rests.forget_past(now + SUSPECT_PAUSE_MAX + PAUSE_MAX)
    assert not is_failing(rests, 1)


def test_failures_are_forgotten_with_the_last_that_failed_and_not_when_something_else_is_planned(clock):
    rests, now = Rests(), clock.now()
    rests.failed(1, now, [5])
    rests.served(1, [6])
    assert (is_failing(rests, 1), rests.is_resting(1, now)) == (True, False)
    assert rests.failed(1, now, [5], alone=True) - now == PAUSE
    rests.gone(1, [5])
    assert not is_failing(rests, 1)
    rests.failed(1, now, [5, 6])
    rests.served(1, [6])
    assert not is_failing(rests, 1), "together they failed once, and now one of them did not"


def test_a_sender_rests_where_one_after_another_of_its_intents_fails_by_itself(clock):
    rests, now = Rests(), clock.now()
    rests.failed(1, now, [1], alone=True)
    assert rests.is_resting(1, now)
    rests.served(1, [50])
    for new in (1, 2):
        rests.failed(1, now, [new], alone=True)
        assert not rests.is_resting(1, now), "another one was planned before"
    rests.failed(1, now, [3], alone=True)
    assert rests.is_resting(1, now)
    pauses = []
    for new in range(4, TRIED_MAX + 20):
        rests.served(1, [50])
        rests.failed(1, now, [new], alone=True)
        until = rests.until(1, now)
        assert until is not None
        pauses.append(until - now)
    assert pauses[:3] == [PAUSE, 2 * PAUSE, 3 * PAUSE], "the more of them, the longer"
    assert pauses == sorted(pauses)
    assert pauses[-1] == PAUSE_MAX
    assert len(rests.failed_intents(1)) == TRIED_MAX


def test_a_sender_of_which_nothing_can_be_planned_rests_also_once_all_of_it_is_known(clock):
    rests, now = Rests(), clock.now()
    for pk in range(1, SUSPECTS_MAX + 1):
        rests.served(1, [50])
        rests.failed(1, now, [pk], alone=True)
    rests.failed(1, now, [1], alone=True)
    assert not rests.is_resting(1, now), "some keep it from nothing"
    rests.served(1, [50])
    rests.failed(1, now, [4], alone=True)
    later = now + PAUSE
    assert not rests.is_resting(1, later)
    rests.failed(1, later, [1], alone=True)
    assert rests.is_resting(1, later), "nothing was planned since the last was found"
    rests.served(1, [50])
    rests.failed(1, later, [2], alone=True)
    assert not rests.is_resting(1, later), "it is those alone that cannot be planned"


def test_what_fails_by_itself_waits_longer_the_more_do_up_to_a_bound(clock):
    rests, now = Rests(), clock.now()
    pauses = []
    for pk in range(TRIED_MAX):
        assert rests.failed(1, now, [pk + 1], alone=True) - now == PAUSE, "as in an outage"
        rests.served(99)
        pauses.append(rests.failed(1, now, [pk + 1], alone=True) - now)
    assert pauses[:6] == [2 * PAUSE] * 5 + [4 * PAUSE]
    assert pauses[29] == 20 * PAUSE
    assert pauses == sorted(pauses)
    assert pauses[-1] == SUSPECT_PAUSE_MAX
    for _ in range(12):
        rests.served(99)
        rests.failed(1, now, [1], alone=True)
    assert rests.failed(1, now, [1], alone=True) - now == SUSPECT_PAUSE_MAX


def test_with_each_suspect_that_is_planned_after_all_others_are_due_again_in_their_order(clock):
    rests, now = Rests(), clock.now()
    for pk in range(1, 31):
        rests.failed(1, now, [pk], alone=True)
    assert rests.served(1, [99]) == [], "nothing that had failed"
    assert rests.served(1, [1]) == [2, 3, 4] == list(range(2, 2 + WOKEN_MAX))
    # They have not failed since: it is the turn of the others.
    assert rests.served(1, [2]) == [5, 6, 7]
    assert rests.served(1, [3, 4]) == list(range(8, 14))
    assert set(rests.failed_intents(1)) == set(range(5, 31))
    rests.gone(1, range(5, 30))
    assert rests.served(1, [99], rested=True) == [30], "it was to rest, and something else of it was planned"
    assert rests.served(1, [30]) == []
    assert not is_failing(rests, 1)


def test_what_failed_in_the_same_tick_takes_no_others_turn(clock):
    rests, now = Rests(), clock.now()
    for pk in range(1, 9):
        rests.failed(1, now, [pk], alone=True)
    assert rests.served(1, [1], [2, 4]) == [3, 5, 6]


def test_what_waits_by_itself_is_told_from_what_waits_no_more(clock):
    rests, now = Rests(), clock.now()
    rests.failed(1, now, [1], alone=True)
    rests.failed(1, now + PAUSE, [2], alone=True)
    assert (rests.suspects(1, now), rests.suspects(1, now + PAUSE)) == ([1, 2], [2])
    assert rests.suspects(1, now + 2 * PAUSE) == rests.suspects(2, now) == []


def test_of_what_another_process_had_let_wait_some_of_each_sender_are_tried_by_themselves_after_the_others(clock):
    rests, now = Rests(), clock.now()
    dues = {pk: now + pk * PAUSE / 5 for pk in range(1, TRIED_MAX + 1)}
    assert rests.learn(1, dues) == list(range(1, APART_MAX + 1))
    assert rests.learn(2, {5_000: now + PAUSE}) == [5_000]
    assert rests.in_order([1, 2, 3]) == [3, 1, 2]
    assert not rests.is_resting(1, now)
    assert [
        [one.id for one in group] for group in rests.groups(1, [intent(9_000), intent(2), intent(9_001), intent(1)])
    ] == [
        [9_000, 9_001],
        [1],
        [2],
    ]
    assert rests.served(1, [1]) == [2, 3, 4], "one is planned, and others are tried again"
    rests.forget_past(now + 2 * PAUSE + PAUSE_MAX)
    assert (is_failing(rests, 1), is_failing(rests, 2)) == (True, False)


def test_how_often_something_failed_by_itself_counts_until_it_is_planned(clock):
    rests, now = Rests(), clock.now()
    for times in range(3):
        rests.served(99)
        assert rests.failed(1, now, [5], alone=True) - now == PAUSE * 2**times
        rests.failed(1, now, [6], alone=True)
        now += 2 * PAUSE_MAX  # it was due long ago, and it was not its turn
    rests.served(1, [5])
    assert rests.failed(1, now, [5], alone=True) - now == PAUSE


def test_many_that_nobody_can_plan_fail_few_ticks_though_one_is_tried_at_a_time(clock):
    rests, began = Rests(), clock.now()
    now, failed, dues = began, [], dict.fromkeys(range(1, 51), began)
    while now < began + timedelta(hours=6):
        rests.forget_past(now)
        rests.served(1, [999])  # other payouts of the wallet go out, and those of others
        rests.served(99)
        suspects = rests.failed_intents(1)
        due = [pk for pk in (*(one for one in dues if one not in suspects), *suspects) if dues[pk] <= now]
        if not due or rests.is_resting(1, now):
            now += PAUSE
            continue
        dues[due[0]] = rests.failed(1, now, due[:1], alone=True)
        failed.append(now)
        now += 2 * PAUSE  # as long as a worker waits
    lately = [at for at in failed if at > now - timedelta(hours=1)]
    assert 40 <= len(lately) <= 60, "each of them once"


def test_what_an_operator_has_tried_again_and_what_closes_a_gap_is_tried_first(clock):
    rests, now = Rests(), clock.now()
    intents = [intent(pk) for pk in range(1, 21)]
    for one in intents[:15]:
        rests.failed(1, now, [one.id], alone=True)
    retried, gap = intent(15, is_retried=True), intent(14, kind=IntentKind.REPAIR)
    given = [*intents[:13], gap, retried, *intents[15:]]
    others, *suspects = rests.groups(1, given)
    assert [one.id for one in others] == list(range(16, 21))
    assert [one.id for (one,) in suspects] == [14, 15, *range(1, 9)]
    for _ in range(2):
        rests.failed(1, now, range(16, 21))
    judged = rests.groups(1, given)
    assert [one.id for (one,) in judged] == [14, 15, *range(16, 21), 1, 2, 3]


def intent(pk, *, kind=IntentKind.PAYOUT, is_retried=False):
    """Return what is decided by of an intent."""
    return SimpleNamespace(id=pk, is_retried=is_retried, update=SimpleNamespace(kind=kind))
