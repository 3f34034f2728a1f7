"""The kit for changing chains while the gateway runs: the chain in memory passes it, and broken plugins do not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cambist.plugin import ConfigError, Token
from cambist.testing.conformance import Configured, SetupConformance
from cambist.testing.memory import MemoryChainConfig, MemoryConfig, MemoryPlugin
from cambist.testing.memory.family import named_address

TOKEN = Token(symbol="EURX", contract=named_address("memory/EURX"), decimals=2, label="Example euro")
CONFIG = MemoryConfig(chains={"memory": MemoryChainConfig(), "other": MemoryChainConfig(confirmations=9)})
KIT = sorted(name for name in vars(SetupConformance) if name.startswith("test_"))


def configured(plugin: MemoryPlugin) -> Configured:
    return Configured(plugin=plugin, config=CONFIG, chain="memory", endpoint="memory://second", token=TOKEN)


class TestMemorySetups(SetupConformance):
    @pytest.fixture
    def configured(self) -> Configured:
        return configured(MemoryPlugin())


class ForgetsFile(MemoryPlugin):
    """The new configuration is made of nothing but the setup."""

    def changed(self, config, chain, setup):
        one = MemoryChainConfig(endpoints=setup.endpoints, confirmations=len(config.chains) + 5)
        return MemoryConfig(chains={chain: one})


class Whole(MemoryPlugin):
    """All chains are connected anew for a change of one."""

    def changed(self, config, chain, setup):
        return replace(config, chains=config.chains | super().changed(config, chain, setup).chains)


class KeepsEndpoints(MemoryPlugin):
    """What was there before stays in use."""

    def changed(self, config, chain, setup):
        before = self.setup(config, chain).endpoints
        return super().changed(config, chain, replace(setup, endpoints=(*before, *setup.endpoints)))


class ForgetsTokens(MemoryPlugin):
    """A token that is added is never told of."""

    def changed(self, config, chain, setup):
        return super().changed(config, chain, replace(setup, tokens=()))


class Unchecked(MemoryPlugin):
    """Whatever is asked for is taken."""

    def changed(self, config, chain, setup):
        one = replace(config.chains[chain], endpoints=setup.endpoints, quorum=setup.quorum, tokens=setup.tokens)
        return replace(config, chains={chain: one})


class Talkative(MemoryPlugin):
    """The sentence repeats the address, and with it the key."""

    def changed(self, config, chain, setup):
        try:
            return super().changed(config, chain, setup)
        except ConfigError as error:
            raise ConfigError(f"{setup.endpoints}: {error}") from error


BROKEN = {
    "test_a_changed_configuration_makes_this_chain_alone": Whole,
    "test_a_contract_is_one_token": Unchecked,
    "test_a_token_can_be_added": ForgetsTokens,
    "test_an_endpoint_can_be_added_and_replaced": KeepsEndpoints,
    "test_fewer_endpoints_than_must_agree_are_refused": Unchecked,
    "test_what_a_setup_says_changes_nothing": ForgetsFile,
    "test_what_is_no_endpoint_is_refused_without_being_repeated": Talkative,
}


@pytest.mark.parametrize("name", KIT)
def test_a_broken_plugin_is_caught(name):
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        getattr(SetupConformance(), name)(configured(BROKEN[name]()))
