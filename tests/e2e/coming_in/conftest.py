"""Stories of deposits, of which nothing is paid out: they share a gateway on each kind of chain."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.opened import Opened


@pytest.fixture(scope="package")
async def opened() -> AsyncIterator[Opened]:
    """Keep what is opened for the stories of this folder."""
    async with Opened() as opened:
        yield opened
