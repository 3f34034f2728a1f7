"""Our side of the scanning benchmarks: the watcher itself, over HTTP and into PostgreSQL."""

from __future__ import annotations

import resource
import sys
import time
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, Self

import msgspec
from _chain import DEPOSITS_PER_BLOCK, build

from cambist.db.engine import connect
from cambist.hints import Hints
from cambist.plugin import AddressFamily, ChainPlugin, PluginContext
from cambist.ports import SystemClock, system_ids, system_random
from cambist.services.receiving.deposits import AddressCache, Watcher
from cambist_evm.config import ChainConfig, EvmConfig
from cambist_evm.family import EvmFamily
from cambist_evm.plugin import EvmPlugin
from cambist_evm.wire import Answer, RpcBlock, RpcReceipt
from cambist_tasks.memory import tune_memory
from cambist_tron.config import TronConfig
from cambist_tron.family import TronFamily
from cambist_tron.networks import MAINNET
from cambist_tron.plugin import TronPlugin

BATCH = ChainConfig().batch_calls_max


def _ethereum(url: str) -> tuple[AddressFamily, ChainPlugin[Any], Any]:
    return EvmFamily(), EvmPlugin(), EvmConfig(chains={"ethereum": ChainConfig(rpc_urls=(url,))})


def _tron(url: str) -> tuple[AddressFamily, ChainPlugin[Any], Any]:
    usdt = {"symbol": "USDT", "contract": MAINNET.tokens[0].contract, "decimals": 6}
    table = {"network": "local", "rpc_urls": [url], "tokens": [usdt]}
    return TronFamily(), TronPlugin(), msgspec.convert(table, TronConfig)


_CHAINS = {"ethereum": _ethereum, "tron": _tron}


class Scanner:
    """Watches the replayed chain from its first block to its last, as a worker does."""

    def __init__(self, database_url: str, node_url: str, blocks: int, chain: str = "ethereum") -> None:
        self._database_url = database_url
        self._blocks = blocks
        self._clock = SystemClock()
        self._name = chain
        self._family, self._plugin, self._config = _CHAINS[chain](node_url)

    async def __aenter__(self) -> Self:
        tune_memory()
        self._stack = AsyncExitStack()
        self._db = connect(self._database_url, application_name="bench", pool_size=2, pool_overflow=2)
        self._stack.push_async_callback(self._db.close)
        context = PluginContext(
            now=self._clock.now, monotonic=self._clock.monotonic, random=system_random(), user_agent="bench"
        )
        (self._chain,) = await self._stack.enter_async_context(self._plugin.connect(self._config, context))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def load(self) -> tuple[int, float]:
        """Read the addresses to watch; return how many, and in what time."""
        self._address_cache = AddressCache(self._db, self._family, "live")
        self._watcher = Watcher(
            db=self._db,
            chain=self._chain,
            family=self._family,
            address_cache=self._address_cache,
            scope=0,
            mode="live",
            clock=self._clock,
            ids=system_ids(),
            hints=Hints(None),
        )
        started = time.perf_counter()
        await self._address_cache.refresh()
        return len(self._address_cache), time.perf_counter() - started

    async def scan(self) -> float:
        """Read the whole chain from the start; return blocks per second."""
        await self._rewind()
        started = time.perf_counter()
        async with self._watcher.reading_ahead():
            result = await self._watcher.poll()
            deposits = result.deposits
            while result.behind:
                result = await self._watcher.poll()
                deposits += result.deposits
        elapsed = time.perf_counter() - started
        assert deposits == self._blocks * DEPOSITS_PER_BLOCK
        assert result.transitions
        return self._blocks / elapsed

    async def _rewind(self) -> None:
        """Forget every deposit, go back to the chain's first block, and open every payment again."""
        async with self._chain.view() as view:
            first = await view.block(0)
        now = self._clock.now()
        async with self._db.transaction() as conn:
            await conn.exec_driver_sql("TRUNCATE deposits, chain_blocks, chain_cursors, webhook_events CASCADE")
            await conn.exec_driver_sql(
                "INSERT INTO chain_cursors (chain, scope, height, hash, head, updated_at) VALUES ($1, 0, 0, $2, 0, $3)",
                (self._name, first.hash, now),
            )
            await conn.exec_driver_sql(
                "UPDATE payments SET status = 'pending', received_units = 0, dirty = false, expires_at = $1",
                (now + timedelta(hours=1),),
            )

    def memory_mb(self) -> float:
        """Return the most that this process ever held, in megabytes."""
        unit_bytes = 1024 if sys.platform == "linux" else 1
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit_bytes / 1e6


class Decoder:
    """Decoding alone: the same bytes into the same Structs, batches as large, and nothing done with them."""

    def __init__(self, blocks: int) -> None:
        chain = build(blocks)[1:]
        self._blocks = blocks
        self._block = msgspec.json.Decoder(list[Answer[RpcBlock]])
        self._receipts = msgspec.json.Decoder(list[Answer[list[RpcReceipt]]])
        self._batches = [
            (
                _batch([answers.block for answers in chain[first : first + BATCH]]),
                _batch([answers.receipts for answers in chain[first : first + BATCH]]),
            )
            for first in range(0, blocks, BATCH)
        ]

    async def __aenter__(self) -> Self:
        """Manage memory as the worker does."""
        tune_memory()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is to be closed."""

    def run(self) -> float:
        """Return blocks per second."""
        started = time.perf_counter()
        for block, receipts in self._batches:
            self._block.decode(block)
            self._receipts.decode(receipts)
        return self._blocks / (time.perf_counter() - started)


def _batch(results: list[bytes]) -> bytes:
    return b"[%b]" % b",".join(
        b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (number, result) for number, result in enumerate(results)
    )
