"""Runs a 1inch for development: ``python -m cambist_oneinch_node``."""

from __future__ import annotations

import asyncio
import signal
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct

from cambist.testing.contracts import load
from cambist_chainkit.eip55 import parse_address

from .amm import OWNER, Amm, Pool
from .local import KEY, REQUESTS_PER_SECOND, LocalOneInch

COIN: Final = 10**18
DECIMALS: Final = 6
GIFT: Final = 1_000_000
"""What each account of the node gets of a new token."""


class Wanted(Struct, frozen=True):
    """A token to trade, and how many of it one coin costs: a symbol is deployed, an address is there."""

    token: str
    price: int


def wanted(text: str) -> Wanted:
    """Read ``USDT=2000`` or ``0x...=2000``."""
    token, _, price = text.partition("=")
    if token.startswith("0x"):
        token = parse_address(token) or ""
    if not token or not (price.isascii() and price.isdigit()) or not int(price):
        raise ArgumentTypeError("a symbol or an address, and how many of it one coin costs: USDT=2000")
    return Wanted(token, int(price))


def arguments(given: Sequence[str] | None = None) -> Namespace:
    """Return what the command line asks for."""
    parser = ArgumentParser("python -m cambist_oneinch_node", description="A 1inch of one's own, on loopback.")
    parser.add_argument("--node", default="http://127.0.0.1:8545", help="the anvil to deploy on")
    parser.add_argument("--port", type=int, default=9190, help="where to listen; 0 takes a free one")
    parser.add_argument("--key", default=KEY, help="what the API is asked with")
    parser.add_argument(
        "--requests-per-second", type=int, default=REQUESTS_PER_SECOND, help="more are answered with 429"
    )
    parser.add_argument(
        "--token", type=wanted, action="append", default=[], help="what trades, and its price: USDT=2000"
    )
    parser.add_argument("--depth", type=int, default=1000, help="how many coins are in each pool")
    return parser.parse_args(given)


async def serve(asked: Namespace) -> None:
    """Run it until it is told to stop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):
            loop.add_signal_handler(name, stop.set)
    async with LocalOneInch(
        asked.node, key=asked.key, requests_per_second=asked.requests_per_second, port=asked.port
    ) as oneinch:
        for each in asked.token:
            await trade(oneinch.amm, each, asked.depth)
        for line in introduction(oneinch):
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
        await stop.wait()


async def trade(amm: Amm, each: Wanted, depth: int) -> None:
    """Make a pool of a token and coin, deploying the token where only its symbol is given."""
    address = each.token if each.token.startswith("0x") else await _create(amm, each.token)
    await amm.learn(address)
    units = each.price * depth * 10 ** amm.tokens[address].decimals
    await amm.add_pool(Pool(token=address, units=units, other_units=depth * COIN))


async def _create(amm: Amm, symbol: str) -> str:
    artifact = load("TestToken")
    address = await amm.rpc.deploy(OWNER, artifact.creation_code(symbol, DECIMALS))
    for account in await amm.rpc.call("eth_accounts"):
        await amm.rpc.send(OWNER, address, artifact.call_data("mint", account, GIFT * 10**DECIMALS))
    return address


def introduction(oneinch: LocalOneInch) -> Iterator[str]:
    """Yield what somebody needs who wants to use it."""
    yield f"api       {oneinch.url}"
    yield f"key       {oneinch.key}"
    yield f"chain id  {oneinch.chain_id}"
    yield f"router    {oneinch.router}"
    for token in oneinch.amm.tokens.values():
        yield f"token     {token.address}  {token.symbol}"


if __name__ == "__main__":
    asyncio.run(serve(arguments()))
