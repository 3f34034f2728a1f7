"""Plans on a local node: what a transfer costs is what the plan said, and what cannot be is refused."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cambist.plugin import FeeAboveCeilingError, Intent, Units
from cambist_tron.addresses import ZERO_ADDRESS, spell
from cambist_tron.fees import Prices
from cambist_tron_node import NoMachine, Parameters, TronNode

from .local import TRX, Connect, Net, fee_of, step_of

BANDWIDTH_SUN = 1_000
ZERO_NEIGHBOUR = spell(bytes(19) + b"\1")
ENERGY_SUN = 100
TOKEN_BYTES = 345
SOLID_AFTER = 20

PRICES = Prices(
    energy=100, bandwidth=1_000, activation=1_100_000, activation_bandwidth=100_000, activation_rate=1,
    factor_max=34_000, factor_growth=2_000, free_bandwidth=600,
)  # fmt: skip


async def test_coin_and_tokens_arrive_and_cost_what_was_planned(net: Net) -> None:
    """Of 600 bytes of free bandwidth, coin takes 265 twice; what is then left is too little for a token's 345."""
    to_address = net.nobody()
    intents = [
        net.intent(net.rich, net.customer, 5),
        net.intent(net.rich, to_address, 6, "USDT"),
        net.intent(net.rich, to_address, 7, "USDX"),
        net.intent(net.rich, net.customer, 8),
    ]
    steps = await net.planned(*intents)
    assert [step.fee.extra for step in steps] == [0, TOKEN_BYTES * BANDWIDTH_SUN, TOKEN_BYTES * BANDWIDTH_SUN, 0]
    assert [step.fee.covered for step in steps] == [265, 0, 0, 265]
    statuses = await net.send(*steps)
    assert [status.state for status in statuses] == ["succeeded"] * 4
    paid = [status.fee or 0 for status in statuses]
    assert (paid[0], paid[3]) == (0, 0)
    assert paid[1] == 130_285 * ENERGY_SUN + TOKEN_BYTES * BANDWIDTH_SUN
    assert all(fee <= step.fee.cost_max for fee, step in zip(paid, steps, strict=True))
    assert await net.usdt.balance_of(to_address) == 6
    assert await net.usdx.balance_of(to_address) == 7


async def test_a_limit_allows_for_what_may_grow_and_no_more(net: Net) -> None:
    """A twentieth above what was measured where the factor is at its highest: what is left over lies at the sender."""
    first, again = net.intent(net.rich, net.nobody(), 5, "USDT"), net.intent(net.rich, net.rich, 5, "USDT")
    await net.usdt.mint(net.customer, Units(1))
    await net.node.mine(SOLID_AFTER)
    again = replace(again, to_address=net.customer)
    assert [fee_of(plan).limit for plan in await net.chain.plan([first, again], sponsor=None)] == [
        PRICES.limit_for(130_285, 100_635),
        PRICES.limit_for(64_285, 49_635),
    ]


@pytest.mark.parametrize("symbol", ["USDT", "USDX"])
async def test_a_first_balance_that_is_not_solid_is_not_counted_on(net: Net, symbol: str) -> None:
    """What is to bring the recipient its first tokens waits, is forgotten, and is mined after the next transfer."""
    recipient = net.nobody()
    (first,) = await net.planned(net.intent(net.rich, recipient, 5, symbol))
    txs, _ = await net.signed(first)
    assert [said.state for said in await net.chain.broadcast(txs)] == ["accepted"]
    (second,) = await net.planned(net.intent(net.rich, recipient, 6, symbol))
    assert second.fee.limit == first.fee.limit
    await net.node.forget_pool()
    (status,) = await net.send(second)
    assert status.state == "succeeded"
    (status,) = await net.send(first)
    assert status.state == "succeeded"
    await net.node.mine(SOLID_AFTER)
    (third,) = await net.planned(net.intent(net.rich, recipient, 1, symbol))
    assert third.fee.limit < second.fee.limit * 3 // 4, "from then on it is cheap"


