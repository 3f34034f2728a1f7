"""Acts that anybody may repeat without end, summed within a minute: whoever knocks a million times fills nothing.

Refusals, and requests for a password reset. One process's sums are in memory until their minute is over. A process that
is killed loses those of its last minute.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import structlog
from msgspec import Struct, field
from msgspec.structs import replace
from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import ApiKey, AuditEntry
from cambist.ports import Clock

from .entries import Action, Origin, tell

log = structlog.get_logger(__name__)

MINUTE_S = 60
KINDS_PER_ADDRESS_MAX = 20
"""Sums of one address. What else comes from there is summed by action and code: who asked is not told there."""
KINDS_PER_NETWORK_MAX = 100
"""Sums of one /48 of IPv6, which one customer may have: of 65,536 addresses as they are counted here."""
KINDS_MAX = 1_000
"""Sums of one process and minute that tell an address; as many that tell a merchant without one, or an operator."""
KINDS_PER_MERCHANT_MAX = 20
"""Sums of one merchant or operator that tell no address: no more of the address, its network or of all were told."""
EMAILS_MAX = 20
"""E-mail addresses that are told of one sum, the first that were given; of the others, how often they were.

As many as one address may give in a minute unless the operator allows more: decoys hide none that was guessed at.
"""


class Kind(Struct, frozen=True, kw_only=True):
    """What was done by whom: acts that are equal in this are summed. ``code`` is that of a refusal.

    ``people`` says whose sign-in was refused: merchants' or operators'.
    """

    action: Action
    origin: Origin
    code: str | None = None
    people: str | None = None


class Sum(Struct):
    """How many acts of a kind there were, and which e-mail addresses were given in them, how often."""

    count: int = 0
    emails: dict[str, int] = field(default_factory=dict)
    other_emails: int = 0

    def add(self, more: Sum) -> None:
        self.count += more.count
        self.other_emails += more.other_emails
        for email, count in more.emails.items():
            if email in self.emails or len(self.emails) < EMAILS_MAX:
                self.emails[email] = self.emails.get(email, 0) + count
            else:
                self.other_emails += count


class Minute:
    """The sums of one minute. A stranger's kinds are bounded before all are, so that they cost no other's entries."""

    def __init__(self) -> None:
        self.sums: dict[Kind, Sum] = {}
        self._kinds: Counter[Hashable] = Counter()

    def add(self, kind: Kind, more: Sum) -> None:
        if kind not in self.sums:
            kind = self._room_for(kind)
        self.sums.setdefault(kind, Sum()).add(more)

    def _room_for(self, kind: Kind) -> Kind:
        """Return the first of the kinds that this one may be summed as that is there, or that there is room for."""
        for one, bounds in _ways(kind):
            if one in self.sums:
                return one
            if all(self._kinds[what] < most for what, most in bounds.items()):
                self._kinds.update(bounds.keys())
                return one
        return replace(kind, origin=Origin(actor_kind="stranger"))


def _ways(kind: Kind) -> Iterator[tuple[Kind, Mapping[Hashable, int]]]:
    """Yield what a kind may be summed as, each telling less of who asked, and how many sums there may be beside it.

    Who is known stays told, without the address: no stranger decides what a merchant learns of a stolen key, or what
    an owner learns of an operator.
    """
    origin = kind.origin
    network = _network(origin.address)
    of_all: dict[Hashable, int] = {"addresses": KINDS_MAX}
    of_network = of_all if network is None else of_all | {("network", network): KINDS_PER_NETWORK_MAX}
    yield kind, of_network | {("address", origin.address): KINDS_PER_ADDRESS_MAX}
    is_operator = origin.actor_kind == "operator"
    known = ("operator", origin.actor) if is_operator else ("merchant", origin.merchant_id)
    if known[1] is not None:
        of_known: dict[Hashable, int] = {known[0]: KINDS_MAX, known: KINDS_PER_MERCHANT_MAX}
        yield replace(kind, origin=replace(origin, address=None, session_id=None)), of_known
    yield replace(kind, origin=Origin(actor_kind="stranger", address=origin.address)), of_network
    if network is not None:
        yield replace(kind, origin=Origin(actor_kind="stranger", address=network)), of_all


def _network(address: str | None) -> str | None:
    """Return the /48 of an IPv6 address or network, None for any other."""
    try:
        found = ipaddress.IPv6Network(address or "", strict=False)
    except ValueError:
        return None
    return str(found.supernet(new_prefix=48)) if found.prefixlen > 48 else str(found)  # noqa: PLR2004  a /48


class Sums:
    """One process's sums."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._minutes: dict[int, Minute] = {}
        self._writing = asyncio.Lock()

    def add(self, kind: Kind, *, email: str | None = None) -> None:
        """Count one act, at the time of the clock; ``email`` is the address that was given, which anybody may give."""
        one = Sum(count=1, emails={} if email is None else {email: 1})
        self._minutes.setdefault(self._minute(), Minute()).add(kind, one)

    async def write(self, *, unfinished: bool = False) -> None:
        """Write down the sums of the minutes that are over, and that of this one too where asked for.

        What another call is writing is written when this one returns. What cannot be written is kept for the next
        time, as long as there is room.
        """
        async with self._writing:
            await self._write(unfinished=unfinished)

    async def _write(self, *, unfinished: bool) -> None:
        now = self._minute()
        due = {minute: self._minutes.pop(minute) for minute in list(self._minutes) if unfinished or minute < now}
        found = [(minute, kind, one) for minute, summed in due.items() for kind, one in summed.sums.items()]
        if not found:
            return
        try:
            async with self._db.transaction() as conn:
                named = await _names(conn, [kind for _, kind, _ in found])
                rows = [_row(minute, kind, one, named) for minute, kind, one in found]
                await conn.execute(insert(AuditEntry), rows)
        except BaseException:  # a cancellation, too
            self._keep(due)
            raise
        for _, kind, one in found:
            actor = named.get(kind.origin.key_pk, kind.origin.actor)
            tell(kind.origin, kind.action, actor=actor, details=_details(kind, one), count=one.count)

    def _keep(self, due: Mapping[int, Minute]) -> None:
        """Keep the newest minute, of which there may be more by now; the rest is said to be lost."""
        newest = max(due)
        kept = self._minutes.setdefault(newest, Minute())
        for kind, one in due[newest].sums.items():
            kept.add(kind, one)
        lost = sum(one.count for minute, summed in due.items() if minute != newest for one in summed.sums.values())
        if lost:
            log.error("audit_sums_lost", count=lost)

    def _minute(self) -> int:
        return int(self._clock.now().timestamp()) // MINUTE_S


async def _names(conn: AsyncConnection, kinds: Sequence[Kind]) -> Mapping[int | None, str]:
    """Return the public ids of the API keys among them, by primary key."""
    keys = {kind.origin.key_pk for kind in kinds} - {None}
    if not keys:
        return {}
    found = await conn.execute(select(ApiKey.id, ApiKey.key_id).where(ApiKey.id.in_(keys)))
    return {row.id: row.key_id for row in found}


def _row(minute: int, kind: Kind, one: Sum, named: Mapping[int | None, str]) -> dict[str, object]:
    origin = kind.origin
    return {
        "at": datetime.fromtimestamp(minute * MINUTE_S, UTC),
        "action": kind.action,
        "actor_kind": origin.actor_kind,
        "actor": named.get(origin.key_pk, origin.actor),
        "address": origin.address,
        "merchant_id": origin.merchant_id,
        "project_id": origin.project_id,
        "details": _details(kind, one),
        "count": one.count,
    }


def _details(kind: Kind, one: Sum) -> dict[str, object]:
    told = {
        **kind.origin.details,
        "code": kind.code,
        "people": kind.people,
        "emails": one.emails,
        "other_emails": one.other_emails,
    }
    return {name: value for name, value in told.items() if value}
