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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from cambist.testing.anvil import AnvilProcess, RpcRefusedError
from cambist.testing.contracts import Artifact, load
from cambist_chainkit.eip55 import spell

MINED_TIMEOUT_S: Final = 5.0
GAS_MAX: Final = 8_000_000
STATES_MAX: Final = 300
LONG_CHAIN: Final = ("--prune-history", str(STATES_MAX))
"""Arguments for a node whose chain grows long and is reorganized: it keeps ``STATES_MAX`` states, all in memory.

By itself it keeps ever fewer there once it has 500 blocks, down to ten, and the others in files. A reorg back to one of
those leaves every contract without its code, and says nothing.
"""


class Anvil(AnvilProcess):
    """One node on a free loopback port, with funded accounts that it signs for itself.

    With ``automine`` each transaction is mined at once in a block of its own; without, only ``mine`` mines, and
    waiting transactions are mined in the order they came. Started again with ``restart``, it knows its blocks where
    it keeps its ``state`` in a file, and nothing of what waited.
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
        self.chain_id = chain_id
        self.accounts: Sequence[str] = ()
        self.automine = automine
        super().__init__([
            "--chain-id", str(chain_id), "--accounts", str(accounts_count), "--order", "fifo",
            *(() if automine else ("--no-mining",)), *(() if state is None else ("--state", str(state))), *arguments,
        ])  # fmt: skip

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.accounts = await self.call("eth_accounts")
        return self

    # --- Blocks ---

    async def height(self) -> int:
        return int(await self.call("eth_blockNumber"), 16)

    async def mine(self, blocks: int = 1) -> None:
        await self.call("anvil_mine", [hex(blocks)])

    async def reorg(self, depth: int, replacements: Sequence[tuple[str | Mapping[str, Any], int]] = ()) -> None:
        """Replace the newest blocks by as many others. What stood in them is gone for good.

        ``replacements`` are (signed bytes as hex or a transaction, number of the new block counted from 0). Raises
        RpcRefusedError where the node has forgotten what everybody held below them.
        """
        await self.call("anvil_reorg", [depth, [[tx, index] for tx, index in replacements]])

    # --- Transactions ---

    async def send(
        self, to: str | None, *, value: int = 0, data: str = "0x", sender: str | None = None, gas: int = GAS_MAX
    ) -> str:
        """Send a transaction from one of the node's accounts, the first by default, and return its id."""
        tx = {"from": sender or self.accounts[0], "value": hex(value), "data": data, "gas": hex(gas)}
        if to is not None:
            tx["to"] = to
        return await self._mined(await self.call("eth_sendTransaction", [tx]))

    async def send_native(self, to: str, wei: int, *, sender: str | None = None) -> str:
        return await self.send(to, value=wei, sender=sender, gas=21_000)

    async def raw(self, tx_id: str) -> str:
        """Return a transaction's signed bytes as hex, to send again after a reorg."""
        signed: str = await self.call("eth_getRawTransactionByHash", [tx_id])
        return signed

    async def send_raw(self, signed: str) -> str:
        return await self._mined(await self.call("eth_sendRawTransaction", [signed]))

    async def _mined(self, tx_id: str) -> str:
        """Return the transaction's id once it is mined, where mining is the node's business."""
        if self.automine:
            async with asyncio.timeout(MINED_TIMEOUT_S):
                while await self.call("eth_getTransactionReceipt", [tx_id]) is None:  # noqa: ASYNC110 - the node tells nobody
                    await asyncio.sleep(0.002)
        return tx_id

    async def receipt(self, tx_id: str) -> Mapping[str, Any]:
        receipt: Mapping[str, Any] | None = await self.call("eth_getTransactionReceipt", [tx_id])
        if receipt is None:
            raise RpcRefusedError(f"{tx_id} is not mined")
        return receipt

    async def deploy(self, artifact: str, *args: Any, value: int = 0) -> Contract:  # noqa: ANN401 - ABI values
        """Deploy one of the test contracts, mining a block, and return it."""
        compiled = load(artifact)
        tx_id = await self.send(None, data="0x" + compiled.creation_code(*args).hex(), value=value)
        if not self.automine:
            await self.mine()
        receipt = await self.receipt(tx_id)
        if receipt["status"] != "0x1":
            raise RpcRefusedError(f"{artifact} could not be deployed")
        return Contract(self, compiled, receipt["contractAddress"])


class Contract:
    """A deployed test contract, called by the names of its functions: ``tests/contracts/*.sol`` tells what it is."""

    def __init__(self, node: Anvil, artifact: Artifact, address: str) -> None:
        """``address`` becomes its EIP-55 spelling."""
        self.address = spell(address[2:].lower())
        self._node = node
        self._artifact = artifact

    async def send(
        self,
        function: str,
        *args: Any,  # noqa: ANN401 - ABI values
        value: int = 0,
        sender: str | None = None,
    ) -> str:
        """Send a transaction that calls the function, and return its id, whatever comes of it."""
        return await self._node.send(self.address, data=self.data(function, *args), value=value, sender=sender)

    async def read(self, function: str, *args: Any) -> Any:  # noqa: ANN401 - ABI values
        """Return what the function answers, without a transaction."""
        call = {"to": self.address, "data": self.data(function, *args)}
        answer = await self._node.call("eth_call", [call, "latest"])
        return self._artifact.answer(function, bytes.fromhex(answer[2:]))

    def data(self, function: str, *args: Any) -> str:  # noqa: ANN401 - ABI values
        return "0x" + self._artifact.call_data(function, *args).hex()
