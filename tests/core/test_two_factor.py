"""The second factor below the API: which codes are taken, that each is taken once, and how guessing ends."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from urllib.parse import parse_qs, unquote, urlparse

import pytest
from sqlalchemy import insert

from cambist.secrets import SecretsBox, SecretsError
from cambist.services.errors import ConflictError, ForbiddenError, ServiceError, TooManyError, UnauthenticatedError
from cambist.services.identity.members import MEMBERS
from cambist.services.identity.two_factor import TwoFactor, codes
from cambist.testing.clock import seeded_ids
from tests.support.members import a_member
from tests.support.two_factor import Authenticator, code_at

SESSION = "ses_ada"


@pytest.fixture
def two_factor(db, ids, clock):
    return TwoFactor(MEMBERS, db, SecretsBox([b"k" * 32], ids.random_bytes), ids, clock)


async def a_merchant(db, clock, name="ada"):
    """Add a merchant whose first member is signed in; return the merchant's primary key."""
    now = clock.now()
    async with db.transaction() as conn:
        pk = await a_member(conn, name, f"{name}@shop.example")
        session = {"session_id": f"ses_{name}", "person_pk": pk, "refresh_hash": name.encode()}
        times = {"created_at": now, "last_used_at": now, "expires_at": now + timedelta(days=1)}
        await conn.execute(insert(MEMBERS.session).values(**session, **times))
    return pk


@pytest.fixture
async def ada(db, clock):
    return await a_merchant(db, clock)


async def turn_on(two_factor, merchant_pk, clock, session_id=SESSION):
    enrolment = await two_factor.enrol(merchant_pk, "ada@shop.example", None)
    phone = Authenticator(enrolment.secret, clock)
    recovery = await two_factor.confirm(merchant_pk, phone.code(), session_id=session_id)
    clock.advance(30)
    return phone, recovery


@pytest.fixture
async def enrolled(two_factor, ada, clock):
    return await turn_on(two_factor, ada, clock)


@pytest.fixture
async def phone(enrolled):
    return enrolled[0]


@pytest.fixture
async def recovery(enrolled):
    return enrolled[1]


async def outcome(work):
    try:
        await work
    except ServiceError as error:
        return error.code
    return "taken"


async def refusal(work):
    with pytest.raises(ForbiddenError) as caught:
        await work
    return caught.value.code


async def state(db, merchant_pk):
    async with db.autocommit() as conn:
        result = await conn.exec_driver_sql(
            "SELECT last_step, wrong_codes, locked_until FROM two_factor_states WHERE member_pk = $1", (merchant_pk,)
        )
        return result.one()


async def all_at_once(db, merchant_pk, works):
    """Let every attempt get as far as it can while the merchant's row is locked, then let them go."""
    async with db.transaction() as conn:
        await conn.exec_driver_sql("SELECT FROM two_factor_states WHERE member_pk = $1 FOR UPDATE", (merchant_pk,))
        attempts = [asyncio.create_task(outcome(work)) for work in works]
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        async with asyncio.timeout(60), db.autocommit() as watching:
            while (await watching.exec_driver_sql(waiting)).scalar_one() < len(attempts):  # noqa: ASYNC110  only the database knows
                await asyncio.sleep(0.01)
    return await asyncio.gather(*attempts)


@pytest.mark.parametrize(
    "seconds, expected",
    [
        (59, "94287082"),
        (1111111109, "07081804"),
        (1111111111, "14050471"),
        (1234567890, "89005924"),
        (2000000000, "69279037"),
        (20000000000, "65353130"),
    ],
)
def test_the_authenticator_of_the_tests_gives_the_codes_of_the_standard(clock, seconds, expected):
    """The vectors of RFC 6238, appendix B, whose last six digits are what a phone shows."""
    key = b"12345678901234567890"
    assert code_at(key, seconds, digits=8) == expected
    moment = clock.now().fromtimestamp(seconds, tz=clock.now().tzinfo)
    assert codes.step_of(key, expected[2:], moment) == seconds // 30


def test_the_secret_is_written_as_authenticators_read_it(clock):
    key = bytes(range(20))
    enrolment = codes.enrolment(key, "rené+1@shop.example", "Cambist")
    uri = urlparse(enrolment.uri)
    asked = {name: values[0] for name, values in parse_qs(uri.query).items()}
    assert (uri.scheme, uri.netloc, unquote(uri.path)) == ("otpauth", "totp", "/Cambist:rené+1@shop.example")
    assert asked == {
        "secret": enrolment.secret, "issuer": "Cambist", "algorithm": "SHA1", "digits": "6", "period": "30"
    }  # fmt: skip
    assert Authenticator(enrolment.secret, clock).key == key


