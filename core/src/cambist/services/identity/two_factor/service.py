"""The second factor of people who sign in: codes of an authenticator app (RFC 6238), and recovery codes.

A code that was taken is spent, whatever becomes of the request that brought it, and a wrong one stays counted. So
codes are judged in a transaction of their own, which ends before the caller's begins::

    await two_factor.require_code(session.person_pk, data.totp_code)
    async with db.transaction() as conn:
        ...

Inside the caller's transaction it would wait for a second connection while it holds one, so never there.

After ``state.WRONG_CODES_MAX`` wrong codes no code of the app is taken for a while, and for twice as long after every
further ``WRONG_CODES_MAX`` in a row. A recovery code cannot be guessed, and is taken all the same: somebody who only
guesses must not be able to keep somebody out.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import cache
from typing import Generic, TypeAlias

import structlog
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import bindparam, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import PersonTwoFactor
from cambist.db.structs import AnySelect, columns_of, to_struct
from cambist.ports import Clock, Ids
from cambist.secrets import SecretsBox
from cambist.services.errors import (
    ForbiddenError,
    ServiceError,
    TooManyError,
    UnauthenticatedError,
)
from cambist.services.identity import credentials, sessions
from cambist.services.identity.credentials import SignIn
from cambist.services.identity.people import P, People, Principal, V

from . import refusals
from .codes import Enrolment, enrolment, new_recovery_code, recovery_hash, step_of
from .state import LOCK_S_MAX, State, change, count_wrong, forget, forgive, read

SECRET_BYTES = 20
RECOVERY_CODES = 10
PENDING_S = 900
"""How long a secret that was shown waits for its first code."""

log = structlog.get_logger(__name__)


Record: TypeAlias = Callable[[AsyncConnection], Awaitable[None]]


class Status(Struct, frozen=True, kw_only=True):
    """Whether somebody has a second factor, and how many recovery codes are left."""

    enabled: bool
    recovery_codes_left: int


def secret_field(table: type[PersonTwoFactor]) -> str:
    """Return what secrets in force are bound to in this table."""
    return f"{table.__tablename__}.secret_encrypted"


def pending_field(table: type[PersonTwoFactor]) -> str:
    """Return what secrets that wait for their first code are bound to in this table."""
    return f"{table.__tablename__}.pending_encrypted"


@cache
def _status_of(people: People[V, P]) -> AnySelect:
    state, code = people.two_factor, people.recovery_code
    left = select(func.count()).where(code.person_pk == state.person_pk, code.used_at.is_(None)).scalar_subquery()
    columns = columns_of(Status, state, enabled=state.secret_encrypted.is_not(None), recovery_codes_left=left)
    return select(*columns).where(state.person_pk == bindparam("person_pk"))


class TwoFactor(Generic[V, P]):
    """Enrols people of one kind and judges their codes. Methods without a connection are transactions of their own.

    ``record`` writes down in that transaction what was done, once it is certain.
    """

    def __init__(self, people: People[V, P], db: Database, box: SecretsBox, ids: Ids, clock: Clock) -> None:
        """Keep secrets in this box, bound to the person's row."""
        self._people = people
        self._secret_field, self._pending_field = secret_field(people.two_factor), pending_field(people.two_factor)
        self._db = db
        self._box = box
        self._ids = ids
        self._clock = clock
        self._status = _status_of(people)

    async def status(self, conn: AsyncConnection, person_pk: int) -> Status:
        row = (await conn.execute(self._status, {"person_pk": person_pk})).one_or_none()
        return Status(enabled=False, recovery_codes_left=0) if row is None else to_struct(Status, row)

    async def require_code(self, person_pk: int, code: str | None) -> None:
        """Take a code and spend it for good. Call it before opening the transaction that the code is for.

        Raises ForbiddenError (``TWO_FACTOR_NOT_ENROLLED``, ``TWO_FACTOR_REQUIRED``, ``TWO_FACTOR_INVALID``) and
        TooManyError (``TOO_MANY_CODES``).
        """
        async with self._judging() as conn:
            await self._spend(conn, person_pk, code)

    async def step_up(self, principal: Principal, code: str, *, record: Record | None = None) -> datetime:
        """Take a code, and let this one session do what needs it for a while; return until when.

        Raises what ``require_code`` raises.
        """
        async with self._judging() as conn:
            await self._spend(conn, principal.person_pk, code)
            until = self._clock.now() + timedelta(seconds=sessions.STEP_UP_S)
            await sessions.step_up(conn, self._people, principal.session_id, until=until)
            await _write_down(record, conn)
        log.info("stepped_up", **self._whose(principal.person_pk))
        return until

    async def check_step_up(self, principal: Principal) -> None:
        """Let pass a session that has stepped up. Raises ForbiddenError, which says what to do first."""
        if principal.has_stepped_up(self._clock.now()):
            return
        async with self._db.autocommit() as conn:
            enabled = (await self.status(conn, principal.person_pk)).enabled
        if enabled:
            minutes = sessions.STEP_UP_S // 60
            words = f"Send a code to POST {self._people.step_up_path}, then repeat this within {minutes} minutes."
            raise ForbiddenError("STEP_UP_REQUIRED", words)
        words = f"Turn two-factor authentication on, then send a code to POST {self._people.step_up_path}."
        raise ForbiddenError("TWO_FACTOR_REQUIRED", words)

    async def check_sign_in(self, person_pk: int, code: str | None) -> bool:
        """Take a code from who has shown the password; return False where this person needs none.

        Raises UnauthenticatedError, with the codes of ``require_code``, and TooManyError.
        """
        try:
            await self.require_code(person_pk, code)
        except ForbiddenError as error:
            if error.code == "TWO_FACTOR_NOT_ENROLLED" and not self._people.needs_two_factor:
                return False
            raise UnauthenticatedError(error.code, error.message) from None
        return True

    async def lock_sign_in(self, conn: AsyncConnection, person_pk: int, *, shown: bool) -> None:
        """Refuse to go on without a code where it became necessary since ``check_sign_in``.

        Where everybody needs a second factor, refuse who has lost it since. After ``credentials.lock_password``, whose
        lock keeps both from happening until the transaction ends.
        """
        enabled = (await self.status(conn, person_pk)).enabled
        error = refusals.required() if enabled and not shown else None
        if not enabled and self._people.needs_two_factor:
            error = refusals.not_enrolled()
        if error is not None:
            raise UnauthenticatedError(error.code, error.message)

    async def enrol(
        self,
        person_pk: int,
        email: str,
        code: str | None,
        *,
        sign_in: SignIn[V] | None = None,
        record: Record | None = None,
    ) -> Enrolment:
        """Make a secret that is good for nothing until ``confirm``. Who has a second factor must show a code of it.

        The caller has checked the password: a session alone, which can be stolen, must not get there. With ``sign_in``
        the password must be in force still: UnauthenticatedError where it was changed since it was verified.
        """
        key, table = self._ids.random_bytes(SECRET_BYTES), self._people.two_factor
        async with self._judging() as conn:
            await credentials.lock_person(conn, self._people, person_pk, sign_in)
            if (await self.status(conn, person_pk)).enabled:
                await self._spend(conn, person_pk, code)
            pending = {
                "pending_encrypted": self._seal(key, self._pending_field, person_pk),
                "pending_at": self._clock.now(),
            }
            await conn.execute(
                insert(table)
                .values(person_pk=person_pk, **pending)
                .on_conflict_do_update(index_elements=[table.person_pk], set_=pending)
            )
            await _write_down(record, conn)
        return enrolment(key, email, self._people.issuer)

    async def confirm(
        self,
        person_pk: int,
        code: str,
        *,
        session_id: str,
        sign_in: SignIn[V] | None = None,
        record: Record | None = None,
    ) -> Sequence[str]:
        """Put the secret last made into force with its first code, and return recovery codes, which are told once.

        Ends the person's other sessions: they were opened without it. UnauthenticatedError for one that has ended.
        ``sign_in`` as for ``enrol``: it is for people who show the password alone, without a session.
        """
        async with self._judging() as conn:
            await credentials.lock_person(conn, self._people, person_pk, sign_in)
            if session_id:
                await sessions.check_going_on(conn, self._people, session_id)
            state, now = await read(conn, self._people, person_pk), self._clock.now()
            if state is not None and state.secret_encrypted is not None and state.pending_encrypted is None:
                raise refusals.on_already()
            if (
                state is None
                or state.pending_encrypted is None
                or state.pending_at is None
                or now - state.pending_at >= timedelta(seconds=PENDING_S)
            ):
                raise refusals.not_started()
            key = self._open(state.pending_encrypted, self._pending_field, person_pk)
            # What was taken of the secret before says nothing about this one.
            step = await self._judge(conn, person_pk, replace(state, last_step=0), key, code)
            sealed = self._seal(key, self._secret_field, person_pk)
            confirmed = {"secret_encrypted": sealed, "enabled_at": now, "last_step": step}
            await change(conn, self._people, person_pk, **confirmed, pending_encrypted=None, pending_at=None)
            codes = await self._renew_codes(conn, person_pk)
            await sessions.revoke_all(conn, self._people, person_pk, now=now, but=session_id)
            await _write_down(record, conn)
        log.info("two_factor_enabled", **self._whose(person_pk))
        return codes

    async def renew_recovery_codes(self, person_pk: int, code: str, *, record: Record | None = None) -> Sequence[str]:
        """Return new recovery codes, which are told once. The ones before stop working."""
        async with self._judging() as conn:
            await self._spend(conn, person_pk, code)
            codes = await self._renew_codes(conn, person_pk)
            await _write_down(record, conn)
        log.info("recovery_codes_renewed", **self._whose(person_pk))
        return codes

    async def disable(self, person_pk: int, code: str, *, record: Record | None = None) -> None:
        async with self._judging() as conn:
            await self._spend(conn, person_pk, code)
            await forget(conn, self._people, person_pk)
            await sessions.end_step_ups(conn, self._people, person_pk)
            await _write_down(record, conn)
        log.warning("two_factor_disabled", **self._whose(person_pk))

    @asynccontextmanager
    async def _judging(self) -> AsyncIterator[AsyncConnection]:
        """Yield a transaction that is committed even where a code is refused in it: what was counted stays counted."""
        refusal = None
        async with self._db.transaction() as conn:
            try:
                yield conn
            except ServiceError as error:
                refusal = error
        if refusal is not None:
            raise refusal

    async def _spend(self, conn: AsyncConnection, person_pk: int, code: str | None) -> None:
        state = await read(conn, self._people, person_pk)
        if state is None or state.secret_encrypted is None:
            raise refusals.not_enrolled()
        if not code:
            raise refusals.required()
        if await self._spend_recovery_code(conn, person_pk, code):
            return
        key = self._open(state.secret_encrypted, self._secret_field, person_pk)
        await change(conn, self._people, person_pk, last_step=await self._judge(conn, person_pk, state, key, code))

    async def _judge(self, conn: AsyncConnection, person_pk: int, state: State, key: bytes, code: str) -> int:
        """Return the step that the code is of, or refuse it. The state's row is locked."""
        now = self._clock.now()
        # What lies further ahead than any lock does was set by a clock that was ahead, and no longer is.
        latest = now + timedelta(seconds=2 * LOCK_S_MAX)
        if state.locked_until is not None and now < state.locked_until < latest:
            wait_s = math.ceil((state.locked_until - now).total_seconds())
            words = "Too many wrong codes. Wait a while, or use a recovery code if you have one."
            raise TooManyError("TOO_MANY_CODES", words, retry_after_s=wait_s)
        step = step_of(key, code, now)
        if step is None:
            await count_wrong(conn, self._people, person_pk, state.wrong_codes + 1, now)
            raise refusals.wrong()
        if step <= state.last_step:
            # Seen before, so no guess: a request sent twice by mistake does not lock anybody out.
            raise refusals.wrong()
        await forgive(conn, self._people, person_pk)
        return step

    async def _spend_recovery_code(self, conn: AsyncConnection, person_pk: int, code: str) -> bool:
        hashed = recovery_hash(code)
        if hashed is None:
            return False
        table = self._people.recovery_code
        unused = table.person_pk == person_pk, table.code_hash == hashed, table.used_at.is_(None)
        spent = update(table).where(*unused).values(used_at=self._clock.now()).returning(table.person_pk)
        if await conn.scalar(spent) is None:
            return False
        await forgive(conn, self._people, person_pk)
        log.warning("recovery_code_used", **self._whose(person_pk))
        return True

    async def _renew_codes(self, conn: AsyncConnection, person_pk: int) -> Sequence[str]:
        codes = [new_recovery_code(self._ids) for _ in range(RECOVERY_CODES)]
        table = self._people.recovery_code
        await conn.execute(delete(table).where(table.person_pk == person_pk))
        rows = [{"person_pk": person_pk, "code_hash": recovery_hash(code)} for code in codes]
        await conn.execute(insert(table), rows)
        return codes

    def _whose(self, person_pk: int) -> dict[str, int]:
        return {f"{self._people.kind}_pk": person_pk}

    def _seal(self, key: bytes, field: str, person_pk: int) -> bytes:
        return self._box.encrypt(key, field=field, row=str(person_pk))

    def _open(self, sealed: bytes, field: str, person_pk: int) -> bytes:
        return self._box.decrypt(sealed, field=field, row=str(person_pk))


async def reset(conn: AsyncConnection, people: People[V, P], email: str, *, now: datetime) -> str:
    """Take the second factor from somebody who lost it, end all sessions, and return the person's identifier.

    For an operator, once sure who asks; ``operators.reset_two_factor()`` is for operators. Raises NotFoundError where
    nobody has the address.
    """
    wanted = select(people.table.id, people.public_id).where(people.table.email == email)
    person = (await conn.execute(wanted.with_for_update(key_share=True))).one_or_none()
    if person is None:
        raise people.no_such_email()
    await forget(conn, people, person[0])
    await sessions.revoke_all(conn, people, person[0], now=now)
    person_id: str = person[1]
    return person_id


async def _write_down(record: Record | None, conn: AsyncConnection) -> None:
    if record is not None:
        await record(conn)
