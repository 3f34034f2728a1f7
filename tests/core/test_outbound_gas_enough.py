"""What an address is brought for its fee is enough, or the platform stops bringing more before it has spent it all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from cambist.plugin import Intent, Plan, Units
from cambist.testing.memory import MemoryChain
from tests.support.payment_env import registry
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow


class Insatiable(MemoryChain):
    """Wants a little more from an address for its fee than that was brought, as where all that it holds is spent."""

    hungry = True

    async def plan(
        self, intents: Sequence[Intent], *, sponsor: str | None, promised: Mapping[str, int] | None = None
    ) -> Sequence[Plan]:
        plans = []
        for plan in await super().plan(intents, sponsor=sponsor, promised=promised):
            if self.hungry and plan.step is not None and plan.step.sender != sponsor:
                held = await self.balance(plan.step.sender, self.info.native)
                plan = replace(plan, step=replace(plan.step, fee=replace(plan.step.fee, extra=Units(held + 1))))  # noqa: PLW2901
            plans.append(plan)
        return plans


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    known = registry()
    chain = Insatiable(known.chains["memory"])
    async with Treasury(db, clock, ids, tmp_path, chain=chain, chains=known) as treasury:
        await treasury.open()
        yield treasury
        await treasury.check_books()


async def top_ups(treasury: Treasury) -> int:
    async with treasury.db.autocommit() as conn:
        found = await conn.exec_driver_sql("SELECT count(*) FROM outbound_intents WHERE kind = 'top_up'")
        count: int = found.scalar_one()
        return count


async def test_an_address_that_never_has_enough_gas_is_brought_less_and_less_often(treasury):
    """Each top-up costs the platform a fee of its own: one a second would empty its gas station."""
    address = await treasury.receive("USDX", 500 * 10**6)
    engine = treasury.engine()
    await treasury.work(engine, rounds=60, until="bored")
    assert await top_ups(treasury) == 4
    assert treasury.alerts["gas_never_enough"] > 0
    for _ in range(6):
        treasury.clock.advance(3600)
        await treasury.mine()
        await treasury.work(engine, rounds=6, until="bored")
    assert await top_ups(treasury) < 10
    treasury.chain.hungry = False
    treasury.clock.advance(120)
    await treasury.work(engine)
    assert await treasury.on_chain(address, "USDX") == 0
    assert await treasury.on_chain(treasury.wallet.address, "USDX") == 500 * 10**6


async def test_gas_for_what_outbids_comes_however_often_prices_rise_meanwhile(db, clock, ids, tmp_path):
    """Each was spent on a transaction that outbids the one before: nothing that was brought was too little."""
    async with Treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open()
        address = await treasury.receive("USDX", 500 * 10**6)
        engine, fees = treasury.engine(), treasury.chain.fees
        for _ in range(8):
            before, since = await sent(treasury, address), clock.now()
            while await sent(treasury, address) == before:
                assert (clock.now() - since).total_seconds() < 300
                await engine.tick()
                if await sent(treasury, address) == before:
                    await treasury.mine()
            fees.base_price *= 3  # before it is mined, for which it pays too little now
            clock.advance(treasury.settings.stuck_after_s + 1)
        assert await top_ups(treasury) == 8
        assert treasury.alerts["gas_never_enough"] == 0
        fees.base_price //= 3
        await treasury.work(engine)
        assert await treasury.on_chain(treasury.wallet.address, "USDX") == 500 * 10**6
        await treasury.check_books()


async def sent(treasury: Treasury, address: str) -> int:
    """Return how many transactions an address has signed."""
    async with treasury.db.autocommit() as conn:
        found = await conn.exec_driver_sql(
            "SELECT count(*) FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk"
            " JOIN addresses a ON a.id = s.address_pk WHERE a.address = $1",
            (address,),
        )
        count: int = found.scalar_one()
        return count
