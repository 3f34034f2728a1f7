"""What sending means in the ledger beyond the money that was sent: fees, gas, and collected deposits."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import ChainInfo
from cambist.services.ledger import PLATFORM, Account, Movement, Posting, Purpose, asset_key, post

from .outcomes import Moment, QuietOutcomes, Sent
from .rows import OwnPath, TxRow

_FLOAT = {"payment": Purpose.FLOAT_DEPOSITS, "wallet": Purpose.FLOAT_WALLET, "gas": Purpose.CUSTODY_GAS}


def float_of(address: OwnPath, asset: str) -> Account:
    """Return the account of the platform's own money on an address."""
    return Account(address.merchant_row or PLATFORM, asset, _FLOAT[address.purpose])


async def post_fees(
    conn: AsyncConnection, mode: str, info: ChainInfo, txs: Sequence[TxRow], *, back: bool = False
) -> None:
    """Post what transactions cost, whatever became of them; ``back`` takes it back after a reorg."""
    asset = asset_key(info.id, None)
    spent = Account(PLATFORM, asset, Purpose.GAS_SPENT)
    postings = []
    for tx in txs:
        if tx.fee_paid:
            payer = float_of(tx.intent.source, asset)
            debit, credit = (payer, spent) if back else (spent, payer)
            postings.append(
                Posting(
                    mode=mode,
                    kind="fee_reversal" if back else "fee",
                    reference=f"{info.id}:{tx.intent.sent.scope}:{tx.tx_id}:{tx.incarnation}",
                    movements=[Movement(debit, credit, tx.fee_paid)],
                )
            )
    await post(conn, mode, postings)


class TopUpOutcomes(QuietOutcomes):
    """Gas that goes from the platform's own address to one of a merchant's: it stays the platform's."""

    async def on_final(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:  # noqa: ARG002
        """Move the float to where it lies now."""
        await _post_top_ups(conn, sent, back=False)

    async def on_undone(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:  # noqa: ARG002
        """Move it back."""
        await _post_top_ups(conn, sent, back=True)


async def _post_top_ups(conn: AsyncConnection, sent: Sequence[Sent], *, back: bool) -> None:
    rows = await conn.exec_driver_sql(
        "SELECT id, purpose, merchant_id FROM addresses WHERE id = ANY($1::bigint[])",
        ([one.recipient_row for one in sent],),
    )
    owners: dict[int | None, tuple[int, Purpose]] = {
        row.id: (row.merchant_id or PLATFORM, _FLOAT[row.purpose]) for row in rows
    }
    postings = []
    for one in sent:
        # No use case of ours makes one to an address that is not ours; whatever did, the books follow the chain.
        merchant_row, purpose = owners.get(one.recipient_row, (PLATFORM, Purpose.SUSPENSE))
        there, here = Account(merchant_row, one.asset, purpose), Account(PLATFORM, one.asset, Purpose.CUSTODY_GAS)
        debit, credit = (here, there) if back else (there, here)
        postings.append(
            Posting(
                mode=one.mode,
                kind="top_up_reversal" if back else "top_up",
                reference=f"{one.reference}:{one.incarnation}",
                movements=[Movement(debit, credit, one.units)],
            )
        )
    if sent:
        await post(conn, sent[0].mode, postings)
