"""A chain with a 1inch of its own, the plugin pointed at it, and web3.py as the client that looks at what happened."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest
from web3 import Web3

from cambist.plugin import Call, ChainInfo, ChainToken, ExchangeRequest, PluginContext, SwapProvider, Token
from cambist.testing.anvil import AnvilProcess
from cambist.testing.contracts import load
from cambist_oneinch_node import NATIVE, LocalOneInch, Pool
from cambist_swap_1inch.config import ChainConfig, OneInchConfig
from cambist_swap_1inch.plugin import OneInchPlugin

RECORDED = Path(__file__).resolve().parents[3] / "plugins/swap_1inch/tests/recorded"
CHAIN_ID = 31337
COIN = 10**18
GIFT = 1_000_000


def recorded(name: str) -> dict[str, Any]:
    """Return an answer or a swap of the real 1inch."""
    return json.loads((RECORDED / name).read_text())


class Chain:
    """An anvil with tokens, and an independent client of it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.web3 = Web3(Web3.HTTPProvider(url))
        self.owner, self.wallet, self.trader, self.referrer, self.customer = self.web3.eth.accounts[:5]
        self.tokens = {
            "ETH": Token(symbol="ETH", contract=None, decimals=18, label="Ether"),
            "USDT": self._token("USDT", 6, "UsdtLike"),
            "USDC": self._token("USDC", 6, "TestToken", "USDC", 6),
            "LINK": self._token("LINK", 18, "TestToken", "LINK", 18),
            "SKIM": self._token("SKIM", 6, "Skimming"),
            "LONE": self._token("LONE", 18, "TestToken", "LONE", 18),
        }
        self.info = ChainInfo(
            id="local", name="Local", family="evm", confirmations=1, chain_id_num=CHAIN_ID, is_evm=True,
            tokens=tuple(self.tokens.values()),
        )  # fmt: skip

    @property
    def pools(self) -> list[Pool]:
        """Coin at 2000 and LINK at 20 dollars; USDT and USDC trade directly as well."""
        usdt, usdc, link, skim = (self.address(symbol) for symbol in ("USDT", "USDC", "LINK", "SKIM"))
        return [
            Pool(token=usdt, units=2_000_000 * 10**6, other_units=1000 * COIN),
            Pool(token=usdc, units=2_000_000 * 10**6, other_units=1000 * COIN),
            Pool(token=link, units=100_000 * 10**18, other_units=1000 * COIN),
            Pool(token=skim, units=2_000_000 * 10**6, other_units=1000 * COIN),
            Pool(token=usdt, units=5_000_000 * 10**6, other=usdc, other_units=5_000_000 * 10**6),
        ]

    def address(self, symbol: str) -> str:
        return self.tokens[symbol].contract or NATIVE

    def send(self, sender: str, to: str | None, data: bytes, value: int = 0) -> Mapping[str, Any]:
        """Send a transaction without asking first whether it succeeds, and return its receipt."""
        transaction: dict[str, Any] = {"from": sender, "data": data, "value": value, "gas": 3_000_000}
        tx_id = self.web3.eth.send_transaction(transaction | ({} if to is None else {"to": to}))
        return self.web3.eth.wait_for_transaction_receipt(tx_id, timeout=20, poll_latency=0.005)

    def error(self, sender: str, to: str, data: bytes, value: int = 0) -> str:
        """Return the selector of the error that a call would revert with."""
        answer = self.web3.provider.make_request(
            "eth_call", [{"from": sender, "to": to, "data": "0x" + data.hex(), "value": hex(value)}, "latest"]
        )
        return answer["error"]["data"][:10]

    def approve(self, symbol: str, spender: str, units: int, owner: str | None = None) -> None:
        data = load("TestToken").call_data("approve", spender, units)
        assert self.send(owner or self.wallet, self.address(symbol), data)["status"] == 1

    def allowance(self, symbol: str, spender: str) -> int:
        return self._read(symbol, "allowance", self.wallet, spender)

    def balance(self, symbol: str, owner: str) -> int:
        return self.web3.eth.get_balance(owner) if symbol == "ETH" else self._read(symbol, "balanceOf", owner)

    def _read(self, symbol: str, function: str, *args: str) -> int:
        data = load("TestToken").call_data(function, *args)
        return int.from_bytes(self.web3.eth.call({"to": self.address(symbol), "data": data}))

    def _token(self, symbol: str, decimals: int, artifact: str, *args: Any) -> Token:
        compiled = load(artifact)
        address = self.send(self.owner, None, compiled.creation_code(*args))["contractAddress"]
        for account in (self.wallet, self.trader):
            self.send(self.owner, address, compiled.call_data("mint", account, GIFT * 10**decimals))
        return Token(symbol=symbol, contract=address, decimals=decimals, label=symbol)


