"""Energy: what a contract's run needs, who pays for it, and what happens when it is too little.

Where the main network's answers are recorded, the node gives the same ones, to the unit and to the word.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from cambist.testing.contracts import load
from cambist_tron_node import Parameters, TronNode, TronToken, keys
from cambist_tron_node.state import ENERGY
from devnets.tron.tests.recordings import recorded

from .conftest import Ask

TRX = 1_000_000
TO_HOLDER, TO_NOBODY = 64_285, 130_285
LIMIT = 100 * TRX
WHEREABOUTS = ("id", "blockNumber", "blockTimeStamp", "contract_address", "log")


def said(info: Any) -> dict[str, Any]:
    """Return what an info says apart from where and when, and by whom."""
    return {key: value for key, value in info.items() if key not in WHEREABOUTS}


async def deployed(node: TronNode) -> TronToken:
    """Deploy a token like USDT, and let the second account have some of it."""
    token = await node.deploy_token("USDT", 6, usdt_like=True)
    await token.mint(node.accounts[1], 10**12)
    await node.mine()
    return token


@pytest.fixture
def node(contract_node: TronNode) -> TronNode:
    return contract_node


@pytest.fixture
async def usdt(node: TronNode) -> TronToken:
    return await deployed(node)


@pytest.fixture
async def dear_node(machine) -> AsyncIterator[TronNode]:
    """Run a node at the price of November 2024."""
    async with TronNode(machine=machine, energy_price=210) as node:
        yield node


class TestAsOnTheMainNetwork:
    """The answers recorded there, given again."""

    @pytest.mark.parametrize(
        "place, energy, holder", [(4, TO_NOBODY, False), (5, TO_HOLDER, True)], ids=["to nobody yet", "to a holder"]
    )
    async def test_a_transfer_on_staked_energy(self, node, usdt, place, energy, holder) -> None:
        """The receipt is the recorded one, and nothing is burned."""
        real = recorded("drpc_gettransactioninfobyblocknum_84940364")[place]
        await node.stake(node.accounts[1], 12_000 * TRX)
        recipient = node.accounts[1] if holder else node.accounts[2]
        before = node.balance(node.accounts[1])
        tx_id = await usdt.transfer(recipient, 1, sender=node.accounts[1], fee_limit=LIMIT)
        await node.mine()
        info = node.info(tx_id)
        assert info["receipt"]["energy_usage_total"] == energy
        assert info.keys() == real.keys()
        assert said(info) == said(real)
        assert node.balance(node.accounts[1]) == before

    async def test_a_transfer_that_runs_out_of_energy(self, dear_node: TronNode) -> None:
        """Everything but the ids is the recorded answer, down to the words about the operation that failed."""
        usdt, sender = await deployed(dear_node), dear_node.accounts[1]
        real = recorded("failed_transfer_out_of_energy_e63a324a")
        before = dear_node.balance(sender)
        tx_id = await usdt.transfer(dear_node.accounts[2], 1, sender=sender, fee_limit=real["fee"])
        await dear_node.mine()
        info = dear_node.info(tx_id)
        assert info is not None
        assert said(info) == said(real)
        assert info.keys() == real.keys()
        assert before - dear_node.balance(sender) == real["fee"]
        assert await usdt.balance_of(dear_node.accounts[2]) == 0

    async def test_a_transfer_that_the_contract_refuses(self, node: TronNode) -> None:
        """The same keys, words and sums; the contract's own text stands in the result."""
        real = recorded("failed_revert_65055cac")
        token = await node.deploy_token("USDX", 6)
        tx_id = await token.transfer(node.accounts[2], 1, sender=node.accounts[3])
        await node.mine()
        info = node.info(tx_id)
        assert info is not None
        receipt = info["receipt"]
        assert info.keys() == real.keys() | {"fee"}
        assert receipt.keys() - {"net_usage"} == real["receipt"].keys() - {"net_fee"}
        assert (info["result"], info["resMessage"]) == (real["result"], real["resMessage"])
        assert info["fee"] == receipt["energy_fee"] == receipt["energy_usage_total"] * 100
        assert info["contractResult"][0][:8] == real["contractResult"][0][:8] == "08c379a0"
        assert b"balance" in bytes.fromhex(info["contractResult"][0])

    async def test_an_ordinary_token_costs_about_what_it_costs_there(self, node: TronNode) -> None:
        token = await node.deploy_token("USDX", 6)
        await token.mint(node.accounts[1], 10)
        await node.mine()
        tx_id = await token.transfer(node.accounts[2], 1, sender=node.accounts[1])
        await node.mine()
        info = node.info(tx_id)
        assert info is not None
        assert 27_000 < info["receipt"]["energy_usage_total"] < 29_000
        assert "energy_penalty_total" not in info["receipt"]


