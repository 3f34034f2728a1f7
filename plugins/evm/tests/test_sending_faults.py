"""Sending through endpoints that fail, forget and lie: nothing is lost, and nothing is believed to be lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

from cambist.plugin import Chain, ChainUnavailableError, InconsistentChainError, Intent, PluginContext, SignedTx
from cambist_evm.config import EvmConfig
from cambist_evm.market import L1_FEE_ORACLE
from cambist_evm.plugin import EvmPlugin
from cambist_evm.testing import Anvil, Contract, Fault, FaultyProxy, Wallet

pytestmark = pytest.mark.slow

Connect = Sealed = Callable[..., Any]
MakeIntent = Callable[..., Intent]

SECRET = "sECRETkEY0123456789"
GWEI = 10**9


@pytest.fixture
async def proxy(node: Anvil) -> AsyncIterator[FaultyProxy]:
    async with FaultyProxy(node.url) as proxy:
        yield proxy


async def paying(chain: Chain, sealed: Sealed, *intents: Intent) -> list[SignedTx]:
    plans = await chain.plan(intents, sponsor=None)
    txs: list[SignedTx] = await sealed(chain, 0, *(plan.step for plan in plans))
    return txs


async def states(chain: Chain, txs: list[SignedTx]) -> list[str]:
    return [status.state for status in await chain.transactions([tx.tx_id for tx in txs])]


async def mined(chain: Chain, txs: list[SignedTx]) -> None:
    async with asyncio.timeout(20):
        while True:
            try:
                if set(await states(chain, txs)) == {"succeeded"}:
                    return
            except ChainUnavailableError:
                pass
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    "fault",
    [
        Fault.TIMEOUT,
        Fault.RESET,
        Fault.HTTP_429,
        Fault.HTTP_500,
        Fault.HTTP_503,
        Fault.HTML,
        Fault.TRUNCATED,
        Fault.WRONG_ID,
        Fault.DUPLICATED,
        Fault.RPC_ERROR,
        Fault.RATE_LIMITED,
        Fault.ANSWER_LOST,
    ],
)
async def test_whatever_fails_the_transaction_may_be_out(
    node: Anvil, proxy: FaultyProxy, connect: Connect, intent: MakeIntent, sealed: Sealed, customer: str, fault: Fault
) -> None:
    """So it is unknown, never refused; the same bytes, sent again, arrive once. No message tells the endpoint's key."""
    timeout_ms = 1000 if fault is Fault.TIMEOUT else 5000
    async with connect(f"{proxy.url}/v3/{SECRET}", request_timeout_ms=timeout_ms) as chain:
        native = chain.info.native
        txs = await paying(chain, sealed, *(intent(customer, amount, native) for amount in (1, 2, 4)))
        proxy.faults = {fault}
        said = await chain.broadcast(txs)
        assert [one.state for one in said] == ["unknown"] * 3
        assert SECRET not in str(said)
        resting = await chain.broadcast(txs)
        assert {one.state for one in resting} == {"unknown"}
        proxy.faults = set()
        async with asyncio.timeout(20):
            while {one.state for one in await chain.broadcast(txs)} - {"accepted", "sequence_used"}:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await mined(chain, txs)
        assert await chain.balance(customer, native) == 7


async def test_a_node_that_forgets_is_not_the_end(
    node: Anvil, proxy: FaultyProxy, connect: Connect, intent: MakeIntent, sealed: Sealed, customer: str
) -> None:
    """Alone, it takes what it forgets, and the look-up tells; beside an honest one, the transaction is out."""
    async with connect(proxy.url) as chain:
        txs = await paying(chain, sealed, intent(customer, 5, chain.info.native))
        proxy.faults = {Fault.FORGETFUL}
        assert [one.state for one in await chain.broadcast(txs)] == ["accepted"]
        assert await states(chain, txs) == ["unknown"]
    async with connect(proxy.url, node.url) as chain:
        assert [one.state for one in await chain.broadcast(txs)] == ["accepted"]
        await mined(chain, txs)
        assert await chain.balance(customer, chain.info.native) == 5


