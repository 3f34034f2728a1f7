"""What the pages run on: views of payments and accounts as they stand now, and streams of them while one is open."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import msgspec

from cambist.db.engine import Database
from cambist.hints import Hints
from cambist.ports import Clock
from cambist.registry import Registry
from cambist.services.addresses.macs import AddressMacs
from cambist.services.errors import UnavailableError
from cambist.services.receiving.account_page import AccountPage, load_account_page
from cambist.services.receiving.checkout import load_checkout

from .account_build import account_view
from .account_view import AccountView
from .build import REFRESH_OPEN_S, checkout_view
from .pages import pages
from .streams import CheckoutOptions, Shown, Streams
from .view import CheckoutView

PUBLIC_ID_CHARS_MAX = 64


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
        self.pages = pages()
        self.options = options or CheckoutOptions()
        self._db = db
        self._registry = registry
        self._clock = clock
        self._macs = macs
        self._streams = Streams(clock, hints, self.options)

    async def view(self, public_id: str) -> CheckoutView | None:
        """Return what to show of the payment, or None where there is no such payment."""
        if not _can_be(public_id):
            return None
        async with self._db.transaction() as conn:
            payment = await load_checkout(conn, public_id, self._macs)
        if payment is None:
            return None
        chain = self._registry.chains.get(payment.chain)
        family = self._registry.families.get(chain.family) if chain else None
        return checkout_view(payment, self._clock.now(), chain, family)

    async def account(self, public_id: str) -> AccountPage | None:
        """Return the account with this public id, or None where there is none.

        Raises UnavailableError where one of its addresses was changed.
        """
        if not _can_be(public_id):
            return None
        async with self._db.transaction() as conn:
            return await load_account_page(conn, public_id, self._macs)

    async def account_view(self, public_id: str, chain: str | None) -> AccountView | None:
        """Return what to show of the account, on this chain if it is one of its own.

        None where there is none, or where one of its addresses was changed.
        """
        try:
            page = await self.account(public_id)
        except UnavailableError:
            return None
        return None if page is None else account_view(page, chain, self._clock.now(), self._registry)

    @property
    def streams(self) -> int:
        return self._streams.count

    def has_room(self, public_id: str) -> bool:
        """Tell whether one more stream of this payment may be opened."""
        return self._streams.has_room(_payment(public_id))

    def has_account_room(self, public_id: str) -> bool:
        """Tell whether one more stream of this account may be opened."""
        return self._streams.has_room(_account(public_id))

    def close(self) -> None:
        """End every stream; browsers come again, and find another worker or the next one."""
        self._streams.close()

    def events(self, public_id: str) -> AsyncGenerator[bytes, None]:
        """Yield what an open page of the payment is told: see ``Streams.follow``."""

        async def read() -> Shown | None:
            view = await self.view(public_id)
            if view is None:
                return None
            return Shown(
                same=_without_clock(view),
                card=lambda: self.pages.card(view),
                pause_s=self._pause_s(view),
                ended=view.status if view.refresh_s is None else None,
            )

        return self._streams.follow(_payment(public_id), read)

    def account_events(self, public_id: str, chain: str | None) -> AsyncGenerator[bytes, None]:
        """Yield what an open page of the account is told; deposits may always come, so it never says ``end``."""

        async def read() -> Shown | None:
            view = await self.account_view(public_id, chain)
            if view is None:
                return None
            return Shown(same=view, card=lambda: self.pages.account_card(view), pause_s=self.options.poll_open_s)

        return self._streams.follow(_account(public_id), read)

    def _pause_s(self, view: CheckoutView) -> float:
        pause_s = self.options.poll_open_s if view.refresh_s == REFRESH_OPEN_S else self.options.poll_late_s
        if view.countdown is not None:
            # The page says that time is up when it is, not up to a pause later.
            pause_s = min(pause_s, view.countdown.remaining_ms / 1000 + 0.05)
        return pause_s


def _can_be(public_id: str) -> bool:
    return public_id.isascii() and public_id.isprintable() and len(public_id) <= PUBLIC_ID_CHARS_MAX


def _payment(public_id: str) -> str:
    return f"payment:{public_id}"


def _account(public_id: str) -> str:
    return f"account:{public_id}"


def _without_clock(view: CheckoutView) -> CheckoutView:
    # The countdown runs in the browser; that it advanced is nothing to tell.
    return msgspec.structs.replace(view, countdown=None)
