"""Runs Across for development: ``python -m cambist_across_node``."""

from __future__ import annotations

import asyncio
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Final

from cambist.testing.anvil import AnvilProcess

from .network import FILL_S, AcrossNetwork
from .relayer import Behaviour
from .side import ETHER, WETH

PORT: Final = 9191
NODE_PORTS: Final = (8545, 8546)
NAMES: Final = ("one", "two")
CHAIN_IDS: Final = (31337, 31338)
TOKEN_DECIMALS: Final = 6
MILLION: Final = 1_000_000
ETHER_FUNDS: Final = 1000


def arguments(given: Sequence[str] | None = None) -> Namespace:
    """Return what the command line asks for."""
    about = "Across of one's own, on loopback: its contracts on two chains, a relayer, and its server."
    parser = ArgumentParser("python -m cambist_across_node", description=about)
    parser.add_argument("--port", type=int, default=PORT, help="where the server listens; 0 takes a free one")
    parser.add_argument("--names", nargs=2, default=NAMES, help="the gateway's names of the chains")
    parser.add_argument("--nodes", nargs=2, metavar="URL", help="anvil nodes that run; without, two are started")
    parser.add_argument(
        "--node-ports", nargs=2, type=int, default=NODE_PORTS, help="where those listen; 0 takes a free one"
    )
    parser.add_argument("--chain-ids", nargs=2, type=int, default=CHAIN_IDS, help="which chains those are")
    parser.add_argument("--block-time", type=int, default=1, help="seconds between their blocks")
    parser.add_argument("--token", action="append", default=[], help="a symbol: create this token; USDT by default")
    parser.add_argument(
        "--fund", action="append", default=[], help="an address: give it coin and tokens on both chains"
    )
    parser.add_argument(
        "--relayer", type=Behaviour, default=Behaviour.FILL, choices=list(Behaviour), help="what it does"
    )
    parser.add_argument("--delay", type=float, default=0.0, help="seconds until it does that")
    parser.add_argument("--fill-time", type=int, default=FILL_S, help="seconds that a deposit can be filled in")
    return parser.parse_args(given)


async def serve(asked: Namespace) -> None:
    """Run everything until it is told to stop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):
            loop.add_signal_handler(name, stop.set)
    async with AsyncExitStack() as stack:
        urls = asked.nodes or [
            (await stack.enter_async_context(node(asked, number, port))).url
            for number, port in zip(asked.chain_ids, asked.node_ports, strict=True)
        ]
        tokens = dict.fromkeys(asked.token or ["USDT"], TOKEN_DECIMALS)
        network = AcrossNetwork(
            dict(zip(asked.names, urls, strict=True)), tokens=tokens, port=asked.port, fill_s=asked.fill_time
        )
        network.relayer.behaviour, network.relayer.delay_s = asked.relayer, asked.delay
        await stack.enter_async_context(network)
        for address in asked.fund:
            await fund(network, address)
        sys.stdout.write("\n".join(introduction(network)) + "\n")
        sys.stdout.flush()
        await stop.wait()


def node(asked: Namespace, number: int, port: int) -> AnvilProcess:
    """Return a node of a chain, to be started."""
    return AnvilProcess(["--chain-id", str(number), "--block-time", str(asked.block_time)], port=port)


async def fund(network: AcrossNetwork, address: str) -> None:
    """Give an address a thousand ether and a million of each token, on both chains."""
    for side in network.sides.values():
        await side.node.call("anvil_setBalance", [address, hex(ETHER_FUNDS * ETHER)])
        for symbol, token in side.tokens.items():
            units = ETHER_FUNDS * ETHER if symbol == WETH else MILLION * 10**token.decimals
            await side.mint(symbol, address, units)


def introduction(network: AcrossNetwork) -> Iterator[str]:
    """Yield the tables of a gateway's ``cambist.toml`` that point it at all this."""
    for name, side in network.sides.items():
        yield f"[plugins.evm.chains.{name}]"
        yield f"chain_id = {side.chain_id}"
        yield f'rpc_urls = ["{side.node.url}"]'
        yield 'native_symbol = "ETH"'
        yield "confirmations = 3"
        yield ""
        for token in side.tokens.values():
            yield f"[[plugins.evm.chains.{name}.tokens]]"
            yield f'symbol = "{token.symbol}"'
            yield f'contract = "{token.address}"'
            yield f"decimals = {token.decimals}"
            yield ""
    yield "[plugins.bridge_across]"
    yield f'base_url = "{network.base_url}"'
    for name, side in network.sides.items():
        yield ""
        yield f"[plugins.bridge_across.chains.{name}]"
        yield f'spoke_pool = "{side.pool}"'
        yield f'wrapped_native = "{side.wrapped}"'


if __name__ == "__main__":
    asyncio.run(serve(arguments()))