class Gateway:
    """Asks the plugin as a gateway does."""

    def __init__(self, provider: SwapProvider, config: OneInchConfig, chain: Chain) -> None:
        self.provider = provider
        self.chain = chain
        (self.reader,) = OneInchPlugin().readers(config)

    def request(self, sells: str, buys: str, units: int, **other: Any) -> ExchangeRequest:
        info = self.chain.info
        return ExchangeRequest(
            **{
                "sells": ChainToken(chain=info, token=self.chain.tokens[sells]),
                "buys": ChainToken(chain=info, token=self.chain.tokens[buys]),
                "units": units,
                "sender": self.chain.wallet,
                "recipient": self.chain.customer,
                "slippage_bps": 50,
            }
            | other
        )

    def read(self, call: Call) -> Any:
        return self.reader.read(self.chain.info, self.chain.wallet, call, {"local": self.chain.info})


@asynccontextmanager
async def connected(oneinch: LocalOneInch, chain: Chain, **settings: Any) -> AsyncIterator[Gateway]:
    """Connect the plugin as its operator's file says."""
    table = {
        "key": oneinch.key, "base_url": oneinch.url, "requests_per_second": 1000, "timeout_ms": 3000, "quote_ttl_ms": 0,
        "chains": {"local": ChainConfig(router=oneinch.router)},
    }  # fmt: skip
    config = OneInchConfig(**table | settings)
    context = PluginContext(
        now=lambda: datetime.now(UTC), monotonic=time.monotonic, random=Random(1), user_agent="cambist/tests"
    )
    async with OneInchPlugin().connect(config, context) as (provider,):
        yield Gateway(provider, config, chain)


class Client:
    """Asks the API over plain HTTP."""

    def __init__(self, session: aiohttp.ClientSession, oneinch: LocalOneInch) -> None:
        self._session = session
        self._oneinch = oneinch

    async def ask(
        self, path: str, *, version: str = "v6.1", chain: int = CHAIN_ID, key: str | None = None, **params: str
    ) -> tuple[int, Any, Mapping[str, str]]:
        """Return the status, the body, read where it is JSON, and the headers. ``sender`` stands for ``from``."""
        if "sender" in params:
            params["from"] = params.pop("sender")
        url = f"{self._oneinch.url}/swap/{version}/{chain}/{path}"
        headers = {"Authorization": f"Bearer {self._oneinch.key if key is None else key}"}
        async with self._session.get(url, params=params, headers=headers, allow_redirects=False) as response:
            body = await response.text()
            told = json.loads(body) if response.content_type == "application/json" else body
            return response.status, told, response.headers


@asynccontextmanager
async def client_of(oneinch: LocalOneInch) -> AsyncIterator[Client]:
    """Open a session."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield Client(session, oneinch)


@pytest.fixture(scope="session")
async def deployed():
    async with AnvilProcess(["--chain-id", str(CHAIN_ID)]) as anvil:
        chain = Chain(anvil.url)
        async with LocalOneInch(anvil.url, chain.pools, requests_per_second=1000) as oneinch:
            await oneinch.amm.learn(chain.address("LONE"))
            yield anvil, chain, oneinch


@pytest.fixture
async def chain(deployed):
    anvil, chain, _ = deployed
    before = await anvil.snapshot()
    yield chain
    await anvil.revert(before)


@pytest.fixture
def oneinch(deployed):
    _, _, oneinch = deployed
    yield oneinch
    oneinch.faults.clear()


@pytest.fixture
async def gateway(chain, oneinch):
    async with connected(oneinch, chain) as gateway:
        yield gateway


@pytest.fixture
async def client(oneinch):
    async with client_of(oneinch) as client:
        yield client
