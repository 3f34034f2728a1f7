"""The chain in memory beyond what the kit asks of every chain: seeds, faults, senders, and the plugin around it."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.plugin import (
    ChainUnavailableError,
    ConfigError,
    InconsistentChainError,
    InvalidAddressError,
    PluginContext,
    RateLimitedError,
    Span,
    SpanTooWideError,
    Token,
)
from cambist.testing import watching
from cambist.testing.memory import (
    MemoryChain,
    MemoryChainConfig,
    MemoryConfig,
    MemoryFamily,
    MemoryPlugin,
    Output,
    memory_chain_info,
)

FAMILY = MemoryFamily()
XPUB = "xpubForTheTestsOfTheMemoryChain01"
ALICE, BOB = (FAMILY.derive_address(XPUB, 0, index) for index in (0, 1))
CONTEXT = PluginContext(
    now=lambda: datetime(2026, 1, 1, tzinfo=UTC), monotonic=lambda: 0.0, random=Random(1), user_agent="tests"
)


@pytest.fixture
def chain() -> MemoryChain:
    return MemoryChain(memory_chain_info())


@pytest.fixture
def native(chain) -> Token:
    return chain.info.native


def played(seed: int) -> list[str]:
    chain = MemoryChain(memory_chain_info(), seed=seed)
    first = chain.transfer(chain.info.native, ALICE, 5)
    chain.mine(3)
    chain.reorg(2)
    return [first, *(block.header.hash for block in chain.seen())]


def test_one_seed_is_one_history():
    assert played(7) == played(7)
    assert set(played(7)).isdisjoint(played(8))


async def test_waiting_transactions_go_into_the_next_block(chain, native):
    tx_ids = [chain.transfer(native, ALICE, amount) for amount in (1, 2)]
    chain.mine(2, time=1_800_000_000)
    async with chain.view() as view:
        result = await view.scan(Span(first=1, last=2), watching(FAMILY, ALICE))
    assert [transfer.tx_id for transfer in result.transfers] == tx_ids
    assert {transfer.height for transfer in result.transfers} == {1}
    assert [block.time for block in result.blocks] == [1_800_000_000, 1_800_000_002]


async def test_a_sender_without_the_money_reverts(chain, native):
    chain.transfer(native, ALICE, 10)
    chain.mine()
    paid = chain.transfer(native, BOB, 7, sender=ALICE)
    overdrawn = chain.transfer(native, BOB, 4, sender=ALICE)
    chain.mine()
    assert (await chain.transaction(paid)).state == "succeeded"
    assert (await chain.transaction(overdrawn)).state == "reverted"
    assert await chain.balance(ALICE, native) == 3
    assert await chain.balance(BOB, native) == 7


async def test_a_reorg_may_leave_the_chain_longer_or_shorter(chain):
    chain.mine(5)
    chain.reorg(2, new_blocks=3)
    assert chain.height == 6
    chain.reorg(3, new_blocks=1)
    assert chain.height == 4


@pytest.mark.parametrize("depth", [0, -1, 4])
def test_genesis_stays(chain, depth):
    chain.mine(3)
    with pytest.raises(ValueError, match="above genesis"):
        chain.reorg(depth)


def test_only_what_was_dropped_can_be_mined_again(chain, native):
    kept = chain.transfer(native, ALICE, 1)
    chain.mine(3)
    with pytest.raises(KeyError):
        chain.reorg(1, mine_again=[kept])
    assert chain.height == 3


@pytest.mark.parametrize("recipient", [ALICE.upper(), "nobody"])
def test_a_recipient_is_a_normalized_address(chain, native, recipient):
    with pytest.raises((ValueError, InvalidAddressError)):
        chain.transfer(native, recipient, 1)
    with pytest.raises(ValueError, match="not negative"):
        chain.submit([Output(contract=None, recipient=ALICE, amount=-1)])


async def test_faults_show_as_the_errors_of_the_contract(chain):
    chain.mine(5)
    faults = chain.faults
    faults.span_max = 2
    async with chain.view() as view:
        with pytest.raises(SpanTooWideError):
            await view.scan(Span(first=1, last=3), frozenset())
        assert len((await view.scan(Span(first=1, last=2), frozenset())).blocks) == 2
        faults.inconsistent = True
        with pytest.raises(InconsistentChainError):
            await view.scan(Span(first=1, last=1), frozenset())
    faults.rate_limited_s = 2.5
    with pytest.raises(RateLimitedError) as limited:
        async with chain.view():
            pass
    assert limited.value.retry_after == 2.5
    faults.rate_limited_s = None
    faults.crash = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        await chain.transaction("0")


async def test_some_calls_fail_and_then_all_is_well(chain, native):
    chain.faults.failing_calls = 2
    for _ in range(2):
        with pytest.raises(ChainUnavailableError):
            await chain.balance(ALICE, native)
    assert await chain.balance(ALICE, native) == 0
    assert chain.endpoints()[0].calls == 3


async def test_a_lagging_endpoint_does_not_know_the_newest_blocks(chain):
    chain.mine(5)
    chain.faults.lag_blocks = 2
    async with chain.view() as view:
        assert (await view.head()).height == 3
        with pytest.raises(InconsistentChainError):
            await view.block(4)
    chain.faults.lag_blocks = 100
    async with chain.view() as view:
        assert (await view.head()).height == 0


async def test_the_world_can_change_in_the_middle_of_a_look(chain, native):
    chain.mine()
    calls = []

    async def before(call):
        calls.append(call)
        if call == "scan":
            chain.reorg(1)

    async with chain.view() as view:
        old = await view.block(1)
        chain.faults.before = before
        result = await view.scan(Span(first=1, last=1), frozenset())
    assert result.blocks[0].hash != old.hash
    assert calls == ["scan"]


async def test_an_error_that_leaves_a_view_counts_against_the_endpoint(chain):
    with pytest.raises(InconsistentChainError):
        async with chain.view() as view:
            await view.block(9)
    assert chain.endpoints()[0].failures == 1


async def test_the_plugin_keeps_its_chains_from_one_connection_to_the_next():
    plugin = MemoryPlugin()
    config = MemoryConfig(chains={"one": MemoryChainConfig(), "two": MemoryChainConfig(availability="simulated")})
    assert [(info.id, info.availability) for info in plugin.chains(config)] == [("one", "live"), ("two", "simulated")]
    async with plugin.connect(config, CONTEXT) as chains:
        assert [chain.info.id for chain in chains] == ["one"]
        plugin.memory_chains["one"].mine(3)
    async with plugin.connect(config, CONTEXT) as (chain,), chain.view() as view:
        assert (await view.head()).height == 3


def test_a_chain_without_confirmations_is_refused():
    with pytest.raises(ConfigError, match=r"chains\.one\.confirmations"):
        MemoryPlugin().chains(MemoryConfig(chains={"one": MemoryChainConfig(confirmations=0)}))


@pytest.mark.parametrize("xpub, change, index", [("short", 0, 0), (XPUB, 3, 0), (XPUB, 0, -1), (XPUB, 0, 2**31)])
def test_nonsense_is_not_derived(xpub, change, index):
    with pytest.raises(ValueError, match=r"account key|no derivation"):
        FAMILY.derive_address(xpub, change, index)


@given(st.lists(st.tuples(st.sampled_from(["transfer", "mine", "reorg"]), st.integers(1, 4)), max_size=30))
async def test_hashes_stay_linked_and_balances_are_what_transfers_say(moves):
    chain = MemoryChain(memory_chain_info(config=MemoryChainConfig(span_max=200)))
    for move, number in moves:
        if move == "transfer":
            chain.transfer(chain.info.tokens[number % 3], ALICE, number)
        elif move == "mine":
            chain.mine(number)
        elif chain.height >= number:
            chain.reorg(number, new_blocks=number + 1)
    async with chain.view() as view:
        result = await view.scan(Span(first=0, last=chain.height), watching(FAMILY, ALICE))
    assert [block.parent_hash for block in result.blocks[1:]] == [block.hash for block in result.blocks[:-1]]
    for token in chain.info.tokens:
        amounts = [transfer.amount for transfer in result.transfers if transfer.contract == token.contract]
        assert await chain.balance(ALICE, token) == sum(amounts)
