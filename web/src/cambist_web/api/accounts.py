"""A project's accounts: end users, each with permanent addresses. The same handlers serve programs and people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import UNSET, UnsetType
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.actor import Actor
from cambist.services.audit.entries import Action
from cambist.services.listing import Listed, Part, Period, Sort
from cambist.services.receiving.accounts import create, read
from cambist.services.receiving.accounts.change import set_active
from cambist.services.receiving.accounts.create import AccountContext
from cambist.services.receiving.accounts.deposits import (
    AccountDeposit,
    AssetBalance,
    DepositStatus,
    Wanted,
    balances,
    list_deposits,
)
from cambist.services.receiving.accounts.requests import EXTERNAL_ID_CHARS_MAX, AddChains, CreateAccount
from cambist.services.receiving.accounts.views import AccountView, Presenter
from cambist_web.auth import key_routes, needs, project_routes
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.origin import Audit
from cambist_web.schemas import Answer, CursorPageAnswer, Filter, MadeAnswer, made_response

ExternalIdFilter = Annotated[
    str | None,
    QueryParameter(
        name="externalId",
        description="Find this end user's account: it is in `account`, too.",
        min_length=1,
        max_length=EXTERNAL_ID_CHARS_MAX,
    ),
]


AccountSort: TypeAlias = Literal["-createdAt", "createdAt", "externalId", "-externalId"]


class AccountMade(MadeAnswer, frozen=True, kw_only=True):
    """An account. `idempotent` is there, and true, where the end user had it before."""

    account: AccountView


class AccountAnswer(Answer, frozen=True, kw_only=True):
    """An account."""

    account: AccountView


class DepositList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of what came to an account. `total` counts all pages."""

    deposits: Sequence[AccountDeposit]


class BalanceList(Answer, frozen=True, kw_only=True):
    """What an account has received of each token."""

    balances: Sequence[AssetBalance]


class AccountList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of accounts. `total` counts all pages. `account` is there where one was asked for."""

    accounts: Sequence[AccountView]
    account: AccountView | UnsetType = UNSET


def presenter(web: Web) -> Presenter:
    return Presenter(macs=web.macs, base_url=web.settings.web.base_url)


def _context(web: Web) -> AccountContext:
    gateway = web.gateway
    return AccountContext(
        db=gateway.db,
        registry=gateway.registry,
        leaser=gateway.leaser,
        platform=web.platform,
        clock=gateway.clock,
        ids=gateway.ids,
        presenter=presenter(web),
    )


class Accounts(Controller):
    """A merchant's end users."""

    tags = ("Accounts",)

    @post("/", status_code=201, summary="Make an account", opt=needs("accounts"))
    async def create(
        self, data: JSONBody[CreateAccount], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> Response[AccountMade]:
        """Return an account with a permanent address on each of the chains.

        The same `externalId` again returns the same account with status 200 and `idempotent`. Chains that it lacks are
        added, and `metadata` stays as it was. All EVM chains have the same address.
        """
        made = await create.create_account(_context(web), actor, data)
        return made_response(AccountMade(account=made.account), replayed=made.existed)

    @get("/", summary="List accounts, or find one", opt=needs("read"))
    async def list(  # noqa: PLR0913  every query parameter is one
        self,
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        external_id: ExternalIdFilter = None,
        is_active: Annotated[bool | None, QueryParameter(name="isActive")] = None,
        sort: Annotated[
            AccountSort, QueryParameter(description="`-` is the newest, or the last name, first.")
        ] = "-createdAt",
    ) -> Response[AccountList]:
        """Return the project's accounts; with `externalId` that end user's account, or 404."""
        if external_id is not None:
            async with web.db.autocommit() as conn:
                found = await read.find_account(conn, actor.project_pk, external_id, presenter(web))
            one = Listed(items=[found], total=1, exact=True)
            return await asked.of(web, "accounts", actor.project_pk).answer(AccountList, one, account=found)
        query = asked.of(web, "accounts", actor.project_pk, sort=sort, filters=(is_active, period))
        return await query.answer(
            AccountList,
            lambda conn, part: read.list_accounts(
                conn, actor.project_pk, presenter(web), part, is_active=is_active, period=period
            ),
        )

    @get("/{account_id:str}", summary="Read an account", opt=needs("read"))
    async def read(
        self, account_id: FromPath[str], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> AccountAnswer:
        """Return the account with its addresses."""
        async with web.db.autocommit() as conn:
            return AccountAnswer(account=await read.get_account(conn, actor.project_pk, account_id, presenter(web)))

    @get("/{account_id:str}/deposits", summary="List an account's deposits", opt=needs("read"))
    async def deposits(  # noqa: PLR0913  every query parameter is one
        self,
        account_id: FromPath[str],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        status: Annotated[DepositStatus | None, QueryParameter()] = None,
        chain: Filter = None,
        token: Filter = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[DepositList]:
        """Return what came to the account; what is held and what a reorg took away, too."""
        wanted = Wanted(status=status, chain=chain, token=token)

        async def found(conn: AsyncConnection, part: Part) -> Listed[AccountDeposit]:
            deposits = await list_deposits(conn, actor.project_pk, account_id, wanted, part, period)
            await read.check_addresses(conn, [(one.account_id, one.address) for one in deposits.items], web.macs)
            return deposits

        query = asked.of(web, "deposits", actor.project_pk, account_id, sort=sort, filters=(wanted, period))
        return await query.answer(DepositList, found)

    @get("/{account_id:str}/balances", summary="Read an account's balances", opt=needs("read"))
    async def balances(
        self, account_id: FromPath[str], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> BalanceList:
        """Return what the account has received of each token: what is credited, seen, and held."""
        async with web.db.autocommit() as conn:
            return BalanceList(balances=await balances(conn, actor.project_pk, account_id))

    @post("/{account_id:str}/chains", status_code=200, summary="Add chains to an account", opt=needs("accounts"))
    async def add_chains(
        self,
        account_id: FromPath[str],
        data: JSONBody[AddChains],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
    ) -> AccountAnswer:
        """Have the account take deposits on these chains, too. Those that it has stay as they are."""
        return AccountAnswer(account=await create.add_chains(_context(web), actor, account_id, data))

    @post("/{account_id:str}/deactivate", status_code=200, summary="Switch an account off", opt=needs("accounts"))
    async def deactivate(
        self,
        account_id: FromPath[str],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> AccountAnswer:
        """Have the account's page show no address any more. What comes to one is credited all the same."""
        return await _switch(web, actor, audit, account_id, is_active=False)

    @post("/{account_id:str}/activate", status_code=200, summary="Switch an account on", opt=needs("accounts"))
    async def activate(
        self,
        account_id: FromPath[str],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> AccountAnswer:
        """Have the account's page show its addresses again."""
        return await _switch(web, actor, audit, account_id, is_active=True)


async def _switch(web: Web, actor: Actor, audit: Audit, account_id: str, *, is_active: bool) -> AccountAnswer:
    async with web.db.transaction() as conn:
        account = await set_active(conn, actor, account_id, presenter(web), web.clock.now(), is_active=is_active)
        action = Action.ACCOUNT_ACTIVATED if is_active else Action.ACCOUNT_DEACTIVATED
        await audit.record(conn, action, subject=account_id)
    public_id = account.deposit_url.rpartition("/")[2]
    await web.gateway.hints.publish(f"account:{public_id}")
    return AccountAnswer(account=account)


controllers = [key_routes("/api/account", Accounts), project_routes("/accounts", Accounts)]
