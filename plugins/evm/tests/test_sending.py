"""Planning, signing, sending and replacing on a real node, with keys of the tests' own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from cambist.plugin import Chain, FeeAboveCeilingError, Intent, Step, Units
from cambist_evm.planner import with_margin
from cambist_evm.testing import Anvil, Contract, Wallet

Connect = Sealed = Callable[..., Any]
MakeIntent = Callable[..., Intent]

GWEI = 10**9
ETHER = 10**18


async def steps_of(chain: Chain, *intents: Intent) -> list[Step]:
    plans = await chain.plan(intents, sponsor=None)
    assert [plan.refused for plan in plans] == [None] * len(intents)
    return [plan.step for plan in plans if plan.step is not None]


async def states(chain: Chain, txs: Sequence[Any]) -> list[str]:
    return [status.state for status in await chain.transactions([tx.tx_id for tx in txs])]


async def mined_states(chain: Chain, txs: Sequence[Any]) -> list[str]:
    """Wait for a node that mines by itself, and does so a moment after it answered."""
    async with asyncio.timeout(5):
        while {"pending", "unknown"} & set(found := await states(chain, txs)):  # noqa: ASYNC110 - the node tells nobody
            await asyncio.sleep(0.005)
    return found


def picky(contract: Contract) -> dict[str, Any]:
    return {"tokens": [{"symbol": "PICK", "contract": contract.address, "decimals": 6}]}


def usdt(contract: Contract) -> dict[str, Any]:
    return {"tokens": [{"symbol": "USDT", "contract": contract.address, "decimals": 6}]}


async def test_native_coin_and_tokens_arrive_to_the_unit(
    node: Anvil, token: Contract, wallet: Wallet, connect: Connect, intent: MakeIntent, sealed: Sealed, customer: str
) -> None:
    """A plan of three, in one broadcast; each costs at most what the plan said, and exactly what the receipt says."""
    await token.send("mint", wallet.address, 1_000)
    before = int(await node.call("eth_getBalance", [wallet.address, "latest"]), 16)
    async with connect(node.url, token=token) as chain:
        native, usdx = chain.info.tokens
        steps = await steps_of(
            chain, intent(customer, 5, native), intent(customer, 600, usdx), intent(customer, 7, native)
        )
        assert [step.fee.limit for step in steps if step.token.is_native] == [21_000, 21_000]
        txs = await sealed(chain, await chain.next_sequence(wallet.address), *steps)
        assert [said.state for said in await chain.broadcast(txs)] == ["accepted"] * 3
        assert await mined_states(chain, txs) == ["succeeded"] * 3
        statuses = await chain.transactions([tx.tx_id for tx in txs])
        assert all(status.fee <= step.fee.cost_max for status, step in zip(statuses, steps, strict=True))
        found = await chain.balances([(customer, native), (customer, usdx), (wallet.address, usdx)])
        assert list(found) == [12, 600, 400]
        paid = sum(status.fee for status in statuses)
        assert await chain.balance(wallet.address, native) == before - 12 - paid
        assert await chain.next_sequence(wallet.address) == 3


async def test_a_token_that_answers_nothing_is_sent(
    node: Anvil, wallet: Wallet, connect: Connect, intent: MakeIntent, sealed: Sealed, customer: str
) -> None:
    """As USDT on Ethereum does."""
    token = await node.deploy("UsdtLike")
    await token.send("mint", wallet.address, 1_000)
    async with connect(node.url, **usdt(token)) as chain:
        txs = await sealed(chain, 0, *await steps_of(chain, intent(customer, 1_000, chain.info.tokens[1])))
        assert [said.state for said in await chain.broadcast(txs)] == ["accepted"]
        assert await mined_states(chain, txs) == ["succeeded"]
        assert await token.read("balanceOf", customer) == 1_000


async def test_a_chain_without_base_fee_gets_legacy_transactions(
    connect: Connect, sealed: Sealed, customer: str
) -> None:
    """Berlin's rules: a price alone, and replacement by a higher one."""
    wallet = Wallet("hot")
    async with Anvil(chain_id=1337, automine=False, arguments=["--hardfork", "berlin"]) as node:
        await node.call("anvil_setBalance", [wallet.address, hex(ETHER)])
        async with connect(node.url) as chain:
            native = chain.info.native
            wanted = Intent(source=wallet.address, to_address=customer, token=native, amount=Units(5))
            (step,) = await steps_of(chain, wanted)
            assert step.fee.tip is None
            (tx,) = await sealed(chain, 0, step)
            assert tx.raw[0] >= 0xC0
            assert [said.state for said in await chain.broadcast([tx])] == ["accepted"]
            fee = await chain.outbid(step)
            (better,) = await sealed(chain, 0, Step(**{**_fields(step), "fee": fee}))
            assert [said.state for said in await chain.broadcast([better])] == ["accepted"]
            await node.mine()
            assert await states(chain, [tx, better]) == ["unknown", "succeeded"]
            assert await chain.balance(customer, native) == 5


