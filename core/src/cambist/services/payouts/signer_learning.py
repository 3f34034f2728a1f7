"""Tells the signer early which addresses money will go to, so that their delay runs while nobody waits for it."""

from __future__ import annotations

from sqlalchemy import or_, select, union
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import ApprovedAddress, Payout
from cambist.db.structs import literally
from cambist.domain.intents import DELAYED, AskedBy
from cambist.domain.payouts import Status
from cambist.signer.protocol import Signer

ADDRESSES_MAX = 500
KNOWN_MAX = 100_000

_APPROVED = select(ApprovedAddress.mode, ApprovedAddress.chain, ApprovedAddress.address)
_WAITING = select(Payout.mode, Payout.chain, Payout.to_address).where(
    or_(Payout.kind.in_(sorted(DELAYED)), Payout.asked_by == AskedBy.SESSION),
    Payout.mode == "live",
    literally(Payout.status, Status.REQUESTED, Status.PROCESSING),
)
_COMING = union(
    _APPROVED.order_by(ApprovedAddress.id.desc()).limit(ADDRESSES_MAX),
    _WAITING.order_by(Payout.id.desc()).limit(ADDRESSES_MAX),
)


class Learner:
    """Remembers what this process has told already; the signer remembers for good."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer
        self._known: set[tuple[str, str, str]] = set()

    async def learn(self, conn: AsyncConnection) -> int:
        """Tell of approved addresses, and of where withdrawals and payouts of sessions go; return how many were new.

        Raises SignerUnavailableError.
        """
        rows = await conn.execute(_COMING)
        new = [one for row in rows if (one := (row.mode, row.chain, row.address)) not in self._known]
        if len(self._known) > KNOWN_MAX:
            self._known.clear()
        for mode, chain, to_address in new:
            try:
                await self._signer.learn(mode, chain, to_address)
            except ValueError:
                continue  # a chain that was switched off since; asked again with the next process
            finally:
                self._known.add((mode, chain, to_address))
        return len(new)
