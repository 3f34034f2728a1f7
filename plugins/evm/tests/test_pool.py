"""Several endpoints: failover, those that lag, those that lie, and quorums."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest

from cambist.plugin import Chain, ChainError, ChainUnavailableError
from cambist_chainkit.pool import EndpointPool
from cambist_evm.testing import Anvil, Contract, Fault, FaultyProxy

Connect = Scan = Callable[..., Any]


@pytest.fixture
async def proxies(node: Anvil) -> AsyncIterator[list[FaultyProxy]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(FaultyProxy(node.url)) for _ in range(3)]


def urls(proxies: list[FaultyProxy]) -> list[str]:
    return [proxy.url for proxy in proxies]


def pool_of(chain: Any) -> EndpointPool:
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
    "fault", [Fault.TIMEOUT, Fault.HTTP_500, Fault.HTML, Fault.EMPTY_RECEIPTS, Fault.WRONG_CHAIN_ID, Fault.WRONG_ID]
)
async def test_another_endpoint_takes_over(
    node: Anvil, token: Contract, proxies: list[FaultyProxy], connect: Connect, scan: Scan, customer: str, fault: Fault
) -> None:
    """At once, and the failing one is shown as such."""
    first = await node.height() + 1
    await token.send("transfer", customer, 5)
    proxies[0].faults = {fault}
    timeout_ms = 1_000 if fault is Fault.TIMEOUT else 30_000
    async with connect(*urls(proxies), token=token, request_timeout_ms=timeout_ms) as chain:
        assert await read(scan, chain, first, customer) == [5]
        health = chain.endpoints()
        assert health[0].healthy
        assert not health[-1].healthy
        assert health[-1].last_error


async def test_another_endpoint_takes_over_from_one_that_finds_every_question_too_large(
    node: Anvil, token: Contract, proxies: list[FaultyProxy], connect: Connect, scan: Scan, customer: str
) -> None:
    """To ask for fewer blocks helps against spans that are too wide, and there is nothing less than a head."""
    first = await node.height() + 1
    await token.send("transfer", customer, 5)
    async with connect(*urls(proxies[:2]), token=token) as chain:
        assert await read(scan, chain, first, customer) == [5]
        proxies[0].faults = {Fault.HTTP_413}
        assert await read(scan, chain, first, customer) == [5]
        assert "413" in str(chain.endpoints()[-1].last_error)


@pytest.mark.parametrize("many", [1, 2])
async def test_an_endpoint_that_finds_every_question_too_large_from_the_start_is_shown_as_such(
    proxies: list[FaultyProxy], connect: Connect, many: int
) -> None:
    """It is asked which chain it serves before anything else, alone or in comparison: that is no question of blocks."""
    proxies[0].faults = {Fault.HTTP_413}
    async with connect(*urls(proxies[:many])) as chain:
        with suppress(ChainUnavailableError):
            async with chain.view() as view:
                await view.head()
        (refusing,) = [one for one in chain.endpoints() if one.position == 0]
        assert not refusing.healthy
        assert "413" in str(refusing.last_error)


async def test_all_answers_of_a_view_come_from_one_endpoint(
    node: Anvil, token: Contract, proxies: list[FaultyProxy], connect: Connect, scan: Scan, customer: str
) -> None:
    """So that they can be checked against each other."""
    await token.send("transfer", customer, 5)
    async with connect(*urls(proxies), token=token) as chain:
        await scan(chain, await node.height(), customer)
        assert sum(proxy.calls["eth_getBlockReceipts"] > 0 for proxy in proxies) == 1


async def test_a_look_at_a_chain_that_stands_still_asks_for_nothing_but_the_head(
    node: Anvil, proxies: list[FaultyProxy], connect: Connect
) -> None:
    """Providers count what a key asks. What took the head's place is noticed all the same, and with a quorum asked."""
    first, second, third = proxies
    await node.mine(2)
    async with connect(first.url) as chain, connect(first.url, second.url, third.url, quorum=2) as agreeing:
        async with chain.view() as view:
            head = await view.head()
            first.calls.clear()
            assert (await view.block(head.height)).hash == head.hash
            assert not first.calls
            assert (await view.block(head.height - 1)).height == head.height - 1
            assert first.calls == {"eth_getBlockByNumber": 1}
        # Two empty blocks of one second and one maker are one block.
        await node.call("anvil_setCoinbase", [f"0x{0xC01:040x}"])
        await node.reorg(1, [])
        async with chain.view() as view:
            newest = await view.head()
            assert newest.hash != head.hash
            assert (await view.block(newest.height)).hash == newest.hash
        async with agreeing.view() as view:
            newest = await view.head()
            second.calls.clear()
            third.calls.clear()
            assert (await view.block(newest.height)).hash == newest.hash
            assert second.calls or third.calls


