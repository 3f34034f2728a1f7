"""Where a simulated deposit goes: one of the project's own payments, named by its id or its address."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Address, Payment, Project
from cambist.db.structs import columns_of, to_struct
from cambist.plugin import ChainInfo, InvalidAddressError, Token, Units
from cambist.registry import Registry
from cambist.services.actor import Actor
from cambist.services.errors import InvalidError
from cambist.services.pricing.quotes import read_units
from cambist.services.receiving.payments.read import not_found

from .requests import Deposit


class Recipient(Struct, frozen=True, kw_only=True):
    """A payment, as far as a deposit needs to know it."""

    pk: int
    chain: str
    token: str
    contract: str | None
    address: str
    remaining: int
    required_confirmations: int
    mines_itself: bool

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

    def confirmations(self, request: Deposit) -> int:
        if request.confirmations is not None:
            return request.confirmations
        return self.required_confirmations if self.mines_itself else 0


async def find_recipient(conn: AsyncConnection, registry: Registry, actor: Actor, request: Deposit) -> Recipient:
    if (request.payment_id is None) == (request.address is None):
        raise InvalidError.field("paymentId", "or address is required, and not both")
    wanted = Payment.payment_id == request.payment_id
    if request.address is not None:
        family, address = _normalize(registry, request.address)
        own = Address.mode == "sandbox", Address.family == family, Address.address == address
        wanted = Payment.id == select(Address.payment_pk).where(*own).scalar_subquery()
    remaining, mines_itself = Payment.expected_units - Payment.received_units, Project.sandbox_auto_mine
    found = await conn.execute(
        select(*columns_of(Recipient, Payment, remaining=remaining, mines_itself=mines_itself))
        .join(Project, Project.id == Payment.project_pk)
        .where(Payment.project_pk == actor.project_pk, wanted)
    )
    row = found.one_or_none()
    if row is None:
        raise not_found()
    return to_struct(Recipient, row)


def _normalize(registry: Registry, text: str) -> tuple[str, str]:
    """Return the address's family and its one spelling."""
    for family in registry.families.values():
        try:
            return family.name, family.normalize_address(text)
        except InvalidAddressError:
            continue
    raise InvalidError.field("address", "is no address on any chain here", "INVALID_ADDRESS")
