"""Deposits on their way from one-time addresses to the merchant's main wallet."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services import usage
from cambist.services.ledger import Account, Movement, Posting, Purpose, post
from cambist.services.platform import load

from .outcomes import Moment, QuietOutcomes, Sent


class CollectionOutcomes(QuietOutcomes):
    """What a collection does when something happens to it. Whose money it is does not change, only where it lies."""

    async def on_final(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Post that it lies in the main wallet now, and bill it."""
        await _post(conn, sent, back=False)
        settings = await load(conn)
        metered = [
            usage.Metered(
                merchant_row=one.merchant_row,
                mode=one.mode,
                operation="collection",
                chain=one.chain,
                reference=one.reference,
            )
            for one in sent
            if one.merchant_row is not None
        ]
        await usage.meter(conn, metered, settings, moment.now)

    async def on_failed(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:  # noqa: ARG002
        """Let its deposits be collected another time."""
        await conn.exec_driver_sql(
            "UPDATE deposits SET collection_id = NULL WHERE collection_id = ANY($1::bigint[])",
            ([one.intent_row for one in sent],),
        )

    async def on_undone(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:  # noqa: ARG002
        """Post that it lies where it came from."""
        await _post(conn, sent, back=True)


async def _post(conn: AsyncConnection, sent: Sequence[Sent], *, back: bool) -> None:
    postings = []
    for one in sent:
        wallet, deposits = (
            Account(one.merchant_row or 0, one.asset, purpose)
            for purpose in (Purpose.CUSTODY_WALLET, Purpose.CUSTODY_DEPOSITS)
        )
        debit, credit = (deposits, wallet) if back else (wallet, deposits)
        postings.append(
            Posting(
                mode=one.mode,
                kind="collection_reversal" if back else "collection",
                reference=f"{one.reference}:{one.incarnation}",
                movements=[Movement(debit, credit, one.units)],
            )
        )
    if sent:
        await post(conn, sent[0].mode, postings)
