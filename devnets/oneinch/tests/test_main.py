"""The local 1inch, started from the command line."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
import tomllib
from argparse import ArgumentTypeError
from asyncio.subprocess import PIPE
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from cambist_evm.config import EvmConfig
from cambist_oneinch_node.__main__ import GIFT, Wanted, arguments, wanted
from cambist_oneinch_node.local import KEY
from cambist_swap_1inch.config import OneInchConfig, check_api, routers

from .conftest import CHAIN_ID, client_of

ROOT = Path(__file__).resolve().parents[3]


def test_it_can_be_started_without_a_word():
    asked = arguments([])
    assert (asked.node, asked.port, asked.requests_per_second, asked.token) == ("http://127.0.0.1:8545", 9190, 10, [])


def test_a_token_is_a_symbol_or_an_address_with_a_price():
    address = "0xdAC17F958D2ee523a2206206994597C13D831ec7"
    assert wanted("USDT=2000") == Wanted("USDT", 2000)
    assert wanted(f"{address.lower()}=3") == Wanted(address, 3)
    for text in ("USDT", "USDT=", "USDT=0", "USDT=1.5", "=5", "0x12=5", address.replace("dAC", "DAC") + "=5"):
        with pytest.raises(ArgumentTypeError):
            wanted(text)


def test_what_the_documents_say_to_write_is_understood(chain, oneinch):
    for document in ("devnets/oneinch/README.md", "docs/operators/exchanges.md"):
        texts = re.findall(r"^```toml\n(.*?)^```", (ROOT / document).read_text(), re.DOTALL | re.MULTILINE)
        (text,) = [text for text in texts if "chains.local" in text]
        plugins = tomllib.loads(text.replace("0x...", oneinch.router))["plugins"]
        swap = msgspec.convert(plugins["swap_1inch"], OneInchConfig)
        check_api(swap)
        assert (swap.key, swap.base_url) == (KEY, f"http://127.0.0.1:{arguments([]).port}")
        assert routers(swap).of(chain.info) == oneinch.router
        evm = msgspec.convert(plugins["evm"], EvmConfig)
        assert (evm.chains["local"].chain_id, evm.chains["local"].rpc_urls) == (CHAIN_ID, (arguments([]).node,))


async def test_it_says_where_it_is_and_swaps_until_it_is_told_to_stop(chain):
    link = chain.address("LINK")
    options = f"--node {chain.url} --port 0 --key k --depth 10 --token DAI=2000 --token {link}=100".split()
    program = await asyncio.create_subprocess_exec(sys.executable, "-m", "cambist_oneinch_node", *options, stdout=PIPE)
    assert program.stdout is not None
    async with asyncio.timeout(60):
        lines = [(await program.stdout.readline()).decode() for _ in range(4)]
        told = {name.strip(): value for name, value in (line.rsplit(maxsplit=1) for line in lines)}
        tokens = {}
        while len(tokens) < 4:
            _, address, symbol = (await program.stdout.readline()).decode().split()
            tokens[symbol] = address
        assert told["chain id"] == "31337"
        assert tokens["LINK"] == link
        dai = await _units(told, tokens["ETH"], tokens["DAI"], 10**15)
        assert 1_990_000 < dai < 2_000_000
        assert 90 * 10**15 < await _units(told, tokens["ETH"], link, 10**15) < 100 * 10**15
        gift = chain.web3.eth.call({"to": tokens["DAI"], "data": "0x70a08231" + chain.customer[2:].rjust(64, "0")})
        assert int.from_bytes(gift) == GIFT * 10**6
        program.send_signal(signal.SIGTERM)
        assert await program.wait() == 0


async def _units(told, src, dst, amount):
    async with client_of(SimpleNamespace(url=told["api"], key=told["key"])) as client:
        _, body, _ = await client.ask("quote", src=src, dst=dst, amount=str(amount))
    return int(body["dstAmount"])
