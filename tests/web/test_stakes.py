"""The operator changes what the gas station stakes, and sees what became of it, over HTTP."""

from __future__ import annotations

import asyncio

import pytest

from cambist.services.sending.batches import WAITS_FOR_FEES
from cambist.services.sending.queue.reasons import sentence_of
from tests.support.waiting import waits_for_a_lock
from tests.support.web import ADMIN_KEY, refused

pytestmark = pytest.mark.slow

PATH = "/api/admin/stakes"
ADMIN = {"X-Admin-Key": ADMIN_KEY}


async def ask(client, **body):
    return await client.post(PATH, headers=ADMIN, json={"chain": "memory", **body})


async def test_a_change_is_asked_for_once_and_listed(client, station):
    answer = await ask(client, action="stake", amount="2.5")
    assert answer.status_code == 201
    made = answer.json()["stake"]
    assert (made["chain"], made["action"], made["token"], made["amount"]) == ("memory", "stake", "MEM", "2.5")
    assert (made["status"], made["txHash"]) == ("waiting", None)
    refused(await ask(client, action="unstake", amount="1"), 409, "STAKE_CHANGING")
    assert (await client.get(PATH, headers=ADMIN)).json()["stakes"] == [made]
    assert (await client.get(f"{PATH}?chain=pretend", headers=ADMIN)).json()["stakes"] == []


@pytest.mark.parametrize(
    "state, reason, told",
    [
        ("waiting", None, (None, None, None, None)),
        ("waiting", WAITS_FOR_FEES, (WAITS_FOR_FEES, sentence_of(WAITS_FOR_FEES), None, None)),
        ("sending", WAITS_FOR_FEES, (None, None, None, None)),
        ("failed", "It could not be sent.", (None, None, "It could not be sent.", "NOT_SENT")),
    ],
)
async def test_what_it_waits_for_and_why_it_failed_are_told_with_codes(client, station, gateway, state, reason, told):
    await ask(client, action="stake", amount="2.5")
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE outbound_intents SET state = $1, reason = $2", (state, reason))
    (stake,) = (await client.get(PATH, headers=ADMIN)).json()["stakes"]
    assert tuple(stake[name] for name in ("waitsFor", "waitsForText", "error", "errorCode")) == told


async def test_without_an_amount_all_that_has_waited_is_withdrawn(client, station):
    assert (await ask(client, action="withdraw")).json()["stake"]["amount"] == "2"


async def test_all_that_has_waited_may_be_named(client, station):
    assert (await ask(client, action="withdraw", amount="2")).status_code == 201


async def test_what_the_worker_saw_before_the_last_change_is_not_believed(client, station, gateway):
    await ask(client, action="stake", amount="9")
    finish = "UPDATE outbound_intents SET state = 'done', finished_at = now() + $1::int * interval '1 second'"
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(finish, (1,))
    refused(await ask(client, action="stake", amount="9"), 409, "STAKE_CHANGING")
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(finish, (-60,))
    assert (await ask(client, action="stake", amount="9")).status_code == 201


async def test_the_same_key_changes_a_stake_once_whatever_became_of_the_change(client, station, gateway):
    made = await ask(client, action="stake", amount="2.5", idempotencyKey="lost")
    assert made.status_code == 201
    assert (await ask(client, action="stake", amount="2.50", idempotencyKey="lost")).json() == {
        **made.json(),
        "idempotent": True,
    }
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "UPDATE outbound_intents SET state = 'done', finished_at = now() - interval '1 hour'"
        )
    again = await ask(client, action="stake", amount="2.5", idempotencyKey="lost")
    assert (again.status_code, again.json()["stake"]["status"]) == (200, "done")
    for other in ({"action": "stake", "amount": "2"}, {"action": "withdraw"}):
        refused(await ask(client, **other, idempotencyKey="lost"), 409, "IDEMPOTENCY_KEY_REUSED")
    refused(await ask(client, action="stake", amount="2.5", idempotencyKey=""), 400, "VALIDATION_ERROR")
    assert len((await client.get(PATH, headers=ADMIN)).json()["stakes"]) == 1
    assert (await ask(client, action="stake", amount="2.5", idempotencyKey="another")).status_code == 201


async def test_a_twin_that_is_sent_meanwhile_is_the_same_change(client, station, gateway):
    async def once():
        return await ask(client, action="stake", amount="2.5", idempotencyKey="lost")

    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("SELECT FROM addresses FOR UPDATE")
        twins = [asyncio.create_task(once()) for _ in range(2)]
        await waits_for_a_lock(conn, twins[0], number=2)
    answers = [await twin for twin in twins]
    assert {answer.status_code for answer in answers} == {201, 200}, [answer.text for answer in answers]
    assert len({answer.json()["stake"]["stakeId"] for answer in answers}) == 1


@pytest.mark.parametrize(
    "body, status, code",
    [
        ({"action": "stake"}, 400, "VALIDATION_ERROR"),
        ({"action": "stake", "amount": "0"}, 400, "INVALID_AMOUNT"),
        ({"action": "stake", "amount": "-1"}, 400, "INVALID_AMOUNT"),
        ({"action": "stake", "amount": "10.000000000000000001"}, 400, "STAKE_OUT_OF_RANGE"),
        ({"action": "unstake", "amount": "4.1"}, 400, "STAKE_OUT_OF_RANGE"),
        ({"action": "withdraw", "amount": "3"}, 400, "STAKE_OUT_OF_RANGE"),
        ({"action": "withdraw", "amount": "1.5"}, 400, "STAKE_OUT_OF_RANGE"),
        ({"action": "burn", "amount": "1"}, 400, "VALIDATION_ERROR"),
        ({"action": "stake", "amount": "1", "all": True}, 400, "VALIDATION_ERROR"),
        ({"action": "stake", "amount": "1", "chain": "nowhere"}, 400, "UNSUPPORTED_CHAIN"),
        ({"action": "stake", "amount": "1", "chain": "pretend"}, 503, "CHAIN_UNAVAILABLE"),
    ],
)
async def test_what_cannot_be_is_refused_and_changes_nothing(client, station, body, status, code):
    refused(await ask(client, **body), status, code)
    assert (await client.get(PATH, headers=ADMIN)).json()["stakes"] == []


async def test_nobody_else_may(client, station, merchant):
    refused(await client.get(PATH, headers=merchant.key), 401, "ADMIN_KEY_INVALID")
    refused(await client.post(PATH, headers=merchant.key, json={}), 401, "ADMIN_KEY_INVALID")
