"""What the API shows of money that no collection takes to a main wallet yet, and of why."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.collections import UncollectedReason
from cambist.domain.money import format_rate, format_units
from cambist.services.chain_pauses import Pausable, Pauses
from cambist.services.sending.collections import explaining
from cambist.services.sending.collections.explaining import AtAddress, UncollectedRow, UncollectedSum
from cambist.services.sending.queue import listing as queue
from cambist.services.sending.queue.reasons import why
from cambist_web.context import Web


class WishWaitsView(Struct, frozen=True, kw_only=True, rename="camel"):
    """Why somebody's wish has no answer yet. `since` is when the check was that could not give one."""

    code: str
    text: str
    since: datetime | None


class UncollectedView(Struct, frozen=True, kw_only=True, rename="camel"):
    """One token on one address, and why it stays there: as it was judged at `judgedAt`, and not otherwise since.

    `valueUsd` and `feeUsd` are of then, and are renewed when they have moved by more than a tenth. `askedAt` is set
    while somebody wants it to be collected at the next check, `wishWaitsFor` is why that has no answer yet, and
    `refusal` why the last check that was asked did not.
    """

    uncollected_id: str
    merchant_id: str
    merchant_name: str
    chain: str
    token: str
    contract_address: str | None
    amount: str
    address: str
    purpose: str
    payment_id: str | None
    account_id: str | None
    reason: UncollectedReason
    text: str
    value_usd: str | None
    fee_usd: str | None
    until: datetime | None
    sending_paused: bool
    judged_at: datetime
    asked_at: datetime | None
    max_fee_share_bps: int | None
    wish_waits_for: WishWaitsView | None
    refusal: UncollectedReason | None
    refused_at: datetime | None
    created_at: datetime


class UncollectedSumView(Struct, frozen=True, kw_only=True, rename="camel"):
    """What stays on addresses of a chain for one reason, of one token. `since` is when the oldest was confirmed."""

    chain: str
    token: str
    contract_address: str | None
    reason: UncollectedReason
    text: str
    amount: str
    addresses: int
    value_usd: str
    unpriced: int
    since: datetime


class AtAddressView(Struct, frozen=True, kw_only=True, rename="camel"):
    """Deposits of one token at an address. `state` is `confirming`, `uncollected`, or `collecting` by `intentId`.

    `code` and `text` say what they wait for; `uncollectedId` is there where they can be collected now, and what follows
    is then as it was last judged.
    """

    state: str
    merchant_id: str
    merchant_name: str
    mode: str
    chain: str
    token: str
    contract_address: str | None
    amount: str
    deposits: int
    address: str
    purpose: str
    code: str
    text: str
    uncollected_id: str | None
    intent_id: str | None
    value_usd: str | None
    fee_usd: str | None
    asked_at: datetime | None
    max_fee_share_bps: int | None
    wish_waits_for: WishWaitsView | None
    refusal: UncollectedReason | None
    refused_at: datetime | None


def uncollected_view(one: UncollectedRow, pauses: Pauses) -> UncollectedView:
    paused = (one.chain, Pausable.SENDING) in pauses
    return UncollectedView(
        uncollected_id=one.uncollected_id,
        merchant_id=one.merchant_id,
        merchant_name=one.merchant_name,
        chain=one.chain,
        token=one.token,
        contract_address=one.contract,
        amount=format_units(one.units, one.decimals),
        address=one.address,
        purpose=one.purpose,
        payment_id=one.payment_id,
        account_id=one.account_id,
        reason=one.reason,
        text=one.text,
        value_usd=_usd(one.value_usd),
        fee_usd=_usd(one.fee_usd),
        until=one.until,
        sending_paused=paused,
        judged_at=one.judged_at,
        asked_at=one.asked_at,
        max_fee_share_bps=one.asked_fee_share_bps,
        wish_waits_for=_wish_waits_for(one, paused=paused),
        refusal=one.refusal,
        refused_at=one.refused_at,
        created_at=one.created_at,
    )


def _wish_waits_for(one: UncollectedRow | AtAddress, *, paused: bool) -> WishWaitsView | None:
    waits = explaining.wish_waits_for(one, paused=paused)
    return None if waits is None else WishWaitsView(code=waits.code, text=waits.text, since=waits.since)


def _usd(value: Decimal | None) -> str | None:
    return None if value is None else format_rate(round(value, 4))


def sum_view(one: UncollectedSum) -> UncollectedSumView:
    return UncollectedSumView(
        chain=one.chain,
        token=one.token,
        contract_address=one.contract,
        reason=one.reason,
        text=explaining.text_of(one.reason, None),
        amount=format_units(one.units, one.decimals),
        addresses=one.addresses,
        value_usd=format_rate(round(one.value_usd, 4)),
        unpriced=one.unpriced,
        since=one.since,
    )


async def at_address(web: Web, conn: AsyncConnection, one: AtAddress, pauses: Pauses) -> AtAddressView:
    paused = one.mode == "live" and (one.chain, Pausable.SENDING) in pauses
    code, text = await _why(web, conn, one, paused=paused)
    return AtAddressView(
        state=one.state,
        merchant_id=one.merchant_id,
        merchant_name=one.merchant_name,
        mode=one.mode,
        chain=one.chain,
        token=one.token,
        contract_address=one.contract,
        amount=format_units(one.units, one.decimals),
        deposits=one.deposits,
        address=one.address,
        purpose=one.purpose,
        code=code,
        text=text,
        uncollected_id=one.uncollected_id,
        intent_id=one.intent_id,
        value_usd=_usd(one.value_usd),
        fee_usd=_usd(one.fee_usd),
        asked_at=one.asked_at,
        max_fee_share_bps=one.asked_fee_share_bps,
        wish_waits_for=_wish_waits_for(one, paused=paused),
        refusal=one.refusal,
        refused_at=one.refused_at,
    )


async def _why(web: Web, conn: AsyncConnection, one: AtAddress, *, paused: bool) -> tuple[str, str]:
    """Return what it waits for: a word for programs, a sentence for people."""
    if one.state == "confirming":
        depth = 0 if one.reached is None else max(0, one.reached - one.height)
        return "confirming", f"The newest of it has {depth} of {one.confirmations} confirmations."
    if one.state == "collecting" and one.intent_id is not None:
        intent = await queue.find_intent(conn, one.intent_id)
        txs = (await queue.txs_of(conn, [intent])).get(intent.pk, [])
        info = web.gateway.registry.chains.get(one.chain)
        waits = why(intent, txs, info, paused=paused, now=web.clock.now())
        return waits.code, waits.text
    if one.mode == "sandbox":
        return "simulated", "What is simulated is collected when something leaves the main wallet."
    if paused:
        return explaining.PAUSED, explaining.PAUSED_TEXT
    if one.reason is None:
        return explaining.NOT_LOOKED_AT, explaining.NOT_LOOKED_AT_TEXT
    return one.reason, explaining.text_of(one.reason, one.detail)
