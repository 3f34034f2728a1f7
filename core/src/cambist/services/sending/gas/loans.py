"""Loans: the use of the platform's stake goes to whoever sends next, and comes back when nothing is under way."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.intents import IntentKind
from cambist.plugin import LendingChain
from cambist.services.addresses.wallets import OwnAddress
from cambist.services.sending.context import EngineContext
from cambist.services.sending.intents import internal_intent, is_coming, submit
from cambist.services.sending.rows import IntentRow, OwnPath
from cambist.services.sending.store import IS_LEAVING

RETURNED_AT_ONCE_MAX = 200
PATIENCE = timedelta(minutes=10)
"""For how long nothing is lent to an address, or asked back from it, after that has failed."""
REST_MAX = timedelta(hours=1)
REST_SHARE = 2

TOO_LATE = "It could not be lent in time."
NEEDED_AGAIN = "It is needed again."

_LOANS = f"('{IntentKind.LOAN}', '{IntentKind.LOAN_RETURN}')"
LOAN_HAS_FAILED = f"""
EXISTS (SELECT FROM outbound_intents WHERE recipient_address_pk = $1 AND chain = $2 AND scope = $3
    AND kind = '{IntentKind.LOAN}' AND state = 'failed' AND finished_at > $5)
"""
"""Whether a loan to an address has failed a short while ago: it pays instead. ``$5`` is since when."""
IS_RETURNING = f"""
EXISTS (SELECT FROM outbound_intents WHERE recipient_address_pk = $1 AND chain = $2 AND scope = $3
    AND kind = '{IntentKind.LOAN_RETURN}' AND state IN ('waiting', 'sending'))
"""
"""Whether a loan to an address is asked back: ``keep_lent()`` is for these alone."""
_GIVE_UP = """
UPDATE outbound_intents SET state = 'failed', reason = $4, finished_at = $5, updated_at = $5
WHERE recipient_address_pk = $3 AND chain = $1 AND scope = $2 AND kind = '{}' AND state = 'waiting' AND created_at <= $6
"""
_GIVE_UP_LOAN, _GIVE_UP_RETURN = (_GIVE_UP.format(kind) for kind in (IntentKind.LOAN, IntentKind.LOAN_RETURN))
_LEAVING = f"""
SELECT EXISTS (SELECT FROM outbound_intents r WHERE r.recipient_address_pk = $3 AND r.chain = $1 AND r.scope = $2
    AND r.kind = '{IntentKind.LOAN_RETURN}' AND r.state = 'sending' AND {IS_LEAVING.format(since="$4")})
"""  # noqa: S608  a constant
# Whoever is about to send needs what was lent for it. Who waits for a person, or for money, may wait for days.
# Where not all can be had back (the database is out of a backup, or a person took some), the last loan can.
LENT = f"""
SELECT lent.pk, a.address, a.merchant_pk,
    CASE WHEN lent.failed > lent.done THEN least(lent.units, lent.last) ELSE lent.units END AS units
