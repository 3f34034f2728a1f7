"""Contracts on the local node: tokens honest and otherwise, TRX that contracts move, contracts that make contracts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from cambist.testing.contracts import load
from cambist_tron_node import TronNode, keys

from .conftest import Ask

TRX = 1_000_000
TRANSFER = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
ZEROS = "0" * 24


@pytest.fixture
def node(contract_node: TronNode) -> TronNode:
    return contract_node


def digits(address: str) -> str:
    """Return an address as it stands in logs."""
    return keys.address_bytes(address)[1:].hex()


async def result(node: TronNode, tx_id: str) -> Mapping[str, Any]:
    """Make a block, and return what came of a transaction in it."""
    await node.mine()
    info = node.info(tx_id)
    assert info is not None
    return info


class TestTokens:
    async def test_a_transfer_leaves_a_log_and_answers_zero(self, node, usdt) -> None:
        info = await result(node, await usdt.transfer(node.accounts[1], 5_000_000))
        assert info["receipt"]["result"] == "SUCCESS"
        assert info["contractResult"] == ["0" * 64]
        assert info["log"] == [
            {
                "address": digits(usdt.address),
                "topics": [TRANSFER, ZEROS + digits(node.accounts[0]), ZEROS + digits(node.accounts[1])],
                "data": f"{5_000_000:064x}",
            }
        ]
        assert await usdt.balance_of(node.accounts[1]) == 5_000_000

    async def test_what_stands_in_the_padding_of_an_address_does_not_count(self, node, usdt) -> None:
        """Many senders put the network's prefix there; the log is clean."""
        dirty = "a9059cbb" + "0" * 22 + "41" + digits(node.accounts[1]) + f"{7:064x}"
        info = await result(node, await node.trigger(usdt.address, bytes.fromhex(dirty)))
        assert info["log"][0]["topics"][2] == ZEROS + digits(node.accounts[1])
        assert await usdt.balance_of(node.accounts[1]) == 7

    async def test_a_refused_recipient_gets_nothing_until_he_is_accepted(self, node, usdt) -> None:
        await usdt.refuse(node.accounts[1])
        await node.mine()
        refused = await result(node, await usdt.transfer(node.accounts[1], 5))
        assert refused["result"] == "FAILED"
        assert refused["receipt"]["result"] == "REVERT"
        assert "log" not in refused
        await usdt.accept(node.accounts[1])
        await node.mine()
        await result(node, await usdt.transfer(node.accounts[1], 5))
        assert await usdt.balance_of(node.accounts[1]) == 5

    async def test_an_allowance_is_used_up(self, node, usdt) -> None:
        owner, spender = node.accounts[0], node.accounts[3]
        await usdt.send("approve", spender, 10)
        await node.mine()
        assert await usdt.read("allowance", owner, spender) == 10
        await result(node, await usdt.send("transferFrom", owner, node.accounts[1], 4, sender=spender))
        assert (await usdt.read("allowance", owner, spender), await usdt.balance_of(node.accounts[1])) == (6, 4)
        again = await result(node, await usdt.send("transferFrom", owner, node.accounts[1], 7, sender=spender))
        assert again["receipt"]["result"] == "REVERT"
        change = await result(node, await usdt.send("approve", spender, 11))
        assert change["receipt"]["result"] == "REVERT"

    async def test_it_tells_its_name_and_how_much_there_is(self, usdt) -> None:
        told = [await usdt.read(name) for name in ("name", "symbol", "decimals", "totalSupply")]
        assert told == ["USDT", "USDT", 6, 10**12]

    async def test_a_log_that_was_written_before_a_revert_is_not_kept(self, node) -> None:
        token = await node.deploy_token("USDX", 6)
        await token.mint(node.accounts[0], 10)
        await node.mine()
        info = await result(node, await token.send("transferThenRevert", node.accounts[1], 5))
        assert info["receipt"]["result"] == "REVERT"
        assert "log" not in info
        assert await token.balance_of(node.accounts[1]) == 0

    async def test_a_token_can_keep_a_part(self, node) -> None:
        token = await node.deploy("Skimming")
        await token.send("mint", node.accounts[1], 1_000)
        await node.mine()
        info = await result(node, await token.send("transfer", node.accounts[2], 500, sender=node.accounts[1]))
        assert [int(log["data"], 16) for log in info["log"]] == [495, 5]
        assert await token.read("balanceOf", node.accounts[2]) == 495

    async def test_anybody_can_be_called_usdt(self, node) -> None:
        """Only the log's address tells."""
        impostor = await node.deploy("Impostor")
        forged = await impostor.send("forge", node.accounts[0], node.accounts[1], 10**9, 3)
        info = await result(node, forged)
        assert await impostor.read("symbol") == "USDT"
        assert [log["address"] for log in info["log"]] == [digits(impostor.address)] * 3

    async def test_several_transfers_in_one_transaction_keep_their_order(self, node, usdt) -> None:
        splitter = await node.deploy("Splitter")
        await usdt.transfer(splitter.address, 100)
        await node.mine()
        to = node.accounts[1:4]
        sent = await splitter.send("splitTokenSome", usdt.address, to, [1, 2, 3], [False, True, False])
        info = await result(node, sent)
        assert [int(log["data"], 16) for log in info["log"]] == [1, 3]
        assert [each.get("rejected", False) for each in info["internal_transactions"]] == [
            False, False, True, True, False, False,
        ]  # fmt: skip


