"""The operators' queue: all that is to be sent, why it waits, and what may be done about it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.intents import IntentKind
from cambist.domain.money import format_units
from cambist.plugin import ChainInfo, Units
from cambist.services.audit.entries import Action
from cambist.services.chain_pauses import Pausable, Pauses
from cambist.services.errors import ConflictError
from cambist.services.listing import Listed, Part, Period, Sort
from cambist.services.payouts.cancel import cancel_intent
from cambist.services.pricing.quotes import AmountText, read_units
from cambist.services.sending.queue import acts, listing
from cambist.services.sending.queue.listing import QueuedIntent, QueuedTx, State
from cambist.services.sending.queue.reasons import why
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, Body, CursorPageAnswer, NonEmptyFilter
from cambist_web.sending import changed_on

MINUTES_MAX = 525_600
ModeFilter = Annotated[str, QueryParameter(pattern="^(live|sandbox)$")]
KindFilter = Annotated[IntentKind | None, QueryParameter()]
StateFilter = Annotated[State | None, QueryParameter(name="state")]
MerchantFilter = Annotated[str | None, QueryParameter(name="merchantId", min_length=1, max_length=64)]
AgeFilter = Annotated[int | None, QueryParameter(name="olderThanMinutes", ge=0, le=MINUTES_MAX)]


class WaitsForView(Struct, frozen=True, kw_only=True, rename="camel"):
    """Why it has not happened yet. `until` is when it is looked at again, where it waits."""

    code: str
    text: str
    until: datetime | None


class OutboundTxView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A transaction of it. `role` is `cancel` for one that only uses the nonce up. Fees are in the chain's own coin.

    `maxFee` is what it may cost, `fee` what it has cost; `tries` how often it was broadcast, last at `triedAt`, and
    `sentAt` when a node first took it. `state` is `stored`, `sent`, `mined`, `final`, or `gone`.
    """

    tx_hash: str
    role: str
    state: str
    nonce: int | None
    max_fee: str | None
    fee: str | None
    height: int | None
    tries: int
    created_at: datetime
    sent_at: datetime | None
    tried_at: datetime | None


class FeeRaiseView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A wish for a higher fee: since when, `maxFee` at most, and why the last one was not met."""

    asked_at: datetime | None
    max_fee: str | None
    refusal: str | None


class OutboundView(Struct, frozen=True, kw_only=True, rename="camel"):
    """Something that is to be sent. `amount` is null for a sweep, which is one transaction for many collections.

    `payoutId` is of the payout, refund or withdrawal that it is for, `txnId` of the swap or bridge. `behind` is the
    `intentId` of what comes before it. `waitsFor` is null where it has ended.
    """

    intent_id: str
    kind: IntentKind
    state: str
    mode: str
    chain: str
    merchant_id: str | None
    merchant_name: str | None
    payout_id: str | None
    txn_id: str | None
    token: str
    contract_address: str | None
    amount: str | None
    from_address: str
    to_address: str
    to_tag: str | None
    asked_by: str
    age_seconds: int
    waits_for: WaitsForView | None
    behind: str | None
    nonce: int | None
    transactions: Sequence[OutboundTxView]
    fee_raise: FeeRaiseView | None
    cancel_asked_at: datetime | None
    created_at: datetime
    updated_at: datetime


class OutboundAnswer(Answer, frozen=True, kw_only=True):
    """Something that is to be sent, or was."""

    outbound: OutboundView


class OutboundList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of what is to be sent."""

    outbound: Sequence[OutboundView]


class RaiseFee(Body, frozen=True, kw_only=True):
    """How much the transaction may cost in all, in the chain's own coin; up to the chain's ceiling where left out."""

    max_fee: AmountText | None = None


