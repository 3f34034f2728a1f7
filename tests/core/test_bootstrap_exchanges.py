"""Swap and bridge providers of a process: opened once, closed once, and without web3.py in the web process."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from cambist.bootstrap import open_gateway
from cambist.plugin import BridgeProvider, SwapProvider
from tests.support.exchange_plugin import exchange_plugin


@pytest.mark.parametrize("role", ["web", "worker"])
async def test_a_process_of_either_role_opens_each_provider_once_and_closes_it(
    install, gateway_settings, gateway_parts, role
):
    module = install("counted", exchange_plugin("counted"))
    settings = msgspec.structs.replace(gateway_settings, plugins={"counted": {}})
    async with open_gateway(settings, role=role, parts=gateway_parts) as gateway:
        happened = sys.modules[module].HAPPENED
        assert happened == ["Swapper opened", "Bridge opened"]
        assert [isinstance(one, SwapProvider) for one in gateway.swaps] == [True]
        assert [isinstance(one, BridgeProvider) for one in gateway.bridges] == [True]
    assert happened[2:] == ["Bridge closed", "Swapper closed"]


async def test_a_provider_that_cannot_be_opened_stops_nobody(install, gateway_settings, gateway_parts):
    for name in ("counted", "broken"):
        install(name, exchange_plugin(name))
    settings = msgspec.structs.replace(gateway_settings, plugins={"broken": {"fails": True}, "counted": {}})
    async with open_gateway(settings, role="web", parts=gateway_parts) as gateway:
        assert [len(gateway.swaps), len(gateway.bridges)] == [1, 1]


QUOTING = """
import asyncio
import sys

from cambist.bootstrap import open_gateway
from cambist.plugin import ChainInfo, ChainToken, ExchangeRequest, ProviderUnavailableError, Token
from cambist.settings import AuthSettings, DatabaseSettings, KeySettings, RedisSettings, Settings, WebSettings
from cambist_web.app import attach, build_app

AWAY = "http://127.0.0.1:1"
ONE = "0x" + "34" * 20


def side(name, number, symbol, contract=None):
    coin = Token(symbol=symbol, contract=contract, decimals=18, label=symbol)
    chain = ChainInfo(
        id=name, name=name, family="evm", confirmations=1, chain_id_num=number, is_evm=True, tokens=(coin,)
    )
    return ChainToken(chain=chain, token=coin)


ETHER = side("ethereum", 1, "ETH")


async def ask(provider, buys):
    request = ExchangeRequest(sells=ETHER, buys=buys, units=10**18, sender=ONE, recipient=ONE, slippage_bps=50)
    try:
        await provider.quote(request)
    except ProviderUnavailableError as error:
        print(provider.name, "cannot be reached" in str(error))


async def main():
    settings = Settings(
        database=DatabaseSettings(url="postgresql://127.0.0.1:1/none"),
        redis=RedisSettings(url="redis://127.0.0.1:1"),
        keys=KeySettings(application_key="00" * 32),
        auth=AuthSettings(jwt_secret="a secret for tests that is long enough"),
        plugins={
            "evm": {}, "swap_1inch": {"key": "k", "base_url": AWAY}, "bridge_across": {"base_url": AWAY}
        },
    )
    async with open_gateway(settings, role="web") as gateway:
        attach(build_app(WebSettings()), gateway)
        for swap in gateway.swaps:
            await ask(swap, ChainToken(chain=ETHER.chain, token=side("", 1, "X", ONE).token))
        for bridge in gateway.bridges:
            await ask(bridge, side("base", 8453, "ETH"))


asyncio.run(main())
print(*sorted({"web3", "eth_abi", "eth_account", "py_ecc"} & set(sys.modules)))
"""


def test_the_web_process_asks_for_quotes_without_importing_web3():
    done = subprocess.run([sys.executable, "-c", QUOTING], capture_output=True, text=True, check=False)
    logged, *told = done.stdout.splitlines()
    assert (done.returncode, told) == (0, ["1inch True", "across True", ""]), done.stderr
    assert "request_budgets_local" in logged  # without Redis, too, and once for both
