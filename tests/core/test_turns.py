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
    SUSPECTS_PAUSE,
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


def test_what_is_known_to_fail_has_no_sender_rest_but_the_chains_suspects_for_a_while(clock):
    turns, now = Turns(), clock.now()
    turns.learn(1, dict.fromkeys(range(1, 21), now), now)
    turns.learn(2, dict.fromkeys((31, 32, 33), now), now)
    given = [intent(31), intent(32, is_retried=True), intent(33, kind=IntentKind.REPAIR), intent(34)]
    turns.failed(1, now, [1], alone=True)
    assert turns.suspects_rest_until(now) is None, "it may be an outage: nobody was served"
    turns.served(99)
    turns.failed(1, now, [1], alone=True)
    assert not turns.rests(1, now), "what is new of it is tried"
    assert turns.suspects_rest_until(now) == now + SUSPECTS_PAUSE
    assert turns.resting(2, given, now) == given[:1]
    assert turns.resting(3, given, now) == []
    turns.forget_past(now + PAUSE_MAX)
    assert is_failing(turns, 2), "it waits for longer than it would have"
    assert turns.resting(2, given, now + SUSPECTS_PAUSE) == []
    assert turns.suspects_rest_until(now + SUSPECTS_PAUSE) is None


def test_what_is_judged_one_by_one_has_no_rest_grow_and_what_is_new_does(clock):
    turns, now = Turns(), clock.now()
    for _ in range(2):
        turns.served(99)
        turns.failed(1, now, range(1, 40))
    for pk in range(1, 40):
        turns.served(99)
        turns.failed(1, now, [pk], alone=True)
        assert turns.rests_until(1, now) - now == 2 * PAUSE
        now += 2 * PAUSE
    for times in (2, 3, 4, 5):
        turns.served(99)
        turns.failed(1, now, [100 + times], alone=True)
        assert turns.rests_until(1, now) - now == PAUSE * 2**times


def test_what_is_judged_next_is_the_oldest_and_the_newest_by_turns(clock):
    turns, now, given = Turns(), clock.now(), [intent(pk) for pk in range(1, 31)]
    for _ in range(2):
        turns.failed(1, now, range(1, 30))
    judged = []
    for _ in range(4):
        (one,) = turns.groups(1, given)[0]
        judged.append(one.id)
        turns.failed(1, now, [one.id], alone=True)
    assert judged == [1, 30, 2, 29], "the newest was asked for when the others were known to fail"


def test_of_those_that_failed_who_did_so_last_comes_last(clock):
    turns, now = Turns(), clock.now()
    for pk in (3, 1, 2, 3):
        turns.failed(pk, now, [pk], alone=True)
    assert turns.in_order([3, 2, 1, 4]) == [4, 1, 2, 3]


def test_what_was_due_long_before_a_process_began_is_known_to_it_as_long_as_what_failed_lately(clock):
    turns, now = Turns(), clock.now()
    turns.learn(1, {5: now - timedelta(hours=8), 6: now - timedelta(hours=9)}, now)
    turns.forget_past(now + PAUSE_MAX - PAUSE)
    assert [[one.id for one in group] for group in turns.groups(1, [intent(5), intent(7), intent(8)])] == [[7, 8], [5]]
    turns.forget_past(now + PAUSE_MAX)
    assert not is_failing(turns, 1)


def test_who_waits_for_its_turn_is_not_forgotten_however_long_that_takes(clock):
    turns, now = Turns(), clock.now()
    for pk in (1, 2):
        turns.failed(pk, now, [pk], alone=True)
    turns.forget_past(now + timedelta(hours=1), {2: [], 3: []})
    assert (is_failing(turns, 1), is_failing(turns, 2)) == (False, True)


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
    assert turns.learn(1, dues, now) == list(range(1, APART_MAX + 1))
    assert turns.learn(2, {5_000: now + PAUSE}, now) == [5_000]
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
    assert [one.id for (one,) in judged] == [14, 15, *range(20, 15, -1), 1, 2, 3]


def intent(pk, *, kind=IntentKind.PAYOUT, is_retried=False):
    """Return what is decided by of an intent."""
    return SimpleNamespace(id=pk, is_retried=is_retried, update=SimpleNamespace(kind=kind))
