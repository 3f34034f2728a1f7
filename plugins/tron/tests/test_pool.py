"""Several endpoints: failover, those that lag, those that lie, and quorums."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from cambist.plugin import Chain, ChainError, ChainUnavailableError, InconsistentChainError
from cambist_chainkit.pool import EndpointPool
from cambist_tron.networks import MAINNET, NILE

from .canned import CannedNode
from .forging import USDT, Mined, chain, info, inner, log, trx

Connect = Scan = Callable[..., Any]


@pytest.fixture
def mined(payer: str, customer: str) -> list[Mined]:
    """Return forty blocks, in each of which the customer is paid its number."""
    return chain(*([(one, info(one))] for number in range(1, 41) for one in [trx(payer, customer, number)]))


@pytest.fixture
async def nodes(mined: list[Mined]) -> AsyncIterator[list[CannedNode]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(CannedNode(mined)) for _ in range(3)]


def urls(nodes: list[CannedNode]) -> list[str]:
    return [node.url for node in nodes]


def pool_of(chain: Any) -> EndpointPool[Any]:
    pool: EndpointPool[Any] = chain.pool
    return pool


async def read(scan: Scan, chain: Chain, first: int, *addresses: str) -> list[int]:
    """Scan as the gateway does: after an error, look again."""
    for _ in range(1000):
        try:
            return [one.amount for one in (await scan(chain, first, *addresses)).transfers]
        except ChainError:
            await asyncio.sleep(0.01)
    pytest.fail("no endpoint answered")


@pytest.mark.parametrize(
    "path, answer",
    [
        ("wallet/getnodeinfo", {"status": 500, "text": ""}),
        ("wallet/getblockbylimitnext", {"Error": "lack of computing resources"}),
        ("wallet/gettransactioninfobyblocknum", {}),
        ("wallet/gettransactioninfobyblocknum", "<html>"),
        ("wallet/gettransactioninfobyblocknum", "this API is closed because this node is a lite fullnode"),
    ],
)
async def test_another_endpoint_takes_over(
    nodes: list[CannedNode], connect: Connect, scan: Scan, customer: str, path: str, answer: Any
) -> None:
    """At once, and the failing one is shown as such."""
    nodes[0].answers[path] = answer
    async with connect(*urls(nodes)) as chain:
        assert await read(scan, chain, 38, customer) == [38, 39, 40]
        health = chain.endpoints()
        assert health[0].healthy
        assert not health[-1].healthy
        assert health[-1].last_error


async def test_all_answers_of_a_view_come_from_one_endpoint(
    nodes: list[CannedNode], connect: Connect, scan: Scan, customer: str
) -> None:
    """So that they can be checked against each other."""
    async with connect(*urls(nodes)) as chain:
        await scan(chain, 38, customer)
    assert sum(node.calls["wallet/gettransactioninfobyblocknum"] > 0 for node in nodes) == 1


async def test_an_endpoint_that_is_left_behind_is_set_aside_until_it_catches_up(
    nodes: list[CannedNode], connect: Connect
) -> None:
    """Its head is frozen while the others move on."""
    newest = [nodes[0].blocks.pop(number) for number in range(31, 41)]
    async with connect(*urls(nodes)) as chain:
        async with chain.view() as view:
            assert (await view.head()).height == 40
        behind = chain.endpoints()[-1]
        assert (behind.healthy, behind.last_error) == (False, f"{behind.name} is 10 blocks behind")
        nodes[0].blocks |= dict(enumerate(newest, start=31))
        await pool_of(chain).survey()
        assert all(one.healthy for one in chain.endpoints())


async def test_an_endpoint_of_another_network_is_never_read_from(
    nodes: list[CannedNode], connect: Connect, customer: str
) -> None:
    """Not even a balance: its first block is another."""
    first = {"blockID": NILE.genesis_id, "block_header": {"raw_data": {"parentHash": "00" * 32}}}
    nodes[0].answers["wallet/getblock"] = first
    async with connect(nodes[0].url, network="mainnet") as chain:
        with pytest.raises(ChainUnavailableError, match="does not serve TRON: its first block is another"):
            async with chain.view() as view:
                await view.head()
        with pytest.raises(ChainUnavailableError):
            await chain.balance(customer, chain.info.native)
        assert "does not serve TRON" in (await chain.problems())[0]
    assert nodes[0].calls.keys() == {"wallet/getblock"}


async def test_the_right_network_is_asked_for_once(nodes: list[CannedNode], connect: Connect) -> None:
    """By the first block, which has no number of its own."""
    first = {"blockID": MAINNET.genesis_id, "block_header": {"raw_data": {"parentHash": "00" * 32}}}
    nodes[0].answers["wallet/getblock"] = first
    async with connect(nodes[0].url, network="mainnet") as chain:
        for _ in range(3):
            async with chain.view() as view:
                assert (await view.head()).height == 40
    assert nodes[0].calls["wallet/getblock"] == 1


async def test_solid_blocks_are_told_by_the_same_node_and_never_above_its_head(
    nodes: list[CannedNode], connect: Connect
) -> None:
    """Behind one address may be several nodes."""
    node = nodes[0]
    place = node.answer("getnodeinfo", {}, solid=False)["block"]
    async with connect(node.url) as chain, chain.view() as view:
        assert (await view.head()).finalized_height == 22
        node.answers["wallet/getnodeinfo"] = {"block": place, "solidityBlock": place}
        assert (await view.head()).finalized_height == 40
        node.answers["wallet/getnodeinfo"] = lambda _: {
            "block": f"Num:39,ID:{node.blocks[39]['blockID']}",
            "solidityBlock": place,
        }
        head = await view.head()
        assert (head.height, head.hash, head.finalized_height) == (39, node.blocks[39]["blockID"], 39)


def forked(mined: list[Mined], payer: str, customer: str, height: int) -> list[Mined]:
    """Return the chain as another one goes on from a height."""
    other = [trx(payer, customer, 1000 + number) for number in range(height, 41)]
    kept = mined[: height - 1]
    return kept + chain(*([(one, info(one))] for one in other), first=height, parent=kept[-1][0]["blockID"])


async def test_an_endpoint_on_another_chain_of_blocks_is_set_aside(
    nodes: list[CannedNode], mined: list[Mined], connect: Connect, scan: Scan, payer: str, customer: str
) -> None:
    """Two against one, for as long as they disagree."""
    async with CannedNode(forked(mined, payer, customer, 5)) as liar, connect(liar.url, *urls(nodes[:2])) as chain:
        assert await read(scan, chain, 39, customer) == [39, 40]
        assert "another block" in str(chain.endpoints()[-1].last_error)
        pool_of(chain).endpoints[0].retry_at = 0.0
        assert pool_of(chain).endpoints[0] not in pool_of(chain).usable()
        liar.blocks, liar.infos = nodes[0].blocks, nodes[0].infos
        await pool_of(chain).survey()
        assert pool_of(chain).endpoints[0] in pool_of(chain).usable()


async def test_two_endpoints_that_disagree_stop_the_chain(
    nodes: list[CannedNode], mined: list[Mined], connect: Connect, payer: str, customer: str
) -> None:
    """Nobody can tell who lies, and crediting a lie is worse than waiting."""
    async with CannedNode(forked(mined, payer, customer, 5)) as liar, connect(liar.url, nodes[0].url) as chain:
        with pytest.raises(ChainUnavailableError, match="no majority"):
            async with chain.view() as view:
                await view.head()


@pytest.mark.parametrize("lie", ["invented", "hidden", "internal"])
@pytest.mark.parametrize("liar", [0, 1, 2])
async def test_a_quorum_finds_what_is_there_whoever_lies(
    nodes: list[CannedNode], connect: Connect, scan: Scan, payer: str, customer: str, liar: int, lie: str
) -> None:
    """One of three invents a deposit or hides one, without contradicting itself."""
    node = nodes[liar]
    block, infos = node.blocks[40], node.infos[40]
    if lie == "internal":
        # The header proves nothing about results: this lie stands in the very same block.
        ran = {"receipt": {"result": "SUCCESS"}, "internal_transactions": [inner(payer, customer, 10**12)]}
        infos = [{**infos[0], **ran}]
    else:
        one = trx(payer, customer, 10**12)
        content = [(one, info(one))] if lie == "invented" else []
        ((block, infos),) = chain(content, first=40, parent=node.blocks[39]["blockID"])
    node.blocks, node.infos = {**node.blocks, 40: block}, {**node.infos, 40: infos}
    async with connect(*urls(nodes), quorum=2) as connected:
        for _ in range(3):
            assert await read(scan, connected, 39, customer) == [39, 40]


async def test_without_enough_honest_endpoints_a_quorum_stops(
    nodes: list[CannedNode], connect: Connect, scan: Scan, payer: str, customer: str
) -> None:
    """One of two lies: nothing is credited."""
    false = {**nodes[1].infos[40][0], "receipt": {"result": "SUCCESS"}, "log": [log(payer, customer, 5)]}
    nodes[1].infos = {**nodes[1].infos, 40: [false]}
    tokens = [{"symbol": "USDT", "contract": USDT, "decimals": 6}]
    async with connect(*urls(nodes[:2]), quorum=2, tokens=tokens) as connected:
        for _ in range(5):
            with pytest.raises(ChainError):
                await scan(connected, 39, customer)


async def test_a_quorum_also_guards_the_reorg_check(
    nodes: list[CannedNode], mined: list[Mined], connect: Connect, payer: str, customer: str
) -> None:
    """One endpoint alone cannot make the gateway take deposits back."""
    told = []
    async with (
        CannedNode(forked(mined, payer, customer, 38)) as liar,
        connect(liar.url, *urls(nodes[:2]), quorum=2) as connected,
    ):
        for _ in range(10):
            try:
                async with connected.view() as view:
                    told.append((await view.block(39)).hash)
            except (InconsistentChainError, ChainUnavailableError):
                await asyncio.sleep(0.01)
    assert set(told) == {nodes[0].blocks[39]["blockID"]}


@pytest.mark.slow
async def test_an_endpoint_that_hangs_does_not_slow_the_others_down(nodes: list[CannedNode], connect: Connect) -> None:
    """Once it is known to hang, looks go elsewhere at once."""
    async with connect(*urls(nodes), request_timeout_ms=1_500) as chain:
        async with chain.view() as view:
            await view.head()
        nodes[0].delay_s = 5.0
        with pytest.raises(ChainUnavailableError):
            async with chain.view() as view:
                await view.head()
        asked = nodes[0].calls.total()
        for _ in range(5):
            async with chain.view() as view:
                await view.head()
        assert nodes[0].calls.total() == asked
