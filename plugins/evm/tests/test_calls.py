"""Contract calls on a real node, and through one that lies: what is tried, planned, read back, and refused."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from cambist.plugin import (
    Call,
    ChainUnavailableError,
    ContractChain,
    InconsistentChainError,
    Intent,
    LogQuery,
    PluginContext,
    SpanTooWideError,
    Token,
    Units,
)
from cambist_chainkit.answers import NoAnswerError
from cambist_evm.config import EvmConfig
from cambist_evm.decode import FEE_LOGS
from cambist_evm.plugin import EvmPlugin
from cambist_evm.testing import Anvil, Contract, Fault, FaultyProxy, Wallet

Connect = Callable[..., Any]
MakeIntent = Callable[..., Intent]
Lie = Callable[[Any], Any]

CALL_GAS_MAX = 3_000_000
APPROVED = 500
OTHER = "0x" + "ab" * 20
WORD = "0x" + "cd" * 32


@pytest.fixture
async def proxy(node: Anvil) -> AsyncIterator[FaultyProxy]:
    async with FaultyProxy(node.url) as proxy:
        yield proxy


@pytest.fixture
async def taker(node: Anvil) -> Contract:
    return await node.deploy("Taker")


def calling(taker: Contract, function: str, *args: object, value: int = 0) -> Call:
    data = bytes.fromhex(taker.data(function, *args)[2:])
    return Call(to_address=taker.address, data=data, value=Units(value))


@pytest.fixture
def wanted(intent: MakeIntent) -> Callable[..., Intent]:
    """Return a function that makes an intent to call, of the coin that goes along unless it says otherwise."""

    def wanted(call: Call | None, token: Token, amount: int | None = None) -> Intent:
        given = amount if amount is not None else call.value if call else 0
        return replace(intent(call.to_address if call else OTHER, given, token), action="call", call=call)

    return wanted


# What is tried.


async def test_an_endpoint_without_simulations_tries_one_call_alone(
    proxy: FaultyProxy, connect: Connect, token: Contract, taker: Contract, wallet: Wallet
) -> None:
    """It says why one is refused, knows nothing of several, and is not to blame for that."""
    proxy.faults = {Fault.NO_SIMULATION}
    refusing = calling(taker, "refuse", "not today")
    async with connect(proxy.url, token=token) as chain:
        approval = chain.approval(chain.info.tokens[1], taker.address, Units(APPROVED))
        (tried,) = await chain.simulate(wallet.address, [approval])
        assert (tried.refused, tried.logs, 40_000 < tried.work < 60_000) == (None, (), True)
        (paid,) = await chain.simulate(Wallet("poor").address, [calling(taker, "pay", value=10**30)])
        assert paid.refused is None
        (refused,) = await chain.simulate(wallet.address, [refusing])
        assert (refused.work, refused.refused) == (None, "not today")
        with pytest.raises(ChainUnavailableError, match=r"several calls together \(eth_simulateV1\)"):
            await chain.simulate(wallet.address, [approval, refusing])
        assert [one.failures for one in chain.endpoints()] == [0]
    assert proxy.calls["eth_simulateV1"] == 1


async def test_another_endpoint_is_asked_that_can_try_several(
    node: Anvil, proxy: FaultyProxy, connect: Connect, token: Contract, taker: Contract, wallet: Wallet
) -> None:
    """In the order in which they are listed."""
    proxy.faults = {Fault.NO_SIMULATION}
    await token.send("mint", wallet.address, APPROVED)
    async with connect(proxy.url, node.url, token=token) as chain:
        approval = chain.approval(chain.info.tokens[1], taker.address, Units(APPROVED))
        trials = await chain.simulate(wallet.address, [approval, calling(taker, "take", token.address, APPROVED)])
        assert [trial.refused for trial in trials] == [None, None]
        assert [len(trial.logs) for trial in trials] == [1, 2]


def of_simulation(**changes: Any) -> Lie:
    def lie(blocks: Any) -> Any:
        blocks[0]["calls"][0] |= changes
        return blocks

    return lie


LOG = {"address": OTHER, "topics": [WORD], "data": "0x"}


SIMULATION_LIES: dict[str, Lie] = {
    "null": lambda _: None,
    "no block": lambda _: [],
    "two blocks": lambda blocks: blocks * 2,
    "two calls": lambda blocks: [{"calls": blocks[0]["calls"] * 2}],
    "no calls": lambda _: [{"calls": []}],
    "another status": of_simulation(status="0x2"),
    "status in decimal": of_simulation(status="1"),
    "no status": of_simulation(status=None),
    "no gas": of_simulation(gasUsed="0x"),
    "too much gas": of_simulation(gasUsed=hex(CALL_GAS_MAX + 1)),
    "success with an error": of_simulation(error={"code": 3, "message": "execution reverted"}),
    "log of no contract": of_simulation(logs=[LOG | {"address": OTHER[:-1]}]),
    "log with five topics": of_simulation(logs=[LOG | {"topics": [WORD] * 5}]),
    "log with a short topic": of_simulation(logs=[LOG | {"topics": [WORD[:-2]]}]),
    "log with half a byte": of_simulation(logs=[LOG | {"data": "0x0"}]),
    "log with a space": of_simulation(logs=[LOG | {"data": "0x 00"}]),
    "no logs": of_simulation(logs=None),
}


@pytest.mark.parametrize("lie", SIMULATION_LIES.values(), ids=list(SIMULATION_LIES))
async def test_a_simulation_that_makes_no_sense_is_not_believed(
    proxy: FaultyProxy, connect: Connect, taker: Contract, wallet: Wallet, lie: Lie
) -> None:
    """And counts against the endpoint."""
    async with connect(proxy.url) as chain:
        proxy.lies["eth_simulateV1"] = lie
        with pytest.raises((InconsistentChainError, ChainUnavailableError)):
            await chain.simulate(wallet.address, [calling(taker, "pay")])
        assert [one.failures for one in chain.endpoints()] == [1]


# What is planned.


async def test_what_could_not_be_signed_or_would_do_nothing_is_refused(
    node: Anvil, connect: Connect, token: Contract, taker: Contract, intent: MakeIntent, wanted: MakeIntent
) -> None:
    """With a sentence each, and without asking what it would cost."""
    minting = Call(to_address=token.address, data=bytes.fromhex(token.data("mint", OTHER, 1)[2:]))
    paying = calling(taker, "pay", value=5)
    sweeper = "0x" + "5A" * 20
    await node.call("anvil_setCode", [OTHER, "0x"])
    async with connect(node.url, token=token, sweeper=sweeper.lower()) as chain:
        native, usdx = chain.info.tokens
        approving = replace(intent(taker.address, APPROVED, usdx), action="approve")
        cases = [
            (wanted(minting, usdx, 1), "of which only transfers and approvals are signed"),
            (wanted(replace(paying, to_address=chain.info.sweeper), native), "is the sweeper"),
            (wanted(replace(paying, to_address="0x" + "0" * 40), native), "nobody owns the zero address"),
            (wanted(replace(paying, to_address=intent(OTHER, 1, native).source), native), "there is no contract of it"),
            (wanted(paying, native, 6), "takes 5 of the native coin along, and the intent gives 6"),
            (wanted(paying, usdx, 5), "takes 5 of the native coin along, and the intent gives 0"),
            (wanted(replace(paying, data=b""), native), "nothing is said of what to call"),
            (wanted(None, native, 5), "nothing is said of what to call"),
            (wanted(calling(taker, "exhaust"), usdx, 5), "refuses the call"),
            (wanted(calling(taker, "repeat", 2_100), usdx, 5), "refuses the call"),
            (replace(approving, token=native), "nobody can be allowed to take ETH"),
            (replace(approving, to_address=token.address), "which takes no tokens"),
            (replace(approving, to_address="0x" + "0" * 40), "nobody owns the zero address"),
            (replace(approving, action="stake"), "nothing is staked or lent on local"),
        ]
        plans = await chain.plan([one for one, _ in cases], sponsor=None)
        for plan, (one, why) in zip(plans, cases, strict=True):
            assert (plan.step, why in str(plan.refused)) == (None, True), (plan, one)


async def test_a_limit_has_a_margin_and_an_end(
    node: Anvil, connect: Connect, taker: Contract, wallet: Wallet, wanted: MakeIntent
) -> None:
    """A fifth more than was estimated, and never above the bound."""
    async with connect(node.url) as chain:
        small, large = calling(taker, "repeat", 10), calling(taker, "repeat", 1_800)
        plans = await chain.plan([wanted(small, chain.info.native), wanted(large, chain.info.native)], sponsor=None)
        used = [trial.work for call in (small, large) for trial in await chain.simulate(wallet.address, [call])]
        assert used[0] * 11 // 10 < plans[0].step.fee.limit < used[0] * 13 // 10
        assert used[1] * 12 // 10 > plans[1].step.fee.limit == CALL_GAS_MAX


async def test_where_no_coin_can_be_lent_a_call_is_allowed_as_much_as_can_be(
    proxy: FaultyProxy, connect: Connect, taker: Contract, wanted: MakeIntent
) -> None:
    """That the money has yet to come is no reason to refuse it."""
    async with connect(proxy.url) as chain:
        proxy.faults = {Fault.NO_OVERRIDES, Fault.FUNDS_FIRST}
        paying = replace(wanted(calling(taker, "pay", value=7), chain.info.native), source=Wallet("poor").address)
        refusing = wanted(calling(taker, "refuse", "no"), chain.info.native, 0)
        first, second = await chain.plan([paying, refusing], sponsor=None)
        assert first.step.fee.limit == CALL_GAS_MAX
        assert second.refused == f"{taker.address} refuses the call: no"


# What is read back.


@pytest.fixture
async def taken(node: Anvil, token: Contract, taker: Contract) -> str:
    """Return the id of a transaction that took tokens, with two logs behind another's in its block."""
    first = node.accounts[0]
    await token.send("approve", taker.address, APPROVED, sender=first)
    await node.call("evm_setAutomine", [False])
    node.automine = False
    await token.send("mint", OTHER, 1, sender=node.accounts[1])
    tx_id = await taker.send("take", token.address, APPROVED, sender=first)
    await node.mine()
    await node.call("evm_setAutomine", [True])
    node.automine = True
    return tx_id


