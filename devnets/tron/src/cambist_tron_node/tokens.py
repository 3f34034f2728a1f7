"""Contracts on a local node, called by the names of their functions; what they are is told in ``tests/contracts``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cambist.testing.contracts import Artifact, load

from . import keys
from .params import TRX

if TYPE_CHECKING:
    from .sending import Accounts

FEE_LIMIT: Final = 1_000 * TRX
USDT_ENERGY_FACTOR: Final = 34_000
"""What makes the main network's USDT dearer: the highest factor there is, in ten-thousandths."""

_SYMBOL_BYTES: Final = 32


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
        """Return the call's data."""
        return self._artifact.call_data(function, *_plain(args))


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


async def deploy(
    node: Accounts,
    name: str,
    *args: Any,  # noqa: ANN401 - ABI values
    sender: str | None = None,
    call_value: int = 0,
) -> TronContract:
    """Create one of the test contracts in a block of its own."""
    artifact = load(name)
    code = artifact.creation_code(*_plain(args))
    address = await node.create(code, abi=artifact.abi, name=name, sender=sender, call_value=call_value)
    return TronContract(node, artifact, address)


async def deploy_token(node: Accounts, symbol: str, decimals: int, *, usdt_like: bool = False) -> TronToken:
    """Create a token in a block of its own: an ordinary one, or one that behaves and costs like USDT on TRON."""
    artifact = load("TronUsdt" if usdt_like else "TestToken")
    if not usdt_like:
        address = await node.create(artifact.creation_code(symbol, decimals), abi=artifact.abi, name=symbol)
        return TronToken(node, artifact, address)
    told = symbol.encode().ljust(_SYMBOL_BYTES, b"\0") + decimals.to_bytes(32, "big")
    address = await node.create(artifact.creation_code() + told, abi=artifact.abi, name=symbol)
    node.set_energy_factor(address, USDT_ENERGY_FACTOR)
    return TronToken(node, artifact, address)


def _plain(value: Any) -> Any:  # noqa: ANN401 - ABI values
    """Return arguments with the 20 bytes of addresses in the place of their base58."""
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if not isinstance(value, str):
        return value
    try:
        return keys.address_bytes(value)[1:]
    except ValueError:
        return value
