"""A refusal names the values that a field can have, wherever in the body the field is."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Literal

import pytest
from msgspec import Meta, Struct, json

from cambist.services.errors import InvalidError
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
