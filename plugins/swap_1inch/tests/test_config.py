"""The operator's table, the door, and what importing the plugin does to a process."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cambist.plugin import ConfigError
from cambist.registry import Registry, RegistryError
from cambist_swap_1inch.config import NATIVE, ROUTER_V6, ChainConfig, OneInchConfig, check_api, routers
from cambist_swap_1inch.plugin import OneInchPlugin

from .conftest import ETHEREUM, STRANGER, chain, connected
from .server import KEY, ZERO

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "plugins/swap_1inch/README.md", ROOT / "docs/operators/exchanges.md"]


def loaded(**table):
    return Registry({"swap_1inch": {"key": KEY} | table})


async def test_it_is_found_by_its_name_and_brings_one_provider(clock):
    with pytest.raises(RegistryError, match="unknown field 'kee', did you mean 'key'"):
        loaded(kee="x")
    async with connected(clock, OneInchConfig(key=KEY)) as provider:
        assert provider.name == "1inch"


@pytest.mark.parametrize(
    "table, words",
    [
        ({"key": ""}, "swap_1inch.key"),
        ({"key": "two words"}, "swap_1inch.key"),
        ({"key": "line\nbreak"}, "swap_1inch.key"),
        ({"key": "k" * 513}, "swap_1inch.key"),
        ({"base_url": ""}, "base_url"),
        ({"base_url": "ftp://api.1inch.com"}, "base_url"),
        ({"base_url": "https://"}, "base_url"),
        ({"base_url": "https://user@api.1inch.com"}, "base_url"),
        ({"base_url": "https://api.1inch.com/?key=1"}, "base_url"),
        ({"base_url": "https://api.1inch.com/#top"}, "base_url"),
        ({"base_url": "https://api.1inch.com:port"}, "base_url"),
        ({"base_url": "https://[::1"}, "base_url"),
        ({"base_url": "http://api.1inch.com"}, "allow_http"),
        ({"base_url": "http://10.0.0.7"}, "allow_http"),
        ({"base_url": "http://localhost.example"}, "allow_http"),
        ({"base_url": "http://127.0.0.1.example"}, "allow_http"),
    ],
)
def test_what_the_api_cannot_be_asked_with_is_refused_by_name_and_never_shown(table, words):
    config = OneInchConfig(**{"key": KEY} | table)
    with pytest.raises(ConfigError, match=words) as refused:
        check_api(config)
    assert not config.key or config.key not in str(refused.value)


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"base_url": "https://api.1inch.dev/"},
        {"base_url": "https://proxy.example:8443/1inch"},
        {"base_url": "http://localhost:8080"},
        {"base_url": "http://127.0.0.9"},
        {"base_url": "http://[::1]:80"},
        {"base_url": "http://10.0.0.7", "allow_http": True},
    ],
)
def test_what_can_be_asked_is_taken(table):
    check_api(OneInchConfig(**{"key": KEY} | table))


async def test_a_wrong_table_stops_the_connection(clock):
    with pytest.raises(ConfigError):
        async with connected(clock, OneInchConfig(key=KEY, base_url="http://api.1inch.com")):
            pytest.fail("it is open")


@pytest.mark.parametrize(
    "router, words",
    [
        ("", "no address"),
        ("0x1", "no address"),
        (ROUTER_V6.swapcase().replace("0X", "0x"), "checksum"),
        (ZERO, "no contract"),
        (NATIVE, "no contract"),
    ],
)
def test_a_router_that_is_none_is_refused_by_the_chains_name(router, words):
    config = OneInchConfig(key=KEY, chains={"gnosis": ChainConfig(router=router)})
    for use in (routers, OneInchPlugin().readers):
        with pytest.raises(ConfigError, match=rf"^plugins\.swap_1inch\.chains\.gnosis\.router .*{words}"):
            use(config)


def test_a_signer_that_asks_nobody_needs_no_key():
    assert OneInchPlugin().readers(OneInchConfig())
    with pytest.raises(ConfigError, match="key"):
        check_api(OneInchConfig())


def test_a_router_is_normalized_and_stands_for_the_pinned_one():
    own = routers(OneInchConfig(key=KEY, chains={"ethereum": ChainConfig(router=STRANGER.lower())}))
    assert own.of(ETHEREUM) == STRANGER
    assert own.of(chain("second", 1)) == ROUTER_V6


def test_six_networks_have_a_router_of_their_own():
    pinned = routers(OneInchConfig(key=KEY))
    assert {number for number in range(50_000) if pinned.of(chain("any", number))} == {1, 10, 56, 137, 8453, 42161}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_setting_is_documented_with_its_default(page):
    rows = re.findall(r"^\| `(?:plugins\.swap_1inch\.)?([\w.<>]+)` \|([^|]*)\|", page.read_text(), re.MULTILINE)
    told = {name: default.strip(' `"') for name, default in rows}
    fields = dict(zip(OneInchConfig.__struct_fields__, OneInchConfig.__struct_defaults__, strict=True))
    for name, default in fields.items():
        if name != "chains":
            assert told.pop(name) == (str(default).lower() if isinstance(default, bool) else str(default))
    assert {name for name in told if "chains" in name} == {
        f"chains.<id>.{one}" for one in ChainConfig.__struct_fields__
    }


def in_a_process(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()


def test_importing_and_connecting_it_imports_no_codec_of_contracts():
    """The web process does so, and is the lighter for it."""
    code = """
