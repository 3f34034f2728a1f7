"""The test contracts, deployed on anvil: what they are is told in their sources, ``tests/contracts/*.sol``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cambist.testing.contracts import Artifact
from cambist_evm.addresses import spell

if TYPE_CHECKING:
    from .anvil import Anvil


class Contract:
    """A deployed test contract, called by the names of its functions."""

    def __init__(self, node: Anvil, artifact: Artifact, address: str) -> None:
        """Keep where it is; ``address`` becomes its EIP-55 spelling."""
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
        """Return the call's data as hex."""
        return "0x" + self._artifact.call_data(function, *args).hex()
