"""The wallet's statement, as pages and as a file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter
from litestar.response import Stream
from msgspec import Struct, field
from msgspec.structs import replace

from cambist.domain.money import format_units
from cambist.services.accounting.statements import details, entries, export
from cambist.services.accounting.statements.details import OUTGOING, Detail
from cambist.services.accounting.statements.entries import Entry, Filters
from cambist.services.accounting.statements.kinds import TYPES
from cambist.services.actor import Actor
from cambist.services.bounded import bounded
from cambist.services.listing import Sort
from cambist.services.paging import LIMIT, TOTAL_MAX, parse_moment
from cambist_web.auth import key_routes, needs, project_routes
from cambist_web.context import Web
from cambist_web.lists import TimeSort, digest_of, file_too_slow
from cambist_web.schemas import Cursor, CursorPageAnswer, Limit, NonEmptyFilter, Page, Since, Until

TypeFilter = Annotated[
    str | None, QueryParameter(name="type", description=f"One of {', '.join(TYPES)}.", min_length=1, max_length=32)
]


class FiatValue(Struct, frozen=True, kw_only=True):
    """What something was worth at the time."""

    usd: str


class TransactionView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One change of the wallet.

    `from` and `to` are balances, and null outside of the wallet. `amount` is above zero where money came nearer to
    being spent, below zero where it went away.
    """

    id: str
    type: str
    chain: str
    token: str
    contract_address: str | None
    amount: str
    from_balance: str | None = field(name="from")
    to_balance: str | None = field(name="to")
    created_at: datetime
    fiat_value: FiatValue | None
    tx_hash: str | None
    payment_id: str | None = None
    deposit_id: str | None = None
    payout_id: str | None = None
    refund_id: str | None = None
    withdrawal_id: str | None = None
    txn_id: str | None = None


class TransactionList(CursorPageAnswer, frozen=True, kw_only=True):
    """A page of the statement; `nextCursor` is null on the last one."""

    mode: str
    transactions: Sequence[TransactionView]


def _filters(chain: str | None, token: str | None, kind: str | None, since: str | None, until: str | None) -> Filters:
    return Filters(
        chain=chain,
        token=token,
        type=kind,
        since=parse_moment("from", since),
        until=parse_moment("to", until),
    )


class Transactions(Controller):
    tags = ("Wallet",)

    @get("/transactions", summary="List wallet transactions", opt=needs("read"))
    async def list(  # noqa: PLR0913  filters and paging, each by name
        self,
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        *,
        chain: NonEmptyFilter = None,
        token: NonEmptyFilter = None,
        kind: TypeFilter = None,
        since: Since = None,
        until: Until = None,
        cursor: Cursor = None,
        page: Page = 1,
        limit: Limit = LIMIT,
        sort: TimeSort = Sort.NEWEST,
    ) -> TransactionList:
        """Return changes of the wallet. What comes in later moves no page that follows a cursor.

        They are numbered as they were booked, so those of one minute may be in another order than their times.
        """
        filters = _filters(chain, token, kind, since, until)
        cursors = web.cursors("statements", actor.merchant_pk, actor.mode, sort, digest_of(filters))
        after, oldest_first = cursors.open(cursor), sort == Sort.OLDEST
        async with web.db.autocommit() as conn:
            scope = await entries.scope_of(conn, web.gateway.registry, actor.merchant_pk, actor.mode, filters)
            bounds = await entries.bounds_of(conn, filters)
            total = await entries.count(conn, scope, filters, bounds, TOTAL_MAX + 1)
            if after is not None and oldest_first:
                bounds = replace(bounds, first=max(after + 1, bounds.first))
            elif after is not None:
                bounds = replace(bounds, end=min(after, bounds.end))
            found, more = await entries.read(conn, scope, filters, bounds, limit, page=page, oldest_first=oldest_first)
            known = await details.details_of(conn, found)
        return TransactionList(
            mode=actor.mode,
            transactions=[_view(entry, detail) for entry, detail in zip(found, known, strict=True)],
            page=page,
            limit=limit,
            total=min(total, TOTAL_MAX),
            total_is_exact=total <= TOTAL_MAX,
            next_cursor=cursors.seal(found[-1].pk if more else None),
        )

    @get("/transactions.csv", summary="Export wallet transactions", media_type="text/csv", opt=needs("read"))
    async def export(  # noqa: PLR0913  filters, each by name
        self,
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        *,
        chain: NonEmptyFilter = None,
        token: NonEmptyFilter = None,
        kind: TypeFilter = None,
        since: Since = None,
        until: Until = None,
    ) -> Stream:
        """Return all of them as comma-separated values, with the change of each balance and the worth at the time.

        400 `EXPORT_TOO_LARGE` for more than 200,000 entries.
        """
        filters = _filters(chain, token, kind, since, until)
        await web.limiter.take(web.limits.files, actor.merchant_id)
        async with web.files.counting(actor.merchant_id) as conn, bounded(conn, file_too_slow()):
            scope = await entries.scope_of(conn, web.gateway.registry, actor.merchant_pk, actor.mode, filters)
            bounds = await entries.bounds_of(conn, filters)
            await export.check_size(conn, scope, bounds)
        name = f"transactions-{actor.mode}-{web.clock.now():%Y-%m-%d}.csv"
        return Stream(
            export.lines(web.files.reading, scope, filters, bounds),
            media_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )


def _view(entry: Entry, detail: Detail) -> TransactionView:
    named: dict[str, str] = {}
    if detail.outgoing_id is not None:
        named[OUTGOING[detail.outgoing_id.partition("_")[0]]] = detail.outgoing_id
    return TransactionView(
        id=entry.entry_id,
        type=entry.type,
        chain=entry.chain,
        token=entry.token.symbol,
        contract_address=entry.token.contract,
        amount=format_units(entry.units, entry.token.decimals),
        from_balance=entry.from_balance,
        to_balance=entry.to_balance,
        created_at=entry.created_at,
        fiat_value=None if detail.fiat_value is None else FiatValue(usd=format(detail.fiat_value, "f")),
        tx_hash=detail.tx_id,
        payment_id=detail.payment_id,
        deposit_id=detail.deposit_id,
        txn_id=detail.txn_id,
        **named,
    )


controllers = [key_routes("/api/merchant/wallet", Transactions), project_routes("/wallet", Transactions)]