def _fields(step: Step) -> dict[str, Any]:
    return {name: getattr(step, name) for name in step.__struct_fields__}


@pytest.fixture
async def manual(node: Anvil) -> Any:
    await node.call("evm_setAutomine", [False])
    node.automine = False
    yield node
    await node.call("evm_setAutomine", [True])
    node.automine = True


async def test_a_base_fee_ten_times_as_high_is_outbid(
    manual: Anvil, connect: Connect, intent: MakeIntent, sealed: Sealed, customer: str
) -> None:
    """What waits below the price is replaced under the same sequence, and only one of the two is mined."""
    async with connect(manual.url) as chain:
        (step,) = await steps_of(chain, intent(customer, 5, chain.info.native))
        (tx,) = await sealed(chain, 0, step)
        await chain.broadcast([tx])
        await manual.call("anvil_setNextBlockBaseFeePerGas", [hex(10 * step.fee.price)])
        await manual.mine()
        assert [said.state for said in await chain.broadcast([tx])] == ["underpriced"]
        fee = await _until_the_market_is_read_again(chain, step)
        (better,) = await sealed(chain, 0, Step(**{**_fields(step), "fee": fee}))
        assert [said.state for said in await chain.broadcast([better])] == ["accepted"]
        await manual.mine()
        assert await states(chain, [tx, better]) == ["unknown", "succeeded"]
        assert await chain.balance(customer, chain.info.native) == 5


async def _until_the_market_is_read_again(chain: Any, step: Step) -> Any:
    chain._planner.market._seen = None
    return await chain.outbid(step)


async def test_nodes_say_what_became_of_a_transaction(
    manual: Anvil, connect: Connect, intent: MakeIntent, sealed: Sealed, customer: str
) -> None:
    """Known already, underpriced, its sequence used, dropped and sent again: each told for what it is."""
    async with connect(manual.url) as chain:
        step, cheaper = await steps_of(
            chain, intent(customer, 5, chain.info.native), intent(customer, 6, chain.info.native)
        )
        (tx,) = await sealed(chain, 0, step)
        (rival,) = await sealed(chain, 0, cheaper)
        assert await states(chain, [tx]) == ["unknown"]
        assert [said.state for said in await chain.broadcast([tx])] == ["accepted"]
        assert [said.state for said in await chain.broadcast([tx, rival])] == ["accepted", "underpriced"]
        assert await states(chain, [tx, rival]) == ["pending", "unknown"]
        await manual.call("anvil_dropTransaction", [tx.tx_id])
        assert await states(chain, [tx]) == ["unknown"]
        assert [said.state for said in await chain.broadcast([tx])] == ["accepted"]
        await manual.mine()
        assert await states(chain, [tx, rival]) == ["succeeded", "unknown"]
        said = await chain.broadcast([tx, rival])
        assert [one.state for one in said] == ["sequence_used", "sequence_used"]
        assert await chain.balance(customer, chain.info.native) == 5


