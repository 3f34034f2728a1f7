"""Bodies: nothing that is nested too deep is a bug of ours."""

from __future__ import annotations

from contextlib import suppress

import pytest

from cambist.services.errors import InvalidError
from cambist_web.requests import decode_json


@pytest.mark.parametrize("inner", [b"1", b'"x"', b'"\\u00e9"', '"é"'.encode()])
@pytest.mark.parametrize("opening, closing", [(b"[", b"]"), (b'{"a":', b"}")])
def test_however_deep_a_body_is_nested_it_is_read_or_refused(inner, opening, closing):
    """The decoder took a thousand levels but for a few, and the next look at them ran out of stack: a 500."""
    for depth in range(1, 1_100):
        body = opening * depth + inner + closing * depth
        with suppress(InvalidError):
            decode_json(body, object)