class Outbound(Controller):
    tags = ("Operator",)

    @get("/", summary="List what is to be sent", opt=permits("outbound.read"))
    async def list(  # noqa: PLR0913  every query parameter is one
        self,
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        mode: ModeFilter = "live",
        chain: NonEmptyFilter = None,
        kind: KindFilter = None,
        is_in: StateFilter = None,
        reason: NonEmptyFilter = None,
        merchant_id: MerchantFilter = None,
        older_than_minutes: AgeFilter = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[OutboundList]:
        """Return all that is open, of everybody and of the gateway itself: why each waits, and how far it has come."""
        now = web.clock.now()
        before = None if older_than_minutes is None else now - timedelta(minutes=older_than_minutes)
        # Read beforehand: it may take a connection of its own.
        pauses = await web.gateway.pauses.get()

        async def read(conn: AsyncConnection, part: Part) -> Listed[OutboundView]:
            found = await listing.list_queue(
                conn,
                part,
                mode=mode,
                chain=chain,
                kind=kind,
                state=is_in,
                reason=reason,
                merchant_id=merchant_id,
                before=before,
                period=period,
            )
            txs = await listing.txs_of(conn, found.items)
            return found.shown_as(lambda one: _view(web, one, txs.get(one.pk, []), pauses, now))

        filters = (mode, chain, kind, is_in, reason, merchant_id, older_than_minutes, period)
        return await asked.of(web, "outbound", "operator", sort=sort, filters=filters).answer(OutboundList, read)

    @get("/{intent_id:str}", summary="Read what is to be sent", opt=permits("outbound.read"))
    async def read(self, intent_id: FromPath[str], web: NamedDependency[Web]) -> OutboundAnswer:
        """Return one, also when it has ended, with all its transactions."""
        return await _answer(web, intent_id)

    @post("/{intent_id:str}/retry", status_code=200, summary="Look at it now", opt=permits("outbound.change"))
    async def retry(
        self, intent_id: FromPath[str], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> OutboundAnswer:
        """Have what waits be looked at now, whatever for, and what is sent be broadcast once more."""
        async with web.db.transaction() as conn:
            one = await listing.find_intent(conn, intent_id)
            await acts.retry(conn, one, web.clock.now())
            await audit.record(conn, Action.OUTBOUND_RETRIED, subject=intent_id, merchant_id=one.merchant_id)
        await changed_on(web, one.mode, one.scope, one.chain, "exchanges")
        return await _answer(web, intent_id)

    @post("/{intent_id:str}/cancel", status_code=200, summary="Cancel what waits", opt=permits("outbound.change"))
    async def cancel(
        self, intent_id: FromPath[str], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> OutboundAnswer:
        """Cancel what waits to be sent for a merchant: it is not sent any more, and its money goes back.

        What has a nonce is refused with `ALREADY_SENT`, what is the gateway's own with `NOT_CANCELLABLE`.
        """
        async with web.db.transaction() as conn:
            one = await listing.find_intent(conn, intent_id)
            if await cancel_intent(conn, intent_id, web.clock.now()):
                told = {"payout": one.payout_id, "exchange": one.txn_id}
                await audit.record(conn, Action.CANCEL_ASKED, subject=intent_id, merchant_id=one.merchant_id, **told)
        await changed_on(web, one.mode, one.scope, one.chain)
        return await _answer(web, intent_id)

    @post("/{intent_id:str}/raise-fee", status_code=200, summary="Raise a fee", opt=permits("outbound.change"))
    async def raise_fee(
        self,
        intent_id: FromPath[str],
        data: JSONBody[RaiseFee],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> OutboundAnswer:
        """Have its transaction be replaced, under the same nonce, by one that pays more.

        Up to the chain's ceiling; with `maxFee` beyond it, so that the transaction costs that at most. The signer's own
        caps of fees hold all the same. `feeRaise` says what became of it.
        """
        now = web.clock.now()
        async with web.db.transaction() as conn:
            one = await listing.find_intent(conn, intent_id)
            info = web.gateway.registry.chains.get(one.chain)
            if info is None:
                raise ConflictError("FEE_NOT_RAISABLE", f"{one.chain} is not configured, so nothing is sent on it.")
            fee_max = None if data.max_fee is None else read_units(data.max_fee, info.native, "maxFee")
            txs = (await listing.txs_of(conn, [one])).get(one.pk, [])
            await acts.ask_to_raise(conn, one, txs, info, fee_max, now)
            told = {"chain": one.chain, "max_fee": data.max_fee}
            await audit.record(conn, Action.FEE_RAISE_ASKED, subject=intent_id, merchant_id=one.merchant_id, **told)
        await web.gateway.hints.publish("outbound")
        return await _answer(web, intent_id)


async def _answer(web: Web, intent_id: str) -> OutboundAnswer:
    pauses = await web.gateway.pauses.get()
    async with web.db.transaction() as conn:
        one = await listing.find_intent(conn, intent_id)
        txs = (await listing.txs_of(conn, [one])).get(one.pk, [])
    return OutboundAnswer(outbound=_view(web, one, txs, pauses, web.clock.now()))


def _view(web: Web, one: QueuedIntent, txs: Sequence[QueuedTx], pauses: Pauses, now: datetime) -> OutboundView:
    info = web.gateway.registry.chains.get(one.chain)
    waits_for = None
    if one.state in {"waiting", "sending"}:
        paused = one.mode == "live" and (one.chain, Pausable.SENDING) in pauses
        found = why(one, txs, info, paused=paused, now=now)
        until = one.due_at if one.state == "waiting" and one.due_at > now else None
        waits_for = WaitsForView(code=found.code, text=found.text, until=until)
    return OutboundView(
        intent_id=one.intent_id,
        kind=one.kind,
        state=one.shown_state if waits_for is not None else one.state,
        mode=one.mode,
        chain=one.chain,
        merchant_id=one.merchant_id,
        merchant_name=one.merchant_name,
        payout_id=one.payout_id,
        txn_id=one.txn_id,
        token=one.token,
        contract_address=one.contract,
        amount=None if one.kind is IntentKind.SWEEP else format_units(one.units, one.decimals),
        from_address=one.source,
        to_address=one.to_address,
        to_tag=one.tag,
        asked_by=one.asked_by,
        age_seconds=int((now - one.created_at).total_seconds()),
        waits_for=waits_for,
        behind=one.behind,
        nonce=one.sequence,
        transactions=[_tx_view(tx, info) for tx in txs],
        fee_raise=_raise_view(one, info),
        cancel_asked_at=one.cancel_asked_at,
        created_at=one.created_at,
        updated_at=one.updated_at,
    )


def _tx_view(tx: QueuedTx, info: ChainInfo | None) -> OutboundTxView:
    return OutboundTxView(
        tx_hash=tx.tx_id,
        role=tx.role,
        state=tx.state,
        nonce=tx.sequence,
        max_fee=_in_coin(tx.fee.cost_max, info),
        fee=_in_coin(tx.fee_paid, info),
        height=tx.height,
        tries=tx.tries,
        created_at=tx.created_at,
        sent_at=tx.sent_at,
        tried_at=tx.tried_at,
    )


def _raise_view(one: QueuedIntent, info: ChainInfo | None) -> FeeRaiseView | None:
    if one.raise_asked_at is None and one.raise_refusal is None:
        return None
    return FeeRaiseView(
        asked_at=one.raise_asked_at, max_fee=_in_coin(one.raise_fee_max, info), refusal=one.raise_refusal
    )


def _in_coin(units: Units | None, info: ChainInfo | None) -> str | None:
    return None if units is None or info is None else format_units(units, info.native.decimals)


controllers = [admin_routes("/api/admin/outbound", Outbound)]
