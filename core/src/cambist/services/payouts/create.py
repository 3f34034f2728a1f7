"""Pays somebody: the key first, then every check, then the money, all in the caller's transaction."""

from __future__ import annotations

import msgspec
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.payouts import Kind
from cambist.services import platform, usage
from cambist.services.api_keys import Actor
from cambist.services.errors import ForbiddenError, InvalidError, UnavailableError
from cambist.services.idempotency import Claim, choose_key, find_replayed, hash_request
from cambist.services.platform import PlatformSettings
from cambist.services.quotes import Asset, read_units
from cambist.services.tokens import find_chain, find_token

from . import coins
from .queue import Desk, NewPayout, debit_and_queue
from .read import find_payout
from .records import PayoutRow
from .requests import PayoutRequest, swap_of
from .targets import check_target

OPERATION = "payout"


class Made(Struct, frozen=True):
    """A payout, and whether it was there before."""

    payout: PayoutRow
    replayed: bool


async def create_payout(
    conn: AsyncConnection, desk: Desk, actor: Actor, request: PayoutRequest, header_key: str | None
) -> Made:
    """Make the payout, or return the one that the same idempotency key made before.

    The key's row comes before everything else: a twin waits for it, and a refusal undoes it with the caller's
    transaction. After the commit, publish the hint ``outbound``.
    """
    key = choose_key(header_key, request.idempotency_key)
    payout_id = desk.ids.new("po")
    if key is not None:
        claim = claim_of(actor, request, key)
        if not await insert_claim(conn, claim, payout_id, desk):
            return Made(await _replay(conn, claim), replayed=True)
    swap = swap_of(request)
    asset = named_asset(desk, request.chain, request.token)
    enabled = [asset] if swap is None else [named_asset(desk, swap.chain, swap.token, ("srcChain", "srcToken")), asset]
    await require_open(conn, actor, enabled)
    if swap is not None:
        refuse_swap(enabled)
    settings = await require_payouts(conn, actor, asset)
    new = NewPayout(
        kind=Kind.PAYOUT,
        payout_id=payout_id,
        project_row=actor.project_row,
        merchant_row=actor.merchant_row,
        mode=actor.mode,
        chain=asset.chain,
        token=asset.token,
        target=check_target(desk.registry, asset.chain, request.to_address),
        units=read_units(request.amount or "", asset.token),
    )
    (payout,) = await debit_and_queue(conn, desk, settings, [new])
    return Made(payout, replayed=False)


def claim_of(actor: Actor, request: PayoutRequest, key: str) -> Claim:
    """Return the key as this request uses it. A batch's row is the request that it would be alone."""
    return Claim(
        merchant_row=actor.merchant_row,
        project_row=actor.project_row,
        mode=actor.mode,
        operation=OPERATION,
        key=key,
        request_hash=hash_request(msgspec.structs.replace(request, idempotency_key=None)),
    )


_CLAIM = """
INSERT INTO idempotency_keys (merchant_id, mode, operation, key, project_id, request_hash, resource_id, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING RETURNING key
"""


async def insert_claim(conn: AsyncConnection, claim: Claim, resource_id: str, desk: Desk) -> bool:
    """Take the key for something new, and return whether it was free. Waits for a twin that is taking it."""
    found = await conn.exec_driver_sql(
        _CLAIM,
        (
            claim.merchant_row,
            claim.mode,
            claim.operation,
            claim.key,
            claim.project_row,
            claim.request_hash,
            resource_id,
            desk.clock.now(),
        ),
    )
    return found.first() is not None


async def _replay(conn: AsyncConnection, claim: Claim) -> PayoutRow:
    payout_id = await find_replayed(conn, claim)
    if payout_id is None:
        raise AssertionError("the key is there: that is why it could not be inserted")
    return await find_payout(conn, claim.project_row, payout_id)


def named_asset(desk: Desk, chain_id: str, symbol: str, fields: tuple[str, str] = ("chain", "token")) -> Asset:
    """Return the token that a request names, in these fields of it."""
    chain = find_chain(desk.registry, chain_id, fields[0])
    return Asset(chain, find_token(chain, symbol, fields[1]))


async def require_open(conn: AsyncConnection, actor: Actor, assets: list[Asset]) -> None:
    """Refuse a project that is switched off, and tokens that the merchant has not enabled."""
    project = await conn.exec_driver_sql("SELECT is_active FROM projects WHERE id = $1", (actor.project_row,))
    if not project.scalar_one():
        raise ForbiddenError("PROJECT_INACTIVE", "This project is switched off.")
    disabled = await coins.disabled(conn, actor.merchant_row, actor.mode)
    for asset in assets:
        if (asset.chain.id, asset.token.symbol) in disabled:
            raise InvalidError(
                "TOKEN_NOT_ENABLED", f"{asset.token.symbol} on {asset.chain.name} is not among the enabled tokens."
            )


def refuse_swap(assets: list[Asset]) -> None:
    """Refuse a swap in a payout, for the reason that comes first in the specification (section 4.3, rules 5 and 6).

    Swaps need contracts to call, which only EVM chains have; and this gateway cannot swap in a payout yet, whatever
    the operator's setting says.
    """
    for asset in assets:
        if not asset.chain.is_evm:
            raise InvalidError("SWAP_NOT_SUPPORTED_FOR_CHAIN", f"There are no swaps on {asset.chain.name}.")
    raise InvalidError("SWAP_IN_PAYOUT_DISABLED", "Payouts with a swap are switched off.")


async def require_payouts(conn: AsyncConnection, actor: Actor, asset: Asset) -> PlatformSettings:
    """Return the operator's settings, where they, the chain and the merchant's credits allow payouts now."""
    settings = await platform.load(conn)
    if not settings.payout_enabled:
        raise UnavailableError("PAYOUT_DISABLED", "Payouts are switched off right now.")
    if actor.mode == "live" and asset.chain.mode != "live":
        raise UnavailableError("CHAIN_UNAVAILABLE", f"{asset.chain.name} is not available right now.")
    await usage.require_credit(conn, actor.merchant_row, actor.mode, settings)
    return settings
