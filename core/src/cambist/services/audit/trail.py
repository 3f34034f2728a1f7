"""The audit log as it is read over the API: all of it for operators, its own entries for a merchant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import ColumnElement, String, and_, case, cast, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import ApiKey, AuditEntry, Member, Merchant, Operator, Project
from cambist.db.structs import AnyRow, AnySelect, Column, columns_of, to_struct
from cambist.services.listing import ALWAYS, Listed, ListOf, Part, Period, read_list

from .entries import Action, ActorKind


class TrailEntry(Struct, frozen=True, kw_only=True, rename="camel"):
    """An act, or the `count` equal ones of a minute. Names are those of today, and null for what is gone."""

    entry_id: str
    created_at: datetime
    action: str
    actor_kind: ActorKind
    actor: str | None
    actor_name: str | None
    address: str | None
    merchant_id: str | None
    merchant_name: str | None
    project_id: str | None
    project_name: str | None
    subject: str | None
    details: Mapping[str, Any]
    count: int


class OwnTrailEntry(Struct, frozen=True, kw_only=True, rename="camel"):
    """An act that concerns a merchant, or the `count` equal ones of a minute.

    Of what the gateway's operators did is told that it was done. Who it was, from where and why is theirs.
    """

    created_at: datetime
    action: str
    actor_kind: ActorKind
    actor: str | None
    actor_name: str | None
    address: str | None
    project_id: str | None
    project_name: str | None
    subject: str | None
    details: Mapping[str, Any]
    count: int


class Wanted(Struct, frozen=True, kw_only=True):
    """Which entries are wanted; None is no filter."""

    action: Action | None = None
    actor_kind: ActorKind | None = None
    actor: str | None = None
    project_id: str | None = None
    subject: str | None = None
    address: str | None = None
    period: Period = ALWAYS


TOLD_OF_OPERATORS: Mapping[str, Sequence[str]] = {
    Action.CREDITS_GRANTED: ("amount", "mode"),
    Action.PLAN_GIVEN: ("name",),
    Action.CANCEL_ASKED: ("payout", "exchange"),
    Action.SETTLE_ASKED: ("payout", "exchange"),
    Action.MERCHANT_MADE: ("live",),
    Action.DEPOSIT_ACCEPTED: ("project",),
    Action.DEPOSIT_RELEASED: ("project",),
}
"""What a merchant reads of the details of operators' acts. All else was written for operators."""
_SUBJECT_NOT_TOLD = frozenset({Action.CREDITS_GRANTED})
"""Acts of operators whose subject is a text of theirs."""

_EVERYBODYS = ListOf(
    AuditEntry.id,
    AuditEntry.at,
    indexed=[AuditEntry.subject, AuditEntry.actor, AuditEntry.address, AuditEntry.action],
)
_MERCHANTS = ListOf(AuditEntry.id, AuditEntry.at)
_BY_OPERATOR = AuditEntry.actor_kind == "operator"


def _unless_by_operator(column: Column) -> ColumnElement[Any]:
    return case((_BY_OPERATOR, None), else_=column)


def _actor_name() -> ColumnElement[Any]:
    """Return the name of a member, an operator or a key: who did it goes by one of these identifiers."""
    member = select(Member.name).where(Member.member_id == AuditEntry.actor)
    operator = select(Operator.name).where(Operator.operator_id == AuditEntry.actor)
    key = select(ApiKey.name).where(ApiKey.key_id == AuditEntry.actor)
    named = (one.correlate(AuditEntry).scalar_subquery() for one in (member, operator, key))
    return func.coalesce(*named)


def _entries(into: type[Struct], **others: Column) -> AnySelect:
    named: dict[str, Any] = {
        "entry_id": cast(AuditEntry.id, String),
        "created_at": AuditEntry.at,
        "actor_name": _actor_name(),
        "merchant_name": Merchant.name,
        "project_name": Project.name,
    }
    selected = select(*columns_of(into, AuditEntry, **named | others)).select_from(AuditEntry)
    return selected.outerjoin(Merchant, Merchant.merchant_id == AuditEntry.merchant_id).outerjoin(
        Project, Project.project_id == AuditEntry.project_id
    )


_ALL = _entries(TrailEntry)
_OWN = _entries(
    OwnTrailEntry,
    actor=_unless_by_operator(AuditEntry.actor),
    actor_name=_unless_by_operator(_actor_name()),
    address=_unless_by_operator(AuditEntry.address),
)


async def list_entries(
    conn: AsyncConnection, wanted: Wanted, part: Part, *, merchant_id: str | None
) -> Listed[TrailEntry]:
    """Return one part of the whole log, or of what concerns one merchant."""
    filters = {
        AuditEntry.action: wanted.action,
        AuditEntry.actor_kind: wanted.actor_kind,
        AuditEntry.actor: wanted.actor,
        AuditEntry.project_id: wanted.project_id,
        AuditEntry.subject: wanted.subject,
        AuditEntry.address: wanted.address,
    }
    # Few entries are about one subject, by one actor or from one address. Of one action there may be more than one
    # merchant has of all.
    few = any((wanted.subject, wanted.actor, wanted.address))
    owned = merchant_id is not None and not few
    return await read_list(
        conn,
        _ALL,
        partial(to_struct, TrailEntry),
        _MERCHANTS if owned else _EVERYBODYS,
        part,
        own={AuditEntry.merchant_id: merchant_id} if owned else {},
        filters=filters if owned else filters | {AuditEntry.merchant_id: merchant_id},
        period=wanted.period,
    )


async def list_own(conn: AsyncConnection, merchant_id: str, wanted: Wanted, part: Part) -> Listed[OwnTrailEntry]:
    """Return one part of what concerns a merchant. What is not told of operators cannot be looked for either."""
    also: list[ColumnElement[bool]] = [
        and_(column == value, ~_BY_OPERATOR)
        for column, value in ((AuditEntry.actor, wanted.actor), (AuditEntry.address, wanted.address))
        if value is not None
    ]
    if wanted.subject is not None:
        told = [~_BY_OPERATOR, AuditEntry.action.not_in(_SUBJECT_NOT_TOLD)]
        also.append(and_(AuditEntry.subject == wanted.subject, told[0] | told[1]))
    return await read_list(
        conn,
        _OWN,
        _own_entry,
        _MERCHANTS,
        part,
        own={AuditEntry.merchant_id: merchant_id},
        filters={
            AuditEntry.action: wanted.action,
            AuditEntry.actor_kind: wanted.actor_kind,
            AuditEntry.project_id: wanted.project_id,
        },
        also=also,
        period=wanted.period,
    )


def _own_entry(row: AnyRow) -> OwnTrailEntry:
    entry = to_struct(OwnTrailEntry, row)
    if entry.actor_kind != "operator":
        return entry
    told = TOLD_OF_OPERATORS.get(entry.action, ())
    details = {name: entry.details[name] for name in told if name in entry.details}
    subject = None if entry.action in _SUBJECT_NOT_TOLD else entry.subject
    return msgspec.structs.replace(entry, details=details, subject=subject)
