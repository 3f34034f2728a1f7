"""A shop that is paid on a chain in memory, a gateway that sends on one, and plugins to install."""

import itertools
import sys
import textwrap

import pytest

from cambist.services.accounting.ledger import asset_key
from cambist.testing.databases import KeptDatabase
from cambist.testing.memory import MemoryChain, MemoryFamily, memory_chain_info
from tests.support.payment_env import PaymentEnv
from tests.support.payout_env import PayoutEnv
from tests.support.plays import play
from tests.support.refunds import RefundEnv
from tests.support.shop import Shop
from tests.support.trackers import Watchers
from tests.support.treasury import Treasury
from tests.support.tron_treasury import tron_treasury


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
async def treasury(db, clock, ids, tmp_path):
    """Give a gateway that sends for several merchants; what wants another one has a fixture of its own."""
    async with Treasury(db, clock, ids, tmp_path, stock=8) as treasury:
        await play(treasury, Treasury.open)
        yield treasury
        await treasury.check_books()


@pytest.fixture
async def on_tron(db, clock, ids, tmp_path):
    """Give a gateway that sends for a merchant on TRON."""
    async with tron_treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open()
        yield treasury
        await treasury.check_books()


@pytest.fixture
async def funded_treasury(db, clock, ids, tmp_path):
    """Give a merchant to whom 500 USDX were paid, which lie where they were paid to."""
    async with Treasury(db, clock, ids, tmp_path) as treasury:
        await play(treasury, Treasury.open_paid, ("USDX", 500_000_000))
        yield treasury


@pytest.fixture
async def ready_treasury(funded_treasury):
    """Give the same one whose wallet has sent before, and holds money and gas."""
    await funded_treasury.ready()
    return funded_treasury


@pytest.fixture
async def cheap_treasury(db, clock, ids, tmp_path):
    """Give a merchant on a chain with low fees, where little is too small to be collected."""
    async with Treasury(db, clock, ids, tmp_path) as treasury:
        treasury.chain.fees.base_price = 10**9
        await play(treasury, Treasury.open)
        yield treasury
        await treasury.check_books()


@pytest.fixture(scope="session")
async def second_database(databases):
    """Give what lends a database beside ``db`` to one test after the other."""
    kept = KeptDatabase(databases)
    yield kept
    await kept.close()


@pytest.fixture
async def empty(second_database):
    """Give a database that has its tables, and nothing in them."""
    database = second_database.open(second_database.lend())
    yield database
    await second_database.take_back(database)


@pytest.fixture
async def payment_env(db, clock, ids):
    return await PaymentEnv(db, clock, ids).open()


@pytest.fixture
async def payout_env(payment_env):
    return PayoutEnv(payment_env)


@pytest.fixture
async def refund_env(payment_env):
    refund_env = RefundEnv(payment_env)
    yield refund_env
    await refund_env.check_books()


@pytest.fixture
async def watchers(shop):
    return Watchers(shop.db, shop.project, family=shop.family.name)


@pytest.fixture
def usdx(chain):
    return chain.info.token("USDX")


@pytest.fixture
def asset(usdx):
    return asset_key("memory", usdx.contract)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a distribution with one plugin, for this test: the real thing, found by importlib.metadata."""
    numbers = itertools.count()

    def install(name, *sources, distribution=None, version="1.2.3"):
        number = next(numbers)
        site = tmp_path / f"site{number}"
        distribution = distribution or f"cambist-{name}"
        module = f"plugin_{name}_{tmp_path.name}_{number}".replace("-", "_")
        info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[cambist.plugins]\n{name} = {module}\n")
        (site / f"{module}.py").write_text("\n".join(textwrap.dedent(source) for source in sources))
        monkeypatch.syspath_prepend(str(site))
        return module

    before = set(sys.modules)
    yield install
    for module in set(sys.modules) - before:
        if module.startswith("plugin_"):
            del sys.modules[module]
