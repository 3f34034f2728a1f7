"""A chain whose plugin cannot tell of its endpoints hides neither itself nor any other from operators."""

from __future__ import annotations

from functools import partial

import pytest
from msgspec.structs import replace

from cambist.services.chains import endpoints, states
from cambist.testing.memory import MemoryChain, memory_chain_info
from cambist_tasks.chain_keeper import ChainKeeper
from cambist_tasks.metrics import WorkerCollector
from cambist_tasks.watching import WatchState
from tests.tasks.test_exchange_metrics import told
from tests.tasks.test_worker import gateway_of, settings


class Silent(MemoryChain):
    """Trips over its own endpoints."""

    def endpoints(self):
        raise KeyError("result")


def test_the_metrics_tell_of_the_other_chains():
    silent, sound = Silent(memory_chain_info()), MemoryChain(replace(memory_chain_info(), id="sound"))
    collector = WorkerCollector([WatchState(chain=silent), WatchState(chain=sound)], [], None, [])
    healthy = {labels for labels in told(collector._endpoints()) if labels[0] == "cambist_endpoint_healthy"}
    assert {chain for _, chain, *_ in healthy} == {"sound"}


@pytest.mark.slow
async def test_a_worker_writes_how_every_chain_stands(db, database_url, redis_url, ids, tmp_path, monkeypatch):
    tables = {"memory": {"chains": {"ahead": {}, "memory": {}}}}
    configured = replace(settings(database_url, redis_url, tmp_path), plugins=tables)
    async with gateway_of(configured, ids) as gateway:
        monkeypatch.setattr(gateway.chains["ahead"].connected, "endpoints", partial(Silent.endpoints, None))
        watched = [WatchState(chain=chain, watching=True) for chain in gateway.chains.values()]
        await ChainKeeper(gateway, watched).report()
        async with db.autocommit() as conn:
            assert set(await states.load(conn)) == {"ahead", "memory"}
            assert await endpoints.list_of(conn, gateway.clock.now(), "memory")
            assert not await endpoints.list_of(conn, gateway.clock.now(), "ahead")