async def test_gaps_wait_and_are_filled(
    manual: Anvil, connect: Connect, intent: MakeIntent, sealed: Sealed, customer: str
) -> None:
    """A later sequence is taken and mined once the one before it is there; mined ones alone count."""
    async with connect(manual.url) as chain:
        first, second = await steps_of(chain, *(intent(customer, n, chain.info.native) for n in (1, 2)))
        txs = await sealed(chain, 0, first, second)
        assert [said.state for said in await chain.broadcast(txs[1:])] == ["accepted"]
        await manual.mine()
        assert await states(chain, txs) == ["unknown", "pending"]
        assert await chain.next_sequence(Wallet("hot").address) == 0
        assert [said.state for said in await chain.broadcast(txs)] == ["accepted", "accepted"]
        await manual.mine()
        assert await states(chain, txs) == ["succeeded", "succeeded"]
        assert await chain.next_sequence(Wallet("hot").address) == 2


async def test_who_cannot_pay_is_told_so(
    node: Anvil, connect: Connect, wallet: Wallet, intent: MakeIntent, sealed: Sealed, customer: str
) -> None:
    """The plan is made all the same: the gateway sees to the money."""
    await node.call("anvil_setBalance", [wallet.address, "0x5"])
    async with connect(node.url) as chain:
        (step,) = await steps_of(chain, intent(customer, 6, chain.info.native))
        assert step.fee.limit == 21_000
        (tx,) = await sealed(chain, 0, step)
        (said,) = await chain.broadcast([tx])
        assert said.state == "unfunded"


async def test_what_a_node_can_never_take_is_rejected(
    node: Anvil, connect: Connect, intent: MakeIntent, sealed: Sealed, customer: str
) -> None:
    """Too little gas, and another chain's transaction."""
    async with connect(node.url) as chain, Anvil(chain_id=5) as other:
        (step,) = await steps_of(chain, intent(customer, 6, chain.info.native))
        starved = Step(**{**_fields(step), "fee": type(step.fee)(limit=20_000, price=step.fee.price, tip=1)})
        (said,) = await chain.broadcast(await sealed(chain, 0, starved))
        assert said.state == "rejected"
        async with connect(other.url, chain_id=5) as elsewhere:
            (said,) = await elsewhere.broadcast(await sealed(chain, 0, step))
            assert said.state == "rejected"


async def test_a_token_that_refuses_the_recipient_is_a_refused_plan(
    node: Anvil, connect: Connect, wallet: Wallet, intent: MakeIntent, customer: str, other_customer: str
) -> None:
    """Loudly or quietly; and the other intents of the plan are none the worse."""
    token = await node.deploy("PickyToken")
    await token.send("mint", wallet.address, 1_000)
    await token.send("refuse", customer)
    async with connect(node.url, **picky(token)) as chain:
        pick = chain.info.tokens[1]
        for quiet, reason in ((False, "recipient is refused"), (True, "answers that it did not do it")):
            await token.send("setQuiet", quiet)
            refused, good = await chain.plan(
                [intent(customer, 600, pick), intent(other_customer, 600, pick)], sponsor=None
            )
            assert refused.step is None
            assert refused.refused is not None
            assert f"the token PICK refuses the transfer to {customer}" in refused.refused
            assert reason in refused.refused
            assert good.refused is None


async def test_who_is_emptied_before_the_block_is_paid_where_that_may_be(
    node: Anvil, wallet: Wallet, connect: Connect, intent: MakeIntent, sealed: Sealed, customer: str
) -> None:
    """A first balance takes 17,100 gas more than any other, more than the margin; it is used only if need be."""
    token = await node.deploy("UsdtLike")
    await token.send("mint", wallet.address, 1_000)
    exchanges = node.accounts[1:4]
    for address in exchanges:
        await token.send("mint", address, 100)
    async with connect(node.url, **usdt(token)) as chain:
        wanted = [intent(address, 5, chain.info.tokens[1]) for address in exchanges]
        careful = [structs.replace(one, recipient_may_empty=True) for one in wanted[:2]]
        fresh = structs.replace(intent(customer, 7, chain.info.tokens[1]), recipient_may_empty=True)
        lean, *steps = await steps_of(chain, wanted[2], *careful, fresh)
        assert [step.fee.limit for step in steps] == [steps[0].fee.limit] * 3
        assert 17_100 <= steps[0].fee.limit - lean.fee.limit <= 17_100 * 6 // 5 + 100
        txs = await sealed(chain, 0, lean, *steps)
        for address in (exchanges[2], exchanges[0]):
            await token.send("transfer", customer, 100, sender=address)
        await chain.broadcast(txs)
        assert await mined_states(chain, txs) == ["reverted", "succeeded", "succeeded", "succeeded"]
        assert [await token.read("balanceOf", address) for address in exchanges] == [5, 105, 0]
        emptied, kept = [(await chain.transaction(tx.tx_id)).fee for tx in txs[1:3]]
        assert kept < emptied <= steps[0].fee.cost_max


