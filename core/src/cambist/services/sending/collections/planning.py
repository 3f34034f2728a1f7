"""Which deposits are brought to the main wallets: those that are worth it, and those that a payout waits for.

Why the others stay where they are is written down (``uncollected.py``), for operators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.collections import CollectionRule, Hindrance, Judgement, judge, judge_unplanned
from cambist.domain.intents import IntentKind
from cambist.plugin import ChainError, ChainUnavailableError, Units
from cambist.plugin.text import printable
from cambist.services.addresses.account_keys import AccountKeys
from cambist.services.addresses.wallets import OwnAddress, gas_station, known_wallet, main_wallet
from cambist.services.platform import load
from cambist.services.sending.context import EngineContext
from cambist.services.sending.failures import Failures
from cambist.services.sending.intents import NewIntent, submit
from cambist.services.sending.shortages import WAITS_FOR_FUNDS

from . import uncollected
from .estimates import REFUSAL_MAX, Estimates
from .uncollected import Key, Uncollected

PLANNED_AT_ONCE = 40
"""Deposits of which a chain is asked together: what it said of them is remembered if a check then runs out of time."""
AWAY_MAX = 2
"""Groups in a row of which no node answers anything, after which the rest is left: one may be what no node can run."""
WALLETS_MAX = 100_000
"""Main wallets that are remembered."""
APART_MAX = 20
"""Deposits that a check judges one by one where they cannot be planned together: what failed least often first."""
FAILED_MAX = 10_000
"""Deposits of which it is remembered how often they could not be planned: of more, those that failed last."""


class Collector:
    """Asks for the collections of one chain. It remembers where its last check ended, as no check sees everything.

    It remembers how often each could not be planned, too: however many cannot, the next one has a turn.
    """

    def __init__(self, context: EngineContext, keys: AccountKeys) -> None:
        self._context, self._keys = context, keys
        self._estimates = Estimates(context)
        self._wallets: dict[int, OwnAddress] = {}
        self._station: OwnAddress | None = None
        self._place = 0
        self._failed = Counter[Key]()
        self.left_some = False
        """Whether the last check ended before all were judged, as some of them are to borrow a stake."""

    async def collect(self, *, only_needed: bool = False) -> int:
        """Ask for the collections that are due, or only for those that something waits for; return how many.

        What a plugin raises about some is raised when all others are asked for: a defect before an outage.
        """
        context, now = self._context, self._context.clock.now()
        self.left_some = self.left_some and only_needed
        async with context.db.autocommit() as conn:
            needs = await _needs(conn, context)
            if only_needed and not any(units > 0 for units in needs.values()):
                return 0
            rule = (await load(conn)).collection
            found, place = await uncollected.read_page(conn, context.chain_scope, now, self._place)
            if self._station is None:
                self._station = await gas_station(conn, context.chain_scope.info.family, context.chain_scope.mode)
        station = self._station
        if not found:
            return 0
        if station is None:
            wishes = [one.asked_at for one in found if one.asked_at is not None]
            if wishes:
                await self._note_hindrance(max(wishes), Hindrance.NO_GAS_STATION, None)
            return 0
        needed, failures = _covering(found, needs), Failures(context.chain_scope.info.id)
        made = await self._submit(needed, is_forced=True)
        if not only_needed:
            # Also where the time runs out: what keeps one page keeps no other.
            before, self._place = self._place, place
            keys = {one.key for one in needed}
            made += await self._judge_apart(
                [one for one in found if one.key not in keys], rule, station.address, failures
            )
            if self.left_some:
                self._place = before
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
        self, found: Sequence[Uncollected], rule: CollectionRule, station: str, failures: Failures
    ) -> int:
        """Judge these, and ask for those that are to be collected now; return how many.

        A chain plans all that it is asked of together, or none: so what somebody wants is judged apart from the rest,
        and some at a time; where that fails, each by itself. What failed comes last the next time, so what the chain
        cannot say of one keeps no other from being judged.
        """
        asking, made = await self._sift(found, rule), 0
        unanswered, away = list[Uncollected](), 0
        wanted, others = [
            sorted((one for one in asking if (one.wish is None) is rest), key=lambda one: self._failed[one.key])
            for rest in (False, True)
        ]
        groups = [*_in_parts(wanted), *_in_parts(others)]
        while groups and away < AWAY_MAX:
            some = groups.pop(0)
            try:
                submitted, borrows = await self._judge(some, rule, station)
            except Exception as error:  # noqa: BLE001  a plugin may raise anything; the caller raises it
                failures.note("judging_failed", error, deposits=len(some))
                away = away + 1 if isinstance(error, ChainUnavailableError) else 0
                self._count_failed(some)
                unanswered += some if len(some) > 1 else []
            else:
                made, away = made + submitted, 0
                for one in some:
                    self._failed.pop(one.key, None)
                if borrows:
                    # What the next could borrow is known once these are sent.
                    self.left_some = bool(groups or unanswered)
                    break
            if unanswered and (not groups or (unanswered[0].wish is not None and groups[0][0].wish is None)):
                apart = sorted(unanswered, key=lambda one: self._failed[one.key])[:APART_MAX]
                groups[:0], unanswered = [[one] for one in apart], []
        return made

    def _count_failed(self, some: Sequence[Uncollected]) -> None:
        """Count that these could not be planned. Of those that this page does not have the counts are kept."""
        for one in some:
            self._failed[one.key] = self._failed.pop(one.key, 0) + 1
        while len(self._failed) > FAILED_MAX:
            del self._failed[next(iter(self._failed))]

    async def _sift(self, found: Sequence[Uncollected], rule: CollectionRule) -> Sequence[Uncollected]:
        """Return those of which the chain has to be asked; write down why the others stay where they are.

        What it said before may keep something where it is, and moves nothing.
        """
        now, asking, staying = self._context.clock.now(), list[Uncollected](), list[tuple[Uncollected, Judgement]]()
        for one in found:
            why = judge_unplanned(one.holding, rule, one.wish, now)
            estimate = self._estimates.remembered(one, now) if why is None and one.wish is None else None
            if estimate is not None:
                why = judge(one.holding, await self._estimates.cost(one, estimate), rule, None, now)
            if why is None:
                asking.append(one)
            else:
                staying.append((one, why))
        await self._note(staying)
        return asking

    async def _judge(self, some: Sequence[Uncollected], rule: CollectionRule, station: str) -> tuple[int, bool]:
        """Ask the chain what these cost, and for those that are to be collected now; write down why the others stay.

        Return how many were asked for, and whether any of them is to borrow a stake.
        """
        now, due, staying = self._context.clock.now(), list[Uncollected](), list[tuple[Uncollected, Judgement]]()
        answers = await self._estimates.ask(some, await self._main_wallets(some), station, now)
        for one in some:
            why = judge(one.holding, await self._estimates.cost(one, answers[one.key]), rule, one.wish, now)
            if why is None:
                due.append(one)
            else:
                staying.append((one, why))
        await self._note(staying)
        return await self._submit(due, is_forced=False), any(answers[one.key].borrows for one in due)

    async def _note(self, staying: Sequence[tuple[Uncollected, Judgement]]) -> None:
        context = self._context
        if any(one.asked_at is not None or one.is_news(why) for one, why in staying):
            async with context.db.transaction() as conn:
                await uncollected.note(conn, context.chain_scope, context.ids, staying, context.clock.now())

    async def _submit(self, chosen: Sequence[Uncollected], *, is_forced: bool) -> int:
        """Ask for the collections of these, each to its merchant's main wallet; return how many there are."""
        made, wallets = 0, await self._main_wallets(chosen)
        for one in chosen:
            self._estimates.forget(one)
            async with self._context.db.transaction() as conn:
                made += await _submit(conn, self._context, one, wallets[one.merchant_pk], is_forced=is_forced)
        return made

    async def _main_wallets(self, found: Sequence[Uncollected]) -> dict[int, OwnAddress]:
        """Return the main wallets of these, by merchant. They never change."""
        context, wanted = self._context, {one.merchant_pk for one in found}
        if len(self._wallets) > WALLETS_MAX:
            self._wallets.clear()
        for merchant_pk in sorted(wanted - self._wallets.keys()):
            async with context.db.autocommit() as conn:
                known = await known_wallet(conn, context.family.name, merchant_pk, context.chain_scope.mode)
            if known is None:
                async with context.db.transaction() as conn:
                    known = await main_wallet(conn, self._keys, context.family, merchant_pk, context.chain_scope.mode)
            self._wallets[merchant_pk] = known
        return {merchant_pk: self._wallets[merchant_pk] for merchant_pk in wanted}


def _in_parts(found: Sequence[Uncollected]) -> Iterator[Sequence[Uncollected]]:
    for begin in range(0, len(found), PLANNED_AT_ONCE):
        yield found[begin : begin + PLANNED_AT_ONCE]


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
    )
    intent_pk = (await submit(conn, [intent], now))[reference]
    await conn.exec_driver_sql(
        "UPDATE deposits SET collection_pk = $2 WHERE id = ANY($1::bigint[])", (list(deposits), intent_pk)
    )
    await uncollected.forget(conn, context.chain_scope, one)
    return 1
