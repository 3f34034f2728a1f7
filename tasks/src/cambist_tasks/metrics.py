"""The worker's numbers for Prometheus, gathered when they are asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cambist.services.sending.gas.gas_stations import GasStation
from cambist.services.webhooks.delivery import Deliverer
from cambist.settings import WorkerSettings

from .sending import SendState
from .watching import ChainState


class WorkerCollector(Collector):
    """Tells, at each scrape, how watching, sending and delivery stand in this worker."""

    def __init__(
        self,
        chains: Sequence[ChainState],
        senders: Sequence[SendState],
        deliverer: Deliverer,
        stations: Sequence[GasStation],
    ) -> None:
        self._chains = chains
        self._senders = senders
        self._deliverer = deliverer
        self._stations = stations

    def collect(self) -> Iterator[Metric]:
        yield from self._watching()
        yield from self._endpoints()
        yield from self._sending()
        yield from self._gas_stations()
        yield from self._webhooks()

    def _watching(self) -> Iterator[Metric]:
        for name, text, value in _CHAIN_GAUGES:
            gauge = GaugeMetricFamily(f"cambist_chain_{name}", text, labels=["chain"])
            for state in self._chains:
                if (number := value(state)) is not None:
                    gauge.add_metric([state.chain.info.id], number)
            yield gauge
        for name, text, value in _CHAIN_COUNTERS:
            counter = CounterMetricFamily(f"cambist_chain_{name}", text, labels=["chain"])
            for state in self._chains:
                counter.add_metric([state.chain.info.id], value(state))
            yield counter

    def _endpoints(self) -> Iterator[Metric]:
        labels = ["chain", "endpoint"]
        healthy = GaugeMetricFamily("cambist_endpoint_healthy", "1 while the endpoint is in use.", labels=labels)
        head = GaugeMetricFamily("cambist_endpoint_head", "The endpoint's newest block.", labels=labels)
        calls = CounterMetricFamily("cambist_endpoint_calls", "Calls to the endpoint.", labels=labels)
        failures = CounterMetricFamily("cambist_endpoint_failures", "Calls that failed.", labels=labels)
        for state in self._chains:
            for endpoint in state.chain.endpoints():
                where = [state.chain.info.id, endpoint.name]
                healthy.add_metric(where, endpoint.healthy)
                calls.add_metric(where, endpoint.calls)
                failures.add_metric(where, endpoint.failures)
                if endpoint.head is not None:
                    head.add_metric(where, endpoint.head)
        yield from (healthy, head, calls, failures)

    def _sending(self) -> Iterator[Metric]:
        labels = ["chain"]
        sending = GaugeMetricFamily("cambist_outbound_sending", "1 while this worker sends there.", labels=labels)
        failing = GaugeMetricFamily("cambist_outbound_failing", "1 while sending fails.", labels=labels)
        collected = CounterMetricFamily("cambist_outbound_collections", "Collections that were begun.", labels=labels)
        alerts = CounterMetricFamily(
            "cambist_outbound_alerts", "What an operator should look at.", labels=["chain", "alert"]
        )
        for state in self._senders:
            chain = state.chain.info.id
            sending.add_metric([chain], float(state.sending))
            failing.add_metric([chain], float(state.failing))
            collected.add_metric([chain], state.collected)
            for alert, count in sorted(state.alerts.items()):
                alerts.add_metric([chain, alert], count)
        yield from (sending, failing, collected, alerts)

    def _gas_stations(self) -> Iterator[Metric]:
        for name, text, value in _STATION_GAUGES:
            gauge = GaugeMetricFamily(f"cambist_gas_station_{name}", text, labels=["chain"])
            for station in self._stations:
                if (number := value(station)) is not None:
                    gauge.add_metric([station.chain], float(number))
            yield gauge

    def _webhooks(self) -> Iterator[Metric]:
        counters = self._deliverer.counters
        attempts = CounterMetricFamily("cambist_webhook_attempts", "Attempts to deliver.", labels=["outcome"])
        attempts.add_metric(["delivered"], counters.delivered)
        attempts.add_metric(["failed"], counters.failed)
        yield attempts
        dropped = CounterMetricFamily("cambist_webhook_dropped", "Events whose attempts are used up.")
        dropped.add_metric([], counters.dropped)
        yield dropped
        running = GaugeMetricFamily("cambist_webhook_in_flight", "Attempts that are running.")
        running.add_metric([], self._deliverer.in_flight)
        yield running


_CHAIN_GAUGES = (
    ("watching", "1 while this worker watches the chain.", lambda state: float(state.watching)),
    ("failing", "1 while polls of the chain fail.", lambda state: float(state.failing)),
    ("head", "The newest block that was seen.", lambda state: state.last and state.last.head),
    ("height", "The block up to which everything is stored.", lambda state: state.last and state.last.height),
    ("behind_blocks", "Blocks still to be read.", lambda state: state.last and state.last.behind),
)
_STATION_GAUGES = (
    ("balance", "What the gas station holds, in whole coins.", lambda station: _coins(station, station.balance)),
    ("low", "1 while that is too little.", lambda station: station.is_low),
    ("waiting", "Transfers that wait for gas.", lambda station: station.waiting),
    ("staked", "What it has staked, in whole coins.", lambda station: _staked(station, "staked")),
    ("lent", "How much of that is lent.", lambda station: _staked(station, "lent")),
    ("lendable", "How much more can be lent now.", lambda station: _staked(station, "lendable")),
    ("leaving", "What was unstaked and waits.", lambda station: _staked(station, "leaving")),
    ("withdrawable", "What has waited long enough.", lambda station: _staked(station, "withdrawable")),
    ("stake_low", "1 while hardly any of the stake is left.", lambda station: station.is_stake_low),
)
_CHAIN_COUNTERS = (
    ("polls", "Polls that succeeded.", lambda state: state.polls),
    ("failures", "Polls that failed.", lambda state: state.failures),
    ("blocks", "Blocks that were read.", lambda state: state.blocks),
    ("deposits", "Deposits that were found.", lambda state: state.deposits),
    ("orphaned", "Deposits that a reorg took back.", lambda state: state.orphaned),
)


def _coins(station: GasStation, units: int) -> Decimal:
    return Decimal(units).scaleb(-station.decimals)


def _staked(station: GasStation, name: str) -> Decimal | None:
    return None if station.stake is None else _coins(station, getattr(station.stake, name))


@asynccontextmanager
async def serve_metrics(
    collectors: Sequence[Collector], settings: WorkerSettings, refresh: Callable[[], Awaitable[None]]
) -> AsyncIterator[int]:
    """Serve ``/metrics`` until the context ends; yield the port, which the system chooses where 0 is given.

    ``refresh`` is awaited before each answer.
    """
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)

    async def metrics(_: web.Request) -> web.Response:
        await refresh()
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, settings.metrics_host, settings.metrics_port)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
