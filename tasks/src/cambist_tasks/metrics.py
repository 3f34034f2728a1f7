"""The worker's numbers for Prometheus, gathered when they are asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any, TypeAlias

import structlog
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cambist.plugin import Chain, EndpointHealth
from cambist.services.sending.gas.gas_stations import GasStation
from cambist.services.webhooks.delivery import Deliverer
from cambist.settings import WorkerSettings

from .sending import SendState
from .watching import WatchState

log = structlog.get_logger(__name__)


class WorkerCollector(Collector):
    """Tells, at each scrape, how watching, sending and delivery stand in this worker."""

    def __init__(  # noqa: PLR0913, PLR0917  what is told, part by part
        self,
        chains: Sequence[WatchState],
        senders: Sequence[SendState],
        deliverer: Deliverer,
        stations: Sequence[GasStation],
        exchange_alerts: Mapping[str, int] | None = None,
        price_outliers: Mapping[str, int] | None = None,
    ) -> None:
        self._chains = chains
        self._senders = senders
        self._deliverer = deliverer
        self._stations = stations
        self._price_outliers = {} if price_outliers is None else price_outliers
        self._exchange_alerts = {} if exchange_alerts is None else exchange_alerts

    def collect(self) -> Iterator[Metric]:
        yield from self._watching()
        yield from self._endpoints()
        yield from self._sending()
        yield from self._exchanges()
        yield from self._gas_stations()
        yield from self._prices()
        yield from self._webhooks()

    def _watching(self) -> Iterator[Metric]:
        states = {state.chain.info.id: state for state in self._chains}
        yield from _by_chain(GaugeMetricFamily, "cambist_chain", _CHAIN_GAUGES, states)
        yield from _by_chain(CounterMetricFamily, "cambist_chain", _CHAIN_COUNTERS, states)

    def _endpoints(self) -> Iterator[Metric]:
        labels = ["chain", "endpoint"]
        healthy = GaugeMetricFamily("cambist_endpoint_healthy", "1 while the endpoint is in use.", labels=labels)
        head = GaugeMetricFamily("cambist_endpoint_head", "The endpoint's newest block.", labels=labels)
        calls = CounterMetricFamily("cambist_endpoint_calls", "Calls to the endpoint.", labels=labels)
        failures = CounterMetricFamily("cambist_endpoint_failures", "Calls that failed.", labels=labels)
        for state in self._chains:
            for endpoint in _endpoints_of(state.chain):
                where = [state.chain.info.id, endpoint.name]
                healthy.add_metric(where, endpoint.healthy)
                calls.add_metric(where, endpoint.calls)
                failures.add_metric(where, endpoint.failures)
                if endpoint.head is not None:
                    head.add_metric(where, endpoint.head)
        yield from (healthy, head, calls, failures)

    def _sending(self) -> Iterator[Metric]:
        states = {state.chain.info.id: state for state in self._senders}
        yield from _by_chain(GaugeMetricFamily, "cambist_outbound", _SENDING_GAUGES, states)
        yield from _by_chain(CounterMetricFamily, "cambist_outbound", _SENDING_COUNTERS, states)
        alerts = CounterMetricFamily(
            "cambist_outbound_alerts", "What an operator should look at.", labels=["chain", "alert"]
        )
        for chain, state in states.items():
            for alert, count in sorted(state.alerts.items()):
                alerts.add_metric([chain, alert], count)
        yield alerts

    def _exchanges(self) -> Iterator[Metric]:
        alerts = CounterMetricFamily(
            "cambist_exchange_alerts", "Exchanges that an operator should look at.", labels=["alert"]
        )
        for alert, count in sorted(self._exchange_alerts.items()):
            alerts.add_metric([alert], count)
        yield alerts

    def _prices(self) -> Iterator[Metric]:
        far_off = CounterMetricFamily(
            "cambist_price_source_far_off", "Prices of a source that were far from the others.", labels=["source"]
        )
        for source, count in sorted(self._price_outliers.items()):
            far_off.add_metric([source], count)
        yield far_off

    def _gas_stations(self) -> Iterator[Metric]:
        stations = {station.chain: station for station in self._stations}
        yield from _by_chain(GaugeMetricFamily, "cambist_gas_station", _STATION_GAUGES, stations)

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


def _endpoints_of(chain: Chain) -> Sequence[EndpointHealth]:
    """Return what a chain tells of its endpoints: nothing where it fails, so that all the rest is told."""
    try:
        return list(chain.endpoints())
    except Exception as error:  # noqa: BLE001  a plugin may raise anything
        log.warning("endpoints_not_told", chain=chain.info.id, error=repr(error))
        return ()


_Numbers: TypeAlias = Sequence[tuple[str, str, Callable[[Any], float | Decimal | None]]]
"""Names, descriptions, and how each number is read."""

_CHAIN_GAUGES: _Numbers = (
    ("watching", "1 while this worker watches the chain.", lambda state: state.watching),
    ("paused", "1 while an operator has paused watching.", lambda state: state.paused),
    ("failing", "1 while polls of the chain fail.", lambda state: state.failing),
    ("unpolled_seconds", "Seconds since a poll of the chain succeeded.", lambda state: state.unpolled_s),
    ("head", "The newest block that was seen.", lambda state: state.last and state.last.head),
    ("height", "The block up to which everything is stored.", lambda state: state.last and state.last.height),
    ("behind_blocks", "Blocks still to be read.", lambda state: state.last and state.last.behind),
)
_CHAIN_COUNTERS: _Numbers = (
    ("polls", "Polls that succeeded.", lambda state: state.polls),
    ("failures", "Polls that failed.", lambda state: state.failures),
    ("blocks", "Blocks that were read.", lambda state: state.blocks),
    ("deposits", "Deposits that were found.", lambda state: state.deposits),
    ("orphaned", "Deposits that a reorg took back.", lambda state: state.orphaned),
)
_SENDING_GAUGES: _Numbers = (
    ("sending", "1 while this worker sends there.", lambda state: state.sending),
    ("paused", "1 while an operator has paused sending.", lambda state: state.paused),
    ("failing", "1 while sending fails.", lambda state: state.failing),
)
_SENDING_COUNTERS: _Numbers = (("collections", "Collections that were begun.", lambda state: state.collected),)
_STATION_GAUGES: _Numbers = (
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


def _by_chain(
    family: type[GaugeMetricFamily | CounterMetricFamily], prefix: str, numbers: _Numbers, facts: Mapping[str, Any]
) -> Iterator[Metric]:
    """Yield a metric for each of the numbers, with a value for each chain that has one."""
    for name, text, value in numbers:
        metric = family(f"{prefix}_{name}", text, labels=["chain"])
        for chain, known in facts.items():
            if (number := value(known)) is not None:
                metric.add_metric([chain], float(number))
        yield metric


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
