"""Chains on which many addresses can be emptied by one transaction that the gateway's own address pays for.

Each address first gives a contract, the *sweeper*, the power to move what it holds: it signs an *authorization*. The
sweeper obeys the gateway's own address alone. An address that was swept must go on receiving plain transfers for what
they cost before: whoever pays it again does not know. How the gateway sends a sweep::

    plan_sweep     which transfers can go together, what the transaction costs, and who has to authorize the sweeper
    sign           the gateway's signer reads each authorization as ``Effects.delegate``, and signs its digest
    prepare_sweep  transfers and signed authorizations become one transaction's payload
    and on         as with every other transaction: signed, sealed, stored, broadcast

Where anything of this cannot be, the gateway sends the same transfers one by one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from msgspec import Struct

from .chains import Chain
from .sending import Fee, Intent, UnsignedTx


class Authorization(Struct, frozen=True, kw_only=True):
    """What an address must sign, so that the sweeper may move what it holds. ``payload`` is read as any other."""

    address: str
    payload: bytes


class Sweep(Struct, frozen=True, kw_only=True):
    """One transaction by ``sender`` that makes all transfers happen, or none of them."""

    sender: str
    items: tuple[Intent, ...]
    authorizations: tuple[Authorization, ...]
    fee: Fee


class SweepPlan(Struct, frozen=True, kw_only=True):
    """What can be swept: all that is not refused. ``refused`` has an entry for each transfer that was asked for."""

    sweep: Sweep | None
    refused: tuple[str | None, ...]


class SweeperDeployment(Struct, frozen=True, kw_only=True):
    """How a sweeper is deployed: anybody sends ``data`` to ``to_address``, and it is at ``address`` from then on.

    ``delegate`` is what the authorizations of its sweeps name, where that is not the sweeper itself.
    """

    address: str
    to_address: str
    data: bytes
    delegate: str | None = None


class SweepingChain(Chain):
    """A chain that can sweep, wherever ``info.sweeper`` names the contract."""

    @abstractmethod
    async def plan_sweep(self, intents: Sequence[Intent], *, sponsor: str) -> SweepPlan:
        """Say which of the transfers can be made together by ``sponsor``, the gateway's own funded address.

        Refused is what would fail as the chain is now, money that is not there included, and everything where the
        sweeper is not the sponsor's. No source may have anything under way. Raises FeeAboveCeilingError,
        ChainUnavailableError.
        """

    @abstractmethod
    async def prepare_sweep(self, sweep: Sweep, sequence: int | None, signatures: Sequence[bytes]) -> UnsignedTx:
        """Make a sweep into what its sender signs; ``signatures`` are those of its authorizations, in their order."""

    @abstractmethod
    def sweeper_deployment(self, sponsor: str) -> SweeperDeployment:
        """Return how the sweeper comes into being that obeys this sponsor. Asks nobody."""
