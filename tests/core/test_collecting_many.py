"""However much lies on addresses, a chain is asked little of it; what fails there holds up nothing else."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta

import pytest
from msgspec import structs

from cambist.plugin import ChainUnavailableError
from cambist.services.listing import Part
from cambist.services.sending.collections import planning
from cambist.services.sending.collections.explaining import ask, list_uncollected

ONE = 10**6
DAY = 86_400


@pytest.fixture
def asked(cheap_treasury, monkeypatch):
    """How many times the chain was asked for a plan of a transfer from each address."""
    asked, plan = Counter(), cheap_treasury.chain.plan

    async def counted(intents, *args, **more):
        asked.update(intent.source for intent in intents)
        return await plan(intents, *args, **more)

    monkeypatch.setattr(cheap_treasury.chain, "plan", counted)
    return asked


async def reasons(treasury):
    async with treasury.db.autocommit() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT a.address, u.reason FROM uncollected_funds u JOIN addresses a ON a.id = u.address_pk"
        )
        return {row.address: row.reason for row in rows}


def each_minute(treasury):
    return treasury.engine(structs.replace(treasury.settings, collect_interval_ms=60_000))


@pytest.mark.slow
async def test_of_what_lies_there_for_long_the_chain_is_asked_ever_more_rarely(cheap_treasury, asked):
    small, engine = await cheap_treasury.receive("USDX", 3 * ONE), each_minute(cheap_treasury)
    for _ in range(6 * 60):
        cheap_treasury.clock.advance(60)
        await engine.tick()
    assert 40 < asked[small] < 80, "360 checks"
    cheap_treasury.clock.advance(18 * 3_600)
    asked.clear()
    for _ in range(4 * 24):
        cheap_treasury.clock.advance(3_600)
        await engine.tick()
    assert 4 * 24 / 3 <= asked[small] <= 4 * 24 / 2
    assert await reasons(cheap_treasury) == {small: "below_minimum"}


async def test_what_was_said_before_moves_nothing_and_holds_nothing_back(cheap_treasury, asked):
    """The chain is asked again at once when more comes, when the price makes it worth it, and when it is old enough."""
    addresses = [await cheap_treasury.receive("USDX", 3 * ONE), await cheap_treasury.receive("DAIX", 3 * 10**18)]
    engine = each_minute(cheap_treasury)
    cheap_treasury.clock.advance(DAY)
    await engine.tick()
    cheap_treasury.clock.advance(60)
    asked.clear()
    await engine.tick()
    assert asked == {}
    cheap_treasury.chain.transfer(cheap_treasury.token("USDX"), addresses[0], 3 * ONE)
    await cheap_treasury.mine(1 + cheap_treasury.info.confirmations, seconds=60)
    assert (await engine.tick()).collected == 1
    cheap_treasury.prices.board["DAIX", "usd"] = "2"
    # It would be worth it for the fee that was told before, and is not for the one of now.
    cheap_treasury.chain.fees.base_price *= 100_000
    cheap_treasury.clock.advance(60)
    asked.clear()
    assert (await engine.tick()).collected == 0
    assert asked[addresses[1]] == 1
    assert (await reasons(cheap_treasury))[addresses[1]] == "fee_above_value"
    cheap_treasury.chain.fees.base_price //= 100_000
    cheap_treasury.clock.advance(7 * DAY)
    assert (await engine.tick()).collected == 1
    await cheap_treasury.work(engine)
    assert [await cheap_treasury.on_chain(*one) for one in zip(addresses, ("USDX", "DAIX"), strict=True)] == [0, 0]


@pytest.mark.slow
async def test_what_comes_after_a_collection_is_something_else(cheap_treasury, asked):
    """Neither what failed before it nor what the chain said before it keeps back what comes to the same address."""
    address, engine = await cheap_treasury.permanent_address(), each_minute(cheap_treasury)

    async def pay_in(units):
        cheap_treasury.chain.transfer(cheap_treasury.token("USDX"), address, units)
        await cheap_treasury.mine(1 + cheap_treasury.info.confirmations)

    await pay_in(50 * ONE)
    for _ in range(3):
        assert (await engine.tick()).collected == 1
        await fail_collections(cheap_treasury)
        cheap_treasury.clock.advance(3_600)
    await cheap_treasury.work(engine)
    assert await cheap_treasury.on_chain(address, "USDX") == 0
    await pay_in(50 * ONE)
    cheap_treasury.clock.advance(60)
    assert (await engine.tick()).collected == 1
    await fail_collections(cheap_treasury)
    cheap_treasury.clock.advance(61)
    assert (await engine.tick()).collected == 1, "it is the first that failed since then"
    await cheap_treasury.work(engine)
    await pay_in(3 * ONE)
    cheap_treasury.clock.advance(6 * DAY)
    await engine.tick()
    cheap_treasury.clock.advance(DAY)
    await cheap_treasury.work(engine)
    assert await cheap_treasury.on_chain(address, "USDX") == 0, "it is old enough"
    await pay_in(3 * ONE)
    asked.clear()
    cheap_treasury.clock.advance(60)
    await engine.tick()
    assert asked[address] == 1


async def test_a_check_that_runs_out_of_time_goes_on_where_it_ended(cheap_treasury, monkeypatch):
    """A node of which each check has one answer: however many there are, those that are worth it are collected."""
    monkeypatch.setattr(planning, "PLANNED_AT_ONCE", 2)
    small = [await cheap_treasury.receive("USDX", 3 * ONE) for _ in range(7)]
    worthy = await cheap_treasury.receive("USDX", 50 * ONE)
    engine, answered = each_minute(cheap_treasury), []
    cheap_treasury.clock.advance(DAY)

    async def slow(call):
        if call == "plan":
            answered.append(call)
            if len(answered) % 2 == 0:
                raise asyncio.CancelledError  # as it is where the time is over

    cheap_treasury.chain.faults.before = slow
    for told in (2, 4, 6):
        with pytest.raises(asyncio.CancelledError):
            await engine.tick()
        assert len(await reasons(cheap_treasury)) == told
        cheap_treasury.clock.advance(60)
    cheap_treasury.chain.faults.before = None
    await engine.tick()
    assert sorted(await reasons(cheap_treasury)) == sorted(small)
    await cheap_treasury.work(engine)
    assert await cheap_treasury.on_chain(worthy, "USDX") == 0


async def test_one_that_cannot_be_planned_holds_up_no_other(cheap_treasury, monkeypatch):
    """Also not the one that is planned together with it."""
    monkeypatch.setattr(planning, "PLANNED_AT_ONCE", 2)
    addresses = [await cheap_treasury.receive("USDX", 50 * ONE) for _ in range(6)]
    cheap_treasury.chain.faults.contradicted = {addresses[2]}
    with pytest.raises(Exception, match="two balances"):
        await each_minute(cheap_treasury).tick()
    async with cheap_treasury.db.autocommit() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT a.address FROM outbound_intents i JOIN addresses a ON a.id = i.source_address_pk"
            " WHERE i.kind = 'collection'"
        )
        assert sorted(rows.scalars()) == sorted(addresses[:2] + addresses[3:])
    cheap_treasury.chain.faults.contradicted = set()
    await cheap_treasury.work(cheap_treasury.engine())


async def test_what_no_node_can_try_holds_up_nothing_for_good(cheap_treasury, monkeypatch):
    """As a contract on which every node runs out of time: two of it in a row could be an outage."""
    monkeypatch.setattr(planning, "PLANNED_AT_ONCE", 1)
    addresses, plan = [await cheap_treasury.receive("USDX", 50 * ONE) for _ in range(3)], cheap_treasury.chain.plan

    async def running_out(intents, *args, **more):
        if any(intent.source in addresses[:2] for intent in intents):
            raise ChainUnavailableError("CPU timeout")
        return await plan(intents, *args, **more)

    engine = each_minute(cheap_treasury)
    with monkeypatch.context() as patched:
        patched.setattr(cheap_treasury.chain, "plan", running_out)
        collected = []
        for _ in range(2):
            with pytest.raises(ChainUnavailableError):
                await engine.tick()
            collected.append([kind for kind, *_ in await cheap_treasury.open_intents()].count("collection"))
            cheap_treasury.clock.advance(60)
    assert collected == [0, 1]
    await cheap_treasury.work(engine)
    assert [await cheap_treasury.on_chain(address, "USDX") for address in addresses] == [0] * 3


async def test_what_it_costs_is_asked_for_the_wallet_it_goes_to(cheap_treasury):
    """A token that the chain would not give the gas station is no reason; that it would not give the wallet is one."""
    contract = cheap_treasury.token("USDX").contract
    address = await cheap_treasury.receive("USDX", 50 * ONE)
    cheap_treasury.chain.faults.refusing = {(contract, cheap_treasury.wallet.address)}
    engine = cheap_treasury.engine()
    await engine.tick()
    assert await reasons(cheap_treasury) == {address: "refused"}
    cheap_treasury.chain.faults.refusing = {(contract, cheap_treasury.station)}
    cheap_treasury.clock.advance(3_600)
    await cheap_treasury.work(engine)
    assert await cheap_treasury.on_chain(address, "USDX") == 0


async def fail_collections(treasury):
    """End what is on its way as if the chain had not taken it."""
    async with treasury.db.transaction() as conn:
        failed = await conn.exec_driver_sql(
            "UPDATE outbound_intents SET state = 'failed', finished_at = $1"
            " WHERE kind = 'collection' AND state IN ('waiting', 'sending') RETURNING id",
            (treasury.clock.now(),),
        )
        ended = failed.scalars().all()
        await conn.exec_driver_sql(
            "UPDATE deposits SET collection_pk = NULL WHERE collection_pk = ANY($1::bigint[])", (ended,)
        )


async def the_one(treasury):
    async with treasury.db.transaction() as conn:
        (one,) = (await list_uncollected(conn, Part(limit=100))).items
    return one


@pytest.mark.slow
async def test_what_failed_lately_says_until_when_and_is_tried_again_for_who_asks(cheap_treasury):
    """Each time the pause is longer, up to six hours; and what failed more than a week ago counts no more."""
    address, engine = await cheap_treasury.receive("USDX", 50 * ONE), cheap_treasury.engine()
    for minutes in (1, 4, 16, 64, 256, 360, 360):
        assert (await engine.tick()).collected == 1
        await fail_collections(cheap_treasury)
        failed_at = cheap_treasury.clock.now()
        cheap_treasury.clock.advance(1)
        assert (await engine.tick()).collected == 0
        one = await the_one(cheap_treasury)
        assert (one.reason, one.until) == ("failed_lately", failed_at + timedelta(minutes=minutes))
        assert "then" not in one.text.split(), "of an address, no time is told that it could mean"
        cheap_treasury.clock.advance(minutes * 60 - 2)
        assert (await engine.tick()).collected == 0
        cheap_treasury.clock.advance(1)
    cheap_treasury.clock.advance(7 * 86_400)
    assert (await engine.tick()).collected == 1
    await fail_collections(cheap_treasury)
    failed_at = cheap_treasury.clock.now()
    cheap_treasury.clock.advance(1)
    await engine.tick()
    one = await the_one(cheap_treasury)
    assert one.until == failed_at + timedelta(minutes=1)
    async with cheap_treasury.db.transaction() as conn:
        await ask(conn, one.uncollected_id, None, cheap_treasury.clock.now())
    await cheap_treasury.work(engine, rounds=20, until="enough")
    assert await cheap_treasury.on_chain(address, "USDX") == 0


async def test_a_collection_that_failed_is_tried_again_soon_and_who_waits_for_it_is_paid(cheap_treasury):
    """It was planned, and the chain did not take it when its turn came."""
    contract, wallet = cheap_treasury.token("USDX").contract, cheap_treasury.wallet.address
    address = await cheap_treasury.receive("USDX", 50 * ONE)
    payout_id = await cheap_treasury.pay_out("USDX", 40 * ONE, await cheap_treasury.stranger(1))
    engine = cheap_treasury.engine()
    while ("collection", "sending", None) not in await cheap_treasury.open_intents():
        await cheap_treasury.mine()
        await engine.tick()
    cheap_treasury.chain.faults.refusing = {(contract, wallet)}
    while cheap_treasury.alerts["failed"] == 0:
        await cheap_treasury.mine()
        await engine.tick()
    cheap_treasury.chain.faults.refusing = set()
    assert await reasons(cheap_treasury) == {address: "failed_lately"}
    assert (await cheap_treasury.payout(payout_id)).status == "processing"
    cheap_treasury.clock.advance(60)
    await cheap_treasury.work(engine)
    assert (await cheap_treasury.payout(payout_id)).status == "completed"
