"""Exchanges whose provider is not there any more: its plugin was removed, or pins another contract."""

import pytest
from msgspec import structs

from cambist.plugin import Units
from cambist.signer.exchanges import ExchangeReader
from cambist.signer.local import LocalSigner
from cambist.signer.reading import Reader
from cambist.signer.store import Store
from tests.support.exchange_env import USDX, ExchangeEnv

pytestmark = pytest.mark.slow


@pytest.fixture
async def env(db, clock, ids, tmp_path):
    async with ExchangeEnv(db, clock, ids, tmp_path / "signer") as env:
        yield env


async def start_again_without_providers(env: ExchangeEnv) -> None:
    """Start worker and signer again, with no plugin that swaps or bridges."""
    await env.signer.aclose()
    readers = ExchangeReader([], env.registry.chains, {})
    reader = Reader(env.keystore, env.registry.families, env.registry.chains, readers)
    env.signer = LocalSigner(env.keystore, reader, rules=env.rules, store=Store(env.folder), clock=env.clock)
    env._stack.push_async_callback(env.signer.aclose)
    env.engines = {name: env.engine_of(name) for name in env.routers}
    env.follower = structs.replace(env.follower, swaps=[], readers=[])


async def test_an_allowance_is_taken_back_from_a_contract_that_nobody_pins_any_more(env):
    """Its provider may have been removed because the contract steals what it is allowed."""
    await env.opened(usdx=60 * USDX)
    txn_id = await env.ask("memory/USDX", 60 * USDX, "memory/MEM")
    while not await env.allowance():
        await env.tick()
        await env.mine()
        env.swap_service.fee_bps = 3_000 if (await env.row(txn_id)).approvals else env.swap_service.fee_bps
    assert (await env.row(txn_id)).step == "queued"
    await start_again_without_providers(env)
    row = await env.go_on(txn_id, rounds=200, seconds=60)
    assert (row.status, row.tx_id, await env.allowance()) == ("failed", None, Units(0))
    assert (await env.balance_of("memory", "USDX")).available == 60 * USDX
    await env.check_all_books()
