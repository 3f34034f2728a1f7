"""Blocks that an operator has asked to be read again, beside the live watch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from cambist.bootstrap import Gateway
from cambist.services.receiving.deposits import AddressCache
from cambist.services.receiving.deposits.store import WatchedChain
from cambist.services.receiving.history.rescan import Bounds, Progress, Rescanner
from cambist_tasks.job_lease import LaterError, Lease

from .tracker_history import UNREADABLE, connected, wait_while_paused

FILTERS_FOLDER = "filters"


async def rescan(gateway: Gateway, lease: Lease) -> Mapping[str, Any] | None:
    """Read the next span again of the blocks that the arguments name."""
    chain_id, first, last = (lease.job.arguments[name] for name in ("chain", "first", "last"))
    await wait_while_paused(gateway, chain_id)
    rescanner = lease.kept
    if not isinstance(rescanner, Rescanner):
        rescanner = lease.kept = _rescanner(gateway, chain_id, Bounds(first=first, last=last))
    step = await rescanner.step(msgspec.convert(lease.job.progress, Progress), lease)
    if step.retry_s is not None:
        raise LaterError(step.error or UNREADABLE, step.retry_s)
    if not step.over:
        return None
    done = step.progress
    return {
        "fromHeight": first,
        "toHeight": last,
        "blocks": done.blocks,
        "deposits": done.deposits,
        "depositIds": list(done.found),
    }


def _rescanner(gateway: Gateway, chain_id: str, bounds: Bounds) -> Rescanner:
    chain = connected(gateway, chain_id)
    family = gateway.registry.families[chain.info.family]
    # A filter of its own, loaded from what the watch has saved.
    folder = gateway.settings.data_dir / FILTERS_FOLDER
    cache = AddressCache(gateway.db, family, "live", folder=folder, random_bytes=gateway.ids.random_bytes)
    return Rescanner(
        db=gateway.db,
        chain=chain,
        chain_scope=WatchedChain(
            info=chain.info,
            family=family,
            scope=0,
            mode="live",
            ids=gateway.ids,
            fiat_currencies=gateway.settings.prices.snapshot_currencies,
        ),
        address_cache=cache,
        bounds=bounds,
        clock=gateway.clock,
        hints=gateway.hints,
    )