async def test_one_endpoint_that_takes_it_is_enough(
    node: Anvil, proxy: FaultyProxy, connect: Connect, intent: MakeIntent, sealed: Sealed, customer: str
) -> None:
    """Whether the others hang, break or are of another chain; and one that hangs does not hold up the rest."""
    async with Anvil(chain_id=5) as other, connect(proxy.url, other.url, node.url, request_timeout_ms=60_000) as chain:
        native = chain.info.native
        (first,), (second,) = [
            await paying(chain, lambda chain, _, *steps, n=n: sealed(chain, n, *steps), intent(customer, 5, native))
            for n in (0, 1)
        ]
        proxy.faults = {Fault.TIMEOUT}
        loop = asyncio.get_running_loop()
        started = loop.time()
        assert [one.state for one in await chain.broadcast([first])] == ["accepted"]
        assert loop.time() - started < 30
        proxy.faults = {Fault.RESET}
        assert [one.state for one in await chain.broadcast([second])] == ["accepted"]
        await mined(chain, [first, second])


async def test_who_may_have_let_it_out_outweighs_who_refused_it(
    node: Anvil, proxy: FaultyProxy, connect: Connect, intent: MakeIntent, sealed: Sealed, customer: str
) -> None:
    """One node has no money for it, as it lags behind; the other took it, perhaps."""
    async with connect(node.url) as chain:
        txs = await paying(chain, sealed, intent(customer, 5, chain.info.native))
    async with Anvil(chain_id=1337) as behind, connect(proxy.url, behind.url, lag_blocks_max=1000) as chain:
        await chain.next_sequence(customer)
        proxy.faults = {Fault.ANSWER_LOST}
        assert [one.state for one in await chain.broadcast(txs)] == ["unknown"]
    async with Anvil(chain_id=1337) as behind, connect(behind.url) as chain:
        assert [one.state for one in await chain.broadcast(txs)] == ["unfunded"]


async def test_the_highest_sequence_of_any_endpoint_counts(
    node: Anvil, connect: Connect, intent: MakeIntent, sealed: Sealed, customer: str, wallet: Wallet
) -> None:
    """One that lags would have a sequence used twice."""
    async with Anvil(chain_id=1337) as behind, connect(behind.url, node.url, lag_blocks_max=1000) as chain:
        txs = await paying(chain, sealed, intent(customer, 5, chain.info.native))
        await chain.broadcast(txs)
        await mined(chain, txs)
        assert await chain.next_sequence(wallet.address) == 1
    async with connect("http://127.0.0.1:9") as chain:
        with pytest.raises(ChainUnavailableError):
            await chain.next_sequence(wallet.address)
        (said,) = await chain.broadcast(txs)
        assert (said.state, said.reason) == ("unknown", "no endpoint can be asked now")


async def test_a_count_of_another_chain_is_not_taken(
    node: Anvil, proxy: FaultyProxy, connect: Connect, customer: str
) -> None:
    """As of a provider that mixes up its chains for a moment, after it was found to serve the right one."""
    own = node.accounts[0]
    async with Anvil(chain_id=1338) as other, connect(proxy.url, node.url) as chain:
        for _ in range(3):
            await other.send_native(customer, 1)
        assert await other.call("eth_getTransactionCount", [own, "latest"]) == "0x3"
        right = await chain.next_sequence(own)
        proxy.upstream = other.url
        assert await chain.next_sequence(own) == right < 3
        assert "chain id 1338" in str(chain.endpoints()[-1].last_error)


async def test_what_one_endpoint_has_not_heard_of_the_next_is_asked_for(
    node: Anvil, connect: Connect, intent: MakeIntent, sealed: Sealed, customer: str
) -> None:
    """Each for what is still missing; unknown is only what none knows."""
    async with Anvil(chain_id=1337) as behind, connect(behind.url, node.url, lag_blocks_max=1000) as chain:
        native = chain.info.native
        txs = await paying(chain, sealed, intent(customer, 5, native), intent(customer, 6, native))
        await chain.broadcast(txs[:1])
        await mined(chain, txs[:1])
        assert await states(chain, [*txs, txs[0]]) == ["succeeded", "unknown", "succeeded"]


