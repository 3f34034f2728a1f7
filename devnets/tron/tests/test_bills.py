"""Who pays for a contract's run: staked energy, then TRX up to the limit, and the contract's maker for its share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from cambist_tron_node import NoMachine, TronNode, keys
from cambist_tron_node.contracts import CREATE_CONTRACT
from cambist_tron_node.machine import OUT_OF_ENERGY, REVERT, SUCCESS, Call, Internal, Log, Moment, Outcome, World
from cambist_tron_node.refusals import RefusedError
from cambist_tron_node.state import ENERGY

from .conftest import Ask

TRX = 1_000_000
PRICE = 100


class Rehearsed(NoMachine):
    """A machine whose runs end as a test has decided, and that remembers how it was called."""

    def __init__(self) -> None:
        self.outcome = Outcome(SUCCESS, 0)
        self.calls: list[tuple[Call, Moment]] = []
        self.rewound: list[int] = []
        self.marks = 0
        self.world: World | None = None

    async def start(self, world: World) -> None:
        self.world = world

    async def create(self, call: Call, moment: Moment) -> Outcome:  # noqa: ARG002 - the protocol's
        return Outcome(SUCCESS, 200, output=b"code")

    async def call(self, call: Call, moment: Moment) -> Outcome:
        self.calls.append((call, moment))
        if self.outcome.status not in {SUCCESS, REVERT} or self.outcome.energy_used > call.energy_limit:
            return Outcome(OUT_OF_ENERGY, call.energy_limit, message="Not enough energy")
        return self.outcome

    async def constant(self, call: Call, moment: Moment, mark: int | None = None) -> Outcome:  # noqa: ARG002 - likewise
        return self.outcome

    async def mark(self) -> int:
        self.marks += 1
        return self.marks

    async def rewind(self, mark: int) -> None:
        self.rewound.append(mark)


@pytest.fixture
def machine() -> Rehearsed:
    return Rehearsed()


@pytest.fixture
async def node(machine: Rehearsed) -> AsyncIterator[TronNode]:
    async with TronNode(machine=machine) as node:
        yield node


@pytest.fixture
async def contract(node: TronNode) -> str:
    """Return a contract that the last account has made."""
    return await node.create(b"code", sender=node.accounts[-1])


async def called(node: TronNode, contract: str, **how: Any) -> dict[str, Any]:
    """Call the contract, and return the info of it."""
    tx_id = await node.trigger(contract, b"data", **how)
    await node.mine()
    info = node.info(tx_id)
    assert info is not None
    return dict(info)


async def test_energy_that_is_not_staked_is_burned(node: TronNode, machine: Rehearsed, contract: str) -> None:
    machine.outcome = Outcome(SUCCESS, 64_285, energy_penalty=49_635, output=bytes(32))
    before = node.balance(node.accounts[0])
    info = await called(node, contract)
    assert info["receipt"] == {
        "energy_fee": 64_285 * PRICE,
        "energy_usage_total": 64_285,
        "energy_penalty_total": 49_635,
        "net_usage": info["receipt"]["net_usage"],
        "result": "SUCCESS",
    }
    assert info["fee"] == 6_428_500 == before - node.balance(node.accounts[0])
    assert info["contractResult"] == ["00" * 32]


async def test_staked_energy_is_used_first(node: TronNode, machine: Rehearsed, contract: str, ask: Ask) -> None:
    await node.stake(node.accounts[0], 1_000 * TRX)
    limit = (await ask("wallet/getaccountresource", address=node.accounts[0], visible=True))["EnergyLimit"]
    machine.outcome = Outcome(SUCCESS, limit + 500)
    info = await called(node, contract)
    assert (info["receipt"]["energy_usage"], info["receipt"]["energy_fee"]) == (limit, 500 * PRICE)
    resource = await ask("wallet/getaccountresource", address=node.accounts[0], visible=True)
    assert resource["EnergyUsed"] == pytest.approx(limit, abs=2)
    machine.outcome = Outcome(SUCCESS, 100)
    assert (await called(node, contract))["receipt"]["energy_fee"] >= 97 * PRICE


async def test_lent_energy_is_as_good_as_ones_own(node: TronNode, machine: Rehearsed, contract: str) -> None:
    owner, receiver = node.accounts[1], node.accounts[2]
    await node.stake(owner, 10_000 * TRX)
    await node.delegate(owner, receiver, 10_000 * TRX)
    machine.outcome = Outcome(SUCCESS, 64_285)
    info = await called(node, contract, sender=receiver)
    assert info["receipt"]["energy_usage"] == 64_285
    assert "energy_fee" not in info["receipt"]
    assert "fee" not in info


async def test_the_maker_pays_the_share_it_promised_from_its_stake_alone(node: TronNode, machine: Rehearsed) -> None:
    maker = node.accounts[-1]
    generous = await node.create(b"code", sender=maker, consume_user_percent=30)
    machine.outcome = Outcome(SUCCESS, 1_000)
    assert (await called(node, generous))["receipt"]["energy_fee"] == 1_000 * PRICE
    await node.stake(maker, 10_000 * TRX)
    receipt = (await called(node, generous))["receipt"]
    assert (receipt["origin_energy_usage"], receipt["energy_fee"]) == (700, 300 * PRICE)
    own = (await called(node, generous, sender=maker))["receipt"]
    assert (own["energy_usage"], own.get("origin_energy_usage")) == (1_000, None)


@pytest.mark.parametrize("limit_sun, energy", [(5 * TRX, 50_000), (99, 0), (0, 0)])
async def test_a_run_may_use_what_its_fee_limit_buys(
    node: TronNode, machine: Rehearsed, contract: str, limit_sun: int, energy: int
) -> None:
    machine.outcome = Outcome(SUCCESS, 64_285)
    info = await called(node, contract, fee_limit=limit_sun)
    assert machine.calls[-1][0].energy_limit == energy
    assert (info["result"], info["receipt"]["result"]) == ("FAILED", "OUT_OF_ENERGY")
    assert info["receipt"].get("energy_fee", 0) == energy * PRICE
    assert bytes.fromhex(info["resMessage"]).decode() == "Not enough energy"
    assert "log" not in info


async def test_a_run_may_use_what_its_caller_can_pay(node: TronNode, machine: Rehearsed, contract: str) -> None:
    poor = node.new_account("poor")
    await node.give(poor, 5 * TRX)
    machine.outcome = Outcome(SUCCESS, 10**9)
    info = await called(node, contract, sender=poor, call_value=2 * TRX)
    assert machine.calls[-1][0].energy_limit == 30_000
    assert info["receipt"]["energy_fee"] == 3 * TRX
    assert node.balance(poor) == 2 * TRX  # what it wanted to send stayed
    assert node.balance(contract) == 0


async def test_a_revert_burns_what_was_used_and_moves_nothing(
    node: TronNode, machine: Rehearsed, contract: str
) -> None:
    moved = Internal(keys.address_bytes(contract)[1:], b"\7" * 20, 5, "call", rejected=True)
    machine.outcome = Outcome(REVERT, 1_090, output=b"why", internal=(moved,), message="REVERT opcode executed")
    info = await called(node, contract, call_value=TRX)
    assert (info["result"], info["receipt"]["result"], info["fee"]) == ("FAILED", "REVERT", 1_090 * PRICE)
    assert info["contractResult"] == [b"why".hex()]
    assert info["internal_transactions"][0]["rejected"] is True
    assert node.balance(contract) == 0


async def test_value_goes_to_the_contract_and_on_to_whom_it_pays(
    node: TronNode, machine: Rehearsed, contract: str
) -> None:
    customer = node.new_account("customer")
    own, to = keys.address_bytes(contract)[1:], keys.address_bytes(customer)[1:]
    event = Log(own, (b"\1" * 32,), b"\2")
    machine.outcome = Outcome(SUCCESS, 1_000, logs=(event,), internal=(Internal(own, to, 3 * TRX, "call"),))
    info = await called(node, contract, call_value=5 * TRX)
    assert (node.balance(contract), node.balance(customer)) == (2 * TRX, 3 * TRX)
    assert info["log"] == [{"address": own.hex(), "topics": ["01" * 32], "data": "02"}]
    told = info["internal_transactions"]
    assert [(each["caller_address"], each["transferTo_address"]) for each in told] == [
        ("41" + own.hex(), "41" + to.hex())
    ]
    assert told[0]["callValueInfo"] == [{"callValue": 3 * TRX}]
    assert bytes.fromhex(told[0]["note"]) == b"call"


async def test_nodes_that_do_not_save_internal_transactions_do_not_tell_of_them(machine: Rehearsed) -> None:
    async with TronNode(machine=machine, trace_internal=False) as node:
        contract = await node.create(b"code")
        own = keys.address_bytes(contract)[1:]
        machine.outcome = Outcome(SUCCESS, 1_000, internal=(Internal(own, b"\7" * 20, 2, "call"),))
        assert "internal_transactions" not in await called(node, contract, call_value=5)


async def test_the_machine_sees_balances_before_the_value_has_moved(
    node: TronNode, machine: Rehearsed, contract: str
) -> None:
    assert machine.world is not None
    assert machine.world.exists(keys.address_bytes(contract)[1:])
    assert machine.world.balance(keys.address_bytes(node.accounts[0])[1:]) == node.balance(node.accounts[0])
    assert not machine.world.exists(b"\7" * 20)


async def test_a_run_happens_when_it_waits_and_again_in_its_block(
    node: TronNode, machine: Rehearsed, contract: str
) -> None:
    head, rewound = node.chain.blocks.head, len(machine.rewound)
    machine.outcome = Outcome(SUCCESS, 1_000)
    await node.trigger(contract, b"data")
    assert len(machine.calls) == 1
    await node.mine()
    assert len(machine.calls) == 2
    assert machine.rewound[rewound:] == [head.mark]
    assert machine.calls[-1][1].number == node.head
    assert node.chain.blocks.head.mark != head.mark
    await node.mine(3)
    assert node.chain.blocks.head.mark == machine.marks  # empty blocks take none
    await node.reorg(4)
    assert machine.rewound[-1] == head.mark


async def test_what_cannot_even_be_tried_is_refused(node: TronNode, contract: str) -> None:
    for target, how, words in [
        (node.accounts[1], {}, "No contract or not a smart contract"),
        (contract, {"call_value": 2_000_000 * TRX}, "Validate InternalTransfer error, balance is not sufficient"),
        (contract, {"call_value": -1}, "callValue must be >= 0"),
        (contract, {"fee_limit": 15_000_000_001}, "feeLimit must be >= 0 and <= 15000000000"),
    ]:
        with pytest.raises(RefusedError, match=words):
            await node.trigger(target, b"data", **how)


async def test_trx_cannot_be_sent_to_a_contract_nor_stake_be_lent_to_one(node: TronNode, contract: str) -> None:
    with pytest.raises(RefusedError, match="Cannot transfer TRX to a smartContract"):
        await node.send_trx(contract, TRX)
    await node.stake(node.accounts[0], 10 * TRX)
    with pytest.raises(RefusedError, match="Do not allow delegate resources to contract addresses"):
        await node.delegate(node.accounts[0], contract, TRX, resource=ENERGY)


async def test_a_contract_is_told_of_with_its_maker_and_its_address(node: TronNode, contract: str, ask: Ask) -> None:
    found = await ask("wallet/getcontract", value=contract, visible=True)
    assert (found["contract_address"], found["origin_address"]) == (contract, node.accounts[-1])
    assert (await ask("wallet/getcontractinfo", value=contract, visible=True))["runtimecode"] == b"code".hex()
    block = node.chain.blocks.at(node.head)
    assert block is not None
    shown = block.transactions[0].to_json()
    assert shown["raw_data"]["contract"][0]["type"] == CREATE_CONTRACT
    assert shown["contract_address"] == keys.address_bytes(contract).hex()


async def test_estimates_come_in_steps_of_one_trx(node: TronNode, machine: Rehearsed, contract: str, ask: Ask) -> None:
    asked = {"owner_address": node.accounts[0], "contract_address": contract, "data": "00", "visible": True}
    machine.outcome = Outcome(SUCCESS, 935)
    assert await ask("wallet/estimateenergy", **asked) == {"result": {"result": True}, "energy_required": 1_870}
    machine.outcome = Outcome(SUCCESS, 64_285)
    needed = (await ask("wallet/estimateenergy", **asked))["energy_required"]
    assert 64_285 <= needed <= 64_285 + TRX // PRICE
    machine.outcome = Outcome(REVERT, 500, message="REVERT opcode executed")
    answer = await ask("wallet/estimateenergy", **asked)
    assert answer["result"] == {"code": "CONTRACT_EXE_ERROR", "message": "REVERT opcode executed"}


async def test_a_constant_call_that_reverts_says_true_and_means_it_not(
    node: TronNode, machine: Rehearsed, contract: str, ask: Ask
) -> None:
    asked = {"owner_address": node.accounts[0], "contract_address": contract, "function_selector": "f()"}
    machine.outcome = Outcome(REVERT, 500, output=b"\1", message="REVERT opcode executed")
    answer = await ask("wallet/triggerconstantcontract", **asked, visible=True)
    assert answer["result"] == {"result": True, "message": "REVERT opcode executed"}
    assert answer["transaction"]["ret"] == [{"ret": "FAILED"}]
    assert answer["constant_result"] == ["01"]
    machine.outcome = Outcome(OUT_OF_ENERGY, 500, message="too dear")
    answer = await ask("wallet/triggerconstantcontract", **asked, visible=True)
    assert answer["result"]["code"] == "OTHER_ERROR"
    assert answer["result"]["message"].endswith("OutOfEnergyException : too dear")
