"""What streams say: which thing changed, in small messages. The page reads the thing itself where it shows it.

::

    id: <where to go on>          sent with every event behind which nothing waits for this stream
    event: ready                  data {"resumed": true}: what happened meanwhile follows; false: read what is shown
    event: changes                data {"changes": [{"kind": "payment", "id": "pay_...", ...}]}
    event: resync                 data {"reason": "behind"}: some changes are not told; read what is shown again
    event: end                    data {"reason": "session_ended"}: connect again, with a fresh access token

Between them come comments, so that proxies see that the connection is alive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from cambist.domain.intents import FACTS
from cambist.domain.payments import OPEN
from cambist.services.changes import Change

OF_MERCHANTS = frozenset(
    "account_deposit balance collection delivery deposit exchange invitation member payment payout refund resolution"
    " tracker withdrawal".split()
)
"""Kinds of things that a merchant has."""
KINDS = OF_MERCHANTS | frozenset(
    "chain cron gas_station job merchant operator outbound plan price price_source setting signer token"
    " uncollected".split()
)
"""Kinds of things that operators are told of."""
OF_TEAMS = frozenset({"invitation", "member"})
"""What every member sees, whatever projects are open to them."""
WHOLE_MERCHANTS = frozenset({"withdrawal"})
"""What concerns the merchant as a whole: members to whom only some projects are open do not see it."""
OF_PROJECTS = frozenset({"exchange", "payout", "refund"})
"""What is always some project's: told without one, it may be any's, and such members do not see it either."""
SENT_FOR: Mapping[str, str] = {kind: facts.shown_as for kind, facts in FACTS.items() if facts.shown_as is not None}
"""What a merchant reads again where something is to be sent, by what that is for. Gas and the like is nobody's."""

EndReason: TypeAlias = Literal["session_ended", "access_changed", "token_expired", "closing"]
ResyncReason: TypeAlias = Literal["behind", "gap"]


class ChangeMessage(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One thing to read again. Without `id` it is all of its kind, of this merchant and mode."""

    kind: str
    id: str | None = None
    merchant_id: str | None = None
    project_id: str | None = None
    mode: str | None = None
    status: str | None = None


class _Changes(Struct, frozen=True):
    changes: list[ChangeMessage]


_encoder = msgspec.json.Encoder()


def with_consequences(changes: Iterable[Change]) -> Iterator[Change]:
    """Yield the changes, and after each what else changed with it of its merchant: its balances, or what is sent."""
    for change in changes:
        yield change
        if change.merchant_pk is None:
            continue
        if _moves_money(change):
            yield _all_of("balance", change, None)
        # What is to be sent is told to operators alone: a merchant hears of what it is for.
        if change.kind == "outbound" and (kind := SENT_FOR.get(change.intent_kind or "")) is not None:
            yield _all_of(kind, change, change.project_pk)


def _all_of(kind: str, change: Change, project_pk: int | None) -> Change:
    """Say that something of a kind changed, of the merchant and the mode of this change.

    Members to whom that project is closed do not hear of it, and nobody is told which project it was.
    """
    return Change(
        kind=kind,
        object_id="",
        status=None,
        mode=change.mode,
        merchant_pk=change.merchant_pk,
        project_pk=project_pk,
        merchant_id=change.merchant_id,
        project_id=None,
    )


def _moves_money(change: Change) -> bool:
    if change.kind == "payment":
        return change.status not in OPEN
    if change.kind in {"deposit", "account_deposit"}:
        return change.status != "detected"
    return change.kind in {"payout", "refund", "withdrawal", "exchange", "resolution"}


def message_of(change: Change, *, for_operator: bool) -> ChangeMessage:
    """Return what is said of a change. A merchant is not told who it is."""
    return ChangeMessage(
        kind=change.kind,
        id=change.object_id or None,
        merchant_id=change.merchant_id if for_operator else None,
        project_id=change.project_id,
        mode=change.mode,
        status=change.status,
    )


def changes_event(messages: list[ChangeMessage], cursor: str | None) -> bytes:
    return _event("changes", _encoder.encode(_Changes(messages)), cursor)


def ready_event(*, resumed: bool, cursor: str | None, retry_ms: int) -> bytes:
    return f"retry: {retry_ms}\n".encode() + _event("ready", _encoder.encode({"resumed": resumed}), cursor)


def resync_event(reason: ResyncReason, cursor: str | None) -> bytes:
    return _event("resync", _encoder.encode({"reason": reason}), cursor)


def end_event(reason: EndReason) -> bytes:
    return _event("end", _encoder.encode({"reason": reason}), None)


def heartbeat(cursor: str | None) -> bytes:
    """Return a comment, and where to go on: an event without data changes nothing else in the page."""
    return b": still here\n" + _where(cursor) + b"\n"


def retry_line(retry_ms: int) -> bytes:
    return f"retry: {retry_ms}\n\n".encode()


def _event(name: str, data: bytes, cursor: str | None) -> bytes:
    return _where(cursor) + f"event: {name}\ndata: ".encode() + data + b"\n\n"


def _where(cursor: str | None) -> bytes:
    return b"" if cursor is None else f"id: {cursor}\n".encode()