class TestTrxThatContractsMove:
    async def test_it_arrives_and_is_told_of(self, node, ask: Ask) -> None:
        """A new account is made of it; both sides of the node tell the same."""
        splitter, fresh = await node.deploy("Splitter"), node.new_account("fresh")
        before = {address: node.balance(address) for address in node.accounts}
        to, shares = [node.accounts[1], fresh, node.accounts[2]], [1 * TRX, 2 * TRX, 3 * TRX]
        info = await result(node, await splitter.send("splitNative", to, shares, call_value=7 * TRX))
        moved = [
            (keys.base58(bytes.fromhex(each["transferTo_address"])), each["callValueInfo"], each["note"])
            for each in info["internal_transactions"]
        ]
        assert moved == [
            (address, [{"callValue": sun}], b"call".hex()) for address, sun in zip(to, shares, strict=True)
        ]
        assert node.balance(fresh) == 2 * TRX
        assert node.balance(splitter.address) == TRX
        assert node.balance(node.accounts[0]) == before[node.accounts[0]] - 7 * TRX - info["fee"]
        account = await ask("wallet/getaccount", address=splitter.address, visible=True)
        assert (account["balance"], account["type"]) == (TRX, "Contract")

    async def test_what_was_undone_inside_is_rejected_and_moves_nothing(self, node) -> None:
        splitter = await node.deploy("Splitter")
        to, fails = [node.accounts[1], node.accounts[2]], [False, True]
        before = node.balance(node.accounts[2])
        info = await result(node, await splitter.send("splitNativeSome", to, [5, 6], fails, call_value=11))
        paid = [each for each in info["internal_transactions"] if each["callValueInfo"] != [{}]]
        assert [(each["callValueInfo"][0]["callValue"], each.get("rejected", False)) for each in paid] == [
            (5, False), (6, True),
        ]  # fmt: skip
        assert node.balance(node.accounts[2]) == before
        assert node.balance(splitter.address) == 6

    async def test_a_failed_transactions_value_stays_where_it_was(self, node) -> None:
        splitter = await node.deploy("Splitter")
        before = node.balance(node.accounts[0])
        info = await result(node, await splitter.send("refuse", call_value=5 * TRX))
        assert info["receipt"]["result"] == "REVERT"
        assert node.balance(node.accounts[0]) == before - info["fee"]
        assert node.balance(splitter.address) == 0

    async def test_a_payee_that_never_ends_costs_everything_and_gets_nothing(self, node) -> None:
        trap = await node.deploy("GasTrap")
        before = node.balance(node.accounts[0])
        info = await result(node, await node.trigger(trap.address, b"", call_value=TRX, fee_limit=30 * TRX))
        assert info["receipt"]["result"] == "OUT_OF_ENERGY"
        assert before - node.balance(node.accounts[0]) == info["fee"]
        assert info["receipt"]["energy_fee"] == 30 * TRX
        assert node.balance(trap.address) == 0

    async def test_nothing_is_made_and_nothing_lost(self, node) -> None:
        """All accounts together lose what is burned, and no sun more."""
        splitter = await node.deploy("Splitter")
        everybody = [*node.accounts, splitter.address, node.new_account("a"), node.new_account("b")]
        before, burned = sum(map(node.balance, everybody)), node.chain.state.burned
        for turn in range(8):
            to = [everybody[(turn * 3 + step) % len(everybody)] for step in range(4)]
            values, fails = [turn, 10**turn, 3, 0], [turn % 2 == 0, False, turn % 3 == 0, False]
            await splitter.send("splitNativeSome", to, values, fails, call_value=10**6, sender=node.accounts[turn])
            await splitter.send("nest", to[1], 500, turn % 4, turn % 5)
        await node.mine()
        assert before - sum(map(node.balance, everybody)) == node.chain.state.burned - burned


