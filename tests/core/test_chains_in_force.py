"""What every process reads again and again of what operators decided about chains, row by row."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cambist.plugin import EndpointHealth, Token
from cambist.secrets import SecretsBox
from cambist.services.chains import setups, states
from cambist.services.chains.rules import TokenRule, load_rules

TOKENS = """
INSERT INTO chain_tokens (
    token_id, chain, contract, origin, symbol, decimals, label, state, default_enabled, revision, created_at, changed_at
)
SELECT made.*, now(), now() FROM (VALUES ('t1', 'a', 'usual', 'added', 'USUAL', 6, '', 'enabled', true, 1),
    ('t2', 'a', 'asked', 'added', 'ASKED', 6, '', 'enabled', true, 2),
    ('t3', 'a', 'few', 'added', 'FEW', 6, '', 'enabled', false, 3),
    ('t4', 'a', 'none', 'added', 'NONE', 6, '', 'disabled', true, 4),
    ('t5', 'a', 'wrong', 'added', 'WRONG', 6, '', 'refused', false, 5),
    ('t6', 'b', 'asked', 'added', 'ASKED', 8, '', 'enabled', true, 1),
    ('t7', 'a', NULL, 'file', NULL, NULL, NULL, 'disabled', true, NULL)
) AS made
"""
MERCHANTS = """
INSERT INTO merchants (merchant_id, email, name) VALUES ('m1', '1@x.example', '1'), ('m2', '2@x.example', '2')
RETURNING id
"""
DECISIONS = """
INSERT INTO token_merchants (token_pk, merchant_pk, enabled)
SELECT t.id, d.merchant, d.enabled
FROM (VALUES ('t2', $1::bigint, false), ('t3', $1, true), ('t3', $2::bigint, false)) AS d (token, merchant, enabled)
JOIN chain_tokens t ON t.token_id = d.token
"""


@pytest.fixture
async def decided(db):
    """Have seven tokens, and decisions about two merchants, whose keys are returned."""
    async with db.transaction() as conn:
        await conn.exec_driver_sql(TOKENS)
        first, second = (await conn.exec_driver_sql(MERCHANTS)).scalars()
        await conn.exec_driver_sql(DECISIONS, (first, second))
    return first, second


async def test_only_what_is_not_as_usual_is_a_rule(db, decided):
    first, second = decided
    async with db.autocommit() as conn:
        rules = await load_rules(conn)
    assert rules == {
        ("a", "asked"): TokenRule(is_open=True, by_default=True, merchants={first: False}),
        ("a", "few"): TokenRule(is_open=True, by_default=False, merchants={first: True, second: False}),
        ("a", "none"): TokenRule(is_open=False, by_default=True),
        ("a", None): TokenRule(is_open=False, by_default=True),
    }


async def test_what_is_looked_for_is_what_was_added_and_not_refused(db, decided):
    async with db.autocommit() as conn:
        found = (await setups.load(conn)).tokens
    assert [(one.chain, one.symbol, one.revision) for one in found] == [
        ("a", "USUAL", 1), ("a", "ASKED", 2), ("a", "FEW", 3), ("a", "NONE", 4), ("b", "ASKED", 1),
    ]  # fmt: skip


async def test_a_symbol_stands_for_what_was_added_to_its_own_chain(db, decided):
    registry = SimpleNamespace(file_chains={})
    known = Token(symbol="ASKED", contract="before", decimals=18, label="")
    for chain, contract, decimals in (("a", "asked", 6), ("b", "asked", 8), ("c", "before", 18)):
        async with db.transaction() as conn:
            found = await setups.lock_token(conn, registry, chain, known)
        assert (found.contract, found.decimals) == (contract, decimals)


async def test_an_endpoint_that_is_not_told_of_is_absent_until_it_is_and_nobody_else(db, ids, clock):
    readings = states.Readings(SecretsBox([bytes(32)], ids.random_bytes), ids)

    async def told_of(*names: str) -> dict[str, tuple[str, bool]]:
        """Have these be told of, a second later; return each row's state, and whether it was changed just now."""
        clock.advance(1)
        health = [EndpointHealth(name=name, healthy=True, head=1, calls=1, failures=0) for name in names]
        async with db.transaction() as conn:
            await readings.save(conn, "a", None, None, health, now=clock.now(), monotonic=clock.monotonic())
            rows = await conn.exec_driver_sql("SELECT name, state, changed_at FROM chain_endpoints")
            return {row.name: (row.state, row.changed_at == clock.now()) for row in rows}

    assert await told_of("one", "two") == {"one": ("in_use", True), "two": ("in_use", True)}
    assert await told_of("one", "two") == {"one": ("in_use", False), "two": ("in_use", False)}
    assert await told_of("one") == {"one": ("in_use", False), "two": ("absent", True)}
    assert await told_of("one") == {"one": ("in_use", False), "two": ("absent", False)}
    assert await told_of("one", "two") == {"one": ("in_use", False), "two": ("in_use", True)}
