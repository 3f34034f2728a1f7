"""A chain may not tell who sent something: what the gateway itself moved is no deposit all the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from cambist.plugin import Block, ChainView, Head, ScanResult, Span, Watch
from cambist.testing.memory import MemoryChain
from tests.support.payment_env import registry
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow


class _View(ChainView):
    def __init__(self, view: ChainView) -> None:
        self._view = view

    async def head(self) -> Head:
        return await self._view.head()

    async def block(self, height: int) -> Block:
        return await self._view.block(height)

    async def scan(self, span: Span, watch: Watch) -> ScanResult:
        found = await self._view.scan(span, watch)
        return replace(found, transfers=[replace(one, sender=None) for one in found.transfers])


class Discreet(MemoryChain):
    """Says of no transfer who sent it."""

    @asynccontextmanager
    async def view(self) -> AsyncIterator[ChainView]:
        async with super().view() as view:
            yield _View(view)


async def test_what_was_collected_is_no_second_deposit_where_nobody_tells_the_sender(db, clock, ids, tmp_path):
    known = registry()
    chain = Discreet(known.chains["memory"])
    async with Treasury(db, clock, ids, tmp_path, chain=chain, chains=known) as treasury:
        await treasury.open()
        await treasury.receive("USDX", 500 * 10**6)
        await treasury.work(treasury.engine())
        await treasury.mine(1 + treasury.info.confirmations)
        assert await treasury.on_chain(treasury.wallet.address, "USDX") == 500 * 10**6
        async with db.transaction() as conn:
            rows = await conn.exec_driver_sql("SELECT token, units::bigint FROM deposits WHERE status = 'confirmed'")
            # The gas station's own coin came from outside, and is stored, too.
            assert [tuple(row) for row in rows if row.token == "USDX"] == [("USDX", 500 * 10**6)]
        await treasury.check_books()
