"""Tells the signer early which addresses money will go to, so that their delay runs while nobody waits for it."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.signer.protocol import Signer

TARGETS_MAX = 500
KNOWN_MAX = 100_000

_COMING = """
(SELECT mode, chain, address FROM approved_addresses ORDER BY id DESC LIMIT $1)
UNION
(SELECT mode, chain, to_address FROM payouts WHERE kind IN ('withdrawal', 'auto_payout') AND mode = 'live'
    AND status IN ('requested', 'processing') ORDER BY id DESC LIMIT $1)
"""


class Learner:
    """Remembers what this process has told already; the signer remembers for good."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer
        self._known: set[tuple[str, str, str]] = set()

    async def learn(self, conn: AsyncConnection) -> int:
        """Tell of approved addresses and waiting withdrawals; return how many were news here.

        Raises SignerUnavailableError.
        """
        rows = await conn.exec_driver_sql(_COMING, (TARGETS_MAX,))
        news = [one for row in rows if (one := (row.mode, row.chain, row.address)) not in self._known]
        if len(self._known) > KNOWN_MAX:
            self._known.clear()
        for mode, chain, to_address in news:
            try:
                await self._signer.learn(mode, chain, to_address)
            except ValueError:
                continue  # a chain that was switched off since; asked again with the next process
            finally:
                self._known.add((mode, chain, to_address))
        return len(news)
