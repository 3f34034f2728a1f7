"""The signer in this process: reads, decides, remembers, and only then signs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import ParamSpec, TypeVar

import structlog

from cambist.domain.exchanges import AWAY_MAX_S
from cambist.ports import Clock

from .answers import WRONG_MAX, WRONG_PERIOD_S, is_right, same_question
from .keystore import Keystore
from .outflows import Refusal
from .policy import refuse_or_allow, slot_number
from .protocol import (
    NOT_REACHED,
    REQUESTS_MAX,
    VOIDS_MAX,
    KeyPath,
    Signer,
    SignerUnavailableError,
    SignReply,
    SignRequest,
    Voided,
    XpubSource,
)
from .reading import Reader, Reading
from .refusals import RefusalsKept
from .reporting import question_of, report
from .reports import AnswerToQuestion, Outcome, Refused, Report
from .rules import Rules
from .store import Book, Store, StoreError

P = ParamSpec("P")
T = TypeVar("T")

log = structlog.get_logger(__name__)


class KeystoreXpubs(XpubSource):
    """Tells account keys from an opened keystore."""

    def __init__(self, keystore: Keystore) -> None:
        self._keystore = keystore

    async def account_xpub(self, mode: str, coin_type: int, account_index: int) -> str:
        return self._keystore.account_xpub(mode, coin_type, account_index)


class LocalSigner(KeystoreXpubs, Signer):
    """Signs in a thread of its own, one batch after the other."""

    def __init__(  # noqa: PLR0913  a composition's parts, each by name
        self,
        keystore: Keystore,
        reader: Reader,
        *,
        rules: Rules,
        store: Store,
        clock: Clock,
        answers_key: bytes | None = None,
    ) -> None:
        """Take the store over: it is closed with the signer. Without a key nothing is answered over the gateway."""
        super().__init__(keystore)
        self._reader = reader
        self._rules = rules
        self._store = store
        self._clock = clock
        self._answers_key = answers_key
        self._refused = RefusalsKept()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="signer")

    async def aclose(self) -> None:
        """Finish the batch that is being signed, and close the store."""
        await asyncio.to_thread(self._thread.shutdown)
        self._store.close()

    async def sign(self, requests: Sequence[SignRequest]) -> Sequence[SignReply]:
        replies: list[SignReply] = []
        for first in range(0, len(requests), REQUESTS_MAX):
            replies += await self._in_thread(self._sign, requests[first : first + REQUESTS_MAX])
        return replies

    async def void(self, mode: str, chain: str, references: Sequence[str]) -> Sequence[Voided]:
        """Void what the rules apply to; what is simulated is signed as it comes, so there is nothing to be voided."""
        self._reader.check_live(chain, mode)
        voided: list[Voided] = []
        for first in range(0, len(references), VOIDS_MAX):
            voided += await self._in_thread(self._void, chain, references[first : first + VOIDS_MAX])
        return voided

    async def report(self) -> Report:
        return await self._in_thread(self._report)

    async def answer(self, answer: AnswerToQuestion) -> Outcome:
        outcome = await self._in_thread(self._answer, answer)
        log.warning("question_answered", question=answer.pk, verdict=answer.verdict, outcome=outcome)
        return outcome

    async def public_key(self, mode: str, coin_type: int, path: KeyPath) -> bytes:
        key = self._keystore.private_key(mode, coin_type, path.account, path.change, path.index)
        return key.public_key.format()

    async def learn(self, mode: str, chain: str, account: int, address: str) -> datetime:
        address = self._reader.normalized(chain, address)
        return _moment(await self._in_thread(self._learn, chain, account, address) if mode == "live" else self._now())

    async def knows_token(self, chain: str, contract: str) -> bool:
        return self._reader.knows_token(chain, contract)

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await asyncio.wrap_future(self._thread.submit(work, *args, **kwargs))
        except StoreError as error:
            raise SignerUnavailableError(str(error)) from error

    def _sign(self, requests: Sequence[SignRequest]) -> list[SignReply]:
        decided = self._decide([self._reader.read(request) for request in requests])
        replies = [self._reply(request, answer) for request, answer in zip(requests, decided, strict=True)]
        for request, reply in zip(requests, replies, strict=True):
            if reply.refusal is not None and reply.refusal != NOT_REACHED:
                self._refused.note(_told(request, reply, _moment(self._now())))
        return replies

    def _decide(self, answers: Sequence[Reading | Refusal]) -> Sequence[Reading | Refusal]:
        """Put refusals in the place of what the rules forbid. What they allow is on disk before this returns."""
        if not any(_is_ruled(answer) for answer in answers):
            return answers
        decided: list[Reading | Refusal] = []
        now = self._now()
        with self._store.book(now) as book:
            for answer in answers:
                refusal = _unreached(answer, decided) or _away_too_long(answer, now)
                if refusal is None and isinstance(answer, Reading) and _is_ruled(answer):
                    facts = book.facts(self._rules, answer)
                    verdict = refuse_or_allow(self._rules, answer, facts)
                    book.record(self._rules, answer, facts, verdict)
                    refusal = verdict.refusal
                decided.append(refusal or answer)
        return decided

    def _reply(self, request: SignRequest, answer: Reading | Refusal) -> SignReply:
        if isinstance(answer, Refusal):
            return _refused(request, answer)
        path = request.path
        key = self._keystore.private_key(request.mode, answer.coin_type, path.account, path.change, path.index)
        return SignReply(signature=key.sign_recoverable(answer.digest, hasher=None))

    def _report(self) -> Report:
        with self._store.book(self._now()) as book:
            return report(
                self._rules,
                book,
                self._reader.chains,
                refused=self._refused.newest_first(),
                answers_open=self._answers_key is not None,
                locked_until=_locked_until(book),
            )

    def _answer(self, answer: AnswerToQuestion) -> Outcome:
        """Decide and remember in one transaction of the store, so that no try goes uncounted."""
        if self._answers_key is None:
            return "not_open"
        with self._store.book(self._now()) as book:
            if _locked_until(book) is not None:
                return "locked"
            asked = next((one for one in book.asked() if one.pk == answer.pk), None)
            if asked is None:
                return "not_waiting"
            question = question_of(asked)
            if not same_question(question, answer.question):
                return "question_changed"
            if not is_right(self._answers_key, answer.verdict, question, answer.code, self._now()):
                book.note_wrong_code()
                return "code_wrong"
            if answer.verdict == "approve":
                book.approve(asked.pk)
                return "approved"
            book.void(asked.chain, asked.reference, denied=True)
            return "denied"

    def _void(self, chain: str, references: Sequence[str]) -> list[Voided]:
        with self._store.book(self._now()) as book:
            slots = [book.void(chain, reference) for reference in references]
        return [Voided() if slot is None else _signed_as(slot) for slot in slots]

    def _learn(self, chain: str, account: int, address: str) -> int:
        with self._store.book(self._now()) as book:
            return book.learn(chain, account, address)

    def _now(self) -> int:
        return int(self._clock.now().timestamp())


def _signed_as(slot: str) -> Voided:
    number, tx_id = slot_number(slot)
    return Voided(sender=slot.split("/")[1], slot_number=number, tx_id=tx_id)


def _is_ruled(answer: Reading | Refusal) -> bool:
    """Whether the rules apply: simulated money is signed for as it comes."""
    return isinstance(answer, Reading) and answer.request.mode == "live"


def _away_too_long(answer: Reading | Refusal, now: int) -> Refusal | None:
    """Refuse a deposit that a bridge could keep for years: a deadline is chosen by whoever built the call."""
    if not isinstance(answer, Reading):
        return None
    left_s = max((one.away_until - now for one in answer.outflows if one.away_until is not None), default=0)
    if left_s <= AWAY_MAX_S:
        return None
    return Refusal("AWAY_TOO_LONG", f"The deposit would be away for {left_s} s; {AWAY_MAX_S} s are the limit.")


def _unreached(answer: Reading | Refusal, before: Sequence[Reading | Refusal]) -> Refusal | None:
    """Refuse what follows a refusal, where it asked for that."""
    if isinstance(answer, Reading) and answer.request.follows and before and isinstance(before[-1], Refusal):
        return Refusal(NOT_REACHED, "The request before it was refused.")
    return None


def _refused(request: SignRequest, refusal: Refusal) -> SignReply:
    if refusal.code != NOT_REACHED:
        log.warning(
            "signing_refused",
            code=refusal.code,
            reason=refusal.reason,
            chain=request.chain,
            mode=request.mode,
            purpose=request.purpose,
            reference=request.reference,
            asked_by=request.asked_by,
        )
    retry_at = None if refusal.retry_at_s is None else _moment(refusal.retry_at_s)
    return SignReply(
        refusal=refusal.code,
        reason=refusal.reason,
        retry_at=retry_at,
        slot_number=refusal.slot_number,
        tx_id=refusal.tx_id,
    )


def _locked_until(book: Book) -> int | None:
    """Return until when no code is looked at, since too many were wrong."""
    wrong = book.wrong_codes()
    return wrong[-WRONG_MAX] + WRONG_PERIOD_S if len(wrong) >= WRONG_MAX else None


def _told(request: SignRequest, reply: SignReply, at: datetime) -> Refused:
    return Refused(
        at=at,
        code=reply.refusal or "",
        reason=reply.reason or "",
        chain=request.chain,
        reference=request.reference,
        purpose=request.purpose,
    )


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
