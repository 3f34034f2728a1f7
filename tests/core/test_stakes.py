"""The gas station's stake: asked for by the operator, lent by the engine, and told apart from its coin in the books."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cambist.plugin import Plan
from cambist.services.errors import ConflictError, InvalidError, UnavailableError
from cambist.services.listing import Part
from cambist.services.sending.gas.gas_stations import LowMarks, check
from cambist.services.sending.gas.stakes import list_stake_requests, request_stake
from tests.support.dated_treasury import RULES, dated_treasury
from tests.support.fragile import KilledError, Life, fragile

pytestmark = pytest.mark.slow

AMOUNT = 5_000_000
TRANSFER_STAKE = 60_000 * RULES.stake_per_work
"""The stake that covers one transfer of a token."""


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with dated_treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open()
        yield treasury
        await treasury.check_books()


@pytest.fixture
async def lender(treasury):
    """Have a stake for ten transfers."""
    await change(treasury, "stake", 10 * TRANSFER_STAKE)
    await treasury.work(treasury.engine())
    return treasury


async def change(treasury, action: str, units: int | None) -> str:
    """Ask for a change as the operator does, once the worker has looked at the gas station."""
    await check(treasury.db, treasury.chain, LowMarks(), treasury.clock.now())
    async with treasury.db.transaction() as conn:
        made = await request_stake(conn, treasury.ids, treasury.info, action, units, treasury.clock.now())
        return made.resource


async def stake(treasury):
    return await treasury.chain.stake(treasury.station)


async def test_coin_is_locked_unlocked_and_withdrawn_and_the_books_follow(lender):
    with pytest.raises(InvalidError, match="there is"):
        await change(lender, "stake", 10**30)
    await change(lender, "unstake", TRANSFER_STAKE)
    with pytest.raises(ConflictError):
        await change(lender, "unstake", TRANSFER_STAKE)
    await lender.work(lender.engine())
    await lender.check_books()
    assert (await stake(lender)).leaving == TRANSFER_STAKE
    lender.chain.mine(time=lender.chain.seen_time() + RULES.unstaking_s + 1)
    await lender.mine(4)
    await change(lender, "withdraw", None)
    await lender.work(lender.engine())
    held = await stake(lender)
    assert (held.staked, held.leaving, held.withdrawable) == (9 * TRANSFER_STAKE, 0, 0)
    async with lender.db.transaction() as conn:
        requests = await list_stake_requests(conn, "memory", Part())
    assert [(one.action, one.state) for one in requests.items] == [
        ("withdraw", "done"),
        ("unstake", "done"),
        ("stake", "done"),
    ]


async def test_nothing_can_be_asked_of_a_station_that_nobody_has_seen(treasury):
    async with treasury.db.transaction() as conn:
        with pytest.raises(UnavailableError):
            await request_stake(conn, treasury.ids, treasury.info, "stake", 1, treasury.clock.now())


async def test_a_stake_of_before_the_books_began_is_part_of_their_opening(db, clock, ids, tmp_path):
    async with dated_treasury(db, clock, ids, tmp_path) as treasury:
        treasury.chain.endow(treasury.station, 3 * TRANSFER_STAKE)
        await treasury.open()
        await treasury.check_books()
        assert (await stake(treasury)).staked == 3 * TRANSFER_STAKE


async def test_a_loan_takes_nothing_of_the_stations_coin(db, clock, ids, tmp_path):
    """It may be many times what the station holds beside its stake."""
    dear = replace(RULES, stake_per_work=10**13)
    stake_units = 60_000 * dear.stake_per_work
    async with dated_treasury(db, clock, ids, tmp_path, rules=dear) as treasury:
        await treasury.open(station=10 * stake_units + stake_units // 2)
        await change(treasury, "stake", 10 * stake_units)
        await treasury.work(treasury.engine())
        await treasury.receive("USDX", AMOUNT)
        to_address = await treasury.stranger(1)
        await treasury.pay_out("USDX", AMOUNT, to_address)
        await treasury.work(treasury.engine())
        assert await treasury.on_chain(to_address, "USDX") == AMOUNT
        assert set(await treasury.intents("loan")) == {("loan", "done")}
        await treasury.check_books()


async def test_a_loan_that_fails_is_not_asked_for_again_at_once_and_the_fee_is_burned(lender, monkeypatch):
    planned = lender.chain.plan

    async def without_loans(intents, **more):
        plans = await planned(intents, **more)
        return [
            Plan(refused="the lender is closed") if intent.action == "lend" else plan
            for intent, plan in zip(intents, plans, strict=True)
        ]

    monkeypatch.setattr(lender.chain, "plan", without_loans)
    await lender.receive("USDX", AMOUNT)
    to_address = await lender.stranger(1)
    await lender.pay_out("USDX", AMOUNT, to_address)
    await lender.work(lender.engine())
    assert await lender.on_chain(to_address, "USDX") == AMOUNT
    loans = await lender.intents("loan")
    assert loans == [("loan", "failed")] * len(loans)
    assert 1 <= len(loans) <= 2


async def test_death_at_each_moment_of_lending_is_survived(lender):
    engine = lender.engine()
    await lender.receive("USDX", 100 * AMOUNT)
    await lender.pay_out("USDX", AMOUNT, await lender.stranger(999))
    await lender.work(engine)
    moment, outlived = 0, 0
    while outlived < 3:
        moment += 3
        to_address = await lender.stranger(moment)
        await lender.pay_out("USDX", AMOUNT, to_address)
        try:
            for _ in range(6):
                await fragile(engine, Life(moment)).tick()
                await lender.mine()
            outlived += 1
        except KilledError:
            await lender.outlive()
            lender.clock.advance(120)
        await lender.work(lender.engine())
        assert await lender.on_chain(to_address, "USDX") == AMOUNT, moment
    for _ in range(3):
        await lender.work(lender.engine())
    assert (await stake(lender)).lent == 0