def changed(number: int = 0, **changes: Any) -> Lie:
    """Return a lie about one of the logs of a receipt."""

    def lie(receipt: Any) -> Any:
        receipt["logs"][number] |= changes
        return receipt

    return lie


RECEIPT_LIES: dict[str, Lie] = {
    "no status": lambda receipt: receipt | {"status": None},
    "another status": lambda receipt: receipt | {"status": "0x2"},
    "another block": lambda receipt: receipt | {"blockHash": WORD},
    "another height": lambda receipt: receipt | {"blockNumber": "0x1"},
    "another transaction": lambda receipt: receipt | {"transactionHash": WORD},
    "no logs": lambda receipt: receipt | {"logs": []},
    "first log left out": lambda receipt: receipt | {"logs": receipt["logs"][1:]},
    "last log left out": lambda receipt: receipt | {"logs": receipt["logs"][:-1]},
    "logs turned around": lambda receipt: receipt | {"logs": receipt["logs"][::-1]},
    "log twice": lambda receipt: receipt | {"logs": [*receipt["logs"], receipt["logs"][-1]]},
    "no filter of it": lambda receipt: receipt | {"logsBloom": "0x" + "01" * 256},
    "no filter": lambda receipt: receipt | {"logsBloom": "0x01"},
    "log of another contract": changed(address=OTHER),
    "log of another transaction": changed(transactionHash=WORD),
    "log of no contract": changed(address=OTHER[:-2]),
    "log with another topic": changed(1, topics=[WORD]),
    "log without topics": changed(1, topics=[]),
    "log with five topics": changed(1, topics=[WORD] * 5),
    "log with half a byte": changed(data="0x0"),
    "log gone": changed(removed=True),
    "log with another number": changed(1, logIndex="0x7"),
    "log without a number": changed(1, logIndex=""),
}


