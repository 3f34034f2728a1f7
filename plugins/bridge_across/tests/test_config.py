"""The operator's table, what is pinned, and how the plugin comes in."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from web3 import Web3
from web3.utils.abi import event_abi_to_log_topic, function_abi_to_4byte_selector

from cambist.registry import installed_plugins
from cambist_bridge_across.abi import (
    DEPOSIT,
    DEPOSIT_SELECTOR,
    DEPOSITED,
    DEPOSITED_TOPIC,
    FILLED,
    FILLED_TOPIC,
    REFUNDED,
    REFUNDED_TOPIC,
    TRANSFER_TOPIC,
)
from cambist_bridge_across.addresses import parse_address, spell
from cambist_bridge_across.config import AcrossConfig
from cambist_bridge_across.deployments import PINNED, Deployments

from .samples import ETHEREUM, STRANGER, chain


def table(**settings) -> AcrossConfig:
    return msgspec.convert(settings, AcrossConfig)


@pytest.mark.parametrize(
    "settings, named",
    [
        ({"base_url": "ftp://app.across.to"}, "base_url"),
        ({"base_url": "https://user@app.across.to"}, "base_url"),
        ({"base_url": "https://app.across.to/api?x=1"}, "base_url"),
        ({"base_url": "http://app.across.to/api"}, "allow_http"),
        ({"base_url": "http://127.0.0.1.example/api"}, "allow_http"),
        ({"key": ""}, "key"),
        ({"key": "a\r\nb"}, "key"),
        ({"integrator_id": "00a1"}, "integrator_id"),
        ({"integrator_id": "0x00a1b2"}, "integrator_id"),
        ({"fee_max_percent": Decimal(0)}, "fee_max_percent"),
        ({"fee_max_percent": Decimal(51)}, "fee_max_percent"),
        ({"fee_max_percent": Decimal("0.00001")}, "fee_max_percent"),
        ({"fee_max_percent": Decimal("NaN")}, "fee_max_percent"),
        ({"requests_per_second": 0}, "requests_per_second"),
        ({"timeout_ms": 1}, "timeout_ms"),
        ({"chains": {"ethereum": {"spoke_pool": "0x12"}}}, "spoke_pool"),
        ({"chains": {"ethereum": {"wrapped_native": "0x" + "0" * 40}}}, "wrapped_native"),
        ({"chains": {"ethereum": {"spoke_pool": STRANGER[:-1] + "f"}}}, "spoke_pool"),
        ({"chains": {"ethereum": {"router": STRANGER}}}, "router"),
        ({"retries": 3}, "retries"),
    ],
)
def test_a_table_that_means_nothing_is_refused_by_the_settings_name(settings, named):
    with pytest.raises(msgspec.ValidationError, match=named):
        table(**settings)


def test_plain_http_is_for_this_machine_or_where_it_is_said():
    for url in ("http://127.0.0.1:8080/api", "http://localhost/api", "http://[::1]/api", "https://app.across.to/api"):
        assert table(base_url=url).base_url == url
    assert table(base_url="http://across.lan/api", allow_http=True)
    assert table(fee_max_percent=Decimal("0.25")).fee_max_ppm == 2500


def test_a_chain_has_across_where_it_is_pinned_or_told_whole():
    local = chain("local", 31337, "ETH")
    assert Deployments(table()).of(local) is None
    half = {"local": {"spoke_pool": STRANGER}}
    assert Deployments(table(chains=half)).of(local) is None
    whole = {"local": {"spoke_pool": STRANGER.lower(), "wrapped_native": STRANGER}}
    assert Deployments(table(chains=whole)).of(local).spoke_pool == STRANGER
    own = Deployments(table(chains={"ethereum": {"wrapped_native": STRANGER}})).of(ETHEREUM)
    assert (own.spoke_pool, own.wrapped_native) == (PINNED[1].spoke_pool, STRANGER)


def test_pinned_contracts_are_spelled_as_they_are_compared():
    for deployment in PINNED.values():
        for address in (deployment.spoke_pool, deployment.wrapped_native):
            assert Web3.is_checksum_address(address)


@given(st.binary(min_size=20, max_size=20))
def test_addresses_are_spelled_as_web3_spells_them(address):
    spelled = Web3.to_checksum_address(address)
    assert spell("0x" + address.hex()) == parse_address("0x" + address.hex()) == parse_address(spelled) == spelled


def test_selector_and_topics_are_those_of_the_interface():
    assert function_abi_to_4byte_selector(DEPOSIT) == DEPOSIT_SELECTOR
    assert event_abi_to_log_topic(DEPOSITED) == DEPOSITED_TOPIC
    assert event_abi_to_log_topic(FILLED) == FILLED_TOPIC
    assert event_abi_to_log_topic(REFUNDED) == REFUNDED_TOPIC
    assert Web3.keccak(text="Transfer(address,address,uint256)") == TRANSFER_TOPIC


def test_the_plugin_comes_in_by_the_door():
    row = next(row for row in installed_plugins({"bridge_across": {}}) if row.name == "bridge_across")
    assert (row.distribution, row.api_version, row.enabled, row.problem) == ("cambist-bridge-across", 1, True, None)
