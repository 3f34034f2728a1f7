"""Chains, a reader, and the plugin connected to a server that speaks like 1inch."""

from __future__ import annotations

from contextlib import asynccontextmanager
from random import Random

import pytest

from cambist.plugin import ChainInfo, ChainToken, ExchangeRequest, PluginContext, Token
from cambist.testing.fixtures import _no_network, clock
from cambist_swap_1inch.codec import web3_codec
from cambist_swap_1inch.config import OneInchConfig, routers
from cambist_swap_1inch.plugin import OneInchPlugin
from cambist_swap_1inch.reader import OneInchReader

from .server import KEY, OneInchServer

__all__ = ["_no_network", "clock"]

USDT = Token(symbol="USDT", contract="0xdAC17F958D2ee523a2206206994597C13D831ec7", decimals=6, label="Tether USD")
USDC = Token(symbol="USDC", contract="0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", decimals=6, label="USD Coin")
LINK = Token(symbol="LINK", contract="0x514910771AF9Ca656af840dff83E8264EcF986CA", decimals=18, label="Chainlink")

SENDER = "0xAc305b47BB34AD6BB566288050920e9307fd23A7"
RECIPIENT = "0xc37b40ABdB939635068d3c5f13E7faF686F03B65"
STRANGER = "0x9531C059098e3d194fF87FebB587aB07B30B1306"


def chain(name="ethereum", chain_id=1, tokens=(USDT, USDC, LINK), **other):
    native = Token(symbol="ETH", contract=None, decimals=18, label="Ether")
    return ChainInfo(
        **{"id": name, "name": name, "family": "evm", "confirmations": 12, "chain_id_num": chain_id, "is_evm": True}
        | {"tokens": (native, *tokens)}
        | other
    )


ETHEREUM = chain()


def request(sells="USDT", buys="USDC", *, units=5_000_000, on=ETHEREUM, **other):
    return ExchangeRequest(
        **{
            "sells": ChainToken(chain=on, token=on.token(sells)),
            "buys": ChainToken(chain=on, token=on.token(buys)),
            "units": units,
            "sender": SENDER,
            "recipient": RECIPIENT,
            "slippage_bps": 50,
        }
        | other
    )


def context(clock):
    return PluginContext(now=clock.now, monotonic=clock.monotonic, random=Random(1), user_agent="cambist/tests")


@asynccontextmanager
async def connected(clock, config):
    """Connect the plugin as the gateway does."""
    async with OneInchPlugin().connect(config, context(clock)) as (provider,):
        yield provider


def config(server, **other):
    return OneInchConfig(**{"key": KEY, "base_url": server.base_url, "requests_per_second": 1000} | other)


@pytest.fixture(scope="session")
def codec():
    return web3_codec()


@pytest.fixture
def reader(codec):
    return OneInchReader(routers(OneInchConfig(key=KEY)), codec)


@pytest.fixture
async def server():
    async with OneInchServer().running() as server:
        yield server


@pytest.fixture
async def swaps(clock, server):
    async with connected(clock, config(server)) as provider:
        yield provider
