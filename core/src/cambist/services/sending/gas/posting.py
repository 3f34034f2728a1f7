"""What sending costs the platform, in the ledger: fees, and gas that is sent to addresses of merchants."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Address
from cambist.db.structs import one_of_given
from cambist.plugin import ChainInfo
from cambist.services.accounting.ledger import PLATFORM, Account, Movement, Posting, Purpose, asset_key
from cambist.services.sending.handler import IntentUpdate, MovingHandler, post_reversible
from cambist.services.sending.rows import OwnPath, TxRow

_FLOAT = {
    "payment": Purpose.FLOAT_DEPOSITS,
    "account": Purpose.FLOAT_DEPOSITS,
    "wallet": Purpose.FLOAT_WALLET,
    "gas": Purpose.CUSTODY_GAS,
}


def float_of(address: OwnPath, asset: str) -> Account:
    """Return the account of the platform's own money on an address."""
    return Account(address.merchant_pk or PLATFORM, asset, _FLOAT[address.purpose])


async def post_fees(
    conn: AsyncConnection, mode: str, info: ChainInfo, txs: Sequence[TxRow], *, back: bool = False
) -> None:
    """Post what transactions cost, whatever became of them; ``back`` takes it back after a reorg."""
    asset = asset_key(info.id, None)
    spent = Account(PLATFORM, asset, Purpose.GAS_SPENT)
    fees = [
        Posting(
            mode=mode,
            kind="fee",
            reference=f"{info.id}:{tx.intent.update.scope}:{tx.tx_id}:{tx.incarnation}",
            movements=[Movement(spent, float_of(tx.intent.source, asset), tx.fee_paid)],
        )
        for tx in txs
        if tx.fee_paid
    ]
    await post_reversible(conn, mode, fees, back=back)


_RECIPIENTS = select(Address.id, Address.purpose, Address.merchant_pk).where(one_of_given(Address.id, "pks"))


class TopUpHandler(MovingHandler):
    """Gas that goes from the platform's own address to one of a merchant's: it stays the platform's."""

    async def moved(
        self, conn: AsyncConnection, updates: Sequence[IntentUpdate]
    ) -> Sequence[tuple[IntentUpdate, Movement]]:
        rows = await conn.execute(_RECIPIENTS, {"pks": [one.recipient_pk for one in updates]})
        owners: dict[int | None, tuple[int, Purpose]] = {
            row.id: (row.merchant_pk or PLATFORM, _FLOAT[row.purpose]) for row in rows
        }
        moved = []
        for one in updates:
            # No use case of ours makes one to an address that is not ours; whatever did, the books follow the chain.
            merchant_pk, purpose = owners.get(one.recipient_pk, (PLATFORM, Purpose.SUSPENSE))
            there, here = Account(merchant_pk, one.asset, purpose), Account(PLATFORM, one.asset, Purpose.CUSTODY_GAS)
            moved.append((one, Movement(there, here, one.units)))
        return moved
