"""The operators' queue: all that is to be sent, why it waits, and what may be done about it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Meta
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.intents import IntentKind
from cambist.services.audit.entries import Action
from cambist.services.chain_pauses import Pausable
from cambist.services.errors import ConflictError, check_text
from cambist.services.listing import Listed, Part, Period, Sort
from cambist.services.payouts.cancel import cancel_intent
from cambist.services.pricing.quotes import AmountText, read_units
from cambist.services.sending.queue import acts, listing
from cambist.services.sending.queue.listing import State
from cambist.services.sending.queue.waits import Seen
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.outbound_views import OutboundView, outbound_view
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, Body, CursorPageAnswer, NonEmptyFilter
from cambist_web.sending import changed_on

MINUTES_MAX = 525_600
ModeFilter = Annotated[str, QueryParameter(pattern="^(live|sandbox)$")]
KindFilter = Annotated[IntentKind | None, QueryParameter()]
StateFilter = Annotated[State | None, QueryParameter(name="state")]
MerchantFilter = Annotated[str | None, QueryParameter(name="merchantId", min_length=1, max_length=64)]
AgeFilter = Annotated[int | None, QueryParameter(name="olderThanMinutes", ge=0, le=MINUTES_MAX)]


class OutboundAnswer(Answer, frozen=True, kw_only=True):
    """Something that is to be sent, or was."""

    outbound: OutboundView


class OutboundList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of what is to be sent."""

    outbound: Sequence[OutboundView]


class RaiseFee(Body, frozen=True, kw_only=True):
    """How much the transaction may cost in all, in the chain's own coin; up to the chain's ceiling where left out."""

    max_fee: AmountText | None = None


class Settle(Body, frozen=True, kw_only=True):
    """The transaction that used the nonce of what was signed; where there are none, what was signed itself."""

    tx_hash: Annotated[str, Meta(min_length=1, max_length=128)]


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
        chains = web.gateway.registry.chains
        seen = Seen(
            sendable=sorted(one.id for one in chains.values() if mode != "live" or one.availability == "live"),
            paused=sorted(chain for chain, what in pauses if what is Pausable.SENDING),
            now=now,
        )

        async def read(conn: AsyncConnection, part: Part) -> Listed[OutboundView]:
            found = await listing.list_queue(
                conn,
                part,
                mode=mode,
                seen=seen,
                chain=chain,
                kind=kind,
                state=is_in,
                reason=reason,
                merchant_id=merchant_id,
                before=before,
                period=period,
            )
            txs = await listing.txs_of(conn, found.items)
            return found.shown_as(lambda one: outbound_view(web, one, txs.get(one.pk, []), pauses, now))

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

    @post(
        "/{intent_id:str}/settle",
        status_code=200,
        summary="End what may have been sent",
        opt=permits("outbound.settle"),
    )
    async def settle(
        self,
        intent_id: FromPath[str],
        data: JSONBody[Settle],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> OutboundAnswer:
        """Name the transaction by which a transfer ends that is to be cancelled and may have been sent.

        The engine looks at it on the chain: mined, final, of the same sender and nonce. All endpoints that answer must
        say so, and more than one where there are several. Where it is the transfer
        itself, that completes; where it is something else, what was signed can never be mined, and the money goes back.
        Otherwise nothing changes, and `settlement` says why.
        """
        check_text(data.tx_hash, "txHash")
        async with web.db.transaction() as conn:
            one = await listing.find_intent(conn, intent_id)
            if await acts.ask_to_settle(conn, one, data.tx_hash, web.clock.now()):
                told = {"chain": one.chain, "tx_hash": data.tx_hash, "payout": one.payout_id, "exchange": one.txn_id}
                await audit.record(conn, Action.SETTLE_ASKED, subject=intent_id, merchant_id=one.merchant_id, **told)
        await changed_on(web, one.mode, one.scope, one.chain)
        return await _answer(web, intent_id)


async def _answer(web: Web, intent_id: str) -> OutboundAnswer:
    pauses = await web.gateway.pauses.get()
    async with web.db.transaction() as conn:
        one = await listing.find_intent(conn, intent_id)
        txs = (await listing.txs_of(conn, [one])).get(one.pk, [])
    return OutboundAnswer(outbound=outbound_view(web, one, txs, pauses, web.clock.now()))


controllers = [admin_routes("/api/admin/outbound", Outbound)]
