"""How many requests an account of a provider may still send, counted for all who ask with it.

Providers count by account or key, and block what is too much. The gateway's processes ask with one key, so they share
one budget: take it from ``PluginContext.budgets``, and never count alone::

    budget = context.budgets.of(account_name("example", config.key), per_second=config.requests_per_second)
    await budget.take()
    ...  # send one request; where it is answered 429:
    wait = await budget.pause(retry_after)
    raise ProviderUnavailableError("example asks for fewer requests", retry_after=wait)
"""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Final

from msgspec import Struct

from .errors import ProviderUnavailableError

WAIT_MAX_S: Final = 5.0
"""A request that would wait for longer is refused at once: whoever asks has a deadline."""

PAUSE_FIRST_S: Final = 1.0
BACKOFF_MAX_S: Final = 60.0
PAUSE_MAX_S: Final = 300.0
"""More than this no server is let ask for."""

QUIET_S: Final = 5.0
"""A pause is twice as long as the one before it, unless that had ended for this long and for as long as it took."""


class RequestBudget(ABC):
    """One account's requests. Requests beyond ``per_second`` wait in line."""

    @abstractmethod
    async def take(self, wait_max_s: float = WAIT_MAX_S) -> None:
        """Return when one request may be sent.

        Raises ProviderUnavailableError where that is more than ``wait_max_s`` away, or the account is paused. Let
        quotes wait for less than what is about to be signed, so that many quotes cannot keep it from its turn.
        """

    @abstractmethod
    async def pause(self, retry_after: float = 0.0) -> float:
        """Send nothing for a while, after the server has asked for fewer requests. Return how long, in seconds.

        That is at least as long as the server said, within reason, and twice as long each time. Never raises.
        """


class RequestBudgets(ABC):
    """The budgets of all accounts."""

    @abstractmethod
    def of(self, account: str, *, per_second: float, burst: int = 1) -> RequestBudget:
        """Return the budget of an account: the same for all who name it so.

        ``account`` is from ``account_name``. In the long run ``per_second`` requests are sent a second, and up to
        ``burst`` at once after a rest. With a burst of 1 no second sees more than ``per_second``.
        """


def account_name(provider: str, key: str | None) -> str:
    """Return a name for one key, or for asking without one, that does not disclose it. It begins with ``provider``."""
    if key is None:
        return f"{provider}:keyless"
    return f"{provider}:{sha256(f'{provider}:{key}'.encode()).hexdigest()[:32]}"


def out_of_turn(account: str, wait_s: float) -> ProviderUnavailableError:
    """Return the error for a request that would wait too long."""
    who = account.partition(":")[0]
    return ProviderUnavailableError(f"{who} has more asked of it than our plan allows", retry_after=wait_s)


def paused(account: str, wait_s: float) -> ProviderUnavailableError:
    """Return the error for a request during a pause."""
    who = account.partition(":")[0]
    return ProviderUnavailableError(f"{who} asked for fewer requests", retry_after=wait_s)


class _Account(Struct):
    """Moments of the monotonic clock. ``free_at`` is when the next request is due if there were no bursts."""

    free_at: float = -math.inf
    paused_until: float = -math.inf
    backoff_s: float = 0.0


class OwnBudgets(RequestBudgets):
    """Counts in this process alone: for tests, and while there is nothing to share."""

    def __init__(
        self, monotonic: Callable[[], float], sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        """Take the clock, in seconds, and what waits by it."""
        self._monotonic = monotonic
        self._sleep = sleep
        self._accounts: dict[str, _Account] = {}

    def of(self, account: str, *, per_second: float, burst: int = 1) -> OwnBudget:
        """Return the budget of an account in this process."""
        known = self._accounts.setdefault(account, _Account())
        return OwnBudget(account, known, 1 / per_second, burst, self._monotonic, self._sleep)


class OwnBudget(RequestBudget):
    """One account's requests, as this process counts them."""

    def __init__(  # noqa: PLR0913, PLR0917 - OwnBudgets makes it
        self,
        name: str,
        account: _Account,
        interval_s: float,
        burst: int,
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        """Count in ``account``, which others count in, too."""
        self._name = name
        self._account = account
        self._interval_s = interval_s
        self._ahead_s = (burst - 1) * interval_s
        self._monotonic = monotonic
        self._sleep = sleep

    async def take(self, wait_max_s: float = WAIT_MAX_S) -> None:
        """Wait for the turn by this process's count."""
        self.check_paused()
        now = self._monotonic()
        due = max(self._account.free_at, now)
        wait = due - self._ahead_s - now
        if wait > wait_max_s:
            raise out_of_turn(self._name, wait)
        self._account.free_at = due + self._interval_s
        if wait > 0:
            await self._sleep(wait)
            self.check_paused()

    async def pause(self, retry_after: float = 0.0) -> float:
        """Pause this process."""
        account, now = self._account, self._monotonic()
        asked = min(retry_after, PAUSE_MAX_S)
        # Requests that were under way when the pause began are answered alike, and say nothing new.
        if account.paused_until <= now:
            quiet = now - account.paused_until >= max(account.backoff_s, QUIET_S)
            account.backoff_s = PAUSE_FIRST_S if quiet else min(2 * account.backoff_s, BACKOFF_MAX_S)
            asked = max(asked, account.backoff_s)
        account.paused_until = max(account.paused_until, now + asked)
        return account.paused_until - now

    def check_paused(self) -> None:
        """Raise ProviderUnavailableError during a pause."""
        wait = self._account.paused_until - self._monotonic()
        if wait > 0:
            raise paused(self._name, wait)
