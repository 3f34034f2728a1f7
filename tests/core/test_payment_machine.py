"""The payment machine, row by row and as a whole."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cambist.domain.payments import CLOSED_WITH_FUNDS, EVENTS, Deposit, Status, Terms, judge, received
from cambist.plugin import Units

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
EXPIRY = START + timedelta(hours=1)
BEFORE, AFTER = START + timedelta(minutes=5), EXPIRY + timedelta(minutes=5)
LATE = EXPIRY + timedelta(minutes=1)
GRACE = timedelta(hours=24)
REQUIRED = 3


def terms(status=Status.PENDING, *, expected=100, tolerance_bps=0, grace=GRACE, order_units=0):
    return Terms(
        status=Status(status),
        expected=Units(expected),
        tolerance_bps=tolerance_bps,
        expires_at=EXPIRY,
        grace=grace,
        order_units=Units(order_units),
    )


def deposit(units, confirmations=0, *, mined_at=BEFORE, tx_id="tx"):
    return Deposit(
        units=Units(units),
        confirmations=confirmations,
        confirmed=confirmations >= REQUIRED,
        mined_at=mined_at,
        tx_id=tx_id,
    )


def path(*args, **kwargs):
    return [str(step.status) for step in judge(*args, **kwargs)]


ROWS = [
    ("a deposit of less than E leaves it pending", "pending", [(40, 0)], BEFORE, []),
    ("E is seen", "pending", [(100, 0)], BEFORE, ["detected"]),
    ("E is seen in two parts", "pending", [(40, 0), (60, 0)], BEFORE, ["detected"]),
    ("every needed deposit has a confirmation", "detected", [(100, 1)], BEFORE, ["confirming"]),
    ("one needed deposit has none", "detected", [(40, 2), (60, 0)], BEFORE, []),
    ("a surplus without confirmation does not delay it", "detected", [(100, 1), (5, 0)], BEFORE, ["confirming"]),
    ("E is confirmed exactly", "confirming", [(100, 3)], BEFORE, ["paid"]),
    ("more than expected is confirmed", "confirming", [(101, 3)], BEFORE, ["overpaid"]),
    ("what is not confirmed does not make it overpaid", "confirming", [(100, 3), (50, 2)], BEFORE, ["paid"]),
    ("only a part is confirmed", "confirming", [(40, 3), (60, 2)], BEFORE, []),
    ("a further deposit to a paid one changes nothing", "paid", [(100, 9), (50, 9)], BEFORE, []),
    ("nothing came in time", "pending", [], AFTER, ["expired"]),
    ("too little came in time, not confirmed yet", "pending", [(40, 1)], AFTER, ["expired"]),
    ("too little came in time, and is confirmed", "pending", [(40, 3)], AFTER, ["expired", "underpaid"]),
    ("expiry does not touch what is detected", "detected", [(100, 0)], AFTER, []),
    ("expiry does not touch what is confirming", "confirming", [(100, 2)], AFTER, []),
    ("the rest of an expired one is confirmed", "expired", [(40, 3)], AFTER, ["underpaid"]),
    ("an expired one waits for every deposit to be confirmed", "expired", [(40, 3), (10, 1)], AFTER, []),
    ("first seen deep, no state is skipped", "pending", [(100, 9)], BEFORE, ["detected", "confirming", "paid"]),
    ("a reorg takes a part away before expiry", "confirming", [(40, 3)], BEFORE, ["pending"]),
    ("a reorg takes all away before expiry", "detected", [], BEFORE, ["pending"]),
    ("a reorg takes all away after expiry", "detected", [], AFTER, ["failed"]),
    ("a reorg leaves a part after expiry", "confirming", [(40, 3)], AFTER, ["pending", "expired", "underpaid"]),
    ("a deep reorg takes the money of a paid one", "paid", [], AFTER, ["failed"]),
    ("a deep reorg takes a part of an overpaid one", "overpaid", [(40, 9)], AFTER, ["failed"]),
    ("a deep reorg takes only the surplus of an overpaid one", "overpaid", [(100, 9)], AFTER, []),
    ("the money of a failed one comes back", "failed", [(100, 0)], AFTER, ["detected"]),
    ("a refunded one is left alone", "refunded", [(100, 9)], AFTER, []),
]  # fmt: skip


@pytest.mark.parametrize("status, deposits, now, expected", [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_each_row_of_the_table(status, deposits, now, expected):
    assert path(terms(status), [deposit(*pair) for pair in deposits], now) == expected


def test_the_rest_within_the_grace_revives_an_expired_payment():
    deposits = [deposit(40, 3), deposit(60, 0, mined_at=LATE)]
    assert path(terms("expired"), deposits, AFTER) == ["detected"]
    assert path(terms("underpaid", order_units=40), deposits, AFTER) == ["detected"]


def test_money_after_the_grace_changes_nothing():
    too_late = EXPIRY + GRACE + timedelta(seconds=1)
    deposits = [deposit(100, 9, mined_at=too_late)]
    assert path(terms("expired"), deposits, too_late + timedelta(hours=1)) == []


def test_a_locked_rate_has_no_grace():
    deposits = [deposit(100, 0, mined_at=LATE)]
    assert path(terms("expired", grace=timedelta(0)), deposits, AFTER) == []


def test_money_that_was_mined_after_expiry_is_late_even_when_it_is_first_seen_with_the_expiry():
    """After an outage the gateway learns of both at once; the rate was locked only until the expiry."""
    deposits = [deposit(100, 9, mined_at=LATE)]
    assert path(terms("pending", grace=timedelta(0)), deposits, AFTER) == ["expired"]
    assert path(terms("pending"), deposits, AFTER) == ["expired", "detected", "confirming", "paid"]


def test_money_that_was_mined_in_time_is_in_time_however_late_it_is_seen():
    assert path(terms("pending", grace=timedelta(0)), [deposit(100, 0)], AFTER) == ["detected"]


def test_late_money_does_not_make_an_expired_payment_underpaid():
    deposits = [deposit(40, 9, mined_at=LATE)]
    assert path(terms("expired", grace=timedelta(0)), deposits, AFTER) == []


def test_losing_what_an_underpaid_order_was_credited_fails_it():
    assert path(terms("underpaid", order_units=40), [deposit(30, 9)], AFTER) == ["failed"]


@pytest.mark.parametrize("units, status", [(98, []), (99, ["detected"]), (100, ["detected"])])
def test_the_tolerance_lowers_what_is_enough(units, status):
    assert path(terms(tolerance_bps=100), [deposit(units)], BEFORE) == status


def test_within_the_tolerance_the_order_gets_what_came():
    step = judge(terms(tolerance_bps=100), [deposit(99, 9)], BEFORE)[-1]
    assert (step.status, step.order_units, step.received) == (Status.PAID, 99, 99)


def test_an_overpaid_order_gets_what_it_asked_for():
    step = judge(terms(), [deposit(130, 9)], BEFORE)[-1]
    assert (step.status, step.order_units, step.received) == (Status.OVERPAID, 100, 130)


def test_an_underpaid_order_gets_what_was_timely():
    deposits = [deposit(40, 9), deposit(7, 9, mined_at=EXPIRY + GRACE + timedelta(seconds=1))]
    step = judge(terms("expired"), deposits, EXPIRY + GRACE * 2)[-1]
    assert (step.status, step.order_units) == (Status.UNDERPAID, 40)


def test_events_are_told_on_entering_and_underpaid_only_where_it_was_asked_for():
    assert [step.event for step in judge(terms(), [deposit(100, 9)], BEFORE)] == [
        "payment.detected",
        "payment.confirming",
        "payment.paid",
    ]
    quiet, extended = (judge(terms("expired"), [deposit(1, 9)], AFTER, extended_events=flag) for flag in (False, True))
    assert [step.event for step in quiet] == [None]
    assert [step.event for step in extended] == ["payment.underpaid"]


def test_the_transaction_named_is_the_one_that_reached_the_amount():
    deposits = [deposit(40, tx_id="first"), deposit(60, tx_id="second"), deposit(5, tx_id="third")]
    assert judge(terms(), deposits, BEFORE)[0].tx_id == "second"


def test_what_was_received_counts_what_is_seen_until_the_order_ends():
    deposits = [deposit(60, 3), deposit(40, 1)]
    assert received(Status.CONFIRMING, deposits) == 100
    assert received(Status.PAID, deposits) == 60


deposits_anyhow = st.lists(
    st.builds(
        deposit,
        st.integers(1, 150),
        st.integers(0, 6),
        mined_at=st.sampled_from([BEFORE, LATE, EXPIRY + GRACE * 2]),
    ),
    max_size=5,
)


@given(
    st.sampled_from(Status),
    deposits_anyhow,
    st.sampled_from([BEFORE, AFTER, EXPIRY + GRACE * 3]),
    st.sampled_from([0, 50, 1000]),
    st.sampled_from([timedelta(0), GRACE]),
    st.integers(0, 100),
)
def test_from_any_state_the_machine_comes_to_rest(status, deposits, now, tolerance_bps, grace, order_units):
    start = terms(status, tolerance_bps=tolerance_bps, grace=grace, order_units=order_units)
    steps = judge(start, deposits, now)
    if steps:
        rest = terms(steps[-1].status, tolerance_bps=tolerance_bps, grace=grace, order_units=steps[-1].order_units)
        assert judge(rest, deposits, now) == []


class PaymentStory(RuleBasedStateMachine):
    """A payment on a chain that grows, reorganises and is looked at now and then."""

    @initialize(expected=st.integers(1, 50), tolerance_bps=st.sampled_from([0, 100, 1000]), fiat=st.booleans())
    def begin(self, expected, tolerance_bps, fiat):
        self.terms = terms(expected=expected, tolerance_bps=tolerance_bps, grace=timedelta(0) if fiat else GRACE)
        self.now = START
        self.blocks: list[list[int]] = [[]]
        self.times = [START]
        self.told: list[str] = []

    @rule(amounts=st.lists(st.integers(1, 60), max_size=3))
    def mine(self, amounts):
        self.blocks.append(amounts)
        self.times.append(self.now)

    @rule(minutes=st.sampled_from([1, 30, 61, 60 * 24]))
    def wait(self, minutes):
        self.now += timedelta(minutes=minutes)

    @precondition(lambda self: len(self.blocks) > 1)
    @rule(depth=st.integers(1, 6), back=st.booleans())
    def reorg(self, depth, back):
        depth = min(depth, len(self.blocks) - 1)
        lost = [amount for block in self.blocks[-depth:] for amount in block]
        self.blocks[-depth:] = [[] for _ in range(depth)]
        self.times[-depth:] = [self.now] * depth
        if back:
            self.blocks.append(lost)
            self.times.append(self.now)

    @rule()
    def poll(self):
        steps = judge(self.terms, self.deposits(), self.now)
        for before, step in zip([self.terms, *steps], steps, strict=False):
            assert before.status is not step.status
        self.told += [step.event for step in steps if step.event]
        if steps:
            last = steps[-1]
            self.terms = Terms(
                status=last.status,
                expected=self.terms.expected,
                tolerance_bps=self.terms.tolerance_bps,
                expires_at=EXPIRY,
                grace=self.terms.grace,
                order_units=last.order_units,
            )
        self.check_at_rest()

    def deposits(self):
        head = len(self.blocks) - 1
        return [
            deposit(amount, head - height, mined_at=self.times[height])
            for height, block in enumerate(self.blocks)
            for amount in block
        ]

    def check_at_rest(self):
        deposits = self.deposits()
        seen = sum(d.units for d in deposits)
        confirmed = sum(d.units for d in deposits if d.confirmed)
        status, enough = self.terms.status, self.terms.enough
        if status in (Status.PAID, Status.OVERPAID, Status.DETECTED, Status.CONFIRMING):
            assert seen >= enough
        if status is Status.PENDING:
            assert self.now < EXPIRY
        if status is Status.CONFIRMING:
            assert confirmed < enough
        if status is Status.FAILED:
            assert seen < enough
        if status in CLOSED_WITH_FUNDS:
            assert 0 < self.terms.order_units <= self.terms.expected

    @invariant()
    def paid_is_always_told_after_detected_and_confirming(self):
        told = getattr(self, "told", [])
        order = [EVENTS[Status.DETECTED], EVENTS[Status.CONFIRMING]]
        for index, event in enumerate(told):
            if event in (EVENTS[Status.PAID], EVENTS[Status.OVERPAID]):
                assert told[:index][-1] == order[1]
                assert order[0] in told[:index]


TestPaymentStory = PaymentStory.TestCase
TestPaymentStory.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
