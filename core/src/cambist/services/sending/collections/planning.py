"""Which deposits are brought to the main wallets: those that are worth it, and those that a payout waits for.

Why the others stay where they are is written down (``uncollected.py``), for operators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.collections import CollectionRule, Cost, Hindrance, Judgement, judge, judge_unplanned
from cambist.domain.intents import IntentKind
from cambist.domain.money import value_of
from cambist.plugin import ChainError, ChainUnavailableError, FeeAboveCeilingError, Intent, Plan, Token, Units
from cambist.plugin.text import printable
from cambist.services.addresses.account_keys import AccountKeys
from cambist.services.addresses.wallets import OwnAddress, gas_station, main_wallet
from cambist.services.platform import load
from cambist.services.pricing.prices import RateUnavailableError
from cambist.services.sending.batches import WAITS_FOR_FUNDS
from cambist.services.sending.context import EngineContext
from cambist.services.sending.failures import Failures
from cambist.services.sending.intents import NewIntent, submit

from . import uncollected
from .uncollected import Key, Uncollected

REFUSAL_MAX = 400
"""Characters that are kept of why a chain refuses, or of why a check has failed."""
WISHES_APART_MAX = 20
"""Wishes that a check judges one by one where they cannot be planned together: those tried least often first."""
TRIED_APART_MAX = 10_000
"""Wishes of which it is remembered how often they were judged by themselves: of more, those tried last."""


class Collector:
    """Asks for the collections of one chain. It remembers where its last check ended, as no check sees everything.

    It remembers how often each wish was judged by itself, too: however many cannot be planned, the next one has a turn.
    """

    def __init__(self, context: EngineContext, keys: AccountKeys) -> None:
        self._context, self._keys = context, keys
        self._place = 0
        self._tried_apart = Counter[Key]()

    async def collect(self, *, only_needed: bool = False) -> int:
        """Ask for the collections that are due, or only for those that something waits for; return how many.

        What a plugin raises about some is raised when all others are asked for: a defect before an outage.
        """
        context, now = self._context, self._context.clock.now()
        async with context.db.transaction() as conn:
            needs = await _needs(conn, context)
            if only_needed and not any(units > 0 for units in needs.values()):
                return 0
            rule = (await load(conn)).collection
            found, place = await uncollected.read_page(conn, context.chain_scope, now, self._place)
            station = await gas_station(conn, context.chain_scope.info.family, context.chain_scope.mode)
        if not found:
            return 0
        if station is None:
            wishes = [one.asked_at for one in found if one.asked_at is not None]
            if wishes:
                await self._note_hindrance(max(wishes), Hindrance.NO_GAS_STATION, None)
            return 0
        chosen = _covering(found, needs)
        forced, failures = {one.key for one in chosen}, Failures(context.chain_scope.info.id)
        if not only_needed:
            self._place = place
            others = [one for one in found if one.key not in forced]
            chosen = [*chosen, *await self._judge_apart(others, rule, station.address, now, failures)]
        made = 0
        for one in chosen:
            async with context.db.transaction() as conn:
                wallet = await main_wallet(conn, self._keys, context.family, one.merchant_pk, context.chain_scope.mode)
                made += await _submit(conn, context, one, wallet, is_forced=one.key in forced)
        failures.raise_one()
        return made

    async def note_hindrance(self, asked_at: datetime, error: Exception) -> None:
        """Write down why the wishes until then got no answer where collecting has failed."""
        if isinstance(error, ChainUnavailableError):
            await self._note_hindrance(asked_at, Hindrance.NO_NODE_ANSWERS, None)
            return
        # Chains say what may be shown; what anything else says is for the log.
        detail = str(error) if isinstance(error, ChainError) else type(error).__name__
        await self._note_hindrance(asked_at, Hindrance.COST_UNKNOWN, printable(detail)[:REFUSAL_MAX])

    async def _note_hindrance(self, asked_at: datetime, hindrance: Hindrance, detail: str | None) -> None:
        now = self._context.clock.now()
        async with self._context.db.transaction() as conn:
            await uncollected.note_hindrance(conn, self._context.chain_scope, asked_at, hindrance, detail, now)

    async def _judge_apart(
        self, found: Sequence[Uncollected], rule: CollectionRule, station: str, now: datetime, failures: Failures
    ) -> Sequence[Uncollected]:
        """Judge what somebody wants apart from the rest; return what is to be collected now.

        A chain plans all of them or none: what it cannot say of one keeps nobody's wish from being answered, nor a
        wish the rest.
        """
        due = list[Uncollected]()
        wanted, others = [[one for one in found if (one.wish is None) is rest] for rest in (False, True)]
        groups = [wanted, others]
        for some in groups:
            try:
                due += await self._judge(some, rule, station, now)
            except Exception as error:  # noqa: BLE001  a plugin may raise anything; the caller raises it
                failures.note("judging_failed", error, deposits=len(some))
                if some is wanted and len(wanted) > 1 and not isinstance(error, ChainUnavailableError):
                    groups += [[one] for one in self._next_apart(wanted)]
        return due

    def _next_apart(self, wanted: Sequence[Uncollected]) -> Sequence[Uncollected]:
        """Return the wishes that were judged by themselves least often, and count them.

        Also of those that this page does not have the counts are kept: another one has them.
        """
        tried = self._tried_apart
        some = sorted(wanted, key=lambda one: tried[one.key])[:WISHES_APART_MAX]
        for one in some:
            tried[one.key] = tried.pop(one.key, 0) + 1
        while len(tried) > TRIED_APART_MAX:
            del tried[next(iter(tried))]
        return some

    async def _judge(
        self, found: Sequence[Uncollected], rule: CollectionRule, station: str, now: datetime
    ) -> Sequence[Uncollected]:
        """Return what is to be collected now, and write down why the rest is not."""
        context = self._context
        unasked = {one.key: judge_unplanned(one.holding, rule, one.wish, now) for one in found}
        costs = await _costs(context, [one for one in found if unasked[one.key] is None], station)
        due, staying = [], list[tuple[Uncollected, Judgement]]()
        for one in found:
            why = unasked[one.key] or judge(one.holding, costs[one.key], rule, one.wish, now)
            if why is None:
                due.append(one)
            else:
                staying.append((one, why))
        if any(one.asked_at is not None or one.is_news(why) for one, why in staying):
            async with context.db.transaction() as conn:
                await uncollected.note(conn, context.chain_scope, context.ids, staying, now)
        return due


async def _needs(conn: AsyncConnection, context: EngineContext) -> dict[tuple[int, str | None], int]:
    rows = await conn.exec_driver_sql(uncollected.NEEDS, (*context.chain_scope.key, WAITS_FOR_FUNDS))
    return {(row.merchant_pk, row.contract): int(row.units) for row in rows}


def _covering(found: Sequence[Uncollected], needs: dict[tuple[int, str | None], int]) -> Sequence[Uncollected]:
    """Choose the largest deposits until what is waited for is there: whatever they are worth, a payout needs them."""
    chosen = []
    for one in found:
        key = (one.merchant_pk, one.token.contract)
        if one.is_needed and needs.get(key, 0) > 0:
            needs[key] -= one.units
            chosen.append(one)
    return chosen


async def _costs(context: EngineContext, found: Sequence[Uncollected], station: str) -> dict[Key, Cost]:
    """Return what each would bring, and what it would cost."""
    if not found:
        return {}
    intents = [Intent(source=one.address, to_address=station, token=one.token, amount=one.units) for one in found]
    try:
        plans = await context.chain.plan(intents, sponsor=station)
    except FeeAboveCeilingError:
        return {one.key: Cost(above_ceiling=True) for one in found}
    native = context.chain_scope.info.native
    costs = {}
    for one, plan in zip(found, plans, strict=True):
        value = await _value(context, one.token, one.units)
        fee = None if plan.refused is not None else await _value(context, native, _fee(plan))
        # What a contract or a plugin says is stored and shown.
        refused = None if plan.refused is None else printable(plan.refused)[:REFUSAL_MAX]
        costs[one.key] = Cost(value=value, fee=fee, refused=refused)
    return costs


def _fee(plan: Plan) -> int:
    """Return the fee, and what it costs to bring it there."""
    return plan.sponsoring + (0 if plan.step is None else plan.step.fee.cost_max)


async def _value(context: EngineContext, token: Token, units: int) -> Decimal | None:
    try:
        rate = await context.rates.rate(token.symbol, "usd")
    except RateUnavailableError:
        return None
    return value_of(units, token.decimals, rate.value)


async def _submit(
    conn: AsyncConnection, context: EngineContext, one: Uncollected, wallet: OwnAddress, *, is_forced: bool
) -> int:
    """Claim the deposits that no collection has, and have just as much brought to the wallet."""
    now = context.clock.now()
    rows = await conn.exec_driver_sql(
        "SELECT id, units FROM deposits WHERE chain = $1 AND scope = $2 AND address_pk = $3"
        " AND contract IS NOT DISTINCT FROM $4 AND status = 'confirmed' AND collection_pk IS NULL ORDER BY id"
        " FOR NO KEY UPDATE",
        (*context.chain_scope.key, one.address_pk, one.token.contract),
    )
    deposits = {row.id: int(row.units) for row in rows}
    if not deposits or not (is_forced or await uncollected.is_wanted_still(conn, one)):
        return 0
    reference = f"{IntentKind.COLLECTION}:{context.ids.new('col')}"
    intent = NewIntent(
        reference=reference,
        kind=IntentKind.COLLECTION,
        chain_scope=context.chain_scope,
        merchant_pk=one.merchant_pk,
        source_pk=one.address_pk,
        recipient_pk=wallet.pk,
        to_address=wallet.address,
        token=one.token,
        units=Units(sum(deposits.values())),
        forced=is_forced,
    )
    intent_pk = (await submit(conn, [intent], now))[reference]
    await conn.exec_driver_sql(
        "UPDATE deposits SET collection_pk = $2 WHERE id = ANY($1::bigint[])", (list(deposits), intent_pk)
    )
    await uncollected.forget(conn, context.chain_scope, one)
    return 1
