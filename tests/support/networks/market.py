"""Two chains with a market on one of them and a bridge between them: real contracts, and servers that can lie."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, Self

import aiohttp
from web3 import Web3

from cambist.testing.contracts import load
from cambist_across_node import AcrossNetwork, Behaviour
from cambist_oneinch_node import NATIVE, LocalOneInch, Pool

from .anvil import AnvilNetwork
from .base import POLL_MS, Amount, Coin

PRICES = {"USDT": "1", "SKIM": "1", "WETH": "2500"}
"""In dollars, of the tokens that only a market has."""
ETH_USD = 2500
DEPTH = 1_000
"""So many ETH are in each pool."""
ASKED_PER_SECOND = 1_000
RELAYER_POLL_S = 0.25
"""As often as stories have blocks: there are ever more deposits, and a relayer reads all of them each time."""
FILL_S, SHORT_FILL_S = 7200, 420
"""How long a deposit can be filled. The plugin takes no less than five minutes, and a quote is a minute old."""
ALLOWANCE = [
    {
        "name": "allowance",
        "type": "function",
        "stateMutability": "view",
        "inputs": [{"name": "owner", "type": "address"}, {"name": "spender", "type": "address"}],
        "outputs": [{"name": "", "type": "uint256"}],
    }
]


class Market:
    """Uniswap behind a local 1inch on the first chain, and Across between both.

    On the first chain are, beside USDX and ETH, a token like USDT, whose allowances go through zero, one that keeps a
    hundredth of every transfer, and on both wrapped coin, which is what a bridge gives back.
    """

    def __init__(self, here: AnvilNetwork, there: AnvilNetwork) -> None:
        self.here, self.there = here, there
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        here, there = self.here, self.there
        async with AsyncExitStack() as stack:
            self._minted = {"USDT": await here.node.deploy("UsdtLike"), "SKIM": await here.node.deploy("Skimming")}
            self.usdt, self.skim = (
                Coin(here, symbol, 6, contract.address) for symbol, contract in self._minted.items()
            )
            bridged = {"USDX": {one.chain: str(one.usdx.contract) for one in (here, there)}}
            urls = {one.chain: one.url for one in (here, there)}
            self.across = await stack.enter_async_context(AcrossNetwork(urls, tokens=bridged))
            self.across.relayer.poll_s = RELAYER_POLL_S
            pools = [self._pool(coin) for coin in (here.usdx, self.usdt, self.skim)]
            self.oneinch = await stack.enter_async_context(
                LocalOneInch(here.url, pools, requests_per_second=ASKED_PER_SECOND)
            )
            self.weth, self.weth_there = (
                Coin(one, "WETH", 18, self.across.sides[one.chain].wrapped) for one in (here, there)
            )
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def _pool(self, coin: Coin) -> Pool:
        units = coin.units(DEPTH * ETH_USD)
        return Pool(token=str(coin.contract), units=units, other_units=self.here.native.units(DEPTH))

    def settings(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the tables of both chains and of both plugins in the operator's file, by their names."""
        oneinch, across = self.oneinch, self.across.settings()
        shared = {"requests_per_second": ASKED_PER_SECOND}
        return {
            **_with_tokens(self.here, self.usdt, self.skim, self.weth),
            **_with_tokens(self.there, self.weth_there),
            "plugins.swap_1inch": {"key": oneinch.key, "base_url": oneinch.url, "quote_ttl_ms": 0, **shared},
            f"plugins.swap_1inch.chains.{self.here.chain}": {"router": oneinch.router},
            "plugins.bridge_across": {"base_url": across["base_url"], **shared},
            **{f"plugins.bridge_across.chains.{name}": table for name, table in across["chains"].items()},
        }

    async def give(self, coin: Coin, to: str, units: int) -> None:
        """Give somebody coin or tokens; it waits for a block."""
        if coin.symbol in self._minted:
            await self._minted[coin.symbol].send("mint", to, units)
        else:
            await coin.network.send(coin, to, units)

    async def trade(self, sells: Coin, amount: Amount, buys: Coin) -> None:
        """Have somebody swap on the market over the local 1inch itself, which moves the price."""
        node, sender = self.here.node, self.here.accounts[7]
        src, dst = (coin.contract or NATIVE for coin in (sells, buys))
        if sells.contract is not None:
            await self.give(sells, sender, sells.units(amount))
            approve = load("TestToken").call_data("approve", self.oneinch.router, sells.units(amount))
            await node.send(sells.contract, data="0x" + approve.hex(), sender=sender)
        query = {
            "src": src, "dst": dst, "amount": str(sells.units(amount)), "from": sender, "origin": sender,
            "slippage": "50", "disableEstimate": "true",
        }  # fmt: skip
        url = f"{self.oneinch.url}/swap/v6.0/{self.oneinch.chain_id}/swap"
        headers = {"Authorization": f"Bearer {self.oneinch.key}"}
        async with aiohttp.ClientSession() as session, session.get(url, params=query, headers=headers) as response:
            call = (await response.json())["tx"]
        before = await self.here.onlooker.units(sender, buys)
        await node.send(call["to"], data=call["data"], value=int(call["value"]), sender=sender)
        await self.here.mine()
        assert await self.here.onlooker.units(sender, buys) > before

    def allowance(self, coin: Coin, owner: str, spender: str) -> int:
        """Return what a token says that the spender may take, as another client is told."""
        client = coin.network.onlooker.client  # type: ignore[attr-defined]
        token = client.eth.contract(address=Web3.to_checksum_address(coin.contract), abi=ALLOWANCE)
        found: int = token.functions.allowance(owner, spender).call()
        return found

    async def unfilled(self) -> None:
        """Have nobody fill what is deposited from now on, which expires soon, by clocks that may be ahead of ours."""
        ahead_s = max([await side.time() for side in self.across.sides.values()]) - int(time.time())
        self.across.relayer.behaviour, self.across.fill_s = Behaviour.NEVER, max(0, ahead_s) + SHORT_FILL_S

    async def expire(self) -> None:
        """Let the time pass in which that could be filled."""
        await self.across.pass_time(SHORT_FILL_S)

    def honest(self) -> None:
        """Have both servers tell the truth from now on, and the relayer fill."""
        self.oneinch.faults.clear()
        self.across.faults.clear()
        self.across.relayer.behaviour, self.across.fill_s = Behaviour.FILL, FILL_S


def _with_tokens(network: AnvilNetwork, *coins: Coin) -> Mapping[str, Mapping[str, Any]]:
    """Return the table of a chain with further tokens."""
    ((name, table),) = network.settings(poll_interval_ms=POLL_MS).items()
    more = [{"symbol": one.symbol, "contract": one.contract, "decimals": one.decimals} for one in coins]
    return {name: {**table, "tokens": [*table["tokens"], *more]}}
