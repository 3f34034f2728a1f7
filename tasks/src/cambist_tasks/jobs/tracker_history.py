"""The past of a chain, read for trackers: one job for each chain, as long as something is left to read there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from cambist.bootstrap import Gateway
from cambist.domain.troubles import Said, Trouble, say
from cambist.plugin import Chain
from cambist.services.chain_pauses import Pausable
from cambist.services.jobs import requests
from cambist.services.jobs.requests import Kind, NewJob
from cambist.services.receiving.history import HistoryReader, Progress
from cambist.services.sandbox.chain import SandboxChain
from cambist.services.trackers import history
from cambist_tasks.job_lease import LaterError, Lease

UNCONNECTED_PAUSE_S = 300
PAUSED_PAUSE_S = 5
UNREADABLE = Said(Trouble.OTHER, "The chain cannot be read.")


async def queue_histories(gateway: Gateway) -> bool:
    """Ask for a job wherever something of the past can be read; False, since nothing is left to ask for then."""
    infos = gateway.registry.chains.values()
    chains = [(info.id, max(1, info.confirmations), info.finality_required) for info in infos]
    now, pause_s = gateway.clock.now(), gateway.settings.trackers.history_pause_s
    async with gateway.db.autocommit() as conn:
        due = await history.find_due(conn, chains, now, pause_s)
    if not due:
        return False
    async with gateway.db.transaction() as conn:
        for one in due:
            new = NewJob(
                kind=Kind.TRACKER_HISTORY,
                arguments={"chain": one.chain, "scope": one.scope},
                requested_by="gateway",
                unique_key=f"{one.chain} {one.scope}",
            )
            await requests.request_again(conn, gateway.ids, new, now)
    await gateway.hints.publish(requests.TOPIC)
    return False


async def read_history(gateway: Gateway, lease: Lease) -> Mapping[str, Any] | None:
    """Read the next span of the chain that the arguments name."""
    if lease.job.arguments["scope"] == 0:
        await wait_while_paused(gateway, lease.job.arguments["chain"])
    reader = lease.kept
    if not isinstance(reader, HistoryReader):
        reader = lease.kept = _reader(gateway, lease.job.arguments["chain"], lease.job.arguments["scope"])
    step = await reader.step(msgspec.convert(lease.job.progress, Progress), lease.saving)
    if step.retry_s is not None:
        raise LaterError(step.error or UNREADABLE, step.retry_s)
    return {"readBlock": step.progress.height} if step.over else None


async def wait_while_paused(gateway: Gateway, chain_id: str) -> None:
    """Raise LaterError while an operator has paused the watching of a live chain: then nothing of it is read."""
    if await gateway.pauses.are_in_force(chain_id, Pausable.WATCHING):
        raise LaterError(say(Trouble.CHAIN_PAUSED, chain=chain_id), PAUSED_PAUSE_S)


def _reader(gateway: Gateway, chain_id: str, scope: int) -> HistoryReader:
    return HistoryReader(
        db=gateway.db,
        chain=_chain(gateway, chain_id, scope),
        family=gateway.registry.families[gateway.registry.chains[chain_id].family],
        scope=scope,
        mode="sandbox" if scope else "live",
        clock=gateway.clock,
        hints=gateway.hints,
        blocks_max=gateway.settings.trackers.history_blocks_max,
        pause_s=gateway.settings.trackers.history_pause_s,
    )


def _chain(gateway: Gateway, chain_id: str, scope: int) -> Chain:
    if scope:
        info = gateway.registry.chains[chain_id]
        return SandboxChain(gateway.db, info, gateway.registry.families[info.family], scope)
    return connected(gateway, chain_id)


def connected(gateway: Gateway, chain_id: str) -> Chain:
    """Return a live chain. Raises LaterError where this worker is not connected to it."""
    if chain_id not in gateway.chains:
        raise LaterError(say(Trouble.CHAIN_NOT_CONNECTED, chain=chain_id), UNCONNECTED_PAUSE_S)
    return gateway.chains[chain_id]
