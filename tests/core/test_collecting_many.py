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
from tests.support.treasury import Treasury

ONE = 10**6
DAY = 86_400


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with Treasury(db, clock, ids, tmp_path) as treasury:
        treasury.chain.fees.base_price = 10**9
        await treasury.open()
        yield treasury
        await treasury.check_books()


@pytest.fixture
def asked(treasury, monkeypatch):
    """How many times the chain was asked for a plan of a transfer from each address."""
    asked, plan = Counter(), treasury.chain.plan

    async def counted(intents, *args, **more):
        asked.update(intent.source for intent in intents)
        return await plan(intents, *args, **more)

    monkeypatch.setattr(treasury.chain, "plan", counted)
    return asked


async def reasons(treasury):
    async with treasury.db.transaction() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT a.address, u.reason FROM uncollected_funds u JOIN addresses a ON a.id = u.address_pk"
        )
        return {row.address: row.reason for row in rows}


def each_minute(treasury):
    return treasury.engine(structs.replace(treasury.settings, collect_interval_ms=60_000))


async def test_of_what_lies_there_for_long_the_chain_is_asked_ever_more_rarely(treasury, asked):
    small, engine = await treasury.receive("USDX", 3 * ONE), each_minute(treasury)
    for _ in range(24 * 60):
        treasury.clock.advance(60)
        await engine.tick()
    assert 60 < asked[small] < 120, "1,440 checks"
    asked.clear()
    for _ in range(4 * 24):
        treasury.clock.advance(3_600)
        await engine.tick()
    assert 4 * 24 / 3 <= asked[small] <= 4 * 24 / 2
    assert await reasons(treasury) == {small: "below_minimum"}


async def test_what_was_said_before_moves_nothing_and_holds_nothing_back(treasury, asked):
    """The chain is asked again at once when more comes, when the price makes it worth it, and when it is old enough."""
    addresses = [await treasury.receive("USDX", 3 * ONE), await treasury.receive("DAIX", 3 * 10**18)]
    engine = each_minute(treasury)
    treasury.clock.advance(DAY)
    await engine.tick()
    treasury.clock.advance(60)
    asked.clear()
    await engine.tick()
    assert asked == {}
    treasury.chain.transfer(treasury.token("USDX"), addresses[0], 3 * ONE)
    await treasury.mine(1 + treasury.info.confirmations, seconds=60)
    assert (await engine.tick()).collected == 1
    treasury.prices.board["DAIX", "usd"] = "2"
    # It would be worth it for the fee that was told before, and is not for the one of now.
    treasury.chain.fees.base_price *= 100_000
    treasury.clock.advance(60)
    asked.clear()
    assert (await engine.tick()).collected == 0
    assert asked[addresses[1]] == 1
    assert (await reasons(treasury))[addresses[1]] == "fee_above_value"
    treasury.chain.fees.base_price //= 100_000
    treasury.clock.advance(7 * DAY)
    assert (await engine.tick()).collected == 1
    await treasury.work(engine)
    assert [await treasury.on_chain(*one) for one in zip(addresses, ("USDX", "DAIX"), strict=True)] == [0, 0]


async def test_what_comes_after_a_collection_is_something_else(treasury, asked):
    """Neither what failed before it nor what the chain said before it keeps back what comes to the same address."""
    address, engine = await treasury.permanent_address(), each_minute(treasury)

    async def pay_in(units):
        treasury.chain.transfer(treasury.token("USDX"), address, units)
        await treasury.mine(1 + treasury.info.confirmations)

    await pay_in(50 * ONE)
    for _ in range(3):
        assert (await engine.tick()).collected == 1
        await fail_collections(treasury)
        treasury.clock.advance(3_600)
    await treasury.work(engine)
    assert await treasury.on_chain(address, "USDX") == 0
    await pay_in(50 * ONE)
    treasury.clock.advance(60)
    assert (await engine.tick()).collected == 1
    await fail_collections(treasury)
    treasury.clock.advance(61)
    assert (await engine.tick()).collected == 1, "it is the first that failed since then"
    await treasury.work(engine)
    await pay_in(3 * ONE)
    treasury.clock.advance(6 * DAY)
    await engine.tick()
    treasury.clock.advance(DAY)
    await treasury.work(engine)
    assert await treasury.on_chain(address, "USDX") == 0, "it is old enough"
    await pay_in(3 * ONE)
    asked.clear()
    treasury.clock.advance(60)
    await engine.tick()
    assert asked[address] == 1


async def test_a_check_that_runs_out_of_time_goes_on_where_it_ended(treasury, monkeypatch):
    """A node of which each check has one answer: however many there are, those that are worth it are collected."""
    monkeypatch.setattr(planning, "PLANNED_AT_ONCE", 2)
    small = [await treasury.receive("USDX", 3 * ONE) for _ in range(7)]
    worthy = await treasury.receive("USDX", 50 * ONE)
    engine, answered = each_minute(treasury), []
    treasury.clock.advance(DAY)

    async def slow(call):
        if call == "plan":
            answered.append(call)
            if len(answered) % 2 == 0:
                raise asyncio.CancelledError  # as it is where the time is over

    treasury.chain.faults.before = slow
    for told in (2, 4, 6):
        with pytest.raises(asyncio.CancelledError):
            await engine.tick()
        assert len(await reasons(treasury)) == told
        treasury.clock.advance(60)
    treasury.chain.faults.before = None
    await engine.tick()
    assert sorted(await reasons(treasury)) == sorted(small)
    await treasury.work(engine)
    assert await treasury.on_chain(worthy, "USDX") == 0


