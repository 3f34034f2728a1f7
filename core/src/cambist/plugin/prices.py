"""What a price plugin implements: where fiat prices of tokens come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar, Generic, TypeVar

from .types import PluginContext, Price, PricePair

Config = TypeVar("Config")


class PriceSource(ABC):
    """One place that tells prices. The gateway takes the median of the fresh answers of all sources."""

    name: ClassVar[str]
    """Shown to merchants as a quote's source."""

    @abstractmethod
    async def prices(self, pairs: Collection[PricePair]) -> Mapping[PricePair, Price]:
        """Return the prices it has among the pairs; those it does not know are left out.

        ``observed_at`` is the source's own time where it gives one, so that an old price is seen to be old.
        Prices are above zero. Raises PriceUnavailableError when it can say nothing now.
        """


class PricePlugin(ABC, Generic[Config]):
    """One plugin, which may bring several sources."""

    name: ClassVar[str]
    """Its table in the operator's file, ``[plugins.<name>]``, and the name of its entry point."""

    api_version: ClassVar[int]
    """The contract version it was written for: a literal, never ``cambist.plugin.API_VERSION``."""

    config_type: type[Config]
    """A frozen msgspec Struct with ``forbid_unknown_fields=True``. Secrets arrive resolved, as plain text."""

    @abstractmethod
    def connect(self, config: Config, context: PluginContext) -> AbstractAsyncContextManager[Sequence[PriceSource]]:
        """Open the configured sources until the context ends. Asks nothing yet.

        Raises ConfigError.
        """


AnyPricePlugin = PricePlugin[Any]
