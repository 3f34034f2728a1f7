"""Where a simulated deposit goes: one of the project's own payments or accounts, named by its id or an address."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Account, AccountChain, Address, Payment, Project
from cambist.db.structs import columns_of, to_struct
from cambist.plugin import ChainInfo, Token, Units
from cambist.registry import Registry
from cambist.services.actor import Actor
from cambist.services.addresses.spelling import spelt
from cambist.services.errors import InvalidError
from cambist.services.pricing.quotes import read_units
from cambist.services.receiving.accounts import read as accounts
from cambist.services.receiving.payments import read as payments

from .requests import Deposit


class PaymentRecipient(Struct, frozen=True, kw_only=True):
    """A payment, as far as a deposit needs to know it."""

    pk: int
    chain: str
    token: str
    contract: str | None
    address: str
    remaining: int
    required_confirmations: int
    mines_itself: bool

    def asset(self, request: Deposit) -> tuple[str, str]:
        """Return on which chain which token is sent: what the payment asks for, where nothing is said."""
        return request.chain or self.chain, request.token or self.token

    def check_chain(self, registry: Registry, info: ChainInfo) -> None:
        """Refuse a chain on which the payment's address means nothing."""
        home = registry.chains.get(self.chain)
        if home is not None and home.family != info.family:
            raise InvalidError.field("chain", f"has other addresses than {home.name}, where the payment lives")

    def units(self, request: Deposit, token: Token) -> Units:
        """Return how much is sent: what remains of the payment where nothing is said."""
        if request.amount is not None:
            return read_units(request.amount, token)
        if token.contract != self.contract or self.remaining <= 0:
            raise InvalidError.field("amount", "is required where the payment asks for nothing of this token")
        return Units(self.remaining)

    def confirmations(self, request: Deposit, info: ChainInfo) -> int:  # noqa: ARG002  as of an account
        """Return how many blocks are mined on top of the deposit's own."""
        if request.confirmations is not None:
            return request.confirmations
        return self.required_confirmations if self.mines_itself else 0


class AccountRecipient(Struct, frozen=True, kw_only=True):
    """One address of an account. ``chains`` are those that the account was given there."""

    pk: int
    family: str
    address: str
    chains: tuple[str, ...]
    mines_itself: bool

    def asset(self, request: Deposit) -> tuple[str, str]:
        """Return on which chain which token is sent. Raises InvalidError where that cannot be known."""
        if request.token is None:
            raise InvalidError.field("token", "is required, since an account takes every token")
        if request.chain is None and len(self.chains) != 1:
            raise InvalidError.field("chain", "is required where the account has another number of them than one")
        return request.chain or self.chains[0], request.token

    def check_chain(self, registry: Registry, info: ChainInfo) -> None:  # noqa: ARG002  as of a payment
        """Refuse a chain on which the address means nothing."""
        if info.family != self.family:
            raise InvalidError.field("chain", "is of a family in which the account has no address")

    def units(self, request: Deposit, token: Token) -> Units:
        """Return how much is sent."""
        if request.amount is None:
            raise InvalidError.field("amount", "is required, since an account asks for none")
        return read_units(request.amount, token)

    def confirmations(self, request: Deposit, info: ChainInfo) -> int:
        """Return how many blocks are mined on top of the deposit's own."""
        if request.confirmations is not None:
            return request.confirmations
        return max(1, info.confirmations) if self.mines_itself else 0


Recipient = PaymentRecipient | AccountRecipient


async def find_recipient(conn: AsyncConnection, registry: Registry, actor: Actor, request: Deposit) -> Recipient:
    """Return what a deposit is for. Raises InvalidError where not exactly one thing is named, and NotFoundError."""
    named = [name for name in (request.payment_id, request.account_id, request.address) if name is not None]
    if len(named) != 1:
        raise InvalidError.field("paymentId", "or accountId or address is required, and only one of them")
    if request.account_id is not None:
        return await _account_by_id(conn, registry, actor, request)
    family_and_address = None if request.address is None else _normalize(registry, request.address)
    if family_and_address is not None and (found := await _account_at(conn, actor, *family_and_address)) is not None:
        return found
    wanted = Payment.payment_id == request.payment_id
    if family_and_address is not None:
        family, address = family_and_address
        own = Address.mode == "sandbox", Address.family == family, Address.address == address
        wanted = Payment.id == select(Address.payment_pk).where(*own).scalar_subquery()
    remaining, mines_itself = Payment.expected_units - Payment.received_units, Project.sandbox_auto_mine
    row = (
        await conn.execute(
            select(*columns_of(PaymentRecipient, Payment, remaining=remaining, mines_itself=mines_itself))
            .join(Project, Project.id == Payment.project_pk)
            .where(Payment.project_pk == actor.project_pk, wanted)
        )
    ).one_or_none()
    if row is None:
        raise payments.not_found()
    return to_struct(PaymentRecipient, row)


_ACCOUNT_ADDRESSES = (
    select(Account.id, Address.family, Address.address, AccountChain.chain, Project.sandbox_auto_mine)
    .join(AccountChain, AccountChain.account_pk == Account.id)
    .join(Address, Address.id == AccountChain.address_pk)
    .join(Project, Project.id == Account.project_pk)
    .order_by(AccountChain.chain)
)


async def _account_by_id(conn: AsyncConnection, registry: Registry, actor: Actor, request: Deposit) -> Recipient:
    own = Account.account_id == request.account_id, Account.project_pk == actor.project_pk
    rows = (await conn.execute(_ACCOUNT_ADDRESSES.where(*own))).all()
    if not rows:
        raise accounts.not_found()
    info = None if request.chain is None else registry.chains.get(request.chain)
    families = {row.family for row in rows} if info is None else {info.family}
    here = [row for row in rows if row.family in families]
    if not here:
        raise InvalidError.field("chain", "is of a family in which the account has no address")
    return AccountRecipient(
        pk=here[0].id,
        family=here[0].family,
        address=here[0].address,
        chains=tuple(row.chain for row in here),
        mines_itself=here[0].sandbox_auto_mine,
    )


async def _account_at(conn: AsyncConnection, actor: Actor, family: str, address: str) -> AccountRecipient | None:
    own = Address.mode == "sandbox", Address.family == family, Address.address == address
    rows = (await conn.execute(_ACCOUNT_ADDRESSES.where(*own, Account.project_pk == actor.project_pk))).all()
    if not rows:
        return None
    return AccountRecipient(
        pk=rows[0].id,
        family=family,
        address=address,
        chains=tuple(row.chain for row in rows),
        mines_itself=rows[0].sandbox_auto_mine,
    )


def _normalize(registry: Registry, text: str) -> tuple[str, str]:
    """Return the address's family and its one spelling."""
    for family in registry.families.values():
        if (address := spelt(family, text)) is not None:
            return family.name, address
    raise InvalidError.field("address", "is no address on any chain here", "INVALID_ADDRESS")
