"""Contracts on a local node, called by the names of their functions; what they are is told in ``tests/contracts``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cambist.testing.contracts import Artifact

from . import keys
from .params import TRX

if TYPE_CHECKING:
    from .sending import Accounts

FEE_LIMIT: Final = 1_000 * TRX


class TronContract:
    """A contract on a node. Addresses among arguments are given in base58."""

    def __init__(self, node: Accounts, artifact: Artifact, address: str) -> None:
        self.address = address
        self._node = node
        self._artifact = artifact

    async def send(
        self,
        function: str,
        *args: Any,  # noqa: ANN401 - ABI values
        sender: str | None = None,
        call_value: int = 0,
        fee_limit: int = FEE_LIMIT,
    ) -> str:
        """Send a transaction that calls the function, and return its id; it waits for a block, whatever comes of it."""
        data = self.data(function, *args)
        return await self._node.trigger(self.address, data, sender=sender, call_value=call_value, fee_limit=fee_limit)

    async def read(self, function: str, *args: Any) -> Any:  # noqa: ANN401 - ABI values
        """Return what the function answers, without a transaction."""
        outcome = await self._node.constant(self.address, self.data(function, *args))
        return self._artifact.answer(function, outcome.output)

    def data(self, function: str, *args: Any) -> bytes:  # noqa: ANN401 - ABI values
        return self._artifact.call_data(function, *plain(args))


class TronToken(TronContract):
    """A TRC-20 token that anyone may mint."""

    async def mint(self, to: str, units: int) -> str:
        """Make so much more for somebody, and return the transaction's id."""
        return await self.send("mint", to, units)

    async def transfer(self, to: str, units: int, *, sender: str | None = None, fee_limit: int = FEE_LIMIT) -> str:
        """Send some, and return the transaction's id."""
        return await self.send("transfer", to, units, sender=sender, fee_limit=fee_limit)

    async def balance_of(self, address: str) -> int:
        """Return what somebody has, what waits included."""
        units: int = await self.read("balanceOf", address)
        return units

    async def refuse(self, address: str) -> str:
        """Let every transfer to and from an address fail from here on, if it is a token like USDT."""
        return await self.send("addBlackList", address)

    async def accept(self, address: str) -> str:
        """Refuse an address no longer."""
        return await self.send("removeBlackList", address)

    async def charge(self, basis_points: int, units_max: int) -> str:
        """Keep so much of every transfer from here on, if it is a token like USDT; 0 for nothing."""
        return await self.send("setParams", basis_points, units_max)


def plain(value: Any) -> Any:  # noqa: ANN401 - ABI values
    """Return arguments with the 20 bytes of addresses in the place of their base58."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if not isinstance(value, str):
        return value
    try:
        return keys.address_bytes(value)[1:]
    except ValueError:
        return value
