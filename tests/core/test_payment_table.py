"""Every state of a payment against everything that can be true of its chain when it is judged."""

from datetime import UTC, datetime, timedelta

import pytest

from cambist.domain.payments import Deposit, Status, Terms, judge
from cambist.plugin import Units

EXPIRY = datetime(2026, 1, 1, 13, tzinfo=UTC)
GRACE = timedelta(hours=24)
EARLY, LATE, TOO_LATE = (
    EXPIRY - timedelta(minutes=5),
    EXPIRY + timedelta(minutes=1),
    EXPIRY + GRACE + timedelta(hours=1),
)
BEFORE, AFTER, LONG_AFTER = EXPIRY - timedelta(minutes=1), EXPIRY + timedelta(minutes=5), EXPIRY + GRACE * 2

EXPECTED, PART, REQUIRED = 100, 40, 3

# What stands in the chain, as (units, confirmations, mined at), and when that is judged.
TRIGGERS = {
    "nothing": ([], BEFORE),
    "a part is seen": ([(40, 0, EARLY)], BEFORE),
    "a part is confirmed": ([(40, 3, EARLY)], BEFORE),
    "enough is seen": ([(100, 0, EARLY)], BEFORE),
    "enough has a confirmation": ([(100, 1, EARLY)], BEFORE),
    "enough is confirmed": ([(100, 3, EARLY)], BEFORE),
    "more is confirmed": ([(130, 3, EARLY)], BEFORE),
    "nothing, and it expires": ([], AFTER),
    "a part is seen, and it expires": ([(40, 1, EARLY)], AFTER),
    "a part is confirmed, and it expires": ([(40, 3, EARLY)], AFTER),
    "the rest comes within the grace": ([(40, 3, EARLY), (60, 0, LATE)], AFTER),
    "all comes after the grace": ([(100, 9, TOO_LATE)], LONG_AFTER),
}

# One column per trigger, in their order. Capitals spell the path: Pending, Detected, Confirming, pAid, Overpaid,
# eXpired, Underpaid, Failed; a point is to stay.
LETTERS = dict(zip("PDCAOXUF", [
    Status.PENDING, Status.DETECTED, Status.CONFIRMING, Status.PAID, Status.OVERPAID, Status.EXPIRED,
    Status.UNDERPAID, Status.FAILED,
], strict=True))  # fmt: skip
TABLE = {
    Status.PENDING:    ". . . D DC DCA DCO X X  XU  XD X",
    Status.DETECTED:   "P P P . C  CA  CO  F PX PXU .  CA",
    Status.CONFIRMING: "P P P . .  A   O   F PX PXU .  A",
    Status.PAID:       "F F F . .  .   .   F F  F   .  .",
    Status.OVERPAID:   "F F F . .  .   .   F F  F   .  .",
    Status.UNDERPAID:  "F . . D DC DCA DCO F .  .   D  .",
    Status.EXPIRED:    ". . U D DC DCA DCO . .  U   D  .",
    Status.FAILED:     ". . . D DC DCA DCO . .  .   D  DCA",
    Status.REFUNDED:   ". . . . .  .   .   . .  .   .  .",
}  # fmt: skip

CELLS = [
    pytest.param(status, trigger, path, id=f"{status}: {trigger}")
    for status, row in TABLE.items()
    for trigger, path in zip(TRIGGERS, row.split(), strict=True)
]


def test_the_table_has_every_state():
    assert set(TABLE) == set(Status)


@pytest.mark.parametrize("status, trigger, path", CELLS)
def test_every_state_meets_every_trigger(status, trigger, path):
    deposits, now = TRIGGERS[trigger]
    credited = {Status.PAID: EXPECTED, Status.OVERPAID: EXPECTED, Status.UNDERPAID: PART}
    terms = Terms(
        status=status,
        expected=Units(EXPECTED),
        tolerance_bps=0,
        expires_at=EXPIRY,
        grace=GRACE,
        order_units=Units(credited.get(status, 0)),
    )
    standing = [
        Deposit(units=Units(units), confirmations=deep, confirmed=deep >= REQUIRED, mined_at=mined_at, tx_id="tx")
        for units, deep, mined_at in deposits
    ]
    expected = [LETTERS[letter] for letter in path if letter != "."]
    assert [step.status for step in judge(terms, standing, now)] == expected
