"""What the signer told of itself, and a person's answers to what it asks. Web reaches no signer: a worker does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated

from litestar import Controller, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody
from msgspec import Meta, Struct

from cambist.services.audit.entries import Action
from cambist.services.errors import check_text
from cambist.services.sending.queue import listing
from cambist.services.signing import answers, reports
from cambist.signer.reports import QUESTION_CHARS_MAX, Question, Refused, RuleInForce, Verdict, Void
from cambist_web.context import Web
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, Body

STALE_AFTER = timedelta(seconds=60)


class AnswerApproval(Body, frozen=True, kw_only=True):
    """What `cambist signer code` made of this very `question`, on a device of one's own."""

    code: Annotated[str, Meta(min_length=8, max_length=32)]
    question: Annotated[str, Meta(min_length=1, max_length=QUESTION_CHARS_MAX)]


class SignerRule(Struct, frozen=True, kw_only=True, rename="camel"):
    """A rule of the signer's own file. `limit` is null where it says that there is none; `used` is of the last hour."""

    setting: str
    name: str
    limit: str | None
    used: str | None


class ApprovalView(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the signer asks a person. Amount and address are its own reading; the rest is what the gateway said.

    `intentId` is what is to be sent, and can be cancelled; null where nothing of that reference is.
    """

    approval_id: str
    question: str
    reference: str
    intent_id: str | None
    purpose: str
    asked_by: str
    chain: str
    to_chain: str
    to_address: str
    amount: str
    asked_at: datetime


class VoidView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A reference that is never signed again."""

    chain: str
    reference: str
    voided_at: datetime


class RefusalView(Struct, frozen=True, kw_only=True, rename="camel"):
    """What was not signed, since the signer was started: one for each transaction and reason, however often refused."""

    refused_at: datetime
    first_refused_at: datetime
    times: int
    refusal: str
    reason: str
    chain: str
    reference: str
    purpose: str


class AnswerView(Struct, frozen=True, kw_only=True, rename="camel"):
    """An answer of a person. `outcome` is the signer's word, and null while it waits for it."""

    answer_id: str
    approval_id: str
    question: str
    verdict: Verdict
    asked_by: str
    asked_at: datetime
    outcome: str | None
    answered_at: datetime | None


class SignerAnswerTaken(Answer, frozen=True, kw_only=True):
    """The answer, which waits for the signer: only it can say whether the code is right."""

    answer: AnswerView


class SignerView(Answer, frozen=True, kw_only=True):
    """The signer as a worker last heard of it; nothing, and `isStale`, where none has yet."""

    reported_at: datetime | None
    is_stale: bool
    approvals_by_api: bool
    locked_until: datetime | None
    fresh_address_delay_seconds: int | None
    rules: Sequence[SignerRule]
    addresses: Mapping[str, Mapping[str, Sequence[str]]]
    approvals: Sequence[ApprovalView]
    answers: Sequence[AnswerView]
    voided: Sequence[VoidView]
    refused: Sequence[RefusalView]


class Signer(Controller):
    tags = ("Operator",)

    @get("/", summary="Read the signer's rules and questions", opt=permits("signer.read"))
    async def read(self, web: NamedDependency[Web]) -> SignerView:
        """Return which rules are in force and what of them is used, what waits for a person, and what was refused."""
        async with web.db.autocommit() as conn:
            copied = await reports.load(conn)
            given = [_answer(one) for one in await answers.list_latest(conn)]
            asked_for = [] if copied is None else [one.reference for one in copied.report.questions]
            intent_ids = await listing.find_ids(conn, asked_for)
        if copied is None:
            return SignerView(
                reported_at=None, is_stale=True, approvals_by_api=False, locked_until=None,
                fresh_address_delay_seconds=None, rules=[], addresses={}, approvals=[], answers=given, voided=[],
                refused=[],
            )  # fmt: skip
        report = copied.report
        return SignerView(
            reported_at=copied.reported_at,
            is_stale=web.clock.now() - copied.reported_at > STALE_AFTER,
            approvals_by_api=report.answers_open,
            locked_until=report.locked_until,
            fresh_address_delay_seconds=report.fresh_address_delay_s,
            rules=[_rule(one) for one in report.rules],
            addresses=report.addresses,
            approvals=[_approval(one, intent_ids.get(one.reference)) for one in report.questions],
            answers=given,
            voided=[_void(one) for one in report.voided],
            refused=[_refusal(one) for one in report.refused],
        )

    @post(
        "/approvals/{approval_id:str}/approve",
        status_code=202,
        summary="Approve what the signer asks",
        opt=permits("signer.answer"),
    )
    async def approve(
        self,
        approval_id: FromPath[str],
        data: JSONBody[AnswerApproval],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> SignerAnswerTaken:
        """Hand a code to the signer, which signs what the question says, once, if the code is made of this question.

        Only where the signer's own file opens this. Five wrong codes within an hour close it for an hour.
        """
        return await _give(web, audit, approval_id, "approve", data)

    @post(
        "/approvals/{approval_id:str}/deny",
        status_code=202,
        summary="Deny what the signer asks",
        opt=permits("signer.answer"),
    )
    async def deny(
        self,
        approval_id: FromPath[str],
        data: JSONBody[AnswerApproval],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> SignerAnswerTaken:
        """Hand a code to the signer that says no: what the question is about is never signed. Cancel it after that."""
        return await _give(web, audit, approval_id, "deny", data)


async def _give(web: Web, audit: Audit, approval_id: str, verdict: Verdict, data: AnswerApproval) -> SignerAnswerTaken:
    check_text(data.code, "code")
    check_text(data.question, "question", lines=True)
    by = audit.origin.actor or audit.origin.actor_kind
    async with web.db.transaction() as conn:
        given = await answers.give(
            conn,
            web.gateway.ids,
            approval_id,
            question=data.question,
            verdict=verdict,
            code=data.code,
            asked_by=by,
            now=web.clock.now(),
        )
        told = {"answer": given.answer_id, "verdict": verdict, "question": given.question}
        await audit.record(conn, Action.SIGNER_ANSWER_GIVEN, subject=approval_id, **told)
    await web.gateway.hints.publish(answers.TOPIC)
    return SignerAnswerTaken(answer=_answer(given))


def _rule(one: RuleInForce) -> SignerRule:
    return SignerRule(setting=one.setting, name=one.name, limit=one.limit, used=one.used)


def _approval(one: Question, intent_id: str | None) -> ApprovalView:
    return ApprovalView(
        approval_id=str(one.pk),
        question=one.question,
        reference=one.reference,
        intent_id=intent_id,
        purpose=one.purpose,
        asked_by=one.asked_by,
        chain=one.chain,
        to_chain=one.to_chain,
        to_address=one.to_address,
        amount=one.amount,
        asked_at=one.asked_at,
    )


def _void(one: Void) -> VoidView:
    return VoidView(chain=one.chain, reference=one.reference, voided_at=one.at)


def _refusal(one: Refused) -> RefusalView:
    return RefusalView(
        refused_at=one.at,
        first_refused_at=one.first_at or one.at,
        times=one.times,
        refusal=one.code,
        reason=one.reason,
        chain=one.chain,
        reference=one.reference,
        purpose=one.purpose,
    )


def _answer(one: answers.Answer) -> AnswerView:
    return AnswerView(
        answer_id=one.answer_id,
        approval_id=str(one.question_pk),
        question=one.question,
        verdict="approve" if one.verdict == "approve" else "deny",
        asked_by=one.asked_by,
        asked_at=one.asked_at,
        outcome=one.outcome,
        answered_at=one.answered_at,
    )


controllers = [admin_routes("/api/admin/signer", Signer)]
