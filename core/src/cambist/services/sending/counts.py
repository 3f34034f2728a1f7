"""How many of a sender's transactions are mined, as far as that is believed.

The next nonce is the chain's count or our own, whichever is more: something else may have used the key. A count that is
too high would have us sign where nothing is mined before each nonce below is used, by a transfer that costs. So what
is counted beyond our own, up to ``outbound.nonce_jump_max``, is believed of anybody, and more than that of no endpoint
alone.
"""

from __future__ import annotations

import structlog

from cambist.plugin import ChainError
from cambist.services.addresses.wallets import OwnAddress

from . import gap_store
from .context import EngineContext

WAITS_FOR_COUNT = "nonce_doubted"

log = structlog.get_logger(__name__)


class NonceDoubtedError(ChainError):
    """One endpoint alone counts far more transactions of a sender than our books explain."""

    def __init__(self, sender: OwnAddress, counted: int, unexplained: int) -> None:
        super().__init__(
            f"the chain counts {counted} transactions of {sender.address}, and nothing is known of {unexplained} of"
            " them: no second endpoint tells of as many"
        )
        self.counted, self.unexplained = counted, unexplained


async def mined_count(context: EngineContext, sender: OwnAddress, *, ours: int = 0) -> int | None:
    """Return how many of the sender's transactions are mined, None where they are not numbered.

    ``ours`` is how many our books have had, as far as the caller knows: as many are believed without another look.
    Raises NonceDoubtedError, and ChainError. No transaction of the caller's may be open: the chain is asked.
    """
    counted = await context.chain.next_sequence(sender.address)
    return counted if counted is None or counted <= ours else await believed(context, sender, counted)


async def believed(context: EngineContext, sender: OwnAddress, counted: int) -> int:
    """Return this count, or the lower one that several endpoints tell. Raises as ``mined_count`` does."""
    async with context.db.autocommit() as conn:
        unexplained = await gap_store.count_unexplained(conn, context.chain_scope, sender.pk, counted)
    if unexplained <= context.settings.nonce_jump_max:
        return counted
    witnessed = await context.chain.witnessed_sequence(sender.address)
    if witnessed is None:
        raise NonceDoubtedError(sender, counted, unexplained)
    if witnessed < counted:
        facts = {"address": sender.address, "counted": counted, "witnessed": witnessed}
        log.warning("nonce_outvoted", chain=context.chain_scope.info.id, **facts)
    return min(witnessed, counted)
