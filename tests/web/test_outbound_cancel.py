"""An operator cancels what waits: whatever was a merchant's money, and nothing of the gateway's own."""

from __future__ import annotations

import pytest

from cambist.domain.intents import EXCHANGING, FACTS, SPENDING, AskedBy, IntentKind
from cambist.plugin import Units
from cambist.services import platform
from cambist.services.payouts.queue import NewPayout, PayoutContext, debit_and_queue
from tests.support.exchange_offers import asked, made_rich, open_with_exchanges, stored
from tests.support.operators import Officer
from tests.support.payout_env import person
from tests.support.web import refused

pytestmark = pytest.mark.slow

QUEUE = "/api/admin/outbound"
OWN = """
INSERT INTO outbound_intents (reference, kind, mode, chain, scope, source_address_pk, to_address, token, decimals,
    units, action, state, due_at, created_at, updated_at)
SELECT $1 || ':one', $1, 'live', 'memory', 0, id, 'mem1to', 'MEM', 18, 1, $2, 'waiting', now(), now(), now()
    FROM addresses LIMIT 1
"""
ADDRESS = """
INSERT INTO addresses (mode, family, address, purpose, account_index, change, address_index)
VALUES ('live', 'memory', 'mem1from', 'gas', 0, 0, 0)
"""


@pytest.fixture
def opening():
    return open_with_exchanges


async def queued(gateway, merchant, kind: IntentKind) -> None:
    """Have a merchant's money wait to be sent: not all kinds of it are asked for over HTTP."""
    chain = gateway.registry.chains["memory"]
    (owner,) = await stored(gateway, "SELECT id, merchant_pk FROM projects")
    new = NewPayout(
        kind=kind,
        payout_id=gateway.ids.new("po"),
        project_pk=owner["id"],
        merchant_pk=owner["merchant_pk"],
        mode="live",
        chain=chain,
        token=chain.token("USDX"),
        to_address=person(),
        units=Units(10_000_000),
    )
    context = PayoutContext(registry=gateway.registry, keys=gateway.keys, clock=gateway.clock, ids=gateway.ids)
    async with gateway.db.transaction() as conn:
        await debit_and_queue(conn, context, await platform.load(conn), [new])


@pytest.fixture
async def waits(client, gateway, merchant):
    """Give what has an intent of a kind wait; it returns the intent's id."""

    async def waits(kind: IntentKind) -> str:
        if kind in SPENDING:
            await queued(gateway, await made_rich(gateway, merchant), kind)
        elif kind in EXCHANGING:
            await made_rich(gateway, merchant)
            answer = await asked(client, merchant.key, f"{kind}/execute", {})
            assert answer.status_code == 200, answer.text
        else:
            async with gateway.db.transaction() as conn:
                await conn.exec_driver_sql(ADDRESS)
                await conn.exec_driver_sql(OWN, (kind, FACTS[kind].action))
        query = f"SELECT intent_id FROM outbound_intents WHERE kind = '{kind}'"  # noqa: S608  an enum's own text
        (intent,) = await stored(gateway, query)
        return str(intent["intent_id"])

    return waits


async def entries(gateway):
    return await stored(gateway, "SELECT actor, subject, details FROM audit_entries WHERE action = 'cancel.asked'")


@pytest.mark.parametrize("kind", sorted(SPENDING | EXCHANGING))
async def test_merchants_money_that_waits_is_cancelled_once_and_the_log_says_of_what(
    client, gateway, merchant, waits, kind
):
    ada, intent_id = await Officer(client).sign_in("operator", stepped_up=True), await waits(kind)
    for _ in range(2):
        answer = await ada.ask("POST", f"{QUEUE}/{intent_id}/cancel")
        assert answer.status_code == 200, answer.text
        one = answer.json()["outbound"]
        assert (one["intentId"], one["kind"], one["state"]) == (intent_id, kind, "cancelling")
    assert await stored(gateway, "SELECT cancel_asked_by FROM outbound_intents") == [
        {"cancel_asked_by": AskedBy.OPERATOR}
    ]
    (entry,) = await entries(gateway)
    assert (entry["actor"], entry["subject"]) == (ada.made.operator_id, intent_id)
    told = {name: entry["details"].get(name) for name in ("payout", "exchange")}
    assert told == {"payout": one["payoutId"], "exchange": one["txnId"]}
    assert told["exchange" if kind in EXCHANGING else "payout"] is not None


@pytest.mark.parametrize("kind", sorted(set(IntentKind) - SPENDING - EXCHANGING))
async def test_what_is_the_gateways_own_is_not_cancelled(client, gateway, waits, kind):
    ada, intent_id = await Officer(client).sign_in("operator", stepped_up=True), await waits(kind)
    refused(await ada.ask("POST", f"{QUEUE}/{intent_id}/cancel"), 409, "NOT_CANCELLABLE")
    assert await stored(gateway, "SELECT cancel_asked_at FROM outbound_intents") == [{"cancel_asked_at": None}]
    assert await entries(gateway) == []
