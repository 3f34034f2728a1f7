"""Run the example server of prices: ``python -m cambist_florin.testing``."""

from __future__ import annotations

import argparse
import asyncio
import signal
import time

from .server import ExampleServer

PORT = 7546


async def run(port: int) -> None:
    """Serve until it is interrupted, also where a shell has told its children to overlook that."""
    stopped = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stopped.set)
    async with ExampleServer(time.time, port) as server:
        print(f"listening on {server.url}")
        await stopped.wait()


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m cambist_florin.testing")
    parser.add_argument("--port", type=int, default=PORT, help=f"where to listen [default: {PORT}; 0 is any]")
    asyncio.run(run(parser.parse_args().port))


if __name__ == "__main__":
    main()