async def test_an_endpoint_that_is_left_behind_is_set_aside_until_it_catches_up(
    node: Anvil, proxies: list[FaultyProxy], connect: Connect
) -> None:
    """Its head is frozen while the others move on."""
    async with connect(*urls(proxies), lag_blocks_max=3) as chain:
        async with chain.view() as view:
            await view.head()
        proxies[0].faults = {Fault.HEAD_FROZEN}
        await node.mine(10)
        await pool_of(chain).survey()
        async with chain.view() as view:
            assert (await view.head()).height == await node.height()
        behind = chain.endpoints()[-1]
        assert (behind.healthy, behind.last_error) == (False, f"{behind.name} is 10 blocks behind")
        proxies[0].faults = set()
        await pool_of(chain).survey()
        assert all(one.healthy for one in chain.endpoints())


async def test_an_endpoint_on_another_chain_of_blocks_is_set_aside(
    node: Anvil, token: Contract, proxies: list[FaultyProxy], connect: Connect, scan: Scan, customer: str
) -> None:
    """Two against one, for as long as they disagree."""
    first = await node.height() + 1
    await token.send("transfer", customer, 5)
    await node.mine(12)
    proxies[0].faults = {Fault.OTHER_HASH}
    async with connect(*urls(proxies), token=token) as chain:
        assert await read(scan, chain, first, customer) == [5]
        liar = chain.endpoints()[-1]
        assert "another block" in str(liar.last_error)
        pool_of(chain).endpoints[0].retry_at = 0.0
        assert pool_of(chain).endpoints[0] not in pool_of(chain).usable()
        proxies[0].faults = set()
        await pool_of(chain).survey()
        assert pool_of(chain).endpoints[0] in pool_of(chain).usable()


async def test_two_endpoints_that_disagree_stop_the_chain(
    node: Anvil, proxies: list[FaultyProxy], connect: Connect
) -> None:
    """Nobody can tell who lies, and crediting a lie is worse than waiting."""
    await node.mine(12)
    proxies[0].faults = {Fault.OTHER_HASH}
    async with connect(*urls(proxies[:2])) as chain:
        with pytest.raises(ChainUnavailableError, match="no majority"):
            async with chain.view() as view:
                await view.head()


@pytest.mark.parametrize("fault", [Fault.INVENTED_LOG, Fault.HIDDEN_LOG])
@pytest.mark.parametrize("liar", [0, 1, 2])
async def test_a_quorum_finds_what_is_there_whoever_lies(
    node: Anvil, token: Contract, proxies: list[FaultyProxy], connect: Connect, scan: Scan, customer: str,
    liar: int, fault: Fault,
) -> None:  # fmt: skip
    """One of three invents a deposit or hides one, without contradicting itself."""
    first = await node.height() + 1
    await token.send("transfer", customer, 5)
    await node.send_native(customer, 6)
    proxies[liar].faults = {fault}
    proxies[liar].invention = (token.address, customer, 10**18)
    async with connect(*urls(proxies), token=token, quorum=2) as chain:
        for _ in range(3):
            assert await read(scan, chain, first, customer) == [5, 6]


async def test_without_enough_honest_endpoints_a_quorum_stops(
    node: Anvil, token: Contract, proxies: list[FaultyProxy], connect: Connect, scan: Scan, customer: str
) -> None:
    """One of two lies: nothing is credited."""
    await token.send("transfer", customer, 5)
    proxies[1].faults, proxies[1].invention = {Fault.INVENTED_LOG}, (token.address, customer, 10**18)
    async with connect(*urls(proxies[:2]), token=token, quorum=2) as chain:
        for _ in range(5):
            with pytest.raises(ChainError):
                await scan(chain, await node.height(), customer)


