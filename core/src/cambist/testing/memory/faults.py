"""What a test can make go wrong on a chain in memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

from cambist.plugin import (
    ChainUnavailableError,
    InconsistentChainError,
    RateLimitedError,
    SpanTooWideError,
)

Call: TypeAlias = Literal[
    "view",
    "head",
    "block",
    "scan",
    "balance",
    "transaction",
    "next_sequence",
    "plan",
    "outbid",
    "prepare",
    "broadcast",
    "expired",
    "stake",
    "token",
]
"""One poll of the node. Asking for several balances or transactions at once is one, too."""


class MemoryFaults:
    """Switches, all off at first; each stays on until it is switched off, and each number counts down to zero.

    Of every call: ``unavailable``: nobody answers. ``unavailable_calls``: nobody answers these. ``failing_calls``: so
    many more calls find nobody, then all is well. ``rate_limited_s``: the endpoint asks for this wait. ``crash``: an
    exception that no plugin should raise. ``before``: awaited before each call with its name, so that a test can
    change the world in the middle of a poll.

    Of reading: ``inconsistent``: scans contradict themselves. ``span_max``: the node refuses longer spans.
    ``lag_blocks``: the endpoint knows nothing of the newest blocks, and so of the sequences used in them.
    ``balances_lag_blocks``: balances are of so many blocks ago. ``sequences_ahead``: it counts so many transactions
    of every sender that were never mined. ``hidden``: ids of transactions that nobody finds by their ids, although they
    stand in blocks.

    Of broadcasting, each for so many more transactions: ``forgotten_txs`` are accepted and then dropped;
    ``unanswered_txs`` are taken, but the answer is lost; ``lost_txs`` never arrive, and there is no answer either.
    ``dropped_share`` of all transactions is accepted and then dropped. ``rejection``: why the node refuses whatever
    it is sent. ``mining_paused``: blocks are mined, and nothing that waits gets into one. ``refusing``: pairs of a
    contract, or None for the native coin, and a recipient that it refuses: plans say so, and transactions fail.
    ``impossible``: recipients to whom nothing can be prepared, although plans say nothing of it. ``contradicted``:
    senders of whom answers contradict themselves, which ends plans of them and of others with them.
    """

    def __init__(self) -> None:
        self.unavailable = False
        self.unavailable_calls: set[Call] = set()
        self.failing_calls = 0
        self.rate_limited_s: float | None = None
        self.crash: Exception | None = None
        self.before: Callable[[Call], Awaitable[None]] | None = None
        self.inconsistent = False
        self.span_max: int | None = None
        self.lag_blocks = 0
        self.sequences_ahead = 0
        self.balances_lag_blocks = 0
        self.hidden: set[str] = set()
        self.forgotten_txs = 0
        self.unanswered_txs = 0
        self.lost_txs = 0
        self.dropped_share = 0.0
        self.rejection: str | None = None
        self.mining_paused = False
        self.refusing: set[tuple[str | None, str]] = set()
        self.impossible: set[str] = set()
        self.contradicted: set[str] = set()

    async def meet(self, call: Call, *, span_length: int = 0) -> None:
        """Raise what this call runs into."""
        if self.before is not None:
            await self.before(call)
        if self.crash is not None:
            raise self.crash
        if self.failing_calls > 0:
            self.failing_calls -= 1
            raise ChainUnavailableError(f"no endpoint answers {call}, and {self.failing_calls} more calls will fail")
        if self.unavailable or call in self.unavailable_calls:
            raise ChainUnavailableError(f"no endpoint answers {call}")
        if self.rate_limited_s is not None:
            raise RateLimitedError("too many requests", retry_after=self.rate_limited_s)
        if self.span_max is not None and span_length > self.span_max:
            raise SpanTooWideError(f"{span_length} blocks are more than {self.span_max}")
        if self.inconsistent and call == "scan":
            raise InconsistentChainError("fewer receipts than transactions")

    def takes_one(self, fault: Literal["forgotten_txs", "unanswered_txs", "lost_txs"]) -> bool:
        """Whether a broadcast runs into this fault, which is then used up by one."""
        left: int = getattr(self, fault)
        setattr(self, fault, max(0, left - 1))
        return left > 0
