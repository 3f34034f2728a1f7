"""Where a simulated deposit goes: one of the project's own payments, named by its id or its address."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

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
        """Return how many blocks are mined on top."""
        if request.confirmations is not None:
            return request.confirmations
        return self.required_confirmations if self.mines_itself else 0


async def find_recipient(conn: AsyncConnection, registry: Registry, actor: Actor, request: Deposit) -> Recipient:
    """Find the project's payment that the deposit is for."""
    if (request.payment_id is None) == (request.address is None):
        raise InvalidError.field("paymentId", "or address is required, and not both")
    address = None if request.address is None else _normalize(registry, request.address)
    found = await conn.exec_driver_sql(
        "SELECT p.id, p.chain, p.token, p.contract, p.address, p.expected_units - p.received_units AS remaining,"
        " p.required_confirmations, j.sandbox_auto_mine FROM payments p JOIN projects j ON j.id = p.project_pk"
        " WHERE p.project_pk = $1 AND (p.payment_id = $2 OR p.id = ("
        "  SELECT a.payment_pk FROM addresses a WHERE a.mode = 'sandbox' AND a.family = $3 AND a.address = $4))",
        (actor.project_pk, request.payment_id, *(address or (None, None))),
    )
    row = found.one_or_none()
    if row is None:
        raise not_found()
    return Recipient(
        pk=row.id,
        chain=row.chain,
        token=row.token,
        contract=row.contract,
        address=row.address,
        remaining=int(row.remaining),
        required_confirmations=row.required_confirmations,
        mines_itself=row.sandbox_auto_mine,
    )


def _normalize(registry: Registry, text: str) -> tuple[str, str]:
    """Return the address's family and its one spelling."""
    for family in registry.families.values():
        try:
            return family.name, family.normalize_address(text)
        except InvalidAddressError:
            continue
    raise InvalidError.field("address", "is no address on any chain here", "INVALID_ADDRESS")
