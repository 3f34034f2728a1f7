"""The registry: what it loads, and the one sentence it says of whatever cannot be loaded. On real distributions."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from importlib.metadata import entry_points
from random import Random

import pytest

from cambist.plugin import PluginContext, Price, Span
from cambist.registry import GROUP, Registry, RegistryError, installed_plugins
from cambist.testing import watching

CONTEXT = PluginContext(
    now=lambda: datetime(2026, 1, 1, tzinfo=UTC), monotonic=lambda: 0.0, random=Random(1), user_agent="tests"
)
MEMORY = "from cambist.testing.memory.plugin import *\nfrom cambist.testing.memory.plugin import register_chains"
TWIN = """
    from cambist.plugin import hookimpl
    from cambist.testing.memory import MemoryPlugin

    class Twin(MemoryPlugin):
        name = "{name}"

    @hookimpl
    def register_chains():
        return [Twin()]
"""
CHAIN_PLUGIN = """
    from contextlib import asynccontextmanager
    from typing import Literal
    from msgspec import Struct
    from cambist.plugin import ChainPlugin, ConfigError, hookimpl

    class Limits(Struct, frozen=True, forbid_unknown_fields=True):
        calls_max: int = 1

    class Config(Struct, frozen=True, forbid_unknown_fields=True):
        rpc_urls: list[str] = []
        limits: Limits = Limits()
        speed: Literal["slow", "fast"] = "slow"
        broken: str = ""

    class Plugin(ChainPlugin[Config]):
        name = "example"
        api_version = 1
        config_type = Config

        def families(self):
            return []

        def chains(self, config):
            if config.broken == "config":
                raise ConfigError("rpc_urls is empty")
            if config.broken == "whole name":
                raise ConfigError("plugins.example.rpc_urls is empty")
            if config.broken == "bug":
                raise ZeroDivisionError("one by nought")
            if config.broken == "panic":
                raise BaseException("of a library")
            return []

        @asynccontextmanager
        async def connect(self, config, context):
            yield []
"""
REGISTER = """
    @hookimpl
    def register_chains():
        return [Plugin()]