@pytest.mark.parametrize("faults", [{Fault.FUNDS_FIRST}, {Fault.FUNDS_FIRST, Fault.NO_OVERRIDES}])
async def test_nodes_that_estimate_only_what_is_funded_are_lent_to_or_tried_without(
    node: Anvil, proxy: FaultyProxy, splitter: Contract, connect: Connect, intent: MakeIntent, customer: str,
    faults: set[Fault],
) -> None:  # fmt: skip
    """As Geth's are. A contract that refuses is found out where coin can be lent."""
    stranger = await node.deploy("TestToken", "NONE", 6)
    proxy.faults = faults
    async with connect(proxy.url) as chain:
        to_addresses = [customer, splitter.address, stranger.address]
        plans = await chain.plan(
            [intent(to_address, 5, chain.info.native) for to_address in to_addresses], sponsor=None
        )
        plain, taking, refusing = plans
        assert plain.step.fee.limit == 21_000
        assert taking.step.fee.limit > 21_000
        assert (refusing.refused is None) == (Fault.NO_OVERRIDES in faults)


async def test_without_advice_on_fees_other_answers_do(
    node: Anvil, proxy: FaultyProxy, connect: Connect, intent: MakeIntent, customer: str
) -> None:
    """The base fee is in the newest block, and may rise by an eighth."""
    await node.call("anvil_setNextBlockBaseFeePerGas", [hex(8 * GWEI)])
    await node.mine()
    proxy.faults = {Fault.NO_FEE_ADVICE}
    async with connect(proxy.url, tip_min_gwei="0.5") as chain:
        (plan,) = await chain.plan([intent(customer, 1, chain.info.native)], sponsor=None)
        assert (plan.step.fee.tip, plan.step.fee.price) == (GWEI // 2, 18 * GWEI + GWEI // 2)


async def test_without_advice_on_tips_the_usual_one_is_offered(
    node: Anvil, proxy: FaultyProxy, connect: Connect, intent: MakeIntent, customer: str
) -> None:
    """The median of what was paid lately."""
    for gwei in (2, 3, 9):
        tx = {"from": node.accounts[0], "to": customer, "value": "0x1", "gas": "0x5208"}
        fees = {"maxFeePerGas": hex(50 * GWEI), "maxPriorityFeePerGas": hex(gwei * GWEI)}
        await node.call("eth_sendTransaction", [tx | fees])
        await node.mine()
    proxy.faults = {Fault.NO_TIP_ADVICE}
    async with connect(proxy.url) as chain:
        (plan,) = await chain.plan([intent(customer, 1, chain.info.native)], sponsor=None)
        assert plan.step.fee.tip == 3 * GWEI


async def test_an_error_is_understood_whatever_the_http_status(
    node: Anvil, proxy: FaultyProxy, connect: Connect, intent: MakeIntent, sealed: Sealed, customer: str,
    wallet: Wallet,
) -> None:  # fmt: skip
    """Some providers answer a refused call with 400: it is an answer all the same, alone and among others."""
    async with connect(proxy.url) as chain:
        txs = await paying(chain, sealed, *(intent(customer, amount, chain.info.native) for amount in (1, 2)))
        await node.call("anvil_setBalance", [wallet.address, "0x5"])
        proxy.faults = {Fault.ERRORS_AS_400}
        assert [one.state for one in await chain.broadcast(txs[:1])] == ["unfunded"]
        assert [one.state for one in await chain.broadcast(txs)] == ["unfunded", "unfunded"]


@pytest.mark.parametrize("fault", [Fault.RESET, Fault.RPC_ERROR, Fault.RATE_LIMITED, Fault.HTML])
async def test_planning_goes_on_with_the_next_endpoint_or_says_that_it_cannot(
    node: Anvil, proxy: FaultyProxy, token: Contract, connect: Connect, intent: MakeIntent, customer: str, fault: Fault
) -> None:
    """An error of the node is no refusal by the token."""
    proxy.faults = {fault}
    async with connect(proxy.url, node.url, token=token) as chain:
        (plan,) = await chain.plan([intent(customer, 1, chain.info.tokens[1])], sponsor=None)
        assert plan.refused is None
    async with connect(proxy.url, token=token) as chain:
        with pytest.raises(ChainUnavailableError):
            await chain.plan([intent(customer, 1, chain.info.tokens[1])], sponsor=None)


async def test_an_estimate_of_more_gas_than_there_was_is_not_believed(
    node: Anvil, proxy: FaultyProxy, token: Contract, connect: Connect, intent: MakeIntent, customer: str
) -> None:
    """The gas station would bring the coin for all of it."""
    proxy.lies["eth_estimateGas"] = lambda _: hex(10**9)
    async with connect(proxy.url, node.url, token=token) as chain:
        native, usdx = chain.info.tokens
        plans = await chain.plan([intent(customer, 1, native), intent(customer, 1, usdx)], sponsor=None)
        assert [plan.step.fee.limit < 200_000 for plan in plans] == [True, True]
        assert "that it was given" in str(chain.endpoints()[-1].last_error)


async def test_a_charge_for_data_beyond_all_that_gas_may_cost_is_not_believed(
    node: Anvil, proxy: FaultyProxy, connect: Connect, intent: MakeIntent, customer: str
) -> None:
    """The gas station would bring the coin for that, too: here ten thousand of them, for each transfer."""
    await node.call("anvil_setCode", [L1_FEE_ORACLE, "0x60206000f3"])  # zero, as a word
    proxy.lies["eth_call"] = lambda _: f"0x{10**22:064x}"
    async with connect(proxy.url, node.url, l1_fee=True) as chain:
        (plan,) = await chain.plan([intent(customer, 1, chain.info.native)], sponsor=None)
        assert plan.step.fee.extra == 0
        assert "data costs" in str(chain.endpoints()[-1].last_error)


@pytest.fixture
async def ethereum(context: PluginContext) -> AsyncIterator[tuple[FaultyProxy, Chain]]:
    """Connect a built-in network with two endpoints, of which the first is the proxy."""
    async with Anvil(chain_id=1) as node, FaultyProxy(node.url) as proxy:
        config = msgspec.convert({"chains": {"ethereum": {"rpc_urls": [proxy.url, node.url]}}}, EvmConfig)
        async with EvmPlugin().connect(config, context) as (chain,):
            yield proxy, chain


async def test_a_built_in_network_without_a_base_fee_is_not_believed(
    ethereum: tuple[FaultyProxy, Chain], intent: MakeIntent, customer: str
) -> None:
    """What is signed would be of the old kind, which pays the whole price that the same node tells."""
    proxy, chain = ethereum

    def without_base_fee(block: dict[str, Any]) -> dict[str, Any]:
        return {name: told for name, told in block.items() if name != "baseFeePerGas"}

    proxy.lies = {"eth_getBlockByNumber": without_base_fee, "eth_gasPrice": lambda _: hex(199 * 10**9)}
    (plan,) = await chain.plan([intent(customer, 1, chain.info.native)], sponsor=None)
    assert plan.step.fee.tip is not None
    assert plan.step.fee.price < 100 * 10**9
    assert "no base fee" in str(chain.endpoints()[-1].last_error)


async def test_nodes_of_networks_that_are_not_built_in_need_not_heed_the_gas_they_are_given(
    proxy: FaultyProxy, connect: Connect, ethereum: tuple[FaultyProxy, Chain], intent: MakeIntent, customer: str
) -> None:
    """Those of ZKsync find out what a transfer takes by themselves: several times of what it may take elsewhere."""
    built_in, known = ethereum
    built_in.lies["eth_estimateGas"] = proxy.lies["eth_estimateGas"] = lambda _: hex(300_000)
    async with connect(proxy.url) as chain:
        (plan,) = await chain.plan([intent(customer, 1, chain.info.native)], sponsor=None)
        assert plan.step.fee.limit == 300_000
        assert [one.failures for one in chain.endpoints()] == [0]
    (plan,) = await known.plan([intent(customer, 1, known.info.native)], sponsor=None)
    assert plan.step.fee.limit == 21_000


async def test_the_market_is_read_once_a_second_however_many_ask(
    node: Anvil, proxy: FaultyProxy, connect: Connect, intent: MakeIntent, customer: str
) -> None:
    async with connect(proxy.url) as chain:
        wanted = [intent(customer, amount, chain.info.native) for amount in range(1, 41)]
        await chain.next_sequence(customer)
        proxy.requests = 0
        await asyncio.gather(*(chain.plan(wanted, sponsor=None) for _ in range(5)))
        assert proxy.calls["eth_feeHistory"] == 1
        assert proxy.calls["eth_estimateGas"] == 200
        assert proxy.requests == 1 + 5


@pytest.mark.parametrize("fault", [Fault.SMALL_BATCHES, Fault.SMALL_BATCHES_EACH])
async def test_batches_shrink_to_what_the_endpoint_takes(
    node: Anvil, proxy: FaultyProxy, connect: Connect, intent: MakeIntent, sealed: Sealed, customer: str, fault: Fault
) -> None:
    """Providers allow three or a thousand calls in one request, and nobody should have to look it up."""
    proxy.faults = {fault}
    async with connect(proxy.url) as chain:
        native = chain.info.native
        txs = await paying(chain, sealed, *(intent(customer, amount, native) for amount in range(1, 41)))
        assert {one.state for one in await chain.broadcast(txs)} == {"accepted"}
        await mined(chain, txs)
        assert await chain.balance(customer, native) == sum(range(1, 41))
        proxy.requests = 0
        await chain.balances([(customer, native)] * 30)
        assert proxy.requests <= 30


async def test_no_batch_shrinks_by_what_recipients_say(
    node: Anvil, proxy: FaultyProxy, connect: Connect, intent: MakeIntent, customer: str
) -> None:
    """A contract refuses in any words, also in a provider's."""
    said = "batch is too large"
    error = f"08c379a0{32:064x}{len(said):064x}{said.encode().hex():0<64}"
    size = f"{len(error) // 2:02x}"
    await node.call("anvil_setCode", [customer, f"0x60{size}600c60003960{size}6000fd{error}"])  # it reverts with error
    async with connect(proxy.url) as chain:
        wanted = [intent(customer, amount, chain.info.native) for amount in range(1, 11)]
        for plan in await chain.plan(wanted, sponsor=None):
            assert said in str(plan.refused)
        proxy.requests = 0
        await chain.balances([(customer, chain.info.native)] * 30)
        assert proxy.requests == 1


async def test_with_a_quorum_a_transaction_is_mined_once_so_many_say_so(
    node: Anvil, connect: Connect, intent: MakeIntent, sealed: Sealed, customer: str
) -> None:
    """What one endpoint alone tells of still waits."""
    async with Anvil(chain_id=1337) as behind, FaultyProxy(node.url) as second:
        async with connect(behind.url, node.url, quorum=2, lag_blocks_max=1000) as chain:
            txs = await paying(chain, sealed, intent(customer, 5, chain.info.native))
            assert await states(chain, txs) == ["unknown"]
            await chain.broadcast(txs)
            async with asyncio.timeout(5):
                while await states(chain, txs) == ["unknown"]:  # noqa: ASYNC110 - the node tells nobody
                    await asyncio.sleep(0.01)
            assert await states(chain, txs) == ["pending"]
        async with connect(behind.url, node.url, second.url, quorum=2, lag_blocks_max=1000) as chain:
            await mined(chain, txs)


async def test_a_batch_of_one_is_no_batch_where_those_are_unwanted(
    node: Anvil, proxy: FaultyProxy, connect: Connect, intent: MakeIntent, sealed: Sealed, customer: str
) -> None:
    """Each call is a request of its own."""
    async with connect(proxy.url, batch_calls_max=1) as chain:
        txs = await paying(chain, sealed, *(intent(customer, amount, chain.info.native) for amount in (1, 2)))
        await chain.broadcast(txs)
        await mined(chain, txs)
        assert proxy.requests == sum(proxy.calls.values())


@pytest.mark.parametrize(
    "told",
    [
        {"nonce": "0x63"},
        {"to": "0x52908400098527886e0f7030069857d2e4169ee7"},
        {"to": None},
        {"value": "0x6"},
        {"input": "0xdeadbeef"},
        {"from": "0x52908400098527886e0f7030069857d2e4169ee7"},
        {"from": "nobody"},
        {"gas": "0x1"},
        {"maxFeePerGas": "0xffffffffff"},
        {"chainId": "0x1"},
        {"type": "0x1"},
        {"type": "0x3"},
        {"accessList": [{"address": "0x52908400098527886e0f7030069857d2e4169ee7", "storageKeys": []}]},
        {"r": "0x1"},
        {"s": "0x" + "f" * 64},
        {"v": "0x7f"},
        {"value": "nothing"},
    ],
    ids=str,
)
async def test_a_transaction_that_a_node_makes_up_is_not_found(
    node: Anvil, proxy: FaultyProxy, connect: Connect, intent: MakeIntent, sealed: Sealed, customer: str, told: Any
) -> None:
    """What is told must make the id and carry the sender's signature; an honest endpoint is asked besides."""
    async with connect(proxy.url) as chain, connect(proxy.url, node.url) as both:
        txs = await paying(chain, sealed, intent(customer, 5, chain.info.native))
        await chain.broadcast(txs)
        await mined(chain, txs)
        found = await chain.find_tx(txs[0].tx_id)
        assert found is not None
        assert found.tx == txs[0]
        proxy.lies["eth_getTransactionByHash"] = lambda answer: {**answer, **told}
        assert await chain.find_tx(txs[0].tx_id) is None
        assert await both.find_tx(txs[0].tx_id) == found


@pytest.mark.parametrize(
    "lies",
    [
        {"eth_getTransactionReceipt": lambda _: None},
        {"eth_getTransactionReceipt": lambda _: None, "eth_getTransactionByHash": lambda _: None},
        {"eth_getTransactionReceipt": lambda answer: {**answer, "status": "0x0"}},
    ],
    ids=["not mined", "not known", "failed"],
)
async def test_what_ends_a_forgotten_transfer_all_endpoints_say_and_more_than_one(
    node: Anvil, proxy: FaultyProxy, connect: Connect, intent: MakeIntent, sealed: Sealed, customer: str, lies: Any
) -> None:
    """Also where no quorum is asked for. Of two that contradict each other nobody knows which of them lies."""
    async with connect(proxy.url, node.url) as chain, connect(node.url) as alone:
        txs = await paying(chain, sealed, intent(customer, 5, chain.info.native))
        await chain.broadcast(txs)
        await mined(chain, txs)
        (tx_id,) = [tx.tx_id for tx in txs]
        honest = await alone.witnessed(tx_id)
        assert honest.block is not None
        assert await chain.witnessed(tx_id) == honest
        assert (await chain.witnessed("0x" + "ab" * 32)).state == "unknown"
        proxy.lies.update(lies)
        with pytest.raises(InconsistentChainError, match="1 tell the same"):
            await chain.witnessed(tx_id)
        proxy.lies.clear()
        assert await chain.witnessed(tx_id) == honest
        proxy.faults.add(Fault.HTTP_500)
        with pytest.raises(ChainUnavailableError, match="2 endpoints of local must tell the same"):
            await chain.witnessed(tx_id)


class Jumping(FaultyProxy):
    """An address of several nodes: one that is behind tries transfers, so many times, another tells all the rest."""

    behind = "latest"
    times = 0

    async def _ask(self, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if self.times and any(call["method"] == "eth_estimateGas" for call in calls):
            self.times -= 1
            old = [("eth_estimateGas", "eth_call").count(call["method"]) for call in calls]
            calls = [
                {**call, "params": [call["params"][0], self.behind]} if is_old else call
                for call, is_old in zip(calls, old, strict=True)
            ]
        return await super()._ask(calls)


@pytest.mark.parametrize("times", [1, 2, 3, 100])
async def test_a_node_that_has_not_heard_of_the_money_yet_refuses_nothing(
    node: Anvil, token: Contract, wallet: Wallet, connect: Connect, intent: MakeIntent, customer: str, times: int
) -> None:
    """Another behind the same address tells that it is there: a payout that is refused has failed for good."""
    before = await node.call("eth_blockNumber", [])
    await token.send("mint", wallet.address, 1_000)
    async with Jumping(node.url) as proxy, connect(proxy.url, token=token) as chain:
        wanted = [intent(customer, amount, chain.info.tokens[1]) for amount in (600, 1_000)]
        await chain.plan(wanted, sponsor=None)
        proxy.behind, proxy.times = before, times
        assert [plan.refused for plan in await chain.plan(wanted, sponsor=None)] == [None, None]
