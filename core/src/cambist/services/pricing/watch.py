"""What is the matter with price sources, polled again and again: a row for each, told where it changes.

Web processes ask the sources only while somebody looks. Here a worker does, so that a source that is wrong, too old or
away, and a coin without a rate, are told to operators who look at nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct
from sqlalchemy import delete, not_

from cambist.db import models
from cambist.db.engine import Database
from cambist.db.structs import one_of
from cambist.domain.prices import NoRateError, Observation, agree_on_rate

from .prices import JudgedPrices, RateBook

SourceVerdict: TypeAlias = Literal["used", "too_old", "too_far", "impossible", "away"]
"""How a source is believed: as its worst price is, or not at all, since it gave no answer."""

# The worst first. One that is far off is told before one that is merely late.
_WORST: Sequence[SourceVerdict] = ("impossible", "too_far", "too_old")


class Watched(Struct, frozen=True, kw_only=True):
    """What a poll found: by source how it is believed and for which coins not; and the coins without a rate."""

    sources: Sequence[tuple[str, SourceVerdict, Sequence[str]]]
    missing: Sequence[tuple[str, str]]


_SAVE_SOURCE = """
INSERT INTO price_source_states (source, verdict, symbols, since, seen_at) VALUES ($1, $2, $3::text[], $4, $4)
ON CONFLICT (source) DO UPDATE SET verdict = excluded.verdict, symbols = excluded.symbols, seen_at = excluded.seen_at,
    since = CASE WHEN price_source_states.verdict = excluded.verdict
        THEN price_source_states.since ELSE excluded.since END
"""
# What nobody has ever priced is no coin that lost its rate: payments in it are asked for in tokens.
_SAVE_MISSING = """
INSERT INTO prices_missing (symbol, reason, since) SELECT $1, $2, $3
WHERE $4 OR EXISTS (SELECT FROM price_points WHERE symbol = $1)
ON CONFLICT (symbol) DO UPDATE SET reason = excluded.reason WHERE prices_missing.reason <> excluded.reason
"""


async def watch(db: Database, rates: RateBook, symbols: Sequence[str], currency: str, now: datetime) -> Watched:
    """Ask every source what these coins cost, and write down which of them are wrong, and which coins have no rate.

    One that an operator has set aside is not judged, since nobody believes it.
    """
    polled = (
        await rates.poll_sources(symbols, currency) if rates.names else JudgedPrices(asked_at=now, judged={}, away=())
    )
    found = judge(polled, rates, currency, now)
    async with db.transaction() as conn:
        for source, verdict, of in found.sources:
            await conn.exec_driver_sql(_SAVE_SOURCE, (source, verdict, list(of), now))
        sources = [source for source, _, _ in found.sources]
        await conn.execute(delete(models.PriceSourceState).where(not_(one_of(models.PriceSourceState.source, sources))))
        for symbol, reason in found.missing:
            was_said = bool(polled.judged[symbol])
            await conn.exec_driver_sql(_SAVE_MISSING, (symbol, reason, now, was_said))
        missing = [symbol for symbol, _ in found.missing]
        await conn.execute(delete(models.PriceMissing).where(not_(one_of(models.PriceMissing.symbol, missing))))
    return found


def judge(polled: JudgedPrices, rates: RateBook, currency: str, now: datetime) -> Watched:
    """Say of each source how it is believed, and of which coins there is no rate, or none that is not doubtful."""
    said: dict[str, dict[SourceVerdict, list[str]]] = {
        name: {} for name in rates.names if name not in polled.set_aside and name not in polled.away
    }
    missing = []
    for symbol, seen in polled.judged.items():
        for one, verdict in seen:
            if verdict is not None and one.source in said:
                said[one.source].setdefault(verdict, []).append(symbol)
        believed: list[Observation] = [one for one, verdict in seen if verdict is not None]
        try:
            last = rates.last(symbol, currency, without=polled.set_aside)
            agree_on_rate(believed, now=now, policy=rates.policy, last=last)
        except NoRateError as error:
            missing.append((symbol, str(error)))
    away: list[tuple[str, SourceVerdict, Sequence[str]]] = [
        (name, "away", ()) for name in polled.away if name not in polled.set_aside
    ]
    return Watched(sources=[*away, *((name, *_worst(of)) for name, of in said.items())], missing=missing)


def _worst(of: dict[SourceVerdict, list[str]]) -> tuple[SourceVerdict, Sequence[str]]:
    for verdict in _WORST:
        if verdict in of:
            return verdict, of[verdict]
    return "used", ()
