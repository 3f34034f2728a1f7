"""What really happens on a node is found, once, wherever it ends up; what failed there is not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from cambist.plugin import ChainError, Transfer
from cambist_tron_node import Fault, TronNode, TronToken

Connect = Scan = Callable[..., Any]


@pytest.fixture(scope="module")
async def node() -> AsyncIterator[TronNode]:
    async with TronNode() as node:
        yield node


@pytest.fixture(scope="module")
async def usdt(node: TronNode) -> TronToken:
    """Return a token like USDT, of which the first account has a million."""
    token = await node.deploy_token("USDT", 6, usdt_like=True)
    await token.mint(node.accounts[0], 10**12)
    await node.mine()
    return token


@pytest.fixture
def tokens(usdt: TronToken) -> list[dict[str, Any]]:
    return [{"symbol": "USDT", "contract": usdt.address, "decimals": 6}]


def told(transfers: list[Transfer]) -> list[tuple[str, str, str | None, int]]:
    return [(one.tx_id, one.position, one.contract, one.amount) for one in transfers]


async def test_coin_and_tokens_are_found_in_their_blocks(
    node: TronNode, usdt: TronToken, tokens: Any, connect: Connect, scan: Scan, customer: str, other_customer: str
) -> None:
    """To addresses that the network did not know before, and to those that it did."""
    first = node.head + 1
    one = await node.send_trx(customer, 5_000_000)
    two = await usdt.transfer(customer, 6)
    await node.mine()
    three = await node.send_trx(customer, 7)
    other = await usdt.transfer(other_customer, 8)
    await node.mine(20)
    async with connect(node.url, tokens=tokens) as chain:
        result = await scan(chain, first, customer, other_customer)
        assert told(result.transfers) == [
            (one, "native", None, 5_000_000),
            (two, "log:0", usdt.address, 6),
            (three, "native", None, 7),
            (other, "log:0", usdt.address, 8),
        ]
        assert [transfer.height - first for transfer in result.transfers] == [0, 0, 1, 1]
        assert {transfer.sender for transfer in result.transfers} == {node.accounts[0]}
        assert [block.hash for block in result.blocks] == [
            node.block_id(height) for height in range(first, node.head + 1)
        ]
        async with chain.view() as view:
            head = await view.head()
            assert (head.height, head.hash, head.finalized_height) == (
                node.head, node.block_id(node.head), node.solid_height,
            )  # fmt: skip


async def test_what_contracts_pay_out_is_found(
    node: TronNode, usdt: TronToken, tokens: Any, connect: Connect, scan: Scan, customer: str, other_customer: str
) -> None:
    """Coin by its place among the internal transactions, tokens by the log's, but not what was undone."""
    splitter = await node.deploy("Splitter")
    await usdt.mint(splitter.address, 1000)
    await node.mine()
    first = node.head + 1
    both = [customer, other_customer]
    native = await splitter.send("splitNative", both, [10, 20], call_value=30)
    some = await splitter.send("splitNativeSome", both, [1, 2], [True, False], call_value=3)
    token = await splitter.send("splitToken", usdt.address, both, [3, 4])
    await node.mine()
    async with connect(node.url, tokens=tokens) as chain:
        found = (await scan(chain, first, *both)).transfers
    assert [(one.tx_id, one.recipient, one.amount) for one in found] == [
        (native, customer, 10), (native, other_customer, 20), (some, other_customer, 2), (token, customer, 3),
        (token, other_customer, 4),
    ]  # fmt: skip
    assert [one.position for one in found[:2]] == ["trace:0", "trace:1"]
    assert [one.position for one in found[3:]] == ["log:0", "log:1"]
    assert len({(one.tx_id, one.position) for one in found}) == 5


async def test_coin_that_goes_along_with_a_call_is_found(
    node: TronNode, connect: Connect, scan: Scan, customer: str
) -> None:
    """It leaves who calls, and comes to the contract, unless the call failed."""
    splitter, payer = await node.deploy("Splitter"), node.accounts[2]
    first = node.head + 1
    paid = await splitter.send("splitNative", [customer], [30], sender=payer, call_value=30)
    failed = await splitter.send("payOrRevert", customer, 5, True, sender=payer, call_value=5)
    await node.mine()
    assert (node.info(failed) or {}).get("result") == "FAILED"
    async with connect(node.url) as chain:
        for watched in (payer, splitter.address):
            found = (await scan(chain, first, watched)).transfers
            assert [(one.tx_id, one.position, one.sender, one.recipient, one.amount) for one in found][:1] == [
                (paid, "native", payer, splitter.address, 30)
            ]
            assert {one.tx_id for one in found} == {paid}


