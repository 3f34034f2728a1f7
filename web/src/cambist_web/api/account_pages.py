"""What an account's hosted page shows, for programs: a shop may draw a page of its own from it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.params import FromPath
from msgspec import UNSET, Struct, UnsetType

from cambist.domain.money import format_units
from cambist.registry import Registry
from cambist.services.errors import NotFoundError
from cambist.services.receiving.account_page import AccountPage, DepositStatus, PageDeposit
from cambist_web.auth import public_routes
from cambist_web.checkout.account_build import coins_of, is_late, is_taken
from cambist_web.checkout.links import uri_of
from cambist_web.checkout.live import Checkout
from cambist_web.checkout.steps import confirmations
from cambist_web.context import Web
from cambist_web.schemas import Answer


class PublicCoin(Struct, frozen=True, kw_only=True, rename="camel"):
    """A token that is taken. `leastAmount` is there where less than that does not count."""

    token: str
    contract_address: str | None
    least_amount: str | UnsetType = UNSET


class PublicAddress(Struct, frozen=True, kw_only=True, rename="camel"):
    """Where the account takes deposits on one chain. `uri` is the text of its QR code.

    `isDelayed` says that the chain cannot be followed at present: what is sent arrives, and is shown later.
    """

    chain: str
    chain_name: str
    address: str
    uri: str
    is_delayed: bool
    tokens: Sequence[PublicCoin]


class PublicDeposit(Struct, frozen=True, kw_only=True, rename="camel"):
    """A transfer to one of the account's addresses. `counted` is false where it is held for a decision."""

    chain: str
    token: str
    amount: str
    status: DepositStatus
    counted: bool
    confirmations: int
    required_confirmations: int
    tx_hash: str
    mined_at: datetime


class PublicAccount(Struct, frozen=True, kw_only=True, rename="camel"):
    """An account as its end user sees it. `addresses` is empty while the account is not active.

    `deposits` are the newest 20, newest first; `hasEarlier` says that there are more.
    """

    public_id: str
    shop_name: str
    mode: str
    is_active: bool
    addresses: Sequence[PublicAddress]
    deposits: Sequence[PublicDeposit]
    has_earlier: bool


class PublicAccountAnswer(Answer, frozen=True, kw_only=True):
    """An account as its end user sees it."""

    account: PublicAccount


class AccountPages(Controller):
    tags = ("Accounts",)

    @get("/{public_id:str}", summary="Read an account as its end user")
    async def read(
        self, public_id: FromPath[str], web: NamedDependency[Web], checkout: NamedDependency[Checkout]
    ) -> PublicAccountAnswer:
        """Return where to deposit, and the newest deposits, without anything about who the end user is."""
        page = await checkout.account(public_id)
        if page is None:
            raise NotFoundError("ACCOUNT_NOT_FOUND", "There is no such account.")
        registry = web.gateway.registry
        return PublicAccountAnswer(
            account=PublicAccount(
                public_id=page.public_id,
                shop_name=page.shop_name,
                mode=page.mode,
                is_active=page.is_active,
                addresses=_addresses(page, registry, web.clock.now()) if page.is_active else (),
                deposits=[_deposit(deposit, registry) for deposit in page.deposits],
                has_earlier=page.has_earlier,
            )
        )


def _addresses(page: AccountPage, registry: Registry, now: datetime) -> Sequence[PublicAddress]:
    """Return the addresses on chains that are taken at present."""
    found = []
    for chain in page.chains:
        info = registry.chains.get(chain.chain)
        if info is None or not is_taken(page, info):
            continue
        coins = [
            PublicCoin(token=token.symbol, contract_address=token.contract, least_amount=coin.least or UNSET)
            for token, coin in zip(info.tokens, coins_of(chain, info), strict=True)
        ]
        found.append(
            PublicAddress(
                chain=chain.chain,
                chain_name=info.name,
                address=chain.address,
                uri=uri_of(registry, info, chain.address),
                is_delayed=is_late(page, chain, now),
                tokens=coins,
            )
        )
    return found


def _deposit(deposit: PageDeposit, registry: Registry) -> PublicDeposit:
    info = registry.chains.get(deposit.chain)
    return PublicDeposit(
        chain=deposit.chain,
        token=deposit.token,
        amount=format_units(deposit.units, deposit.decimals),
        status=deposit.status,
        counted=deposit.matches,
        confirmations=confirmations(deposit, finality_required=info is not None and info.finality_required),
        required_confirmations=deposit.required_confirmations,
        tx_hash=deposit.tx_id,
        mined_at=deposit.mined_at,
    )


controllers = [public_routes("/api/public/account", AccountPages)]