async def test_a_quorum_also_guards_the_reorg_check(node: Anvil, proxies: list[FaultyProxy], connect: Connect) -> None:
    """One endpoint alone cannot make the gateway take deposits back."""
    async with connect(*urls(proxies), quorum=2) as chain:
        height = await node.height()
        async with chain.view() as view:
            true = await view.block(height)
        proxies[0].faults = {Fault.OTHER_HASH}
        for _ in range(10):
            try:
                async with chain.view() as view:
                    assert await view.block(height) == true
            except ChainError:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("required, told", [(True, [0, 5, None]), (False, [7, 7, 7])])
async def test_where_finality_is_required_a_quorum_tells_what_is_final(
    node: Anvil, proxies: list[FaultyProxy], connect: Connect, required: bool, told: list[int | None]
) -> None:
    """One endpoint alone makes nothing final. Where it confirms nothing, the others are not asked for it."""
    await node.mine(9)

    def calling_final(height: int) -> Callable[[Any], Any]:
        return lambda block: block if int(block["number"], 16) else block | {"number": hex(height)}

    async with connect(*urls(proxies), quorum=2, finality_required=required) as chain:
        assert await finalized(chain) == 0
        found = []
        proxies[0].lies["eth_getBlockByNumber"] = calling_final(7)
        found.append(await finalized(chain))
        proxies[2].lies["eth_getBlockByNumber"] = calling_final(5)
        found.append(await finalized(chain))
        for proxy in proxies[1:]:
            proxy.faults = {Fault.HTTP_500}
        found.append(await finalized(chain))
    assert found == told


async def finalized(chain: Chain) -> int | None:
    async with chain.view() as view:
        return (await view.head()).finalized_height


async def test_an_endpoint_that_hangs_does_not_slow_the_others_down(
    node: Anvil, proxies: list[FaultyProxy], connect: Connect
) -> None:
    """Once it is known to hang, looks go elsewhere at once."""
    async with connect(*urls(proxies), request_timeout_ms=1_500) as chain:
        async with chain.view() as view:
            await view.head()
        proxies[0].faults = {Fault.TIMEOUT}
        with pytest.raises(ChainUnavailableError):
            async with chain.view() as view:
                await view.head()
        asked = proxies[0].calls.total()
        for _ in range(5):
            async with chain.view() as view:
                await view.head()
        assert proxies[0].calls.total() == asked


async def test_an_unknown_transaction_is_asked_of_all(
    node: Anvil, proxies: list[FaultyProxy], connect: Connect
) -> None:
    """That one has not heard of it proves nothing."""
    async with connect(*urls(proxies)) as chain:
        assert (await chain.transaction("0x" + "ab" * 32)).state == "unknown"
    assert all(proxy.calls["eth_getTransactionByHash"] == 1 for proxy in proxies)


async def test_pending_and_mined_transactions_are_told_apart(connect: Connect, customer: str) -> None:
    """With the block and the real cost once it is mined."""
    async with Anvil(chain_id=1337, automine=False) as node, connect(node.url) as chain:
        tx_id = await node.send_native(customer, 5)
        assert (await chain.transaction(tx_id)).state == "pending"
        await node.mine()
        status = await chain.transaction(tx_id)
        receipt = await node.receipt(tx_id)
        async with chain.view() as view:
            assert status.block == await view.block(1)
        assert status.state == "succeeded"
        assert status.fee == int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)


async def test_answers_that_fail_now_and_then_cost_time_and_nothing_else(
    node: Anvil, token: Contract, proxies: list[FaultyProxy], connect: Connect, scan: Scan, customer: str
) -> None:
    """Each endpoint fails one request in twenty, in changing ways."""
    first = await node.height() + 1
    for amount in range(1, 20):
        await token.send("transfer", customer, amount)
    faults = [Fault.HTTP_500, Fault.TRUNCATED, Fault.NULL_BLOCK, Fault.MISSING_LOG, Fault.WRONG_ID, Fault.RESET]
    async with connect(*urls(proxies), token=token) as chain:
        for round_, fault in enumerate(faults):
            for number, proxy in enumerate(proxies):
                proxy.faults, proxy.rate = {fault, faults[(round_ + number) % len(faults)]}, 0.05
            assert await _patiently(scan, chain, first, customer) == list(range(1, 20))


async def _patiently(scan: Scan, chain: Chain, first: int, customer: str) -> list[int]:
    for _ in range(400):
        try:
            return [one.amount for one in (await scan(chain, first, customer)).transfers]
        except ChainError:
            for endpoint in pool_of(chain).endpoints:
                endpoint.retry_at = 0.0
    pytest.fail("no endpoint answered")
