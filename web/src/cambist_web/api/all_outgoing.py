"""What all merchants send and exchange, for operators."""

from __future__ import annotations

from collections.abc import Sequence

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.params import FromPath

from cambist.services.oversight import details, lists
from cambist.services.oversight.details import SentStory
from cambist.services.oversight.kinds import Name
from cambist.services.oversight.rows import ExchangeRow, SentRow
from cambist_web.context import Web
from cambist_web.lists import Asked
from cambist_web.operator_auth import admin_routes
from cambist_web.oversight import Over, Overseen, list_all
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, CursorPageAnswer


class AllPayoutsList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of all merchants' payouts."""

    payouts: Sequence[SentRow]


class AnyPayoutAnswer(Answer, frozen=True, kw_only=True):
    """A payout, with its transactions."""

    payout: SentRow
    story: SentStory


class AllPayouts(Overseen):
    @get("/", summary="List all merchants' payouts", opt=permits("records.read"))
    async def list(
        self, web: NamedDependency[Web], asked: NamedDependency[Asked], over: NamedDependency[Over]
    ) -> Response[AllPayoutsList]:
        """Return payouts of all merchants, by what is asked for."""
        return await list_all(web, asked, over, Name.PAYOUTS, AllPayoutsList)

    @get("/{payout_id:str}", summary="Read any merchant's payout", opt=permits("records.read"))
    async def read(self, payout_id: FromPath[str], web: NamedDependency[Web]) -> AnyPayoutAnswer:
        """Return it with its merchant and its project, and what happened to it."""
        async with web.db.transaction() as conn:
            found = await lists.read_row(conn, Name.PAYOUTS, payout_id, SentRow)
            story = await details.of_sent(conn, payout_id)
        return AnyPayoutAnswer(payout=found, story=story)


class AllRefundsList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of all merchants' refunds."""

    refunds: Sequence[SentRow]


class AnyRefundAnswer(Answer, frozen=True, kw_only=True):
    """A refund, with its transactions."""

    refund: SentRow
    story: SentStory


class AllRefunds(Overseen):
    @get("/", summary="List all merchants' refunds", opt=permits("records.read"))
    async def list(
        self, web: NamedDependency[Web], asked: NamedDependency[Asked], over: NamedDependency[Over]
    ) -> Response[AllRefundsList]:
        """Return refunds of all merchants, by what is asked for."""
        return await list_all(web, asked, over, Name.REFUNDS, AllRefundsList)

    @get("/{refund_id:str}", summary="Read any merchant's refund", opt=permits("records.read"))
    async def read(self, refund_id: FromPath[str], web: NamedDependency[Web]) -> AnyRefundAnswer:
        """Return it with its merchant and its project, and what happened to it."""
        async with web.db.transaction() as conn:
            found = await lists.read_row(conn, Name.REFUNDS, refund_id, SentRow)
            story = await details.of_sent(conn, refund_id)
        return AnyRefundAnswer(refund=found, story=story)


class AllWithdrawalsList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of all merchants' withdrawals."""

    withdrawals: Sequence[SentRow]


class AnyWithdrawalAnswer(Answer, frozen=True, kw_only=True):
    """A withdrawal, with its transactions."""

    withdrawal: SentRow
    story: SentStory


class AllWithdrawals(Overseen):
    @get("/", summary="List all merchants' withdrawals", opt=permits("records.read"))
    async def list(
        self, web: NamedDependency[Web], asked: NamedDependency[Asked], over: NamedDependency[Over]
    ) -> Response[AllWithdrawalsList]:
        """Return withdrawals of all merchants, by what is asked for."""
        return await list_all(web, asked, over, Name.WITHDRAWALS, AllWithdrawalsList)

    @get("/{withdrawal_id:str}", summary="Read any merchant's withdrawal", opt=permits("records.read"))
    async def read(self, withdrawal_id: FromPath[str], web: NamedDependency[Web]) -> AnyWithdrawalAnswer:
        """Return it with its merchant and its project, and what happened to it."""
        async with web.db.transaction() as conn:
            found = await lists.read_row(conn, Name.WITHDRAWALS, withdrawal_id, SentRow)
            story = await details.of_sent(conn, withdrawal_id)
        return AnyWithdrawalAnswer(withdrawal=found, story=story)


class AllExchangesList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of all merchants' exchanges."""

    exchanges: Sequence[ExchangeRow]


class AnyExchangeAnswer(Answer, frozen=True, kw_only=True):
    """One of all merchants' exchanges."""

    exchange: ExchangeRow


class AllExchanges(Overseen):
    @get("/", summary="List all merchants' exchanges", opt=permits("records.read"))
    async def list(
        self, web: NamedDependency[Web], asked: NamedDependency[Asked], over: NamedDependency[Over]
    ) -> Response[AllExchangesList]:
        """Return exchanges of all merchants, by what is asked for."""
        return await list_all(web, asked, over, Name.EXCHANGES, AllExchangesList)

    @get("/{txn_id:str}", summary="Read any merchant's exchange", opt=permits("records.read"))
    async def read(self, txn_id: FromPath[str], web: NamedDependency[Web]) -> AnyExchangeAnswer:
        """Return it with its merchant and its project."""
        async with web.db.transaction() as conn:
            found = await lists.read_row(conn, Name.EXCHANGES, txn_id, ExchangeRow)
        return AnyExchangeAnswer(exchange=found)


controllers = [
    admin_routes("/api/admin/payouts", AllPayouts),
    admin_routes("/api/admin/refunds", AllRefunds),
    admin_routes("/api/admin/withdrawals", AllWithdrawals),
    admin_routes("/api/admin/exchanges", AllExchanges),
]
