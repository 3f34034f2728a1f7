"""A shop that is paid on a chain in memory, for the tests of how deposits are read."""

import pytest

from cambist.services.accounting.ledger import asset_key
from cambist.testing.memory import MemoryChain, MemoryFamily, memory_chain_info
from tests.support.shop import Shop


@pytest.fixture
async def shop(db, clock, ids):
    return await Shop(db, MemoryFamily(), clock, ids).open()


@pytest.fixture
async def chain(clock):
    return MemoryChain(memory_chain_info(), genesis_time=int(clock.now().timestamp()) - 600)


@pytest.fixture
async def watcher(shop, chain):
    watcher = shop.watcher(chain)
    await shop.poll(watcher)
    return watcher


@pytest.fixture
def usdx(chain):
    return chain.info.token("USDX")


@pytest.fixture
def asset(usdx):
    return asset_key("memory", usdx.contract)
