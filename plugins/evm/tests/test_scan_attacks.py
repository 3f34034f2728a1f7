"""What must be taken for a deposit on a real node, and what must not: each attack, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cambist.plugin import Span, Transfer
from cambist_evm.testing import Anvil, Contract

Connect = Scan = Callable[..., Any]


def told(transfers: list[Transfer]) -> list[tuple[str, str, int]]:
    return [(transfer.position, transfer.recipient, transfer.amount) for transfer in transfers]


async def test_an_impostor_with_the_same_symbol_is_not_taken(
    node: Anvil, token: Contract, connect: Connect, scan: Scan, customer: str
) -> None:
    """A thousand forged logs in four transactions, beside one real transfer."""
    impostor = await node.deploy("Impostor")
    first = await node.height() + 1
    for _ in range(4):
        await impostor.send("forge", node.accounts[1], customer, 10**30, 250)
    await token.send("transfer", customer, 5)
    async with connect(node.url, token=token) as chain:
        assert told((await scan(chain, first, customer)).transfers) == [("log:0", customer, 5)]


async def test_a_token_that_fails_in_silence_pays_nothing(
    node: Anvil, connect: Connect, scan: Scan, customer: str
) -> None:
    """It is registered, returns false, and its transaction succeeds."""
    silent = await node.deploy("Silent")
    first = await node.height() + 1
    tx_id = await silent.send("transfer", customer, 5)
    assert (await node.receipt(tx_id))["status"] == "0x1"
    async with connect(node.url, token=silent) as chain:
        assert told((await scan(chain, first, customer)).transfers) == []


async def test_events_that_only_look_like_a_transfer_are_not_taken(
    node: Anvil, connect: Connect, scan: Scan, customer: str
) -> None:
    """ERC-721's, whose number is a fourth topic, and one without indexed fields, from a registered contract."""
    lookalike = await node.deploy("Lookalike")
    first = await node.height() + 1
    await lookalike.send("transferId", customer, 77)
    await lookalike.send("transferUnindexed", customer, 77)
    async with connect(node.url, token=lookalike) as chain:
        assert told((await scan(chain, first, customer)).transfers) == []


async def test_a_token_without_return_value_is_taken(node: Anvil, connect: Connect, scan: Scan, customer: str) -> None:
    """As mainnet's USDT is."""
    usdt = await node.deploy("UsdtLike")
    await usdt.send("mint", node.accounts[0], 100)
    first = await node.height() + 1
    await usdt.send("transfer", customer, 60)
    async with connect(node.url, token=usdt) as chain:
        assert told((await scan(chain, first, customer)).transfers) == [("log:0", customer, 60)]


async def test_reverted_transactions_pay_nothing(
    node: Anvil, token: Contract, splitter: Contract, connect: Connect, scan: Scan, customer: str
) -> None:
    """A token transfer that reverts after its log, and a contract that refuses value."""
    first = await node.height() + 1
    reverted = await token.send("transferThenRevert", customer, 5)
    refused = await node.send(splitter.address, data=splitter.data("refuse"), value=9)
    assert {(await node.receipt(tx_id))["status"] for tx_id in (reverted, refused)} == {"0x0"}
    async with connect(node.url, token=token) as chain:
        assert told((await scan(chain, first, customer, splitter.address)).transfers) == []
        assert (await chain.transaction(reverted)).state == "reverted"


async def test_zero_value_spam_is_not_taken(
    node: Anvil, token: Contract, connect: Connect, scan: Scan, customer: str
) -> None:
    """Address poisoning: transferFrom of nothing needs no allowance, and a transfer of no wei costs only gas."""
    first = await node.height() + 1
    for _ in range(5):
        await token.send("transferFrom", node.accounts[5], customer, 0, sender=node.accounts[6])
    await node.send_native(customer, 0)
    async with connect(node.url, token=token) as chain:
        assert told((await scan(chain, first, customer)).transfers) == []


async def test_what_an_address_sends_to_itself_is_not_taken(
    node: Anvil, token: Contract, connect: Connect, scan: Scan
) -> None:
    """It changes nothing that the address holds, so crediting it would invent money."""
    own = node.accounts[0]
    first = await node.height() + 1
    await token.send("transfer", own, 5)
    await node.send_native(own, 5)
    async with connect(node.url, token=token) as chain:
        assert told((await scan(chain, first, own)).transfers) == []


