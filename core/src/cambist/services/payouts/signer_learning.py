"""Tells the signer early where each merchant's money will go, so that the delay runs while nobody waits for it."""

from __future__ import annotations

from contextlib import suppress

from sqlalchemy import func, or_, select, union
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import AccountKey, ApprovedAddress, Payout
from cambist.db.structs import literally
from cambist.domain.destinations import MARK
from cambist.domain.intents import DELAYED, AskedBy
from cambist.domain.payouts import Status
from cambist.signer.protocol import Signer

ADDRESSES_MAX = 500
KNOWN_MAX = 100_000

MODE = "live"
"""The signer has no rules for simulated money, so nothing of it is told."""

_APPROVED = select(ApprovedAddress.merchant_pk, ApprovedAddress.chain, ApprovedAddress.address).where(
    ApprovedAddress.mode == MODE
)
_DESTINATION = func.concat_ws(MARK, Payout.to_address, Payout.to_tag)
_WAITING = select(Payout.merchant_pk, Payout.chain, _DESTINATION).where(
    or_(Payout.kind.in_(sorted(DELAYED)), Payout.asked_by == AskedBy.SESSION),
    Payout.mode == MODE,
    literally(Payout.status, Status.REQUESTED, Status.PROCESSING),
)
_COMING = union(
    _APPROVED.order_by(ApprovedAddress.id.desc()).limit(ADDRESSES_MAX),
    _WAITING.order_by(Payout.id.desc()).limit(ADDRESSES_MAX),
).subquery()
# A merchant's account index is the same for every coin type: one of them says it.
_COIN_TYPE = select(func.min(AccountKey.coin_type)).where(AccountKey.mode == MODE).scalar_subquery()
_BY_ACCOUNT = select(_COMING.c.chain, AccountKey.account_index, _COMING.c.address).where(
    AccountKey.mode == MODE, AccountKey.coin_type == _COIN_TYPE, AccountKey.merchant_pk == _COMING.c.merchant_pk
)


class Learner:
    """Remembers what this process has told already; the signer remembers for good."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer
        self._known: set[tuple[str, int, str]] = set()

    async def learn(self, conn: AsyncConnection) -> int:
        """Tell of merchants' approved addresses, and of where their withdrawals and payouts of sessions go.

        Return how many were new. Raises SignerUnavailableError; what was not told is told the next time.
        """
        rows = await conn.execute(_BY_ACCOUNT)
        new = [one for row in rows if (one := (row.chain, row.account_index, row.address)) not in self._known]
        if len(self._known) > KNOWN_MAX:
            self._known.clear()
        for chain, account, to_address in new:
            with suppress(ValueError):  # a chain that was switched off since; asked again with the next process
                await self._signer.learn(MODE, chain, account, to_address)
            self._known.add((chain, account, to_address))
        return len(new)
