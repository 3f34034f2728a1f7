"""What the checkout runs on: views of payments as they stand now, and streams of them while a page is open."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator

import msgspec
from msgspec import Struct

from cambist.db.engine import Database
from cambist.hints import Hints, Subscription
from cambist.ports import Clock
from cambist.registry import Registry
from cambist.services.addresses.macs import AddressMacs
from cambist.services.receiving.checkout import load_checkout

from .build import REFRESH_OPEN_S, checkout_view
from .pages import Pages
from .view import CheckoutView

PUBLIC_ID_CHARS_MAX = 64
RETRY_S = 10
"""When to come again where there was no room."""


class CheckoutOptions(Struct, frozen=True, kw_only=True):
    """How many streams one worker serves and for how long, and how often they look without a hint.

    ``heartbeat_s`` is below the minute after which common proxies drop a silent connection.
    """

    streams_max: int = 500
    streams_per_payment_max: int = 10
    poll_open_s: float = 3.0
    poll_late_s: float = 15.0
    heartbeat_s: float = 20.0
    lifetime_s: float = 900.0


class Checkout:
    """One worker's checkout."""

    def __init__(  # noqa: PLR0913  each by name
        self,
        *,
        db: Database,
        registry: Registry,
        clock: Clock,
        hints: Hints,
        macs: AddressMacs,
        options: CheckoutOptions | None = None,
    ) -> None:
        self.pages = Pages()
        self.options = options or CheckoutOptions()
        self._db = db
        self._registry = registry
        self._clock = clock
        self._hints = hints
        self._macs = macs
        self._streams: Counter[str] = Counter()
        self._closing = asyncio.Event()

    async def view(self, public_id: str) -> CheckoutView | None:
        """Return what to show of the payment, or None where there is no such payment."""
        if not public_id.isascii() or not public_id.isprintable() or len(public_id) > PUBLIC_ID_CHARS_MAX:
            return None
        async with self._db.transaction() as conn:
            payment = await load_checkout(conn, public_id, self._macs)
        if payment is None:
            return None
        chain = self._registry.chains.get(payment.chain)
        family = self._registry.families.get(chain.family) if chain else None
        return checkout_view(payment, self._clock.now(), chain, family)

    @property
    def streams(self) -> int:
        return self._streams.total()

    def has_room(self, public_id: str) -> bool:
        """Tell whether one more stream of this payment may be opened."""
        return (
            not self._closing.is_set()
            and self._streams.total() < self.options.streams_max
            and self._streams[public_id] < self.options.streams_per_payment_max
        )

    def close(self) -> None:
        """End every stream; browsers come again, and find another worker or the next one."""
        self._closing.set()

    async def events(self, public_id: str) -> AsyncGenerator[bytes, None]:
        """Yield the card now and whenever it changes, heartbeats in between, and ``end`` when nothing can change.

        Ends by itself after ``lifetime_s``, as it does on ``close``; browsers then connect again. Ends at once
        where others took the room that there was when it was asked for: many may ask at the same moment.
        """
        if not self.has_room(public_id):
            yield f"retry: {RETRY_S * 1000}\n\n".encode()
            return
        self._streams[public_id] += 1
        try:
            async with self._hints.subscribe(f"payment:{public_id}") as hints:
                async for event in self._follow(public_id, hints):
                    yield event
        finally:
            self._streams[public_id] -= 1
            if not self._streams[public_id]:
                del self._streams[public_id]

    async def _follow(self, public_id: str, hints: Subscription) -> AsyncGenerator[bytes, None]:
        started = spoken = self._clock.monotonic()
        shown: CheckoutView | None = None
        while not self._closing.is_set() and self._clock.monotonic() - started < self.options.lifetime_s:
            view = await self.view(public_id)
            if view is None:
                break
            if (now_shown := _without_clock(view)) != shown:
                shown, spoken = now_shown, self._clock.monotonic()
                yield event_bytes("card", self.pages.card(view))
            if view.refresh_s is None:
                yield event_bytes("end", view.status)
                return
            if self._clock.monotonic() - spoken >= self.options.heartbeat_s:
                spoken = self._clock.monotonic()
                yield b": still here\n\n"
            await self._wait(hints, self._pause_s(view))

    def _pause_s(self, view: CheckoutView) -> float:
        pause_s = self.options.poll_open_s if view.refresh_s == REFRESH_OPEN_S else self.options.poll_late_s
        if view.countdown is not None:
            # The page says that time is up when it is, not up to a pause later.
            pause_s = min(pause_s, view.countdown.remaining_ms / 1000 + 0.05)
        return min(pause_s, self.options.heartbeat_s)

    async def _wait(self, hints: Subscription, seconds: float) -> None:
        """Wait for a hint, for the time to pass, or for the end."""
        hint = asyncio.ensure_future(hints.wait(seconds))
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait((hint, closing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            hint.cancel()
            closing.cancel()


def event_bytes(name: str, text: str) -> bytes:
    lines = "\n".join(f"data: {line}" for line in text.splitlines())
    return f"event: {name}\n{lines}\n\n".encode()


def _without_clock(view: CheckoutView) -> CheckoutView:
    # The countdown runs in the browser; that it advanced is nothing to tell.
    return msgspec.structs.replace(view, countdown=None)
