"""What the local node takes and refuses, in TRON's order, with its codes and its words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cambist_tron_node import NoMachine, Parameters, TronNode, keys, proto
from cambist_tron_node.refusals import RefusedError
from cambist_tron_node.transactions import TRANSFER, Transaction, build, signed

from .conftest import Ask

TRX = 1_000_000


@pytest.fixture
def transfer(node: TronNode) -> Callable[..., Transaction]:
    """Return a function that builds a signed transfer with anything about it changed."""

    def make(*signers: bytes, to: str = "", sun: int = TRX, owner: str = "", **raw: Any) -> Transaction:
        head = node.chain.blocks.head
        owner = owner or node.accounts[0]
        held = proto.new(
            TRANSFER,
            owner_address=keys.address_bytes(owner),
            to_address=keys.address_bytes(to or node.accounts[1]),
            amount=sun,
        )
        fields = {
            "ref_block_bytes": head.id[6:8],
            "ref_block_hash": head.id[8:16],
            "expiration": head.timestamp_ms + 60_000,
            "timestamp": node.chain.unique_ms(),
            **raw,
        }
        return signed(build(TRANSFER, held, **fields), *(signers or [node.keys[owner]]))

    return make


async def refused(ask: Ask, transaction: Transaction) -> tuple[str, str]:
    answer = await ask("wallet/broadcasttransaction", **transaction.to_json())
    assert "result" not in answer
    assert answer["txid"] == transaction.id.hex()
    return answer["code"], bytes.fromhex(answer["message"]).decode()


async def test_a_signed_transfer_waits_and_then_stands_in_a_block(node: TronNode, ask: Ask, transfer) -> None:
    transaction = transfer()
    answer = await ask("wallet/broadcasttransaction", **transaction.to_json())
    assert answer == {"result": True, "txid": transaction.id.hex()}
    assert node.pending() == [transaction.id.hex()]
    await node.mine()
    info = await ask("wallet/gettransactioninfobyid", value=transaction.id.hex())
    assert info["blockNumber"] == node.head


async def test_bytes_are_taken_as_well(node: TronNode, ask: Ask, transfer) -> None:
    transaction = transfer()
    answer = await ask("wallet/broadcasthex", transaction=transaction.proto.SerializeToString().hex())
    assert (answer["result"], answer["code"], answer["txid"]) == (True, "SUCCESS", transaction.id.hex())


async def test_what_the_client_says_its_bytes_are_does_not_count(node: TronNode, ask: Ask, transfer) -> None:
    transaction = transfer()
    answer = await ask("wallet/broadcasttransaction", **{**transaction.to_json(), "raw_data_hex": "00", "txID": "11"})
    assert answer == {"result": True, "txid": transaction.id.hex()}


async def test_words_are_plain_where_they_are_asked_to_be_visible(ask: Ask, transfer) -> None:
    transaction = transfer(sun=0)
    answer = await ask("wallet/broadcasttransaction", **transaction.to_json(visible=True), visible=True)
    assert answer["message"] == "Contract validate error : Amount must be greater than 0."


async def test_who_has_not_the_key_has_no_say(node: TronNode, ask: Ask, transfer) -> None:
    stranger = keys.named_key("stranger")
    code, words = await refused(ask, transfer(stranger))
    assert code == "SIGERROR"
    assert "is signed by" in words
    assert "not contained of permission" in words
    own = node.keys[node.accounts[0]]
    code, words = await refused(ask, transfer(own, own))
    assert code == "SIGERROR"
    assert "Signature count is 2 more than key counts of permission : 1" in words


async def test_no_signature_or_a_short_one_is_refused(ask: Ask, transfer) -> None:
    bare = transfer()
    del bare.proto.signature[:]
    assert await refused(ask, Transaction(bare.proto)) == ("SIGERROR", "Validate signature error: miss sig or contract")
    bare.proto.signature.append(b"\1" * 64)
    assert await refused(ask, Transaction(bare.proto)) == ("SIGERROR", "Validate signature error: Signature size is 64")


@pytest.mark.parametrize("recovery", [0, 27])
async def test_both_spellings_of_the_recovery_id_are_taken(ask: Ask, transfer, recovery: int) -> None:
    transaction = transfer()
    signature = transaction.proto.signature[0]
    transaction.proto.signature[0] = signature[:64] + bytes([signature[64] + recovery])
    answer = await ask("wallet/broadcasttransaction", **transaction.to_json())
    assert answer.get("result") is True


async def test_the_same_transaction_is_known_while_it_waits_and_ever_after(node: TronNode, ask: Ask, transfer) -> None:
    transaction = transfer()
    await ask("wallet/broadcasttransaction", **transaction.to_json())
    assert await refused(ask, transaction) == ("DUP_TRANSACTION_ERROR", "Dup transaction.")
    await node.mine(3)
    assert await refused(ask, transaction) == ("DUP_TRANSACTION_ERROR", "Dup transaction.")


async def test_a_reference_to_another_branch_is_refused(node: TronNode, ask: Ask, transfer) -> None:
    await node.mine(5)
    transaction = transfer()
    assert await refused(ask, transfer(ref_block_hash=b"12345678")) == ("TAPOS_ERROR", "Tapos check error.")
    assert await refused(ask, transfer(ref_block_bytes=b"\xff\xff")) == ("TAPOS_ERROR", "Tapos check error.")
    await node.reorg(1)
    assert await refused(ask, transaction) == ("TAPOS_ERROR", "Tapos check error.")


async def test_a_transaction_has_its_time(node: TronNode, ask: Ask, transfer) -> None:
    now_ms, expired = node.chain.blocks.head.timestamp_ms, ("TRANSACTION_EXPIRATION_ERROR", "Transaction expired")
    assert await refused(ask, transfer(expiration=now_ms + 2_999)) == expired
    assert await refused(ask, transfer(expiration=now_ms + 86_400_001)) == expired
    assert (await ask("wallet/broadcasttransaction", **transfer(expiration=now_ms + 3_000).to_json()))["result"]
    assert (await ask("wallet/broadcasttransaction", **transfer(expiration=now_ms + 86_400_000).to_json()))["result"]


async def test_what_expires_while_it_is_kept_out_of_blocks_is_gone(node: TronNode, transfer) -> None:
    transaction = transfer(expiration=node.chain.blocks.head.timestamp_ms + 9_000)
    await node.chain.broadcast(transaction)
    node.hold_back(transaction.id.hex())
    await node.mine(2)
    assert node.pending() == [transaction.id.hex()]
    await node.mine(2)
    node.release()
    await node.mine()
    assert node.pending() == []
    assert node.info(transaction.id.hex()) is None


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"sun": 0}, "Amount must be greater than 0."),
        ({"sun": -5}, "Amount must be greater than 0."),
        ({"sun": 1_000_001 * TRX}, "Validate TransferContract error, balance is not sufficient."),
        ({"to": "TW5jbdnnjWaMAZrhbKaYXnj5BrHNUhvaym"}, "Cannot transfer TRX to yourself."),
    ],
)
async def test_a_transfer_that_cannot_be_is_refused(ask: Ask, transfer, changed, words: str) -> None:
    assert await refused(ask, transfer(**changed)) == ("CONTRACT_VALIDATE_ERROR", f"Contract validate error : {words}")


async def test_an_account_that_is_not_activated_cannot_send(node: TronNode, ask: Ask, transfer) -> None:
    nobody = node.new_account("nobody")
    code, words = await refused(ask, transfer(owner=nobody))
    assert (code, words) == ("CONTRACT_VALIDATE_ERROR", f"Contract validate error : account [{nobody}] does not exist")


async def test_who_cannot_pay_for_the_bytes_is_refused(node: TronNode, ask: Ask, transfer) -> None:
    poor = node.new_account("poor")
    await node.give(poor, 400_000)
    for _ in range(2):  # the day's free bandwidth is enough for two
        assert (await ask("wallet/broadcasttransaction", **transfer(owner=poor, sun=100_000).to_json()))["result"]
    assert await refused(ask, transfer(owner=poor, sun=1)) == (
        "BANDWITH_ERROR",
        "Account resource insufficient error.",
    )


async def test_what_waits_counts_when_the_next_comes(node: TronNode, ask: Ask, transfer) -> None:
    poor = node.new_account("poor")
    await node.give(poor, 5 * TRX)
    assert (await ask("wallet/broadcasttransaction", **transfer(owner=poor, sun=3 * TRX).to_json()))["result"]
    code, _ = await refused(ask, transfer(owner=poor, sun=3 * TRX))
    assert code == "CONTRACT_VALIDATE_ERROR"
    assert node.balance(poor) == 2 * TRX  # the node's full side tells of what waits
    solid = await ask("walletsolidity/getaccount", address=keys.address_bytes(poor).hex())
    assert solid == {}


async def test_a_transaction_may_have_half_a_megabyte(node: TronNode, transfer) -> None:
    with pytest.raises(RefusedError) as error:
        await node.chain.broadcast(transfer(data=b"x" * 512_000))
    assert error.value.code == "TOO_BIG_TRANSACTION_ERROR"
    assert error.value.message.startswith("Too big transaction with result, TxId ")


async def test_a_node_with_too_much_to_do_says_so() -> None:
    async with TronNode(machine=NoMachine(), parameters=Parameters(pending_max=2)) as node:
        for _ in range(2):
            await node.send_trx(node.accounts[1], TRX)
        with pytest.raises(RefusedError, match="SERVER_BUSY"):
            await node.send_trx(node.accounts[1], TRX)


async def test_a_node_that_was_started_again_knows_blocks_and_nothing_of_what_waited(node: TronNode) -> None:
    kept = await node.send_trx(node.accounts[1], TRX)
    await node.mine()
    lost = await node.send_trx(node.accounts[1], TRX)
    had = node.balance(node.accounts[1])
    await node.forget_pool()
    assert node.balance(node.accounts[1]) == had - TRX
    await node.mine()
    assert node.info(kept) is not None
    assert node.info(lost) is None


async def test_full_blocks_leave_the_rest_waiting_for_a_minute() -> None:
    now_ms = [1_700_000_000_000]
    async with TronNode(
        machine=NoMachine(), parameters=Parameters(block_bytes_max=500), clock_ms=lambda: now_ms[0]
    ) as node:
        sent = [await node.send_trx(node.accounts[1], TRX) for _ in range(4)]
        await node.mine()
        assert node.pending() == sent[2:]
        now_ms[0] += 61_000
        await node.mine(0)
        assert node.pending() == []
