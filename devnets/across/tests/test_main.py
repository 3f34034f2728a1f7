"""Across for development, started from the command line."""

from __future__ import annotations

import asyncio
import signal
import sys
import tomllib
from asyncio.subprocess import PIPE

import aiohttp
import msgspec
import pytest

from cambist.testing.anvil import AnvilClient, AnvilProcess
from cambist_across_node import AcrossNetwork, Behaviour
from cambist_across_node.__main__ import MILLION, arguments
from cambist_bridge_across.config import AcrossConfig
from cambist_evm.config import EvmConfig

from .conftest import WALLET
from .waiting import eventually


def test_it_can_be_started_without_a_word() -> None:
    asked = arguments([])
    assert (asked.port, asked.node_ports, asked.chain_ids) == (9191, (8545, 8546), (31337, 31338))
    assert (asked.relayer, asked.delay, asked.nodes) == (Behaviour.FILL, 0.0, None)


async def test_it_prints_the_gateways_tables_and_can_be_driven_until_it_is_told_to_stop() -> None:
    options = f"--port 0 --node-ports 0 0 --token USDT --token DAI --fund {WALLET} --relayer never".split()
    program = await asyncio.create_subprocess_exec(sys.executable, "-m", "cambist_across_node", *options, stdout=PIPE)
    assert program.stdout is not None
    async with asyncio.timeout(60):
        told = ""
        while told.count("wrapped_native") != 2:
            told += (await program.stdout.readline()).decode()
        tables = tomllib.loads(told)["plugins"]
        across = msgspec.convert(tables["bridge_across"], AcrossConfig)
        evm = msgspec.convert(tables["evm"], EvmConfig)
        assert set(across.chains) == set(evm.chains) == {"one", "two"}
        assert [token.symbol for token in evm.chains["one"].tokens] == ["WETH", "USDT", "DAI"]
        async with AnvilClient(evm.chains["two"].rpc_urls[0]) as node:
            asked = {"to": evm.chains["two"].tokens[1].contract, "data": "0x70a08231" + "00" * 12 + WALLET[2:]}
            assert int(await node.call("eth_call", [asked, "latest"]), 16) == MILLION * 10**6
            height = await node.call("eth_blockNumber")

            async def mined():
                return await node.call("eth_blockNumber") != height

            assert await eventually(mined)
        async with aiohttp.ClientSession() as session:
            url = across.base_url.removesuffix("/api") + "/devnet"
            async with session.get(url) as response:
                usual = await response.json()
            assert usual == {"relayer": "never", "delay_s": 0.0, "refusals": [], "faults": [], "refunds": []}
            wish = {"relayer": "slow", "delay_s": 2.5, "faults": ["500", "slow"], "refund": True}
            async with session.post(url, json=wish) as response:
                changed = {"relayer": "slow", "delay_s": 2.5, "faults": ["500", "slow"]}
                assert await response.json() == usual | changed
            for body in (b'{"relayer":"maybe"}', b'{"refunds":true}', b"[]", b"{"):
                async with session.post(url, data=body) as response:
                    assert (response.status, list(await response.json())) == (400, ["error"])
        program.send_signal(signal.SIGTERM)
        assert await program.wait() == 0


async def test_nodes_that_mine_by_hand_or_by_the_clock_will_do_and_tokens_that_are_there() -> None:
    async with AnvilProcess(["--no-mining"]) as one, AnvilProcess(["--chain-id", "5", "--block-time", "1"]) as two:
        urls = {"one": one.url, "two": two.url}
        async with AcrossNetwork(urls) as first:
            tokens = {name: side.tokens["USDT"].address.lower() for name, side in first.sides.items()}
        async with AcrossNetwork(urls, tokens={"USDX": tokens}) as second:
            for name, side in second.sides.items():
                assert side.tokens["USDX"].address == first.sides[name].tokens["USDT"].address
                assert side.pool != first.sides[name].pool
                assert await side.balance(side.relayer, "USDX") == 2 * 10**15


async def test_two_nodes_of_one_chain_are_refused() -> None:
    async with AnvilProcess() as node:
        with pytest.raises(ValueError, match="one chain"):
            async with AcrossNetwork({"one": node.url, "two": node.url}):
                pass
    with pytest.raises(ValueError, match="two chains"):
        AcrossNetwork({"one": node.url})
