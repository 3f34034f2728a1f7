"""The relayer: sees deposits on both chains, and fills them on the other one, or does what relayers should not do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Final

import aiohttp
from msgspec.structs import replace

from cambist.testing.anvil import RpcRefusedError

from .artifacts import pool
from .deposits import Deposit, FillStatus, from_word, word
from .fees import slow_units_out
from .side import Side

POLL_S: Final = 0.05


class Behaviour(StrEnum):
    """What the relayer does with deposits that are not filled yet."""

    FILL = "fill"
    NEVER = "never"
    SLOW = "slow"
    """Asks the SpokePool to fill from its own money, which the next bundle does."""
    WRONG_RECIPIENT = "wrong-recipient"
    """Fills something that differs from the deposit in its recipient, the relayer itself."""
    WRONG_AMOUNT = "wrong-amount"
    """Fills something that differs from the deposit in its output, a single unit."""


class Relayer:
    """Acts on each deposit ``delay_s`` seconds after it saw it. Another ``behaviour`` is one towards all open ones.

    It remembers nothing that the chains know: after a reorganization it does again what is undone.
    """

    def __init__(self, sides: Sequence[Side]) -> None:
        self.delay_s = 0.0
        self.poll_s = POLL_S
        """How long it does nothing between two polls. Each asks both chains for all deposits that there are."""
        self.refusals: dict[bytes, str] = {}
        """Why a pool refused a fill, by the deposit's hash."""
        self._behaviour = Behaviour.FILL
        self._sides = sides
        self._seen: dict[bytes, float] = {}
        self._sent: dict[tuple[bytes, Behaviour], str] = {}
        self._running: asyncio.Task[None] | None = None

    @property
    def behaviour(self) -> Behaviour:
        return self._behaviour

    @behaviour.setter
    def behaviour(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self.refusals.clear()

    def start(self) -> None:
        """Look at both chains from here on."""
        self._running = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop looking. Raises what it failed with."""
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running

    async def _run(self) -> None:
        while True:
            # A node may be away for a while.
            with suppress(aiohttp.ClientError, OSError, RpcRefusedError, TimeoutError):
                await self.poll()
            await asyncio.sleep(self.poll_s)

    async def poll(self) -> None:
        """Act once on all that is due."""
        if self._behaviour is Behaviour.NEVER:
            return
        for origin, destination in (self._sides, self._sides[::-1]):
            deposits = [one for one in await origin.deposits() if one.destination == destination.chain_id]
            statuses = await destination.fill_statuses(deposits)
            for deposit, status in zip(deposits, statuses, strict=True):
                if status is not FillStatus.FILLED and deposit.hash not in self.refusals:
                    await self._act(deposit, status, origin, destination)

    async def _act(self, deposit: Deposit, status: FillStatus, origin: Side, destination: Side) -> None:
        behaviour, now = self._behaviour, asyncio.get_running_loop().time()
        waits = now < self._seen.setdefault(deposit.hash, now) + self.delay_s
        asks = behaviour is Behaviour.SLOW and status is FillStatus.UNFILLED
        if waits and not asks:
            return
        key = (deposit.hash + bytes([status]), behaviour)
        if key in self._sent and await destination.knows(self._sent[key]):
            return
        try:
            call = await self._call(deposit, status, origin, destination)
            self._sent[key] = await destination.submit(destination.relayer, destination.pool, call)
        except RpcRefusedError as error:
            self.refusals[deposit.hash] = str(error)

    async def _call(self, deposit: Deposit, status: FillStatus, origin: Side, destination: Side) -> bytes:
        relay = deposit.relay
        match self._behaviour:
            case Behaviour.WRONG_RECIPIENT:
                return destination.filling(replace(relay, recipient=word(destination.relayer)))
            case Behaviour.WRONG_AMOUNT:
                return destination.filling(replace(relay, output_amount=1))
            case Behaviour.SLOW if status is FillStatus.UNFILLED:
                return pool().call_data("requestSlowFill", relay.values)
            case Behaviour.SLOW:
                given, taken = (
                    destination.token_at(from_word(relay.output_token)),
                    origin.token_at(from_word(relay.input_token)),
                )
                if given is None or taken is None:
                    raise RpcRefusedError("nobody knows this token")
                units = slow_units_out(taken, given, relay.input_amount)
                await destination.mint(given.symbol, destination.pool, units)
                return await destination.slow_filling(relay, units)
            case _:
                return destination.filling(relay)
