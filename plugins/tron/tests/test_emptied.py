"""Transfers to a recipient that is emptied between plan and block: allowed for where the intent says so."""

from __future__ import annotations

from msgspec.structs import replace

from cambist.plugin import Intent, Plan, Units

from .local import TRX, Net, fee_of, step_of
from .test_energy import STAKE, lent
from .test_planner import BANDWIDTH_SUN, ENERGY_SUN, PRICES, SOLID_AFTER, TOKEN_BYTES

LIKELY = PRICES.limit_for(64_285, 49_635)
DEAREST = PRICES.limit_for(130_285, 100_635)


async def exchange(net: Net, units: int = 100) -> str:
    """Return an address that has held USDT for long, and can send it away."""
    address = await net.holder(units, sun=100 * TRX)
    await net.node.mine(SOLID_AFTER)
    return address


def payout(net: Net, to_address: str, units: int = 5) -> Intent:
    """Return what a main wallet sends: what is left over stays with it."""
    return replace(net.intent(net.rich, to_address, units, "USDT"), recipient_may_empty=True)


async def empty(net: Net, address: str) -> None:
    """Have somebody send away all that they hold, in a block."""
    await net.usdt.transfer(net.customer, Units(await net.usdt.balance_of(address)), sender=address)
    await net.node.mine()
    assert await net.usdt.balance_of(address) == 0


async def state_once_emptied(net: Net, plan: Plan) -> tuple[str, int]:
    """Sign what was planned, have its recipient emptied, and only then send it; return its state and what it cost."""
    step = step_of(plan)
    txs, _ = await net.signed(step)
    await empty(net, step.to_address)
    assert [said.state for said in await net.chain.broadcast(txs)] == ["accepted"]
    await net.node.mine()
    (status,) = await net.chain.transactions([tx.tx_id for tx in txs])
    return status.state, status.fee or 0


async def test_who_is_emptied_before_the_block_is_paid_all_the_same(net: Net) -> None:
    """At the price of a first balance, which the plan has said; without the word it fails, and is paid for."""
    careful, lean = payout(net, await exchange(net)), net.intent(net.rich, await exchange(net), 5, "USDT")
    (plan, other) = await net.chain.plan([careful, lean], sponsor=None)
    assert (fee_of(plan).limit, fee_of(other).limit) == (DEAREST, LIKELY)
    state, fee = await state_once_emptied(net, plan)
    assert (state, await net.usdt.balance_of(careful.to_address)) == ("succeeded", 5)
    assert 130_285 * ENERGY_SUN <= fee <= fee_of(plan).cost_max
    state, fee = await state_once_emptied(net, other)
    assert (state, await net.usdt.balance_of(lean.to_address)) == ("reverted", 0)
    assert fee > 0


async def test_what_is_allowed_beyond_what_it_takes_is_not_burned(net: Net) -> None:
    """Nor has it to be held by who covers it: it must be held, and stays."""
    (step,) = await net.planned(payout(net, await exchange(net)))
    assert step.fee.limit == DEAREST
    before = net.node.balance(net.rich)
    (status,) = await net.send(step)
    assert (status.state, status.fee) == ("succeeded", 64_285 * ENERGY_SUN)
    assert before - net.node.balance(net.rich) == status.fee


async def test_many_of_one_wallet_are_asked_for_once_more(net: Net) -> None:
    """What a first balance takes is the token's, whoever gets it."""
    recipients = [await exchange(net) for _ in range(3)]
    async with net.node.face() as face, net.connected(face.url) as chain:
        await chain.plan([replace(payout(net, one), recipient_may_empty=False) for one in recipients], sponsor=None)
        before = face.calls.copy()
        plans = await chain.plan([payout(net, one) for one in recipients], sponsor=None)
        again = face.calls - before
    assert [fee_of(plan).limit for plan in plans] == [DEAREST] * 3
    assert again["wallet/triggerconstantcontract"] == before["wallet/triggerconstantcontract"] + 1


async def test_a_stake_is_lent_for_it_where_there_is_enough_for_all(net: Net) -> None:
    """Then nothing is burned, whether the recipient was emptied or not; and the first ones take no other's loan."""
    await net.node.stake(net.sponsor, STAKE)
    recipients = [await exchange(net) for _ in range(6)]
    enough = await net.chain.plan([payout(net, one) for one in recipients[:2]], sponsor=net.sponsor)
    assert [(fee_of(plan).limit, fee_of(plan).covered) for plan in enough] == [(DEAREST, DEAREST)] * 2
    short = await net.chain.plan([payout(net, one) for one in recipients[:5]], sponsor=net.sponsor)
    assert [plan.loan > 0 for plan in short] == [True] * 5
    assert [(fee_of(plan).limit, fee_of(plan).covered) for plan in short] == [(LIKELY, LIKELY)] * 5
    assert [fee_of(plan).spare for plan in (*enough, *short)] == [0] * 2 + [DEAREST - LIKELY] * 5
    plan = await lent(net, payout(net, recipients[5]))
    assert (plan.loan, fee_of(plan).limit, fee_of(plan).covered) == (0, DEAREST, DEAREST)
    state, fee = await state_once_emptied(net, plan)
    assert (state, await net.usdt.balance_of(recipients[5])) == ("succeeded", 5)
    assert fee <= TOKEN_BYTES * BANDWIDTH_SUN


