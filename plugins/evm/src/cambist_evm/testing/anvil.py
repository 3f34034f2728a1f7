"""Starts anvil, a real Ethereum node for tests, and drives it.

::

    async with Anvil(chain_id=1) as node:
        token = await node.deploy("TestToken", "USDX", 6)
        await token.send("mint", customer, 10_000_000)
        await node.mine(3)
        await node.reorg(2)
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import aiohttp

from .contracts import Contract, creation_code

START_TIMEOUT_S: Final = 20.0
STOP_TIMEOUT_S: Final = 5.0
MINED_TIMEOUT_S: Final = 5.0
GAS_MAX: Final = 8_000_000

_LISTENING: Final = re.compile(rb"Listening on [0-9.]+:([0-9]+)")
_IN_MODULES: Final = Path("node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil")


class AnvilMissingError(RuntimeError):
    """There is no anvil on this machine."""


class RpcRefusedError(RuntimeError):
    """The node answered with an error."""


def find_anvil() -> Path:
    """Return anvil's path: ``CAMBIST_TEST_ANVIL``, else what npm installed under ``tests``, else what PATH has."""
    named = os.environ.get("CAMBIST_TEST_ANVIL")
    if named:
        return Path(named)
    for start in (Path.cwd(), Path(__file__).resolve().parent):
        for folder in (start, *start.parents):
            for binary in (folder / "tests" / _IN_MODULES, folder / _IN_MODULES):
                if binary.is_file():
                    return binary
    found = shutil.which("anvil")
    if found is None:
        message = "anvil is missing: run npm install in tests/, or name it in CAMBIST_TEST_ANVIL"
        raise AnvilMissingError(message)
    return Path(found)


