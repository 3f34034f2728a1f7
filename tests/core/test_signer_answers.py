"""A person's answers to the signer's questions over a gateway that may be in anybody's hands."""

from __future__ import annotations

import stat
from collections import Counter

import pytest

from cambist.settings import Settings, SettingsError, SignerSettings
from cambist.signer import answers, refusals
from cambist.signer.files import KeystoreError
from cambist.signer.reports import AnswerToQuestion, Refused
from cambist.signer.startup import open_local_signer
from tests.support.signing import KEYSTORE, answer, opening, registry, request, stranger

KEY = bytes(range(32))
LARGE = 5_000_000


@pytest.fixture
async def signers(tmp_path, clock):
    async with opening(tmp_path / "store", clock, approval_limits={"memory/USDX": "5"}) as make:
        yield make


@pytest.fixture
def open_(signers):
    return lambda: signers(answers_key=KEY)


def asked(name: str, sequence: int, amount: int = LARGE):
    return request(stranger(name), amount, sequence=sequence, reference=f"payout:po_{sequence}")


async def question(signer, asked_for):
    """Ask for a signature that needs a person, and return the question."""
    reply = await answer(signer, asked_for)
    assert reply.refusal == "APPROVAL_NEEDED"
    return next(one for one in (await signer.report()).questions if one.reference == asked_for.reference)


def said(found, clock, verdict="approve", *, key=KEY, of=None, code=None, at=None):
    moment = int(clock.now().timestamp()) if at is None else at
    made = code or answers.code_for(key, verdict, (of or found).question, moment)
    return AnswerToQuestion(pk=found.pk, question=found.question, verdict=verdict, code=made)


async def test_a_code_approves_what_was_read_once(open_, clock):
    signer, wanted = open_(), asked("bob", 1)
    found = await question(signer, wanted)
    assert "5 USDX" in found.question
    assert stranger("bob") in found.question
    assert (await signer.report()).answers_open
    given = said(found, clock)
    assert await signer.answer(given) == "approved"
    assert (await answer(signer, wanted)).signature is not None
    assert await signer.answer(given) == "not_waiting", "a replay finds nothing"
    another = asked("bob", 2)
    again = await question(signer, another)
    replayed = AnswerToQuestion(pk=again.pk, question=again.question, verdict="approve", code=given.code)
    assert await signer.answer(replayed) == "code_wrong"
    assert (await answer(signer, another)).refusal == "APPROVAL_NEEDED"


async def test_a_code_for_one_question_is_none_for_another_whatever_the_gateway_makes_of_it(open_, clock):
    """Whoever has taken over the gateway shows one question, and passes the code on for another."""
    signer = open_()
    shown = await question(signer, asked("bob", 1))
    thiefs = await question(signer, asked("thief", 2, 9 * LARGE))
    assert await signer.answer(said(thiefs, clock, of=shown)) == "code_wrong"
    mixed = AnswerToQuestion(pk=thiefs.pk, question=shown.question, verdict="approve", code=said(shown, clock).code)
    assert await signer.answer(mixed) == "question_changed"
    turned = AnswerToQuestion(
        pk=shown.pk, question=shown.question, verdict="approve", code=said(shown, clock, "deny").code
    )
    assert await signer.answer(turned) == "code_wrong"
    assert (await answer(signer, asked("thief", 2, 9 * LARGE))).refusal == "APPROVAL_NEEDED"


async def test_what_is_denied_is_never_signed(open_, clock):
    signer, wanted = open_(), asked("bob", 1)
    found = await question(signer, wanted)
    assert await signer.answer(said(found, clock, "deny")) == "denied"
    assert (await answer(signer, wanted)).refusal == "DENIED"
    assert (await signer.void("live", "memory", [wanted.reference]))[0].is_unsigned
    assert (await answer(signer, wanted)).refusal == "DENIED", "to void it once more does not make it another's will"
    report = await signer.report()
    assert [one.reference for one in report.voided] == [wanted.reference]
    assert [one.code for one in report.refused] == ["DENIED", "APPROVAL_NEEDED"]


async def test_what_waits_is_told_of_once_however_often_it_is_refused(open_, clock):
    signer, first = open_(), clock.now()
    waiting, other = asked("bob", 1), asked("eve", 2)
    for _ in range(3):
        await question(signer, waiting)
        clock.advance(60)
    await question(signer, other)
    await question(signer, waiting)
    told = [(one.reference, one.times, one.first_at, one.at) for one in (await signer.report()).refused]
    assert told == [(waiting.reference, 4, first, clock.now()), (other.reference, 1, None, clock.now())]


async def test_what_is_asked_for_with_another_recipient_or_amount_is_told_of_beside_it(open_):
    signer = open_()
    for one in (asked("thief", 1), asked("bob", 1, 2 * LARGE), asked("bob", 1), asked("bob", 1)):
        await answer(signer, one)
    told = [(one.reason.partition(" waits")[0], one.times) for one in (await signer.report()).refused]
    bob = stranger("bob")
    assert told == [(f"5 USDX to {bob}", 2), (f"10 USDX to {bob}", 1), (f"5 USDX to {stranger('thief')}", 1)]


