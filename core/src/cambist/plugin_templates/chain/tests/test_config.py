"""Mistakes in the operator's table are told in a sentence that names the setting."""

from __future__ import annotations

import msgspec
import pytest

from cambist.plugin import ConfigError, Token
from cambist.testing.conformance import Configured, SetupConformance
from cambist_florin.addresses import spell
from cambist_florin.config import FlorinConfig
from cambist_florin.plugin import FlorinPlugin


def test_without_an_endpoint_the_chain_is_known_and_not_configured() -> None:
    """So that it is listed, and refused with a reason."""
    (info,) = FlorinPlugin().chains(FlorinConfig())
    assert (info.id, info.availability) == ("florin", "unconfigured")


def test_a_simulated_chain_needs_no_endpoint() -> None:
    """It counts for sandbox projects."""
    (info,) = FlorinPlugin().chains(FlorinConfig(simulated=True))
    assert info.availability == "simulated"


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"rpc_urls": ["node.example"]}, "rpc_urls: number 1 is no http"),
        ({"confirmations": 0}, "confirmations is at least 1"),
        ({"tokens": [{"symbol": "USDX", "contract": "?", "decimals": 6}]}, "the contract of USDX is no address"),
    ],
)
def test_a_mistake_is_named(table: dict[str, object], told: str) -> None:
    """By the setting's path."""
    with pytest.raises(ConfigError, match=told):
        FlorinPlugin().chains(msgspec.convert(table, FlorinConfig))


class TestFlorinSetups(SetupConformance):
    """Endpoints and tokens can be changed while the gateway runs: the kit asks what that takes."""

    @pytest.fixture
    def configured(self) -> Configured:
        """Return a table with settings that must stay as they are."""
        table = {"rpc_urls": ["https://node.example/a-key"], "confirmations": 9}
        return Configured(
            plugin=FlorinPlugin(),
            config=msgspec.convert(table, FlorinConfig),
            chain="florin",
            endpoint="https://second.example",
            token=Token(symbol="EURX", contract=spell(b"token EURX".ljust(20, b"\0")), decimals=2, label="Euro"),
        )
