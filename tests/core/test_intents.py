"""The table of intent kinds, and what must agree with it."""

import re
from pathlib import Path

import pytest
from sqlalchemy import CheckConstraint

from cambist.db.engine import Database
from cambist.db.models.outbound import OutboundIntent
from cambist.domain.intents import (
    CARRIERS,
    DELAYED,
    EXCHANGING,
    FACTS,
    FOR_ITS_MOMENT,
    PAYOUTS,
    SPENDING,
    STAKING,
    HandlerName,
    IntentKind,
    metered_as,
)
from cambist.domain.usage import Operation
from cambist.ports import system_ids
from cambist.services.accounting.statements.kinds import TYPES
from cambist.services.intent_handlers import intent_handlers
from cambist.services.sending.handler import IntentHandler

UPDATES = ("on_waiting", "on_broadcast", "on_final", "on_failed", "on_undone")


def test_every_kind_has_its_facts() -> None:
    assert list(FACTS) == list(IntentKind)
    for kind, facts in FACTS.items():
        ways = facts.is_internal, facts.spends_merchant_money, facts.handler is HandlerName.EXCHANGES
        assert sum(ways) == 1, kind
        assert facts.is_delayed <= facts.spends_merchant_money <= (facts.metered_as is not None)
        assert (facts.handler is HandlerName.PAYOUTS) == facts.spends_merchant_money


def test_the_facts_are_these() -> None:
    assert sorted(SPENDING) == ["auto_payout", "payout", "refund", "withdrawal"]
    assert sorted(DELAYED) == ["auto_payout", "withdrawal"]
    assert STAKING == ("stake", "unstake", "withdraw_stake")
    assert {kind: str(facts.metered_as) for kind, facts in FACTS.items() if facts.metered_as is not None} == {
        "payout": "payout",
        "refund": "refund",
        "withdrawal": "withdrawal",
        "auto_payout": "payout",
        "collection": "collection",
        "swap": "swap",
        "bridge": "bridge",
    }
    assert {"swap", "bridge"} == EXCHANGING
    assert sorted(FOR_ITS_MOMENT) == ["bridge", "swap", "sweep"]
    assert CARRIERS == ("sweep",)
    assert PAYOUTS == ("payout", "auto_payout")
    assert {kind: facts.shown_as for kind, facts in FACTS.items() if facts.shown_as is not None} == {
        "payout": "payout",
        "refund": "refund",
        "withdrawal": "withdrawal",
        "auto_payout": "payout",
        "collection": "collection",
        "swap": "exchange",
        "bridge": "exchange",
    }
    assert {kind: facts.action for kind, facts in FACTS.items() if facts.action != "transfer"} == {
        "repair": "nothing",
        "loan": "lend",
        "loan_return": "reclaim",
        "stake": "stake",
        "unstake": "unstake",
        "withdraw_stake": "withdraw",
        "approval": "approve",
        "swap": "call",
        "bridge": "call",
    }
    assert {kind: facts.priority for kind, facts in FACTS.items() if facts.priority != 100} == {
        "repair": 0,
        "top_up": 10,
        "loan": 10,
        "loan_return": 10,
        "approval": 40,
        "collection": 50,
    }
    assert metered_as("auto_payout") is Operation.PAYOUT
    with pytest.raises(ValueError, match="costs no usage credits"):
        metered_as("sweep")


def kinds_in(text: str) -> set[str]:
    return set(re.findall(r"'(\w+)'", text))


def test_the_model_allows_these_kinds_and_no_others() -> None:
    (check,) = (
        one
        for one in OutboundIntent.__table__.constraints
        if isinstance(one, CheckConstraint) and str(one.sqltext).startswith("kind IN")
    )
    assert kinds_in(str(check.sqltext)) == set(IntentKind)


async def test_the_migrated_database_allows_these_kinds_and_no_others(db: Database) -> None:
    async with db.autocommit() as conn:
        found = await conn.exec_driver_sql(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'ck_outbound_intents_kind'"
        )
        assert kinds_in(found.scalar_one()) == set(IntentKind)


def test_every_kind_has_a_handler() -> None:
    by_kind = intent_handlers(system_ids())._by_kind
    assert set(by_kind) == set(IntentKind)
    for kind, handler in by_kind.items():
        ignores = all(getattr(type(handler), name) is getattr(IntentHandler, name) for name in UPDATES)
        assert ignores == (FACTS[kind].handler is HandlerName.NONE), f"{kind} goes to {type(handler).__name__}"


def test_every_type_of_a_statement_is_documented_and_can_be_chosen() -> None:
    page = Path("docs/merchants/wallet.md").read_text()
    rows = page.partition("| type | what happened |\n|---|---|\n")[2].partition("\n\n")[0].splitlines()
    documented = {name for row in rows for name in re.findall(r"\w+", row.split("|")[1])}
    statement = Path("web/dashboard/src/merchant/wallet/Statement.tsx").read_text()
    offered = re.findall(r'"(\w+)"', statement.partition("const TYPES = [")[2].partition("]")[0])
    assert documented == set(offered) == set(TYPES)