async def test_what_cannot_be_tried_for_who_was_emptied_is_planned_as_ever(
    node: Anvil, token: Contract, wallet: Wallet, connect: Connect, intent: MakeIntent, customer: str
) -> None:
    """Money that has yet to come; and native coin, an approval, or what is refused, which have no first balance."""
    picked = await node.deploy("PickyToken")
    await picked.send("refuse", customer)
    usdx_too = [*picky(picked)["tokens"], {"symbol": "USDX", "contract": token.address, "decimals": 6}]
    async with connect(node.url, tokens=usdx_too) as chain:
        native, pick, usdx = chain.info.tokens
        wanted = [
            intent(node.accounts[1], 600, pick),
            intent(node.accounts[1], 5, native),
            structs.replace(intent(node.accounts[2], 5, usdx), action="approve"),
        ]
        careful = [structs.replace(one, recipient_may_empty=True) for one in wanted]
        assert [one.fee.limit for one in await steps_of(chain, *careful)] == [
            one.fee.limit for one in await steps_of(chain, *wanted)
        ]
        await picked.send("mint", wallet.address, 1_000)
        refused, good = await chain.plan(
            [structs.replace(intent(customer, 5, pick), recipient_may_empty=True), careful[0]], sponsor=None
        )
        assert refused.refused is not None
        assert good.step is not None


@pytest.mark.parametrize("quiet", [False, True])
async def test_money_that_has_yet_to_come_refuses_nothing(
    node: Anvil, connect: Connect, wallet: Wallet, intent: MakeIntent, sealed: Sealed, customer: str,
    other_customer: str, quiet: bool,
) -> None:  # fmt: skip
    """A source without any of the token, and with too little; once it is there, the planned gas suffices."""
    token = await node.deploy("PickyToken")
    await token.send("setQuiet", quiet)
    await token.send("refuse", other_customer)
    async with connect(node.url, **picky(token)) as chain:
        pick = chain.info.tokens[1]
        (nothing,) = await steps_of(chain, intent(customer, 600, pick))
        await token.send("mint", wallet.address, 599)
        little, refused = await chain.plan(
            [intent(customer, 600, pick), intent(other_customer, 600, pick)], sponsor=None
        )
        assert little.refused is None
        assert refused.refused is not None
        await token.send("mint", wallet.address, 601)
        txs = await sealed(chain, 0, nothing, little.step)
        await chain.broadcast(txs)
        assert await mined_states(chain, txs) == ["succeeded", "succeeded"]
        assert await token.read("balanceOf", customer) == 1_200


async def test_contracts_take_native_coin_if_they_will(
    node: Anvil, token: Contract, splitter: Contract, connect: Connect, wallet: Wallet, intent: MakeIntent,
    sealed: Sealed,
) -> None:  # fmt: skip
    """With the gas they need. One that takes none, and one that burns whatever it gets, are refused."""
    trap = await node.deploy("GasTrap")
    stranger = await node.deploy("TestToken", "NONE", 6)
    async with connect(node.url, token=token) as chain:
        native = chain.info.native
        to_addresses = [splitter.address, stranger.address, trap.address]
        taken, refused, trapped = await chain.plan(
            [intent(to_address, 5, native) for to_address in to_addresses], sponsor=None
        )
        assert taken.step.fee.limit > 21_000
        txs = await sealed(chain, 0, taken.step)
        await chain.broadcast(txs)
        assert await mined_states(chain, txs) == ["succeeded"]
        for plan, to_address in ((refused, stranger.address), (trapped, trap.address)):
            assert plan.refused is not None
            assert f"the recipient refuses the transfer to {to_address}" in plan.refused


