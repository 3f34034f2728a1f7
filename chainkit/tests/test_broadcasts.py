"""Handing transactions to several endpoints at once: one that takes them is enough."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from cambist.plugin import Broadcast, ChainUnavailableError, SignedTx
from cambist.testing.clock import ManualClock
from cambist_chainkit.broadcasts import STRAGGLERS_S, broadcast_to_all

from .scripted import Scripted, pool_of

TXS = [SignedTx(tx_id=str(number), raw=bytes([number])) for number in range(5)]


class Mempool(Scripted):
    """Says the same to every transaction, after a while; or fails from some transaction on."""

    def __init__(self, name: str, state: str, *, delay_s: float = 0.0, fails_at: int | None = None) -> None:
        """Say this."""
        super().__init__(name)
        self.state = state
        self.delay_s = delay_s
        self.fails_at = fails_at
        self.taken: list[str] = []

    async def send(self, txs: Sequence[SignedTx]) -> list[Broadcast]:
        """Say it to each."""
        await asyncio.sleep(self.delay_s)
        if self.fails_at is not None and len(self.taken) >= self.fails_at:
            message = f"{self.name} broke down"
            raise ChainUnavailableError(message)
        self.taken += [tx.tx_id for tx in txs]
        return [Broadcast(state=self.state, reason=self.name) for _ in txs]  # type: ignore[arg-type]


async def said(clock: ManualClock, *endpoints: Mempool) -> list[str]:
    verdicts = await broadcast_to_all(
        pool_of(clock, *endpoints),  # type: ignore[arg-type]
        TXS,
        Mempool.send,
        size=lambda _: 2,
    )
    return [verdict.state for verdict in verdicts]


@pytest.mark.parametrize(
    "one, other, best",
    [
        ("accepted", "rejected", "accepted"),
        ("rejected", "accepted", "accepted"),
        ("rejected", "unknown", "unknown"),
        ("sequence_used", "unfunded", "sequence_used"),
        ("rejected", "unfunded", "unfunded"),
        ("rejected", "rejected", "rejected"),
    ],
)
async def test_the_best_that_anybody_says_counts(clock: ManualClock, one: str, other: str, best: str) -> None:
    """Whoever may have let it out outweighs all who refused it."""
    assert await said(clock, Mempool("one", one), Mempool("two", other, delay_s=0.01)) == [best] * 5


async def test_an_endpoint_that_breaks_down_leaves_the_rest_unknown(clock: ManualClock) -> None:
    """And is not asked for it; it counts against it."""
    lone = Mempool("one", "accepted", fails_at=2)
    assert await said(clock, lone) == ["accepted"] * 2 + ["unknown"] * 3
    assert (lone.taken, lone.failures) == (["0", "1"], 1)


async def test_without_an_endpoint_nothing_is_known(clock: ManualClock) -> None:
    """Which is no error: the same bytes are sent again."""
    lone = Mempool("one", "accepted")
    lone.right = False
    assert await said(clock, lone) == ["unknown"] * 5
    assert lone.taken == []


@pytest.mark.slow
async def test_one_that_hangs_is_not_waited_for(clock: ManualClock) -> None:
    """Once another has taken all, it has a moment more."""
    async with asyncio.timeout(STRAGGLERS_S + 1):
        assert await said(clock, Mempool("one", "rejected", delay_s=60), Mempool("two", "accepted")) == ["accepted"] * 5
