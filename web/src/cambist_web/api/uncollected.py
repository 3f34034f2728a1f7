"""Money on addresses that no collection takes to a main wallet yet: why, and that it is collected now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Annotated

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Meta, Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.collections import UncollectedReason
from cambist.domain.money import format_rate, format_units
from cambist.services.audit.entries import Action
from cambist.services.chain_pauses import Pausable, Pauses
from cambist.services.listing import Listed, Part, Period, Sort
from cambist.services.oversight.finding import spellings
from cambist.services.sending.collections import explaining
from cambist.services.sending.collections.explaining import AtAddress, UncollectedRow, UncollectedSum
from cambist.services.sending.queue import listing as queue
from cambist.services.sending.queue.reasons import why
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, Body, CursorPageAnswer, NonEmptyFilter

from .admin_webhooks import MerchantFilter

ReasonFilter = Annotated[UncollectedReason | None, QueryParameter()]


class UncollectedView(Struct, frozen=True, kw_only=True, rename="camel"):
    """One token on one address, and why it stays there: as it was judged at `judgedAt`, and not otherwise since.

    `valueUsd` and `feeUsd` are of then, and are renewed when they have moved by more than a tenth. `askedAt` is set
    while somebody wants it to be collected at the next look, and `refusal` is why the last look that was asked did not.
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
    refusal: UncollectedReason | None
    refused_at: datetime | None
    created_at: datetime


class UncollectedList(CursorPageAnswer, frozen=True, kw_only=True):
    """A page of what is not collected."""

    uncollected: Sequence[UncollectedView]


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


class UncollectedSums(Answer, frozen=True, kw_only=True):
    """What is not collected, summed up."""

    sums: Sequence[UncollectedSumView]


class UncollectedAnswer(Answer, frozen=True, kw_only=True):
    """What is not collected."""

    uncollected: UncollectedView


class AtAddressView(Struct, frozen=True, kw_only=True, rename="camel"):
    """Deposits of one token at an address. `state` is `confirming`, `uncollected`, or `collecting` by `intentId`.

    `code` and `text` say what they wait for; `uncollectedId` is there where they can be collected now, and what follows
    is then as it was last judged.
    """

    state: str
    merchant_id: str
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
    refusal: UncollectedReason | None
    refused_at: datetime | None


class AddressMoney(Answer, frozen=True, kw_only=True):
    """All that is at an address and in no main wallet yet, by chain and token."""

    deposits: Sequence[AtAddressView]


class CollectNow(Body, frozen=True, kw_only=True):
    """How much of it the fee may be, in hundredths of a percent: less than all. The rule's share where left out."""

    max_fee_share_bps: Annotated[int, Meta(ge=0, le=9_999)] | None = None


class UncollectedMoney(Controller):
    tags = ("Operator",)

    @get("/uncollected", summary="List what is not collected", opt=permits("money.read"))
    async def list(  # noqa: PLR0913  every query parameter is one
        self,
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        merchant_id: MerchantFilter = None,
        chain: NonEmptyFilter = None,
        token: NonEmptyFilter = None,
        reason: ReasonFilter = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[UncollectedList]:
        """Return confirmed money of all merchants on addresses of live chains, and why it was not collected yet."""

        async def read(conn: AsyncConnection, part: Part) -> Listed[UncollectedView]:
            wanted = {"merchant_id": merchant_id, "chain": chain, "token": token}
            found = await explaining.list_uncollected(conn, part, reason=reason, period=period, **wanted)
            return found.shown_as(lambda row: _view(row, pauses))

        pauses = await web.gateway.pauses.get()
        filters = (merchant_id, chain, token, reason, period)
        query = asked.of(web, "uncollected", "operator", sort=sort, filters=filters)
        return await query.answer(UncollectedList, read)

    @get("/uncollected/sums", summary="Sum up what is not collected", opt=permits("money.read"))
    async def sums(self, web: NamedDependency[Web]) -> UncollectedSums:
        """Return how much of each token stays on addresses of each live chain, and for which reason."""
        async with web.db.autocommit() as conn:
            found = await explaining.sum_uncollected(conn)
        return UncollectedSums(sums=[_sum_view(one) for one in found])

    @post(
        "/uncollected/{uncollected_id:str}/collect",
        status_code=200,
        summary="Collect it now",
        opt=permits("collections.ask"),
    )
    async def collect(
        self,
        uncollected_id: FromPath[str],
        data: JSONBody[CollectNow],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> UncollectedAnswer:
        """Have it collected at the engine's next look, whatever its size and age, or switched off or failed before.

        As that look finds them, the fee may be `maxFeeShareBps` of it at most, and is never as much as it is worth. If
        it would be more, it stays: `askedAt` is null again, and `refusal` says why. Once it is on its way there is
        nothing here any more, and a repetition changes nothing; then the chain's ceiling bounds its fee, as any other.
        """
        async with web.db.transaction() as conn:
            found, is_new = await explaining.ask(conn, uncollected_id, data.max_fee_share_bps, web.clock.now())
            if is_new:
                told = {"chain": found.chain, "address": found.address, "max_fee_share_bps": data.max_fee_share_bps}
                await audit.record(
                    conn, Action.COLLECTION_ASKED, subject=uncollected_id, merchant_id=found.merchant_id, **told
                )
        await web.gateway.hints.publish("outbound")
        return UncollectedAnswer(uncollected=_view(found, await web.gateway.pauses.get()))

    @get("/addresses/{address:str}", summary="Read what is at an address", opt=permits("money.read"))
    async def read(self, address: FromPath[str], web: NamedDependency[Web]) -> AddressMoney:
        """Return what came to an address of a payment or an account and is in no main wallet, and what it waits for."""
        registry, pauses = web.gateway.registry, await web.gateway.pauses.get()
        async with web.db.transaction() as conn:
            found = await explaining.read_address(conn, spellings(registry, address), list(registry.families))
            views = [await _at_address(web, conn, one, pauses) for one in found]
        return AddressMoney(deposits=views)


def _view(one: UncollectedRow, pauses: Pauses) -> UncollectedView:
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
        sending_paused=(one.chain, Pausable.SENDING) in pauses,
        judged_at=one.judged_at,
        asked_at=one.asked_at,
        max_fee_share_bps=one.asked_fee_share_bps,
        refusal=one.refusal,
        refused_at=one.refused_at,
        created_at=one.created_at,
    )


def _usd(value: Decimal | None) -> str | None:
    return None if value is None else format_rate(round(value, 4))


def _sum_view(one: UncollectedSum) -> UncollectedSumView:
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


async def _at_address(web: Web, conn: AsyncConnection, one: AtAddress, pauses: Pauses) -> AtAddressView:
    code, text = await _why(web, conn, one, paused=one.mode == "live" and (one.chain, Pausable.SENDING) in pauses)
    return AtAddressView(
        state=one.state,
        merchant_id=one.merchant_id,
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
        return "paused", "An operator has paused sending on this chain, so nobody looks at it."
    if one.reason is None:
        return "not_looked_at", "No worker has looked at it yet: that takes a moment, or none sends on this chain."
    return one.reason, explaining.text_of(one.reason, one.detail)


controllers = [admin_routes("/api/admin/collections", UncollectedMoney)]