import asyncio, sys, time
from datetime import UTC, datetime
from random import Random
from cambist.plugin import PluginContext
from cambist_swap_1inch.plugin import OneInchConfig, OneInchPlugin

async def connect():
    context = PluginContext(now=lambda: datetime.now(UTC), monotonic=time.monotonic, random=Random(1), user_agent="x")
    async with OneInchPlugin().connect(OneInchConfig(key="k"), context):
        print(*(name in sys.modules for name in ("web3", "eth_abi", "eth_account", "py_ecc")))

asyncio.run(connect())
"""
    assert in_a_process(code) == ["False"] * 4


BUILDING = """
import asyncio, sys, threading, time
from datetime import UTC, datetime
from random import Random
from cambist.plugin import ChainInfo, ChainToken, ExchangeRequest, PluginContext, ProviderUnavailableError, Token
from cambist_swap_1inch.plugin import OneInchConfig, OneInchPlugin

missing, threads = MISSING, set()

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"web3", "py_ecc", "eth_abi"}:
            threads.add(threading.current_thread() is threading.main_thread())
            if missing and name == "web3":
                raise ImportError("no web3 today")

async def build():
    context = PluginContext(now=lambda: datetime.now(UTC), monotonic=time.monotonic, random=Random(1), user_agent="x")
    tokens = [Token(symbol=s, contract=c, decimals=18, label=s) for s, c in (("ETH", None), ("X", "0x" + "12" * 20))]
    chain = ChainInfo(
        id="ethereum", name="E", family="evm", confirmations=1, chain_id_num=1, is_evm=True, tokens=tuple(tokens)
    )
    sells, buys = (ChainToken(chain=chain, token=token) for token in tokens)
    one = "0x" + "34" * 20
    asked = ExchangeRequest(sells=sells, buys=buys, units=5, sender=one, recipient=one, slippage_bps=50)
    config = OneInchConfig(key="k", base_url="http://127.0.0.1:1", requests_per_second=1000)
    async with OneInchPlugin().connect(config, context) as (swaps,):
        done = await asyncio.gather(*(swaps.build(asked, 1) for _ in range(3)), return_exceptions=True)
        print(*{type(one).__name__ for one in done}, *{"cannot be read here" in str(one) for one in done})

sys.meta_path.insert(0, Finder())
sys.setrecursionlimit(1234)
asyncio.run(build())
print(*threads, sys.getrecursionlimit(), "web3" in sys.modules)
"""


def test_what_a_first_swap_needs_is_imported_beside_the_event_loop():
    told = in_a_process(BUILDING.replace("MISSING", "False"))
    assert told == ["ProviderUnavailableError", "False", "False", "1234", "True"]


def test_a_codec_that_cannot_be_imported_makes_the_provider_unavailable():
    told = in_a_process(BUILDING.replace("MISSING", "True"))
    assert told == ["ProviderUnavailableError", "True", "False", "1234", "False"]


def test_making_a_reader_leaves_the_recursion_limit_as_it_was():
    code = """
import sys
sys.setrecursionlimit(1234)
from cambist_swap_1inch.plugin import OneInchConfig, OneInchPlugin
OneInchPlugin().readers(OneInchConfig(key="k"))
print(sys.getrecursionlimit(), "web3" in sys.modules)
"""
    assert in_a_process(code) == ["1234", "True"]