async def test_one_that_cannot_be_planned_holds_up_no_other(treasury, monkeypatch):
    """Also not the one that is planned together with it."""
    monkeypatch.setattr(planning, "PLANNED_AT_ONCE", 2)
    addresses = [await treasury.receive("USDX", 50 * ONE) for _ in range(6)]
    treasury.chain.faults.contradicted = {addresses[2]}
    with pytest.raises(Exception, match="two balances"):
        await each_minute(treasury).tick()
    async with treasury.db.transaction() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT a.address FROM outbound_intents i JOIN addresses a ON a.id = i.source_address_pk"
            " WHERE i.kind = 'collection'"
        )
        assert sorted(rows.scalars()) == sorted(addresses[:2] + addresses[3:])
    treasury.chain.faults.contradicted = set()
    await treasury.work(treasury.engine())


async def test_what_no_node_can_try_holds_up_nothing_for_good(treasury, monkeypatch):
    """As a contract on which every node runs out of time: two of it in a row could be an outage."""
    monkeypatch.setattr(planning, "PLANNED_AT_ONCE", 1)
    addresses, plan = [await treasury.receive("USDX", 50 * ONE) for _ in range(3)], treasury.chain.plan

    async def running_out(intents, *args, **more):
        if any(intent.source in addresses[:2] for intent in intents):
            raise ChainUnavailableError("CPU timeout")
        return await plan(intents, *args, **more)

    engine = each_minute(treasury)
    with monkeypatch.context() as patched:
        patched.setattr(treasury.chain, "plan", running_out)
        collected = []
        for _ in range(2):
            with pytest.raises(ChainUnavailableError):
                await engine.tick()
            collected.append([kind for kind, *_ in await treasury.open_intents()].count("collection"))
            treasury.clock.advance(60)
    assert collected == [0, 1]
    await treasury.work(engine)
    assert [await treasury.on_chain(address, "USDX") for address in addresses] == [0] * 3


async def test_what_it_costs_is_asked_for_the_wallet_it_goes_to(treasury):
    """A token that the chain would not give the gas station is no reason; that it would not give the wallet is one."""
    contract = treasury.token("USDX").contract
    address = await treasury.receive("USDX", 50 * ONE)
    treasury.chain.faults.refusing = {(contract, treasury.wallet.address)}
    engine = treasury.engine()
    await engine.tick()
    assert await reasons(treasury) == {address: "refused"}
    treasury.chain.faults.refusing = {(contract, treasury.station)}
    treasury.clock.advance(3_600)
    await treasury.work(engine)
    assert await treasury.on_chain(address, "USDX") == 0


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


async def test_what_failed_lately_says_until_when_and_is_tried_again_for_who_asks(treasury):
    """Each time the pause is longer, up to six hours; and what failed more than a week ago counts no more."""
    address, engine = await treasury.receive("USDX", 50 * ONE), treasury.engine()
    for minutes in (1, 4, 16, 64, 256, 360, 360):
        assert (await engine.tick()).collected == 1
        await fail_collections(treasury)
        failed_at = treasury.clock.now()
        treasury.clock.advance(1)
        assert (await engine.tick()).collected == 0
        one = await the_one(treasury)
        assert (one.reason, one.until) == ("failed_lately", failed_at + timedelta(minutes=minutes))
        assert "then" not in one.text.split(), "of an address, no time is told that it could mean"
        treasury.clock.advance(minutes * 60 - 2)
        assert (await engine.tick()).collected == 0
        treasury.clock.advance(1)
    treasury.clock.advance(7 * 86_400)
    assert (await engine.tick()).collected == 1
    await fail_collections(treasury)
    failed_at = treasury.clock.now()
    treasury.clock.advance(1)
    await engine.tick()
    one = await the_one(treasury)
    assert one.until == failed_at + timedelta(minutes=1)
    async with treasury.db.transaction() as conn:
        await ask(conn, one.uncollected_id, None, treasury.clock.now())
    await treasury.work(engine, rounds=20, until="enough")
    assert await treasury.on_chain(address, "USDX") == 0


async def test_a_collection_that_failed_is_tried_again_soon_and_who_waits_for_it_is_paid(treasury):
    """It was planned, and the chain did not take it when its turn came."""
    contract, wallet = treasury.token("USDX").contract, treasury.wallet.address
    address = await treasury.receive("USDX", 50 * ONE)
    payout_id = await treasury.pay_out("USDX", 40 * ONE, await treasury.stranger(1))
    engine = treasury.engine()
    while ("collection", "sending", None) not in await treasury.open_intents():
        await treasury.mine()
        await engine.tick()
    treasury.chain.faults.refusing = {(contract, wallet)}
    while treasury.alerts["failed"] == 0:
        await treasury.mine()
        await engine.tick()
    treasury.chain.faults.refusing = set()
    assert await reasons(treasury) == {address: "failed_lately"}
    assert (await treasury.payout(payout_id)).status == "processing"
    treasury.clock.advance(60)
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"
