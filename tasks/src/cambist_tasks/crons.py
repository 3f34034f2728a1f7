"""Recurring jobs: what recurs how often, and how a moment is claimed so that two workers do its work once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from arq.cron import CronJob, cron
from arq.typing import WorkerCoroutine
from msgspec import Struct
from msgspec.structs import replace

from cambist.bootstrap import Gateway
from cambist.domain.troubles import Said, raised
from cambist.ports import SystemClock
from cambist.services.jobs import cron_runs
from cambist.services.jobs.cron_runs import CronRun
from cambist.settings import PriceSettings

from .jobs.account_keys import derive_account_keys
from .jobs.audit import seal_audit_log
from .jobs.conversions import convert_coins
from .jobs.due_times import bring_back_due_times
from .jobs.forgotten import queue_forgotten
from .jobs.gas_stations import check_gas_stations
from .jobs.payouts import derive_payout_minimums, queue_auto_payouts
from .jobs.prices import fill_snapshots, record_prices, watch_prices
from .jobs.retention import delete_what_is_over, forget_changes
from .jobs.sandbox import judge_sandbox
from .jobs.tracker_history import queue_histories
from .jobs.usage import give_allowances, give_months, post_usage
from .jobs.webhooks import apply_endpoint_states
from .run_counts import RunCounts
from .supervision import Backoff

log = structlog.get_logger(__name__)

utc_now = SystemClock().now
"""The time by the machine's clock, which is the one that arq goes by."""
RUNNER = "cron_runner"
"""Where the runner is in arq's context."""
MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
TIMEOUT_S_MAX = 50
RETRY_FIRST_S, RETRY_MAX_S = 1.0, 8.0
CANCEL_S = 5
"""Added for arq's own timeout and for the lease: how long a job that is cancelled may take to end."""
CLOCK_SET_S = 60
"""How far a job's next moment is from where it can be, once the clock was set or the machine was asleep."""


class Cron(Struct, frozen=True, kw_only=True):
    """A recurring job. ``work`` returns True while there is more to do at once.

    ``every_s`` divides a minute, an hour or a day. A failure is retried with back-off as long as ``tries`` and
    ``timeout_s`` allow; what recurs within seconds is retried by recurring.
    """

    name: str
    work: Callable[[Gateway], Awaitable[bool]]
    every_s: int
    timeout_s: float = TIMEOUT_S_MAX
    tries: int = 1


CRONS: Sequence[Cron] = (
    Cron(name="sandbox", work=judge_sandbox, every_s=2),
    Cron(name="usage", work=post_usage, every_s=2),
    Cron(name="account_keys", work=derive_account_keys, every_s=5),
    Cron(name="requested_jobs", work=queue_forgotten, every_s=5),
    Cron(name="tracker_histories", work=queue_histories, every_s=5),
    Cron(name="auto_payouts", work=queue_auto_payouts, every_s=10),
    Cron(name="webhook_endpoints", work=apply_endpoint_states, every_s=10),
    Cron(name="auto_converts", work=convert_coins, every_s=30),
    Cron(name="gas_stations", work=check_gas_stations, every_s=30),
    Cron(name="changes", work=forget_changes, every_s=MINUTE_S),
    Cron(name="due_times", work=bring_back_due_times, every_s=MINUTE_S),
    Cron(name="audit_seals", work=seal_audit_log, every_s=MINUTE_S),
    Cron(name="allowances", work=give_allowances, every_s=MINUTE_S),
    Cron(name="cpt_months", work=give_months, every_s=5 * MINUTE_S, tries=3),
    Cron(name="prices", work=record_prices, every_s=5 * MINUTE_S, tries=3),
    Cron(name="price_sources", work=watch_prices, every_s=MINUTE_S),
    Cron(name="fiat_snapshots", work=fill_snapshots, every_s=MINUTE_S),
    Cron(name="payout_minimums", work=derive_payout_minimums, every_s=5 * MINUTE_S),
    Cron(name="retention", work=delete_what_is_over, every_s=5 * MINUTE_S, tries=3),
)


