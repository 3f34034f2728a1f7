"""Writes what trackers are told: what all hear of a stage alike is written once, and each one's own put into it.

The same news has the same id, always.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec
from msgspec import Struct, field

from cambist.db.copying import bigint_field, bytes_field, text_field
from cambist.db.structs import AnyRow
from cambist.domain.identifiers import DatedIds
from cambist.domain.money import format_units
from cambist.domain.webhooks import TRACKER_EVENTS
from cambist.services.webhooks.outbox import TrackerDelivery, moment

EVENTS = {event.rpartition(".")[2]: event for event in TRACKER_EVENTS}
"""The event that tells of a stage."""


DIRECTIONS = ("in", "out")
_MATCHES_AT_ONCE = 25
"""Written in some tenths of a millisecond."""
TRANSACTION_PREFIX, DELIVERY_PREFIX = "mov", "evt"
"""Of the ids of trackers' transactions, and of what tells of them.

They begin with the time of the transfer's first block: what is told of one block stands side
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
    """One thing that one tracker is told; ``number`` is its stage's.

    The rows are what ``copy_new`` takes: the transaction's of ``TRANSACTION_COLUMNS``, and the delivery's of
    ``outbox.TRACKER_COLUMNS``.
    """

    transaction_id: str
    number: int
    tracker_pk: int
    direction: str
    address: str
    transaction_row: bytes
    delivery_row: bytes


TRANSACTION_COLUMNS = ("transaction_id", "tracker_pk", "movement_pk", "direction", "address")


def delivery_id(transaction_id: str, movement: AnyRow, stage: str) -> str:
    """Return the id of what tells a tracker of a stage of its transaction, as it was mined: always the same.

    It is the transaction's, and says the stage and the incarnation besides.
    """
    return _delivery_id(transaction_id, _suffix(movement, stage))


def _delivery_id(transaction_id: str, suffix: str) -> str:
    return DELIVERY_PREFIX + transaction_id[len(TRANSACTION_PREFIX) :] + suffix


def _suffix(movement: AnyRow, stage: str) -> str:
    return f"{stage[0]}{movement.incarnation}"


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
    """Write what everybody is told of a stage, in the pieces between what is each tracker's own: see ``End``."""
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


class End:
    """What all trackers hear alike of one end of a transfer at one stage; ``alike`` are its ``pieces``."""

    def __init__(self, chain: str, stage: Stage, movement: AnyRow, direction: str, alike: Sequence[bytes]) -> None:
        address = movement.sender if direction == "out" else movement.recipient
        opening, to_transaction, to_direction, to_address, to_label, closing = alike
        self.direction, self.address, self.event = direction, address, EVENTS[stage.stage]
        # A transaction that is mined again may pay somebody else: what is told of one address ends with that one's
        # list.
        names = chain, movement.tx_id, movement.position, direction, address
        self.ids = DatedIds(TRANSACTION_PREFIX, movement.first_mined_at, *names)
        self.suffix = _suffix(movement, stage.stage)
        self.fields = bigint_field(stage.movement_pk) + text_field(direction) + text_field(address)
        self.event_field = text_field(self.event)
        self._opening, self._to_transaction = opening, to_transaction + b'"'
        before_label = b"".join((b'"', to_direction, _encode(direction), to_address, _encode(address)))
        self._ending, self._to_label, self._closing = before_label + closing, before_label + to_label, closing

    def body(self, webhook_id: bytes, transaction_id: str, label: str | None) -> bytes:
        """Write what one tracker is told; ``webhook_id`` is JSON by now. An address that has no label shows none."""
        ending = self._ending if label is None else self._to_label + _encode(label) + self._closing
        return b"".join((self._opening, webhook_id, self._to_transaction, transaction_id.encode(), ending))


class _Target:
    """A tracker, and what each row of its own has in common."""

    def __init__(self, tracker: AnyRow) -> None:
        self.pk, self.project_pk, self.url = tracker.id, tracker.project_pk, tracker.url
        self.name, self.webhook_id = tracker.webhook_id.encode(), _encode(tracker.webhook_id)
        self.pk_field = bigint_field(self.pk)
        self.fields = bigint_field(self.project_pk) + self.pk_field + text_field(self.url)


def written(
    chain: str,
    stages: Sequence[Stage],
    movements: Sequence[AnyRow],
    matched: Sequence[AnyRow],
    trackers: Mapping[int, AnyRow],
) -> tuple[Sequence[News], Sequence[TrackerDelivery]]:
    """Write what was found, on who hears of what (``matched``): the news, and beside it the deliveries that tell it.

    Made for a thread of its own: now and then it lets the others run, of which one feeds the database.
    """
    targets = {pk: _Target(tracker) for pk, tracker in trackers.items()}
    alike: dict[int, Sequence[bytes]] = {}
    ends: dict[int, End] = {}
    news, deliveries = [], []
    for place, (end, tracker_pk, label) in enumerate(matched):
        if not place % _MATCHES_AT_ONCE:
            time.sleep(0)
        number = end // 2
        told, target = ends.get(end), targets[tracker_pk]
        if told is None:
            if number not in alike:
                alike[number] = pieces(chain, movements[number], *stages[number][1:])
            told = ends[end] = End(chain, stages[number], movements[number], DIRECTIONS[end % 2], alike[number])
        transaction_id = told.ids.of(target.name)
        delivered = _delivery_id(transaction_id, told.suffix)
        body = told.body(target.webhook_id, transaction_id, label)
        deliveries.append(
            TrackerDelivery(delivered, target.project_pk, tracker_pk, told.event, transaction_id, target.url, body)
        )
        named = text_field(transaction_id)
        row = named + target.pk_field + told.fields
        own = named, text_field(delivered), target.fields, told.event_field, bytes_field(body)
        news.append(News(transaction_id, number, tracker_pk, told.direction, told.address, row, b"".join(own)))
    return news, deliveries