class TestContractsThatMakeContracts:
    async def test_the_made_contract_can_be_called_and_keeps_what_it_was_given(self, node) -> None:
        maker = await node.deploy("Maker")
        info = await result(node, await maker.send("make", call_value=5 * TRX))
        made = keys.base58(_address(await maker.read("last")))
        (inside,) = info["internal_transactions"]
        assert (inside["note"], inside["callValueInfo"]) == (b"create".hex(), [{"callValue": 5 * TRX}])
        assert node.balance(made) == 5 * TRX
        await result(
            node, await node.trigger(made, load("Made").call_data("pass", bytes.fromhex(digits(maker.address))))
        )
        # The maker has no way to receive, so nothing is passed on.
        assert node.balance(made) == 5 * TRX
        fresh = node.new_account("heir")
        await result(node, await node.trigger(made, load("Made").call_data("pass", bytes.fromhex(digits(fresh)))))
        assert (node.balance(made), node.balance(fresh)) == (0, 5 * TRX)

    async def test_each_made_contract_has_an_address_of_its_own(self, node) -> None:
        """Also after the block in which one was made has been replaced."""
        maker, made = await node.deploy("Maker"), []
        for _ in range(3):
            await result(node, await maker.send("make"))
            made.append(await maker.read("last"))
        assert len(set(made)) == 3
        await node.reorg(1)
        await result(node, await maker.send("make"))
        assert await maker.read("last") == made[-1]

    async def test_what_is_made_and_used_at_once_pays_at_once(self, node) -> None:
        maker, fresh = await node.deploy("Maker"), node.new_account("heir")
        info = await result(node, await maker.send("makeAndPass", fresh, call_value=3 * TRX))
        assert [bytes.fromhex(each["note"]).decode() for each in info["internal_transactions"]] == [
            "create", "call", "call",
        ]  # fmt: skip
        assert node.balance(fresh) == 3 * TRX

    async def test_what_was_made_for_nothing_is_not_there(self, node) -> None:
        maker = await node.deploy("Maker")
        info = await result(node, await maker.send("makeAndFail", call_value=TRX))
        (inside,) = info["internal_transactions"]
        assert inside["rejected"] is True
        assert node.chain.state.contract(bytes.fromhex(inside["transferTo_address"])) is None

    async def test_a_contract_that_ends_while_it_is_made_leaves_what_it_had(self, node) -> None:
        """Its value arrives by a self-destruction."""
        fresh = node.new_account("heir")
        await node.deploy("Bequest", fresh, call_value=4 * TRX)
        assert node.balance(fresh) == 4 * TRX


class TestSolidSide:
    async def test_it_answers_from_the_solid_block(self, node, usdt, ask: Ask) -> None:
        await usdt.transfer(node.accounts[1], 5)
        await node.mine(2)
        values = {
            "owner_address": node.accounts[0], "contract_address": usdt.address, "visible": True,
            "data": usdt.data("balanceOf", node.accounts[1]).hex(),
        }  # fmt: skip
        newest = await ask("wallet/triggerconstantcontract", **values)
        assert int(newest["constant_result"][0], 16) == 5
        early = await ask("walletsolidity/triggerconstantcontract", **values)
        assert early["result"]["code"] == "CONTRACT_VALIDATE_ERROR"
        await node.mine(18)
        solid = await ask("walletsolidity/triggerconstantcontract", **values)
        assert int(solid["constant_result"][0], 16) == 5


def _address(text: str) -> bytes:
    return b"\x41" + bytes.fromhex(text[2:])
