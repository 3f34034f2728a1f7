"""What the signer tells of itself to whoever may ask for signatures: rules, questions, refusals. No secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

Verdict: TypeAlias = Literal["approve", "deny"]
Outcome: TypeAlias = Literal[
    "approved", "denied", "not_open", "not_waiting", "question_changed", "code_wrong", "locked", "expired"
]
QUESTION_CHARS_MAX = 2_000


class RuleInForce(Struct, frozen=True, kw_only=True):
    """A rule with an amount: its setting, what it is for (``chain/SYMBOL``, or a chain), and how much of it is used.

    ``limit`` is None where the operator said that there is none. ``used`` is within the last hour, None where nothing
    is counted for all merchants together.
    """

    setting: str
    name: str
    limit: str | None
    used: str | None = None


class Question(Struct, frozen=True, kw_only=True):
    """What a person is asked. ``question`` is the whole of it in one line, of which a code is made.

    Amount and address are the signer's own reading; ``reference``, ``purpose`` and ``asked_by`` are what the gateway
    said.
    """

    pk: int
    question: str
    reference: str
    purpose: str
    asked_by: str
    chain: str
    to_chain: str
    to_address: str
    amount: str
    asked_at: datetime


class Void(Struct, frozen=True, kw_only=True):
    """A reference that is never signed again."""

    chain: str
    reference: str
    at: datetime


class Refused(Struct, frozen=True, kw_only=True):
    """What was not signed, and why; ``code`` as in a reply.

    Whatever waits is asked for again and again, and refused for the same each time: ``times`` says how often, ``at``
    when last, and ``first_at`` when first; that is None where it was once.
    """

    at: datetime
    code: str
    reason: str
    chain: str
    reference: str
    purpose: str
    times: int = 1
    first_at: datetime | None = None


class Report(Struct, frozen=True, kw_only=True):
    """The signer as it is now.

    ``addresses`` are by setting and chain. ``answers_open`` says whether questions can be answered by a code over the
    gateway, and ``locked_until`` that too many codes were wrong. Refusals are those since it was started, the newest
    first, one for each transaction and reason; of too many, what only waits is left out.
    """

    rules: Sequence[RuleInForce]
    addresses: Mapping[str, Mapping[str, Sequence[str]]]
    fresh_address_delay_s: int
    questions: Sequence[Question]
    voided: Sequence[Void]
    refused: Sequence[Refused]
    answers_open: bool
    locked_until: datetime | None = None


class AnswerToQuestion(Struct, frozen=True, kw_only=True):
    """A person's answer: to this question, as it was shown, by a code that is good for it alone."""

    pk: int
    question: Annotated[str, Meta(max_length=QUESTION_CHARS_MAX)]
    verdict: Verdict
    code: Annotated[str, Meta(max_length=32)]
