"""The operator's table: what is known without configuration, and what is refused with a sentence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from eth_utils.address import to_checksum_address

from cambist.plugin import ChainInfo, ConfigError, PluginContext
from cambist_evm.config import EvmConfig, resolve
from cambist_evm.fees import FeeBounds
from cambist_evm.networks import NETWORKS
from cambist_evm.plugin import EvmPlugin, register_chains

URL = "https://node.example/v3/s3cr3t-key"
OWN = {"chain_id": 1337, "native_symbol": "TST", "confirmations": 2, "rpc_urls": [URL]}
ADDRESS = "0xdAC17F958D2ee523a2206206994597C13D831ec7"


def chains(**tables: dict[str, Any]) -> dict[str, ChainInfo]:
    config = msgspec.convert({"chains": tables}, EvmConfig)
    return {info.id: info for info in EvmPlugin().chains(config)}


def test_the_hook_brings_the_plugin() -> None:
    """Under the name of its entry point and of its table."""
    (plugin,) = register_chains()
    assert (plugin.name, plugin.api_version) == ("evm", 1)
    assert [family.coin_type for family in plugin.families()] == [60]


def test_a_chain_is_there_exactly_when_it_is_configured() -> None:
    """Nothing configured, nothing there."""
    assert chains() == {}
    assert chains(base={"rpc_urls": [URL]}).keys() == {"base"}


@pytest.mark.parametrize(
    "chain, chain_id, native, decimals",
    [("ethereum", 1, "ETH", 6), ("bsc", 56, "BNB", 18), ("polygon", 137, "POL", 6), ("arbitrum", 42161, "ETH", 6),
     ("base", 8453, "ETH", 6)],
)  # fmt: skip
def test_built_in_chains_know_their_coin_and_tokens(chain: str, chain_id: int, native: str, decimals: int) -> None:
    """The stablecoins of BSC have 18 decimals, all others 6."""
    info = chains(**{chain: {"rpc_urls": [URL]}})[chain]
    assert (info.chain_id_num, info.native.symbol, info.native.decimals, info.availability) == (
        chain_id,
        native,
        18,
        "live",
    )
    assert info.is_evm
    assert info.hashes_kept > info.confirmations
    assert {token.symbol: token.decimals for token in info.tokens[1:]} == {"USDT": decimals, "USDC": decimals}


def test_only_of_built_in_networks_is_known_which_logs_a_failed_transaction_keeps() -> None:
    """What the operator describes may write any, and must not stop for that."""
    config = msgspec.convert({"chains": {"mine": OWN, "polygon": {"rpc_urls": [URL]}}}, EvmConfig)
    assert {setup.info.id: setup.network.logs_known for setup in resolve(config)} == {"mine": False, "polygon": True}


def test_built_in_contracts_are_spelled_right() -> None:
    """A contract that is not normalized would never match."""
    for network in NETWORKS.values():
        for token in network.tokens:
            assert token.contract == to_checksum_address(token.contract)


def test_every_built_in_network_is_told_of_and_read_from_a_recorded_block() -> None:
    """What the recipe for one more network asks for, and nobody would miss."""
    here = Path(__file__).parent
    pages = [here.parent / "README.md", here.parents[1] / "README.md", here.parents[2] / "README.md"]
    for network in NETWORKS.values():
        named = re.compile(rf"\b({re.escape(network.name)}|{re.escape(network.id.title())})\b")
        assert [page for page in pages if not named.search(page.read_text())] == []
        assert f"| {network.id} |" in pages[0].read_text()
        assert list(here.glob(f"recorded/{network.id}_*.json")) != []


def test_the_operator_can_add_and_replace_tokens() -> None:
    """The same symbol replaces the built-in token, another one stands beside it."""
    replaced = {"symbol": "usdt", "contract": "0x" + "12" * 20, "decimals": 8}
    added = {"symbol": "USDX", "contract": "0x" + "34" * 20, "decimals": 2, "label": "Example"}
    info = chains(ethereum={"rpc_urls": [URL], "tokens": [replaced, added]})["ethereum"]
    assert [token.symbol for token in info.tokens] == ["ETH", "USDT", "USDC", "USDX"]
    usdt, usdx = info.token("USDT"), info.token("USDX")
    assert usdt is not None
    assert (usdt.contract, usdt.decimals) == ("0x" + "12" * 20, 8)
    assert usdx is not None
    assert usdx.label == "Example"


def test_a_further_chain_comes_by_configuration() -> None:
    """With its chain id, coin and confirmations."""
    info = chains(**{"my-chain": {**OWN, "name": "Mine", "native_decimals": 9}})["my-chain"]
    assert (info.name, info.chain_id_num, info.native.symbol, info.native.decimals) == ("Mine", 1337, "TST", 9)


async def test_a_simulated_chain_needs_no_endpoint_and_is_not_connected(context: PluginContext) -> None:
    """It is for sandbox projects only."""
    config = msgspec.convert({"chains": {"ethereum": {"simulated": True}}}, EvmConfig)
    assert [info.availability for info in EvmPlugin().chains(config)] == ["simulated"]
    async with EvmPlugin().connect(config, context) as connected:
        assert list(connected) == []


@pytest.mark.parametrize(
    "chain, table, sentence",
    [
        ("ethereum", {}, "rpc_urls is empty"),
        ("ethereum", {"rpc_urls": ["ftp://node"]}, "number 1 is no http"),
        ("ethereum", {"rpc_urls": [URL, "https://"]}, "number 2 is no http"),
        ("ethereum", {"rpc_urls": [URL, "https://node:99999999"]}, "number 2 is no http"),
        ("ethereum", {"rpc_urls": [URL, URL]}, "twice"),
        ("ethereum", {"rpc_urls": [URL], "quorum": 2}, "quorum is 2"),
        ("ethereum", {"rpc_urls": [URL], "chain_id": 5}, "built in with chain id 1"),
        ("mine", {"rpc_urls": [URL]}, "is not built in"),
        ("Mine!", OWN, "lower-case letters"),
        ("mine", {**OWN, "native_symbol": "T T"}, "native_symbol"),
        ("mine", {**OWN, "tokens": [{"symbol": "A", "contract": "0x12", "decimals": 6}]}, "no address"),
        ("mine", {**OWN, "tokens": [{"symbol": "A", "contract": ADDRESS.swapcase(), "decimals": 6}]}, "no address"),
        ("mine", {**OWN, "tokens": [{"symbol": "TST", "contract": ADDRESS, "decimals": 6}]}, "native coin"),
        ("mine", {**OWN, "tokens": [{"symbol": "A", "contract": "0x" + "f" * 39 + "e", "decimals": 6}]}, "EIP-7708"),
        ("mine", {**OWN, "tokens": [{"symbol": "A", "contract": ADDRESS, "decimals": 6}] * 2}, "A is listed twice"),
        ("mine", {**OWN, "sweeper": "0x12"}, "sweeper is no address"),
        ("mine", {**OWN, "sweeper": "0x" + "0" * 40}, "sweeper is no sweeper"),
        ("mine", {**OWN, "fee_ceiling_gwei": 0}, "must not fall"),
        ("mine", {**OWN, "fee_ceiling_gwei": -1}, "fee_ceiling_gwei: -1 is not between 0 and"),
        ("mine", {**OWN, "fee_ceiling_gwei": "NaN"}, "fee_ceiling_gwei: NaN is not"),
        ("mine", {**OWN, "fee_ceiling_gwei": "1e10"}, "is not between 0 and 1000000000"),
        ("mine", {**OWN, "fee_ceiling_gwei": "0.0000000001"}, "at most 9 decimals"),
        ("mine", {**OWN, "fee_ceiling_gwei": "1." + "0" * 40 + "1"}, "at most 9 decimals"),
        ("mine", {**OWN, "fee_ceiling_gwei": 5, "tip_min_gwei": 6}, "must not fall"),
        ("mine", {**OWN, "tip_min_gwei": 2, "tip_max_gwei": 1}, "must not fall"),
        ("polygon", {"rpc_urls": [URL], "fee_ceiling_gwei": 10}, "must not fall"),
        (
            "ethereum",
            {"rpc_urls": [URL], "tokens": [{"symbol": "A", "contract": ADDRESS, "decimals": 6}]},
            "listed twice",
        ),
    ],
)
def test_what_means_nothing_is_refused_with_a_sentence(chain: str, table: dict[str, Any], sentence: str) -> None:
    """The sentence names the setting and never repeats an endpoint, which may carry a key."""
    with pytest.raises(ConfigError, match=sentence) as caught:
        chains(**{chain: table})
    assert "s3cr3t" not in str(caught.value)


def test_one_network_cannot_be_listed_twice() -> None:
    """Two watchers would both credit each deposit."""
    with pytest.raises(ConfigError, match="chain id 1 is configured twice"):
        chains(ethereum={"rpc_urls": [URL]}, copy={**OWN, "chain_id": 1})


@pytest.mark.parametrize("table", [{"rpc_url": URL}, {"rpc_urls": [URL], "confirmations": 0}, {"rpc_urls": URL}])
def test_unknown_fields_and_wrong_types_are_refused(table: dict[str, Any]) -> None:
    """While the file is read."""
    with pytest.raises(msgspec.ValidationError):
        chains(ethereum=table)


@pytest.mark.parametrize(
    "table, bounds",
    [
        ({}, (500_000_000_000, 0, 500_000_000_000)),
        ({"fee_ceiling_gwei": 0.1}, (100_000_000, 0, 100_000_000)),
        ({"fee_ceiling_gwei": "0.000000001"}, (1, 0, 1)),
        ({"tip_min_gwei": 3, "tip_max_gwei": "4.5"}, (500_000_000_000, 3_000_000_000, 4_500_000_000)),
    ],
)
def test_fees_are_bounded_to_the_wei(table: dict[str, Any], bounds: tuple[int, int, int]) -> None:
    """However the number is written in the file."""
    (setup,) = resolve(msgspec.convert({"chains": {"mine": {**OWN, **table}}}, EvmConfig))
    assert setup.fees == FeeBounds(ceiling=bounds[0], tip_min=bounds[1], tip_max=bounds[2])


def test_an_operators_bound_moves_those_that_he_did_not_set() -> None:
    """A lower ceiling lowers the highest tip with it, a higher lowest tip raises it."""
    lower, higher = {"rpc_urls": [URL], "fee_ceiling_gwei": 1}, {"rpc_urls": [URL], "tip_min_gwei": 50}
    for table, tips in ((lower, (10_000_000, 10**9)), (higher, (50 * 10**9, 50 * 10**9))):
        (setup,) = resolve(msgspec.convert({"chains": {"ethereum": table}}, EvmConfig))
        assert (setup.fees.tip_min, setup.fees.tip_max) == tips


@pytest.mark.parametrize("calls_max, short", [(1, 1), (5, 50), (100, 1000)])
def test_ten_times_as_many_calls_go_into_a_request_where_answers_are_short(calls_max: int, short: int) -> None:
    """But where batches are unwanted there are none."""
    (setup,) = resolve(msgspec.convert({"chains": {"mine": {**OWN, "batch_calls_max": calls_max}}}, EvmConfig))
    assert setup.short_calls_max == short
