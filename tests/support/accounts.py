"""Accounts on the chains of a payment environment, without a web server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from cambist.services.actor import Actor
from cambist.services.addresses.account_keys import IndexLeaser
from cambist.services.addresses.macs import AddressMacs
from cambist.services.listing import Part
from cambist.services.payouts.coin_settings import Coin, CoinPatch, change_settings
from cambist.services.platform import PlatformSettingsCache
from cambist.services.receiving.accounts import create, read
from cambist.services.receiving.accounts.change import set_active
from cambist.services.receiving.accounts.create import AccountContext, CreatedAccount
from cambist.services.receiving.accounts.deposits import AccountDeposit, Wanted, balances, list_deposits
from cambist.services.receiving.accounts.requests import AddChains, CreateAccount
from cambist.services.receiving.accounts.views import AccountView, Presenter
from cambist.services.sandbox.requests import Deposit

from .payment_env import PaymentEnv
from .treasury import Treasury

REQUIRED = 3
"""Confirmations that the chain in memory asks for."""


async def live_account(
    treasury: Treasury, external_id: str, chains: Sequence[str], *, merchant: int, project: int
) -> AccountView:
    """Make an account of a merchant on the chains of a treasury."""
    context = AccountContext(
        db=treasury.db,
        registry=treasury.registry,
        leaser=IndexLeaser(treasury.db, treasury.keys, treasury.clock),
        platform=PlatformSettingsCache(treasury.db, treasury.clock),
        clock=treasury.clock,
        ids=treasury.ids,
        presenter=Presenter(macs=AddressMacs(treasury.box), base_url="https://pay.example"),
    )
    actor = Actor(merchant_pk=merchant, merchant_id="mer", project_pk=project, project_id="prj", mode="live")
    request = CreateAccount(external_id=external_id, chains=chains)
    return (await create.create_account(context, actor, request)).account


class AccountEnv:
    """Makes and reads accounts, of the sandbox project unless another actor is named."""

    def __init__(self, payment_env: PaymentEnv) -> None:
        self.payment_env, payments = payment_env, payment_env.context
        self.spent = False
        self.presenter = Presenter(macs=payments.macs, base_url="https://pay.example")
        self.context = AccountContext(
            db=payments.db,
            registry=payments.registry,
            leaser=payments.leaser,
            platform=payments.platform,
            clock=payments.clock,
            ids=payments.ids,
            presenter=self.presenter,
        )

    async def make(
        self,
        external_id: str = "user-1",
        chains: Sequence[str] = ("memory",),
        actor: Actor | None = None,
        **fields: Any,
    ) -> CreatedAccount:
        request = msgspec.convert({"externalId": external_id, "chains": list(chains), **fields}, CreateAccount)
        return await create.create_account(self.context, actor or self.payment_env.test, request)

    async def add(self, account_id: str, *chains: str, actor: Actor | None = None) -> AccountView:
        request = AddChains(chains=chains)
        return await create.add_chains(self.context, actor or self.payment_env.test, account_id, request)

    async def read(self, account_id: str, actor: Actor | None = None) -> AccountView:
        async with self.payment_env.db.autocommit() as conn:
            return await read.get_account(conn, (actor or self.payment_env.test).project_pk, account_id, self.presenter)

    async def deposit(self, account_id: str, amount: str = "10", **fields: Any) -> AccountDeposit:
        """Send USDX to the account in a block of its own, on the chain in memory unless told otherwise."""
        asked = {"accountId": account_id, "token": "USDX", "chain": "memory", "amount": amount, **fields}
        if "address" in fields:
            del asked["accountId"]
        made = await self.payment_env.sandbox.deposit(self.payment_env.test, msgspec.convert(asked, Deposit))
        assert made.deposit is not None
        return made.deposit

    async def deposits(self, account_id: str, **wanted: Any) -> Sequence[AccountDeposit]:
        async with self.payment_env.db.transaction() as conn:
            page = await list_deposits(
                conn, self.payment_env.test.project_pk, account_id, Wanted(**wanted), Part(limit=100)
            )
        return page.items

    async def balances(self, account_id: str) -> dict[tuple[str, str], tuple[str, str, str]]:
        """Return balance, pending and held by chain and token."""
        async with self.payment_env.db.autocommit() as conn:
            found = await balances(conn, self.payment_env.test.project_pk, account_id)
        return {(one.chain, one.token): (one.balance, one.pending, one.held) for one in found}

    async def told(self) -> list[tuple[str, dict[str, Any]]]:
        """Return name and data of every event of the project, oldest first."""
        async with self.payment_env.db.autocommit() as conn:
            rows = await conn.exec_driver_sql(
                "SELECT event, body FROM webhook_events WHERE project_pk = $1 ORDER BY id",
                (self.payment_env.test.project_pk,),
            )
            return [(row.event, msgspec.json.decode(row.body)["data"]) for row in rows]

    async def set_minimum(self, amount: str | None, chain: str = "memory", token: str = "USDX") -> None:  # noqa: S107
        env = self.payment_env
        patch = msgspec.convert({"minDeposit": amount}, CoinPatch)
        async with env.db.transaction() as conn:
            coin = Coin(chain=chain, token=token)
            await change_settings(conn, env.registry, env.test, coin, patch, env.clock.now())

    async def switch(self, account_id: str, *, is_active: bool) -> AccountView:
        env = self.payment_env
        async with env.db.transaction() as conn:
            return await set_active(conn, env.test, account_id, self.presenter, env.clock.now(), is_active=is_active)
