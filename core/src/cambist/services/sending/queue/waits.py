"""What an open intent waits for, as the database finds it: the same codes as ``reasons.why`` gives, for a filter."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from sqlalchemy import Boolean, ColumnElement, Text, and_, case, literal_column
from sqlalchemy.orm import aliased

from cambist.db.models import Exchange, OutboundIntent, OutboundSlot
from cambist.db.structs import one_of
from cambist.domain.intents import WAITS_FOR_TURN
from cambist.services.sending.batches import WAITS_FOR_CALL, WAITS_FOR_OPERATOR

UNSEEN = timedelta(minutes=1)
"""So long after it was asked for, nobody wonders that nothing has become of it."""
EXCHANGE_REASONS = ("allowance", "provider", WAITS_FOR_TURN)
"""What a swap or a bridge waits for before its call is built: it says more than that its call is."""

INTENT = aliased(OutboundIntent, name="i")
SLOT = aliased(OutboundSlot, name="s")

# Of the same sender and chain; what is under way at once is bounded, and so is what these look through.
BEHIND = literal_column(
    """
(SELECT o.intent_id FROM outbound_intents o JOIN outbound_slots p ON p.intent_pk = o.id AND p.state = 'open'
    WHERE o.source_address_pk = i.source_address_pk AND o.chain = i.chain AND o.state = 'sending' AND o.id <> i.id
    AND o.scope = i.scope AND (s.id IS NULL OR p.sequence < s.sequence) ORDER BY p.sequence LIMIT 1)
""",
    Text,
)
IS_GAP = literal_column(
    """
coalesce(s.sequence > greatest(
    (SELECT n.mined_sequence FROM outbound_senders n WHERE n.address_pk = s.address_pk AND n.chain = s.chain
        AND n.scope = s.scope),
    (SELECT c.sequence + 1 FROM outbound_slots c WHERE c.address_pk = s.address_pk AND c.chain = s.chain
        AND c.scope = s.scope AND c.state <> 'open' ORDER BY c.sequence DESC LIMIT 1)
) + (SELECT count(*) FROM outbound_intents o JOIN outbound_slots p ON p.intent_pk = o.id AND p.state = 'open'
    WHERE o.source_address_pk = s.address_pk AND o.chain = s.chain AND o.scope = s.scope AND o.state = 'sending'
    AND p.sequence < s.sequence), false)
""",
    Boolean,
)
_IS_MINED = literal_column(
    "EXISTS (SELECT FROM outbound_txs t WHERE t.slot_pk = s.id AND t.height IS NOT NULL)", Boolean
)
_IS_TAKEN = literal_column(
    "EXISTS (SELECT FROM outbound_txs t WHERE t.slot_pk = s.id AND t.sent_at IS NOT NULL)", Boolean
)
UNAVAILABLE = "chain_unavailable"
SENDING = frozenset({"swept", "confirming", "sequence_taken", "gap", "behind", "not_taken", "pending"})
"""What is said of what is being sent; all else is said of what waits."""

_sending = case(
    (SLOT.id.is_(None), "swept"),
    (_IS_MINED, "confirming"),
    (SLOT.missing_since.is_not(None), "sequence_taken"),
    (IS_GAP, "gap"),
    (and_(SLOT.sequence.is_not(None), BEHIND.is_not(None)), "behind"),
    (~_IS_TAKEN, "not_taken"),
    else_="pending",
)


class Seen(Struct, frozen=True, kw_only=True):
    """What says besides an intent why it waits.

    ``sendable`` are the chains that are configured, in live mode those that are live, and ``paused`` the live ones on
    which an operator has paused sending.
    """

    sendable: Sequence[str]
    paused: Sequence[str]
    now: datetime


def waits_for(reason: str, seen: Seen) -> ColumnElement[bool]:
    """Say that this is what an intent waits for. Its exchange, if it has one, and its open slot are joined as ``s``."""
    is_paused = and_(INTENT.mode == "live", one_of(INTENT.chain, seen.paused), INTENT.cancel_asked_at.is_(None))
    is_unreasoned = INTENT.reason.is_(None)
    waiting = case(
        (is_paused, WAITS_FOR_OPERATOR),
        (and_(is_unreasoned, INTENT.created_at > seen.now - UNSEEN), "new"),
        (and_(is_unreasoned, INTENT.due_at > seen.now), "gives_way"),
        (is_unreasoned, "not_looked_at"),
        (and_(INTENT.reason == WAITS_FOR_CALL, Exchange.waits_for.in_(EXCHANGE_REASONS)), Exchange.waits_for),
        else_=INTENT.reason,
    )
    is_sendable = one_of(INTENT.chain, seen.sendable)
    if reason == UNAVAILABLE:
        return ~is_sendable
    if reason in SENDING:
        return and_(INTENT.state == "sending", is_sendable, _sending == reason)
    return and_(INTENT.state == "waiting", is_sendable, waiting == reason)