def test_a_recovery_code_is_read_however_it_is_typed():
    ids = seeded_ids(7)
    for _ in range(50):
        code = codes.new_recovery_code(ids)
        assert re.fullmatch(r"(?:[0-9a-hjkmnp-tv-z]{5}-){4}[0-9a-hjkmnp-tv-z]{5}", code)
        typed = [code.upper(), code.replace("-", ""), f" {code} ", code.replace("-", " "), code.replace("0", "o")]
        typed += [code.replace("1", "l"), code.upper().replace("1", "I").replace("0", "O")]
        assert {codes.recovery_hash(one) for one in typed} == {codes.recovery_hash(code)}


@pytest.mark.parametrize("text", ["", "123456", "a" * 24, "a" * 26, "é" * 25, "İ" * 25, "\u0661" * 25, "a" * 24 + "\n"])
def test_what_cannot_be_a_recovery_code_is_not_looked_up(text):
    assert codes.recovery_hash(text) is None


async def test_a_code_is_taken_once(two_factor, ada, phone):
    code = phone.code()
    await two_factor.require_code(ada, code)
    assert await refusal(two_factor.require_code(ada, code)) == "TWO_FACTOR_INVALID"


async def test_a_code_used_ten_times_at_once_is_taken_once(two_factor, db, ada, phone):
    code = phone.code()
    outcomes = await all_at_once(db, ada, [two_factor.require_code(ada, code) for _ in range(10)])
    assert sorted(outcomes) == ["TWO_FACTOR_INVALID"] * 9 + ["taken"]
    assert (await state(db, ada)).wrong_codes == 0, "a request sent twice by mistake is no guess"


async def test_a_recovery_code_used_ten_times_at_once_is_taken_once(two_factor, db, ada, recovery):
    outcomes = await all_at_once(db, ada, [two_factor.require_code(ada, recovery[0]) for _ in range(10)])
    assert outcomes.count("taken") == 1


@pytest.mark.parametrize(
    "drift_s, expected", [(-60, False), (-30, True), (0, True), (30, True), (60, False), (3600, False)]
)
async def test_a_phone_may_be_one_step_early_or_late(two_factor, ada, phone, clock, drift_s, expected):
    clock.advance(90)
    taken = await outcome(two_factor.require_code(ada, phone.code(drift_s))) == "taken"
    assert taken == expected


async def test_no_code_older_than_one_that_was_taken_is_taken(two_factor, ada, phone, clock):
    clock.advance(90)
    await two_factor.require_code(ada, phone.code(30))
    for drift_s in (-30, 0, 30):
        assert await refusal(two_factor.require_code(ada, phone.code(drift_s))) == "TWO_FACTOR_INVALID"
    clock.advance(60)
    await two_factor.require_code(ada, phone.code())


async def test_each_of_several_steps_gives_a_code(two_factor, ada, phone, clock):
    for _ in range(5):
        await two_factor.require_code(ada, phone.code())
        clock.advance(30)


@pytest.mark.parametrize("blank", [None, ""])
async def test_without_a_code_nothing_is_spent_or_counted(two_factor, db, ada, phone, blank):
    before = await state(db, ada)
    assert await refusal(two_factor.require_code(ada, blank)) == "TWO_FACTOR_REQUIRED"
    assert await state(db, ada) == before


async def test_who_has_not_enrolled_has_no_code(two_factor, ada):
    for code in (None, "123456"):
        assert await refusal(two_factor.require_code(ada, code)) == "TWO_FACTOR_NOT_ENROLLED"
    await two_factor.enrol(ada, "ada@shop.example", None)
    assert await refusal(two_factor.require_code(ada, "123456")) == "TWO_FACTOR_NOT_ENROLLED"


async def test_one_merchants_code_is_not_anothers(two_factor, db, ada, phone, recovery, clock):
    bob = await a_merchant(db, clock, "bob")
    await turn_on(two_factor, bob, clock, "ses_bob")
    for code in (phone.code(), recovery[0]):
        assert await refusal(two_factor.require_code(bob, code)) == "TWO_FACTOR_INVALID"


async def test_five_wrong_codes_lock_even_the_right_one_out_for_a_quarter_of_an_hour(two_factor, ada, phone, clock):
    for _ in range(5):
        assert await refusal(two_factor.require_code(ada, phone.wrong_code())) == "TWO_FACTOR_INVALID"
    with pytest.raises(TooManyError) as caught:
        await two_factor.require_code(ada, phone.code())
    assert (caught.value.code, caught.value.retry_after_s) == ("TOO_MANY_CODES", 900)
    assert "recovery code" in str(caught.value)
    clock.advance(899.5)
    with pytest.raises(TooManyError) as caught:
        await two_factor.require_code(ada, phone.code())
    assert caught.value.retry_after_s == 1
    clock.advance(0.5)
    await two_factor.require_code(ada, phone.code())


