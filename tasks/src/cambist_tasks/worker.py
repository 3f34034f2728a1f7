"""The worker process: watches chains, sends, delivers webhooks, sweeps. Any number of them may run."""

from __future__ import annotations

import asyncio
import gc
import resource
import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial

import structlog
import uvloop

from cambist.bootstrap import Gateway, open_gateway
from cambist.services.deposits import AddressWatch, Watcher
from cambist.services.gas_stations import GasStation
from cambist.settings import Settings

from .chores import chores
from .metrics import WorkerCollector, serve_metrics
from .sending import chain_senders
from .supervision import run_all
from .sweeper import sweep
from .turns import Turns
from .watching import ChainWatch
from .webhooks import open_deliverer

log = structlog.get_logger(__name__)

GRACE_S = 8.0
"""How long a stopping worker lets its tasks finish: less than the ten seconds that supervisors usually give."""
OPEN_FILES_WANTED = 8192


def main(settings: Settings) -> None:
    """Run a worker until SIGTERM or SIGINT."""
    _allow_open_files()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with open_gateway(settings, role="worker") as gateway:
        _calm_garbage_collection()
        await run_worker(gateway, stop)


async def run_worker(gateway: Gateway, stop: asyncio.Event) -> None:
    """Do a worker's work until ``stop`` is set; what is being committed then is finished first."""
    turns = Turns(gateway.db)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(turns.aclose)
        deliverer = await stack.enter_async_context(open_deliverer(gateway))
        watches = chain_watches(gateway, turns)
        senders = chain_senders(gateway, turns)
        stations: list[GasStation] = []
        port = gateway.settings.worker.metrics_port
        if port is not None:
            collector = WorkerCollector(
                [watch.state for watch in watches], [sender.state for sender in senders], deliverer, stations
            )
            await stack.enter_async_context(serve_metrics(collector, gateway.settings.worker.metrics_host, port))
        works: dict[str, Callable[[], Awaitable[None]]] = {
            f"watch {watch.state.chain.info.id}": watch.run for watch in watches
        }
        works |= {f"send {sender.state.chain.info.id}": sender.run for sender in senders}
        works["webhooks"] = deliverer.run
        works["sweeper"] = partial(sweep, chores(gateway, turns, stations))
        log.info("worker_ready", chains=sorted(gateway.chains))
        await run_all(works, stop, grace_s=GRACE_S)
    log.info("worker_stopped")


def chain_watches(gateway: Gateway, turns: Turns) -> list[ChainWatch]:
    """Return a watch for every connected chain; chains of one family share the set of its addresses."""
    addresses: dict[str, AddressWatch] = {}
    watches = []
    for chain in gateway.chains.values():
        family = gateway.registry.families[chain.info.family]
        watch = addresses.setdefault(family.name, AddressWatch(gateway.db, family, "live"))
        watcher = Watcher(
            db=gateway.db,
            chain=chain,
            family=family,
            watch=watch,
            scope=0,
            mode="live",
            clock=gateway.clock,
            ids=gateway.ids,
            hints=gateway.hints,
        )
        watches.append(ChainWatch(watcher, chain, turns))
    return watches


def _calm_garbage_collection() -> None:
    """Leave out of collections what lives as long as the process: they cost a third of the time at full speed."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _allow_open_files() -> None:
    """Raise the soft limit: every webhook on its way has a socket, and the usual 1,024 are few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES_WANTED if hard == resource.RLIM_INFINITY else min(OPEN_FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
