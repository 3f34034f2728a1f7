"""What a chain says of itself must make sense before anything is read from it."""

from __future__ import annotations

import re

import pytest

from cambist.plugin import UnreadableTokenError
from cambist.testing.guard import Conformance
from cambist.testing.harness import ChainHarness

from .helpers import a_token


class ChainInfoConformance(Conformance):
    @pytest.fixture
    async def harness(self) -> ChainHarness:
        """Return the network under the kit's control."""
        raise NotImplementedError

    async def test_the_chain_has_an_id_and_a_name(self, harness: ChainHarness) -> None:
        """The id is what merchants write, the name what customers read."""
        assert re.fullmatch(r"[a-z][a-z0-9_-]{0,31}", harness.chain.info.id)
        assert harness.chain.info.name.strip()

    async def test_the_chain_belongs_to_its_family(self, harness: ChainHarness) -> None:
        """Chain, family and samples speak of the same family."""
        assert harness.chain.info.family == harness.family.name == harness.samples.chain.family

    async def test_the_native_coin_comes_first_and_once(self, harness: ChainHarness) -> None:
        """Every chain has a coin of its own."""
        assert [token.is_native for token in harness.chain.info.tokens].index(True) == 0
        assert sum(token.is_native for token in harness.chain.info.tokens) == 1

    async def test_symbols_are_unique(self, harness: ChainHarness) -> None:
        """A merchant names a token by its symbol, so one symbol is one token; letter case does not count."""
        symbols = [token.symbol.upper() for token in harness.chain.info.tokens]
        assert len(set(symbols)) == len(symbols)

    async def test_symbols_and_labels_can_be_shown(self, harness: ChainHarness) -> None:
        """Symbols are short and plain."""
        for token in harness.chain.info.tokens:
            assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,31}", token.symbol)
            assert token.label.strip()

    async def test_contracts_are_unique_and_normalized(self, harness: ChainHarness) -> None:
        """A transfer's contract is compared as text."""
        contracts = [token.contract for token in harness.chain.info.tokens if token.contract is not None]
        assert len(set(contracts)) == len(contracts)
        assert all(harness.family.normalize_address(contract) == contract for contract in contracts)

    async def test_decimals_are_in_range(self, harness: ChainHarness) -> None:
        """An amount of 78 digits is the most that is stored."""
        assert all(0 <= token.decimals <= 36 for token in harness.chain.info.tokens)

    async def test_limits_make_sense(self, harness: ChainHarness) -> None:
        """At least one block per scan, and more hashes kept than a payment has confirmations."""
        info = harness.chain.info
        assert info.confirmations >= 1
        assert info.span_max >= 1
        assert info.hashes_kept > info.confirmations
        assert info.poll_interval_ms > 0

    async def test_endpoints_carry_no_credentials(self, harness: ChainHarness) -> None:
        """What is shown to operators and written to logs has no key in it."""
        for health in harness.chain.endpoints():
            assert health.name
            assert not re.search(r"@|\?|[0-9A-Za-z_-]{24,}", health.name)
            assert 0 <= health.failures <= health.calls

    async def test_a_token_tells_what_it_is_registered_as(self, harness: ChainHarness) -> None:
        """Where contracts can be asked, which is what a token is added by while the gateway runs."""
        token = a_token(harness)
        told = await harness.chain.token_at(token.contract or "")
        assert told is None or (told.contract, told.decimals) == (token.contract, token.decimals)

    async def test_an_address_without_a_contract_is_no_token(self, harness: ChainHarness) -> None:
        """Whatever a node answers for it."""
        try:
            told = await harness.chain.token_at(harness.fresh_address())
        except UnreadableTokenError:
            told = None
        assert told is None

    async def test_the_right_network_has_no_problems(self, harness: ChainHarness) -> None:
        """Doctor has nothing to say of a network that is what the configuration says."""
        assert list(await harness.chain.problems()) == []