"""


def refusal(tables) -> str:
    """Return the sentence with which the start stops."""
    with pytest.raises(RegistryError) as refused:
        Registry(tables)
    text = str(refused.value)
    assert "\n" not in text
    return text


def test_only_what_the_file_names_is_imported(install):
    memory = install("memory", MEMORY)
    other = install("other", "raise RuntimeError('imported')")
    registry = Registry({"memory": {}})
    assert memory in sys.modules
    assert other not in sys.modules
    assert registry.plugins == ["tron", "memory"]
    assert list(registry.chains) == ["tron", "memory"]
    assert registry.families["memory"].coin_type == 1


def test_a_stranger_that_takes_the_name_of_what_is_always_there_is_not_loaded_by_being_installed(install):
    stranger = install("tron", TWIN.format(name="tron"), distribution="stranger")
    found = [point for point in entry_points(group=GROUP) if point.dist.name == "stranger"]
    assert Registry({}, found=found).chains == {}
    assert stranger not in sys.modules
    assert "several distributions bring a plugin of this name: cambist-tron, stranger" in refusal({})


def test_chains_keep_the_order_of_the_file(install):
    install("memory", MEMORY)
    registry = Registry(
        {"memory": {"chains": {"zeta": {}, "alpha": {"availability": "simulated", "confirmations": 7}}}}
    )
    assert list(registry.chains) == ["tron", "zeta", "alpha"]
    assert registry.chains["alpha"].confirmations == 7


def test_an_unknown_plugin_is_named_with_what_is_installed(install):
    install("memory", MEMORY)
    text = refusal({"memry": {}})
    assert "[plugins.memry] names a plugin that is not installed, did you mean 'memory'?" in text
    assert "installed: " in text
    assert "memory" in text.split("installed: ")[1]


@pytest.mark.parametrize("version", ["0", "-1", "99"])
def test_another_api_version_is_refused(install, version):
    install("example", CHAIN_PLUGIN.replace("api_version = 1", f"api_version = {version}"), REGISTER)
    text = refusal({"example": {}})
    assert f"'example': Plugin was written for plugin API version {version}, and this gateway has version 1" in text


@pytest.mark.parametrize("line", ["", "api_version = '0'", "api_version = False"])
def test_no_api_version_is_refused(install, line):
    install("example", CHAIN_PLUGIN.replace("api_version = 1", line), REGISTER)
    assert "Plugin states no api_version" in refusal({"example": {}})


def test_a_misspelt_hook_is_named_with_the_nearest(install):
    install("example", CHAIN_PLUGIN, REGISTER.replace("register_chains", "register_chain"))
    text = refusal({"example": {}})
    assert "it implements 'register_chain', which is no hook, did you mean 'register_chains'?" in text


def test_a_hook_with_an_argument_too_many_is_refused(install):
    install("example", CHAIN_PLUGIN, REGISTER.replace("chains()", "chains(settings)"))
    assert "its register_chains() takes the argument 'settings', which the hook does not have" in refusal(
        {"example": {}}
    )


def test_a_module_without_hooks_is_refused(install):
    install("example", "def register_chains(): return []")
    hooks = "register_chains, register_price_sources, register_swap_providers, register_bridge_providers"
    assert f"it implements no hook (hooks: {hooks})" in refusal({"example": {}})


def test_two_plugins_of_one_name_are_refused_where_it_is_enabled(install):
    install("memory", MEMORY, distribution="cambist-memory")
    install("memory", MEMORY, distribution="stranger")
    Registry({})
    text = refusal({"memory": {}})
    assert "several distributions bring a plugin of this name: cambist-memory, stranger" in text


def test_two_plugins_with_one_family_are_refused(install):
    install("memory", MEMORY)
    install("twin", TWIN.format(name="twin"))
    text = refusal({"memory": {}, "twin": {"chains": {"other": {}}}})
    assert text == "plugin 'twin': it brings the address family 'memory', which 'memory' brings too"


def test_two_plugins_with_one_chain_are_refused(install):
    install("memory", MEMORY)
    install("twin", TWIN.format(name="twin"), "    \nTwin.families = lambda self: []")
    text = refusal({"memory": {}, "twin": {}})
    assert text == "plugin 'twin': it brings the chain 'memory', which 'memory' brings too"


@pytest.mark.parametrize(
    "table, sentence",
    [
        ({"rpc_url": []}, "[plugins.example] has an unknown field 'rpc_url', did you mean 'rpc_urls'?"),
        ({"limits": {"calls": 1}}, "[plugins.example.limits] has an unknown field 'calls'"),
        ({"limits": {"calls_max": "1"}}, "[plugins.example] limits.calls_max: Expected `int`, got `str`"),
        ({"rpc_urls": [3]}, "[plugins.example] rpc_urls[0]: Expected `str`, got `int`"),
        ({"speed": "fats"}, "[plugins.example] speed: Invalid enum value 'fats'; it is one of 'fast', 'slow'"),
        ({"broken": "config"}, "[plugins.example] rpc_urls is empty"),
        ({"broken": "whole name"}, "[plugins.example] rpc_urls is empty"),
        ({"broken": "bug"}, "chains() failed with ZeroDivisionError: one by nought"),
        ({"broken": "panic"}, "chains() failed with BaseException: of a library"),
        (3, "[plugins.example] is a table, not 3"),
    ],
)
def test_a_wrong_table_is_named_with_the_place(install, table, sentence):
    install("example", CHAIN_PLUGIN, REGISTER)
    assert refusal({"example": table}) == f"plugin 'example': {sentence}"


@pytest.mark.parametrize(
    "source, sentence",
    [
        ("import no_such_library", "failed with ModuleNotFoundError: No module named 'no_such_library'"),
        ("def broken(:", "failed with SyntaxError"),
        ("raise SystemExit(3)", "failed with SystemExit: 3"),
        ("raise BaseException('panic')", "failed with BaseException: panic"),
    ],
)
def test_a_plugin_that_cannot_be_imported_is_refused(install, source, sentence):
    module = install("example", source)
    text = refusal({"example": {}})
    assert text.startswith(f"plugin 'example': the import of {module} ")
    assert sentence in text


@pytest.mark.parametrize(
    "result, sentence",
    [
        ("None", "register_chains() returned None, not a sequence of ChainPlugin objects"),
        ("Plugin()", "not a sequence of ChainPlugin objects"),
        ("[Plugin]", "register_chains() returned the class Plugin, not an object of it"),
        ("['example']", "register_chains() returned 'example', which is no ChainPlugin"),
        ("1 // 0", "register_chains() failed with ZeroDivisionError"),
    ],
)
def test_a_hook_that_returns_something_else_is_refused(install, result, sentence):
    install("example", CHAIN_PLUGIN, REGISTER.replace("[Plugin()]", result))
    assert sentence in refusal({"example": {}})


@pytest.mark.parametrize(
    "old, new, sentence",
    [
        ('name = "example"', 'name = "sample"', "Plugin calls itself 'sample'; a plugin is named like its entry point"),
        ("config_type = Config", "config_type = dict", "Plugin has no config_type, a msgspec Struct"),
        (
            "class Config(Struct, frozen=True, ",
            "class Config(Struct, ",
            "Config must be frozen and forbid unknown fields",
        ),
        ("return []\n\n        def chains", "return ['evm']\n\n        def chains", "families() returned 'evm'"),
        (
            "            return []\n\n        @async",
            "            pass\n\n        @async",
            "chains() failed with TypeError",
        ),
        (
            "config_type = Config",
            "config_type = property(lambda self: 1 // 0)",
            "looking at Plugin failed with ZeroDiv",
        ),
        (
            "    class Plugin",
            "        def __post_init__(self):\n            {}['x']\n\n    class Plugin",
            "decoding [plugins.example] failed with KeyError: 'x'",
        ),
        (
            "    class Plugin",
            "        def __post_init__(self):\n            raise ConfigError('speed is wrong')\n\n    class Plugin",
            "[plugins.example] speed is wrong",
        ),
        ("limits: Limits", "limits: 'Nowhere'", "decoding [plugins.example] failed with NameError"),
        ("            return []\n\n        @async", "            return [1]\n\n        @async", "chains() returned 1"),
    ],
)
def test_a_plugin_that_breaks_the_contract_is_refused(install, old, new, sentence):
    assert old in CHAIN_PLUGIN
    install("example", CHAIN_PLUGIN.replace(old, new), REGISTER)
    assert sentence in refusal({"example": {}})


@pytest.mark.parametrize(
    "change, sentence",
    [
        ("family='moon'", "is of the address family 'moon', which no enabled plugin brings"),
        ("tokens=()", "do not start with its one native coin"),
        ("tokens=info.tokens[1:]", "do not start with its one native coin"),
        ("tokens=(*info.tokens, info.tokens[1])", "has two tokens of the symbol 'USDX'"),
        ("tokens=None", "is malformed: Expected `array`, got `null` - at `$.tokens`"),
        ("tokens=(None,)", "is malformed: Expected `object`, got `null` - at `$.tokens[0]`"),
        ("family=['memory']", "is malformed: Expected `str`, got `array` - at `$.family`"),
        ("availability='maybe'", "is malformed: Invalid enum value 'maybe' - at `$.availability`"),
        ("poll_interval_ms=None", "is malformed: Expected `int`, got `null` - at `$.poll_interval_ms`"),
        ("confirmations=0", "is 0; it is at least 1"),
        ("span_max=-5", "is -5; it is at least 1"),
        ("tokens=(replace(info.tokens[0], decimals=-3),)", "makes no sense: -3 decimals and 1 least_units"),
        ("tokens=(info.tokens[0], replace(info.tokens[1], contract='native'))", "has the contract 'native' for USDX"),
        ("tokens=(info.tokens[0], replace(info.tokens[1], contract=''))", "has the contract '' for USDX"),
        ("tokens=(replace(info.tokens[0], least_units=0),)", "makes no sense: 18 decimals and 0 least_units"),
    ],
)
def test_a_chain_that_makes_no_sense_is_refused(install, change, sentence):
    install(
        "twin",
        TWIN.format(name="twin"),
        f"""
        from msgspec.structs import replace
        Twin.chains = lambda self, config: [
            replace(info, {change}) for info in MemoryPlugin.chains(self, config)
        ]
        """,
    )
    assert f"the chain 'memory' {sentence}" in refusal({"twin": {}}).replace("the tokens of ", "")


@pytest.mark.parametrize("name", [None, ["x"], "Evil Chain/native", ""])
def test_a_chain_whose_id_is_none_is_refused(install, name):
    chains = f"""
    from msgspec.structs import replace
    Twin.chains = lambda self, config: [replace(info, id={name!r}) for info in MemoryPlugin.chains(self, config)]
    """
    install("twin", TWIN.format(name="twin"), chains)
    assert repr(name) in refusal({"twin": {}})


@pytest.mark.parametrize(
    "facts, sentence",
    [
        ("name = None", "an address family calls itself None"),
        ("name = ['x']", "an address family calls itself ['x']"),
        ("coin_type = None", "the address family 'trouble' has the coin_type None"),
        ("coin_type = '60'", "the address family 'trouble' has the coin_type '60'"),
        ("coin_type = -1", "the address family 'trouble' has the coin_type -1"),
        ("coin_type = 2**31", "the address family 'trouble' has the coin_type 2147483648; it is a whole number below"),
        ("coin_type = property(lambda self: 1 // 0)", "families() failed with ZeroDivisionError"),
    ],
)
def test_a_family_under_which_no_keys_can_be_made_is_refused(install, facts, sentence):
    family = f"""
    from cambist.testing.memory import MemoryFamily
    class Family(MemoryFamily):
        name = "trouble"
        {facts}
    Twin.families = lambda self: [Family()]
    """
    install("twin", TWIN.format(name="twin"), family)
    assert sentence in refusal({"twin": {}})


async def test_live_chains_are_connected_and_read(install):
    install("memory", MEMORY)
    registry = Registry({"memory": {"chains": {"one": {}, "two": {"availability": "simulated"}, "three": {}}}})
    problems = []
    async with registry.connect_chains(CONTEXT, report=problems.append) as chains:
        assert list(chains) == ["one", "three"]
        recipient = registry.families["memory"].derive_address("x" * 40, 0, 0)
        chains["one"].transfer(chains["one"].info.native, recipient, 5)
        chains["one"].mine()
        async with chains["one"].view() as view:
            result = await view.scan(Span(first=1, last=1), watching(registry.families["memory"], recipient))
    assert [transfer.amount for transfer in result.transfers] == [5]
    assert problems == []


PRICES = """
    from contextlib import asynccontextmanager
    from decimal import Decimal
    from msgspec import Struct
    from cambist.plugin import Price, PricePlugin, PriceSource, hookimpl

    class Config(Struct, frozen=True, forbid_unknown_fields=True):
        usd: str = "1"

    class Source(PriceSource):
        name = "shelf"

        def __init__(self, usd, now):
            self.usd, self.now = usd, now

        async def prices(self, pairs):
            return {pair: Price(value=Decimal(self.usd), observed_at=self.now()) for pair in pairs}

    class Plugin(PricePlugin[Config]):
        name = "NAME"
        api_version = 1
        config_type = Config

        @asynccontextmanager
        async def connect(self, config, context):
            yield [Source(config.usd, context.now)]

    @hookimpl
    def register_price_sources():
        return [Plugin()]
