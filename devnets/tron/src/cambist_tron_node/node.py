"""A TRON node of one's own: real blocks, accounts, fees and answers, without a network.

::

    async with TronNode() as node:
        tx_id = await node.send_trx(customer, 5_000_000)
        await node.mine(20)
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, Self

import msgspec

from . import keys
from .blocks import MAINNET
from .chain import Chain
from .evm import AnvilMachine
from .faults import Face, Fault, Faults
from .http import Server
from .machine import Machine
from .params import TRX, Parameters
from .sending import Accounts

FUNDS_SUN: Final = 1_000_000 * TRX


def wall_ms() -> int:
    """Return the machine's time, in milliseconds."""
    return time.time_ns() // 1_000_000


class TronNode(Accounts):
    """One node on a loopback port, with funded accounts whose keys are known.

    ``clock_ms`` tells the time: blocks never fall behind it, and run ahead of it where they are made faster. All nodes
    of one chain id start from the same genesis block. Contracts run on anvil unless another machine is given.
    """

    def __init__(  # noqa: PLR0913 - each is one property of the network
        self,
        *,
        chain_id: int = MAINNET,
        representatives: int = 27,
        port: int = 0,
        accounts_count: int = 10,
        machine: Machine | None = None,
        parameters: Parameters | None = None,
        energy_price: int | None = None,
        trace_internal: bool = True,
        clock_ms: Callable[[], int] = wall_ms,
    ) -> None:
        parameters = parameters or Parameters()
        if energy_price is not None:
            parameters = msgspec.structs.replace(parameters, energy_fee=energy_price)
        machine = machine or AnvilMachine(chain_id)
        chain = Chain(
            machine, parameters, chain_id=chain_id, representatives=representatives, clock_ms=clock_ms,
            trace_internal=trace_internal,
        )  # fmt: skip
        super().__init__(chain, machine, accounts_count)
        self.chain_id = chain_id
        self.faults = Faults()
        self._server = Server(self.chain, self.faults, port)
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Fund the accounts, make the first block and start to listen."""
        await self.chain.start({keys.address_bytes(address): FUNDS_SUN for address in self.accounts})
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop, and end requests that hang."""
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
        self.faults.close()
        await self._server.stop()
        await self.machine.close()

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def calls(self) -> Counter[str]:
        """Requests by path."""
        return self._server.calls

    @property
    def api_keys(self) -> Counter[str]:
        """Requests by the API key that they carried."""
        return self._server.api_keys

    def face(self, *faults: Fault) -> Face:
        """Return another address of this node, with faults of its own; ``async with`` opens it."""
        return Face(self.chain, *faults)

    # --- Blocks ---

    @property
    def head(self) -> int:
        return self.chain.blocks.head.number

    @property
    def solid_height(self) -> int:
        """The newest block that cannot be replaced any more."""
        return self.chain.solid_number

    def block_id(self, number: int) -> str:
        block = self.chain.blocks.at(number)
        if block is None:
            raise LookupError(f"there is no block {number}")
        return block.id.hex()

    async def advance(self, seconds: float) -> None:
        """Let so much more of the chain's time pass, in one block."""
        async with self.chain.lock:
            self.chain.skip(int(seconds * 1000))
            await self.chain.mine()

    def run(self, interval_s: float = 3.0) -> None:
        """Make blocks by the clock from here on."""
        self._running = asyncio.create_task(self._run(interval_s))

    async def _run(self, interval_s: float) -> None:
        while True:
            await asyncio.sleep(interval_s)
            await self.mine()

    async def reorg(self, depth: int, keep: Iterable[str] = (), *, to_pool: bool = False) -> None:
        """Replace the newest blocks by one more than they were, with these transactions, a block later.

        The others are forgotten, or wait again with ``to_pool``. Raises ReorgError.
        """
        async with self.chain.lock:
            await self.chain.reorg(depth, [bytes.fromhex(each) for each in keep], to_pool=to_pool)

    async def forget_pool(self) -> None:
        async with self.chain.lock:
            await self.chain.forget_pool()

    def hold_back(self, *tx_ids: str) -> None:
        """Keep these transactions out of blocks until they are released."""
        self.chain.held_back.update(bytes.fromhex(each) for each in tx_ids)

    def release(self, *tx_ids: str) -> None:
        """Let blocks take these transactions again; without arguments, all of them."""
        self.chain.held_back.difference_update([bytes.fromhex(each) for each in tx_ids] or set(self.chain.held_back))

    async def stop_listening(self) -> None:
        """Be unreachable until ``listen_again``."""
        await self._server.stop()

    async def listen_again(self) -> None:
        await self._server.start()
