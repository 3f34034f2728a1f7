"""The parts of an overview: whole days and hours of a time zone, also where clocks are changed."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime, timedelta

import pytest

from cambist.services.errors import InvalidError
from cambist.services.overviews.spans import PARTS_MAX, Step, span_of

NOW = datetime(2026, 4, 2, 15, 20, tzinfo=UTC)
BERLIN = "Europe/Berlin"


def utc(*parts):
    return datetime(*parts, tzinfo=UTC)


def test_days_are_those_of_the_time_zone_and_the_day_of_new_clocks_is_shorter():
    span = span_of("2026-03-28", "2026-03-31", BERLIN, Step.DAY, NOW)
    assert span.edges == [utc(2026, 3, 27, 23), utc(2026, 3, 28, 23), utc(2026, 3, 29, 22), utc(2026, 3, 30, 22)]
    assert len(span.parts) == 3
    back = span_of("2026-10-25", "2026-10-26", BERLIN, Step.DAY, NOW)
    assert back.until - back.since == timedelta(hours=25)


def test_hours_are_whole_also_half_an_hour_beside_the_others():
    span = span_of("2026-04-02T10:00:00Z", "2026-04-02T11:00:00Z", "Asia/Kolkata", Step.HOUR, NOW)
    assert span.edges == [utc(2026, 4, 2, 9, 30), utc(2026, 4, 2, 10, 30), utc(2026, 4, 2, 11, 30)]
    twice = span_of("2026-10-25", "2026-10-26", BERLIN, Step.HOUR, NOW)
    assert len(twice.parts) == 25
    assert len(set(twice.edges)) == 26


def test_without_a_time_it_is_the_last_thirty_days_or_two_days_of_hours():
    days = span_of(None, None, BERLIN, Step.DAY, NOW)
    assert (len(days.parts), days.since, days.until) == (30, utc(2026, 3, 3, 23), utc(2026, 4, 2, 22))
    hours = span_of(None, None, "UTC", Step.HOUR, NOW)
    assert (len(hours.parts), hours.until) == (48, utc(2026, 4, 2, 16))


def test_a_time_is_of_the_zone_unless_it_says_another():
    assert span_of("2026-03-01", "2026-03-02", "America/New_York", Step.DAY, NOW).since == utc(2026, 3, 1, 5)
    assert span_of("2026-03-01T00:00:00Z", "2026-03-02", "America/New_York", Step.DAY, NOW).since == utc(2026, 2, 28, 5)


@pytest.mark.parametrize("step", list(Step))
def test_there_are_so_many_parts_and_no_more(step):
    length = timedelta(days=1) if step is Step.DAY else timedelta(hours=1)
    end = utc(2026, 3, 1)
    longest = span_of(f"{end - PARTS_MAX[step] * length:%Y-%m-%dT%H:%M:%SZ}", "2026-03-01", "UTC", step, NOW)
    assert len(longest.parts) == PARTS_MAX[step]
    with pytest.raises(InvalidError) as refused:
        span_of(f"{end - (PARTS_MAX[step] + 1) * length:%Y-%m-%dT%H:%M:%SZ}", "2026-03-01", "UTC", step, NOW)
    assert refused.value.details[0].field == "from"
    with pytest.raises(InvalidError):
        span_of("0001-01-01", "9999-12-31", BERLIN, step, NOW)
    assert span_of("8999-12-30", "9999-12-31", BERLIN, Step.DAY, NOW).until > NOW


@pytest.mark.parametrize("zone", ["Mars/Olympus", "..", "/etc/passwd", "europe", "", "Europe", "a" * 64, "\x00"])
def test_what_is_no_time_zone_is_refused(zone):
    with pytest.raises(InvalidError) as refused:
        span_of(None, None, zone, Step.DAY, NOW)
    assert refused.value.details[0].field == "timeZone"


def test_a_time_that_ends_before_it_begins_is_refused():
    with pytest.raises(InvalidError) as refused:
        span_of("2026-03-02", "2026-03-02", "UTC", Step.DAY, NOW)
    assert refused.value.details[0].field == "to"


def test_time_zones_are_known_on_a_machine_that_has_none():
    found = zoneinfo.TZPATH
    zoneinfo.reset_tzpath(to=[])
    zoneinfo.ZoneInfo.clear_cache()
    try:
        span = span_of("2026-03-01", "2026-03-02", BERLIN, Step.DAY, NOW)
    finally:
        zoneinfo.reset_tzpath(to=found)
    assert span.since == utc(2026, 2, 28, 23)
