"""What is opened once, for whoever asks for it first, and closed with the last."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, Self, TypeVar, cast

import pytest

T = TypeVar("T")


class Opened:
    """Opens things by name, and closes them in reverse order when it ends itself."""

    def __init__(self) -> None:
        self._things: dict[Hashable, Any] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def once(self, name: Hashable, thing: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """Return what was opened under this name; open it now where nothing was."""
        if name not in self._things:
            self._things[name] = await self._stack.enter_async_context(thing())
        return cast("T", self._things[name])


@pytest.fixture(scope="package")
async def opened_by_folder(request: pytest.FixtureRequest) -> AsyncIterator[Opened]:
    """Keep what is opened for the stories of a folder, whose conftest imports this as ``opened``.

    Raises:
        TypeError: pytest takes the folder for no package, and what is opened would stay so until its session ends.

    """
    if not isinstance(request.node, pytest.Package):
        raise TypeError(f"{request.node!r} is no package of tests: what its stories share would outlive them")
    async with Opened() as opened:
        yield opened