def test_of_too_many_refusals_those_that_only_wait_are_left_out_first_and_then_of_the_most_common_kind(clock):
    kept = refusals.RefusalsKept()

    def note(code, number):
        reason, reference = f"A reason of {code}.", f"payout:po_{number}"
        one = Refused(at=clock.now(), code=code, reason=reason, chain="memory", reference=reference, purpose="payout")
        kept.note(one)

    note("FOREIGN_SOURCE", 0)
    for number in range(1, refusals.KEPT + 2):
        note("APPROVAL_NEEDED", number)
    told = [one.reference for one in kept.newest_first()]
    assert (len(told), told[0]) == (refusals.KEPT, f"payout:po_{refusals.KEPT + 1}")
    assert told[-2:] == ["payout:po_3", "payout:po_0"]
    for number in range(2 * refusals.KEPT):
        note("UNREADABLE_PAYLOAD", number)
    codes = Counter(one.code for one in kept.newest_first())
    assert codes == {"FOREIGN_SOURCE": 1, "UNREADABLE_PAYLOAD": refusals.KEPT - 1}


def test_a_fee_that_is_another_one_at_each_try_is_told_of_once(clock):
    kept = refusals.RefusalsKept()
    for fee in range(3):
        reason = f"A fee of up to {fee} is more than signer.fee_caps on memory."
        one = Refused(
            at=clock.now(), code="FEE_ABOVE_CAP", reason=reason, chain="memory", reference="1", purpose="payout"
        )
        kept.note(one)
    assert [(one.times, one.reason) for one in kept.newest_first()] == [(3, reason)]


async def test_wrong_codes_are_few_and_counted_across_a_restart(signers, clock):
    signer, wanted = signers(answers_key=KEY), asked("bob", 1)
    found = await question(signer, wanted)
    for number in range(3):
        assert await signer.answer(said(found, clock, code=f"{number:08}")) == "code_wrong"
    signer = signers(answers_key=KEY)
    for number in range(2):
        assert await signer.answer(said(found, clock, code=f"{number + 9:08}")) == "code_wrong"
    assert await signer.answer(said(found, clock)) == "locked", "the right one, too"
    signer = signers(answers_key=KEY)
    assert (await signer.report()).locked_until is not None
    clock.advance(3_590)
    assert await signer.answer(said(found, clock)) == "locked"
    clock.advance(11)
    assert await signer.answer(said(found, clock)) == "approved"


async def test_a_code_is_good_for_some_minutes(open_, clock):
    signer = open_()
    found = await question(signer, asked("bob", 1))
    now = int(clock.now().timestamp())
    assert await signer.answer(said(found, clock, at=now - 6 * 60)) == "code_wrong"
    assert await signer.answer(said(found, clock, at=now + 2 * 60)) == "code_wrong"
    assert await signer.answer(said(found, clock, at=now - 5 * 60)) == "approved"


async def test_whose_secret_it_is_not_and_where_the_door_is_shut_nothing_is_approved(signers, clock):
    shut, wanted = signers(), asked("bob", 1)
    found = await question(shut, wanted)
    assert await shut.answer(said(found, clock)) == "not_open"
    assert not (await shut.report()).answers_open
    opened = signers(answers_key=KEY)
    assert await opened.answer(said(found, clock, key=bytes(32))) == "code_wrong"


async def test_a_question_is_read_as_it_was_shown_however_its_lines_were_broken(open_, clock):
    signer = open_()
    found = await question(signer, asked("bob", 1))
    broken = found.question.replace(" ", "\n ")
    code = answers.code_for(KEY, "approve", broken, int(clock.now().timestamp()))
    spaced = f"{code[:4]} {code[4:]}"
    given = AnswerToQuestion(pk=found.pk, question=broken, verdict="approve", code=spaced)
    assert await signer.answer(given) == "approved"


async def test_the_report_tells_rules_and_how_much_of_them_is_used(tmp_path, clock):
    rules = {"hourly_caps": {"memory/USDX": "100"}, "fee_hourly_caps": "unlimited", "allowed_addresses": {}}
    async with opening(tmp_path / "store", clock, **rules) as make:
        signer = make()
        await answer(signer, request(stranger("bob"), 3_000_000))
        told = {(one.setting, one.name): one for one in (await signer.report()).rules}
    assert (told["hourly_caps", "memory/USDX"].limit, told["hourly_caps", "memory/USDX"].used) == ("100", "3")
    assert told["fee_hourly_caps", "memory"].limit is None


def test_a_secret_is_made_once_for_its_owner_alone(tmp_path, ids):
    random_bytes = ids.random_bytes
    secret = answers.enrol(tmp_path / "store", random_bytes)
    key = answers.read_key(tmp_path / "store")
    assert key is not None
    assert answers.parse(f" {secret.lower()} \n") == key
    file = tmp_path / "store" / answers.KEY_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(KeystoreError):
        answers.enrol(tmp_path / "store", random_bytes)
    assert answers.parse(answers.enrol(tmp_path / "store", random_bytes, renew=True)) != key
    file.chmod(0o644)
    with pytest.raises(KeystoreError, match="open to others"):
        answers.read_key(tmp_path / "store")
    assert answers.parse("no secret") is None


async def test_a_door_without_a_lock_stops_the_start(tmp_path, clock, ids):
    known = registry()
    settings = Settings(data_dir=tmp_path, signer=SignerSettings(store=tmp_path / "store", approvals_by_api=True))
    with pytest.raises(SettingsError, match="cambist signer enrol"):
        async with open_local_signer(settings, known, clock, KEYSTORE):
            pass
    answers.enrol(tmp_path / "store", ids.random_bytes)
    async with open_local_signer(settings, known, clock, KEYSTORE) as signer:
        assert (await signer.report()).answers_open
