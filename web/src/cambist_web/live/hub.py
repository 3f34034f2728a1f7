"""One web process's streams: one poll of the database for all of them, one check of who may still read.

The database is asked once a second while somebody reads, and at once after a hint; a lost hint costs that second. What
is found goes to the readers that may see it. Nothing is asked for a single stream but once, when it begins.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import struct
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress

import structlog
from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError

from cambist.db.engine import Database
from cambist.hints import Hints, Subscription
from cambist.ports import Clock
from cambist.secrets import SecretsBox, SecretsError
from cambist.services import changes
from cambist.services.changes import Change, News
from cambist.services.errors import TooManyError, UnavailableError
from cambist_web.context import Web

from .checks import Checks
from .messages import (
    changes_event,
    end_event,
    heartbeat,
    ready_event,
    resync_event,
    retry_line,
    with_consequences,
)
from .reader import Reader
from .viewers import Viewer

TOPICS = ("webhooks", "outbound", "exchanges", "jobs", "signer")
"""Hints after which something has probably changed."""
CHAIN_EVERY_S = 5.0
"""How often the progress of one chain is told: some have several blocks a second."""
RETRY_MS = 3_000
"""When to connect again after a stream has ended."""

log = structlog.get_logger(__name__)


class LiveOptions(Struct, frozen=True, kw_only=True):
    """What streams may cost.

    A stream is sent at most ``batch_max`` changes every ``flush_s``. Behind by more than ``pending_max``, it is told to
    read everything again. ``poll_least_s`` is the least time between two polls of the database, ``read_max`` what one
    of them takes. ``heartbeat_s`` is below the minute after which common proxies drop a silent connection. ``resume_s``
    is well below the time for which changes are kept. After ``lifetime_s`` a stream ends, so that pages spread over
    the processes that there are by then.
    """

    streams_max: int = 2_000
    streams_per_person_max: int = 8
    poll_s: float = 1.0
    poll_least_s: float = 0.25
    check_s: float = 2.0
    flush_s: float = 0.5
    batch_max: int = 100
    pending_max: int = 1_000
    read_max: int = 5_000
    heartbeat_s: float = 20.0
    send_s: float = 15.0
    resume_s: float = 120.0
    lifetime_s: float = 3_600.0


class Live:
    """The streams of one web process."""

    def __init__(  # noqa: PLR0913  each by name
        self,
        *,
        db: Database,
        clock: Clock,
        hints: Hints,
        secrets: SecretsBox,
        checks: Checks,
        options: LiveOptions | None = None,
    ) -> None:
        self.options = options or LiveOptions()
        self._db = db
        self._clock = clock
        self._hints = hints
        self._secrets = secrets
        self._checks = checks
        self._readers: set[Reader] = set()
        self._of_merchant: dict[int | None, set[Reader]] = {}
        self._persons: Counter[str] = Counter()
        self._closing = False
        self._task: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._is_polling = False
        self._opened = asyncio.Event()
        self._snapshot = ""
        self._resume_xid = 0
        self._polled_at = 0.0
        self._cursor: str | None = None
        self._chains_told: dict[str, float] = {}
        self._chains_untold: dict[str, Change] = {}

    @classmethod
    def of(cls, web: Web) -> Live:
        """Return the streams of a web process."""
        return cls(
            db=web.db,
            clock=web.clock,
            hints=web.gateway.hints,
            secrets=web.gateway.secrets,
            checks=Checks(web.db, web.merchants.sessions, web.operators.sessions),
        )

    @property
    def count(self) -> int:
        """How many streams are open."""
        return len(self._readers)

    def check_room(self, viewer: Viewer) -> None:
        """Raise TooManyError or UnavailableError where there is no room for one more stream of this person."""
        if self._persons[viewer.person] >= self.options.streams_per_person_max:
            words = f"At most {self.options.streams_per_person_max} streams may be open at once. Close another page."
            raise TooManyError("STREAMS_LIMITED", words, retry_after_s=RETRY_MS // 1000)
        if self._closing or self.count >= self.options.streams_max:
            raise UnavailableError("STREAMS_BUSY", "No more streams can be opened right now. Ask every few seconds.")

    def close(self) -> None:
        """End every stream, and open no more: pages connect again, and find another process or the next one."""
        self._closing = True
        for reader in self._readers:
            reader.end("closing")

    async def aclose(self) -> None:
        """Stop looking."""
        self.close()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def follow(self, viewer: Viewer, last_event_id: str | None = None) -> AsyncGenerator[bytes, None]:
        """Yield the events of a stream until it ends. It goes on behind ``last_event_id`` where that can be done.

        Yields hardly anything where others took the room that there was when it was asked for.
        """
        try:
            self.check_room(viewer)
        except (TooManyError, UnavailableError):
            yield retry_line(RETRY_MS)
            return
        reader = Reader(viewer, self.options.pending_max)
        self._readers.add(reader)
        self._of_merchant.setdefault(viewer.merchant_pk, set()).add(reader)
        self._persons[viewer.person] += 1
        try:
            try:
                await self._start()
                resumed = await self._resume(reader, last_event_id)
            except (SQLAlchemyError, OSError) as error:
                log.warning("stream_not_started", error=repr(error))
                yield retry_line(RETRY_MS)
                return
            yield ready_event(resumed=resumed, cursor=None if reader.has_more else self._cursor, retry_ms=RETRY_MS)
            async for event in self._events(reader):
                yield event
        finally:
            self._forget(reader)

    async def _events(self, reader: Reader) -> AsyncGenerator[bytes, None]:
        until = _now_s() + self.options.lifetime_s
        while True:
            if _now_s() >= until:
                reader.end("closing")
            try:
                async with asyncio.timeout(self.options.heartbeat_s):
                    await reader.woken.wait()
            except TimeoutError:
                yield heartbeat(self._cursor)
                continue
            if reader.ended is not None:
                yield end_event(reader.ended)
                return
            reason, messages = reader.take_resync(), reader.take(self.options.batch_max)
            # Whatever is found from here on is behind the cursor of this moment.
            cursor = None if reader.has_more else self._cursor
            if reason is not None:
                yield resync_event(reason, None if messages else cursor)
            if messages:
                yield changes_event(messages, cursor)
            await asyncio.sleep(self.options.flush_s)

    def _forget(self, reader: Reader) -> None:
        viewer = reader.viewer
        self._readers.discard(reader)
        of_merchant = self._of_merchant[viewer.merchant_pk]
        of_merchant.discard(reader)
        if not of_merchant:
            del self._of_merchant[viewer.merchant_pk]
        self._persons[viewer.person] -= 1
        if not self._persons[viewer.person]:
            del self._persons[viewer.person]

    async def _start(self) -> None:
        """Begin to look, before the first stream says that it is ready."""
        async with self._starting:
            if self._is_polling:
                return
            async with self._db.autocommit() as conn:
                self._take(await changes.read(conn, await changes.position(conn), 1))
            self._is_polling = True
            self._opened.set()
            if self._task is None:
                self._task = asyncio.create_task(self._run(), name="streams")

    async def _run(self) -> None:
        """Poll and check whenever there are streams."""
        while True:
            await self._opened.wait()
            async with self._hints.subscribe(*TOPICS) as hints:
                checked_at = _now_s()
                while self._readers:
                    await self._pause(hints)
                    try:
                        await self._poll()
                        if _now_s() - checked_at >= self.options.check_s:
                            checked_at = _now_s()
                            await self._check()
                    except (SQLAlchemyError, OSError) as error:
                        log.warning("streams_interrupted", streams=self.count, error=repr(error))
                    except Exception:
                        log.exception("streams_failed", streams=self.count)
                # Nothing is awaited since the last reader was looked for: whoever comes now begins anew.
                self._is_polling = False
                self._opened.clear()

    async def _pause(self, hints: Subscription) -> None:
        await asyncio.sleep(self.options.poll_least_s)
        await hints.wait(max(0.0, self.options.poll_s - self.options.poll_least_s))

    async def _poll(self) -> None:
        async with self._db.autocommit() as conn:
            news = await changes.read(conn, self._snapshot, self.options.read_max)
        is_gap = (
            news.resume_xid < self._resume_xid  # another database, or an older one
            or _now_s() - self._polled_at > changes.KEPT_S / 2
        )
        self._take(news)
        if is_gap or not news.is_whole:
            for reader in self._readers:
                reader.miss("gap" if is_gap else "behind")
            return
        self._hand_on(list(with_consequences(self._without_haste(news.changes))))

    def _take(self, news: News) -> None:
        self._snapshot, self._resume_xid, self._polled_at = news.snapshot, news.resume_xid, _now_s()
        self._cursor = self._seal(news.resume_xid)

    def _without_haste(self, found: Iterable[Change]) -> Iterable[Change]:
        """Keep back the progress of chains that was told a moment ago, until some time has passed."""
        now = _now_s()
        for change in found:
            if change.kind == "chain" and change.status is None:
                self._chains_untold[change.object_id] = change
            else:
                yield change
        for chain in list(self._chains_untold):
            if now - self._chains_told.get(chain, -CHAIN_EVERY_S) >= CHAIN_EVERY_S:
                self._chains_told[chain] = now
                yield self._chains_untold.pop(chain)

    def _hand_on(self, found: list[Change]) -> None:
        if not found:
            return
        for reader in self._of_merchant.get(None, ()):
            reader.put(found)
        by_merchant: dict[int, list[Change]] = {}
        for change in found:
            if change.merchant_pk in self._of_merchant and change.merchant_pk is not None:
                by_merchant.setdefault(change.merchant_pk, []).append(change)
        for merchant_pk, own in by_merchant.items():
            for reader in self._of_merchant[merchant_pk]:
                reader.put(own)

    async def _check(self) -> None:
        """End the streams of whoever may not read them any more."""
        now = self._clock.now()
        readers = list(self._readers)
        principals = await self._checks.principals([reader.viewer for reader in readers], now)
        for reader in readers:
            viewer = reader.viewer
            if viewer.expires_at is not None and viewer.expires_at <= now:
                reader.end("token_expired")
            if viewer.principal is None:
                continue
            principal = principals.get(viewer.principal.session_id)
            if principal is None:
                reader.end("session_ended")
            elif not viewer.has_same_access(principal):
                reader.end("access_changed")

    async def _resume(self, reader: Reader, last_event_id: str | None) -> bool:
        """Put what was missed before what comes; return False where that cannot be told, and is to be read again."""
        xid = None if last_event_id is None else self._open(last_event_id)
        if xid is None:
            return False
        viewer = reader.viewer
        async with self._db.autocommit() as conn:
            if not await changes.is_known(conn, xid):
                return False
            missed = await changes.since(conn, xid, viewer.merchant_pk, self.options.read_max)
        if missed is None:
            return False
        reader.put(with_consequences(missed))
        return reader.take_resync() is None

    def _seal(self, xid: int) -> str:
        """Return a place to go on from. It is encrypted: it tells nobody how much happens on the gateway."""
        place = struct.pack(">Qd", xid, self._clock.now().timestamp())
        sealed = self._secrets.encrypt(place, field="streams.cursor", row="")
        return base64.urlsafe_b64encode(sealed).decode().rstrip("=")

    def _open(self, cursor: str) -> int | None:
        """Return the transaction to go on from, or None where that is too long ago or no cursor of ours."""
        try:
            sealed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            xid, at = struct.unpack(">Qd", self._secrets.decrypt(sealed, field="streams.cursor", row=""))
        except (SecretsError, binascii.Error, ValueError, struct.error):
            return None
        return int(xid) if 0 <= self._clock.now().timestamp() - at <= self.options.resume_s else None


def _now_s() -> float:
    return asyncio.get_running_loop().time()
