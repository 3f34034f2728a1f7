"""Numbers for Prometheus that are in the database: how jobs and exchanges go, what gas stations hold, what waits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from datetime import datetime

import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from cambist.domain.exchanges import Kind, Step
from cambist.services.exchanges.runner import count_open
from cambist.services.jobs import cron_runs, requests
from cambist.services.sending.gas.gas_stations import GasStation, list_stations
from cambist.services.trackers import deferred

from .arq_worker import Runners
from .run_counts import RunCounts

log = structlog.get_logger(__name__)

TIMEOUT_S = 5.0


class StoredFacts(Collector):
    """Read from the database when a scrape asks for them. Without the database, the last answer stays."""

    def __init__(self, runners: Runners) -> None:
        self._runners = runners
        self._gateway = runners.gateway
        self._counts: Mapping[tuple[str, str], int] = {}
        self._succeeded: Mapping[str, datetime] = {}
        self._exchanges: Mapping[tuple[str, str], int] = {}
        self._deferred: Mapping[str, int] = {}
        self.stations: list[GasStation] = []

    async def refresh(self) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_S), self._gateway.db.autocommit() as conn:
                self._succeeded = await cron_runs.last_successes(conn, list(self._runners.crons.states))
                self._counts = await requests.counts(conn)
                self._exchanges = await count_open(conn)
                self._deferred = await deferred.counts(conn)
                self.stations[:] = [one for one in await list_stations(conn) if one.chain in self._gateway.chains]
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            log.warning("metrics_not_refreshed", error=repr(error))

    def collect(self) -> Iterator[Metric]:
        yield from self._crons()
        yield from self._jobs()
        yield from self._open_exchanges()
        yield self._deferred_stages()

    def _deferred_stages(self) -> Metric:
        gauge = GaugeMetricFamily(
            "cambist_tracker_stages_deferred", "What trackers could not be told yet, by live chain.", labels=["chain"]
        )
        for chain in self._gateway.chains:
            gauge.add_metric([chain], self._deferred.get(chain, 0))
        return gauge

    def _open_exchanges(self) -> Iterator[Metric]:
        gauge = GaugeMetricFamily(
            "cambist_exchanges", "Exchanges that have not ended, in any worker.", labels=["kind", "step"]
        )
        for kind in Kind:
            for step in Step:
                if step is not Step.ENDED:
                    gauge.add_metric([kind, step], self._exchanges.get((kind, step), 0))
        yield gauge

    def _jobs(self) -> Iterator[Metric]:
        for state in ("queued", "running", "failed"):
            gauge = GaugeMetricFamily(
                f"cambist_jobs_{state}", f"Jobs that are {state}, in any worker.", labels=["kind"]
            )
            for kind in self._runners.jobs.states:
                gauge.add_metric([kind], self._counts.get((kind, state), 0))
            yield gauge
        yield from _runs("cambist_job", "kind", self._runners.jobs.states)

    def _crons(self) -> Iterator[Metric]:
        succeeded = GaugeMetricFamily(
            "cambist_cron_last_success_timestamp_seconds", "When it last ended well, in any worker.", labels=["cron"]
        )
        for name, moment in self._succeeded.items():
            succeeded.add_metric([name], moment.timestamp())
        yield succeeded
        yield from _runs("cambist_cron", "cron", self._runners.crons.states)


def _runs(prefix: str, label: str, states: Mapping[str, RunCounts]) -> Iterator[Metric]:
    ended = CounterMetricFamily(f"{prefix}_runs", "Runs that ended in this worker.", labels=[label, "outcome"])
    duration = CounterMetricFamily(f"{prefix}_duration_seconds", "Time they took.", labels=[label])
    for name, counts in states.items():
        ended.add_metric([name, "succeeded"], counts.succeeded)
        ended.add_metric([name, "failed"], counts.failed)
        duration.add_metric([name], counts.duration_s)
    yield from (ended, duration)