async def test_a_recipient_burns_no_more_gas_than_native_coin_may_take(
    node: Anvil, token: Contract, connect: Connect, wallet: Wallet, intent: MakeIntent, sealed: Sealed, customer: str
) -> None:
    """The found trick: a payout of 1 wei to a contract that burns gas, which the gas station pays for."""
    glutton = "0x" + "6b" * 20
    # PUSH 1, PUSH <slot>, SSTORE: three slots that were empty take about 66,000 gas beside the 21,000.
    await node.call("anvil_setCode", [glutton, "0x600160005560016001556001600255" + "00"])
    async with connect(node.url, token=token) as chain:
        native = chain.info.native
        asked = intent(glutton, 1, native)
        raised, tight = (structs.replace(asked, work_max=gas) for gas in (200_000, 90_000))
        plain = structs.replace(intent(customer, 1, native), work_max=21_000)
        refused, taken, capped, usual = await chain.plan([asked, raised, tight, plain], sponsor=None)
        assert refused.refused is not None
        assert f"the recipient refuses the transfer to {glutton}" in refused.refused
        assert 90_000 < taken.step.fee.limit < 110_000
        assert capped.step.fee.limit == 90_000
        assert usual.step.fee.limit == 21_000
        txs = await sealed(chain, 0, capped.step, usual.step)
        await chain.broadcast(txs)
        assert await mined_states(chain, txs) == ["succeeded", "succeeded"]


async def test_what_would_be_lost_is_refused(
    node: Anvil, token: Contract, connect: Connect, intent: MakeIntent
) -> None:
    """A token's own contract, another token's, and the zero address."""
    other = await node.deploy("UsdtLike")
    tokens = [
        {"symbol": "USDX", "contract": token.address, "decimals": 6},
        {"symbol": "USDT", "contract": other.address, "decimals": 6},
    ]
    async with connect(node.url, tokens=tokens) as chain:
        native, usdx, _ = chain.info.tokens
        zero = "0x" + "0" * 40
        wanted = [(token.address, usdx), (other.address, usdx), (token.address, native), (zero, native)]
        plans = await chain.plan([intent(to_address, 1, one) for to_address, one in wanted], sponsor=None)
        assert [plan.refused for plan in plans] == [
            f"{token.address} is the contract of USDX: what is sent there is lost",
            f"{other.address} is the contract of USDT: what is sent there is lost",
            f"{token.address} is the contract of USDX: what is sent there is lost",
            "nobody owns the zero address",
        ]
        assert list(await chain.plan([], sponsor=None)) == []


async def test_a_token_without_contract_is_refused(node: Anvil, connect: Connect, intent: MakeIntent) -> None:
    """A call to nothing succeeds, and moves nothing."""
    gone = {"symbol": "GONE", "contract": "0x" + "77" * 20, "decimals": 6}
    async with connect(node.url, tokens=[gone]) as chain:
        (plan,) = await chain.plan([intent("0x" + "78" * 20, 1, chain.info.tokens[1])], sponsor=None)
        assert plan.refused is not None
        assert "there is no contract of it" in plan.refused


async def test_above_the_ceiling_nothing_is_planned_or_outbid(
    node: Anvil, connect: Connect, intent: MakeIntent, customer: str
) -> None:
    """And the doctor says so; at the ceiling all is well."""
    async with connect(node.url) as chain:
        (step,) = await steps_of(chain, intent(customer, 1, chain.info.native))
    await node.call("anvil_setNextBlockBaseFeePerGas", [hex(3 * GWEI)])
    await node.mine()
    async with connect(node.url, fee_ceiling_gwei="3.5") as chain:
        for sending in (chain.plan([intent(customer, 1, chain.info.native)], sponsor=None), chain.outbid(step)):
            with pytest.raises(FeeAboveCeilingError, match=r"fee_ceiling_gwei is 3\.5"):
                await sending
        (problem,) = await chain.problems()
        assert "fee_ceiling_gwei is 3.5: nothing would be sent" in problem
    async with connect(node.url, fee_ceiling_gwei="4") as chain:
        (step,) = await steps_of(chain, intent(customer, 1, chain.info.native))
        assert step.fee.price == 4 * GWEI
        assert list(await chain.problems()) == []