async def test_a_lock_of_a_clock_that_was_ahead_ends_once_it_is_right_again(two_factor, ada, phone, clock):
    right = clock.now()
    clock.set(right + timedelta(days=365))
    for _ in range(5):
        await refusal(two_factor.require_code(ada, phone.wrong_code()))
    clock.set(right)
    await two_factor.require_code(ada, phone.code())


async def test_of_many_guesses_at_once_five_are_looked_at(two_factor, db, ada, phone):
    wrong = phone.wrong_code()
    outcomes = await all_at_once(db, ada, [two_factor.require_code(ada, wrong) for _ in range(20)])
    assert (outcomes.count("TWO_FACTOR_INVALID"), outcomes.count("TOO_MANY_CODES")) == (5, 15)
    assert (await state(db, ada)).wrong_codes == 5


async def test_guessing_on_is_locked_out_twice_as_long_each_time_up_to_a_day(two_factor, db, ada, phone, clock):
    waits = []
    for _ in range(9):
        for _ in range(5):
            await outcome(two_factor.require_code(ada, phone.wrong_code()))
        wait = (await state(db, ada)).locked_until - clock.now()
        waits.append(int(wait.total_seconds()))
        clock.advance(wait.total_seconds())
    assert waits == [900, 1800, 3600, 7200, 14400, 28800, 57600, 86400, 86400]
    await two_factor.require_code(ada, phone.code())
    assert (await state(db, ada)).wrong_codes == 0


async def test_a_right_code_forgives_the_wrong_ones_before(two_factor, db, ada, phone, clock):
    for _ in range(3):
        for _ in range(4):
            await outcome(two_factor.require_code(ada, phone.wrong_code()))
        await two_factor.require_code(ada, phone.code())
        clock.advance(30)
    assert (await state(db, ada)).locked_until is None


@pytest.mark.parametrize(
    "text",
    ["12345", "1234567", "\u0661\u0662\u0663\u0664\u0665\u0666", "abcdef", "-1e100", "'; --", "a" * 25, "\ud800"],
)
async def test_what_is_no_code_is_a_wrong_code(two_factor, db, ada, phone, text):
    assert await refusal(two_factor.require_code(ada, text)) == "TWO_FACTOR_INVALID"
    assert (await state(db, ada)).wrong_codes == 1


async def test_a_code_is_read_with_the_space_that_phones_show(two_factor, ada, phone):
    code = phone.code()
    await two_factor.require_code(ada, f" {code[:3]} {code[3:]}")


async def test_each_recovery_code_works_once(two_factor, db, ada, recovery):
    assert len(set(recovery)) == 10
    for used, code in enumerate(recovery, 1):
        await two_factor.require_code(ada, code)
        assert await refusal(two_factor.require_code(ada, code)) == "TWO_FACTOR_INVALID"
        async with db.autocommit() as conn:
            assert (await two_factor.status(conn, ada)).recovery_codes_left == 10 - used


async def test_a_recovery_code_opens_what_somebodys_guesses_locked(two_factor, ada, phone, recovery):
    for _ in range(5):
        await outcome(two_factor.require_code(ada, phone.wrong_code()))
    assert await outcome(two_factor.require_code(ada, "a" * 25)) == "TOO_MANY_CODES"
    await two_factor.require_code(ada, recovery[0])
    await two_factor.require_code(ada, phone.code())


async def test_new_recovery_codes_take_the_place_of_the_old(two_factor, ada, phone, recovery):
    renewed = await two_factor.renew_recovery_codes(ada, phone.code())
    assert not set(renewed) & set(recovery)
    assert await refusal(two_factor.require_code(ada, recovery[0])) == "TWO_FACTOR_INVALID"
    await two_factor.require_code(ada, renewed[0])


async def test_a_code_is_spent_though_what_it_was_for_fails(two_factor, db, ada, phone):
    code = phone.code()

    async def request():
        await two_factor.require_code(ada, code)
        async with db.transaction() as conn:
            await conn.exec_driver_sql("UPDATE merchants SET name = 'Bob'")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await request()
    assert await refusal(two_factor.require_code(ada, code)) == "TWO_FACTOR_INVALID"


async def test_a_secret_waits_a_quarter_of_an_hour_for_its_first_code(two_factor, ada, clock):
    phone = Authenticator((await two_factor.enrol(ada, "ada@shop.example", None)).secret, clock)
    clock.advance(900)
    with pytest.raises(ConflictError, match="Start with a new secret"):
        await two_factor.confirm(ada, phone.code(), session_id=SESSION)


