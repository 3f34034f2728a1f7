"""Bodies: every field once, and nothing that is nested too deep is a bug of ours."""

from __future__ import annotations

from bisect import bisect_left

import pytest

from cambist.services.errors import InvalidError
from cambist_web.requests import decode_json


@pytest.mark.parametrize(
    "body, field",
    [
        (b'{"a": 1, "a": 1}', "a"),
        (b'{"a": 1, "\\u0061": 2}', "a"),
        (b'{"a": "\\u0022\\u0022", "a": 2}', "a"),
        ('{"é": 1, "b": 2, "é": 3}'.encode(), "é"),
        (b'{"a": [1, {"b": {"c": {}, "d": 1, "c": {}}}]}', "a[1].b.c"),
        (b'[{"a": 1}, {"b": 1, "b": 2}]', "[1].b"),
        (b'{"": 1, "": 2}', "body"),
    ],
)
def test_a_field_that_is_there_twice_is_refused_by_its_place(body, field):
    with pytest.raises(InvalidError) as caught:
        decode_json(body, object)
    assert [one.field for one in caught.value.details] == [field]


@pytest.mark.parametrize(
    "body, value",
    [
        (b'{"a": {"b": 1}, "b": {"b": 1}}', {"a": {"b": 1}, "b": {"b": 1}}),
        (b'[{"a": 1}, {"a": 1}]', [{"a": 1}, {"a": 1}]),
        (b'{"a": "\\"a\\": 1, \\"a\\": 2", "b": "\\u0022"}', {"a": '"a": 1, "a": 2', "b": '"'}),
        (b'{"a": "a", "A": "a"}', {"a": "a", "A": "a"}),
        (b'{"a": 123456789012345678901234567890, "b": 1.5e3}', {"a": 123456789012345678901234567890, "b": 1500.0}),
    ],
)
def test_what_is_there_once_in_its_object_is_taken(body, value):
    assert decode_json(body, object) == value


def test_a_body_with_escapes_is_parsed_no_second_time_either(monkeypatch):
    """PHP writes every slash with one. A body of a megabyte took half a second, in which nobody else was answered."""
    monkeypatch.setattr("cambist_web.requests._fields_as_written", None)
    body = rb'{"url": "https:\/\/shop.example\/", "a": "\"a\": \\", "b": {"a": "\u0022", "\u0061\"": "\\\\"}}'
    value = {"url": "https://shop.example/", "a": '"a": \\', "b": {"a": '"', 'a"': "\\\\"}}
    assert decode_json(body, object) == value


@pytest.mark.parametrize("inner", [b"1", b'"x"', b'"\\u00e9"', '"é"'.encode()])
@pytest.mark.parametrize("opening, closing", [(b"[", b"]"), (b'{"a":', b"}")])
def test_however_deep_a_body_is_nested_it_is_read_or_refused(inner, opening, closing):
    """The decoder took a thousand levels but for a few, and the next look at them ran out of stack: a 500."""

    def is_refused(depth):
        try:
            decode_json(opening * depth + inner + closing * depth, object)
        except InvalidError:
            return True
        return False

    # Where the one begins and the other ends lies whatever some looks took and others did not.
    first = bisect_left(range(1_100), True, lo=1, key=is_refused)
    assert first > 100, "nobody nests as deep as that"
    for depth in range(first - 40, first + 40):
        is_refused(depth)