class TestWhoPays:
    async def test_staked_energy_goes_first_and_the_rest_is_burned(self, node, usdt, ask: Ask) -> None:
        sender = node.accounts[1]
        await node.stake(sender, 2_000 * TRX)
        staked = (await ask("wallet/getaccountresource", address=sender, visible=True))["EnergyLimit"]
        assert 0 < staked < TO_HOLDER
        before = node.balance(sender)
        tx_id = await usdt.transfer(sender, 1, sender=sender)
        await node.mine()
        info = node.info(tx_id)
        assert info["receipt"]["energy_usage"] == staked
        assert info["receipt"]["energy_fee"] == (TO_HOLDER - staked) * 100
        assert (
            before - node.balance(sender)
            == info["fee"]
            == sum(info["receipt"].get(name, 0) for name in ("energy_fee", "net_fee"))
        )
        resources = await ask("wallet/getaccountresource", address=sender, visible=True)
        assert resources["EnergyLimit"] == staked
        assert staked - resources["EnergyUsed"] <= 1  # a block's time gives back a little

    async def test_delegated_energy_pays_for_the_receiver(self, node, usdt) -> None:
        await node.stake(node.accounts[5], 6_000 * TRX)
        await node.delegate(node.accounts[5], node.accounts[1], 6_000 * TRX)
        tx_id = await usdt.transfer(node.accounts[1], 1, sender=node.accounts[1])
        await node.mine()
        assert node.info(tx_id)["receipt"]["energy_usage"] == TO_HOLDER
        assert "energy_fee" not in node.info(tx_id)["receipt"]

    async def test_the_fee_limit_caps_staked_energy_too(self, node, usdt) -> None:
        """Staked energy that would do does not help a transaction whose fee limit is too low."""
        await node.stake(node.accounts[1], 12_000 * TRX)
        tx_id = await usdt.transfer(node.accounts[2], 1, sender=node.accounts[1], fee_limit=10 * TRX)
        await node.mine()
        info = node.info(tx_id)
        assert info["receipt"]["result"] == "OUT_OF_ENERGY"
        assert info["receipt"]["energy_usage"] == 10 * TRX // 100
        assert "energy_fee" not in info["receipt"]

    @pytest.mark.parametrize("short, result", [(0, "SUCCESS"), (1, "OUT_OF_ENERGY")])
    async def test_the_limit_is_exact(self, node, usdt, short, result) -> None:
        before = node.balance(node.accounts[1])
        tx_id = await usdt.transfer(node.accounts[1], 1, sender=node.accounts[1], fee_limit=(TO_HOLDER - short) * 100)
        await node.mine()
        info = node.info(tx_id)
        assert info["receipt"]["result"] == result
        assert before - node.balance(node.accounts[1]) == info["fee"] == (TO_HOLDER - short) * 100
        assert ("log" in info) is (result == "SUCCESS")

    async def test_the_balance_is_a_limit_too(self, node, usdt) -> None:
        poor = node.new_account("poor")
        await node.give(poor, 3 * TRX)
        await usdt.mint(poor, 100)
        await node.mine()
        tx_id = await usdt.transfer(node.accounts[1], 1, sender=poor)
        await node.mine()
        info = node.info(tx_id)
        assert info["receipt"]["result"] == "OUT_OF_ENERGY"
        assert info["receipt"]["energy_usage_total"] == 3 * TRX // 100
        assert node.balance(poor) == 0

    async def test_the_contracts_maker_pays_the_share_it_promised(self, node) -> None:
        artifact = load("TestToken")
        address = await node.create(
            artifact.creation_code("MINE", 6), abi=bytes(artifact.abi), consume_user_percent=30, sender=node.accounts[0]
        )
        await node.stake(node.accounts[0], 10_000 * TRX)
        holder = keys.address_bytes(node.accounts[1])[1:]
        tx_id = await node.trigger(address, artifact.call_data("mint", holder, 5), sender=node.accounts[1])
        await node.mine()
        receipt = node.info(tx_id)["receipt"]
        assert receipt["origin_energy_usage"] == receipt["energy_usage_total"] * 70 // 100
        assert receipt["energy_fee"] == (receipt["energy_usage_total"] - receipt["origin_energy_usage"]) * 100

    async def test_creating_a_contract_costs_its_code_as_well(self, node: TronNode) -> None:
        before = node.balance(node.accounts[0])
        address = await node.create(load("TestToken").creation_code("X", 6))
        code = node.chain.state.contract(keys.address_bytes(address)).runtime
        burned = before - node.balance(node.accounts[0])
        assert 200 * len(code) * 100 < burned < 250 * len(code) * 100 + 10 * TRX


