"""The enabled plugins of one process, as typed objects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from importlib.metadata import EntryPoint
from typing import Any, TypeVar

from msgspec import Struct, structs

from cambist.plugin import (
    AddressFamily,
    AnyBridgePlugin,
    AnyChainPlugin,
    AnyPricePlugin,
    AnySwapPlugin,
    BridgePlugin,
    BridgeProvider,
    CallReader,
    Chain,
    ChainInfo,
    ChainPlugin,
    ConfigError,
    ExchangePlugin,
    NetworkSetup,
    PluginContext,
    PricePlugin,
    PriceSource,
    SwapPlugin,
    SwapProvider,
    Token,
)

from .brought import BroughtPlugin, plugin_of, shown_settings
from .checks import RegistryError, check_chains, check_family, decode_config, guarded, plugin_error
from .connect import Connector, ConnectProblem, Opener, log_problem
from .file_lines import lines_of
from .loading import ALWAYS, check_plugin, enabled_tables, plugin_objects, points_by_name
from .reopening import KeptConnection, Provider

T = TypeVar("T")


class _Loaded(Struct, frozen=True, kw_only=True):
    """An enabled plugin's objects, each with its decoded table."""

    name: str
    chain_plugins: Sequence[tuple[AnyChainPlugin, Any]]
    price_plugins: Sequence[tuple[AnyPricePlugin, Any]]
    swap_plugins: Sequence[tuple[AnySwapPlugin, Any]]
    bridge_plugins: Sequence[tuple[AnyBridgePlugin, Any]]


class SetupError(Exception):
    """A chain cannot be changed like that while the gateway runs. The text is a sentence for the operator."""


class ChainOpener(Struct, frozen=True):
    """How one chain is connected alone: its plugin's name, and what is called with what."""

    plugin: str
    opens: Opener[Chain]