async def test_energy_of_its_own_is_set_aside_for_it_where_there_is_enough_for_all(net: Net) -> None:
    """With less, each has what it takes now: none uses up what the next would have to burn for."""
    await net.node.stake(net.rich, STAKE)
    recipients = [await exchange(net) for _ in range(5)]
    wanted = [payout(net, one) for one in recipients]
    enough = await net.chain.plan(wanted[:2], sponsor=None)
    assert [(fee_of(plan).limit, fee_of(plan).covered) for plan in enough] == [(DEAREST, DEAREST)] * 2
    short = await net.chain.plan(wanted, sponsor=None)
    assert [(fee_of(plan).limit, fee_of(plan).covered) for plan in short] == [(LIKELY, LIKELY)] * 5
    assert [fee_of(plan).spare for plan in (*enough, *short)] == [0] * 2 + [DEAREST - LIKELY] * 5
    lean = await net.chain.plan([replace(one, recipient_may_empty=False) for one in wanted], sponsor=None)
    assert [fee_of(plan).spare for plan in lean] == [0] * 5


async def test_what_is_refused_has_nothing_set_aside(net: Net) -> None:
    await net.node.stake(net.sponsor, STAKE)
    recipients = [await exchange(net) for _ in range(5)]
    for one in recipients[2:]:
        await net.usdt.refuse(one)
    plans = await net.chain.plan([payout(net, one) for one in recipients], sponsor=net.sponsor)
    assert [plan.refused is not None for plan in plans] == [False, False, True, True, True]
    assert [(fee_of(plan).limit, fee_of(plan).covered) for plan in plans[:2]] == [(DEAREST, DEAREST)] * 2


async def test_who_gets_no_loan_is_allowed_to_burn_for_it(net: Net) -> None:
    """A stake that lends to some leaves the others as they are without one."""
    await net.node.stake(net.sponsor, 7_000 * TRX)
    recipients = [await exchange(net) for _ in range(2)]
    first, second = await net.chain.plan([payout(net, one) for one in recipients], sponsor=net.sponsor)
    assert (first.loan > 0, fee_of(first).limit, fee_of(first).covered) == (True, LIKELY, LIKELY)
    assert (second.loan, fee_of(second).limit, fee_of(second).covered) == (0, DEAREST, 0)
    state, _ = await state_once_emptied(net, second)
    assert state == "succeeded"


async def test_no_more_is_allowed_than_the_operator_does(net: Net) -> None:
    """What was within the ceiling goes on, with as much as that leaves; what never was says so alone."""
    holder, fresh = await exchange(net), net.nobody()
    wanted = [payout(net, holder), payout(net, fresh), payout(net, holder, 6)]
    async with net.connected(fee_ceiling_trx="10") as chain:
        plans = await chain.plan(wanted, sponsor=None)
    first, dear, last = plans
    assert 10 * TRX - ENERGY_SUN < fee_of(first).cost_max <= 10 * TRX
    assert 10 * TRX - ENERGY_SUN < fee_of(last).cost_max <= 10 * TRX
    assert (dear.step, dear.refused) == (None, None)
    assert "fee_ceiling_trx allows 10000000" in (dear.above_ceiling or "")
    async with net.connected(fee_ceiling_trx="6") as chain:
        assert all(plan.above_ceiling for plan in await chain.plan(wanted, sponsor=None))


async def test_what_is_too_dear_uses_nothing_of_what_the_next_could(net: Net) -> None:
    """It is not sent: neither the bandwidth of the day nor energy is gone for it."""
    fresh, holder = net.nobody(), await exchange(net)
    await net.node.stake(net.rich, 3_000 * TRX)
    async with net.connected(fee_ceiling_trx="9") as chain:
        wanted = [net.intent(net.rich, fresh, 5, "USDT"), net.intent(net.rich, holder, 5, "USDT")]
        dear, good = await chain.plan(wanted, sponsor=None)
        (alone,) = await chain.plan(wanted[1:], sponsor=None)
    assert dear.above_ceiling is not None
    assert good == alone
    assert fee_of(good).covered > 0
