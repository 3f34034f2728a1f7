"""What the routes leave open: other methods, other spellings. Who is let in where: ``test_access.py``."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import cycle

import pytest

from tests.support.access import decided, filled
from tests.support.web import refused

pytestmark = pytest.mark.slow

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "OPTIONS")


async def test_no_path_takes_a_method_that_nobody_decided_about_whoever_asks(client, live_merchant):
    """Where a credential is asked for, OPTIONS asks for it too, and says then which methods there are."""
    offered = defaultdict(set)
    for row in decided():
        offered[row.path].add(row.method)
    doors = {row.path: row.door for row in decided()}
    asking = cycle(({}, live_merchant.bearer))
    for path, methods in offered.items():
        one = filled(path, projectId=live_merchant.project_id)
        for method in sorted(set(METHODS) - methods - {"OPTIONS"}):
            answer = await client.request(method, one, headers=next(asking))
            assert answer.status_code == 405, (method, one, answer.status_code)
            if method != "HEAD":
                refused(answer, 405, "METHOD_NOT_ALLOWED")
        asked = await client.request("OPTIONS", one)
        if doors[path]:
            assert asked.status_code == 401, one
            continue
        assert (asked.status_code, asked.content) == (204, b""), one
        assert set(asked.headers["allow"].split(", ")) == methods | {"OPTIONS"}, one


async def test_another_spelling_of_a_path_opens_nothing(client):
    spell = cycle((("/api/", "/api//"), (r"$", "/"), ("/api/", "/API/"), (r"$", "//")))
    for row in decided():
        if not row.door:
            continue
        path = filled(row.path)
        plain = await client.request(row.method, path)
        assert plain.status_code == 401, path
        spelling = re.sub(*next(spell), path, count=1)
        answer = await client.request(row.method, spelling)
        assert answer.status_code in {401, 404}, (row.method, spelling, answer.status_code)
        if answer.status_code == 401:
            assert answer.json()["code"] == plain.json()["code"], spelling
