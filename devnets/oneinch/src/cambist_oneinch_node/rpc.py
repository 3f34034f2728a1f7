"""Asks a node that runs already, and sends what changes its chain."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import aiohttp
import msgspec

from cambist.testing.anvil import RpcRefusedError
from cambist_chainkit.eip55 import spell

MINED_TIMEOUT_S: Final = 10.0


class Rpc:
    """JSON-RPC of one anvil, over a session that the caller closes."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def call(self, method: str, *params: object) -> Any:  # noqa: ANN401 - JSON
        """Return the result of one call. Raises RpcRefusedError."""
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        headers = {"Content-Type": "application/json"}
        async with self._session.post(self._url, data=body, headers=headers) as response:
            answer = msgspec.json.decode(await response.read())
        if "error" in answer:
            raise RpcRefusedError(f"{method}: {answer['error']}")
        return answer["result"]

    async def number(self, method: str, *params: object) -> int:
        """Return the result of a call that answers a number."""
        return int(await self.call(method, *params), 16)

    async def read(self, contract: str, data: bytes) -> bytes:
        """Return what a contract answers. Raises RpcRefusedError where it reverts."""
        answer: str = await self.call("eth_call", {"to": contract, "data": "0x" + data.hex()}, "latest")
        return bytes.fromhex(answer[2:])

    async def deploy(self, sender: str, code: bytes) -> str:
        """Return the address of a new contract."""
        return spell((await self.send(sender, None, code))["contractAddress"][2:].lower())

    async def send(self, sender: str, to: str | None, data: bytes, value: int = 0) -> dict[str, Any]:
        """Send a transaction of an account that the node signs for, and return its receipt. Raises RpcRefusedError."""
        transaction = {"from": sender, "data": "0x" + data.hex(), "value": hex(value)}
        tx_id = await self.call("eth_sendTransaction", transaction | ({} if to is None else {"to": to}))
        if not await self.call("anvil_getAutomine"):
            await self.call("anvil_mine")
        receipt: dict[str, Any] | None = None
        async with asyncio.timeout(MINED_TIMEOUT_S):
            while receipt is None:
                receipt = await self.call("eth_getTransactionReceipt", tx_id)
                await asyncio.sleep(0 if receipt else 0.005)
        if receipt["status"] != "0x1":
            raise RpcRefusedError(f"{tx_id} was reverted")
        return receipt
