"""Gas: the platform's own address sends native coin to addresses of ours that must pay a fee."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.allocation import PendingOutflow
from cambist.domain.intents import IntentKind
from cambist.plugin import LendingChain
from cambist.services.accounting.ledger import Purpose, asset_key
from cambist.services.chain_pauses import Pausable
from cambist.services.sending import store
from cambist.services.sending.context import EngineContext
from cambist.services.sending.intents import internal_intent, lock_recipient, submit
from cambist.services.sending.rows import OwnPath
from cambist.services.sending.store import OUTFLOW

from .loans import IS_RETURNING, LOAN_HAS_FAILED, PATIENCE

_IS_GAS_COMING = f"""
EXISTS (SELECT FROM outbound_intents WHERE recipient_address_pk = $1 AND chain = $2 AND scope = $3
    AND kind = '{IntentKind.TOP_UP}' AND state IN ('waiting', 'sending'))
"""
# What is mined and not posted yet: gas that has come, and fees at their highest while they are not known.
_COMING = f"""
    + coalesce((SELECT sum(i.units) FROM outbound_intents i
        JOIN outbound_slots s ON s.intent_pk = i.id AND s.state = 'open'
        JOIN outbound_txs t ON t.slot_pk = s.id AND t.state = 'mined' AND t.role = 'main' AND t.succeeded
        WHERE i.recipient_address_pk = $1 AND i.chain = $2 AND i.scope = $3 AND i.kind = '{IntentKind.TOP_UP}'
            AND i.state = 'sending'), 0)
"""  # noqa: S608  a constant
_FEES = """
    - coalesce((SELECT sum(paid.fee) FROM outbound_slots s
        CROSS JOIN LATERAL (SELECT coalesce(max(t.fee_paid) FILTER (WHERE t.state = 'mined'),
            max(greatest(t.fee_limit - t.fee_covered, 0) * t.fee_price + t.fee_extra)) AS fee
            FROM outbound_txs t WHERE t.slot_pk = s.id) paid
        WHERE s.address_pk = $1 AND s.chain = $2 AND s.scope = $3 AND s.state = 'open'), 0)
"""
# What came just now is left out of what is kept: the node that tells the balance may not know of it yet.
_WALLET_GAS = f"""
WITH books AS (
    SELECT coalesce(-sum(balance) FILTER (WHERE purpose = '{Purpose.FLOAT_WALLET}'), 0) AS gas,
        coalesce(-sum(balance) FILTER (WHERE purpose = '{Purpose.CUSTODY_DEPOSITS}'), 0) AS deposits
    FROM ledger_accounts WHERE merchant_pk = $6 AND mode = $7 AND asset = $8
)
SELECT gas {_COMING} {_FEES} AS units, greatest(0, gas {_FEES}) AS kept, deposits FROM books
"""  # noqa: S608  constants
# The ledger does not tell one deposit address of a merchant from another; each has a short history of its own.
_DEPOSIT_GAS = f"""
SELECT coalesce((SELECT sum(units) FROM outbound_intents WHERE recipient_address_pk = $1 AND chain = $2 AND scope = $3
        AND kind = '{IntentKind.TOP_UP}' AND state = 'done'), 0)
    - coalesce((SELECT sum(t.fee_paid) FROM outbound_slots s JOIN outbound_txs t ON t.slot_pk = s.id
        AND t.state = 'final' WHERE s.address_pk = $1 AND s.chain = $2 AND s.scope = $3 AND s.state <> 'open'), 0)
    {_COMING} {_FEES} AS units, 0 AS kept, 0 AS deposits
"""  # noqa: S608  constants
_STATION_GAS = "SELECT NULL::numeric AS units, 0 AS kept, 0 AS deposits"
# $4 says whether the chain lends, and $5 is since when a loan that has failed keeps another from being made.
_LEFT = f"""
SELECT own.units AS gas, own.kept, own.deposits, known.*, outflow.* FROM ({{gas}}) own
    CROSS JOIN (SELECT
        coalesce((SELECT next_sequence FROM outbound_senders WHERE address_pk = $1 AND chain = $2 AND scope = $3), 0)
            AS next_sequence,
        {_IS_GAS_COMING} AS is_gas_coming,
        $4::bool AND {LOAN_HAS_FAILED} AS has_loan_failed,
        $4::bool AND {IS_RETURNING} AS is_returning,
        EXISTS (SELECT FROM chain_pauses WHERE chain = $2 AND what = '{Pausable.SENDING}') AS is_paused
    ) known LEFT JOIN ({OUTFLOW.format(beside="NULL")}) outflow ON true