"""


async def test_price_sources_are_connected_and_a_second_of_one_name_is_left_out(install):
    install("shelf", PRICES.replace("NAME", "shelf"))
    install("again", PRICES.replace("NAME", "again"))
    registry = Registry({"shelf": {"usd": "2"}, "again": {}})
    problems = []
    async with registry.connect_prices(CONTEXT, report=problems.append) as sources:
        (source,) = sources
        price = (await source.prices([("ETH", "usd")]))["ETH", "usd"]
    assert price == Price(value=2, observed_at=CONTEXT.now())
    assert [(problem.plugin, problem.message) for problem in problems] == [
        ("again", "there is a price source 'shelf' already")
    ]


def test_what_is_installed_is_listed_with_what_is_wrong_with_it(install):
    install("memory", MEMORY, version="4.5")
    install("example", CHAIN_PLUGIN.replace("api_version = 1", "api_version = 9"), REGISTER)
    install("broken", "import no_such_library")
    install("double", MEMORY, distribution="one")
    install("double", MEMORY, distribution="other")
    rows = {(row.name, row.distribution): row for row in installed_plugins({"memory": {}, "absent": {}})}
    memory = rows["memory", "cambist-memory"]
    assert (memory.version, memory.api_version, memory.enabled, memory.problem) == ("4.5", 1, True, None)
    example = rows["example", "cambist-example"]
    assert (example.api_version, example.enabled) == (9, False)
    assert "plugin API version 9" in example.problem
    assert "no_such_library" in rows["broken", "cambist-broken"].problem
    assert "several distributions" in rows["double", "one"].problem
    assert "several distributions" in rows["double", "other"].problem
    absent = rows["absent", "?"]
    assert (absent.enabled, absent.problem) == (True, "it is not installed")


def test_our_own_plugins_come_in_by_the_same_door():
    rows = {row.name: row for row in installed_plugins({})}
    assert rows["prices"].distribution == "cambist-prices"
    assert rows["prices"].api_version == 1
    assert rows["prices"].problem is None