class Anvil:
    """One node on a free loopback port, with funded accounts that it signs for itself.

    With ``automine`` each transaction is mined at once in a block of its own; without, only ``mine`` mines, and
    waiting transactions are mined in the order they came.
    """

    def __init__(
        self,
        *,
        chain_id: int = 31337,
        automine: bool = True,
        accounts_count: int = 10,
        arguments: Sequence[str] = (),
        state: Path | None = None,
    ) -> None:
        """Choose; ``async with`` starts it. A node that keeps its ``state`` in a file can be restarted."""
        self.chain_id = chain_id
        self.url = ""
        self.accounts: Sequence[str] = ()
        self.automine = automine
        self._arguments = [
            "--port", "0", "--chain-id", str(chain_id), "--accounts", str(accounts_count), "--order", "fifo",
            *(() if automine else ("--no-mining",)), *(() if state is None else ("--state", str(state))), *arguments,
        ]  # fmt: skip
        self._process: asyncio.subprocess.Process | None = None
        self._session: aiohttp.ClientSession | None = None
        self._drain: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Start the node and wait until it listens."""
        await self._start()
        self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        self.accounts = await self.call("eth_accounts")
        return self

    async def restart(self) -> None:
        """Stop the node and start it at the same address: it knows its blocks, and nothing of what waited."""
        await self._stop()
        self._arguments[1] = self.url.rpartition(":")[2]
        await self._start()

    async def _start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            find_anvil(), *self._arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                port = await self._port()
        except BaseException:
            await self._stop()
            raise
        self.url = f"http://127.0.0.1:{port}"

    async def __aexit__(self, *_: object) -> None:
        """Stop the node."""
        if self._session is not None:
            await self._session.close()
        await self._stop()

    async def _port(self) -> int:
        output = self._output()
        while line := await output.readline():
            if found := _LISTENING.search(line):
                # It logs every call; a full pipe would stop it.
                self._drain = asyncio.create_task(self._discard())
                return int(found[1])
        message = "anvil ended before it listened"
        raise RuntimeError(message)

    async def _discard(self) -> None:
        output = self._output()
        while await output.read(1 << 16):
            pass

    def _output(self) -> asyncio.StreamReader:
        if self._process is None or self._process.stdout is None:
            message = "anvil is not running: use async with"
            raise RuntimeError(message)
        return self._process.stdout

    async def _stop(self) -> None:
        process = self._process
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_TIMEOUT_S)
        except TimeoutError:
            process.kill()
            await process.wait()
        if self._drain is not None:
            await self._drain

    async def call(self, method: str, params: Sequence[Any] = ()) -> Any:  # noqa: ANN401 - JSON
        """Return the result of one JSON-RPC call. Raises RpcRefusedError."""
        if self._session is None:
            message = "anvil is not running: use async with"
            raise RuntimeError(message)
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
        async with self._session.post(self.url, json=request) as response:
            answer = await response.json()
        if "error" in answer:
            message = f"{method}: {answer['error']}"
            raise RpcRefusedError(message)
        return answer["result"]

    # --- Blocks ---

    async def height(self) -> int:
        """Return the newest block's number."""
        return int(await self.call("eth_blockNumber"), 16)

    async def mine(self, blocks: int = 1) -> None:
        """Mine so many blocks."""
        await self.call("anvil_mine", [hex(blocks)])

    async def reorg(self, depth: int, replacements: Sequence[tuple[str | Mapping[str, Any], int]] = ()) -> None:
        """Replace the newest blocks by as many others. What stood in them is gone for good.

        ``replacements`` are (signed bytes as hex or a transaction, number of the new block counted from 0).
        """
        await self.call("anvil_reorg", [depth, [[tx, index] for tx, index in replacements]])

    async def snapshot(self) -> str:
        """Return the name of the present state."""
        name: str = await self.call("evm_snapshot")
        return name

    async def revert(self, name: str) -> None:
        """Go back to a snapshot, once. Waiting transactions are dropped."""
        await self.call("anvil_dropAllTransactions")
        if not await self.call("evm_revert", [name]):
            message = f"there is no snapshot {name}"
            raise RpcRefusedError(message)

    # --- Transactions ---

    async def send(
        self, to: str | None, *, value: int = 0, data: str = "0x", sender: str | None = None, gas: int = GAS_MAX
    ) -> str:
        """Send a transaction from one of the node's accounts, the first by default, and return its id."""
        tx = {"from": sender or self.accounts[0], "value": hex(value), "data": data, "gas": hex(gas)}
        if to is not None:
            tx["to"] = to
        return await self._settled(await self.call("eth_sendTransaction", [tx]))

    async def send_native(self, to: str, wei: int, *, sender: str | None = None) -> str:
        """Send native coin and return the transaction's id."""
        return await self.send(to, value=wei, sender=sender, gas=21_000)

    async def raw(self, tx_id: str) -> str:
        """Return a transaction's signed bytes as hex, to send again after a reorg."""
        signed: str = await self.call("eth_getRawTransactionByHash", [tx_id])
        return signed

    async def send_raw(self, signed: str) -> str:
        """Send signed bytes and return the transaction's id."""
        return await self._settled(await self.call("eth_sendRawTransaction", [signed]))

    async def _settled(self, tx_id: str) -> str:
        """Return the transaction's id once it is mined, where mining is the node's business."""
        if self.automine:
            async with asyncio.timeout(MINED_TIMEOUT_S):
                while await self.call("eth_getTransactionReceipt", [tx_id]) is None:  # noqa: ASYNC110 - the node tells nobody
                    await asyncio.sleep(0.002)
        return tx_id

    async def receipt(self, tx_id: str) -> Mapping[str, Any]:
        """Return what came of a mined transaction."""
        receipt: Mapping[str, Any] | None = await self.call("eth_getTransactionReceipt", [tx_id])
        if receipt is None:
            message = f"{tx_id} is not mined"
            raise RpcRefusedError(message)
        return receipt

    async def deploy(self, artifact: str, *args: Any, value: int = 0) -> Contract:  # noqa: ANN401 - ABI values
        """Deploy one of the test contracts, mining a block, and return it."""
        tx_id = await self.send(None, data=creation_code(artifact, *args), value=value)
        if not self.automine:
            await self.mine()
        receipt = await self.receipt(tx_id)
        if receipt["status"] != "0x1":
            message = f"{artifact} could not be deployed"
            raise RpcRefusedError(message)
        return Contract(self, artifact, receipt["contractAddress"])
