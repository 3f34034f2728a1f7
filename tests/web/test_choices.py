"""A refusal names the values that a field can have, wherever in the body the field is."""

from __future__ import annotations

from enum import Enum
from typing import Literal

import pytest
from msgspec import Struct

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
