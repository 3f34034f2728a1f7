"""Where energy comes from: what is cheapest is taken, and a loan makes a transfer free for who holds nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from aiohttp import web
from msgspec import structs

from cambist.plugin import Intent, Plan, Units
from cambist_tron.addresses import hex_of
from cambist_tron.config import EnergyMode
from cambist_tron.energy import LENDING_BYTES, Lender, Need, burning, cheapest, lending
from cambist_tron.replies import MOMENT_MS_MAX, Account, Leaving, Resources
from cambist_tron.resources import Spendable, stake_of
from cambist_tron.simulation import TRIES
from cambist_tron_node.faults import Face

from .local import TRX, Net, fee_of, step_of
from .test_planner import PRICES

STAKE = 40_000 * TRX


def need(lacking: int, *, sun: int = 0, active: bool = True, extra: int = 0) -> Need:
    account = Account(address="41", balance=sun) if active else Account()
    return Need(sender=Spendable(account, Resources(), 600), lacking=lacking, extra=extra, prices=PRICES)


def lender(sun: int) -> Lender:
    return Lender(sun, 180_000_000_000, 16_307_698_552)


def test_burning_costs_the_energy_and_its_bringing() -> None:
    """Which is a transfer, or an activation, or nothing where the coin is there."""
    assert burning(need(50_000)).cost == 5_000_000 + 280_000
    assert burning(need(50_000, active=False)).cost == 5_000_000 + 1_100_000
    assert burning(need(50_000, sun=5_000_000)).cost == 5_000_000
    assert burning(need(50_000, sun=5_000_000, extra=1)).sponsoring == 280_000


def test_lending_costs_two_transactions() -> None:
    """And making the sender known; it takes a stake in whole TRX that gives the energy, and is possible or is not."""
    offer = lending(need(50_000, sun=1), lender(STAKE))
    assert offer is not None
    assert offer.cost == offer.sponsoring == LENDING_BYTES * 1_000
    assert offer.loan % TRX == 0
    assert offer.loan * 180_000_000_000 // 16_307_698_552 // TRX >= 50_000
    inactive = lending(need(50_000, active=False), lender(STAKE))
    assert inactive is not None
    assert inactive.cost == offer.cost + 1_100_000
    assert lending(need(50_000), lender(offer.loan)) is not None
    assert lending(need(50_000), lender(offer.loan - 1)) is None
    assert lending(need(50_000), Lender(STAKE, 0, 0)) is None


@pytest.mark.parametrize(
    "mode, lacking, lends",
    [("auto", 50_000, True), ("auto", 2_000, False), ("burn", 50_000, False), ("delegate", 2_000, True)],
)
def test_the_cheapest_is_taken_unless_the_operator_chose(mode: EnergyMode, lacking: int, lends: bool) -> None:
    """What little energy costs less than two transactions is burned."""
    source = lender(STAKE)
    offer = cheapest(mode, source, need(lacking, sun=TRX))
    assert (offer.loan > 0) == lends
    assert source.left == STAKE - offer.loan
    assert cheapest(mode, None, need(lacking)).loan == 0
    assert cheapest(mode, lender(0), need(lacking)).loan == 0


async def lent(net: Net, intent: Intent) -> Plan:
    """Bring what the plan needs, as the gateway does; return the plan after it."""
    (plan,) = await net.chain.plan([intent], sponsor=net.sponsor)
    needed = step_of(plan).native_needed - net.node.balance(intent.source)
    if needed > 0:
        await net.node.send_trx(intent.source, needed)
        await net.node.mine()
    await net.act("lend", intent.source, plan.loan)
    (plan,) = await net.chain.plan([intent], sponsor=net.sponsor)
    return plan


async def test_who_holds_only_tokens_sends_them_for_nothing(net: Net) -> None:
    """One sun makes it known, a loan pays the energy, every new account has the bandwidth; the stake comes back."""
    await net.node.stake(net.sponsor, STAKE)
    poor = await net.holder(100)
    intent = net.intent(poor, net.rich, 95, "USDT")
    (plan,) = await net.chain.plan([intent], sponsor=net.sponsor)
    assert plan.loan > 0
    assert (fee_of(plan).cost_max, step_of(plan).native_needed) == (0, 1)
    loan, plan = plan.loan, await lent(net, intent)
    assert (plan.loan, plan.sponsoring, fee_of(plan).covered) == (0, 0, fee_of(plan).limit)
    (status,) = await net.send(step_of(plan))
    assert (status.state, status.fee, net.node.balance(poor)) == ("succeeded", 0, 1)
    assert await net.usdt.balance_of(poor) == 5

    await net.act("reclaim", poor, loan)
    stake = await net.chain.stake(net.sponsor)
    assert (stake.staked, stake.lent) == (STAKE, 0)
    assert 0 < STAKE - stake.lendable < loan


async def test_without_a_loan_it_is_burned(net: Net) -> None:
    """No sponsor, no stake, too little of it, or an operator who wants none."""
    intent = net.intent(net.rich, net.customer, 5, "USDT")
    for sponsor in (None, net.sponsor):
        (plan,) = await net.chain.plan([intent], sponsor=sponsor)
        assert (plan.loan, fee_of(plan).covered) == (0, 0)
    await net.node.stake(net.sponsor, 100 * TRX)
    (plan,) = await net.chain.plan([intent], sponsor=net.sponsor)
    assert plan.loan == 0
    await net.node.stake(net.sponsor, STAKE)
    async with net.connected(energy="burn") as chain:
        assert (await chain.plan([intent], sponsor=net.sponsor))[0].loan == 0
    async with net.connected(energy="delegate") as chain:
        assert (await chain.plan([intent], sponsor=net.sponsor))[0].loan > 0


async def test_no_stake_is_promised_twice(net: Net) -> None:
    """Ten at once are lent what there is, and the others burn."""
    await net.node.stake(net.sponsor, STAKE)
    intents = [net.intent(net.rich, net.nobody(), 5, "USDT") for _ in range(10)]
    plans = await net.chain.plan(intents, sponsor=net.sponsor)
    assert 0 < sum(plan.loan > 0 for plan in plans) < 10
    assert sum(plan.loan for plan in plans) <= (await net.chain.stake(net.sponsor)).lendable
    assert all(fee_of(plan).covered == (fee_of(plan).limit if plan.loan else 0) for plan in plans)


async def test_a_stake_of_its_own_covers_part_of_a_fee(net: Net) -> None:
    """It is used up first, and only the rest is burned: what was said to the sun is what it costs."""
    await net.node.stake(net.rich, 3_000 * TRX)
    (step,) = await net.planned(net.intent(net.rich, net.nobody(), 5, "USDT"))
    assert 0 < step.fee.covered < step.fee.limit
    (status,) = await net.send(step)
    assert status.state == "succeeded"
    assert status.fee is not None
    assert 0 < status.fee <= step.fee.cost_max
    assert step.fee.cost_max - status.fee <= (step.fee.limit - 130_285) * PRICES.energy + 1_000


async def test_nearly_enough_energy_is_enough(net: Net) -> None:
    """Where all that was measured is covered, the limit is what is there, and nothing can be burned."""
    await net.usdt.mint(net.customer, Units(1))
    await net.node.mine(20)  # until that is solid
    await net.node.stake(net.rich, 5_950 * TRX)
    (step,) = await net.planned(net.intent(net.rich, net.customer, 5, "USDT"))
    assert 64_285 < step.fee.limit == step.fee.covered < PRICES.limit_for(64_285, 49_635)
    (status,) = await net.send(step)
    assert status.state == "succeeded"
    assert status.fee == step.fee.extra


async def test_the_sponsors_own_transfers_take_no_loan(net: Net) -> None:
    """It uses what it has itself."""
    await net.usdt.mint(net.sponsor, Units(100))
    await net.node.stake(net.sponsor, STAKE)
    (plan,) = await net.chain.plan([net.intent(net.sponsor, net.rich, 5, "USDT")], sponsor=net.sponsor)
    assert (plan.loan, plan.sponsoring) == (0, 0)
    assert fee_of(plan).covered == fee_of(plan).limit


async def test_what_cannot_be_done_with_a_stake_is_refused(net: Net) -> None:
    """Each with the reason, before anything is sent."""
    await net.node.stake(net.sponsor, 100 * TRX)
    refused = [
        (net.intent(net.sponsor, net.nobody(), 5 * TRX, action="lend"), "not activated"),
        (net.intent(net.sponsor, net.usdt.address, 5 * TRX, action="lend"), "is a contract"),
        (net.intent(net.sponsor, net.sponsor, 5 * TRX, action="lend"), "nobody lends to itself"),
        (net.intent(net.sponsor, net.rich, TRX - 1, action="lend"), "less than 1 TRX"),
        (net.intent(net.sponsor, net.rich, 101 * TRX, action="lend"), "can be lent now"),
        (net.intent(net.nobody(), net.rich, 5 * TRX, action="lend"), "not activated"),
        (net.intent(net.sponsor, net.rich, 5 * TRX, action="reclaim"), "on loan"),
        (net.intent(net.sponsor, net.sponsor, TRX - 1, action="stake"), "less than 1 TRX"),
        (net.intent(net.sponsor, net.sponsor, 101 * TRX, action="unstake"), "to be taken out"),
        (net.intent(net.sponsor, net.sponsor, 5 * TRX, action="withdraw"), "waited long enough"),
    ]
    plans = await net.chain.plan([intent for intent, _ in refused], sponsor=net.sponsor)
    for plan, (intent, why) in zip(plans, refused, strict=True):
        assert plan.step is None, intent
        assert why in (plan.refused or "")


class Young(Face):
    """An address of several nodes, of which some have not heard yet of an account, or of what somebody has staked."""

    def __init__(self, net: Net, borrower: str, *, times: int) -> None:
        super().__init__(net.node.chain)
        self._left = {("wallet/getaccount", hex_of(borrower)): times}
        self._left["wallet/getcandelegatedmaxsize", hex_of(net.sponsor)] = times

    async def before(self, path: str, body: dict[str, Any], request: web.Request) -> web.StreamResponse | None:
        about = path, body.get("address") or body.get("owner_address") or ""
        if self._left.get(about, 0):
            self._left[about] -= 1
            return web.json_response({})
        return await super().before(path, body, request)


async def test_a_loan_is_not_refused_for_what_a_node_has_not_heard_of_yet(net: Net) -> None:
    """Else nothing is lent for a while, and TRX are burned. What no node knows of is refused."""
    await net.node.stake(net.sponsor, 100 * TRX)
    loan = net.intent(net.sponsor, net.rich, 5 * TRX, action="lend")
    for times, refused in ((1, False), (TRIES, False), (TRIES + 1, True)):
        async with Young(net, net.rich, times=times) as face, net.connected(face.url) as chain:
            (plan,) = await chain.plan([loan], sponsor=net.sponsor)
            assert (plan.refused is not None) == refused


async def test_what_has_waited_is_withdrawn_whole_and_before_more_is_unstaked(net: Net) -> None:
    """The network pays all of it out at either, whatever amount is asked for, so nothing else is planned."""
    chain = net.node.chain
    chain.parameters = chain.state.parameters = structs.replace(chain.parameters, unstake_days=0)
    await net.node.stake(net.sponsor, 100 * TRX)
    await net.act("unstake", net.sponsor, 40 * TRX)
    wanted = [
        net.intent(net.sponsor, net.sponsor, 10 * TRX, action="unstake"),
        net.intent(net.sponsor, net.sponsor, 39 * TRX, action="withdraw"),
        net.intent(net.sponsor, net.sponsor, 40 * TRX, action="withdraw"),
    ]
    early, part, whole = await net.chain.plan(wanted, sponsor=net.sponsor)
    assert "can be withdrawn, which comes first" in (early.refused or "")
    assert "all that can be withdrawn, which is 40000000 sun" in (part.refused or "")
    assert whole.refused is None


def test_a_stake_says_when_the_last_of_what_leaves_can_be_withdrawn() -> None:
    """And nothing of it where nothing leaves, or all that did has waited."""
    parts = (Leaving(5 * TRX, 1_000), Leaving(3 * TRX, 2_500), Leaving(2 * TRX, 4_250))
    account = Account(address="41", unfrozen_v2=parts)
    stake = stake_of(account, 0, 2_499)
    assert (stake.leaving, stake.withdrawable) == (5 * TRX, 5 * TRX)
    assert stake.free_at == datetime(1970, 1, 1, 0, 0, 4, 250_000, tzinfo=UTC)
    ripe = stake_of(account, 0, 4_250)
    assert (ripe.leaving, ripe.withdrawable, ripe.free_at) == (0, 10 * TRX, None)
    assert stake_of(Account(address="41"), 0, 0).free_at is None


@pytest.mark.parametrize("moment", [-1, MOMENT_MS_MAX + 1])
def test_a_moment_that_no_date_can_tell_is_no_answer(moment: int) -> None:
    assert stake_of(Account(address="41", unfrozen_v2=(Leaving(1, MOMENT_MS_MAX),)), 0, 0).free_at is not None
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"unfreeze_amount": 1, "unfreeze_expire_time": moment}, Leaving)


async def test_earlier_plans_leave_less_to_later_ones(net: Net) -> None:
    """Of what can be lent, asked back, taken out."""
    await net.node.stake(net.sponsor, 100 * TRX)
    await net.act("lend", net.rich, 40 * TRX)
    wanted = [
        net.intent(net.sponsor, net.customer, 30 * TRX, action="lend"),
        net.intent(net.sponsor, net.customer, 31 * TRX, action="lend"),
        net.intent(net.sponsor, net.sponsor, 20 * TRX, action="unstake"),
        net.intent(net.sponsor, net.sponsor, 11 * TRX, action="unstake"),
        net.intent(net.sponsor, net.rich, 25 * TRX, action="reclaim"),
        net.intent(net.sponsor, net.rich, 16 * TRX, action="reclaim"),
        net.intent(net.sponsor, net.rich, 15 * TRX, action="reclaim"),
    ]
    plans = await net.chain.plan(wanted, sponsor=net.sponsor)
    assert [plan.refused is None for plan in plans] == [True, False, True, False, True, False, True]
    statuses = await net.send(*(step_of(plan) for plan in plans if plan.step is not None))
    assert [status.state for status in statuses] == ["succeeded"] * 4
    stake = await net.chain.stake(net.sponsor)
    assert (stake.staked, stake.lent, stake.leaving) == (80 * TRX, 30 * TRX, 20 * TRX)