@pytest.mark.parametrize("lie", RECEIPT_LIES.values(), ids=list(RECEIPT_LIES))
async def test_a_receipt_that_contradicts_itself_is_not_believed(
    proxy: FaultyProxy, connect: Connect, taken: str, lie: Lie
) -> None:
    """Its block, its numbers and its filter speak of it, too."""
    async with connect(proxy.url) as chain:
        honest = await chain.receipt(taken)
        assert [log.position for log in honest.logs] == ["log:0", "log:1"]
        proxy.lies["eth_getTransactionReceipt"] = lie
        with pytest.raises(InconsistentChainError):
            await chain.receipt(taken)
        assert [one.failures for one in chain.endpoints()] == [1]


def failed(*, fee_alone: bool = False) -> Lie:
    """Return a lie by which a transaction failed, and left its logs, or that of its fee on Polygon instead."""
    ((address, fee),) = FEE_LOGS

    def lie(receipt: Any) -> Any:
        if fee_alone:
            first = receipt["logs"][0] | {"address": address, "topics": [fee], "data": "0x"}
            receipt |= {"logs": [first], "logsBloom": ""}
        return receipt | {"status": "0x0"}

    return lie


@pytest.fixture
async def polygon(proxy: FaultyProxy, context: PluginContext) -> AsyncIterator[Any]:
    """Connect a network whose logs are known, to a node that claims to be of it."""
    proxy.lies["eth_chainId"] = lambda _: "0x89"
    config = msgspec.convert({"chains": {"polygon": {"rpc_urls": [proxy.url]}}}, EvmConfig)
    async with EvmPlugin().connect(config, context) as (chain,):
        yield chain


