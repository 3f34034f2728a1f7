"""The second factor of a merchant in person: codes of an authenticator app (RFC 6238), and recovery codes.

A code that was taken is spent, whatever becomes of the request that brought it, and a wrong one stays counted. So
codes are judged in a transaction of their own, which ends before the caller's begins::

    await two_factor.require_code(session.merchant_pk, data.totp_code)
    async with db.transaction() as conn:
        ...

Inside the caller's transaction it would wait for a second connection while it holds one, so never there.

After ``state.WRONG_CODES_MAX`` wrong codes no code of the app is taken for a while, and for twice as long after every
further ``WRONG_CODES_MAX`` in a row. A recovery code cannot be guessed, and is taken all the same: somebody who only
guesses must not be able to keep the merchant out.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import TypeAlias

import structlog
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import Merchant, RecoveryCode, TwoFactorState
from cambist.db.structs import columns_of, to_struct
from cambist.ports import Clock, Ids
from cambist.secrets import SecretsBox
from cambist.services.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    ServiceError,
    TooManyError,
    UnauthenticatedError,
)
from cambist.services.identity import sessions
from cambist.services.identity.merchants import lock_merchant
from cambist.services.identity.sessions import SessionPrincipal

from .codes import Enrolment, enrolment, new_recovery_code, recovery_hash, step_of
from .state import State, change, count_wrong, forget, forgive, read

SECRET_BYTES = 20

PENDING_S = 900
"""How long a secret that was shown waits for its first code."""

RECOVERY_CODES = 10

SECRET_FIELD = "two_factor_states.secret_encrypted"  # noqa: S105  a column
PENDING_FIELD = "two_factor_states.pending_encrypted"

log = structlog.get_logger(__name__)


Record: TypeAlias = Callable[[AsyncConnection], Awaitable[None]]


class Status(Struct, frozen=True, kw_only=True):
    """Whether a merchant has a second factor, and how many recovery codes are left."""

    enabled: bool
    recovery_codes_left: int


_CODES_LEFT = select(func.count()).where(
    RecoveryCode.merchant_pk == TwoFactorState.merchant_pk, RecoveryCode.used_at.is_(None)
)
_STATUS = columns_of(
    Status,
    TwoFactorState,
    enabled=TwoFactorState.secret_encrypted.is_not(None),
    recovery_codes_left=_CODES_LEFT.scalar_subquery(),
)


class TwoFactor:
    """Enrols merchants and judges their codes. Methods without a connection are transactions of their own.

    ``record`` writes down in that transaction what was done, once it is certain.
    """

    def __init__(self, db: Database, box: SecretsBox, ids: Ids, clock: Clock) -> None:
        """Keep secrets in this box, bound to the merchant's row."""
        self._db = db
        self._box = box
        self._ids = ids
        self._clock = clock

    async def status(self, conn: AsyncConnection, merchant_pk: int) -> Status:
        row = (await conn.execute(select(*_STATUS).where(TwoFactorState.merchant_pk == merchant_pk))).one_or_none()
        return Status(enabled=False, recovery_codes_left=0) if row is None else to_struct(Status, row)

    async def require_code(self, merchant_pk: int, code: str | None) -> None:
        """Take a code and spend it for good. Call it before opening the transaction that the code is for.

        Raises ForbiddenError (``TWO_FACTOR_NOT_ENROLLED``, ``TWO_FACTOR_REQUIRED``, ``TWO_FACTOR_INVALID``) and
        TooManyError (``TOO_MANY_CODES``).
        """
        async with self._judging() as conn:
            await self._spend(conn, merchant_pk, code)

    async def step_up(self, principal: SessionPrincipal, code: str, *, record: Record | None = None) -> datetime:
        """Take a code, and let this one session do what needs it for a while; return until when.

        Raises what ``require_code`` raises.
        """
        async with self._judging() as conn:
            await self._spend(conn, principal.merchant_pk, code)
            until = self._clock.now() + timedelta(seconds=sessions.STEP_UP_S)
            await sessions.step_up(conn, principal.session_id, until=until)
            await _write_down(record, conn)
        log.info("stepped_up", merchant_pk=principal.merchant_pk)
        return until

    async def check_step_up(self, principal: SessionPrincipal) -> None:
        """Let pass a session that has stepped up. Raises ForbiddenError, which says what to do first."""
        if principal.has_stepped_up(self._clock.now()):
            return
        async with self._db.autocommit() as conn:
            enabled = (await self.status(conn, principal.merchant_pk)).enabled
        if enabled:
            words = (
                f"Send a code to POST /api/auth/step-up, then repeat this within {sessions.STEP_UP_S // 60} minutes."
            )
            raise ForbiddenError("STEP_UP_REQUIRED", words)
        words = "Live mode needs two-factor authentication: turn it on, then send a code to POST /api/auth/step-up."
        raise ForbiddenError("TWO_FACTOR_REQUIRED", words)

    async def check_sign_in(self, merchant_pk: int, code: str | None) -> bool:
        """Take a code from who has shown the password; return False where the merchant needs none.

        Raises UnauthenticatedError, with the codes of ``require_code``, and TooManyError.
        """
        try:
            await self.require_code(merchant_pk, code)
        except ForbiddenError as error:
            if error.code == "TWO_FACTOR_NOT_ENROLLED":
                return False
            raise UnauthenticatedError(error.code, error.message) from None
        return True

    async def lock_sign_in(self, conn: AsyncConnection, merchant_pk: int, *, shown: bool) -> None:
        """Refuse to go on without a code where it became necessary since ``check_sign_in``.

        After ``merchants.lock_password``, whose lock keeps it from becoming necessary until the transaction ends.
        """
        if not shown and (await self.status(conn, merchant_pk)).enabled:
            error = _required()
            raise UnauthenticatedError(error.code, error.message)

    async def enrol(self, merchant_pk: int, email: str, code: str | None, *, record: Record | None = None) -> Enrolment:
        """Make a secret that is good for nothing until ``confirm``. Who has a second factor must show a code of it.

        The caller has checked the password: a session alone, which can be stolen, must not get there.
        """
        key = self._ids.random_bytes(SECRET_BYTES)
        async with self._judging() as conn:
            await lock_merchant(conn, merchant_pk)
            if (await self.status(conn, merchant_pk)).enabled:
                await self._spend(conn, merchant_pk, code)
            pending = {
                "pending_encrypted": self._seal(key, PENDING_FIELD, merchant_pk),
                "pending_at": self._clock.now(),
            }
            await conn.execute(
                insert(TwoFactorState)
                .values(merchant_pk=merchant_pk, **pending)
                .on_conflict_do_update(index_elements=[TwoFactorState.merchant_pk], set_=pending)
            )
            await _write_down(record, conn)
        return enrolment(key, email)

    async def confirm(
        self, merchant_pk: int, code: str, *, session_id: str, record: Record | None = None
    ) -> Sequence[str]:
        """Put the secret last made into force with its first code, and return recovery codes, which are told once.

        Ends the merchant's other sessions: they were opened without it.
        """
        async with self._judging() as conn:
            await lock_merchant(conn, merchant_pk)
            state, now = await read(conn, merchant_pk), self._clock.now()
            if (
                state is None
                or state.pending_encrypted is None
                or state.pending_at is None
                or now - state.pending_at >= timedelta(seconds=PENDING_S)
            ):
                raise ConflictError("TWO_FACTOR_NOT_STARTED", "Start with a new secret: none waits for its first code.")
            key = self._open(state.pending_encrypted, PENDING_FIELD, merchant_pk)
            # What was taken of the secret before says nothing about this one.
            step = await self._judge(conn, merchant_pk, replace(state, last_step=0), key, code)
            sealed = self._seal(key, SECRET_FIELD, merchant_pk)
            confirmed = {"secret_encrypted": sealed, "enabled_at": now, "last_step": step}
            await change(conn, merchant_pk, **confirmed, pending_encrypted=None, pending_at=None)
            codes = await self._renew_codes(conn, merchant_pk)
            await sessions.revoke_all(conn, merchant_pk, now=now, but=session_id)
            await _write_down(record, conn)
        log.info("two_factor_enabled", merchant_pk=merchant_pk)
        return codes

    async def renew_recovery_codes(self, merchant_pk: int, code: str, *, record: Record | None = None) -> Sequence[str]:
        """Return new recovery codes, which are told once. The ones before stop working."""
        async with self._judging() as conn:
            await self._spend(conn, merchant_pk, code)
            codes = await self._renew_codes(conn, merchant_pk)
            await _write_down(record, conn)
        log.info("recovery_codes_renewed", merchant_pk=merchant_pk)
        return codes

    async def disable(self, merchant_pk: int, code: str, *, record: Record | None = None) -> None:
        async with self._judging() as conn:
            await self._spend(conn, merchant_pk, code)
            await forget(conn, merchant_pk)
            await sessions.end_step_ups(conn, merchant_pk)
            await _write_down(record, conn)
        log.warning("two_factor_disabled", merchant_pk=merchant_pk)

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

    async def _spend(self, conn: AsyncConnection, merchant_pk: int, code: str | None) -> None:
        state = await read(conn, merchant_pk)
        if state is None or state.secret_encrypted is None:
            raise ForbiddenError("TWO_FACTOR_NOT_ENROLLED", "This needs two-factor authentication: turn it on first.")
        if not code:
            raise _required()
        if await self._spend_recovery_code(conn, merchant_pk, code):
            return
        key = self._open(state.secret_encrypted, SECRET_FIELD, merchant_pk)
        await change(conn, merchant_pk, last_step=await self._judge(conn, merchant_pk, state, key, code))

    async def _judge(self, conn: AsyncConnection, merchant_pk: int, state: State, key: bytes, code: str) -> int:
        """Return the step that the code is of, or refuse it. The state's row is locked."""
        now = self._clock.now()
        if state.locked_until is not None and now < state.locked_until:
            wait_s = math.ceil((state.locked_until - now).total_seconds())
            raise TooManyError("TOO_MANY_CODES", "Too many wrong codes. Wait a while.", retry_after_s=wait_s)
        step = step_of(key, code, now)
        if step is None:
            await count_wrong(conn, merchant_pk, state.wrong_codes + 1, now)
            raise _wrong()
        if step <= state.last_step:
            # Seen before, so no guess: a request sent twice by mistake does not lock anybody out.
            raise _wrong()
        await forgive(conn, merchant_pk)
        return step

    async def _spend_recovery_code(self, conn: AsyncConnection, merchant_pk: int, code: str) -> bool:
        hashed = recovery_hash(code)
        if hashed is None:
            return False
        unused = RecoveryCode.code_hash == hashed, RecoveryCode.used_at.is_(None)
        spend = update(RecoveryCode).where(RecoveryCode.merchant_pk == merchant_pk, *unused)
        spent = spend.values(used_at=self._clock.now()).returning(RecoveryCode.merchant_pk)
        if await conn.scalar(spent) is None:
            return False
        await forgive(conn, merchant_pk)
        log.warning("recovery_code_used", merchant_pk=merchant_pk)
        return True

    async def _renew_codes(self, conn: AsyncConnection, merchant_pk: int) -> Sequence[str]:
        codes = [new_recovery_code(self._ids) for _ in range(RECOVERY_CODES)]
        await conn.execute(delete(RecoveryCode).where(RecoveryCode.merchant_pk == merchant_pk))
        rows = [{"merchant_pk": merchant_pk, "code_hash": recovery_hash(code)} for code in codes]
        await conn.execute(insert(RecoveryCode), rows)
        return codes

    def _seal(self, key: bytes, field: str, merchant_pk: int) -> bytes:
        return self._box.encrypt(key, field=field, row=str(merchant_pk))

    def _open(self, sealed: bytes, field: str, merchant_pk: int) -> bytes:
        return self._box.decrypt(sealed, field=field, row=str(merchant_pk))


async def reset(conn: AsyncConnection, email: str, *, now: datetime) -> str:
    """Take the second factor from a merchant who lost it, end all sessions, and return the merchant's id.

    For the operator, once sure who asks. Raises NotFoundError where nobody has the address.
    """
    wanted = select(Merchant.id, Merchant.merchant_id).where(Merchant.email == email)
    merchant = (await conn.execute(wanted.with_for_update(key_share=True))).one_or_none()
    if merchant is None:
        raise NotFoundError("MERCHANT_NOT_FOUND", "There is no merchant with this e-mail address.")
    await forget(conn, merchant.id)
    await sessions.revoke_all(conn, merchant.id, now=now)
    merchant_id: str = merchant.merchant_id
    return merchant_id


async def _write_down(record: Record | None, conn: AsyncConnection) -> None:
    if record is not None:
        await record(conn)


def _required() -> ForbiddenError:
    return ForbiddenError("TWO_FACTOR_REQUIRED", "Send totpCode: a code of your authenticator, or a recovery code.")


def _wrong() -> ForbiddenError:
    return ForbiddenError("TWO_FACTOR_INVALID", "This code is wrong, or was used before.")
