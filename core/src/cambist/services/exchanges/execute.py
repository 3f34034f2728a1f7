"""A merchant's own request for an exchange: checked, offered, and started once for each idempotency key.

The caller asks the providers in between, when no connection is open::

    begin(db, ...)       the key was not used; what needs nobody to be asked
    best_offer(...)      over the network: see ``offers.py``
    finish(db, ...)      one statement: the key is taken, all is checked again, and the money is set aside

Each statement is a transaction of its own, so that nobody waits for a merchant's balance while this process is busy.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

from msgspec import Struct, structs

from cambist.db.engine import Database, has_committed
from cambist.domain.exchanges import MadeFor
from cambist.services.actor import Actor
from cambist.services.audit.entries import Origin
from cambist.services.errors import InvalidError, UnavailableError, project_inactive
from cambist.services.idempotency import Claim, Made, by_value, choose_key, claim_of, find_replayed, refuse_other_use
from cambist.services.platform import PlatformSettings

from .context import ExchangeContext
from .create import Prepared, check, prepared_of
from .facts import Facts, read_facts, with_wallets
from .offers import Offer, still_holds
from .owner import Owner
from .read import FoundExchange, find_exchange
from .requests import BridgeOrder, SwapAsk, SwapOrder, Wish, read_wish, slippage_in_bps
from .starting import NewExchange, start_alone

Order: TypeAlias = SwapOrder | BridgeOrder


TRIES_MAX = 3
"""What decides about an exchange may change while it is started: then it is read again."""


class Asked(Struct, frozen=True, kw_only=True):
    """What may be offered: all was checked for which nobody has to be asked. ``settings_mark`` is as in ``Facts``."""

    settings: PlatformSettings
    settings_mark: str | None
    prepared: Prepared
    claim: Claim | None = None


async def ask(db: Database, context: ExchangeContext, actor: Actor, wanted: SwapAsk) -> Asked:
    """Check what somebody wants to have quoted. Raises whatever ``prepare`` does, ForbiddenError and InvalidError."""
    owner, wish = _owner(actor), read_wish(context.registry.chains, wanted)
    return await _checked(db, context, owner, wish, await read_facts(db, owner, wish), is_quote=True)


async def begin(
    db: Database, context: ExchangeContext, actor: Actor, order: Order, header_key: str | None
) -> Asked | FoundExchange:
    """Check an order, or return what the same idempotency key has started before.

    Raises ConflictError for a key that was used for something else, and whatever ``ask`` raises.
    """
    kind = "bridge" if isinstance(order, BridgeOrder) else "swap"
    bps = slippage_in_bps(order.slippage)
    same = by_value(
        order, src_amount_raw=str(int(order.src_amount_raw)), slippage=None if bps is None else Decimal(bps)
    )
    claim = claim_of(actor, kind, choose_key(header_key, order.idempotency_key), same)
    try:
        wish = read_wish(context.registry.chains, order)
    except InvalidError:
        # What was started before does not depend on what can be started now: a token may have gone.
        if claim is not None:
            async with db.autocommit() as conn:
                if (before := await find_replayed(conn, claim)) is not None:
                    return await find_exchange(conn, actor.project_pk, before)
        raise
    return await _check_order(db, context, actor, wish, claim)


async def _check_order(
    db: Database, context: ExchangeContext, actor: Actor, wish: Wish, claim: Claim | None
) -> Asked | FoundExchange:
    """Check everything by what the database says now, or return what the key has led to."""
    owner = _owner(actor)
    facts = await read_facts(db, owner, wish, claim)
    if claim is not None and facts.used_key is not None:
        async with db.autocommit() as conn:
            return await find_exchange(conn, actor.project_pk, refuse_other_use(claim, facts.used_key))
    return structs.replace(await _checked(db, context, owner, wish, facts), claim=claim)


async def _checked(  # noqa: PLR0913  who wants what
    db: Database, context: ExchangeContext, owner: Owner, wish: Wish, facts: Facts, *, is_quote: bool = False
) -> Asked:
    if not facts.is_active:
        raise project_inactive()
    check(context, facts.settings, facts, owner, wish, is_quote=is_quote)
    if facts.lacks_wallets:
        async with db.autocommit() as conn:
            facts = await with_wallets(conn, context, facts, owner, wish)
    prepared = prepared_of(facts.settings, facts, owner, wish, made_for=MadeFor.MANUAL)
    return Asked(settings=facts.settings, settings_mark=facts.settings_mark, prepared=prepared)


def _owner(actor: Actor) -> Owner:
    return Owner(project_pk=actor.project_pk, merchant_pk=actor.merchant_pk, mode=actor.mode, asked_by=actor.asked_by)


async def finish(  # noqa: PLR0913, PLR0917  who asked for what, and from where
    db: Database, context: ExchangeContext, actor: Actor, asked: Asked, offer: Offer, origin: Origin
) -> Made[FoundExchange]:
    """Start the exchange that was offered, or return the one that a twin with the same key has started meanwhile.

    All is checked again that may have changed while the providers were asked: the statement writes nothing unless what
    was read holds still. Where it does not, it is read again, and decides. After that, publish the hints ``outbound``
    and ``exchanges``.
    """
    txn_id = context.ids.new("xch")
    tries = 0
    while tries < TRIES_MAX:
        new = NewExchange(txn_id=txn_id, settings=asked.settings, prepared=asked.prepared, offer=offer)
        async with db.autocommit() as conn:
            tried = await start_alone(conn, context, new, asked.settings_mark, asked.claim, origin)
        if tried.row is not None:
            has_committed.set(True)
            return Made(FoundExchange(**structs.asdict(tried.row), payout_id=None), replayed=False)
        found = await _check_order(db, context, actor, asked.prepared.wish, asked.claim)
        if isinstance(found, FoundExchange):
            return Made(found, replayed=True)
        is_same = found.prepared.terms == asked.prepared.terms
        if not is_same or not still_holds(offer, found.prepared.wish, asked.settings, found.settings):
            break
        # An account is missing once at most, and that says nothing of the terms.
        tries += tried.has_pending
        async with db.autocommit() as conn:
            await tried.mend(conn, asked.prepared)
        asked = found
    raise UnavailableError("EXCHANGE_UNAVAILABLE", "The operator has just changed the terms. Ask again.")
