"""What many tests begin with: played once per process, then copied with its database for each of them."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, ExitStack
from typing import Any, TypeAlias

import httpx
from msgspec import Struct

from cambist.bootstrap import Gateway
from cambist.ports import Clock, Ids
from cambist.testing.clock import ManualClock, chance_of, seeded_ids
from cambist.testing.fixtures import Databases
from tests.support.two_merchants import TwoMerchants
from tests.support.web import Merchant, memory_gateway, web_client, web_settings

Opening: TypeAlias = Callable[..., AbstractAsyncContextManager[Gateway]]
"""Takes the addresses of the servers, a clock, identifiers, and for how many merchants keys shall be in stock."""
Play: TypeAlias = Callable[[httpx.AsyncClient, ManualClock], Awaitable[Any]]

STOCK = 5


def memory_opening(database_url: str, redis_url: str, clock: Clock, ids: Ids, *, stock: int):
    return memory_gateway(web_settings(database_url, redis_url), clock, ids, stock=stock)


async def nothing(client: httpx.AsyncClient, clock: ManualClock) -> None:
    """Leave it at keys in stock."""


async def live_merchant(client: httpx.AsyncClient, clock: ManualClock) -> Merchant:
    return await Merchant(client).open()


async def stepped_up_merchant(client: httpx.AsyncClient, clock: ManualClock) -> Merchant:
    merchant = await live_merchant(client, clock)
    await merchant.step_up()
    return merchant


async def sandbox_merchant(client: httpx.AsyncClient, clock: ManualClock) -> Merchant:
    return await Merchant(client).open(mode="sandbox")


async def two_merchants(client: httpx.AsyncClient, clock: ManualClock) -> TwoMerchants:
    return await TwoMerchants(client, clock).build()


class Scene(Struct, frozen=True):
    """How everything was when the play was over: a test goes on from here, as if the gateway had been restarted."""

    database: str
    clock: ManualClock
    client: httpx.AsyncClient
    chance: Any
    made: Any

    def begin(self, clock: ManualClock, ids: Ids) -> None:
        """Have a test's time and chance go on where the play's ended."""
        vars(clock).update(vars(self.clock))
        chance_of(ids).setstate(self.chance)

    def copy(self, client: httpx.AsyncClient, clock: ManualClock) -> Any:
        """Return what the play made, with the test's client and clock in the place of the play's."""
        assert clock.now() >= self.clock.now(), "the test's gateway did not begin with this scene"
        return copy.deepcopy(self.made, {id(self.client): client, id(self.clock): clock})


class Scenes:
    """The scenes of this process, by what opened the gateway and what was played on it."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases
        self._kept = ExitStack()
        self._played: dict[tuple[Opening, Play], Scene] = {}

    async def played(self, opening: Opening, play: Play) -> Scene:
        if (opening, play) not in self._played:
            self._played[opening, play] = await self._play(opening, play)
        return self._played[opening, play]

    async def _play(self, opening: Opening, play: Play) -> Scene:
        url = self._kept.enter_context(self._databases.fresh())
        clock, ids = ManualClock(), seeded_ids(0)
        opened = opening(url, self._databases.redis_url, clock, ids, stock=STOCK)
        async with opened as gateway, web_client(gateway) as client:
            made = await play(client, clock)
        self._databases.empty_redis()
        return Scene(url.rpartition("/")[2].partition("?")[0], clock, client, chance_of(ids).getstate(), made)

    def close(self) -> None:
        """Drop the databases."""
        self._kept.close()