class TestEstimates:
    async def test_a_constant_call_says_what_the_transaction_will_need(self, node, usdt, ask: Ask) -> None:
        """For the real recipient: one who has none yet costs twice as much."""
        for recipient, energy in ((node.accounts[1], TO_HOLDER), (node.accounts[2], TO_NOBODY)):
            answer = await self.try_transfer(ask, usdt, node.accounts[1], recipient)
            assert answer["result"] == {"result": True}
            assert answer["energy_used"] == energy
            assert answer["constant_result"] == ["0" * 64]
            assert answer["transaction"]["ret"] == [{}]

    async def test_a_constant_call_that_reverts_says_so_in_the_transaction_alone(self, node, usdt, ask: Ask) -> None:
        answer = await self.try_transfer(ask, usdt, node.accounts[4], node.accounts[1])
        assert answer["result"] == {"result": True, "message": b"REVERT opcode executed".hex()}
        assert answer["transaction"]["ret"] == [{"ret": "FAILED"}]

    async def test_estimates_are_a_little_too_high_and_shaped_as_recorded(self, node, usdt, ask: Ask) -> None:
        """Real nodes halve an interval until it is one TRX wide."""
        arguments = self.transfer(usdt, node.accounts[1], node.accounts[2])
        answer = await ask("wallet/estimateenergy", **arguments)
        assert answer.keys() == recorded("nile_docs_estimateenergy").keys()
        assert TO_NOBODY <= answer["energy_required"] <= TO_NOBODY + TRX // 100

    async def test_a_contract_in_demand_tells_its_factor(self, usdt, ask: Ask) -> None:
        found = await ask("wallet/getcontractinfo", value=usdt.address, visible=True)
        assert found["contract_state"]["energy_factor"] == 34_000

    def transfer(self, token: TronToken, sender: str, recipient: str) -> dict[str, Any]:
        data = token.data("transfer", recipient, 1).hex()
        return {"owner_address": sender, "contract_address": token.address, "data": data, "visible": True}

    async def try_transfer(self, ask: Ask, token: TronToken, sender: str, recipient: str) -> Any:
        values = {**self.transfer(token, sender, recipient), "visible": False}
        for name in ("owner_address", "contract_address"):
            values[name] = keys.address_bytes(values[name]).hex()
        return await ask("wallet/triggerconstantcontract", **values)


def test_the_price_list_is_the_main_networks() -> None:
    """What this file's sums rest on."""
    assert (Parameters().energy_fee, Parameters().transaction_fee, ENERGY) == (100, 1_000, 1)