@pytest.mark.parametrize(
    "used, penalty, limit",
    [
        (100_000, 0, 125_001),  # no factor yet: it may come to 0.2 with the next period
        (120_000, 20_000, 150_001),
        (440_000, 340_000, 462_001),  # the highest already
        (420_000, 320_000, 461_001),  # nearly: it ends at 4.4 times the base
        (0, 0, 1),
    ],
)
def test_the_factor_grows_by_a_fifth_up_to_its_highest(used: int, penalty: int, limit: int) -> None:
    """From one period to the next, of which one may begin between plan and block."""
    assert PRICES.limit_for(used, penalty) == limit


async def test_new_accounts_cost_their_price(net: Net) -> None:
    """Whoever sends coin there pays 1.1 TRX instead of bandwidth; 1 TRX with staked bandwidth. Tokens make none."""
    to_address = net.nobody()
    (step,) = await net.planned(net.intent(net.rich, to_address, 5))
    assert (step.fee.cost_max, step.fee.extra) == (1_100_000, 1_100_000)
    (status,) = await net.send(step)
    assert status.fee == 1_100_000
    (step,) = await net.planned(net.intent(net.rich, to_address, 5))
    assert step.fee.extra == 0
    await net.node.stake(net.customer, 100_000 * TRX, resource=0)
    (step,) = await net.planned(net.intent(net.customer, net.nobody(), 5))
    (status,) = await net.send(step)
    assert status.fee == step.fee.cost_max == 1_000_000


async def test_who_is_not_activated_keeps_one_sun(net: Net) -> None:
    """And sends tokens once it came, with the bandwidth that every new account has."""
    poor = await net.holder(100)
    (plan,) = await net.chain.plan([net.intent(poor, net.rich, 100, "USDT")], sponsor=net.sponsor)
    assert (fee_of(plan).reserve, fee_of(plan).extra, plan.sponsoring) == (1, 0, 1_100_000)
    await net.node.send_trx(poor, step_of(plan).native_needed, sender=net.sponsor)
    await net.node.mine()
    (status,) = await net.send(step_of(plan))
    assert status.state == "succeeded"
    assert net.node.balance(poor) == step_of(plan).native_needed - (status.fee or 0) >= 1


async def test_money_that_has_yet_to_come_is_no_reason_to_refuse(net: Net) -> None:
    """Of a token there is none of, there is too little of, or that refuses transfers of nothing."""
    some = await net.holder(40)
    intents = [
        net.intent(some, net.rich, 100, "USDT"),
        net.intent(net.nobody(), net.rich, 100, "USDT"),
        net.intent(net.nobody(), net.customer, 100, "USDX"),
        net.intent(net.nobody(), net.rich, 100),
    ]
    plans = await net.chain.plan(intents, sponsor=None)
    assert [plan.refused for plan in plans] == [None] * 4
    await net.usdt.mint(some, Units(100))
    await net.node.send_trx(some, fee_of(plans[0]).cost_max)
    await net.node.mine()
    (status,) = await net.send(step_of(plans[0]))
    assert status.state == "succeeded"


async def test_what_the_token_refuses_is_refused(net: Net) -> None:
    """With its reason, beside others that are not."""
    listed = await net.holder(100)
    await net.usdt.refuse(listed)
    await net.node.mine()
    intents = [net.intent(source, to_address, 5, "USDT") for source, to_address in (
        (net.rich, net.customer), (listed, net.rich), (net.rich, net.nobody()),
    )]  # fmt: skip
    good, bad, other = await net.chain.plan(intents, sponsor=net.sponsor)
    assert bad.step is None
    assert bad.refused is not None
    assert bad.refused.startswith(f"the token USDT refuses the transfer to {net.rich}: ")
    assert (good.refused, other.refused) == (None, None)