async def test_what_failed_is_not_found(
    node: TronNode, usdt: TronToken, tokens: Any, connect: Connect, scan: Scan, customer: str
) -> None:
    """Refused by the contract, out of energy, or of somebody else's token."""
    other = await node.deploy_token("USDT", 6, usdt_like=True)
    await other.mint(node.accounts[0], 10**6)
    await node.mine()
    await usdt.refuse(node.accounts[0])
    await node.mine()
    first = node.head + 1
    failed = [
        await usdt.transfer(customer, 5),
        await usdt.transfer(customer, 5, sender=node.accounts[1]),
        await usdt.transfer(customer, 5, fee_limit=10_000),
    ]
    await other.transfer(customer, 5)
    await node.mine()
    await usdt.accept(node.accounts[0])
    await node.mine()
    assert all((node.info(tx_id) or {}).get("result") == "FAILED" for tx_id in failed)
    async with connect(node.url, tokens=tokens) as chain:
        assert (await scan(chain, first, customer)).transfers == []


async def test_a_transfer_keeps_its_identity_when_it_is_mined_again(
    node: TronNode, usdt: TronToken, tokens: Any, connect: Connect, scan: Scan, customer: str
) -> None:
    """And one that is gone is not found any more."""
    await node.mine(20)
    first = node.head + 1
    kept, gone = await usdt.transfer(customer, 5), await node.send_trx(customer, 6)
    await node.mine(2)
    async with connect(node.url, tokens=tokens) as chain:
        before = (await scan(chain, first, customer)).transfers
        replaced = node.block_id(first)
        await node.reorg(2, keep=[kept])
        async with chain.view() as view:
            block = await view.block(first)
            assert block.hash == node.block_id(first) != replaced
        (after,) = (await scan(chain, first, customer)).transfers
    assert [one.tx_id for one in before] == [kept, gone]
    assert (after.tx_id, after.position, after.amount) == (kept, "log:0", 5)
    assert (after.height, after.block_hash) != (before[0].height, before[0].block_hash)


async def test_the_first_block_can_be_scanned(node: TronNode, connect: Connect, scan: Scan, customer: str) -> None:
    """Nobody sent what it holds."""
    async with connect(node.url, span_max=1000, genesis_id=node.block_id(0)) as chain:
        result = await scan(chain, 0, customer)
    assert (result.blocks[0].height, result.blocks[0].hash) == (0, node.block_id(0))


@pytest.mark.parametrize(
    "fault",
    [
        Fault.TIMEOUT, Fault.RESET, Fault.HTTP_403, Fault.HTTP_429, Fault.HTTP_500, Fault.HTTP_503, Fault.HTML,
        Fault.TRUNCATED, Fault.RATE_LIMITED, Fault.LITE_NODE, Fault.NO_BLOCK, Fault.NO_INFOS,
        Fault.EMPTY_INFOS, Fault.SHORT_INFOS, Fault.OTHER_INFOS, Fault.OTHER_FORK,
    ],
)  # fmt: skip
async def test_a_node_that_fails_is_an_error_and_never_an_empty_block(
    node: TronNode, connect: Connect, scan: Scan, customer: str, fault: Fault
) -> None:
    """Whatever it does; and the next endpoint finds what is there."""
    first = node.head + 1
    await node.send_trx(customer, 5)
    await node.mine(3)
    # Only who says nothing is waited for; what answers may take its time on a busy machine.
    timeout_ms = 1_000 if fault is Fault.TIMEOUT else 30_000
    async with node.face(fault) as face:
        async with connect(face.url, request_timeout_ms=timeout_ms) as chain:
            with pytest.raises(ChainError):
                await scan(chain, first, customer)
        async with connect(face.url, node.url, request_timeout_ms=timeout_ms) as chain:
            for _ in range(3):
                try:
                    found = (await scan(chain, first, customer)).transfers
                except ChainError:
                    continue
                assert [one.amount for one in found] == [5]
                break
            else:
                pytest.fail("the other endpoint was not asked")


async def test_nothing_is_lost_on_a_node_that_often_fails(
    node: TronNode, usdt: TronToken, tokens: Any, connect: Connect, scan: Scan, customer: str
) -> None:
    """One answer in twenty is empty or short, one request in twenty is refused."""
    first = node.head + 1
    for amount in range(1, 31):
        await (usdt.transfer(customer, amount) if amount % 2 else node.send_trx(customer, amount))
        await node.mine()
    async with node.face(Fault.EMPTY_INFOS, Fault.SHORT_INFOS, Fault.NO_BLOCK, Fault.RATE_LIMITED) as face:
        face.rate = 0.05
        async with connect(face.url, tokens=tokens) as chain:
            for _ in range(300):
                chain.pool.endpoints[0].retry_at = 0.0
                try:
                    found = (await scan(chain, first, customer)).transfers
                except ChainError:
                    continue
                break
            else:
                pytest.fail("no answer came")
    assert [one.amount for one in found] == list(range(1, 31))


async def test_an_api_key_goes_with_every_question(node: TronNode, connect: Connect, scan: Scan) -> None:
    """In the header that providers expect."""
    before = node.api_keys.total()
    async with connect(node.url, api_keys=["a-key-of-ours"]) as chain:
        await scan(chain, node.head)
    assert node.api_keys["a-key-of-ours"] == node.api_keys.total() - before > 0
