"""Writes what trackers are told: what all hear of a stage alike is written once, and each one's own put into it.

The same news has the same id, always.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

import msgspec
from msgspec import Struct, field

from cambist.db.copying import bigint_field, bytes_field, text_field
from cambist.db.structs import AnyRow
from cambist.domain.identifiers import DatedIds
from cambist.domain.moments import moment
from cambist.domain.money import format_units
from cambist.domain.webhooks import TRACKER_EVENTS
from cambist.services.webhooks.outbox import TrackerDelivery

EVENTS = {event.rpartition(".")[2]: event for event in TRACKER_EVENTS}
"""The event that tells of a stage."""
_EVENT_FIELDS = {stage: text_field(event) for stage, event in EVENTS.items()}

DIRECTIONS = ("in", "out")
_MATCHES_AT_ONCE = 100
"""Written in about half a millisecond."""
TRANSACTION_PREFIX, DELIVERY_PREFIX = "mov", "evt"
"""Of the ids of trackers' transactions, and of what tells of them.

They begin with the time of the transfer's first block, and go on with the sort key of its transaction. The movements of
a block are stored and told in the same order, so that each index that holds these ids grows at its end. Spread over all
of it, each would be another page to look for, to read, and to write to the log.
"""
_DELIVERY_PREFIX = DELIVERY_PREFIX.encode()


class Stage(NamedTuple):
    """What became of a movement: ``detected``, ``confirmed`` or ``orphaned``; ``head`` was the newest block then."""

    movement_pk: int
    stage: str
    head: int
    at: datetime


class Movement(NamedTuple):
    """A transfer as it was mined."""

    id: int
    tx_id: str
    position: str
    sender: str | None
    recipient: str
    token: str
    contract: str | None
    decimals: int
    units: Decimal
    height: int
    block_hash: str
    mined_at: datetime
    first_mined_at: datetime
    required_confirmations: int
    incarnation: int


TRANSACTION_COLUMNS = ("transaction_id", "tracker_pk", "movement_pk", "direction", "address")


def delivery_id(transaction_id: str, stage: str, incarnation: int) -> str:
    """Return the id of what tells a tracker of a stage of its transaction, as it was mined: always the same.

    It is the transaction's, and says the stage and the incarnation besides.
    """
    return DELIVERY_PREFIX + transaction_id[len(TRANSACTION_PREFIX) :] + _suffix(stage, incarnation)


def _suffix(stage: str, incarnation: int) -> str:
    return f"{stage[0]}{incarnation}"


class Matches(NamedTuple):
    """Who hears of what, in columns.

    ``ends`` are twice a stage's number, plus 1 for the sender, and ascend. ``labels`` are what the trackers call the
    addresses.
    """

    ends: Sequence[int]
    tracker_pks: Sequence[int]
    labels: Sequence[str | None]

    def before(self, end: int) -> Matches:
        """Return those of the ends before this one."""
        place = bisect_left(self.ends, end)
        return Matches(self.ends[:place], self.tracker_pks[:place], self.labels[:place])


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


def pieces(chain: str, movement: Movement, stage: Stage) -> Sequence[bytes]:
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
        confirmations=0 if stage.stage == "orphaned" else max(0, stage.head - movement.height),
        required_confirmations=movement.required_confirmations,
        status=stage.stage,
        timestamp=moment(stage.at),
    )
    return _encode(_Body(EVENTS[stage.stage], _OWN, data)).split(_GAP)


class End:
    """What all trackers hear alike of one end of a transfer at one stage; ``number`` is the stage's among those told.

    ``alike`` are its ``pieces``, which both ends share.
    """

    __slots__ = (
        "_after_transaction",
        "_closing",
        "_event_field",
        "_opening",
        "_suffix",
        "_to_label",
        "_to_transaction",
        "_transaction_fields",
        "address",
        "direction",
        "event",
        "number",
        "transaction_id_of",
    )

    def __init__(  # noqa: PLR0913, PLR0917  what is told, and which end of it
        self, chain: str, number: int, stage: Stage, movement: Movement, direction: str, alike: Sequence[bytes]
    ) -> None:
        address = movement.sender if direction == "out" else movement.recipient
        if address is None:
            raise AssertionError("nobody watches the sender of what has none")
        self._opening, to_transaction, to_direction, to_address, self._to_label, self._closing = alike
        self.number, self.direction, self.address, self.event = number, direction, address, EVENTS[stage.stage]
        # A transaction that is mined again may pay somebody else: what is told of one address ends with that one's
        # list.
        names = chain, movement.tx_id, movement.position, direction, address
        dated = DatedIds(TRANSACTION_PREFIX, movement.first_mined_at, *names, group=movement.tx_id)
        self.transaction_id_of = dated.of
        self._suffix = _suffix(stage.stage, movement.incarnation).encode()
        self._transaction_fields = bigint_field(stage.movement_pk) + text_field(direction) + text_field(address)
        self._event_field = _EVENT_FIELDS[stage.stage]
        self._to_transaction = to_transaction + b'"'
        self._after_transaction = b"".join((b'"', to_direction, _encode(direction), to_address, _encode(address)))

    def delivery_id_of(self, transaction_id: bytes) -> bytes:
        """Return the id of what tells a tracker of this, as ``delivery_id`` makes it."""
        return _DELIVERY_PREFIX + transaction_id[len(TRANSACTION_PREFIX) :] + self._suffix

    def body(self, webhook_id: bytes, transaction_id: bytes, label: str | None) -> bytes:
        """Write what one tracker is told; ``webhook_id`` is JSON by now. An address that has no label shows none."""
        labelled = b"" if label is None else self._to_label + _encode(label)
        begun = self._opening, webhook_id, self._to_transaction, transaction_id, self._after_transaction
        return b"".join((*begun, labelled, self._closing))

    def rows(self, target: Target, transaction_id: bytes, label: str | None) -> tuple[bytes, bytes]:
        """Return what ``copy_new`` takes: rows of ``TRANSACTION_COLUMNS`` and of ``outbox.TRACKER_COLUMNS``."""
        named = bytes_field(transaction_id)
        delivered, body = self.delivery_id_of(transaction_id), self.body(target.webhook_id, transaction_id, label)
        own = named, bytes_field(delivered), target.fields, self._event_field, bytes_field(body)
        return b"".join((named, target.pk_field, self._transaction_fields)), b"".join(own)


class Target:
    """A tracker, and what each row of its own has in common."""

    def __init__(self, tracker: AnyRow) -> None:
        self.pk, self.project_pk, self.url = tracker.id, tracker.project_pk, tracker.url
        self.name, self.webhook_id = tracker.webhook_id.encode(), _encode(tracker.webhook_id)
        self.pk_field = bigint_field(self.pk)
        self.fields = bigint_field(self.project_pk) + self.pk_field + text_field(self.url)


class News(Struct, frozen=True, gc=False):
    """One thing that one tracker is told; ``named`` is its transaction's id in UTF-8.

    The rows are what ``copy_new`` takes: see ``End.rows``.
    """

    end: End
    target: Target
    label: str | None
    named: bytes
    transaction_row: bytes
    delivery_row: bytes

    @property
    def transaction_id(self) -> str:
        """The id of the tracker's transaction."""
        return self.named.decode()

    @property
    def delivery_id(self) -> str:
        """The id of what tells it."""
        return self.end.delivery_id_of(self.named).decode()

    def delivery(self) -> TrackerDelivery:
        """Return the delivery that tells it, for where its row cannot be copied."""
        end, target = self.end, self.target
        body = end.body(target.webhook_id, self.named, self.label)
        return TrackerDelivery(
            self.delivery_id, target.project_pk, target.pk, end.event, self.transaction_id, target.url, body
        )


def written(
    chain: str,
    stages: Sequence[Stage],
    movements: Sequence[Movement],
    matched: Matches,
    trackers: Mapping[int, AnyRow],
) -> Sequence[News]:
    """Write what was found, on who hears of what (``matched``).

    Made for a thread of its own: now and then it lets the others run, of which one feeds the database.
    """
    targets = {pk: Target(tracker) for pk, tracker in trackers.items()}
    alike: dict[int, Sequence[bytes]] = {}
    ends: dict[int, End] = {}
    news = []
    for place, (end, tracker_pk, label) in enumerate(zip(*matched, strict=True)):
        if not place % _MATCHES_AT_ONCE:
            time.sleep(0)
        told, target = ends.get(end), targets[tracker_pk]
        if told is None:
            number = end // 2
            if number not in alike:
                alike[number] = pieces(chain, movements[number], stages[number])
            told = ends[end] = End(chain, number, stages[number], movements[number], DIRECTIONS[end % 2], alike[number])
        named = told.transaction_id_of(target.name)
        news.append(News(told, target, label, named, *told.rows(target, named, label)))
    return news
