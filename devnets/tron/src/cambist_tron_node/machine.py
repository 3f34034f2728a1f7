"""The seam between the node and what runs its contracts: the node decides who pays, the machine what happens.

Addresses are 20 bytes here, without TRON's prefix. Balances belong to the node: the machine asks ``World`` for them
and reports every movement it caused as an ``Internal``; it keeps only code and storage.
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

SUCCESS: Final = "SUCCESS"
REVERT: Final = "REVERT"
OUT_OF_ENERGY: Final = "OUT_OF_ENERGY"


class NoContractError(LookupError):
    """There is no contract at this address."""


class Moment(msgspec.Struct, frozen=True):
    """The block a contract sees itself run in."""

    number: int
    timestamp_ms: int
    witness: bytes


class Call(msgspec.Struct, frozen=True):
    """One call of a contract, or its creation: then ``data`` is the code that creates it.

    The node chooses the address of a new contract (from the transaction's id, as TRON does), so ``contract`` is
    given in both cases. ``origin_tx`` is the transaction's id, empty in a constant call.
    """

    caller: bytes
    contract: bytes
    data: bytes
    energy_limit: int
    call_value: int = 0
    origin_tx: bytes = b""


class Log(msgspec.Struct, frozen=True):
    """One event; ``topics`` are 32 bytes each."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes


class Internal(msgspec.Struct, frozen=True):
    """A call, creation or suicide made by a contract, in the order of execution; never the outermost call itself.

    ``note`` is "call", "create" or "suicide". Value moves from ``caller`` to ``target`` unless it is rejected.
    """

    caller: bytes
    target: bytes
    value: int
    note: str
    rejected: bool = False
    data: bytes = b""


class Outcome(msgspec.Struct, frozen=True):
    """What came of a call.

    ``status`` is a name of TRON's ``contractResult``. ``energy_used`` includes ``energy_penalty``; where the status is
    neither SUCCESS nor REVERT it is the whole limit. ``message`` is the node's words on a failure. After a failure
    there are no logs, every internal is rejected, and code and storage are as before.
    """

    status: str
    energy_used: int
    energy_penalty: int = 0
    output: bytes = b""
    logs: tuple[Log, ...] = ()
    internal: tuple[Internal, ...] = ()
    message: str = ""


class World(Protocol):
    """What a machine may ask of the node."""

    def balance(self, address: bytes) -> int:
        """Return an account's or contract's sun. During a call its value is still the caller's."""

    def exists(self, address: bytes) -> bool:
        """Tell whether the account is activated, or is a contract."""


class Machine(Protocol):
    """Runs contracts. One call at a time: the node never asks two things that change state at once."""

    async def start(self, world: World) -> None:
        """Get ready. Called once, before anything else."""

    async def close(self) -> None:
        """Stop what ``start`` started."""

    async def create(self, call: Call, moment: Moment) -> Outcome:
        """Create a contract at ``call.contract``; ``output`` is its code. State changes only on SUCCESS."""

    async def call(self, call: Call, moment: Moment) -> Outcome:
        """Call a contract. State changes only on SUCCESS. Raises NoContractError."""

    async def constant(self, call: Call, moment: Moment, mark: int | None = None) -> Outcome:
        """Say what a call would do, on the present state or on a marked one. Raises NoContractError."""

    async def mark(self) -> int:
        """Name the present state, to go back to. Two marks with nothing between them may be the same."""

    async def rewind(self, mark: int) -> None:
        """Make the marked state the present one, as often as asked; marks made after it are gone."""

    def energy_factor(self, contract: bytes) -> int:
        """Return by how many ten-thousandths this contract's energy is dearer."""

    def set_energy_factor(self, contract: bytes, ten_thousandths: int) -> None:
        """Make a contract's energy dearer by this share, as TRON does with those in great demand."""


class NoMachine:
    """The machine of a node without contracts: every call is refused, and there is only one state."""

    async def start(self, world: World) -> None:
        pass

    async def close(self) -> None:
        pass

    async def create(self, call: Call, moment: Moment) -> Outcome:  # noqa: ARG002 - the protocol's
        return Outcome("UNKNOWN", call.energy_limit, message="this node runs no contracts")

    async def call(self, call: Call, moment: Moment) -> Outcome:  # noqa: ARG002 - the protocol's
        raise NoContractError(call.contract.hex())

    async def constant(self, call: Call, moment: Moment, mark: int | None = None) -> Outcome:  # noqa: ARG002 - likewise
        raise NoContractError(call.contract.hex())

    async def mark(self) -> int:
        return 0

    async def rewind(self, mark: int) -> None:
        pass

    def energy_factor(self, contract: bytes) -> int:  # noqa: ARG002 - the protocol's
        return 0

    def set_energy_factor(self, contract: bytes, ten_thousandths: int) -> None:
        pass
