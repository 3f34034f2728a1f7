"""What the operator's table comes to, and what is wrong with one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cambist.plugin import ConfigError, PluginContext
from cambist_tron.addresses import raw_of
from cambist_tron.config import ChainSetup, TronConfig, resolve
from cambist_tron.networks import NETWORKS
from cambist_tron.plugin import TronPlugin, register_chains

URL = "https://node.example"
SECOND = "https://second.example/sEcRetPath"
GENESIS = "0000000000000000" + "ab" * 24


def setup(**table: Any) -> ChainSetup:
    return resolve(msgspec.convert(table, TronConfig))


def test_the_hook_brings_the_plugin() -> None:
    """Under the name of its entry point and of its table."""
    (plugin,) = register_chains()
    assert (plugin.name, plugin.api_version) == ("tron", 1)
    assert [(family.name, family.coin_type) for family in plugin.families()] == [("tron", 195)]


async def test_without_a_table_tron_is_listed_and_nothing_is_connected(context: PluginContext) -> None:
    """So that it is offered, and refused, until the operator names an endpoint."""
    (info,) = TronPlugin().chains(TronConfig())
    assert (info.id, info.availability, info.chain_id_num, info.family) == ("tron", "unconfigured", 728126428, "tron")
    async with TronPlugin().connect(TronConfig(), context) as chains:
        assert list(chains) == []


async def test_a_simulated_chain_asks_nobody(context: PluginContext) -> None:
    """Endpoints or not."""
    config = TronConfig(simulated=True, rpc_urls=(URL,), quorum=3)
    assert resolve(config).info.availability == "simulated"
    async with TronPlugin().connect(config, context) as chains:
        assert list(chains) == []


def test_the_main_network_is_the_default() -> None:
    """With its tokens, and solid blocks as the ceiling for confirmations."""
    info = setup(rpc_urls=[URL]).info
    assert (info.availability, info.name, info.token_standard) == ("live", "TRON", "TRC-20")
    assert [(token.symbol, token.decimals) for token in info.tokens] == [("TRX", 6), ("USDT", 6), ("USDC", 6)]
    assert (info.confirmations, info.finality_required) == (19, True)
    assert info.explorer_tx_url == "https://tronscan.org/#/transaction/{tx_id}"


@pytest.mark.parametrize("name", ["mainnet", "nile", "shasta"])
def test_a_network_is_known_by_its_first_block(name: str) -> None:
    """Whose last four bytes are its number for contracts and wallets."""
    network = NETWORKS[name]
    chosen = setup(network=name, rpc_urls=[URL])
    assert network.genesis_id is not None
    assert chosen.genesis_id == network.genesis_id
    assert chosen.info.chain_id_num == network.chain_id == int(network.genesis_id[-8:], 16)
    assert all(len(raw_of(token.contract or "")) == 20 for token in chosen.info.tokens[1:])


def test_a_local_network_may_say_who_it_is() -> None:
    """Its own first block is checked where the operator names it."""
    assert (setup(network="local", rpc_urls=[URL]).genesis_id, setup(network="local").info.chain_id_num) == (None, None)
    chosen = setup(network="local", rpc_urls=[URL], genesis_id=GENESIS)
    assert (chosen.genesis_id, chosen.info.chain_id_num) == (GENESIS, 0xABABABAB)


def test_own_tokens_stand_beside_the_built_in_ones_or_replace_them() -> None:
    """By symbol, whatever its case."""
    chosen = setup(
        rpc_urls=[URL],
        tokens=[
            {"symbol": "usdd", "contract": "TPYmHEhy5n8TCEfYGqW2rPxsghSfzghPDn", "decimals": 18, "label": "USDD"},
            {"symbol": "USDC", "contract": "TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf", "decimals": 8},
        ],
    )
    assert [(token.symbol, token.decimals) for token in chosen.info.tokens] == [
        ("TRX", 6), ("USDT", 6), ("USDC", 8), ("USDD", 18),
    ]  # fmt: skip
    usdt = "a614f803b6fd780986a42c78ec9c7f77e6ded13c"
    assert chosen.contracts[usdt] == chosen.contracts["41" + usdt] == chosen.info.tokens[1].contract


@pytest.mark.parametrize(
    "urls, keys, expected",
    [
        ([URL, SECOND], [], (None, None)),
        ([URL, SECOND], ["one"], ("one", "one")),
        ([URL, SECOND], ["one", ""], ("one", None)),
    ],
)
def test_one_key_serves_all_endpoints_or_each_has_its_own(urls: list[str], keys: list[str], expected: Any) -> None:
    """An empty text stands for an endpoint that needs none."""
    assert setup(rpc_urls=urls, api_keys=keys).api_keys == expected


def test_what_trongrid_allows_is_known() -> None:
    """The operator's own figure outweighs it; other endpoints are asked as fast as they answer."""
    urls = ["https://api.trongrid.io", URL]
    assert setup(rpc_urls=urls).paces == (3, None)
    assert setup(rpc_urls=urls, api_keys=["key"]).paces == (14, None)
    assert setup(rpc_urls=urls, requests_per_second_max=5).paces == (5, 5)


