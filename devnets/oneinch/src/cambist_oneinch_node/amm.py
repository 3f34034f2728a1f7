"""A real market on a local node: Uniswap V2 with pools of tokens and coin, the router before it, and its executor."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from cambist.testing.anvil import RpcRefusedError
from cambist.testing.contracts import load as load_test_contract
from cambist_chainkit.eip55 import spell

from . import uniswap
from .calls import EXECUTOR, NATIVE, ROUTER
from .rpc import Rpc

OWNER: Final = spell("0ca3b157" * 5)
"""Deploys everything and owns the pools. Nobody has its key: anvil sends for it, and its contracts are always at the
same addresses of a fresh chain."""

OWNERS_COIN: Final = 10**28
FOREVER: Final = 2**63

_TOKEN: Final = load_test_contract("TestToken")
"""Has the functions of every token."""


class Pool(Struct, frozen=True, kw_only=True):
    """What trades against what, in units; the other side is coin where nothing else is said. Addresses are EIP-55's."""

    token: str
    units: int
    other: str = NATIVE
    other_units: int


class Token(Struct, frozen=True):
    """What a token says of itself."""

    address: str
    symbol: str
    name: str
    decimals: int


class Route(Struct, frozen=True):
    """A way through the pools, in Uniswap's terms, and what comes out of it."""

    path: tuple[str, ...]
    units: int


class Amm:
    """The deployed contracts. ``deploy`` makes one."""

    def __init__(self, rpc: Rpc, *, weth: str, uniswap_router: str, router: str, executor: str) -> None:
        self.rpc = rpc
        self.weth = weth
        self.router = router
        self.executor = executor
        self.tokens: dict[str, Token] = {}
        self._uniswap = uniswap_router

    async def add_pool(self, pool: Pool) -> None:
        """Provide liquidity at the price that the amounts say. Tokens are given to the owner of the pools as needed."""
        sides = [(pool.token, pool.units), (pool.other, pool.other_units)]
        sides.sort(key=lambda side: side[0] == NATIVE)
        for token, units in sides:
            await self.learn(token)
            if token != NATIVE:
                await self._provide(token, units)
        (token, units), (other, other_units) = sides
        market = uniswap.load(uniswap.PERIPHERY, "UniswapV2Router02")
        if other == NATIVE:
            data = market.call_data("addLiquidityETH", token, units, 0, 0, OWNER, FOREVER)
            await self.rpc.send(OWNER, self._uniswap, data, other_units)
        else:
            data = market.call_data("addLiquidity", token, other, units, other_units, 0, 0, OWNER, FOREVER)
            await self.rpc.send(OWNER, self._uniswap, data)

    async def best(self, sells: str, buys: str, units: int) -> Route | None:
        """Return the route that gives most, None where no pools give anything."""
        src, dst = (self.weth if token == NATIVE else token for token in (sells, buys))
        if src == dst or units <= 0:
            return None
        paths = [(src, dst)] if self.weth in {src, dst} else [(src, dst), (src, self.weth, dst)]
        routes = [route for route in await asyncio.gather(*(self._route(path, units) for path in paths)) if route]
        return max(routes, key=lambda route: route.units, default=None)

    async def balance(self, token: str, owner: str) -> int:
        """Return what somebody has of a token or of coin."""
        if token == NATIVE:
            return await self.rpc.number("eth_getBalance", owner, "latest")
        return int.from_bytes(await self.rpc.read(token, _TOKEN.call_data("balanceOf", owner)))

    async def allowance(self, token: str, owner: str) -> int:
        """Return how much of a token the router may take of somebody."""
        return int.from_bytes(await self.rpc.read(token, _TOKEN.call_data("allowance", owner, self.router)))

    async def learn(self, address: str) -> None:
        """Make a token one that can be asked about."""
        if address == NATIVE:
            self.tokens[NATIVE] = Token(NATIVE, "ETH", "Ether", 18)
            return
        symbol = await self._said(address, "symbol")
        decimals = int.from_bytes(await self.rpc.read(address, _TOKEN.call_data("decimals")))
        name = await self._said(address, "name")
        self.tokens[address] = Token(address, symbol or "?", name or symbol or "?", decimals)

    async def _route(self, path: tuple[str, ...], units: int) -> Route | None:
        market = uniswap.load(uniswap.PERIPHERY, "UniswapV2Router02")
        try:
            output = await self.rpc.read(self._uniswap, market.call_data("getAmountsOut", units, path))
        except RpcRefusedError:  # there is no such pool, or it is empty
            return None
        amounts: Sequence[int] = market.answer("getAmountsOut", output)
        return Route(path, amounts[-1]) if amounts[-1] else None

    async def _provide(self, token: str, units: int) -> None:
        held = await self.balance(token, OWNER)
        await self.rpc.call("anvil_dealERC20", OWNER, token, hex(held + units))
        await self.rpc.send(OWNER, token, _TOKEN.call_data("approve", self._uniswap, units))

    async def _said(self, token: str, function: str) -> str | None:
        try:
            answer: str = _TOKEN.answer(function, await self.rpc.read(token, _TOKEN.call_data(function)))
        except RpcRefusedError:
            return None
        return answer


async def deploy(rpc: Rpc) -> Amm:
    """Deploy wrapped coin, Uniswap V2, the router and its executor."""
    await rpc.call("anvil_setBalance", OWNER, hex(OWNERS_COIN))
    await rpc.call("anvil_impersonateAccount", OWNER)
    weth = await rpc.deploy(OWNER, uniswap.load(uniswap.PERIPHERY, "WETH9").creation_code())
    factory = await rpc.deploy(OWNER, uniswap.load(uniswap.CORE, "UniswapV2Factory").creation_code(OWNER))
    code = uniswap.load(uniswap.PERIPHERY, "UniswapV2Router02").creation_code(factory, weth)
    uniswap_router = await rpc.deploy(OWNER, code)
    router = await rpc.deploy(OWNER, ROUTER.creation_code())
    executor = await rpc.deploy(OWNER, EXECUTOR.creation_code(uniswap_router))
    market = Amm(rpc, weth=weth, uniswap_router=uniswap_router, router=router, executor=executor)
    for token in (NATIVE, weth):
        await market.learn(token)
    return market
