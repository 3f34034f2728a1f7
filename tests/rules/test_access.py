"""Who is let in where is decided for every route: its door, the scope that a key needs, what a session needs."""

from __future__ import annotations

from typing import get_args

import pytest
from msgspec.structs import replace

from cambist.services.identity.api_keys import Scope
from tests.support.access import decided, found_in
from tests.support.web import shown_app

WRITES = {"POST", "PUT", "PATCH", "DELETE"}


@pytest.fixture(scope="module")
def routes():
    """Give what the app says of its routes, which needs no gateway."""
    return set(found_in(shown_app()))


def test_every_route_has_been_decided_about_and_says_so_itself(routes):
    assert len(routes) > 90
    assert routes == {replace(row, own_code=False) for row in decided()}


def test_every_route_for_keys_has_a_scope_and_what_reads_needs_no_more_than_read(routes):
    rows = [row for row in routes if row.door == "key"]
    assert len(rows) > 25
    assert {row.scope for row in rows} <= set(get_args(Scope))
    assert {row for row in rows if (row.method == "GET") != (row.scope == "read")} == set()


def test_what_sends_money_by_a_session_asks_for_a_second_factor(routes):
    """Whatever the table says: a route for sessions that writes with these scopes sends, and steps up.

    Who asks for a quote or has rows checked sends nothing, nor does who cancels.
    """
    sends = {"refunds", "payouts", "exchange"}
    rows = [row for row in routes if row.door == "project" and row.scope in sends and row.method in WRITES]
    moves = [
        row
        for row in rows
        if "/sandbox/" not in row.path and not row.path.endswith(("/quote", "/batch/check", "/cancel"))
    ]
    assert len(moves) > 5
    assert [row for row in moves if not row.step_up] == []


def test_where_a_session_stands_for_no_project_it_steps_up_for_the_team_alone(routes):
    """Whatever else moves money there asks for a code of its own. Of what is one's own, leaving the team does."""
    rows = [row for row in routes if row.step_up and row.door not in {"project", "key", "operator"}]
    assert {(row.door, row.member) for row in rows if not row.path.endswith("/members/leave")} == {
        ("session", "team.manage"),
        ("session", "team.recover"),
    }