async def test_what_would_be_lost_is_refused(net: Net) -> None:
    """Sent to a token's contract, to nobody, to oneself, to code; or of a token that is not there; or too much."""
    coin, usdt = net.intent(net.rich, net.customer, 5), net.intent(net.rich, net.customer, 5, "USDT")
    ghost = replace(usdt, token=replace(usdt.token, contract=net.nobody()))
    wrong = [
        *(replace(one, to_address=net.usdx.address) for one in (coin, usdt)),
        *(replace(one, to_address=ZERO_ADDRESS) for one in (coin, usdt)),
        *(replace(one, to_address=net.rich) for one in (coin, usdt)),
        replace(coin, amount=Units(2**63)),
        replace(usdt, amount=Units(2**256)),
        ghost,
    ]
    plans = await net.chain.plan([*wrong, coin], sponsor=None)
    assert [(bool(plan.refused), plan.step is None) for plan in plans] == [(True, True)] * len(wrong) + [(False, False)]
    unlisted = replace(coin, to_address=(await net.node.deploy_token("THIRD", 6)).address)
    (plan,) = await net.chain.plan([unlisted], sponsor=None)
    assert plan.refused == f"{unlisted.to_address} is a contract, and contracts take no plain transfer of TRX"


async def test_several_plans_share_what_is_free(net: Net) -> None:
    """600 bytes a day: two transfers of coin, or one of a token; what is under way already leaves none for sure."""
    coin = [net.intent(net.rich, net.customer, 5) for _ in range(3)]
    assert [fee_of(plan).cost_max for plan in await net.chain.plan(coin, sponsor=None)] == [0, 0, 265_000]
    tokens = [net.intent(net.rich, net.customer, 5, "USDX") for _ in range(2)]
    assert [fee_of(plan).extra > 0 for plan in await net.chain.plan(tokens, sponsor=None)] == [False, True]
    busy = await net.chain.plan(coin, sponsor=None, promised={net.rich: 0})
    assert [fee_of(plan).cost_max for plan in busy] == [265_000] * 3


async def test_a_price_above_the_operators_ceiling_is_an_error(net: Net) -> None:
    """Of tokens alone: coin is sent all the same, also beside one. One transaction that costs more says so itself."""
    coin, usdt = net.intent(net.rich, net.customer, 5), net.intent(net.rich, net.customer, 5, "USDT")
    lost = replace(coin, to_address=ZERO_ADDRESS)
    async with net.connected(energy_price_max_sun=99) as chain:
        with pytest.raises(FeeAboveCeilingError, match="100 sun per energy"):
            await chain.plan([usdt, lost], sponsor=None)
        plain, dear, refused = await chain.plan([coin, usdt, lost], sponsor=None)
        assert fee_of(plain).cost_max == 0
        assert (dear.step, dear.refused) == (None, None)
        assert "100 sun per energy" in (dear.above_ceiling or "")
        assert (refused.above_ceiling, bool(refused.refused)) == (None, True)
    async with net.connected(fee_ceiling_trx="13") as chain:
        dear, cheap = await chain.plan([usdt, coin], sponsor=None)
        assert (dear.step, "fee_ceiling_trx" in (dear.above_ceiling or "")) == (None, True)
        assert fee_of(cheap).cost_max == 0


async def test_prices_are_the_networks(connect: Connect) -> None:
    """Not those of the main network as they were once."""
    parameters = Parameters(transaction_fee=2_000, new_account_fee=3_000_000)
    async with TronNode(machine=NoMachine(), parameters=parameters) as node, connect(node.url) as chain:
        source, to_address = node.accounts[:2]
        coin = Intent(source=source, to_address=to_address, token=chain.info.native, amount=Units(5))
        plans = await chain.plan([coin, coin, coin, replace(coin, to_address=ZERO_NEIGHBOUR)], sponsor=None)
    assert [fee_of(plan).cost_max for plan in plans] == [0, 0, 530_000, 3_100_000]
