"""Swaps and bridges: quoted, executed, listed, read. The same handlers serve programs and people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import UNSET

from cambist.bootstrap import exchange_context
from cambist.domain.exchanges import Kind, MadeFor, Status
from cambist.services.actor import Actor
from cambist.services.exchanges import execute, read
from cambist.services.exchanges.create import Prepared
from cambist.services.exchanges.execute import Order
from cambist.services.exchanges.offers import Offer, best_offer
from cambist.services.exchanges.owner import Owner
from cambist.services.exchanges.pairs import Pair, list_pairs
from cambist.services.exchanges.quoted import BridgeQuoteView, QuoteView, bridge_offer_view, offer_view, taken_view
from cambist.services.exchanges.read import ExchangeView, FoundExchange, exchange_view
from cambist.services.exchanges.requests import BridgeAsk, BridgeOrder, SwapAsk, SwapOrder, read_source
from cambist.services.idempotency import Made
from cambist.services.listing import Period, Sort
from cambist_web.auth import key_routes, needs, project_routes
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.origin import Audit
from cambist_web.schemas import Answer, CursorPageAnswer, Filter, MadeAnswer, idempotency_header
from cambist_web.sending import sent_on

Source = Annotated[str, QueryParameter(name="srcChain", min_length=1, max_length=64)]
SourceToken = Annotated[str, QueryParameter(name="srcToken", min_length=1, max_length=64)]
IdempotencyKey = Annotated[str | None, idempotency_header("The same key never exchanges twice.")]


class SwapQuoted(Answer, frozen=True, kw_only=True):
    """What a swap would bring now. It binds nobody."""

    quote: QuoteView


class BridgeQuoted(Answer, frozen=True, kw_only=True):
    """What a bridge would bring now. It binds nobody."""

    quote: BridgeQuoteView


class ExchangeMade(MadeAnswer, frozen=True, kw_only=True):
    """A swap or a bridge that has begun. `idempotent` is there, and true, where it had begun before.

    `quote` is the offer that was taken, `exchange` how far it has come.
    """

    txn_id: str
    quote: QuoteView
    exchange: ExchangeView


class ExchangeAnswer(Answer, frozen=True, kw_only=True):
    """A swap or a bridge."""

    exchange: ExchangeView


class ExchangeList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of swaps and bridges. `total` counts all pages."""

    exchanges: Sequence[ExchangeView]


class PairList(Answer, frozen=True, kw_only=True):
    """What a token can be exchanged for: a swap on its own chain, a bridge to another one."""

    pairs: Sequence[Pair]


class PlatformFees(Answer, frozen=True, kw_only=True):
    """What the platform keeps of swaps and bridges, and the slippage where none is said, in percent.

    `payoutSwapEnabled` says whether payouts may be paid out of another token.
    """

    swap_fee_percent: float
    bridge_fee_percent: float
    default_slippage: float
    auto_convert_markup_percent: float
    payout_swap_enabled: bool


async def offered(web: Web, actor: Actor, wanted: SwapAsk) -> tuple[Prepared, Offer]:
    """Return the best offer for what is wanted. No connection is open while providers are asked."""
    context = exchange_context(web.gateway)
    asked = await execute.ask(web.db, context, actor, wanted)
    return asked.prepared, await best_offer(context, asked.settings, asked.prepared.wish, asked.prepared.terms)


async def executed(web: Web, actor: Actor, audit: Audit, order: Order, key: str | None) -> ExchangeMade:
    """Carry an order out, once for each idempotency key."""
    context = exchange_context(web.gateway)
    asked = await execute.begin(web.db, context, actor, order, key)
    if isinstance(asked, FoundExchange):
        return made_answer(Made(asked, replayed=True))
    offer = await best_offer(context, asked.settings, asked.prepared.wish, asked.prepared.terms)
    made = await execute.finish(web.db, context, actor, asked, offer, audit.origin)
    if not made.replayed:
        await sent_on(web, actor, made.resource.source_chain, "exchanges")
    return made_answer(made)


def made_answer(made: Made[FoundExchange]) -> ExchangeMade:
    """Answer with an exchange as it is by now. New or not, the status is 200: the specification, section 4.4."""
    row = made.resource
    return ExchangeMade(
        txn_id=row.txn_id,
        quote=taken_view(row),
        exchange=exchange_view(row),
        idempotent=True if made.replayed else UNSET,
    )


