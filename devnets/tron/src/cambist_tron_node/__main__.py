"""Runs a TRON node for development: ``python -m cambist_tron_node``."""

from __future__ import annotations

import asyncio
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from .blocks import MAINNET
from .machine import NoMachine
from .node import TronNode
from .tokens import TronToken

DECIMALS: Final = 6
MILLION: Final = 1_000_000


def arguments(given: Sequence[str] | None = None) -> Namespace:
    """Return what the command line asks for."""
    parser = ArgumentParser("python -m cambist_tron_node", description="A TRON node of one's own, on loopback.")
    parser.add_argument("--port", type=int, default=9090, help="where to listen; 0 takes a free one")
    parser.add_argument("--block-time", type=float, default=3.0, help="seconds between blocks")
    parser.add_argument("--chain-id", type=int, default=MAINNET, help="which chain the first block says it is")
    parser.add_argument("--representatives", type=int, default=27, help="who make the blocks: fewer are solid sooner")
    parser.add_argument("--accounts", type=int, default=10, help="how many accounts have a million TRX")
    parser.add_argument("--energy-price", type=int, default=None, help="sun for a unit of energy")
    parser.add_argument("--token", action="append", default=[], help="a symbol: create a token; USDT costs as on TRON")
    parser.add_argument("--no-contracts", action="store_true", help="TRX alone, without anvil")
    return parser.parse_args(given)


async def serve(asked: Namespace) -> None:
    """Run the node until it is told to stop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):
            loop.add_signal_handler(name, stop.set)
    async with TronNode(
        chain_id=asked.chain_id, representatives=asked.representatives, port=asked.port,
        accounts_count=asked.accounts, energy_price=asked.energy_price,
        machine=NoMachine() if asked.no_contracts else None,
    ) as node:  # fmt: skip
        tokens = [(symbol, (await create_token(node, symbol)).address) for symbol in asked.token]
        for line in introduction(node, tokens):
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
        node.run(asked.block_time)
        await stop.wait()


async def create_token(node: TronNode, symbol: str) -> TronToken:
    """Create a token of six decimals, of which every account has a million."""
    token = await node.deploy_token(symbol, DECIMALS, usdt_like=symbol == "USDT")
    for address in node.accounts:
        await token.mint(address, MILLION * 10**DECIMALS)
    await node.mine()
    return token


def introduction(node: TronNode, tokens: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield what somebody needs who wants to use the node."""
    yield f"node        {node.url}"
    yield f"chain id    {node.chain_id}"
    yield f"genesis id  {node.block_id(0)}"
    for address in node.accounts:
        yield f"account     {address}  key {node.keys[address].hex()}"
    for symbol, address in tokens:
        yield f"token       {address}  {symbol}"


if __name__ == "__main__":
    asyncio.run(serve(arguments()))
