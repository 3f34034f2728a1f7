"""Gas: the platform's own address sends native coin to addresses of ours that must pay a fee."""

from __future__ import annotations

from datetime import datetime

from msgspec import structs
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import Fee, Units
from cambist.services.ledger import Purpose, asset_key
from cambist.services.wallet_addresses import gas_station

from .desk import Desk
from .intents import NewIntent, is_coming, submit
from .rows import OwnPath

TOP_UP_PRIORITY = 0

TOP_UP = "top_up"

# What is mined and not posted yet: gas that has come, and fees at their highest while they are not known.
_UNPOSTED = """
    + coalesce((SELECT sum(i.units) FROM outbound_intents i
        JOIN outbound_slots s ON s.intent_id = i.id AND s.state = 'open'
        JOIN outbound_txs t ON t.slot_id = s.id AND t.state = 'mined' AND t.role = 'main' AND t.succeeded
        WHERE i.recipient_address_id = $1 AND i.chain = $2 AND i.scope = $3 AND i.kind = 'top_up'
            AND i.state = 'sending'), 0)
    - coalesce((SELECT sum(paid.fee) FROM outbound_slots s
        CROSS JOIN LATERAL (SELECT coalesce(max(t.fee_paid) FILTER (WHERE t.state = 'mined'),
            max(greatest(t.fee_limit - t.fee_covered, 0) * t.fee_price + t.fee_extra)) AS fee
            FROM outbound_txs t WHERE t.slot_id = s.id) paid
        WHERE s.address_id = $1 AND s.chain = $2 AND s.scope = $3 AND s.state = 'open'), 0)
"""
_WALLET_GAS = f"""
SELECT coalesce((SELECT -balance FROM ledger_accounts WHERE merchant_id = $4 AND mode = $5 AND asset = $6
    AND purpose = '{Purpose.FLOAT_WALLET}'), 0) {_UNPOSTED}
"""  # noqa: S608  constants
# The ledger does not tell one deposit address of a merchant from another; each has a short history of its own.
_DEPOSIT_GAS = f"""
SELECT coalesce((SELECT sum(units) FROM outbound_intents WHERE recipient_address_id = $1 AND chain = $2 AND scope = $3
        AND kind = 'top_up' AND state = 'done'), 0)
    - coalesce((SELECT sum(t.fee_paid) FROM outbound_slots s JOIN outbound_txs t ON t.slot_id = s.id
        AND t.state = 'final' WHERE s.address_id = $1 AND s.chain = $2 AND s.scope = $3 AND s.state <> 'open'), 0)
    {_UNPOSTED}
"""  # noqa: S608  constants


async def gas_left(conn: AsyncConnection, desk: Desk, source: OwnPath) -> int | None:
    """Return how much of an address' native coin is the platform's, which alone pays fees; None: all of it.

    Below zero where fees were paid out of a merchant's coin all the same, as when a transaction had to be replaced by
    a dearer one.
    """
    where = (source.row, *desk.site.key)
    if source.purpose == "gas":
        return None
    if source.purpose == "wallet":
        asset = asset_key(desk.site.info.id, None)
        found = await conn.exec_driver_sql(_WALLET_GAS, (*where, source.merchant_row, desk.site.mode, asset))
    else:
        found = await conn.exec_driver_sql(_DEPOSIT_GAS, where)
    return int(found.scalar_one())


def lean_price(fee: Fee) -> int:
    """Return a price with a quarter of the headroom that the plan offers.

    What a one-time address has left after its collection lies there for good. So it gets no more than lets prices
    rise a little until its transaction is mined; where they rise more, it gets the rest when it needs it.
    """
    least = fee.price if fee.price_now is None else fee.price_now
    return least + (fee.price - least) // 4


def fee_within(fee: Fee, units: int) -> Fee:
    """Return the fee with the highest price that so much pays, if the next block takes it at that price."""
    paid = fee.limit - fee.covered
    price = fee.price if paid <= 0 else min(fee.price, (units - fee.extra) // paid)
    return fee if fee.price_now is None or price < fee.price_now else structs.replace(fee, price=price)


async def ask_for_gas(conn: AsyncConnection, desk: Desk, recipient: OwnPath, units: int, now: datetime) -> bool:
    """Have native coin sent to an address of ours, unless some is on its way; return whether it is asked for now."""
    coming = await is_coming(conn, desk.site.info.id, desk.site.scope, recipient.row, TOP_UP)
    station = await gas_station(conn, desk.site.info.family, desk.site.mode)
    if coming or station is None or units <= 0:
        return False
    intent = NewIntent(
        reference=f"{TOP_UP}:{desk.ids.new('gas')}",
        kind=TOP_UP,
        mode=desk.site.mode,
        chain=desk.site.info.id,
        scope=desk.site.scope,
        merchant_row=recipient.merchant_row,
        source_row=station.row,
        recipient_row=recipient.row,
        target=recipient.address,
        token=desk.site.info.native,
        units=Units(units),
        priority=TOP_UP_PRIORITY,
    )
    await submit(conn, [intent], now)
    return True