class Exchanges(Controller):
    """The swaps and bridges of one project, out of its merchant's wallet and into it."""

    tags = ("Exchanges",)

    @post("/swap/quote", status_code=200, summary="What a swap would bring", opt=needs("exchange"))
    async def quote_swap(
        self, data: JSONBody[SwapAsk], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> SwapQuoted:
        """Ask every provider that swaps, and return the best offer. Nothing moves."""
        prepared, offer = await offered(web, actor, data)
        return SwapQuoted(quote=offer_view(prepared, offer))

    @post("/swap/execute", status_code=200, summary="Swap", opt=needs("exchange", step_up=True))
    async def execute_swap(
        self,
        data: JSONBody[SwapOrder],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        idempotency_key: IdempotencyKey = None,
    ) -> ExchangeMade:
        """Set aside what is given, at the best offer there is now, and queue the swap.

        A repetition with the same idempotency key returns the first swap with `idempotent`.
        """
        return await executed(web, actor, audit, data, idempotency_key)

    @post("/bridge/quote", status_code=200, summary="What a bridge would bring", opt=needs("exchange"))
    async def quote_bridge(
        self, data: JSONBody[BridgeAsk], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> BridgeQuoted:
        """Ask every provider that bridges, and return the best offer. Nothing moves."""
        prepared, offer = await offered(web, actor, data)
        return BridgeQuoted(quote=bridge_offer_view(prepared, offer))

    @post("/bridge/execute", status_code=200, summary="Bridge", opt=needs("exchange", step_up=True))
    async def execute_bridge(
        self,
        data: JSONBody[BridgeOrder],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        idempotency_key: IdempotencyKey = None,
    ) -> ExchangeMade:
        """Set aside what is given, at the best offer there is now, and queue the bridge's deposit.

        A repetition with the same idempotency key returns the first bridge with `idempotent`.
        """
        return await executed(web, actor, audit, data, idempotency_key)

    @get("/history", summary="List swaps and bridges", opt=needs("read"))
    async def list(  # noqa: PLR0913  every query parameter is one
        self,
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        mode: Annotated[MadeFor | None, QueryParameter(description="Who wanted it.")] = None,
        kind: Annotated[Kind | None, QueryParameter()] = None,
        chain: Filter = None,
        status: Annotated[Status | None, QueryParameter()] = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[ExchangeList]:
        """Return the project's swaps and bridges. `chain` is the source's or the destination's."""
        filters = mode, kind, chain, status, period
        query = asked.of(web, "exchanges", actor.project_pk, sort=sort, filters=filters)
        return await query.answer(
            ExchangeList,
            lambda conn, part: read.list_exchanges(
                conn,
                actor.project_pk,
                part,
                made_for=mode,
                kind=kind,
                chain=chain,
                status=status,
                period=period,
            ),
        )

    @get("/history/{txn_id:str}", summary="Read a swap or a bridge", opt=needs("read"))
    async def read(
        self, txn_id: FromPath[str], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> ExchangeAnswer:
        """Return how far the swap or the bridge has come."""
        async with web.db.autocommit() as conn:
            found = await read.find_exchange(conn, actor.project_pk, txn_id)
        return ExchangeAnswer(exchange=exchange_view(found))

    @get("/pairs", summary="What a token can be exchanged for", opt=needs("read"))
    async def pairs(
        self, actor: NamedDependency[Actor], web: NamedDependency[Web], src_chain: Source, src_token: SourceToken
    ) -> PairList:
        """Return each token that some provider may be asked for. Whether it offers anything, a quote says."""
        context = exchange_context(web.gateway)
        source = read_source(context.registry.chains, src_chain, src_token)
        owner = Owner(project_pk=actor.project_pk, merchant_pk=actor.merchant_pk, mode=actor.mode)
        return PairList(pairs=list(list_pairs(context, await web.platform.get(), owner, source)))

    @get("/platform-fees", summary="What the platform keeps", opt=needs("read"))
    async def platform_fees(self, web: NamedDependency[Web]) -> PlatformFees:
        """Return the platform's fees in percent: of a swap's output, and of what is given into a bridge."""
        settings = await web.platform.get()
        rule = settings.exchanges
        return PlatformFees(
            swap_fee_percent=rule.swap_fee_bps / 100,
            bridge_fee_percent=rule.bridge_fee_bps / 100,
            default_slippage=rule.default_slippage_bps / 100,
            auto_convert_markup_percent=rule.auto_convert_markup_bps / 100,
            payout_swap_enabled=settings.payout_swap_enabled,
        )


controllers = [key_routes("/api/merchant/swap-bridge", Exchanges), project_routes("/swap-bridge", Exchanges)]
