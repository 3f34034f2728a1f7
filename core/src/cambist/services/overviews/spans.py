"""The time that an overview is about: whole days or hours of a time zone, one after the other.

Where each begins is decided here and not in the database, which may know other time zones than people's calendars.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from msgspec import Struct

from cambist.services.errors import InvalidError
from cambist.services.paging import parse_moment

ZONE_CHARS_MAX = 64


class Step(StrEnum):
    """How long one part of a series is."""

    DAY = "day"
    HOUR = "hour"


PARTS_MAX = {Step.DAY: 366, Step.HOUR: 31 * 24}
_PARTS = {Step.DAY: 30, Step.HOUR: 48}
"""What is shown where nobody says since when: so many, the one that is not over yet included."""


class Span(Struct, frozen=True, kw_only=True):
    """Consecutive parts of a time zone's calendar. ``edges`` are their beginnings, and the end of the last."""

    zone: str
    step: Step
    edges: Sequence[datetime]

    @property
    def since(self) -> datetime:
        return self.edges[0]

    @property
    def until(self) -> datetime:
        return self.edges[-1]

    @property
    def parts(self) -> range:
        return range(len(self.edges) - 1)


def span_of(since: str | None, until: str | None, zone: str, step: Step, now: datetime) -> Span:
    """Return the parts that a time touches, each of them whole. Raises InvalidError.

    A date or time without a zone is one of ``zone``. Without ``until`` the last part is the one that is not over yet.
    """
    place = _zone(zone)
    end = _parse("to", until, place) or now + timedelta(microseconds=1)
    last = _begin(end - timedelta(microseconds=1), place, step)
    begin = _parse("from", since, place)
    if begin is not None and begin >= end:
        raise InvalidError.field("to", "must be later than from")
    first = _back(last, _PARTS[step] - 1, place, step) if begin is None else _begin(begin, place, step)
    most = PARTS_MAX[step]
    if last - first > timedelta(days=1) * most if step is Step.DAY else last - first > timedelta(hours=1) * most:
        raise InvalidError.field("from", f"is too early: there are at most {most} {step}s in an overview")
    edges = [first]
    while edges[-1] <= last:
        edges.append(_next(edges[-1], place, step))
    if len(edges) - 1 > most:
        raise InvalidError.field("from", f"is too early: there are at most {most} {step}s in an overview")
    return Span(zone=zone, step=step, edges=[edge.astimezone(UTC) for edge in edges])


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    # A name may lead to a folder, or to a file that is none.
    except (KeyError, OSError, ValueError):
        words = "must be a name of the time zone database, such as Europe/Berlin"
        raise InvalidError.field("timeZone", words) from None


def _parse(field: str, text: str | None, place: ZoneInfo) -> datetime | None:
    if text is None:
        return None
    moment = parse_moment(field, text)
    try:
        said = datetime.fromisoformat(text)
    except ValueError:
        return moment
    if said.tzinfo is not None or moment is None:
        return moment
    return moment.replace(tzinfo=place).astimezone(UTC)


def _begin(moment: datetime, place: ZoneInfo, step: Step) -> datetime:
    """Return when the part began that a moment is in."""
    if step is Step.DAY:
        here = moment.astimezone(place)
        return datetime(here.year, here.month, here.day, tzinfo=place).astimezone(UTC)
    here = moment.astimezone(place)
    return (moment - timedelta(minutes=here.minute, seconds=here.second, microseconds=here.microsecond)).astimezone(UTC)


def _next(begin: datetime, place: ZoneInfo, step: Step) -> datetime:
    if step is Step.HOUR:
        return begin + timedelta(hours=1)
    day = begin.astimezone(place).date() + timedelta(days=1)
    return datetime(day.year, day.month, day.day, tzinfo=place).astimezone(UTC)


def _back(begin: datetime, parts: int, place: ZoneInfo, step: Step) -> datetime:
    if step is Step.HOUR:
        return begin - timedelta(hours=parts)
    day = begin.astimezone(place).date() - timedelta(days=parts)
    return datetime(day.year, day.month, day.day, tzinfo=place).astimezone(UTC)
