"""Run the example chain: ``python -m cambist_florin.testing`` mines, and gives coins to the addresses it is told.

While one runs, the same command with addresses has that one give them coins: a chain that is started anew is another one.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

import aiohttp

from ..addresses import parse_address
from .node import ExampleNode

BLOCK_TIME_S = 2.0
PORT = 7545
COINS = 1_000 * 10**9


async def run(addresses: Sequence[str], port: int) -> None:
    """Mine until it is interrupted, also where a shell has told its children to overlook that."""
    stopped = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stopped.set)
    async with ExampleNode(time.time, port) as node:
        print(f"listening on {node.url}, a block every {BLOCK_TIME_S:g} s")
        for address in addresses:
            node.ledger.grant(None, address, COINS)
        while not stopped.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), BLOCK_TIME_S)
            node.ledger.mine()


async def granted(addresses: Sequence[str], port: int) -> bool:
    """Have the chain that runs on this port give coins to the addresses; False where none does."""
    asked = {"addresses": addresses, "amount": COINS}
    try:
        async with (
            aiohttp.ClientSession(raise_for_status=True) as session,
            session.post(f"http://127.0.0.1:{port}/grant", json=asked),
        ):
            return True
    except aiohttp.ClientConnectionError:
        return False


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m cambist_florin.testing")
    parser.add_argument("addresses", metavar="ADDRESS", nargs="*", help="is given coins")
    parser.add_argument("--port", type=int, default=PORT, help=f"where to listen [default: {PORT}; 0 is any]")
    asked = parser.parse_args()
    for text in asked.addresses:
        if parse_address(text) is None:
            sys.exit(f"{text!r} is no address of this chain")
    if asked.addresses and asked.port and asyncio.run(granted(asked.addresses, asked.port)):
        print(f"the chain that runs on port {asked.port} gives coins to {', '.join(asked.addresses)}")
        return
    asyncio.run(run(asked.addresses, asked.port))


if __name__ == "__main__":
    main()