@pytest.mark.parametrize(
    "table, said",
    [
        ({"rpc_urls": ["node.example"]}, "number 1 is no http"),
        ({"rpc_urls": [URL, "ftp://x"]}, "number 2 is no http"),
        ({"rpc_urls": [URL, URL + "/"]}, "twice"),
        ({"rpc_urls": [URL + "?key=abcdef"]}, "number 1 has something behind"),
        ({"rpc_urls": [URL, "https://other.example/#top"]}, "number 2 has something behind"),
        ({"rpc_urls": [URL + "/wallet/"]}, "number 1 has to end before /wallet"),
        ({"rpc_urls": [URL + "/jsonrpc"]}, "number 1 has to end before"),
        ({"rpc_urls": [URL], "quorum": 2}, "only 1 endpoints"),
        ({"rpc_urls": [URL], "api_keys": ["one", "two"]}, "2 keys for 1 endpoints"),
        ({"rpc_urls": [URL], "api_keys": ["a b"]}, "printable"),
        ({"rpc_urls": [URL], "api_keys": ["a\r\nX: y"]}, "printable"),
        ({"genesis_id": GENESIS}, "is known"),
        ({"network": "local", "genesis_id": "0xab"}, "64 hex digits"),
        ({"fee_ceiling_trx": "0"}, "above 0"),
        ({"fee_ceiling_trx": "NaN"}, "above 0"),
        ({"fee_ceiling_trx": "0.0000001"}, "at most 6 decimals"),
        ({"fee_ceiling_trx": "15001"}, "at most 15000"),
        ({"tokens": [{"symbol": "TRX", "contract": "TPYmHEhy5n8TCEfYGqW2rPxsghSfzghPDn", "decimals": 6}]}, "native"),
        ({"tokens": [{"symbol": "X", "contract": "TPYmHEhy5n8TCEfYGqW2rPxsghSfzghPDm", "decimals": 6}]}, "checksum"),
        ({"tokens": [{"symbol": "X", "contract": "0x" + "ab" * 20, "decimals": 6}]}, "no address"),
        ({"tokens": [{"symbol": "X", "contract": "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb", "decimals": 6}]}, "burned"),
        ({"tokens": [{"symbol": "X", "contract": "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "decimals": 6}]}, "twice"),
    ],
)
def test_a_table_that_means_nothing_stops_the_start(table: dict[str, Any], said: str) -> None:
    """With a sentence that names the setting, and no secret."""
    with pytest.raises(ConfigError, match=said) as caught:
        setup(**table)
    assert str(caught.value).startswith("plugins.tron")
    assert URL not in str(caught.value)


@pytest.mark.parametrize("table", [{"network": "main"}, {"confirmations": 0}, {"energy": "rent"}, {"rpc_url": URL}])
def test_a_table_of_another_shape_is_refused(table: dict[str, Any]) -> None:
    """Unknown settings included."""
    with pytest.raises(msgspec.ValidationError):
        setup(**table)
