"""The text of a plugin that brings a provider of swaps and one of bridges, for tests that install it."""

_SOURCE = """
    from contextlib import asynccontextmanager
    from msgspec import Struct
    from cambist.plugin import BridgePlugin, BridgeProvider, CallReader, SwapPlugin, SwapProvider, hookimpl

    HAPPENED = []

    class Config(Struct, frozen=True, forbid_unknown_fields=True):
        router: str = "0xrouter"
        fails: bool = False

    class Reader(CallReader):
        def __init__(self, router):
            self.router = router

        def spenders(self, chain):
            return frozenset({self.router})

        def read(self, chain, sender, call, chains):
            return None

    class Swapper(SwapProvider):
        name = "fair"

        def supports(self, sells, buys):
            return True

        async def quote(self, request): ...
        async def build(self, request, units_min): ...

    class Bridge(BridgeProvider, Swapper):
        def deposit(self, chain, receipt, chains): ...
        def fill_query(self, chain, deposit, origin, first, last): ...
        def fill(self, chain, deposit, origin, found): ...
        def refund_query(self, chain, deposit, first, last): ...
        def refund(self, chain, deposit, receipt): ...
        async def status(self, origin, deposit): ...

    class Common:
        name = "NAME"
        api_version = 1
        config_type = Config

        def readers(self, config):
            return READERS

        @asynccontextmanager
        async def connect(self, config, context):
            if config.fails:
                raise OSError("no")
            HAPPENED.append(f"{self.brings.__name__} opened")
            yield [self.brings()]
            HAPPENED.append(f"{self.brings.__name__} closed")

    class Swaps(Common, SwapPlugin[Config]):
        brings = Swapper

    class Bridges(Common, BridgePlugin[Config]):
        brings = Bridge

    @hookimpl
    def register_swap_providers():
        return [Swaps()]

    @hookimpl
    def register_bridge_providers():
        return [Bridges()]
"""


def exchange_plugin(name: str, readers: str = "[]") -> str:
    """Return it under a name; ``readers`` is what it answers for the table ``config``, which has a ``router``.

    Both providers are called ``fair``. ``HAPPENED`` of the module says which were opened and closed, in order.
    """
    return _SOURCE.replace("NAME", name).replace("READERS", readers)