async def test_only_the_secret_shown_last_can_be_confirmed(two_factor, ada, clock):
    first, second = [
        Authenticator((await two_factor.enrol(ada, "ada@shop.example", None)).secret, clock) for _ in range(2)
    ]
    assert await refusal(two_factor.confirm(ada, first.code(), session_id=SESSION)) == "TWO_FACTOR_INVALID"
    await two_factor.confirm(ada, second.code(), session_id=SESSION)
    with pytest.raises(ConflictError):
        await two_factor.confirm(ada, second.code(), session_id=SESSION)


async def test_the_first_code_is_spent_by_confirming(two_factor, ada, clock):
    phone = Authenticator((await two_factor.enrol(ada, "ada@shop.example", None)).secret, clock)
    code = phone.code()
    await two_factor.confirm(ada, code, session_id=SESSION)
    assert await refusal(two_factor.require_code(ada, code)) == "TWO_FACTOR_INVALID"


async def test_guessing_the_first_code_is_locked_too(two_factor, ada, clock):
    phone = Authenticator((await two_factor.enrol(ada, "ada@shop.example", None)).secret, clock)
    for _ in range(5):
        await outcome(two_factor.confirm(ada, phone.wrong_code(), session_id=SESSION))
    assert await outcome(two_factor.confirm(ada, phone.code(), session_id=SESSION)) == "TOO_MANY_CODES"


async def test_an_authenticator_in_use_stays_so_until_the_next_is_confirmed(two_factor, ada, phone, recovery, clock):
    assert await refusal(two_factor.enrol(ada, "ada@shop.example", None)) == "TWO_FACTOR_REQUIRED"
    assert await refusal(two_factor.enrol(ada, "ada@shop.example", phone.wrong_code())) == "TWO_FACTOR_INVALID"
    following = Authenticator((await two_factor.enrol(ada, "ada@shop.example", phone.code())).secret, clock)
    assert await refusal(two_factor.require_code(ada, following.code())) == "TWO_FACTOR_INVALID"
    clock.advance(30)
    await two_factor.require_code(ada, phone.code())
    # In the same half minute: what was taken of the old secret is no use of the new one.
    await two_factor.confirm(ada, following.code(), session_id=SESSION)
    clock.advance(30)
    assert await refusal(two_factor.require_code(ada, phone.code())) == "TWO_FACTOR_INVALID"
    assert await refusal(two_factor.require_code(ada, recovery[0])) == "TWO_FACTOR_INVALID"
    await two_factor.require_code(ada, following.code())


async def test_turned_off_it_is_forgotten(two_factor, db, ada, phone, recovery):
    assert await refusal(two_factor.disable(ada, phone.wrong_code())) == "TWO_FACTOR_INVALID"
    await two_factor.disable(ada, recovery[3])
    async with db.autocommit() as conn:
        for table in ("two_factor_states", "recovery_codes"):
            assert (await conn.exec_driver_sql(f"SELECT count(*) FROM {table}")).scalar_one() == 0  # noqa: S608
    assert await refusal(two_factor.require_code(ada, phone.code())) == "TWO_FACTOR_NOT_ENROLLED"


async def test_a_secret_copied_to_another_merchants_row_opens_nothing(two_factor, db, ada, phone, clock):
    bob = await a_merchant(db, clock, "bob")
    await turn_on(two_factor, bob, clock, "ses_bob")
    async with db.transaction() as conn:
        await conn.exec_driver_sql(
            "UPDATE two_factor_states SET secret_encrypted ="
            " (SELECT secret_encrypted FROM two_factor_states WHERE member_pk = $1) WHERE member_pk = $2",
            (ada, bob),
        )
    with pytest.raises(SecretsError):
        await two_factor.require_code(bob, phone.code())


async def test_a_clock_set_back_opens_no_code_again(two_factor, ada, phone, clock):
    clock.advance(3600)
    codes_then = [phone.code(drift_s) for drift_s in (-30, 0)]
    await two_factor.require_code(ada, phone.code())
    clock.set(clock.now() - timedelta(seconds=30))
    for code in codes_then:
        assert await refusal(two_factor.require_code(ada, code)) == "TWO_FACTOR_INVALID"
    clock.advance(60)
    await two_factor.require_code(ada, phone.code())


async def test_a_sign_in_that_began_before_it_was_turned_on_needs_a_code_too(two_factor, db, ada, clock):
    shown = await two_factor.check_sign_in(ada, None)
    assert shown is False
    await turn_on(two_factor, ada, clock)
    async with db.transaction() as conn:
        with pytest.raises(UnauthenticatedError) as caught:
            await two_factor.lock_sign_in(conn, ada, shown=shown)
    assert caught.value.code == "TWO_FACTOR_REQUIRED"
