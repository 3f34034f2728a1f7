"""A chain in memory that keeps no past, as TRON's nodes keep none."""

from __future__ import annotations

from collections.abc import Sequence

from cambist.plugin import StateUnavailableError, Token, Units
from cambist.testing.memory import MemoryChain, MemoryLendingChain
from tests.support.payment_env import registry

FINALITY_LAG = 2


class Forgetful(MemoryChain):
    """Knows what was so at the finalized height, of so many addresses at once, and nothing of any other height."""

    at_once_max = 500

    async def balances(self, wanted: Sequence[tuple[str, Token]], at: int | None = None) -> Sequence[Units]:
        final = self.finalized_height(self.height)
        if at is not None and (at != final or len(wanted) > self.at_once_max):
            raise StateUnavailableError(f"what was so at height {at} is not kept, final is {final}")
        return await super().balances(wanted, at)


class ForgetfulLender(Forgetful, MemoryLendingChain):
    """The same, on which stakes can be lent."""


def forgetful_chain() -> Forgetful:
    return Forgetful(registry().chains["memory"], finality_lag_blocks=FINALITY_LAG)
