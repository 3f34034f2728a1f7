"""Across between two chains of one's own: contracts, a relayer, refunds, and the server that a plugin asks.

::

    async with AcrossNetwork({"ethereum": "http://...", "arbitrum": "http://..."}) as across:
        table = across.settings()  # [plugins.bridge_across]
        across.relayer.behaviour = Behaviour.NEVER
        ...
        await across.pass_time(8000)
        await across.refund("ethereum")
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final, Self

from cambist.testing.anvil import AnvilClient

from .answers import Answers
from .deposits import Deposit
from .faults import Faults
from .refunds import Refunds
from .relayer import Relayer
from .server import Server, Wish
from .side import Side

FILL_S: Final = 7200
"""How long a deposit can be filled, counted from its quote, as with the real server."""

USDT: Final[Mapping[str, int]] = {"USDT": 6}


class AcrossNetwork:
    """Deploys everything on two nodes that run already, given by the gateway's names of their chains, and starts it.

    ``tokens`` are symbols with their decimals on both chains, or with what stands for them on each: decimals, or the
    address of a token that is there and that anybody may mint. ``now`` is the server's time, in seconds since 1970 UTC.
    """

    def __init__(
        self,
        urls: Mapping[str, str],
        *,
        tokens: Mapping[str, int | Mapping[str, int | str]] = USDT,
        port: int = 0,
        fill_s: int = FILL_S,
        now: Callable[[], float] = time.time,
    ) -> None:
        if len(urls) != 2:
            raise ValueError("Across needs two chains")
        self.faults = Faults()
        self.sides = {name: Side(AnvilClient(url), name) for name, url in urls.items()}
        sides = list(self.sides.values())
        self.relayer = Relayer(sides)
        self.refunds = Refunds(sides)
        self._answers = Answers(sides, self.refunds, now, fill_s)
        self.server = Server(self._answers, self.faults, self._drive, port)
        self._tokens = tokens
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for name, side in self.sides.items():
                await stack.enter_async_context(side.node)
                await side.deploy(
                    {
                        symbol: known if isinstance(known, int) else known[name]
                        for symbol, known in self._tokens.items()
                        if isinstance(known, int) or name in known
                    }
                )
            one, other = self.sides.values()
            if one.chain_id == other.chain_id:
                raise ValueError("both nodes are of one chain")
            stack.push_async_callback(self.server.stop)
            await self.server.start()
            stack.push_async_callback(self.relayer.stop)
            self.relayer.start()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def base_url(self) -> str:
        return self.server.base_url

    def settings(self) -> dict[str, Any]:
        """Return the table ``[plugins.bridge_across]`` that points a gateway at all this."""
        chains = {name: {"spoke_pool": one.pool, "wrapped_native": one.wrapped} for name, one in self.sides.items()}
        return {"base_url": self.base_url, "chains": chains}

    @property
    def fill_s(self) -> int:
        """How long a deposit that is quoted from now on can be filled."""
        return self._answers.fill_s

    @fill_s.setter
    def fill_s(self, seconds: int) -> None:
        self._answers.fill_s = seconds

    async def pass_time(self, seconds: int) -> None:
        """Let so much time pass on both chains, and on neither their nodes' clocks nor the server's."""
        for side in self.sides.values():
            await side.node.call("evm_increaseTime", [seconds])
            await side.node.call("evm_mine")

    async def refund(self, name: str, deposits: Sequence[Deposit] | None = None) -> Sequence[dict[str, Any]]:
        """Pay back deposits of a chain, by default all that are due, and return the receipts: one for each token.

        A depositor gets one transfer for all its deposits of a token. Raises NotExpiredError.
        """
        return await self.refunds.pay(self.sides[name], deposits)

    async def _drive(self, wish: Wish) -> Mapping[str, Any]:
        """Do what is wished, and return how things are."""
        if wish.relayer is not None:
            self.relayer.behaviour = wish.relayer
        if wish.delay_s is not None:
            self.relayer.delay_s = wish.delay_s
        if wish.faults is not None:
            self.faults.clear()
            for fault in wish.faults:
                self.faults.add(fault)
        refunds = [one for name in self.sides for one in (await self.refund(name) if wish.refund else [])]
        return {
            "relayer": self.relayer.behaviour,
            "delay_s": self.relayer.delay_s,
            "refusals": list(self.relayer.refusals.values()),
            "faults": self.faults.present,
            "refunds": [one["transactionHash"] for one in refunds],
        }
