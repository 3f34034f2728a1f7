"""What a merchant is told of single deposits, where the project has extended events on: a part came, money is held."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Payment
from cambist.db.structs import AnyRow, one_of
from cambist.domain.money import format_units
from cambist.domain.payments import HELD_EVENT, OPEN, PARTIAL_EVENT, HeldReason, Status, held_reason
from cambist.plugin import Units
from cambist.ports import Ids
from cambist.services.receiving.accounts import events as account_events
from cambist.services.receiving.accounts.events import Told
from cambist.services.receiving.payments.events import PAYMENTS, deposit_event
from cambist.services.receiving.payments.views import expected_amount
from cambist.services.webhooks.outbox import NewEvent

from .rows import DepositRow


class Case(NamedTuple):
    """A payment that was judged: its row from before, and what it is now. ``deposits`` count for it, in chain order."""

    row: AnyRow
    status: Status
    received: Units
    deposits: Sequence[DepositRow]


def partial_events(cases: Sequence[Case], now: datetime) -> Iterator[NewEvent]:
    """Tell of payments that wait for more, though more came than before: by the deposit that came last."""
    for row, status, received, deposits in cases:
        if status is not Status.PENDING or received <= int(row.received_units) or not deposits:
            continue
        last = deposits[-1]
        more = {
            "chain": last.chain,
            "token": last.token,
            "amount": format_units(last.units, last.decimals),
            "expectedAmount": expected_amount(row.pricing_mode, row.amount, row.expected_units, row.decimals),
            "receivedAmount": format_units(received, row.decimals),
        }
        yield deposit_event(
            row, event=PARTIAL_EVENT, deposit_id=last.deposit_id, status=status, tx_id=last.tx_id, at=now, more=more
        )


def held_events(
    cases: Sequence[Case], shares: Mapping[int, int], confirmed: Collection[int], now: datetime
) -> Iterator[NewEvent]:
    """Tell of what is held from now on: deposits that were just confirmed, or whose payment has just ended.

    ``shares`` are units that this judgement made available, by deposit; ``confirmed`` are deposits that it confirmed.
    """
    for row, status, _, deposits in cases:
        if status in OPEN:
            continue
        # What came to an expired payment in time may still be its order's: it is underpaid once all is confirmed.
        deadline = row.expires_at + timedelta(seconds=row.grace_s) if status is Status.EXPIRED else None
        for deposit in deposits:
            held = deposit.held_units - shares.get(deposit.id, 0)
            is_new = deposit.id in confirmed or Status(row.status) in OPEN
            if held > 0 and is_new and (deadline is None or deposit.mined_at > deadline):
                yield _held(row, deposit, Units(held), held_reason(status), status, now)


async def mismatch_events(conn: AsyncConnection, confirmed: Sequence[DepositRow], now: datetime) -> Sequence[NewEvent]:
    """Tell of deposits to payments' addresses that are not what those ask for."""
    wanted = sorted({deposit.payment_pk for deposit in confirmed if deposit.payment_pk is not None})
    if not wanted:
        return []
    payments = {row.id: row for row in await conn.execute(PAYMENTS.where(one_of(Payment.id, wanted)))}
    events = []
    for deposit in confirmed:
        row = payments.get(deposit.payment_pk)
        if row is not None and row.extended_events:
            reason = HeldReason.WRONG_TOKEN if row.chain == deposit.chain else HeldReason.WRONG_CHAIN
            events.append(_held(row, deposit, deposit.units, reason, Status(row.status), now))
    return events


async def tell_accounts(conn: AsyncConnection, confirmed: Sequence[DepositRow], ids: Ids, now: datetime) -> Told:
    """Tell of deposits to accounts' addresses that were just confirmed: credited, or held."""
    credited = [deposit.id for deposit in confirmed if deposit.counts_for_account]
    held = [deposit.id for deposit in confirmed if deposit.account_pk is not None and not deposit.counts_for_account]
    told = [
        await account_events.tell(conn, credited, account_events.CONFIRMED, ids, now),
        await account_events.tell(conn, held, account_events.HELD, ids, now),
    ]
    return Told(
        events=sum(one.events for one in told), accounts=sorted({account for one in told for account in one.accounts})
    )


def _held(  # noqa: PLR0913, PLR0917  what is held of whose, and why
    row: AnyRow, deposit: DepositRow, held: Units, reason: HeldReason, status: Status, now: datetime
) -> NewEvent:
    more = {
        "chain": deposit.chain,
        "token": deposit.token,
        "amount": format_units(deposit.units, deposit.decimals),
        "heldAmount": format_units(held, deposit.decimals),
        "reason": str(reason),
    }
    return deposit_event(
        row, event=HELD_EVENT, deposit_id=deposit.deposit_id, status=status, tx_id=deposit.tx_id, at=now, more=more
    )
