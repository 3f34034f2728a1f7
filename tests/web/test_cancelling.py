"""Cancelling over HTTP: payouts, refunds and withdrawals, by whom it may be, and what is refused."""

from __future__ import annotations

import pytest

from cambist.domain.intents import AskedBy, IntentKind
from tests.support.payout_env import person
from tests.support.two_factor import enrol
from tests.support.web import Merchant, refused
from tests.web.test_payouts import BODY, WALLET, fund

DASHBOARD = "/api/dashboard"


@pytest.fixture
async def rich(client, gateway, merchant):
    await fund(gateway, merchant, 100)
    return merchant


async def pay(client, rich) -> str:
    answer = await client.post(f"{WALLET}/payout", json=BODY, headers=rich.key)
    return answer.json()["payout"]["payoutId"]


async def query(gateway, statement: str, *arguments):
    async with gateway.db.transaction() as conn:
        return (await conn.exec_driver_sql(statement, arguments)).all()


async def has_state(gateway, payout_id: str, state: str) -> None:
    """Have the engine have come so far with a payout."""
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "UPDATE outbound_intents SET state = $2 WHERE id = (SELECT intent_pk FROM payouts WHERE payout_id = $1)",
            (payout_id, state),
        )


async def test_a_waiting_payout_is_being_cancelled_at_once_and_asking_again_changes_nothing(client, gateway, rich):
    payout_id = await pay(client, rich)
    for _ in range(2):
        answer = await client.post(f"{WALLET}/payouts/{payout_id}/cancel", headers=rich.key)
        assert answer.status_code == 200, answer.text
        payout = answer.json()["payout"]
        assert (payout["payoutId"], payout["status"]) == (payout_id, "cancelling")
        assert (payout["waitsFor"], payout["error"], payout["errorCode"]) == ("cancellation", None, None)
        assert payout["waitsForText"].startswith("It is to be cancelled")
    listed = await client.get(f"{WALLET}/payouts?status=cancelling", headers=rich.key)
    assert [one["payoutId"] for one in listed.json()["payouts"]] == [payout_id]
    ((asked_by, kind),) = await query(gateway, "SELECT cancel_asked_by, kind FROM outbound_intents")
    assert (asked_by, kind) == (AskedBy.KEY, IntentKind.PAYOUT)
    entries = await query(gateway, "SELECT actor_kind, subject FROM audit_entries WHERE action = 'cancel.asked'")
    assert [tuple(one) for one in entries] == [("key", payout_id)]


@pytest.mark.parametrize("state, code", [("sending", "ALREADY_SENT"), ("done", "ALREADY_ENDED")])
async def test_what_is_sent_or_over_is_not_cancelled(client, gateway, rich, state, code):
    payout_id = await pay(client, rich)
    await has_state(gateway, payout_id, state)
    refused(await client.post(f"{WALLET}/payouts/{payout_id}/cancel", headers=rich.key), 409, code)
    answer = await client.get(f"{WALLET}/payouts/{payout_id}", headers=rich.key)
    assert answer.json()["payout"]["status"] == "requested"


async def test_nobody_cancels_what_is_another_s(client, gateway, rich):
    payout_id = await pay(client, rich)
    other = await Merchant(client).open("other@shop.example")
    for credentials, path in (
        (other.key, f"{WALLET}/payouts/{payout_id}/cancel"),
        (other.bearer, f"{DASHBOARD}/projects/{other.project_id}/wallet/payouts/{payout_id}/cancel"),
        (rich.key, f"{WALLET}/payouts/po_none/cancel"),
    ):
        refused(await client.post(path, headers=credentials), 404, "PAYOUT_NOT_FOUND")
    # Each noun at its own door.
    path = f"/api/payment/refunds/{payout_id}/cancel"
    refused(await client.post(path, headers=rich.key), 404, "REFUND_NOT_FOUND")
    path = f"{DASHBOARD}/withdrawals/{payout_id}/cancel"
    refused(await client.post(path, headers=rich.bearer), 404, "WITHDRAWAL_NOT_FOUND")


async def test_a_withdrawal_is_cancelled_in_person_without_a_code(client, gateway, rich, clock):
    phone, _ = await enrol(rich, clock)
    body = {"projectId": rich.project_id, "chain": "memory", "token": "USDX", "toAddress": person(), "amount": "10"}
    made = await client.post(f"{DASHBOARD}/withdrawals", json={**body, "totpCode": phone.code()}, headers=rich.bearer)
    withdrawal_id = made.json()["withdrawal"]["withdrawalId"]
    answer = await client.post(f"{DASHBOARD}/withdrawals/{withdrawal_id}/cancel", headers=rich.bearer)
    assert (answer.status_code, answer.json()["withdrawal"]["status"]) == (200, "cancelling")
    ((asked_by,),) = await query(gateway, "SELECT cancel_asked_by FROM outbound_intents")
    assert asked_by == AskedBy.SESSION