class Registry:
    """The enabled plugins of one process.

    ``tables`` is the operator's ``[plugins]``: a table for each enabled plugin, with secrets resolved; those that are
    always enabled may lack one, and their chains are ``always_listed``. ``found`` stands in for what is installed.
    Making a registry imports the enabled plugins and decodes their tables; it does no I/O besides.
    """

    def __init__(self, tables: Mapping[str, object], *, found: Iterable[EntryPoint] | None = None) -> None:
        self._points = points = points_by_name(found)
        self._loaded = [_load(name, table, points) for name, table in enabled_tables(tables, points).items()]
        self.plugins: Sequence[str] = [loaded.name for loaded in self._loaded]
        self.families: Mapping[str, AddressFamily] = self._gather_families()
        self._chains_of: dict[str, list[ChainInfo]] = {}
        self._served_by: dict[str, tuple[str, AnyChainPlugin, Any]] = {}
        self.chains: dict[str, ChainInfo] = self._gather_chains()
        """By id. A token that is added while the process runs puts another ChainInfo in the place of one."""
        self.file_chains: Mapping[str, ChainInfo] = dict(self.chains)
        """As plugins and the operator's file have them, whatever was added."""
        self.always_listed: frozenset[str] = frozenset(
            chain.id for name, chains in self._chains_of.items() if name in ALWAYS for chain in chains
        )

    @asynccontextmanager
    async def connect_chains(
        self,
        context: PluginContext,
        *,
        report: Callable[[ConnectProblem], None] = log_problem,
        ended: Callable[[str], None] = lambda _: None,
    ) -> AsyncIterator[Mapping[str, Chain]]:
        """Connect every live chain, by id, until the context ends.

        A plugin that cannot connect, or does so wrongly, is reported and its chains are missing; the others'
        are there. ``ended`` hears of each whose connection ends before that.
        """
        async with AsyncExitStack() as stack:
            connector = Connector(stack, context, report, ended)
            chains: dict[str, Chain] = {}
            for loaded in self._loaded:
                expected = {info.id for info in self._chains_of[loaded.name] if info.availability == "live"}
                openers = [(plugin.connect, config) for plugin, config in loaded.chain_plugins]
                brought = await connector.open(loaded.name, openers, lambda chain: chain.info.id, Chain)
                for chain_id in sorted(brought.keys() - expected):
                    connector.problem(
                        loaded.name, f"it connected the chain {chain_id!r}, which it had not announced as live"
                    )
                for chain_id in sorted(expected - brought.keys()):
                    connector.problem(loaded.name, f"the chain {chain_id!r} is not connected")
                chains |= {chain_id: chain for chain_id, chain in brought.items() if chain_id in expected}
            yield {chain_id: chains[chain_id] for chain_id in self.chains if chain_id in chains}

    def inventory(self) -> Sequence[BroughtPlugin]:
        """Return every installed plugin by name, enabled ones with what they bring and how they are set."""
        enabled = {one.name: one for one in self._loaded}
        return [
            self._brought(enabled[name])
            if name in enabled
            else plugin_of(name, self._points.get(name, ()), enabled=False)
            for name in sorted({*self._points, *enabled})
        ]

    def _brought(self, loaded: _Loaded) -> BroughtPlugin:
        of_kind: Mapping[str, Sequence[tuple[Any, Any]]] = {
            "chain": loaded.chain_plugins,
            "price": loaded.price_plugins,
            "swap": loaded.swap_plugins,
            "bridge": loaded.bridge_plugins,
        }
        pairs = [pair for some in of_kind.values() for pair in some]
        return plugin_of(
            loaded.name,
            self._points.get(loaded.name, ()),
            enabled=True,
            api_version=next((plugin.api_version for plugin, _ in pairs), None),
            kinds=[kind for kind, some in of_kind.items() if some],
            chains=[info.id for info in self._chains_of[loaded.name]],
            settings=shown_settings([config for _, config in pairs]),
        )

    def setup(self, chain: str) -> NetworkSetup | None:
        """Return what the operator's file says of what can be changed of a chain; None where nothing can."""
        name, plugin, config = self._served_by[chain]
        found: NetworkSetup | None = guarded(name, "setup()", lambda: plugin.setup(config, chain))
        return found

    def info(self, chain: str, setup: NetworkSetup) -> ChainInfo:
        """Return what is known of a chain with another setup. Raises SetupError."""
        name, plugin, _ = self._served_by[chain]
        config = self._changed(chain, setup)
        try:
            infos = guarded(name, "chains()", partial(_listed, plugin.chains, config))
            check_chains(name, infos, self.families)
        except RegistryError as error:
            raise SetupError(str(error)) from error
        if [info.id for info in infos] != [chain]:
            raise SetupError(f"the plugin {name!r} makes other chains of a setup of {chain!r}")
        return infos[0]

    def opener(self, chain: str, setup: NetworkSetup | None) -> ChainOpener:
        """Return how a chain is connected with another setup; None is the operator's file. Raises SetupError."""
        name, plugin, config = self._served_by[chain]
        return ChainOpener(name, (plugin.connect, config if setup is None else self._changed(chain, setup)))

    def file_lines(self, chain: str, token: Token) -> str | None:
        """Return what the operator's file has to say of a token besides, as TOML; None where it has no place for it."""
        setup = self.setup(chain)
        if setup is None:
            return None
        name, _, _ = self._served_by[chain]
        try:
            config = self._changed(chain, structs.replace(setup, tokens=(*setup.tokens, token)))
        except SetupError:
            return None
        return lines_of(name, config, token)

    def _changed(self, chain: str, setup: NetworkSetup) -> Any:  # noqa: ANN401 - of the plugin's config_type
        name, plugin, config = self._served_by[chain]
        try:
            return plugin.changed(config, chain, setup)
        except ConfigError as error:
            raise SetupError(str(error).removeprefix(f"plugins.{name}.")) from error
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            # Not its text: a plugin that fails may say what it was given, and that holds keys.
            raise SetupError(f"the plugin {name!r} failed with {type(error).__name__}") from None

    def connect_prices(
        self, context: PluginContext, *, report: Callable[[ConnectProblem], None] = log_problem
    ) -> AbstractAsyncContextManager[Sequence[PriceSource]]:
        """Open every price source until the context ends; one that fails is reported and left out.

        One whose connection ends before that is opened again, as are swap and bridge providers.
        """
        openers = [
            (one.name, [(plugin.connect, config) for plugin, config in one.price_plugins]) for one in self._loaded
        ]
        return _connected(openers, PriceSource, "price source", context, report)

    def connect_swaps(
        self, context: PluginContext, *, report: Callable[[ConnectProblem], None] = log_problem
    ) -> AbstractAsyncContextManager[Sequence[SwapProvider]]:
        """Open every swap provider until the context ends; one that fails is reported and left out."""
        openers = [
            (one.name, [(plugin.connect, config) for plugin, config in one.swap_plugins]) for one in self._loaded
        ]
        return _connected(openers, SwapProvider, "swap provider", context, report)

    def connect_bridges(
        self, context: PluginContext, *, report: Callable[[ConnectProblem], None] = log_problem
    ) -> AbstractAsyncContextManager[Sequence[BridgeProvider]]:
        """Open every bridge provider until the context ends; one that fails is reported and left out."""
        openers = [
            (one.name, [(plugin.connect, config) for plugin, config in one.bridge_plugins]) for one in self._loaded
        ]
        return _connected(openers, BridgeProvider, "bridge provider", context, report)

    def call_readers(self) -> Sequence[CallReader]:
        """Return what understands the calls of the enabled providers.

        They bring codecs of contracts, which are slow to import: only whoever sends or signs calls asks for them.
        """
        found: list[CallReader] = []
        for loaded in self._loaded:
            plugins: Sequence[tuple[ExchangePlugin[Any], Any]] = [*loaded.swap_plugins, *loaded.bridge_plugins]
            for plugin, config in plugins:
                for reader in guarded(loaded.name, "readers()", partial(_listed, plugin.readers, config)):
                    if not isinstance(reader, CallReader):
                        raise plugin_error(loaded.name, f"readers() returned {reader!r}, which is no CallReader")
                    found.append(reader)
        return found

    def _gather_families(self) -> dict[str, AddressFamily]:
        families: dict[str, AddressFamily] = {}
        owners: dict[str, str] = {}
        for loaded in self._loaded:
            for plugin, _ in loaded.chain_plugins:
                for family in guarded(loaded.name, "families()", partial(_listed, plugin.families)):
                    check_family(loaded.name, family)
                    if family.name in families:
                        text = f"it brings the address family {family.name!r}, which {owners[family.name]!r} brings too"
                        raise plugin_error(loaded.name, text)
                    families[family.name] = family
                    owners[family.name] = loaded.name
        return families

    def _gather_chains(self) -> dict[str, ChainInfo]:
        chains: dict[str, ChainInfo] = {}
        owners: dict[str, str] = {}
        for loaded in self._loaded:
            infos: list[ChainInfo] = []
            for plugin, config in loaded.chain_plugins:
                made = guarded(loaded.name, "chains()", partial(_listed, plugin.chains, config))
                check_chains(loaded.name, made, self.families)
                self._served_by |= {info.id: (loaded.name, plugin, config) for info in made}
                infos += made
            for info in infos:
                if info.id in chains:
                    text = f"it brings the chain {info.id!r}, which {owners[info.id]!r} brings too"
                    raise plugin_error(loaded.name, text)
                chains[info.id] = info
                owners[info.id] = loaded.name
            self._chains_of[loaded.name] = infos
        return chains