"""  # noqa: S608  constants
_STATION_LEFT, _WALLET_LEFT, _DEPOSIT_LEFT = (
    _LEFT.format(gas=gas) for gas in (_STATION_GAS, _WALLET_GAS, _DEPOSIT_GAS)
)
# Of what came since the address last signed anything itself: what it then still lacks is asked for anew each time.
# What outbids an open transaction is signed for the same slot, and has spent what was brought for it.
_BROUGHT = f"""
SELECT brought.*, station.id AS station_pk, {_IS_GAS_COMING} AS is_coming FROM (
    SELECT count(*) AS times, max(finished_at) AS last_at FROM outbound_intents
    WHERE recipient_address_pk = $1 AND chain = $2 AND scope = $3 AND kind = '{IntentKind.TOP_UP}' AND state = 'done'
        AND created_at > greatest((SELECT max(s.created_at) FROM outbound_slots s
            WHERE s.address_pk = $1 AND s.chain = $2 AND s.scope = $3), (SELECT max(t.created_at) FROM outbound_slots s
            JOIN outbound_txs t ON t.slot_pk = s.id
            WHERE s.address_pk = $1 AND s.chain = $2 AND s.scope = $3 AND s.state = 'open'), '-infinity')
) brought LEFT JOIN addresses station ON station.mode = $4 AND station.family = $5 AND station.purpose = 'gas'
"""  # noqa: S608  a constant

BROUGHT_AT_ONCE_MAX = 3
"""Top-ups of an address that sends nothing in between: one is enough, unless fees have risen meanwhile."""
REST_FIRST = timedelta(minutes=1)
REST_MAX = timedelta(hours=6)
REST_GROWTH = 4
REST_STEPS_MAX = 10
"""Further ones are no longer than ``REST_MAX`` either, and a number of days must not overflow."""


class GasLeft(NamedTuple):
    """How much of an address' native coin is the platform's, which alone pays fees; None: all of it.

    Below zero where fees were paid out of a merchant's coin all the same, as when a transaction had to be replaced by
    a dearer one. ``kept`` is how much of it goes to nobody else, as the merchant's own is on addresses to be collected;
    what one fee takes is not worth that.
    """

    units: int | None
    kept: int = 0


class Left(NamedTuple):
    """What the database knows of an address that is about to send.

    ``next_sequence`` is the nonce that it would have by our books, which only grows. ``is_gas_coming``: a top-up of it
    waits or is under way. ``has_loan_failed``: no loan is asked for it for a while. ``is_returning``: what was lent to
    it is asked back. ``is_paused``: an operator has paused sending on the chain.
    """

    outflow: PendingOutflow
    gas: GasLeft
    next_sequence: int
    is_gas_coming: bool
    has_loan_failed: bool
    is_returning: bool
    is_paused: bool


async def what_is_left(conn: AsyncConnection, context: EngineContext, source: OwnPath, now: datetime) -> Left:
    """Return what is on its way out of an address, its gas, and what else decides what it may send."""
    lends = isinstance(context.chain, LendingChain)
    where: tuple[object, ...] = (source.pk, *context.chain_scope.key, lends, now - PATIENCE)
    if source.purpose == "gas":
        statement = _STATION_LEFT
    elif source.purpose == "wallet":
        asset = asset_key(context.chain_scope.info.id, None)
        where, statement = (*where, source.merchant_pk, context.chain_scope.mode, asset), _WALLET_LEFT
    else:
        statement = _DEPOSIT_LEFT
    rows = (await conn.exec_driver_sql(statement, where)).all()
    first, gas = rows[0], GasLeft(None)
    if first.gas is not None:
        kept = int(first.kept)
        fee = kept // context.settings.wallet_gas_transfers
        gas = GasLeft(int(first.gas), kept - fee if first.deposits > fee else 0)
    return Left(
        outflow=store.outflow([row for row in rows if row.slots is not None]),
        gas=gas,
        next_sequence=first.next_sequence,
        is_gas_coming=first.is_gas_coming,
        has_loan_failed=first.has_loan_failed,
        is_returning=first.is_returning,
        is_paused=first.is_paused,
    )


async def ask_for_gas(
    conn: AsyncConnection, context: EngineContext, recipient: OwnPath, units: int, now: datetime
) -> bool:
    """Have native coin sent to an address of ours, unless some is on its way: as much as arrives there, at least.

    False, and an alert for each that came, where what was brought was never enough and no more is brought for a while:
    each time costs the platform a fee, and where what is brought makes the fee higher by as much, it never would be.
    """
    info, key = context.chain_scope.info, (recipient.pk, *context.chain_scope.key)
    if (await conn.exec_driver_sql(f"SELECT {_IS_GAS_COMING}", key)).scalar_one():
        return True  # asked each second until it is there, where all that a wallet ever sent is much to read
    # Another may be asking for some: behind it, its own is seen.
    await lock_recipient(conn, recipient.pk)
    row = (await conn.exec_driver_sql(_BROUGHT, (*key, context.chain_scope.mode, info.family))).one()
    if row.is_coming:
        return True
    if row.times >= BROUGHT_AT_ONCE_MAX:
        rest = min(REST_MAX, REST_FIRST * REST_GROWTH ** min(row.times - BROUGHT_AT_ONCE_MAX, REST_STEPS_MAX))
        if now < row.last_at + rest:
            if now < row.last_at + REST_FIRST:
                facts = {"times": row.times, "until": str(row.last_at + rest)}
                context.alert("gas_never_enough", address=recipient.address, lacking=units, **facts)
            return False
    arriving = max(units, info.native.least_units)
    if row.station_pk is not None and arriving > 0:
        asked = internal_intent(
            IntentKind.TOP_UP,
            context.ids.new("gas"),
            context.chain_scope,
            merchant_pk=recipient.merchant_pk,
            source_pk=row.station_pk,
            recipient=recipient,
            units=arriving,
        )
        await submit(conn, [asked], now)
    return True
