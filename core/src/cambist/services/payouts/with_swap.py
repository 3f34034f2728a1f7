"""Pays somebody in another token than what is given: one exchange on the chain, whose output goes to the recipient.

Quotes come over the network, so a request is two transactions::

    prepare_payout    every check, and nothing is taken
    find_offer        no connection open
    start_payout      the key, every check again, the payout's row, and the exchange, which takes the money

Only the exchange debits, and costs usage credits. The payout's own row says who is paid, and follows the exchange: see
``swapped.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from msgspec import Struct, structs
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.exchanges import MadeFor
from cambist.domain.intents import IntentKind
from cambist.domain.payouts import Limits
from cambist.plugin import Units
from cambist.services import platform
from cambist.services.accounting import ledger
from cambist.services.accounting.ledger import SPENDING, Account, asset_key
from cambist.services.actor import Actor
from cambist.services.addresses.checks import check_tag, check_to_address
from cambist.services.errors import InvalidError, UnavailableError
from cambist.services.exchanges.context import ExchangeContext
from cambist.services.exchanges.create import Prepared, prepare
from cambist.services.exchanges.offers import Offer, best_offer, still_holds
from cambist.services.exchanges.owner import Owner
from cambist.services.exchanges.requests import Wish, slippage_in_bps
from cambist.services.exchanges.starting import NewExchange, start_exchange
from cambist.services.idempotency import Claim, Made, choose_key, find_replayed, take_key
from cambist.services.platform import PlatformSettings
from cambist.services.pricing.quotes import Asset, read_units

from . import limits
from .create import OF_A_SWAP, named_asset, request_claim, require_open, require_payouts
from .queue import NewPayout, insert_rows
from .read import PayoutRow, find_payout
from .requests import PayoutRequest, swapped_from

GIVEN = "srcAmount"
"""The field that says how much is given. What is paid comes of the offer: no field says it."""


class Wanted(Struct, frozen=True, kw_only=True):
    """A payout with a swap that nothing stands against, before anybody was asked for a quote."""

    actor: Actor
    claim: Claim | None
    request: PayoutRequest
    settings: PlatformSettings
    prepared: Prepared


class _Checked(Struct, frozen=True, kw_only=True):
    """What the checks have found, ``given`` and ``paid`` being the limits of both tokens."""

    settings: PlatformSettings
    prepared: Prepared
    given: Limits
    paid: Limits


async def prepare_payout(
    conn: AsyncConnection, context: ExchangeContext, actor: Actor, request: PayoutRequest, header_key: str | None
) -> Made[PayoutRow] | Wanted:
    """Check all that needs nobody to be asked, or return the payout that the same idempotency key made before."""
    key, bps = choose_key(header_key, request.idempotency_key), None
    if swapped_from(request) is not None:
        bps = slippage_in_bps(request.slippage)
    claim = request_claim(actor, structs.replace(request, slippage=None if bps is None else Decimal(bps)), key)
    before = None if claim is None else await find_replayed(conn, claim)
    if before is not None:
        return Made(await find_payout(conn, actor.project_pk, before), replayed=True)
    checked = await _check(conn, context, actor, request)
    return Wanted(actor=actor, claim=claim, request=request, settings=checked.settings, prepared=checked.prepared)


async def find_offer(context: ExchangeContext, wanted: Wanted) -> Offer:
    """Return the best offer. No connection is open meanwhile. Raises InvalidError, and UnavailableError."""
    return await best_offer(context, wanted.settings, wanted.prepared.wish, wanted.prepared.terms)


async def start_payout(
    conn: AsyncConnection, context: ExchangeContext, wanted: Wanted, offer: Offer
) -> Made[PayoutRow]:
    """Make the payout and its exchange, or return what a twin with the same idempotency key has made meanwhile.

    What could have changed since the first checks is checked again. The row's units are the least that the recipient
    was promised, until the exchange has ended. Raises ForbiddenError, InvalidError and UnavailableError; the caller's
    transaction is then lost as a whole. After the commit, publish the hint ``outbound``.
    """
    actor, wish, now = wanted.actor, wanted.prepared.wish, context.clock.now()
    payout_id = context.ids.new("po")
    before = await take_key(conn, wanted.claim, payout_id, now)
    if before is not None:
        return Made(await find_payout(conn, actor.project_pk, before), replayed=True)
    checked = await _check(conn, context, actor, wanted.request)
    is_same = checked.prepared.terms == wanted.prepared.terms
    if not is_same or not still_holds(offer, wish, wanted.settings, checked.settings):
        raise UnavailableError("EXCHANGE_UNAVAILABLE", "The operator has just changed the terms. Ask again.")
    # What the recipient may expect is judged; what is promised, and arrives in the end, is counted.
    limits.check_units(checked.paid, IntentKind.PAYOUT, wish.dest, offer.quote.units, field=None)
    to_address = wanted.prepared.terms.recipient
    new = NewPayout.of(actor, IntentKind.PAYOUT, payout_id, wish.dest, to_address, offer.units_min)
    row = (await insert_rows(conn, [new], {}, now))[payout_id]
    new_exchange = NewExchange(
        txn_id=context.ids.new("xch"),
        settings=checked.settings,
        prepared=wanted.prepared,
        offer=offer,
        payout_pk=row.pk,
    )
    await ledger.lock_balances(conn, actor.mode, [*_accounts(actor, wish.source), *_accounts(actor, wish.dest)])
    await start_exchange(conn, context, new_exchange)
    # The accounts of both tokens are locked by now: each guards the sum of its day.
    await _check_day(conn, context, actor, checked.given, wish.source, Units(0), field=GIVEN)
    await _check_day(conn, context, actor, checked.paid, wish.dest, Units(offer.quote.units - offer.units_min))
    return Made(await find_payout(conn, actor.project_pk, payout_id), replayed=False)


async def _check(conn: AsyncConnection, context: ExchangeContext, actor: Actor, request: PayoutRequest) -> _Checked:
    """Refuse what the rules refuse, in the order of the specification (section 4.3) and then as for any payout."""
    named = swapped_from(request)
    if named is None:
        raise AssertionError("a plain payout has no swap")
    registry = context.registry
    source = named_asset(registry, *named, ("srcChain", "srcToken"), OF_A_SWAP)
    dest = named_asset(registry, request.chain, request.token, wording=OF_A_SWAP)
    await require_open(conn, actor, [source, dest])
    settings = await platform.load(conn)
    _require_swaps(settings, [source, dest])
    await require_payouts(conn, actor, dest, settings)
    if source == dest:
        raise InvalidError.field("srcToken", "must be another token than the one that is paid out")
    to_address = check_to_address(registry, dest.chain, request.to_address)
    if check_tag(registry, dest.chain, request.to_tag) is not None:
        raise InvalidError.field("toTag", "cannot go along with a swap", "TAG_NOT_SUPPORTED")
    units = read_units(request.src_amount or "", source.token, GIVEN)
    wish = Wish(source=source, units=units, dest=dest, slippage_bps=slippage_in_bps(request.slippage))
    owner = Owner(project_pk=actor.project_pk, merchant_pk=actor.merchant_pk, mode=actor.mode, asked_by=actor.asked_by)
    prepared = await prepare(conn, context, settings, owner, wish, made_for=MadeFor.PAYOUT, recipient=to_address)
    if prepared.recipient_pk is not None or to_address == prepared.wallet.address:
        raise InvalidError.field("toAddress", "is your own wallet: exchange the tokens instead", "INVALID_ADDRESS")
    _require_allowed(settings, source, dest, to_address)
    now = context.clock.now()
    given = await limits.limits_of(conn, settings, actor.merchant_pk, actor.mode, source, now)
    limits.check_units(given, IntentKind.PAYOUT, source, units, field=GIVEN)
    paid = await limits.limits_of(conn, settings, actor.merchant_pk, actor.mode, dest, now)
    return _Checked(settings=settings, prepared=prepared, given=given, paid=paid)


def _require_swaps(settings: PlatformSettings, assets: Sequence[Asset]) -> None:
    """Refuse chains without contracts to call, and then every swap where the operator has not allowed them."""
    for asset in assets:
        if not asset.chain.runs_contracts:
            raise InvalidError("SWAP_NOT_SUPPORTED_FOR_CHAIN", f"There are no swaps on {asset.chain.name}.")
    if not settings.payout_swap_enabled:
        raise InvalidError("SWAP_IN_PAYOUT_DISABLED", "Payouts with a swap are switched off.")


def _require_allowed(settings: PlatformSettings, source: Asset, dest: Asset, to_address: str) -> None:
    """Refuse a recipient who is not listed on the chain where the money arrives.

    No list is left by way of a chain that has none, as in the signer.
    """
    are_listed = settings.allowed_addresses.keys() & {source.chain.id, dest.chain.id}
    if are_listed and to_address not in settings.allowed_addresses.get(dest.chain.id, ()):
        raise limits.address_error(dest.chain)


def _accounts(actor: Actor, asset: Asset) -> Sequence[Account]:
    name = asset_key(asset.chain.id, asset.token.contract)
    return [Account(actor.merchant_pk, name, purpose) for purpose in SPENDING]


async def _check_day(  # noqa: PLR0913, PLR0917  whose, what, and by which limits
    conn: AsyncConnection,
    context: ExchangeContext,
    actor: Actor,
    allowed: Limits,
    asset: Asset,
    more: Units,
    *,
    field: str | None = None,
) -> None:
    """Refuse a day's sum that is too large. Payout and exchange are stored, and count; ``more`` may come on top."""
    if allowed.per_day is None:
        return
    now = context.clock.now()
    sent = await limits.sent_today(conn, actor.merchant_pk, actor.mode, asset.chain, asset.token, now)
    if allowed.day_refuses(more, sent):
        raise limits.day_limit_error(allowed, asset.token, field=field)