@asynccontextmanager
async def _connected(
    openers: Iterable[tuple[str, Sequence[Opener[Provider]]]],
    expected: type,
    noun: str,
    context: PluginContext,
    report: Callable[[ConnectProblem], None],
) -> AsyncIterator[Sequence[Provider]]:
    """Open what plugins bring of one kind; what fails, or has a name that is taken, is reported and left out."""
    async with AsyncExitStack() as stack:
        found: dict[str, Provider] = {}
        for plugin, own in openers:
            for opener in own:
                kept = KeptConnection[Provider](plugin, opener, expected, context, report)
                stack.push_async_callback(kept.aclose)
                brought = await kept.open()
                for name in brought.keys() & found.keys():
                    report(ConnectProblem(plugin=plugin, message=f"there is a {noun} {name!r} already", error=None))
                found = {**brought, **found}
        yield list(found.values())


def _listed(call: Callable[..., Iterable[T]], *arguments: object) -> list[T]:
    """Call, and list what comes back, so that an answer that cannot be listed counts as the call's failure."""
    return list(call(*arguments))


def _load(name: str, table: object, points: Mapping[str, Sequence[EntryPoint]]) -> _Loaded:
    if not isinstance(table, Mapping):
        raise plugin_error(name, f"[plugins.{name}] is a table, not {table!r}")
    objects = plugin_objects(name, points)
    for plugin in objects:
        check_plugin(name, plugin)
    configured = [(plugin, decode_config(name, plugin.config_type, table)) for plugin in objects]
    return _Loaded(
        name=name,
        chain_plugins=[pair for pair in configured if isinstance(pair[0], ChainPlugin)],
        price_plugins=[pair for pair in configured if isinstance(pair[0], PricePlugin)],
        swap_plugins=[pair for pair in configured if isinstance(pair[0], SwapPlugin)],
        bridge_plugins=[pair for pair in configured if isinstance(pair[0], BridgePlugin)],
    )
