"""Operators see what the signer told, and hand it their answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from cambist.services.signing import answers, reports
from cambist.signer.reports import Question, Refused, Report, RuleInForce, Void
from tests.support.web import ADMIN_KEY, refused
from tests.web.test_payouts import BODY, WALLET, fund

PATH = "/api/admin/signer"
ADMIN = {"X-Admin-Key": ADMIN_KEY}
AT = datetime(2026, 1, 1, tzinfo=UTC)
QUESTION = "#7: 5 USDX (5000000 smallest units of memory/usdx) to mem1bob on memory; payout:po_1, payout by key"
REPORT = Report(
    rules=[RuleInForce(setting="hourly_caps", name="memory/USDX", limit="100", used="3")],
    addresses={"allowed_addresses": {"memory": ["mem1bob"]}},
    fresh_address_delay_s=3_600,
    questions=[
        Question(
            pk=7, question=QUESTION, reference="payout:po_1", purpose="payout", asked_by="key", chain="memory",
            to_chain="memory", to_address="mem1bob", amount="5 USDX", asked_at=AT,
        )
    ],
    voided=[Void(chain="memory", reference="payout:po_0", at=AT)],
    refused=[
        Refused(at=AT, code="HOURLY_CAP", reason="No room.", chain="memory", reference="payout:po_2", purpose="payout"),
        Refused(
            at=AT, code="APPROVAL_NEEDED", reason="It waits.", chain="memory", reference="payout:po_1",
            purpose="payout", times=17, first_at=AT - timedelta(minutes=16),
        ),
    ],
    answers_open=True,
)  # fmt: skip


async def test_what_the_signer_told_is_shown_with_its_age(client, gateway, clock):
    empty = (await client.get(PATH, headers=ADMIN)).json()
    assert (empty["reportedAt"], empty["isStale"], empty["approvalsByApi"]) == (None, True, False)
    async with gateway.db.transaction() as conn:
        await reports.save(conn, REPORT, clock.now())
    shown = (await client.get(PATH, headers=ADMIN)).json()
    assert (shown["isStale"], shown["approvalsByApi"], shown["freshAddressDelaySeconds"]) == (False, True, 3_600)
    assert shown["rules"] == [{"setting": "hourly_caps", "name": "memory/USDX", "limit": "100", "used": "3"}]
    assert (shown["approvals"][0]["approvalId"], shown["approvals"][0]["question"]) == ("7", QUESTION)
    once, often = shown["refused"]
    assert (once["refusal"], once["times"], once["firstRefusedAt"]) == ("HOURLY_CAP", 1, once["refusedAt"])
    assert (often["refusal"], often["times"]) == ("APPROVAL_NEEDED", 17)
    assert (often["firstRefusedAt"], often["refusedAt"]) == ("2025-12-31T23:44:00.000Z", "2026-01-01T00:00:00.000Z")
    assert shown["voided"][0]["reference"] == "payout:po_0"
    clock.advance(61)
    assert (await client.get(PATH, headers=ADMIN)).json()["isStale"]


async def test_what_waits_for_a_person_names_what_can_be_cancelled(client, gateway, clock, merchant):
    await fund(gateway, merchant, 100)
    made = await client.post(f"{WALLET}/payout", json=BODY, headers=merchant.key)
    payout_id = made.json()["payout"]["payoutId"]
    unknown, known = (replace(REPORT.questions[0], reference=f"payout:{one}") for one in ("po_none", payout_id))
    async with gateway.db.transaction() as conn:
        await reports.save(conn, replace(REPORT, questions=[unknown, known]), clock.now())
    first, second = (await client.get(PATH, headers=ADMIN)).json()["approvals"]
    assert first["intentId"] is None
    found = (await client.get(f"/api/admin/outbound/{second['intentId']}", headers=ADMIN)).json()["outbound"]
    assert found["payoutId"] == payout_id


async def test_an_answer_is_taken_for_what_was_shown_and_nothing_else(client, gateway, clock):
    body = {"code": "12345678", "question": QUESTION}
    path = f"{PATH}/approvals/7/approve"
    refused(await client.post(path, headers=ADMIN, json=body), 409, "APPROVALS_NOT_OPEN")
    async with gateway.db.transaction() as conn:
        await reports.save(conn, REPORT, clock.now())
    wrong = body | {"question": QUESTION.replace("mem1bob", "mem1eve")}
    refused(await client.post(path, headers=ADMIN, json=wrong), 409, "APPROVAL_CHANGED")
    refused(await client.post(f"{PATH}/approvals/8/approve", headers=ADMIN, json=body), 404, "APPROVAL_NOT_FOUND")
    refused(await client.post(path, headers=ADMIN, json={"code": "1", "question": QUESTION}), 400, "VALIDATION_ERROR")
    taken = await client.post(path, headers=ADMIN, json=body)
    assert (taken.status_code, taken.json()["answer"]["outcome"]) == (202, None)
    assert "12345678" not in taken.text
    await client.post(f"{PATH}/approvals/7/deny", headers=ADMIN, json=body)
    shown = (await client.get(PATH, headers=ADMIN)).json()["answers"]
    assert [(one["approvalId"], one["verdict"]) for one in shown] == [("7", "deny"), ("7", "approve")]
    async with gateway.db.autocommit() as conn:
        entries = await conn.exec_driver_sql(
            "SELECT details::text FROM audit_entries WHERE action = 'signer.answer_given'"
        )
        assert not [one for one in entries.scalars() if "12345678" in one]
        assert len(await answers.list_latest(conn)) == 2
