"""The worker process: watches chains, sends, delivers webhooks, runs jobs. Any number of them may run.

What never ends is a supervised task; what begins and ends runs on arq, which is one more supervised task.
``WorkerSettings`` lets arq's own command line run the jobs alone, and check that some worker runs them.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, cast

import structlog

from cambist.bootstrap import Gateway, open_gateway
from cambist.logs import configure_logs
from cambist.ports import system_ids
from cambist.provision import provision
from cambist.services.receiving.deposits import AddressCache, Watcher
from cambist.settings import Settings
from cambist.settings_file import process_settings

from .arq_worker import arq_options, end_tasks, run_arq, runners_of
from .chain_keeper import ChainKeeper
from .ending import run_to_the_end
from .exchanges import exchange_follower
from .leases import Leases
from .memory import tune_memory
from .per_process import copy_seals, follow_signer, keep_filters, save_filters, teach_signer, write_manifests
from .requested import keep_queueing
from .restored import Restored
from .sending import chain_senders
from .supervision import keep_running, run_all
from .trackers import keep_telling
from .watching import ChainWatch
from .webhooks import open_deliverer

log = structlog.get_logger(__name__)

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
GRACE_S = 8.0
"""How long a stopping worker lets its tasks finish: less than the ten seconds that supervisors usually give."""
OPEN_FILES_WANTED = 8192
FILTERS_FOLDER = "filters"


def main(settings: Settings) -> None:
    """Run a worker until SIGTERM or SIGINT."""
    _allow_open_files()
    run_to_the_end(_serve(settings))


async def _serve(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    async with open_gateway(settings, role="worker") as gateway:
        tune_memory()
        await run_worker(gateway, stop)


async def run_worker(gateway: Gateway, stop: asyncio.Event) -> None:
    """Do a worker's work until ``stop`` is set; what is being committed then is finished first."""
    leases = Leases(gateway.db)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(leases.aclose)
        deliverer = await stack.enter_async_context(open_deliverer(gateway))
        caches = address_caches(gateway)
        stack.push_async_callback(save_filters, caches.values())
        watches = chain_watches(gateway, leases, caches)
        senders = chain_senders(gateway, leases)
        keeper = ChainKeeper(gateway, [watch.state for watch in watches])
        follower = exchange_follower(gateway)
        runners = runners_of(gateway)
        if gateway.settings.worker.metrics_port is not None:
            # Of the process's memory, a server and its format are three megabytes, which few ask for.
            from .job_metrics import StoredFacts  # noqa: PLC0415
            from .metrics import WorkerCollector, serve_metrics  # noqa: PLC0415

            stored = StoredFacts(runners)
            collector = WorkerCollector(
                [watch.state for watch in watches],
                [sender.state for sender in senders],
                deliverer,
                stored.stations,
                None if follower is None else follower.worker.alerts,
                gateway.rates.outliers,
            )
            await stack.enter_async_context(serve_metrics([collector, stored], gateway.settings.worker, stored.refresh))
        works: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            f"watch {watch.state.chain.info.id}": watch.run for watch in watches
        }
        works |= {f"send {sender.state.chain.info.id}": sender.run for sender in senders}
        works["recovery_manifest"] = partial(write_manifests, gateway)
        restored = Restored(gateway.db)
        works = {name: partial(restored.then, work) for name, work in works.items()}
        works["chains"], works["chains_asked"] = keeper.run, keeper.run_asking
        works["chains_reopened"] = keeper.run_reopening
        if follower is not None:
            works["exchanges"] = follower.run
        works |= {f"track {chain}": partial(keep_telling, gateway, chain) for chain in gateway.chains}
        works["webhooks"] = deliverer.run
        works["arq"] = partial(run_arq, gateway.settings, runners)
        works["address_filters"] = partial(keep_filters, caches.values())
        works["signer_addresses"] = partial(teach_signer, gateway)
        works["signer_report"] = partial(follow_signer, gateway)
        if (seals_file := gateway.settings.audit.seals_file) is not None:
            works["audit_seals_file"] = partial(copy_seals, gateway, seals_file)
        log.info("worker_ready", chains=sorted(gateway.chains))
        await run_all(works, stop, grace_s=GRACE_S)
    log.info("worker_stopped")


def __getattr__(name: str) -> type:
    """Make ``WorkerSettings`` of the operator's settings when arq's command line asks for it."""
    if name != "WorkerSettings":
        raise AttributeError(name)
    hooks = {"handle_signals": False, "on_startup": _open, "on_shutdown": _close}
    return type(name, (), {**arq_options(process_settings()), **hooks})


async def _open(ctx: dict[str, Any]) -> None:
    settings = process_settings()
    configure_logs(level=settings.log.level, json=settings.logs_json)  # arq's own would show secrets
    signs = settings.signer_socket is None
    os.environ.update(provision(settings, system_ids(), keystore=signs))
    stack = AsyncExitStack()
    gateway = await stack.enter_async_context(open_gateway(process_settings(passphrase=signs), role="worker"))
    runners = runners_of(gateway)
    queueing = asyncio.create_task(keep_running("arq queueing", partial(keep_queueing, gateway, ctx["redis"])))
    keeper = ChainKeeper(gateway, ())
    following = asyncio.create_task(keep_running("chains", keeper.run))
    reopening = asyncio.create_task(keep_running("chains_reopened", keeper.run_reopening))
    end_at_signals(cast("asyncio.Task[Any]", asyncio.current_task()))
    stack.push_async_callback(end_tasks, {queueing, following, reopening})
    ctx.update(runners.context, gateway=stack)


def end_at_signals(task: asyncio.Task[Any]) -> None:
    """End a task at SIGTERM or SIGINT. arq's own handlers cancel it once, which can be lost."""
    loop, ending = asyncio.get_running_loop(), set[asyncio.Task[None]]()

    def end() -> None:
        ending.add(loop.create_task(end_tasks({task})))

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, end)


async def _close(ctx: dict[str, Any]) -> None:
    await ctx["gateway"].aclose()


def address_caches(gateway: Gateway) -> dict[str, AddressCache]:
    """Return what knows the addresses of each family that has a connected chain."""
    names = {chain.info.family for chain in gateway.chains.values()}
    families = [gateway.registry.families[name] for name in sorted(names)]
    folder = gateway.settings.data_dir / FILTERS_FOLDER
    return {
        family.name: AddressCache(gateway.db, family, "live", folder=folder, random_bytes=gateway.ids.random_bytes)
        for family in families
    }


def chain_watches(gateway: Gateway, leases: Leases, caches: Mapping[str, AddressCache]) -> list[ChainWatch]:
    """Return a watch for every connected chain; chains of one family share the filter of its addresses."""
    watches = []
    for chain in gateway.chains.values():
        family = gateway.registry.families[chain.info.family]
        watcher = Watcher(
            db=gateway.db,
            chain=chain,
            family=family,
            address_cache=caches[family.name],
            scope=0,
            mode="live",
            clock=gateway.clock,
            ids=gateway.ids,
            hints=gateway.hints,
            fiat_currencies=gateway.settings.prices.snapshot_currencies,
            tokens_revision=partial(gateway.connections.revisions.__getitem__, chain.info.id),
        )
        watches.append(ChainWatch(watcher, chain, leases, gateway.pauses))
    return watches


def _allow_open_files() -> None:
    """Raise the soft limit: every webhook on its way has a socket, and the usual 1,024 are few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES_WANTED if hard == resource.RLIM_INFINITY else min(OPEN_FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
