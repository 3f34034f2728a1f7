"""The other side of the scanning benchmark: the same node read as web3.py's documentation shows it."""

from __future__ import annotations

import asyncio
import time
from typing import Self

from _chain import DEPOSITS_PER_BLOCK, TRANSFER, USDT, paid_addresses
from web3 import AsyncHTTPProvider, AsyncWeb3, Web3
from web3.types import BlockData, TxReceipt

USDC = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"
TRANSFER_ABI = [
    {
        "type": "event",
        "name": "Transfer",
        "anonymous": False,
        "inputs": [
            {"name": "from", "type": "address", "indexed": True},
            {"name": "to", "type": "address", "indexed": True},
            {"name": "value", "type": "uint256", "indexed": False},
        ],
    }
]


class Web3Reader:
    """Fetches blocks and receipts, decodes the registered tokens' events, looks recipients up; stores nothing.

    Logs are sifted by contract and topic before the library decodes them, which is more than it would do itself.
    """

    def __init__(self, node_url: str, blocks: int) -> None:
        self._node_url = node_url
        self._blocks = blocks
        self._watched = {Web3.to_checksum_address(text) for text in paid_addresses(blocks)}
        self._tokens = {Web3.to_checksum_address(text) for text in (USDT, USDC)}
        self._topic = bytes.fromhex(TRANSFER[2:])

    async def __aenter__(self) -> Self:
        self._web3 = AsyncWeb3(AsyncHTTPProvider(self._node_url))
        self._event = self._web3.eth.contract(abi=TRANSFER_ABI).events.Transfer()
        await self.scan()  # its caches are warm from here on
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._web3.provider.disconnect()

    async def scan(self) -> float:
        """Read the chain's first blocks; return blocks per second."""
        started = time.perf_counter()
        found = 0
        for height in range(1, self._blocks + 1):
            block, receipts = await asyncio.gather(
                self._web3.eth.get_block(height, full_transactions=True), self._web3.eth.get_block_receipts(height)
            )
            found += self._hits(block, receipts)
        elapsed = time.perf_counter() - started
        assert found == self._blocks * DEPOSITS_PER_BLOCK
        return self._blocks / elapsed

    def _hits(self, block: BlockData, receipts: list[TxReceipt]) -> int:
        found = sum(tx["value"] > 0 and tx.get("to") in self._watched for tx in block["transactions"])
        for receipt in receipts:
            if receipt["status"] != 1:
                continue
            for log in receipt["logs"]:
                topics = log["topics"]
                if log["address"] in self._tokens and len(topics) == 3 and topics[0] == self._topic:
                    found += self._event.process_log(log)["args"]["to"] in self._watched
        return found