async def test_a_failed_transaction_has_no_logs_but_its_fees_where_those_are_known(
    proxy: FaultyProxy, polygon: Any, taken: str
) -> None:
    """Which log is a fee's is told by the log, and not by the network's name."""
    proxy.lies["eth_getTransactionReceipt"] = failed(fee_alone=True)
    receipt = await polygon.receipt(taken)
    assert (receipt.succeeded, receipt.logs) == (False, ())
    proxy.lies["eth_getTransactionReceipt"] = failed()
    with pytest.raises(InconsistentChainError, match="says failed, and has logs"):
        await polygon.receipt(taken)


async def test_what_a_described_network_logs_of_a_failed_transaction_is_dropped(
    proxy: FaultyProxy, connect: Connect, taken: str
) -> None:
    """Amoy and zkSync log fees of what failed: what became of it must be told there, too."""
    proxy.lies["eth_getTransactionReceipt"] = failed()
    async with connect(proxy.url) as chain:
        receipt = await chain.receipt(taken)
        assert (receipt.succeeded, receipt.logs) == (False, ())
        assert [one.failures for one in chain.endpoints()] == [0]


def of_log(**changes: Any) -> Lie:
    return lambda logs: [logs[0] | changes, *logs[1:]]


LOG_LIES: dict[str, Lie] = {
    "null": lambda _: None,
    "log twice": lambda logs: [*logs, logs[0]],
    "one of two left out": lambda logs: logs[:-1],
    "one more": lambda logs: [*logs, logs[0] | {"logIndex": "0x9"}],
    "of a transaction that nobody knows": of_log(transactionHash=WORD),
    "another contract": of_log(address=OTHER),
    "another topic": of_log(topics=[WORD]),
    "more data": of_log(data=WORD),
    "no data at all": of_log(data="0xg0"),
    "another block": of_log(blockHash=WORD),
    "another height": of_log(blockNumber="0x1"),
    "another number": of_log(logIndex="0x5"),
    "gone": of_log(removed=True),
}


@pytest.mark.parametrize("lie", LOG_LIES.values(), ids=list(LOG_LIES))
async def test_logs_that_the_receipts_do_not_hold_are_not_believed(
    node: Anvil, proxy: FaultyProxy, connect: Connect, taker: Contract, lie: Lie
) -> None:
    """Nor is their absence beside others of their transaction."""
    await taker.send("repeat", 2)
    height = await node.height()
    async with connect(proxy.url) as chain:
        query = LogQuery(address=taker.address, topics=(), first=height, last=height)
        assert [found.log.position for found in await chain.logs(query)] == ["log:0", "log:1"]
        proxy.lies["eth_getLogs"] = lie
        with pytest.raises(InconsistentChainError):
            await chain.logs(query)


async def test_logs_of_other_blocks_contracts_and_topics_are_not_believed(
    node: Anvil, proxy: FaultyProxy, connect: Connect, taker: Contract
) -> None:
    """Although they are in the chain."""
    await taker.send("repeat", 1)
    await taker.send("repeat", 1, sender=node.accounts[1])
    height = await node.height()
    own = (await node.call("eth_getLogs", [{"fromBlock": hex(height - 1), "toBlock": hex(height - 1)}]))[0]
    async with connect(proxy.url) as chain:
        proxy.lies["eth_getLogs"] = lambda logs: [own, *logs]
        queries = [
            LogQuery(address=taker.address, topics=(), first=height, last=height),
            LogQuery(address=OTHER, topics=(), first=height - 1, last=height),
            LogQuery(address=taker.address, topics=(bytes(32),), first=height - 1, last=height),
        ]
        for query in queries:
            with pytest.raises(InconsistentChainError):
                await chain.logs(query)
            proxy.faults.clear()
            for endpoint in chain.pool.endpoints:
                endpoint.retry_at = 0


