"""What the signer tells reaches the database, and answers reach the signer, each once; no code is left behind."""

from __future__ import annotations

import pytest

from cambist.services.errors import ConflictError, NotFoundError
from cambist.services.signing import answers, reports
from cambist.signer import answers as codes
from cambist.signer.protocol import SignerUnavailableError
from tests.core.test_signer_answers import KEY, asked, question
from tests.support.signing import answer, opening


@pytest.fixture
async def signer(tmp_path, clock):
    async with opening(tmp_path / "store", clock, approval_limits={"memory/USDX": "5"}) as make:
        yield make(answers_key=KEY)


async def copy(db, signer, clock) -> None:
    report = await signer.report()
    async with db.transaction() as conn:
        await reports.save(conn, report, clock.now())


async def give(db, ids, clock, found, *, verdict="approve", code=None, text=None):
    made = code or codes.code_for(KEY, verdict, found.question, int(clock.now().timestamp()))
    async with db.transaction() as conn:
        return await answers.give(
            conn, ids, str(found.pk), question=text or found.question, verdict=verdict, code=made, asked_by="op_1",
            now=clock.now(),
        )  # fmt: skip


async def latest(db):
    async with db.autocommit() as conn:
        stored = (await conn.exec_driver_sql("SELECT code FROM signer_answers ORDER BY id DESC LIMIT 1")).scalar_one()
        return (await answers.list_latest(conn))[0], stored


async def test_an_answer_is_handed_on_and_its_code_forgotten(db, ids, clock, signer):
    wanted = asked("bob", 1)
    found = await question(signer, wanted)
    with pytest.raises(ConflictError) as refused:
        await give(db, ids, clock, found)
    assert refused.value.code == "APPROVALS_NOT_OPEN", "nobody has copied a report yet"
    await copy(db, signer, clock)
    async with db.autocommit() as conn:
        copied = await reports.load(conn)
    assert copied is not None
    assert copied.report.questions == [found]
    with pytest.raises(ConflictError) as refused:
        await give(db, ids, clock, found, text=found.question.replace("5 USDX", "1 USDX"))
    assert refused.value.code == "APPROVAL_CHANGED"
    await give(db, ids, clock, found)
    assert await answers.hand_on(db, signer, clock) == 1
    told, code = await latest(db)
    assert (told.outcome, code) == ("approved", None)
    assert (await answer(signer, wanted)).signature is not None
    assert await answers.hand_on(db, signer, clock) == 0
    await copy(db, signer, clock)
    with pytest.raises(NotFoundError):
        await give(db, ids, clock, found)
    async with db.autocommit() as conn:
        entries = (
            await conn.exec_driver_sql("SELECT details FROM audit_entries WHERE action = 'signer.answered'")
        ).all()
    assert [entry.details["outcome"] for entry in entries] == ["approved"]
    assert "code" not in entries[0].details


async def test_what_is_written_into_the_database_approves_nothing(db, ids, clock, signer):
    """Whoever has the database changes what is reported, and makes up answers."""
    wanted = asked("thief", 1)
    found = await question(signer, wanted)
    await copy(db, signer, clock)
    await give(db, ids, clock, found, code="12345678")
    async with db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE signer_answers SET question = 'Is the weather nice?'")
    await answers.hand_on(db, signer, clock)
    assert (await latest(db))[0].outcome == "question_changed"
    await give(db, ids, clock, found, code="12345678")
    await answers.hand_on(db, signer, clock)
    assert (await latest(db))[0].outcome == "code_wrong"
    assert (await answer(signer, wanted)).refusal == "APPROVAL_NEEDED"


async def test_an_answer_waits_for_a_signer_that_is_away_and_not_for_ever(db, ids, clock, signer):
    found = await question(signer, asked("bob", 1))
    await copy(db, signer, clock)
    await give(db, ids, clock, found)

    class Away:
        async def answer(self, _):
            raise SignerUnavailableError("It is asleep.")

    with pytest.raises(SignerUnavailableError):
        await answers.hand_on(db, Away(), clock)
    assert (await latest(db))[0].outcome is None
    clock.advance(601)
    assert await answers.hand_on(db, signer, clock) == 0
    told, code = await latest(db)
    assert (told.outcome, code) == ("expired", None)


async def test_no_flood_of_answers_waits(db, ids, clock, signer):
    found = await question(signer, asked("bob", 1))
    await copy(db, signer, clock)
    for _ in range(answers.WAITING_MAX):
        await give(db, ids, clock, found, code="12345678")
    with pytest.raises(ConflictError) as refused:
        await give(db, ids, clock, found)
    assert refused.value.code == "TOO_MANY_ANSWERS"
