"""An exchange as it is stored: finds one of a project's, or a page of them, and shows them."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct
from sqlalchemy import bindparam, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Exchange, Payout
from cambist.db.structs import AnyRow, columns_of, to_struct
from cambist.domain.exchanges import Kind, MadeFor, Status
from cambist.domain.failures import Failure, code_of
from cambist.domain.money import format_units
from cambist.services.errors import NotFoundError
from cambist.services.listing import ALWAYS, Listed, ListOf, Part, Period, read_list
from cambist.services.paging import read_one
from cambist.services.sending.queue.reasons import sentence_of

from .rows import SENDER, ExchangeRow


class FoundExchange(ExchangeRow, frozen=True, kw_only=True):
    """An exchange to be shown. ``payout_id`` is the public one of the payout that it was made for."""

    payout_id: str | None


_PAYOUT = select(Payout.payout_id).where(Payout.id == Exchange.payout_pk).correlate(Exchange).scalar_subquery()
_SELECT = select(*columns_of(FoundExchange, Exchange, sender=SENDER, payout_id=_PAYOUT))
_FIND = _SELECT.where(Exchange.txn_id == bindparam("txn_id"), Exchange.project_pk == bindparam("project_pk"))


_LIST = ListOf(Exchange.id, Exchange.created_at)


async def list_exchanges(  # noqa: PLR0913  filters, each by name
    conn: AsyncConnection,
    project_pk: int,
    part: Part,
    *,
    made_for: MadeFor | None = None,
    kind: Kind | None = None,
    chain: str | None = None,
    status: Status | None = None,
    period: Period = ALWAYS,
) -> Listed[ExchangeView]:
    """Return one part of a project's exchanges. ``chain`` is either of an exchange's two."""
    on_chain = [] if chain is None else [or_(Exchange.source_chain == chain, Exchange.dest_chain == chain)]
    return await read_list(
        conn,
        _SELECT,
        lambda row: exchange_view(_found(row)),
        _LIST,
        part,
        own={Exchange.project_pk: project_pk},
        filters={Exchange.made_for: made_for, Exchange.kind: kind, Exchange.status: status},
        also=on_chain,
        period=period,
    )


async def find_exchange(conn: AsyncConnection, project_pk: int, txn_id: str) -> FoundExchange:
    """Return an exchange of a project's. Raises NotFoundError."""
    missing = NotFoundError("EXCHANGE_NOT_FOUND", "There is no such swap or bridge.")
    return _found(await read_one(conn, _FIND, missing, {"txn_id": txn_id, "project_pk": project_pk}))


def _found(row: AnyRow) -> FoundExchange:
    return to_struct(FoundExchange, row)


class ExchangeView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A swap or a bridge as its merchant sees it. What the provider keeps for itself is not shown.

    `mode` is who wanted it. `destAmount` is what has come, null until then, and `destAmountMin` what must come at
    least. `txHash` is the transaction on the source chain, `destTxHash` the one that brought the output. `waitsFor` is
    why it has not been sent yet.
    """

    txn_id: str
    kind: Kind
    mode: MadeFor
    status: Status
    provider: str
    source_chain: str
    source_token: str
    source_amount: str
    dest_chain: str
    dest_token: str
    dest_amount: str | None
    dest_amount_min: str
    slippage_percent: float
    recipient: str
    tx_hash: str | None
    dest_tx_hash: str | None
    payout_id: str | None
    waits_for: str | None
    waits_for_text: str | None
    error: str | None
    error_code: Failure | None
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None


def exchange_view(row: FoundExchange) -> ExchangeView:
    came = row.output_units
    return ExchangeView(
        txn_id=row.txn_id,
        kind=row.kind,
        mode=row.made_for,
        status=row.status,
        provider=row.provider,
        source_chain=row.source_chain,
        source_token=row.source_token,
        source_amount=format_units(row.units, row.source_decimals),
        dest_chain=row.dest_chain,
        dest_token=row.dest_token,
        dest_amount=None if came is None else format_units(came, row.dest_decimals),
        dest_amount_min=format_units(row.units_min, row.dest_decimals),
        slippage_percent=row.slippage_bps / 100,
        recipient=row.recipient,
        tx_hash=row.tx_id,
        dest_tx_hash=row.dest_tx_id,
        payout_id=row.payout_id,
        waits_for=row.waits_for,
        waits_for_text=None if row.waits_for is None else sentence_of(row.waits_for, of_exchange=True),
        error=row.error,
        error_code=code_of(row.error),
        created_at=row.created_at,
        updated_at=row.updated_at,
        completed_at=row.finished_at,
    )
