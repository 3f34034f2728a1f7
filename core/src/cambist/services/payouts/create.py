"""Pays somebody: the key first, then every check, then the money, all in the caller's transaction.

A payout with a swap, for which somebody has to be asked for a quote, is made by ``with_swap.py``.
"""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.intents import IntentKind
from cambist.registry import Registry
from cambist.services import platform
from cambist.services.accounting import usage
from cambist.services.actor import Actor
from cambist.services.addresses.checks import check_tag, check_to_address
from cambist.services.errors import UnavailableError, coin_disabled
from cambist.services.idempotency import Claim, Made, by_value, choose_key, claim_of, take_key
from cambist.services.identity.projects import require_active
from cambist.services.platform import PlatformSettings
from cambist.services.pricing.quotes import Asset, read_units
from cambist.services.supported import SPECIFIED, Wording, find_chain, find_token

from . import coin_settings
from .queue import NewPayout, PayoutContext, debit_and_queue
from .read import PayoutRow, find_payout
from .requests import PayoutRequest, swapped_from, wants_swap

OPERATION = "payout"

OF_A_SWAP = Wording(token="is not among the enabled tokens of {chain}", token_code="TOKEN_NOT_ENABLED")  # noqa: S106
"""Of a swap, a token that nobody has heard of is one that is not enabled: the specification, section 4.3, rule 4."""


async def create_payout(
    conn: AsyncConnection, context: PayoutContext, actor: Actor, request: PayoutRequest, header_key: str | None
) -> Made[PayoutRow]:
    """Make the payout, or return the one that the same idempotency key made before.

    The key's row comes before everything else: a twin waits for it, and a refusal undoes it with the caller's
    transaction. After the commit, publish the hint ``outbound``.
    """
    if wants_swap(request):
        raise AssertionError("a payout with a swap is made otherwise")
    claim = request_claim(actor, request, choose_key(header_key, request.idempotency_key))
    payout_id = context.ids.new("po")
    before = await take_key(conn, claim, payout_id, context.clock.now())
    if before is not None:
        return Made(await find_payout(conn, actor.project_pk, before), replayed=True)
    swapped_from(request)
    asset = named_asset(context.registry, request.chain, request.token)
    await require_open(conn, actor, [asset])
    settings = await require_payouts(conn, actor, asset)
    to_address = check_to_address(context.registry, asset.chain, request.to_address)
    to_tag = check_tag(context.registry, asset.chain, request.to_tag)
    units = read_units(request.amount or "", asset.token)
    new = NewPayout.of(actor, IntentKind.PAYOUT, payout_id, asset, to_address, units, to_tag)
    (payout,) = await debit_and_queue(conn, context, settings, [new])
    return Made(payout, replayed=False)


def request_claim(actor: Actor, request: PayoutRequest, key: str | None) -> Claim | None:
    """Return the key as this request uses it. A batch's row is the request that it would be alone."""
    return claim_of(actor, OPERATION, key, by_value(request))


def named_asset(
    registry: Registry,
    chain_id: str,
    symbol: str,
    fields: tuple[str, str] = ("chain", "token"),
    wording: Wording = SPECIFIED,
) -> Asset:
    """Return the token that a request names, in these fields of it."""
    chain = find_chain(registry.chains, chain_id, fields[0])
    return Asset(chain, find_token(chain, symbol, fields[1], wording))


async def require_open(conn: AsyncConnection, actor: Actor, assets: list[Asset]) -> None:
    """Refuse a project that is switched off, and tokens that the merchant has not enabled."""
    await require_active(conn, actor)
    disabled = await coin_settings.disabled(conn, actor.merchant_pk, actor.mode)
    for asset in assets:
        if (asset.chain.id, asset.token.symbol) in disabled:
            raise coin_disabled(asset.token.symbol, asset.chain.name)


async def require_payouts(
    conn: AsyncConnection, actor: Actor, asset: Asset, settings: PlatformSettings | None = None
) -> PlatformSettings:
    """Return the operator's settings, where they, the chain and the merchant's credits allow payouts now.

    Who has just read them need not read them again.
    """
    settings = settings or await platform.load(conn)
    if not settings.payout_enabled:
        raise UnavailableError("PAYOUT_DISABLED", "Payouts are switched off right now.")
    if actor.mode == "live" and asset.chain.availability != "live":
        raise UnavailableError("CHAIN_UNAVAILABLE", f"{asset.chain.name} is not available right now.")
    await usage.require_credit(conn, actor.merchant_pk, actor.mode, settings)
    return settings