class CronRunner:
    """Runs recurring jobs in this process: claims the moment, works in slices, records the end."""

    def __init__(self, gateway: Gateway, worker: str) -> None:
        self._gateway = gateway
        self._worker = worker
        self._running: set[str] = set()
        self.states: Mapping[str, RunCounts] = {cron.name: RunCounts() for cron in CRONS}

    async def run(self, cron: Cron, moment: datetime) -> None:
        """Do the work of a moment, unless it is done already or this process is still at an earlier one."""
        if cron.name in self._running:
            return
        self._running.add(cron.name)
        state, started = self.states[cron.name], self._gateway.clock.monotonic()
        try:
            run = await self._claim(cron, moment)
            if run is not None:
                await self._work(cron, run)
                state.succeeded += 1
        except Exception:
            log.exception("cron_failed", cron=cron.name)
            state.failed += 1
        finally:
            self._running.discard(cron.name)
            state.duration_s += self._gateway.clock.monotonic() - started

    async def _claim(self, cron: Cron, moment: datetime) -> CronRun | None:
        now = self._gateway.clock.now()
        lease = timedelta(seconds=cron.timeout_s + CANCEL_S)
        async with self._gateway.db.autocommit() as conn:
            return await cron_runs.claim(
                conn, cron.name, due_at(cron, moment), worker=self._worker, now=now, leased_until=now + lease
            )

    async def _work(self, cron: Cron, run: CronRun) -> None:
        try:
            async with asyncio.timeout(cron.timeout_s):
                await self._try(cron)
        except asyncio.CancelledError:
            await asyncio.shield(self._release(run))
            raise
        except Exception as error:
            await self._finish(run, raised(error))
            raise
        await self._finish(run)

    async def _finish(self, run: CronRun, error: Said | None = None) -> None:
        async with self._gateway.db.autocommit() as conn:
            await cron_runs.finish(conn, run, self._gateway.clock.now(), error)

    async def _try(self, cron: Cron) -> None:
        pauses = Backoff(RETRY_FIRST_S, RETRY_MAX_S)
        for tries_left in reversed(range(cron.tries)):
            try:
                await self._slices(cron)
            except Exception:
                if not tries_left:
                    raise
                log.warning("cron_tried_again", cron=cron.name, exc_info=True)
                await asyncio.sleep(pauses.next_s())
            else:
                return

    async def _slices(self, cron: Cron) -> None:
        """Work until there is no more to do at once, or half the time is used up: the next moment goes on."""
        loop = asyncio.get_running_loop()
        until = loop.time() + cron.timeout_s / 2
        more = True
        while more and loop.time() < until:
            more = await cron.work(self._gateway)

    async def _release(self, run: CronRun) -> None:
        async with self._gateway.db.autocommit() as conn:
            await cron_runs.release(conn, run, self._gateway.clock.now())


def due_at(cron: Cron, moment: datetime) -> datetime:
    """Return the scheduled moment at or before this one. A start of the worker makes up for the latest alone."""
    return datetime.fromtimestamp(int(moment.timestamp()) // cron.every_s * cron.every_s, UTC)


def crons_of(settings: PriceSettings) -> Sequence[Cron]:
    """Return the recurring jobs, as often as the operator's file says."""
    return [replace(one, every_s=settings.watch_s) if one.work is watch_prices else one for one in CRONS]


def arq_crons(queue: str, crons: Sequence[Cron] = CRONS) -> Sequence[CronJob]:
    """Return them as arq takes them, under names that no other queue's have: arq knows jobs by name in all of Redis."""
    jobs = []
    for one in crons:
        plain = cron(
            _coroutine(one),
            name=f"{queue}:{one.name}",
            timeout=one.timeout_s + CANCEL_S,
            run_at_startup=True,
            microsecond=0,
            **_schedule(one.every_s),
        )
        jobs.append(_Recurring(one.every_s, plain))
    return jobs


class _Recurring(CronJob):
    """arq's recurring job, which begins anew where the clock was set, or the machine was asleep.

    arq goes on from one moment to the next: it would do nothing until a clock that was an hour ahead is there again,
    and after a night's sleep do what recurs every other second for each of them.
    """

    def __init__(self, every_s: int, plain: CronJob) -> None:
        self._next: datetime | None = None
        super().__init__(**{field.name: getattr(plain, field.name) for field in fields(plain)})
        self._latest = timedelta(seconds=every_s + CLOCK_SET_S)

    @property
    def next_run(self) -> datetime | None:
        """When it is due next; None where that cannot be, for arq as before the first time."""
        if self._next is not None and not -timedelta(seconds=CLOCK_SET_S) <= self._next - utc_now() <= self._latest:
            return None
        return self._next

    @next_run.setter
    def next_run(self, moment: datetime | None) -> None:
        self._next = moment


def _coroutine(one: Cron) -> WorkerCoroutine:
    async def run(ctx: dict[Any, Any], *_: object, **__: object) -> None:
        # arq names the job after the moment at which it is due, in milliseconds.
        moment = datetime.fromtimestamp(int(ctx["job_id"].rpartition(":")[2]) / 1_000, UTC)
        await ctx[RUNNER].run(one, moment)

    return run


def _schedule(every_s: int) -> dict[str, Any]:
    if every_s < MINUTE_S:
        return {"second": set(range(0, MINUTE_S, every_s))}
    if every_s < HOUR_S:
        return {"second": 0, "minute": set(range(0, HOUR_S // MINUTE_S, every_s // MINUTE_S))}
    return {"second": 0, "minute": 0, "hour": set(range(0, DAY_S // HOUR_S, every_s // HOUR_S))}