async def test_a_span_that_is_refused_or_holds_too_much_is_too_wide(
    node: Anvil, proxy: FaultyProxy, connect: Connect, taker: Contract
) -> None:
    """The endpoint is not to blame, and a shorter one is told whole."""
    await taker.send("repeat", 600)
    await taker.send("repeat", 401)
    last = await node.height()
    async with connect(proxy.url) as chain:
        query = LogQuery(address=taker.address, topics=(), first=last - 1, last=last)
        with pytest.raises(SpanTooWideError):
            await chain.logs(query)
        assert len(await chain.logs(replace(query, last=last - 1))) == 600
        assert [one.failures for one in chain.endpoints()] == [0]


async def test_who_finds_one_block_too_many_is_not_asked_next(
    node: Anvil, proxy: FaultyProxy, connect: Connect, taker: Contract
) -> None:
    """There is nothing shorter to ask it for, and another endpoint tells."""
    await taker.send("repeat", 2)
    last = await node.height()
    proxy.faults = {Fault.TOO_WIDE}
    async with connect(proxy.url, node.url) as chain:
        query = LogQuery(address=taker.address, topics=(), first=last - 1, last=last)
        with pytest.raises(SpanTooWideError):
            await chain.logs(query)
        query = replace(query, first=last)
        with pytest.raises(ChainUnavailableError):
            await chain.logs(query)
        assert len(await chain.logs(query)) == 2


@pytest.mark.parametrize(
    "changes",
    [{"topics": (b"short",)}, {"topics": (None,) * 5}, {"first": 2, "last": 1}, {"first": -1}],
    ids=["a short topic", "five topics", "backwards", "below zero"],
)
async def test_what_is_no_query_is_nobodys_fault(node: Anvil, connect: Connect, changes: dict[str, Any]) -> None:
    async with connect(node.url) as chain:
        with pytest.raises(ValueError, match=r"are none|four topics"):
            await chain.logs(replace(LogQuery(address=OTHER, topics=(), first=0, last=0), **changes))
        assert [one.failures for one in chain.endpoints()] == [0]


async def test_with_a_quorum_one_liar_is_not_enough(
    node: Anvil, proxy: FaultyProxy, connect: Connect, taker: Contract, taken: str
) -> None:
    """Whole transactions left out are found by others, and a receipt that one alone tells is none yet."""
    async with connect(node.url, proxy.url, quorum=2) as chain:
        height = await node.height()
        query = LogQuery(address=taker.address, topics=(), first=height, last=height)
        assert len(await chain.logs(query)) == 1
        receipt = await chain.receipt(taken)
        assert receipt is not None
        proxy.lies = {"eth_getLogs": lambda _: [], "eth_getTransactionReceipt": lambda _: None}
        with pytest.raises(InconsistentChainError):
            await chain.logs(query)
        for endpoint in chain.pool.endpoints:
            endpoint.retry_at = 0
        assert await chain.receipt(taken) is None


async def test_nobody_takes_native_coin(node: Anvil, connect: Connect, taker: Contract, wallet: Wallet) -> None:
    async with connect(node.url) as chain:
        assert isinstance(chain, ContractChain)
        assert await chain.allowance(wallet.address, taker.address, chain.info.native) == 0
        with pytest.raises(ValueError, match="nobody can be allowed to take ETH"):
            chain.approval(chain.info.native, taker.address, Units(1))


@pytest.mark.parametrize("blocks, error", [(2, SpanTooWideError), (1, NoAnswerError)])
async def test_logs_that_do_not_come_in_time_are_asked_for_of_fewer_blocks(
    node: Anvil, proxy: FaultyProxy, connect: Connect, taker: Contract, blocks: int, error: type[Exception]
) -> None:
    """A node that tells of its blocks, and not of the logs in so many, is slow: it would be as slow again."""
    await taker.send("repeat", 2)
    last = await node.height()
    proxy.slow_s["eth_getLogs"] = 5.0
    async with connect(proxy.url, request_timeout_ms=300) as chain:
        with pytest.raises(error):
            await chain.logs(LogQuery(address=taker.address, topics=(), first=last + 1 - blocks, last=last))


async def test_whoever_is_quicker_with_logs_is_asked_next(
    node: Anvil, proxy: FaultyProxy, connect: Connect, taker: Contract
) -> None:
    """For fewer blocks: to halve them until the slow one tells takes minutes."""
    await taker.send("repeat", 2)
    last = await node.height()
    proxy.slow_s["eth_getLogs"] = 5.0
    async with connect(proxy.url, node.url, request_timeout_ms=300) as chain:
        query = LogQuery(address=taker.address, topics=(), first=0, last=last)
        with pytest.raises(SpanTooWideError):
            await chain.logs(query)
        assert len(await chain.logs(replace(query, first=last - 1))) == 2
