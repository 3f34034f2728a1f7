"""What comes in to all merchants, for operators; and what a text names that somebody was sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from litestar import Controller, Response, get
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter

from cambist.services.oversight import details, lists
from cambist.services.oversight.details import PaymentStory
from cambist.services.oversight.finding import TEXT_CHARS_MAX
from cambist.services.oversight.kinds import Name
from cambist.services.oversight.lists import Found
from cambist.services.oversight.rows import AccountRow, DepositRow, PaymentRow, TrackerRow
from cambist_web.context import Web
from cambist_web.errors import AnyRequest
from cambist_web.lists import Asked
from cambist_web.operator_auth import admin_routes
from cambist_web.oversight import Over, Overseen, list_all
from cambist_web.permissions import permits, sees_customers
from cambist_web.schemas import Answer, CursorPageAnswer


class AllPaymentsList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of all merchants' payments."""

    payments: Sequence[PaymentRow]


class AnyPaymentAnswer(Answer, frozen=True, kw_only=True):
    """A payment, with what happened to it."""

    payment: PaymentRow
    story: PaymentStory


class AllPayments(Overseen):
    @get("/", summary="List all merchants' payments", opt=permits("records.read"))
    async def list(
        self, web: NamedDependency[Web], asked: NamedDependency[Asked], over: NamedDependency[Over]
    ) -> Response[AllPaymentsList]:
        """Return payments of all merchants, by what is asked for."""
        return await list_all(web, asked, over, Name.PAYMENTS, AllPaymentsList)

    @get("/{payment_id:str}", summary="Read any merchant's payment", opt=permits("records.read"))
    async def read(self, payment_id: FromPath[str], web: NamedDependency[Web], request: AnyRequest) -> AnyPaymentAnswer:
        """Return it with its merchant and its project, and what happened to it."""
        async with web.db.transaction() as conn:
            found = await lists.read_row(conn, Name.PAYMENTS, payment_id, PaymentRow)
            story = await details.of_payment(conn, payment_id, with_people=sees_customers(request.state))
        return AnyPaymentAnswer(payment=found, story=story)


class AllDepositsList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of all merchants' deposits."""

    deposits: Sequence[DepositRow]


class AnyDepositAnswer(Answer, frozen=True, kw_only=True):
    """One of all merchants' deposits."""

    deposit: DepositRow


class AllDeposits(Overseen):
    @get("/", summary="List all merchants' deposits", opt=permits("records.read"))
    async def list(
        self, web: NamedDependency[Web], asked: NamedDependency[Asked], over: NamedDependency[Over]
    ) -> Response[AllDepositsList]:
        """Return deposits of all merchants, by what is asked for."""
        return await list_all(web, asked, over, Name.DEPOSITS, AllDepositsList)

    @get("/{deposit_id:str}", summary="Read any merchant's deposit", opt=permits("records.read"))
    async def read(self, deposit_id: FromPath[str], web: NamedDependency[Web]) -> AnyDepositAnswer:
        """Return it with its merchant and its project."""
        async with web.db.transaction() as conn:
            found = await lists.read_row(conn, Name.DEPOSITS, deposit_id, DepositRow)
        return AnyDepositAnswer(deposit=found)


class AllAccountsList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of all merchants' accounts."""

    accounts: Sequence[AccountRow]


class AnyAccountAnswer(Answer, frozen=True, kw_only=True):
    """One of all merchants' accounts."""

    account: AccountRow


class AllAccounts(Overseen):
    @get("/", summary="List all merchants' accounts", opt=permits("records.read"))
    async def list(
        self, web: NamedDependency[Web], asked: NamedDependency[Asked], over: NamedDependency[Over]
    ) -> Response[AllAccountsList]:
        """Return accounts of all merchants, by what is asked for."""
        return await list_all(web, asked, over, Name.ACCOUNTS, AllAccountsList)

    @get("/{account_id:str}", summary="Read any merchant's account", opt=permits("records.read"))
    async def read(self, account_id: FromPath[str], web: NamedDependency[Web]) -> AnyAccountAnswer:
        """Return it with its merchant and its project."""
        async with web.db.transaction() as conn:
            found = await lists.read_row(conn, Name.ACCOUNTS, account_id, AccountRow)
        return AnyAccountAnswer(account=found)


class AllTrackersList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of all merchants' trackers."""

    trackers: Sequence[TrackerRow]


class AnyTrackerAnswer(Answer, frozen=True, kw_only=True):
    """One of all merchants' trackers."""

    tracker: TrackerRow


class AllTrackers(Overseen):
    @get("/", summary="List all merchants' trackers", opt=permits("records.read"))
    async def list(
        self, web: NamedDependency[Web], asked: NamedDependency[Asked], over: NamedDependency[Over]
    ) -> Response[AllTrackersList]:
        """Return trackers of all merchants, by what is asked for."""
        return await list_all(web, asked, over, Name.TRACKERS, AllTrackersList)

    @get("/{webhook_id:str}", summary="Read any merchant's tracker", opt=permits("records.read"))
    async def read(self, webhook_id: FromPath[str], web: NamedDependency[Web]) -> AnyTrackerAnswer:
        """Return it with its merchant and its project."""
        async with web.db.transaction() as conn:
            found = await lists.read_row(conn, Name.TRACKERS, webhook_id, TrackerRow)
        return AnyTrackerAnswer(tracker=found)


SearchText = Annotated[
    str, QueryParameter(description="As `search` of the lists.", min_length=1, max_length=TEXT_CHARS_MAX)
]


class FoundList(Answer, frozen=True, kw_only=True):
    """What a text names, of every kind."""

    found: Sequence[Found]


class Everything(Controller):
    tags = ("Operator",)

    @get("/", summary="Say what a text names", opt=permits("records.read"))
    async def search(
        self,
        request: AnyRequest,
        web: NamedDependency[Web],
        q: SearchText,
    ) -> FoundList:
        """Return what an id, an address, a transaction, an order or an e-mail address names.

        Of each kind there are the newest ten, of the newest 1,000 payouts, refunds and withdrawals together.
        """
        async with web.db.transaction() as conn:
            found = await lists.search(conn, web.gateway.registry, q, with_people=sees_customers(request.state))
        return FoundList(found=found)


controllers = [
    admin_routes("/api/admin/search", Everything),
    admin_routes("/api/admin/payments", AllPayments),
    admin_routes("/api/admin/deposits", AllDeposits),
    admin_routes("/api/admin/accounts", AllAccounts),
    admin_routes("/api/admin/trackers", AllTrackers),
]
