"""Writes what trackers are told: what all hear of a stage alike is written once, and each one's own put into it.

The same news has the same id, always.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec
from msgspec import Struct, field

from cambist.db.structs import AnyRow
from cambist.domain.identifiers import dated_id, names
from cambist.domain.money import format_units
from cambist.domain.webhooks import TRACKER_EVENTS
from cambist.services.webhooks.outbox import TrackerDelivery, moment

EVENTS = {event.rpartition(".")[2]: event for event in TRACKER_EVENTS}
"""The event that tells of a stage."""


DIRECTIONS = ("in", "out")
TRANSACTION_PREFIX = "mov"
"""Of the ids of trackers' transactions.

These and the ids of deliveries begin with the time of the transfer's first block: what is told of one block stands side
by side in every index that holds them. Spread over all of it, each would be another page to read, and to write to the
log.
"""


class Stage(NamedTuple):
    """What became of a movement: ``detected``, ``confirmed`` or ``orphaned``; ``head`` was the newest block then."""

    movement_pk: int
    stage: str
    head: int
    at: datetime


class News(NamedTuple):
    """One thing that one tracker is told."""

    transaction_id: str
    number: int
    tracker_pk: int
    direction: str
    address: str
    label: str | None


def delivery_id(transaction_id: str, movement: AnyRow, stage: str) -> str:
    """Return the id of what tells a tracker of a stage of its transaction, as it was mined: always the same."""
    return dated_id("evt", movement.first_mined_at, transaction_id, str(movement.incarnation), stage)


class Transaction(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a tracker is told of a transfer: ``data`` of its events. ``confirmations`` are those of the stage."""

    resource: str = "transaction"
    transaction_id: str
    chain: str
    tx_hash: str
    direction: str
    address: str
    label: str
    sender: str | None = field(name="from")
    recipient: str = field(name="to")
    token: str
    contract_address: str | None
    amount: str
    block_number: int
    block_hash: str
    block_time: str
    confirmations: int
    required_confirmations: int
    status: str
    timestamp: str


class _Body(Struct, frozen=True, rename="camel"):
    event: str
    webhook_id: str
    data: Transaction


_encode = msgspec.json.Encoder().encode

# Stands for what is each tracker's own. No text in PostgreSQL has this character, and within a JSON string there is
# neither a bare quote nor a bare backslash: its encoding is found where it was put, and nowhere else.
_OWN = "\0"
_GAP = _encode(_OWN)


def pieces(chain: str, movement: AnyRow, stage: str, head: int, at: datetime) -> Sequence[bytes]:
    """Write what everybody is told of a stage, in the pieces between what is each tracker's own: see ``body``."""
    data = Transaction(
        transaction_id=_OWN,
        chain=chain,
        tx_hash=movement.tx_id,
        direction=_OWN,
        address=_OWN,
        label=_OWN,
        sender=movement.sender,
        recipient=movement.recipient,
        token=movement.token,
        contract_address=movement.contract,
        amount=format_units(int(movement.units), movement.decimals),
        block_number=movement.height,
        block_hash=movement.block_hash,
        block_time=moment(movement.mined_at),
        confirmations=0 if stage == "orphaned" else max(0, head - movement.height),
        required_confirmations=movement.required_confirmations,
        status=stage,
        timestamp=moment(at),
    )
    return _encode(_Body(EVENTS[stage], _OWN, data)).split(_GAP)


def body(  # noqa: PLR0913, PLR0917  in the order in which it is written
    alike: Sequence[bytes], webhook_id: str, transaction_id: str, direction: str, address: str, label: str | None
) -> bytes:
    """Write what one tracker is told, from what all are told alike. An address that has no label shows none."""
    opening, to_transaction, to_direction, to_address, to_label, closing = alike
    return b"".join(
        (
            opening,
            _encode(webhook_id),
            to_transaction,
            _encode(transaction_id),
            to_direction,
            _encode(direction),
            to_address,
            _encode(address),
            b"" if label is None else to_label + _encode(label),
            closing,
        )
    )


def written(
    chain: str,
    stages: Sequence[Stage],
    movements: Sequence[AnyRow],
    matched: Sequence[AnyRow],
    trackers: Mapping[int, AnyRow],
) -> tuple[Sequence[News], Sequence[TrackerDelivery]]:
    """Write what was found, on who hears of what (``matched``): the news, and beside it the deliveries that tell it."""
    news = _news(chain, movements, matched)
    return news, _deliveries(chain, news, stages, movements, trackers)


def _news(chain: str, movements: Sequence[AnyRow], matched: Sequence[AnyRow]) -> Sequence[News]:
    news = []
    ends: dict[int, tuple[str, str, str]] = {}
    for end, tracker_pk, webhook_id, label in matched:
        number = end // 2
        seen = ends.get(end)
        if seen is None:
            movement, direction = movements[number], DIRECTIONS[end % 2]
            address = movement.sender if end % 2 else movement.recipient
            # A transaction that is mined again may pay somebody else: what is told of one address ends with that one's
            # list.
            named = names(chain, movement.tx_id, movement.position, direction, address)
            seen = ends[end] = named, direction, address
        named, direction, address = seen
        news.append(
            News(
                dated_id(TRANSACTION_PREFIX, movements[number].first_mined_at, webhook_id, named),
                *(number, tracker_pk, direction, address, label),
            )
        )
    return news


def _deliveries(
    chain: str,
    news: Sequence[News],
    stages: Sequence[Stage],
    movements: Sequence[AnyRow],
    trackers: Mapping[int, AnyRow],
) -> Sequence[TrackerDelivery]:
    deliveries = []
    alike: dict[int, Sequence[bytes]] = {}
    for transaction_id, number, tracker_pk, direction, address, label in news:
        stage, tracker = stages[number].stage, trackers[tracker_pk]
        written = alike.get(number)
        if written is None:
            written = alike[number] = pieces(chain, movements[number], *stages[number][1:])
        deliveries.append(
            TrackerDelivery(
                delivery_id(transaction_id, movements[number], stage),
                tracker.project_pk,
                tracker_pk,
                EVENTS[stage],
                transaction_id,
                tracker.url,
                body(written, tracker.webhook_id, transaction_id, direction, address, label),
            )
        )
    return deliveries
