"""Makes a payment: an address that was never used before, and one statement that stores everything, or nothing."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from msgspec import Struct, structs

from cambist.db.direct import Record
from cambist.db.engine import Database
from cambist.db.named import Statement
from cambist.domain.usage import Operation
from cambist.ports import Clock, Ids
from cambist.registry import Registry
from cambist.services.actor import Actor
from cambist.services.addresses.account_keys import IndexLeaser, derived
from cambist.services.addresses.macs import AddressMacs
from cambist.services.chain_pauses import ChainPauses
from cambist.services.chains.rules import TokenRules
from cambist.services.errors import ServiceError, project_inactive
from cambist.services.idempotency import TAKE_KEY, Claim, by_value, choose_key, claim_of, find_replayed
from cambist.services.platform import PlatformSettingsCache
from cambist.services.pricing.prices import RateBook
from cambist.services.pricing.quotes import FIAT
from cambist.settings import WebhookTargets

from .quote import Asking, asked_for
from .requests import CreatePayment, check
from .views import COLUMNS, PaymentView, payment_view

OPERATION = "payment"


class PaymentContext(Struct, frozen=True, kw_only=True):
    """What making payments needs, for the life of the process."""

    db: Database
    registry: Registry
    pauses: ChainPauses
    token_rules: TokenRules
    rates: RateBook
    leaser: IndexLeaser
    platform: PlatformSettingsCache
    clock: Clock
    ids: Ids
    macs: AddressMacs
    targets: WebhookTargets


class Created(Struct, frozen=True):
    """A payment, and whether it was there before."""

    payment: PaymentView
    replayed: bool


async def create_payment(
    context: PaymentContext, actor: Actor, request: CreatePayment, header_key: str | None
) -> Created:
    """Make the payment, or return the one that the same idempotency key made before."""
    key = choose_key(header_key, request.idempotency_key)
    metadata = check(request, context.targets)
    claim = None if key is None else claim_of(actor, OPERATION, key, by_value(request))
    try:
        values = await _values(context, actor, request)
    except ServiceError:
        # What was made before does not depend on what can be made now: a price may have gone, or a chain.
        if claim is not None and (before := await _replay(context.db, claim)) is not None:
            return Created(payment_view(before, context.macs), replayed=True)
        raise
    values["metadata"] = metadata
    if claim is None:
        row, before = await context.db.fetch_row(*_WITHOUT_KEY.bind(values)), None
    else:
        values |= structs.asdict(claim) | {"resource_id": values["payment_id"]}
        row = await context.db.fetch_row(*_WITH_KEY.bind(values))
        before = None if row is not None else await _replay(context.db, claim)
    if row is not None:
        return Created(payment_view(row, context.macs), replayed=False)
    if before is not None:
        return Created(payment_view(before, context.macs), replayed=True)
    raise project_inactive()


async def _values(context: PaymentContext, actor: Actor, request: CreatePayment) -> dict[str, Any]:
    """Return what is stored, under the statement's names."""
    asking = Asking(
        chains=context.registry.chains,
        token_rules=context.token_rules,
        pauses=await context.pauses.get(),
        rates=context.rates,
    )
    asset, priced = await asked_for(asking, actor, request)
    family = context.registry.families[asset.chain.family]
    weights = (await context.platform.get()).cpt.weights
    leased = await context.leaser.lease(actor.merchant_pk, actor.mode, family.coin_type)
    now = context.clock.now()
    values = {
        "project": actor.project_pk,
        "mode": actor.mode,
        "payment_id": context.ids.new("pay"),
        "public_id": context.ids.new("pub"),
        "chain": asset.chain.id,
        "token": asset.token.symbol,
        "contract": asset.token.contract,
        "decimals": asset.token.decimals,
        "address": derived(family, leased.xpub, change=0, index=leased.index),
        "family": family.name,
        "account_index": leased.account_index,
        "address_index": leased.index,
        "pricing_mode": request.pricing_mode,
        "is_fiat": request.pricing_mode == FIAT,
        "amount": priced.amount,
        "fiat_currency": priced.fiat_currency,
        "exchange_rate": priced.rate,
        "rate_source": priced.source,
        "expected_units": Decimal(priced.expected),
        "required_confirmations": max(1, asset.chain.confirmations),
        "order_id": request.order_id,
        "webhook_url": request.webhook_url,
        "success_url": request.success_url,
        "cancel_url": request.cancel_url,
        "customer_name": request.customer_name,
        "customer_email": request.customer_email,
        "expires_at": now + timedelta(minutes=request.expires_in_minutes),
        "usage_weight": weights.of(Operation.PAYMENT, asset.chain.id),
        "now": now,
    }
    values["address_mac"] = context.macs.of(values)
    return values


async def _replay(db: Database, claim: Claim) -> Record | None:
    """Return the payment that the key made before. It is committed: its twin's statement has ended."""
    async with db.autocommit() as conn:
        payment_id = await find_replayed(conn, claim)
        if payment_id is None:
            return None
        found = await conn.exec_driver_sql(f"SELECT {COLUMNS} FROM payments WHERE payment_id = $1", (payment_id,))  # noqa: S608  constants
        return found.mappings().one()


# The project's row gives the terms that hold at this moment. Then comes the key: where it exists, it is not
# inserted, and nothing follows; where a twin is inserting it, this statement waits until the twin has ended.
_PROJECT = """
WITH project AS (
    SELECT id, merchant_pk, underpayment_tolerance_bps, grace_s FROM projects
    WHERE id = :project AND mode = :mode AND is_active
)"""

_CLAIMED = f", claimed AS ({TAKE_KEY.format(source=' FROM project')})"

_STORED = """, payment AS (
    INSERT INTO payments (
        project_pk, merchant_pk, mode, tolerance_bps, grace_s, scope, payment_id, public_id, chain, token, contract,
        decimals, address, pricing_mode, amount, fiat_currency, exchange_rate, rate_source, expected_units,
        required_confirmations, order_id, webhook_url, success_url, cancel_url, customer_name, customer_email,
        metadata, expires_at, created_at, updated_at, address_mac
    )
    SELECT id, merchant_pk, :mode, underpayment_tolerance_bps, CASE WHEN :is_fiat THEN 0 ELSE grace_s END,
        CASE WHEN :mode = 'sandbox' THEN id ELSE 0 END, :payment_id, :public_id, :chain, :token, :contract,
        :decimals, :address, :pricing_mode, :amount, :fiat_currency, :exchange_rate, :rate_source, :expected_units,
        :required_confirmations, :order_id, :webhook_url, :success_url, :cancel_url, :customer_name, :customer_email,
        :metadata::json, :expires_at, :now, :now, :address_mac
    FROM {source}
    RETURNING *
), address AS (
    INSERT INTO addresses (mode, family, address, merchant_pk, payment_pk, account_index, change, address_index)
    SELECT mode, :family, address, merchant_pk, id, :account_index, 0, :address_index FROM payment
), metered AS (
    INSERT INTO usage_records (merchant_pk, mode, operation, chain, reference, weight, created_at)
    SELECT merchant_pk, mode, 'payment', chain, payment_id, :usage_weight::bigint, created_at FROM payment
    WHERE :usage_weight::bigint > 0
)
SELECT {columns} FROM payment
"""

_WITHOUT_KEY = Statement(_PROJECT + _STORED.format(source="project", columns=COLUMNS))
_WITH_KEY = Statement(_PROJECT + _CLAIMED + _STORED.format(source="project CROSS JOIN claimed", columns=COLUMNS))
