"""Answers to the signer's questions: stored by web, handed on by a worker, decided by the signer alone.

After the commit, publish the hint ``signer``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog
from msgspec import Struct
from sqlalchemy import exists, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.engine import Database
from cambist.db.structs import columns_of, to_struct
from cambist.ports import Clock, Ids
from cambist.services.audit.entries import GATEWAY, Action, record
from cambist.services.errors import ConflictError, NotFoundError
from cambist.signer import answers as codes
from cambist.signer.protocol import Signer
from cambist.signer.reports import AnswerToQuestion, Question, Verdict

from . import reports

TOPIC = "signer"
"""Hint: an answer waits."""
EXPIRES_AFTER = timedelta(minutes=10)
"""Longer than any code is good."""
DECIDED: Final = frozenset({"approved", "denied"})
WAITS_FOR_ANSWER = "signer: APPROVAL_NEEDED"
LISTED_MAX = 50
WAITING_MAX = 20
HANDED_ON_MAX = 20

log = structlog.get_logger(__name__)


class Answer(Struct, frozen=True, kw_only=True):
    """An answer as people see it: without its code. ``outcome`` is None while it waits for the signer."""

    answer_id: str
    question_pk: int
    question: str
    verdict: str
    asked_by: str
    asked_at: datetime
    outcome: str | None
    answered_at: datetime | None


_COLUMNS = columns_of(Answer, models.SignerAnswer)


async def give(  # noqa: PLR0913  who says what to which question
    conn: AsyncConnection,
    ids: Ids,
    approval_id: str,
    *,
    question: str,
    verdict: Verdict,
    code: str,
    asked_by: str,
    now: datetime,
) -> Answer:
    """Store an answer for the signer. Raises NotFoundError and ConflictError for what cannot be right anyway.

    Whether the code is right nobody here can say.
    """
    copied = await reports.load(conn)
    if copied is None or not copied.report.answers_open:
        raise ConflictError("APPROVALS_NOT_OPEN", "The signer's own file does not let anybody answer over the API.")
    known = _find(copied.report.questions, approval_id)
    if not codes.same_question(known.question, question):
        raise ConflictError("APPROVAL_CHANGED", "The signer asks something else by now: read it again.")
    waiting = select(models.SignerAnswer.id).where(models.SignerAnswer.outcome.is_(None)).limit(WAITING_MAX)
    if len((await conn.execute(waiting)).all()) >= WAITING_MAX:
        raise ConflictError("TOO_MANY_ANSWERS", "So many answers wait for the signer that no more are taken now.")
    row = {"answer_id": ids.new("ans"), "question_pk": known.pk, "question": known.question, "verdict": verdict}
    made = insert(models.SignerAnswer).values(**row, code=code, asked_by=asked_by, asked_at=now).returning(*_COLUMNS)
    return to_struct(Answer, (await conn.execute(made)).one())


def _find(questions: Sequence[Question], approval_id: str) -> Question:
    for one in questions:
        if str(one.pk) == approval_id:
            return one
    raise NotFoundError("APPROVAL_NOT_FOUND", "The signer does not ask this, or not any more.")


async def list_latest(conn: AsyncConnection) -> Sequence[Answer]:
    """Return the latest answers, newest first."""
    newest = select(*_COLUMNS).order_by(models.SignerAnswer.id.desc()).limit(LISTED_MAX)
    return [to_struct(Answer, row) for row in await conn.execute(newest)]


_WAITING = models.SignerAnswer.outcome.is_(None)
_ANY_WAIT = select(exists().where(_WAITING))
_TAKE = (
    select(models.SignerAnswer.id, models.SignerAnswer.code, *_COLUMNS)
    .where(_WAITING)
    .order_by(models.SignerAnswer.id)
    .limit(1)
    .with_for_update(skip_locked=True)
)


async def hand_on(db: Database, signer: Signer, clock: Clock) -> int:
    """Hand the waiting answers to the signer, one after the other; return how many.

    One that a worker died over is handed on again, and finds its question answered. What a person has decided about is
    due at once: publish the hint ``outbound`` where there were any. Raises SignerUnavailableError.
    """
    async with db.autocommit() as conn:
        if not await conn.scalar(_ANY_WAIT):
            return 0
        now = clock.now()
        expired = update(models.SignerAnswer).where(_WAITING, models.SignerAnswer.asked_at < now - EXPIRES_AFTER)
        await conn.execute(expired.values(outcome="expired", code=None, answered_at=now))
    for handed_on in range(HANDED_ON_MAX):
        async with db.transaction() as conn:
            row = (await conn.execute(_TAKE)).one_or_none()
            if row is None:
                return handed_on
            given = AnswerToQuestion(pk=row.question_pk, question=row.question, verdict=row.verdict, code=row.code)
            # The row stays locked meanwhile, and nobody else waits for it: one answer is one try.
            outcome = await signer.answer(given)
            answered = update(models.SignerAnswer).where(models.SignerAnswer.id == row.id)
            await conn.execute(answered.values(outcome=outcome, code=None, answered_at=clock.now()))
            if outcome in DECIDED:
                await _wake(conn, row.question_pk, clock.now())
            told = {"answer": row.answer_id, "verdict": row.verdict, "outcome": outcome, "question": row.question}
            await record(conn, GATEWAY, Action.SIGNER_ANSWERED, clock.now(), subject=str(row.question_pk), details=told)
    return HANDED_ON_MAX


async def _wake(conn: AsyncConnection, question_pk: int, now: datetime) -> None:
    """Have the engine ask for the signature now: where each try costs a loan of stake, it would wait for hours."""
    copied, intent = await reports.load(conn), models.OutboundIntent
    asked_for = [] if copied is None else [one.reference for one in copied.report.questions if one.pk == question_pk]
    waits = intent.reference.in_(asked_for), intent.state == "waiting", intent.reason == WAITS_FOR_ANSWER
    await conn.execute(update(intent).where(*waits).values(due_at=now, updated_at=now))
