"""What of TRON can be changed while the gateway runs, by the gateway's kit; keys stand in the endpoints' addresses."""

from __future__ import annotations

import msgspec
import pytest

from cambist.plugin import Token
from cambist.testing.conformance import Configured, SetupConformance
from cambist_tron.config import TronConfig
from cambist_tron.plugin import TronPlugin
from cambist_tron.setups import changed, setup_of

EURX = Token(symbol="EURX", contract="TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", decimals=2, label="Example euro")


class TestSetups(SetupConformance):
    @pytest.fixture
    def configured(self) -> Configured:
        """Return a network without tokens of its own."""
        table = {
            "network": "local",
            "rpc_urls": ["https://api.trongrid.io", "https://user:word@node.example/x"],
            "api_keys": ["first-key", ""],
            "quorum": 2,
            "confirmations": 3,
        }
        return Configured(
            plugin=TronPlugin(),
            config=msgspec.convert(table, TronConfig),
            chain="tron",
            endpoint="https://:second-key@api.trongrid.io/again",
            token=EURX,
        )


def test_a_key_stands_in_its_endpoints_address() -> None:
    """Where a password without a user would; whatever characters it has."""
    config = TronConfig(rpc_urls=("https://a.example", "https://b.example"), api_keys=("key/one", ""))
    setup = setup_of(config)
    assert setup is not None
    assert setup.endpoints == ("https://:key%2Fone@a.example", "https://b.example")
    found = changed(config, setup)
    assert (found.rpc_urls, found.api_keys) == (config.rpc_urls, config.api_keys)


def test_an_endpoint_with_a_user_and_a_key_leaves_the_chain_as_its_file_says() -> None:
    """There is no one text for both."""
    config = TronConfig(rpc_urls=("https://user:word@a.example",), api_keys=("key",))
    assert setup_of(config) is None
