"""What a price source has answered, read as what it may be: a stranger wrote it, whatever its types say."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import TypeAlias

import structlog

from cambist.domain.prices import Observation
from cambist.plugin import Price, PricePair

Answer: TypeAlias = Mapping[PricePair, Price | None]
"""A source's prices. None is what it says of a pair and can be no price: that it says nothing would be another fact."""

_log = structlog.get_logger(__name__)


def observations_of(pair: PricePair, answers: Mapping[str, Answer | None]) -> Sequence[Observation]:
    """Return what each source that answered says of a pair, where it can be a price."""
    return [
        Observation(source=source, value=price.value, observed_at=price.observed_at)
        for source, prices in answers.items()
        if prices is not None and (price := prices.get(pair)) is not None
    ]


def read_answer(source: str, pairs: Collection[PricePair], prices: object) -> Answer:
    """Return what a source says of these pairs. Raises whatever comes of an answer that cannot be read."""
    if not isinstance(prices, Mapping):
        raise TypeError(f"prices() returned {type(prices).__name__}, no mapping")
    found = {pair: prices[pair] for pair in pairs if pair in prices}
    read = {pair: _well_formed(price) for pair, price in found.items()}
    if None in read.values():
        _log.error("prices.source_failed", source=source, reason="a price is no Decimal, or its time has no time zone")
    return read


def _well_formed(price: object) -> Price | None:
    """Return a price with its time in UTC, whatever time zone a source has made up; None for what is none."""
    if not isinstance(price, Price):
        return None
    value: object = price.value  # a Struct takes whatever it is given
    observed_at: object = price.observed_at
    if type(value) is not Decimal or not isinstance(observed_at, datetime):
        return None
    try:
        is_told = observed_at.utcoffset() is not None
        return Price(value=value, observed_at=observed_at.astimezone(UTC)) if is_told else None
    except Exception:  # noqa: BLE001  a time zone is a stranger's code
        return None