async def test_several_payments_in_one_transaction_are_all_taken(
    node: Anvil, token: Contract, splitter: Contract, connect: Connect, scan: Scan, customer: str, other_customer: str
) -> None:
    """To two customers and twice to one of them, in tokens and in native coin, some reverted inside."""
    await token.send("mint", splitter.address, 1000)
    first = await node.height() + 1
    to = [customer, other_customer, customer]
    tokens = await splitter.send("splitToken", token.address, to, [1, 2, 3])
    some = await splitter.send("splitTokenSome", token.address, to, [4, 5, 6], [False, True, False])
    native = await splitter.send("splitNative", to, [7, 8, 9], value=24)
    async with connect(node.url, token=token) as chain:
        transfers = (await scan(chain, first, customer, other_customer)).transfers
    assert [(one.tx_id, one.position, one.recipient, one.amount) for one in transfers] == [
        (tokens, "log:0", customer, 1),
        (tokens, "log:1", other_customer, 2),
        (tokens, "log:2", customer, 3),
        (some, "log:0", customer, 4),
        (some, "log:1", customer, 6),
        (native, "trace:0", customer, 7),
        (native, "trace:1", other_customer, 8),
        (native, "trace:2", customer, 9),
    ]


@pytest.mark.parametrize("tracer", ["debug", "trace"])
async def test_only_surviving_internal_transfers_are_taken(
    node: Anvil, splitter: Contract, connect: Connect, scan: Scan, customer: str, tracer: str
) -> None:
    """A payment at the bottom of 1 to 8 nested calls, of which none, or one at each height, reverts."""
    first = await node.height() + 1
    expected = []
    for depth in range(1, 9):
        for revert_at in (99, *range(depth)):
            amount = depth * 100 + revert_at
            tx_id = await splitter.send("nest", customer, amount, depth, revert_at, value=amount)
            if revert_at == 99:
                expected.append((tx_id, "trace:0", amount))
    async with connect(node.url, trace=tracer) as chain:
        transfers = []
        height = await node.height()
        for start in range(first, height + 1, 50):
            async with chain.view() as view:
                span = Span(first=start, last=min(start + 49, height))
                found = await view.scan(span, {bytes.fromhex(customer[2:])})
                transfers += found.transfers
        assert [(one.tx_id, one.position, one.amount) for one in transfers] == expected
        held = await chain.balance(customer, chain.info.native)
    assert held == sum(amount for *_, amount in expected)


async def test_value_left_behind_by_selfdestruct_is_taken(
    node: Anvil, connect: Connect, scan: Scan, customer: str
) -> None:
    """No call carries it, and no log tells of it."""
    first = await node.height() + 1
    await node.deploy("Bequest", customer, value=12)
    async with connect(node.url) as chain:
        assert told((await scan(chain, first, customer)).transfers) == [("trace:0", customer, 12)]


async def test_without_traces_only_what_is_certain_is_taken(
    node: Anvil, splitter: Contract, connect: Connect, scan: Scan, customer: str
) -> None:
    """Internal transfers are left to the balance check, plain ones are taken."""
    first = await node.height() + 1
    await splitter.send("splitNative", [customer], [7], value=7)
    await node.send_native(customer, 8)
    async with connect(node.url, trace="off") as chain:
        assert told((await scan(chain, first, customer)).transfers) == [("native", customer, 8)]


async def test_a_contract_that_is_watched_receives_from_plain_transfers(
    node: Anvil, splitter: Contract, connect: Connect, scan: Scan
) -> None:
    """A top-level transfer is told once, by the transaction and not by its trace as well."""
    first = await node.height() + 1
    await node.send(splitter.address, value=31)
    async with connect(node.url) as chain:
        assert told((await scan(chain, first, splitter.address)).transfers) == [("native", splitter.address, 31)]


async def test_a_moved_transaction_keeps_the_position_of_its_transfers(
    node: Anvil, token: Contract, connect: Connect, scan: Scan, customer: str
) -> None:
    """After a reorg it stands behind another transaction, so that the block-wide log index changes."""
    await token.send("mint", node.accounts[3], 100)
    paid = await token.send("transfer", customer, 50, sender=node.accounts[3])
    signed = await node.raw(paid)
    other = {"from": node.accounts[0], "to": token.address, "data": token.data("transfer", customer, 1)}
    async with connect(node.url, token=token) as chain:
        before = (await scan(chain, await node.height(), customer)).transfers
        await node.reorg(1, [({**other, "gas": hex(100_000)}, 0), (signed, 0)])
        after = (await scan(chain, await node.height(), customer)).transfers
    assert [(one.tx_id, one.position) for one in before] == [(paid, "log:0")]
    assert [(one.position, one.amount) for one in after] == [("log:0", 1), ("log:0", 50)]
    assert after[1].tx_id == paid
    assert after[1].block_hash != before[0].block_hash
