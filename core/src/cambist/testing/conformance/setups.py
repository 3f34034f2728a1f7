"""The kit for plugins whose chains can be changed while the gateway runs. Asks no node: every test is pure."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from cambist.plugin import AnyChainPlugin, ChainInfo, ConfigError, NetworkSetup, Token
from cambist.testing.guard import Conformance

SECRET = "ftp://someone:s3cr3t-word@node.example/s3cr3t-key"  # noqa: S105  of nobody
"""What is no endpoint of any chain, with secrets wherever an address can have some."""


class Configured(Struct, frozen=True, kw_only=True):
    """A plugin, its decoded table, one of its live chains, and what may be added to that.

    ``endpoint`` is an address beside those of the table, written with whatever key the plugin's addresses can have.
    ``token`` is a contract that neither the plugin nor the table knows.
    """

    plugin: AnyChainPlugin
    config: Any
    chain: str
    endpoint: str
    token: Token

    @property
    def info(self) -> ChainInfo:
        """The chain as the table has it."""
        return next(info for info in self.plugin.chains(self.config) if info.id == self.chain)

    @property
    def setup(self) -> NetworkSetup:
        """What of it can be changed."""
        setup = self.plugin.setup(self.config, self.chain)
        assert setup is not None
        return setup

    def changed(self, setup: NetworkSetup) -> Configured:
        """Return the same with another setup."""
        return replace(self, config=self.plugin.changed(self.config, self.chain, setup))


class SetupConformance(Conformance):
    """Subclass it, and give the fixture ``configured``."""

    @pytest.fixture
    def configured(self) -> Configured:
        """Return the plugin with a table that has at least one endpoint."""
        raise NotImplementedError

    def test_what_a_setup_says_changes_nothing(self, configured: Configured) -> None:
        """So that nothing of the operator's file is lost where one thing is changed."""
        again = configured.changed(configured.setup)
        assert again.setup == configured.setup
        assert again.info == configured.info

    def test_a_changed_configuration_makes_this_chain_alone(self, configured: Configured) -> None:
        """The others stay connected as they are."""
        again = configured.changed(configured.setup)
        assert [info.id for info in again.plugin.chains(again.config)] == [configured.chain]

    def test_an_endpoint_can_be_added_and_replaced(self, configured: Configured) -> None:
        """It is handed back as it was given, with its key, and the chain is the same."""
        before = configured.setup.endpoints
        for endpoints in ((*before, configured.endpoint), (configured.endpoint,)):
            again = configured.changed(replace(configured.setup, endpoints=endpoints, quorum=1))
            assert again.setup.endpoints == endpoints
            assert again.info == configured.info

    def test_a_token_can_be_added(self, configured: Configured) -> None:
        """It stands behind those that are there, as it was given, and nothing else is different."""
        setup = replace(configured.setup, tokens=(*configured.setup.tokens, configured.token))
        again = configured.changed(setup)
        assert again.setup == setup
        assert again.info == replace(configured.info, tokens=(*configured.info.tokens, configured.token))

    def test_a_contract_is_one_token(self, configured: Configured) -> None:
        """Neither a symbol nor a contract is there twice."""
        twice = replace(configured.token, symbol="OTHER")
        for tokens in ((configured.token, configured.token), (configured.token, twice)):
            with pytest.raises(ConfigError):
                configured.changed(replace(configured.setup, tokens=tokens))

    def test_fewer_endpoints_than_must_agree_are_refused(self, configured: Configured) -> None:
        """Nothing could be read from them."""
        with pytest.raises(ConfigError):
            configured.changed(replace(configured.setup, quorum=len(configured.setup.endpoints) + 1))

    def test_what_is_no_endpoint_is_refused_without_being_repeated(self, configured: Configured) -> None:
        """The sentence is shown to people, and an address holds keys."""
        for broken in (SECRET, "", "nowhere"):
            with pytest.raises(ConfigError) as refused:
                configured.changed(replace(configured.setup, endpoints=(broken,), quorum=1))
            assert "s3cr3t" not in str(refused.value)
