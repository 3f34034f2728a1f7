"""A refusal names the values that a field can have, wherever in the body the field is."""

from __future__ import annotations

import time
from enum import Enum
from typing import Annotated, Literal

import pytest
from msgspec import Meta, Struct, json

from cambist.services.errors import InvalidError
from cambist_web.api.merchants import Login
from cambist_web.requests import decode_json


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Part(Struct, rename="camel"):
    of_mode: Literal["live", "sandbox"] | None = None
    colours: list[Colour] = []


class Body(Struct):
    parts: dict[str, list[Part]] = {}
    method: Literal[0, 1] = 0
    name: Annotated[str, Meta(min_length=1, max_length=100)] = "Shop"
    few: Annotated[list[int], Meta(max_length=2)] = []


@pytest.mark.parametrize(
    "body, field, told",
    [
        (b'{"method": 2}', "method", "must be one of 0, 1"),
        (b'{"parts": {"a": [{}, {"ofMode": "test"}]}}', "parts[...][1].ofMode", 'must be one of "live", "sandbox"'),
        (b'{"parts": {"a": [{"colours": ["pink"]}]}}', "parts[...][0].colours[0]", 'must be one of "red", "blue"'),
    ],
)
def test_a_value_that_is_none_of_several_is_told_which_they_are(body, field, told):
    with pytest.raises(InvalidError) as caught:
        decode_json(body, Body)
    assert [(one.field, one.message) for one in caught.value.details] == [(field, told)]


@pytest.mark.parametrize(
    "body, field, told",
    [
        ({"name": "x" * 101}, "name", "must have at most 100 characters"),
        ({"name": ""}, "name", "must have at least 1 character"),
        ({"few": [1, 2, 3]}, "few", "must have at most 2 entries"),
    ],
)
def test_a_value_that_is_too_long_or_too_short_is_told_so_in_plain_words(body, field, told):
    with pytest.raises(InvalidError) as caught:
        decode_json(json.encode(body), Body)
    assert [(one.field, one.message) for one in caught.value.details] == [(field, told)]


@pytest.mark.parametrize("around", ["{}", "{}\n", "x\n{}\n", "{}`\n", "`{}\n`", "{}.", "\n - at `${}"])
@pytest.mark.parametrize("within", [" - at `$", " - at `$.", "`$", "[", "` - at `$["])
def test_a_name_that_looks_like_what_the_decoder_says_is_read_as_fast_as_any(around, within):
    """Whoever signs in may send one, and need not be known: it kept the whole process for a minute."""
    name = around.format(within * (100_000 // len(within)))
    began = time.thread_time()
    for body in (
        {name: 1},
        {"email": name, name: 1},
        {"email": 1, "name": name},
        {"email": "ada@x.example", "in": name},
    ):
        with pytest.raises(InvalidError):
            decode_json(json.encode(body), Login)
    with pytest.raises(InvalidError):
        decode_json(json.encode({"parts": {name: [{"ofMode": name}]}}), Body)
    assert time.thread_time() - began < 2


@pytest.mark.parametrize("name", ["a\nb", "\n", "\n - at `$.a", "\n - at `$[["])
def test_a_name_of_several_lines_is_told_as_one_that_is_not_known(name):
    with pytest.raises(InvalidError) as caught:
        decode_json(json.encode({name: 1}), Login)
    assert [one.message for one in caught.value.details] == ["is not a field that is known here"]


def test_where_a_value_stands_is_told_whatever_it_says():
    with pytest.raises(InvalidError) as caught:
        decode_json(json.encode({"parts": {"a": [{"ofMode": "x - at `$.name`"}]}}), Body)
    assert [one.field for one in caught.value.details] == ["parts[...][0].ofMode"]