FROM (
    SELECT recipient_address_pk AS pk,
        sum(CASE kind WHEN '{IntentKind.LOAN}' THEN units ELSE -units END) FILTER (WHERE state = 'done') AS units,
        max(id) FILTER (WHERE state = 'done') AS done,
        max(id) FILTER (WHERE state = 'failed' AND kind = '{IntentKind.LOAN_RETURN}') AS failed,
        (array_agg(units ORDER BY id DESC) FILTER (WHERE state = 'done' AND kind = '{IntentKind.LOAN}'))[1] AS last
    FROM outbound_intents WHERE chain = $1 AND scope = $2 AND kind IN {_LOANS}
        AND state IN ('done', 'failed')
    GROUP BY recipient_address_pk
) lent JOIN addresses a ON a.id = lent.pk
WHERE lent.units > 0 AND NOT EXISTS (
    SELECT FROM outbound_intents w WHERE w.source_address_pk = lent.pk AND w.chain = $1 AND w.scope = $2
        AND (w.state = 'sending' OR w.state = 'waiting' AND coalesce(w.reason, 'gas') IN ('gas', 'turn'))
) AND NOT EXISTS (
    SELECT FROM outbound_intents l WHERE l.recipient_address_pk = lent.pk AND l.chain = $1 AND l.scope = $2
        AND l.kind IN {_LOANS} AND (l.state IN ('waiting', 'sending')
        OR l.kind = '{IntentKind.LOAN_RETURN}' AND l.state = 'failed' AND l.finished_at > $3)
)
"""  # noqa: S608  a constant
"""What is lent to addresses that send nothing any more, and that nobody asks back."""
_ASKED_BACK = f"{LENT} ORDER BY lent.pk LIMIT $4"


async def keep_lent(context: EngineContext, borrower: OwnPath) -> bool:
    """Keep what an address that is about to send was lent; return False where it is too late for that.

    What it sends must not count on a loan that is on its way back, and might be gone first. One that is asked back
    after that is seen where its nonces are reserved.
    """
    now = context.clock.now()
    # Each statement is its own: whether one is leaving is asked behind whoever was signing it.
    async with context.db.autocommit() as conn:
        where = (*context.chain_scope.key, borrower.pk)
        await conn.exec_driver_sql(_GIVE_UP_RETURN, (*where, NEEDED_AGAIN, now, now))
        return not (await conn.exec_driver_sql(_LEAVING, (*where, now - PATIENCE))).scalar_one()


def retry_after(context: EngineContext, intent: IntentRow, now: datetime) -> datetime:
    """Return when the signer, which refuses a transfer now, is asked again at the earliest.

    Its loan is taken back, and it needs another to ask again: each costs. So the longer it has waited for a person, the
    longer it waits from one to the next.
    """
    if not isinstance(context.chain, LendingChain) or intent.source.purpose == "gas":
        return now
    return now + min(REST_MAX, (now - intent.created_at) / REST_SHARE)


async def ask_for_loan(  # noqa: PLR0913, PLR0917  from whom, for whom and how much
    conn: AsyncConnection, context: EngineContext, station: OwnAddress, borrower: OwnPath, stake: int, now: datetime
) -> None:
    """Have the use of so much stake lent to an address of ours, unless a loan is on its way.

    A loan that has waited for too long is given up, so that the transfer can do without it.
    """
    late = (*context.chain_scope.key, borrower.pk, TOO_LATE, now, now - PATIENCE)
    await conn.exec_driver_sql(_GIVE_UP_LOAN, late)
    await ask_station(conn, context, station, IntentKind.LOAN, borrower, borrower.merchant_pk, stake, now)


async def ask_back(context: EngineContext, station: OwnAddress) -> None:
    """Ask back what is lent to addresses that send nothing any more."""
    if not isinstance(context.chain, LendingChain):
        return
    now = context.clock.now()
    async with context.db.transaction() as conn:
        lent = (*context.chain_scope.key, now - PATIENCE, RETURNED_AT_ONCE_MAX)
        for row in (await conn.exec_driver_sql(_ASKED_BACK, lent)).all():
            borrower, units = OwnAddress(row.pk, row.address), int(row.units)
            await ask_station(conn, context, station, IntentKind.LOAN_RETURN, borrower, row.merchant_pk, units, now)


async def ask_station(  # noqa: PLR0913, PLR0917  what, for whom and how much
    conn: AsyncConnection,
    context: EngineContext,
    station: OwnAddress,
    kind: IntentKind,
    borrower: OwnAddress,
    merchant_pk: int | None,
    units: int,
    now: datetime,
) -> None:
    """Have the gas station do this for an address of ours, unless the same is under way."""
    if units <= 0 or await is_coming(conn, context.chain_scope, borrower.pk, kind):
        return
    asked = internal_intent(
        kind,
        context.ids.new("loan"),
        context.chain_scope,
        merchant_pk=merchant_pk,
        source_pk=station.pk,
        recipient=borrower,
        units=units,
    )
    await submit(conn, [asked], now)