async def test_tips_stay_within_their_bounds(node: Anvil, connect: Connect, intent: MakeIntent, customer: str) -> None:
    """The node advises 1 gwei."""
    for bounds, tip in (({"tip_min_gwei": 30}, 30 * GWEI), ({"tip_max_gwei": "0.25"}, GWEI // 4), ({}, GWEI)):
        async with connect(node.url, **bounds) as chain:
            (step,) = await steps_of(chain, intent(customer, 1, chain.info.native))
            assert step.fee.tip == tip


async def test_a_rollups_charge_for_data_is_part_of_the_cost(
    node: Anvil, connect: Connect, intent: MakeIntent, customer: str
) -> None:
    """Asked of the oracle where the OP stack has it. This one answers 8000 to everything."""
    answers = "0x61" + f"{8000:04x}" + "60005260206000f3"
    async with connect(node.url, l1_fee=True) as chain:
        (problem,) = await chain.problems()
        assert "does not tell what data costs" in problem
    await node.call("anvil_setCode", ["0x420000000000000000000000000000000000000F", answers])
    async with connect(node.url, l1_fee=True) as chain:
        (step,) = await steps_of(chain, intent(customer, 1, chain.info.native))
        assert step.fee.extra == 10_000
        assert step.native_needed == 21_000 * step.fee.price + 10_000 + 1
        assert (await chain.outbid(step)).extra == 10_000


async def test_a_transaction_that_fails_on_the_chain_is_told_and_costs(
    node: Anvil, token: Contract, wallet: Wallet, connect: Connect, intent: MakeIntent, sealed: Sealed, customer: str
) -> None:
    """The money it was planned with was gone when it was mined."""
    await token.send("mint", wallet.address, 100)
    async with connect(node.url, token=token) as chain:
        usdx = chain.info.tokens[1]
        steps = await steps_of(chain, intent(customer, 60, usdx), intent(customer, 60, usdx))
        txs = await sealed(chain, 0, *steps)
        await chain.broadcast(txs)
        assert await mined_states(chain, txs) == ["succeeded", "reverted"]
        (status,) = await chain.transactions([txs[1].tx_id])
        assert status.fee is not None
        assert status.fee > 0
        assert await token.read("balanceOf", customer) == 60


async def test_past_balances_are_read_many_at_once(
    node: Anvil, token: Contract, connect: Connect, customer: str, other_customer: str
) -> None:
    await token.send("mint", customer, 7)
    height = await node.height()
    await token.send("mint", customer, 1)
    await node.send_native(other_customer, 9)
    async with connect(node.url, token=token, batch_calls_max=1) as chain:
        native, usdx = chain.info.tokens
        wanted = [(customer, usdx), (other_customer, native), (customer, native), (other_customer, usdx)]
        assert list(await chain.balances(wanted, height)) == [7, 0, 0, 0]
        assert list(await chain.balances(wanted)) == [8, 9, 0, 0]
        assert list(await chain.balances([])) == []


@settings(max_examples=50)
@given(gas=st.integers(21_000, 10**7))
def test_limits_leave_a_fifth(gas: int) -> None:
    """But for a plain transfer, which costs the same for ever."""
    limit = with_margin(gas)
    assert limit == 21_000 if gas == 21_000 else limit * 5 >= gas * 6 - 5


async def test_the_zero_transfer_that_fills_a_gap_can_be_planned(
    node: Anvil, connect: Connect, wallet: Wallet, intent: MakeIntent, sealed: Sealed
) -> None:
    """To oneself, of nothing: what uses up a sequence, at a plain transfer's gas."""
    async with connect(node.url) as chain:
        nothing = structs.replace(intent(wallet.address, 0, chain.info.native), action="nothing")
        steps = await steps_of(chain, nothing)
        assert [(step.action, step.fee.limit) for step in steps] == [("nothing", 21_000)]
        txs = await sealed(chain, 0, *steps)
        assert [said.state for said in await chain.broadcast(txs)] == ["accepted"]
        assert await mined_states(chain, txs) == ["succeeded"]
        assert await chain.next_sequence(wallet.address) == 1
