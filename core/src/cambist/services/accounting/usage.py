"""Usage credits (CPT): recorded with what is done, posted to the ledger later, many at a time.

::

    balance = the ledger's account, less what is recorded and not posted yet

Doing something writes a record of its own and waits for nobody; the roll-up takes records, marks them and posts their
sum in one transaction. What is given back is a record that counts the other way. Credits come into being as the
initial allowance and as grants of the operator. The gateway takes money in whatever the balance is.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from msgspec import Struct
from sqlalchemy import case, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import LedgerAccount, LedgerMovement, LedgerTransaction, UsageRecord
from cambist.db.named import Statement
from cambist.db.structs import columns_of, to_struct, transposed
from cambist.domain.usage import Operation
from cambist.plugin import Units
from cambist.services import platform
from cambist.services.errors import ConflictError, ForbiddenError, InvalidError, PaymentRequiredError
from cambist.services.listing import ALWAYS, Listed, ListOf, Part, Period, read_list
from cambist.services.platform import PlatformSettings

from . import ledger
from .ledger import CPT_ASSET, PLATFORM, Account, Movement, Posting, Purpose
from .usage_projects import PROJECT_ID

MODES = ("live", "sandbox")
ROLL_UP_ROWS_MAX = 5_000
ALLOWANCES_MAX = 500

ALLOWANCE = "cpt_allowance"
GRANT = "cpt_grant"
USAGE = "usage"


class Metered(Struct, frozen=True):
    """Something that was done for a merchant. ``(operation, reference)`` is recorded once, ever."""

    merchant_pk: int
    mode: str
    operation: str
    chain: str | None
    reference: str


async def meter(conn: AsyncConnection, done: Sequence[Metered], settings: PlatformSettings, now: datetime) -> None:
    """Record what it costs, in the transaction that does it. What costs nothing leaves no record."""
    await meter_sums(conn, [(one, 1) for one in done], settings, now)


async def meter_sums(
    conn: AsyncConnection, done: Sequence[tuple[Metered, int]], settings: PlatformSettings, now: datetime
) -> None:
    """Record what costs as many times as much as was done at once: one record of the sum, under one reference."""
    weights = [count * settings.cpt.weights.of(one.operation, one.chain) for one, count in done]
    billed = [
        (one.merchant_pk, one.mode, str(one.operation), one.chain, one.reference, weight)
        for (one, _), weight in zip(done, weights, strict=True)
        if weight > 0
    ]
    if not billed:
        return
    await conn.exec_driver_sql(
        "INSERT INTO usage_records (merchant_pk, mode, operation, chain, reference, weight, created_at)"
        " SELECT *, $7 FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[])"
        " ON CONFLICT (operation, reference) DO NOTHING",
        (*transposed(billed), now),
    )


async def give_back(conn: AsyncConnection, operation: str, references: Sequence[str], now: datetime) -> None:
    """Return the credits of what came to nothing, once. What was never recorded gives nothing back."""
    await conn.exec_driver_sql(
        "INSERT INTO usage_records (merchant_pk, mode, chain, weight, operation, reference, created_at)"
        " SELECT merchant_pk, mode, chain, weight, 'return', operation || ':' || reference, $3 FROM usage_records"
        " WHERE operation = $1 AND reference = ANY($2::text[]) ON CONFLICT DO NOTHING",
        (operation, list(references), now),
    )


# One statement sees one moment: a record is in the account, or it is not posted, never both and never neither.
CREDITS = """(coalesce((
    SELECT balance FROM ledger_accounts
    WHERE mode = :mode AND merchant_pk = :merchant_pk AND asset = 'cpt' AND purpose = 'cpt'
), 0) - coalesce((
    SELECT sum(CASE operation WHEN 'return' THEN -weight ELSE weight END) FROM usage_records
    WHERE merchant_pk = :merchant_pk AND mode = :mode AND NOT posted
), 0))"""
"""How many credits a merchant has left, as part of a statement that asks for more."""
_BALANCE = Statement(f"SELECT {CREDITS}")


async def balance(conn: AsyncConnection, merchant_pk: int, mode: str) -> int:
    """Return how many credits a merchant has left; below zero, how many are owed."""
    return int((await _BALANCE.run(conn, {"merchant_pk": merchant_pk, "mode": mode})).scalar_one())


async def require_credit(conn: AsyncConnection, merchant_pk: int, mode: str, settings: PlatformSettings) -> None:
    """Refuse a merchant whose credits are used up, as far below zero as the operator allows. Raises ForbiddenError."""
    refuse_without_credit(await balance(conn, merchant_pk, mode), settings, ForbiddenError)


def refuse_without_credit(
    left: int, settings: PlatformSettings, refusal: type[ForbiddenError | PaymentRequiredError]
) -> None:
    """Refuse a merchant who has so many credits left, if that is too few. Raises the refusal."""
    if left < settings.cpt.floor:
        raise refusal(
            "INSUFFICIENT_CPT", f"Usage credits are used up: {left} CPT, and {settings.cpt.floor} is the limit."
        )


def issue(merchant_pk: int, units: int) -> Movement:
    """Move credits from the operator to a merchant, or back where there are less than none."""
    issued = Account(PLATFORM, CPT_ASSET, Purpose.CPT_ISSUED)
    account = Account(merchant_pk, CPT_ASSET, Purpose.CPT)
    return Movement(issued, account, Units(units)) if units > 0 else Movement(account, issued, Units(-units))


async def grant(conn: AsyncConnection, merchant_pk: int, mode: str, units: int, reference: str) -> bool:
    """Give a merchant credits, or take some where ``units`` are below zero, once for all time under this reference.

    Returns whether it was now. Raises InvalidError for 0, and ConflictError where the same
    reference gave another amount before.
    """
    if units == 0:
        raise InvalidError.field("amount", "must not be 0")
    full = f"{merchant_pk}:{mode}:{reference}"
    posting = Posting(mode=mode, kind=GRANT, reference=full, movements=[issue(merchant_pk, units)])
    if await ledger.post(conn, mode, [posting]):
        return True
    before = await conn.scalar(
        select(case((LedgerAccount.purpose == Purpose.CPT, LedgerMovement.units), else_=-LedgerMovement.units))
        .join(LedgerAccount, LedgerAccount.id == LedgerMovement.credit_account_pk)
        .join(LedgerTransaction, LedgerTransaction.id == LedgerMovement.transaction_pk)
        .where(LedgerTransaction.kind == GRANT, LedgerTransaction.reference == full)
    )
    if before != units:
        raise ConflictError("CREDIT_REFERENCE_REUSED", "This reference granted another amount before.")
    return False


async def grant_allowances(conn: AsyncConnection, merchant_pks: Sequence[int]) -> int:
    """Give merchants their initial allowance in both modes, once each; return how many were given.

    While the operator's allowance is 0, nothing is given, and it is not used up.
    """
    units = (await platform.load(conn)).cpt.initial_allowance
    given = 0
    for mode in MODES if units else ():
        postings = [
            Posting(mode=mode, kind=ALLOWANCE, reference=f"{merchant_pk}:{mode}", movements=[issue(merchant_pk, units)])
            for merchant_pk in merchant_pks
        ]
        given += len(await ledger.post(conn, mode, postings))
    return given


async def backfill_allowances(conn: AsyncConnection, merchants_max: int = ALLOWANCES_MAX) -> int:
    """Give their allowance to merchants who have had none; return how many they were."""
    found = await conn.exec_driver_sql(
        "SELECT m.id FROM merchants m WHERE EXISTS (SELECT FROM unnest($1::text[]) AS mode WHERE NOT EXISTS ("
        " SELECT FROM ledger_transactions t WHERE t.kind = $2 AND t.reference = m.id || ':' || mode))"
        " ORDER BY m.id LIMIT $3",
        (list(MODES), ALLOWANCE, merchants_max),
    )
    merchant_pks: Sequence[int] = found.scalars().all()
    return len(merchant_pks) if merchant_pks and await grant_allowances(conn, merchant_pks) else 0


# Records that another process is taking are skipped; the partial index is walked in its own order.
_TAKE = """
WITH due AS (
    SELECT id FROM usage_records WHERE NOT posted ORDER BY merchant_pk, mode LIMIT $1 FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE usage_records u SET posted = true FROM due WHERE u.id = due.id
    RETURNING u.id, u.merchant_pk, u.mode, CASE u.operation WHEN 'return' THEN -u.weight ELSE u.weight END AS units,
        date_trunc('month', u.created_at, 'UTC') AS month
), months AS (
    INSERT INTO cpt_months (merchant_pk, mode, month, used)
    SELECT merchant_pk, mode, (month AT TIME ZONE 'UTC')::date AS first_day, sum(units)
    FROM taken GROUP BY merchant_pk, mode, first_day ORDER BY merchant_pk, mode, first_day
    ON CONFLICT (merchant_pk, mode, month) DO UPDATE SET used = cpt_months.used + excluded.used
)
SELECT merchant_pk, mode, min(id) AS first, max(id) AS last, count(*) AS records, sum(units) AS units
FROM taken GROUP BY merchant_pk, mode ORDER BY merchant_pk, mode
"""


async def any_unposted(conn: AsyncConnection) -> bool:
    """Whether any record is not in the ledger yet."""
    found = await conn.exec_driver_sql("SELECT EXISTS (SELECT FROM usage_records WHERE NOT posted)")
    return bool(found.scalar_one())


async def post_unposted(conn: AsyncConnection, rows_max: int = ROLL_UP_ROWS_MAX) -> int:
    """Post records that are not in the ledger yet, one posting per merchant and mode; return how many they were.

    Exactly once, whoever else does the same: the records are marked in the transaction that posts them. What was used
    in each month is summed with it.
    """
    taken = (await conn.exec_driver_sql(_TAKE, (rows_max,))).all()
    for mode in MODES:
        postings = [
            # The first record of a set is in no other one, so the reference is its own.
            Posting(
                mode=mode,
                kind=USAGE,
                reference=f"{row.merchant_pk}:{mode}:{row.first}-{row.last}",
                movements=[issue(row.merchant_pk, -int(row.units))],
            )
            for row in taken
            if row.mode == mode and row.units
        ]
        if len(await ledger.post(conn, mode, postings)) != len(postings):
            raise AssertionError("usage that was not posted yet is in the ledger already")
    return sum(row.records for row in taken)


class UsageView(Struct, frozen=True, kw_only=True, rename="camel"):
    """Something that cost credits. `return` gave back what an operation cost that came to nothing.

    `projectId` is null where it was for no single project, as a collection is, or where nobody knows any more.
    """

    operation: str
    chain: str | None
    reference: str
    project_id: str | None
    amount: int
    created_at: datetime


_AMOUNT = case((UsageRecord.operation == "return", -UsageRecord.weight), else_=UsageRecord.weight)


_LIST = ListOf(UsageRecord.id, UsageRecord.created_at)


async def list_usage(  # noqa: PLR0913  filters, each by name
    conn: AsyncConnection,
    merchant_pk: int,
    mode: str,
    part: Part,
    *,
    operation: Operation | None = None,
    period: Period = ALWAYS,
) -> Listed[UsageView]:
    """Return one part of what a merchant used."""
    own = {UsageRecord.merchant_pk: merchant_pk, UsageRecord.mode: mode}
    filters, show = {UsageRecord.operation: operation}, partial(to_struct, UsageView)
    listed = select(*columns_of(UsageView, UsageRecord, amount=_AMOUNT, project_id=PROJECT_ID))
    return await read_list(conn, listed, show, _LIST, part, own=own, filters=filters, period=period)
