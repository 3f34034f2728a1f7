"""The other side of TRON's scanning benchmark: the same node read with what tronpy has for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Self

from _tron_chain import DEPOSITS_PER_BLOCK, TRANSFER, USDT, paid_addresses, spelled
from tronpy import Tron
from tronpy.providers import HTTPProvider


class TronpyReader:
    """Fetches blocks and what came of them, decodes USDT's transfers, looks recipients up; stores nothing.

    tronpy has no call for all results of a block. ``one_by_one`` asks for those of contract calls as it documents it;
    ``at_once`` goes past its methods and asks through its provider.
    """

    def __init__(self, node_url: str, blocks: int) -> None:
        self._client = Tron(HTTPProvider(node_url), conf={"fee_limit": 0})
        self._blocks = blocks
        self._watched = set(paid_addresses(blocks))

    async def __aenter__(self) -> Self:
        self.at_once()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is to be closed."""

    def one_by_one(self) -> float:
        """Read the chain's first blocks; return blocks per second."""
        return self._scan(
            lambda block: (
                self._client.get_transaction_info(tx["txID"])
                for tx in block["transactions"]
                if tx["raw_data"]["contract"][0]["type"] == "TriggerSmartContract"
            )
        )

    def at_once(self) -> float:
        """Read the same blocks."""
        request = self._client.provider.make_request
        path = "wallet/gettransactioninfobyblocknum"
        return self._scan(lambda block: request(path, {"num": block["block_header"]["raw_data"]["number"]}))

    def _scan(self, infos: Any) -> float:
        started = time.perf_counter()
        found = 0
        for height in range(1, self._blocks + 1):
            block = self._client.get_block(height)
            found += sum(1 for _ in self._hits(block, infos(block)))
        elapsed = time.perf_counter() - started
        assert found == self._blocks * DEPOSITS_PER_BLOCK
        return self._blocks / elapsed

    def _hits(self, block: Any, infos: Any) -> Iterator[str]:
        for transaction in block["transactions"]:
            contract = transaction["raw_data"]["contract"][0]
            succeeded = transaction["ret"][0].get("contractRet") == "SUCCESS"
            if contract["type"] == "TransferContract" and succeeded:
                recipient = contract["parameter"]["value"]["to_address"]
                if recipient in self._watched:
                    yield recipient
        for info in infos:
            for log in info.get("log", ()) if info["receipt"].get("result") == "SUCCESS" else ():
                at = log["address"] if log["address"].startswith("T") else spelled(bytes.fromhex(log["address"]))
                if at == USDT and log["topics"][0] == TRANSFER and len(log["topics"]) == 3:
                    recipient = spelled(bytes.fromhex(log["topics"][2][24:]))
                    if recipient in self._watched:
                        yield recipient
