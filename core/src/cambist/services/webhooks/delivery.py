"""Delivers the outbox: takes what is due, sends it, records what came of it, tries again.

Any number of deliverers may run, in as many processes: each event is leased to one of them at a time. An event
is delivered at least once; twice only where a process died between sending and recording.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Sequence
from datetime import datetime, timedelta

import structlog
from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError

from cambist.db.engine import Database
from cambist.domain.webhooks import RetrySchedule
from cambist.hints import Hints, Subscription
from cambist.ports import Clock
from cambist.services.platform import PlatformSettingsCache

from . import claims
from .claims import Claim, From
from .lanes import Lanes, Limits
from .recording import Attempt, record
from .secrets import SigningSecrets
from .sender import AttemptResult, Message, Sender
from .stopping import cancel_stopped

log = structlog.get_logger(__name__)

CLAIM_MAX = 200
RECORD_MAX = 500
PACE_S = 0.005
"""A breath between claims under load: fuller claims cost the database less."""
CLAIM_SLOW_S = 0.05
"""Claims that take longer, past a great backlog of a receiver who hangs, are made at most half of the time."""
POLL_S = 1.0
"""The longest sleep. Hints make it shorter, losing them costs no more than this."""
SLOW_S = 1.0
LEASE_MARGIN_S = 5.0
GRACE_S = 5.0
TROUBLE_PAUSE_S = 0.5
_TROUBLE = (SQLAlchemyError, OSError)


class Counters(Struct):
    """What a deliverer has done since it was made."""

    delivered: int = 0
    failed: int = 0
    dropped: int = 0


class Deliverer:
    """One process's delivery of webhooks."""

    def __init__(  # noqa: PLR0913  a composition root's parts, each by name
        self,
        *,
        db: Database,
        sender: Sender,
        secrets: SigningSecrets,
        hints: Hints,
        clock: Clock,
        schedule: RetrySchedule,
        timeout_ms: int,
        limits: Limits | None = None,
    ) -> None:
        """Take what delivering needs. ``timeout_ms`` is the sender's, and makes the lease."""
        self._db = db
        self._sender = sender
        self._secrets = secrets
        self._hints = hints
        self._clock = clock
        self._platform = PlatformSettingsCache(db, clock)
        self._schedule = schedule
        self._lease = timedelta(milliseconds=timeout_ms, seconds=LEASE_MARGIN_S)
        self._lanes = Lanes(limits or Limits())
        self._running: dict[asyncio.Task[None], int] = {}
        self._attempts: list[Attempt] = []
        self._attempts_made = asyncio.Event()
        self._begin: From | None = None
        self._claims = 0
        self._stopping: asyncio.Task[None] | None = None
        self.counters = Counters()

    @property
    def in_flight(self) -> int:
        return self._lanes.in_flight

    async def run(self) -> None:
        """Deliver until cancelled; then let attempts finish for a moment, and give the others back."""
        async with self._hints.subscribe("webhooks") as hint:
            writer = asyncio.create_task(self._write(hint), name="webhook-attempts")
            try:
                while True:
                    await self._round(hint)
            finally:
                writer.cancel()
                await asyncio.wait([writer])
                await self._wind_up()

    async def deliver_due(self) -> int:
        """Deliver everything that is due now, with what becomes due by that, and return how many attempts it took."""
        attempts = 0
        while started := await self._start_due():
            attempts += started
            await asyncio.wait(list(self._running))
            await self._flush()
        if self._stopping is not None:
            await self._stopping
        return attempts

    async def _round(self, hint: Subscription) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            started = await self._start_due()
            took_s = loop.time() - began
            if took_s > CLAIM_SLOW_S:
                await asyncio.sleep(took_s)
            elif started:
                await asyncio.sleep(PACE_S)
            if not started:
                await self._rest(hint)
        except _TROUBLE as error:
            log.warning("webhooks_not_claimed", error=repr(error))
            await asyncio.sleep(TROUBLE_PAUSE_S)

    async def _start_due(self) -> int:
        """Claim what is due and start sending it; return how many that were."""
        started = 0
        while not started:
            room = self._lanes.room()
            if not room.attempts:
                break
            now = self._clock.now()
            async with self._db.autocommit() as conn:
                claimed = await claims.claim(
                    conn,
                    now=now,
                    leased_until=now + self._lease,
                    events_max=CLAIM_MAX,
                    room=room,
                    number=self._claims,
                    begin=self._begin,
                )
            self._claims += 1
            self._begin = claimed.go_on
            for claim in claimed.claims:
                task = asyncio.create_task(self._attempt(claim))
                self._running[task] = claim.id
                task.add_done_callback(self._running.pop)
            started = len(claimed.claims)
            if claimed.stopped:
                self._stop(claimed.stopped)
            elif claimed.go_on is None:
                break
        return started

    def _stop(self, tracker_pks: Collection[int]) -> None:
        """Have what else waits for trackers that are switched off cancelled, beside the claims."""
        if self._stopping is None or self._stopping.done():
            stopping = cancel_stopped(self._db, tracker_pks, now=self._clock.now())
            self._stopping = asyncio.create_task(self._tried(stopping), name="webhooks-stopped")

    async def _tried(self, stopping: Awaitable[None]) -> None:
        try:
            await stopping
        except _TROUBLE as error:
            # Nothing is sent for it: the next claim that meets one leads here again.
            log.warning("webhooks_not_cancelled", error=repr(error))

    async def _rest(self, hint: Subscription) -> None:
        """Wait for a hint, or until something is due. What was due before and could not be claimed is tried again."""
        due = await self._find_due()
        while not await hint.wait(self._idle_s(due.next)):
            due = await self._find_due()
            if due.already:
                return

    async def _find_due(self) -> claims.Due:
        async with self._db.autocommit() as conn:
            return await claims.find_due(conn, now=self._clock.now())

    def _idle_s(self, due: datetime | None) -> float:
        return POLL_S if due is None else min(POLL_S, max(0.0, (due - self._clock.now()).total_seconds()))

    async def _attempt(self, claim: Claim) -> None:
        lane = self._lanes.enter(claim.origin)
        slow = asyncio.get_running_loop().call_later(SLOW_S, self._lanes.mark_slow, lane)
        quick = False
        try:
            message = self._message(claim)
            result = await self._sender.send_once(claim.url, message)
            quick = result.duration_ms < SLOW_S * 1000
            self._keep(claim, result)
        except Exception:
            # A bug of ours, and the event is not lost by it: it is due again when its lease ends.
            log.exception("webhook_attempt_crashed", delivery=claim.delivery_id)
        finally:
            slow.cancel()
            self._lanes.leave(lane, quick=quick)

    def _message(self, claim: Claim) -> Message:
        owner, field = claim.signed_by, claim.secret_field
        return Message(
            id=claim.webhook_id,
            event=claim.event,
            body=claim.body,
            secret=self._secrets.reveal(owner, claim.secret_encrypted, field=field),
            previous_secret=self._secrets.reveal(owner, claim.previous_secret_encrypted, field=field),
        )

    def _keep(self, claim: Claim, result: AttemptResult) -> None:
        """Put the attempt where the next write finds it."""
        due = None if result.delivered else self._schedule.next_due(claim.attempts + 1, self._clock.now())
        self.counters.delivered += result.delivered
        self.counters.failed += not result.delivered
        if not result.delivered and due is None:
            self.counters.dropped += 1
            log.warning("webhook_dropped", delivery=claim.delivery_id, event_name=claim.event, error=result.error)
        self._attempts.append(Attempt(claim=claim, result=result, next_due=due))
        self._attempts_made.set()

    async def _write(self, hint: Subscription) -> None:
        """Record attempts as they come, many at once when they come fast."""
        while True:
            await self._attempts_made.wait()
            try:
                await self._flush()
            except _TROUBLE as error:
                log.warning("webhooks_not_recorded", attempts=len(self._attempts), error=repr(error))
                await asyncio.sleep(TROUBLE_PAUSE_S)
            else:
                # The next event of a resource may go out now, and lanes have room again.
                hint.wake()

    async def _flush(self) -> None:
        while self._attempts:
            batch: Sequence[Attempt] = self._attempts[:RECORD_MAX]
            weight = (await self._platform.get()).cpt.weights.webhook_delivery
            async with self._db.autocommit() as conn:
                await record(conn, batch, now=self._clock.now(), weight=weight)
            del self._attempts[: len(batch)]
        self._attempts_made.clear()

    async def _wind_up(self) -> None:
        """Let attempts finish for a moment, record them, and give back what is still under way."""
        if self._running:
            await asyncio.wait(list(self._running), timeout=GRACE_S)
        if self._stopping is not None:
            self._stopping.cancel()
            await asyncio.wait([self._stopping])
        left = dict(self._running)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(list(left))
        try:
            await self._flush()
            if left:
                async with self._db.autocommit() as conn:
                    await claims.release(conn, list(left.values()), now=self._clock.now())
        except _TROUBLE as error:
            log.warning("webhooks_left_to_their_leases", error=repr(error))
