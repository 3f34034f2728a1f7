"""What every list offers, of the lists that had a part of it alone: times, either order, cursors and files."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime

import pytest

from tests.support.operators import Officer
from tests.support.tracker_api import make
from tests.support.web import ADMIN_KEY, PASSWORD, refused

ADMIN = {"X-Admin-Key": ADMIN_KEY}


def headers_of(two_merchants, path):
    if path.startswith("/api/admin"):
        return ADMIN
    owned = path.startswith(("/api/dashboard", "/api/merchant/projects", "/api/merchant/webhooks", "/api/auth"))
    return two_merchants.ada.bearer if owned else two_merchants.ada.key


async def get(two_merchants, path):
    answer = await two_merchants.client.get(path, headers=headers_of(two_merchants, path))
    assert answer.status_code == 200, answer.text
    return answer


def items_of(answer):
    (found,) = [one for one in answer.json().values() if isinstance(one, list)]
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "path, changed",
    [
        ("/api/admin/jobs", "jobs SET created_at = $1 WHERE id = (SELECT min(id) FROM jobs)"),
        (
            "/api/admin/reconcile",
            "jobs SET created_at = $1 WHERE id = (SELECT min(id) FROM jobs WHERE kind = 'reconcile')",
        ),
        ("/api/merchant/resolutions", "deposits SET first_seen_at = $1 WHERE deposit_id = $2"),
        ("/api/admin/resolutions", "deposits SET first_seen_at = $1 WHERE deposit_id = $2"),
        (
            "/api/dashboard/projects/{project_id}/deliveries",
            "webhook_deliveries SET created_at = $1 WHERE delivery_id = $2",
        ),
        (
            "/api/merchant/usage",
            "usage_records SET created_at = $1 WHERE id = (SELECT min(id) FROM usage_records)",
        ),
    ],
)
async def test_what_was_made_within_a_time_is_found_and_comes_first_or_last(two_merchants, gateway, path, changed):
    await two_merchants.client.post("/api/admin/audit/verify", headers=ADMIN)
    path = path.format(project_id=two_merchants.ada.project_id)
    before = items_of(await get(two_merchants, f"{path}?limit=100"))
    assert before
    values = (datetime(2020, 5, 5, 12, tzinfo=UTC),)
    if "$2" in changed:
        oldest = before[-1].get("deposit", before[-1])
        values += (oldest.get("depositId") or oldest["deliveryId"],)
    async with gateway.db.transaction() as conn:
        assert (await conn.exec_driver_sql(f"UPDATE {changed}", values)).rowcount == 1
    (old,) = items_of(await get(two_merchants, f"{path}?from=2020-05-05&to=2020-05-06"))
    assert items_of(await get(two_merchants, f"{path}?to=2020-05-05")) == []
    later = items_of(await get(two_merchants, f"{path}?from=2020-05-06&limit=100"))
    assert (len(later), old in later) == (len(before) - 1, False)
    assert items_of(await get(two_merchants, f"{path}?sort=createdAt&limit=1")) == [old]
    assert items_of(await get(two_merchants, f"{path}?limit=100"))[-1] == old
    file = (await get(two_merchants, f"{path}?format=csv&to=2020-05-06")).text
    assert len(list(csv.DictReader(io.StringIO(file)))) == 1


PROJECT = "/api/merchant/projects/{project_id}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "path, id_name, made",
    [
        ("/api/merchant/projects", "projectId", {"name": "Second", "mode": "sandbox"}),
        (f"{PROJECT}/api-keys", "keyId", {"name": "second"}),
        (f"{PROJECT}/webhook-endpoints", "endpointId", {"url": "https://second.example/hook"}),
        ("/api/dashboard/invitations", "invitationId", {"email": "eve@team.example", "name": "Eve", "role": "viewer"}),
        ("/api/dashboard/members", "memberId", None),
        ("/api/dashboard/approved-addresses", "approvalId", None),
        ("/api/admin/operators", "operatorId", {"email": "eve@gateway.example", "name": "Eve", "role": "auditor"}),
        ("/api/dashboard/projects/{project_id}/trackers", "webhookId", None),
        ("/api/merchant/webhooks", "webhookId", None),
    ],
)
async def test_lists_of_a_few_are_sorted_either_way_go_on_by_cursors_and_make_files(two_merchants, path, id_name, made):
    path = path.format(project_id=two_merchants.ada.project_id)
    headers = headers_of(two_merchants, path)
    await two_merchants.ada.step_up()
    for number in range(2 if made else 0):
        body = made | {"email": f"{number}{made['email']}"} if "email" in made else made | {}
        answer = await two_merchants.client.post(path, json=body, headers=headers)
        assert answer.status_code == 201, answer.text
    whole = (await get(two_merchants, f"{path}?limit=100")).json()
    assert (whole["totalIsExact"], whole["nextCursor"]) == (True, None)
    ids = [one[id_name] for one in items_of(await get(two_merchants, f"{path}?limit=100"))]
    assert len(ids) == whole["total"] >= (2 if made else 1)
    assert [one[id_name] for one in items_of(await get(two_merchants, f"{path}?sort=-createdAt"))] == ids[::-1]
    seen, query = [], "limit=1"
    while query:
        page = await get(two_merchants, f"{path}?{query}")
        seen += [one[id_name] for one in items_of(page)]
        query = page.json()["nextCursor"] and f"limit=1&cursor={page.json()['nextCursor']}"
    assert seen == ids
    file = await get(two_merchants, f"{path}?format=csv")
    assert file.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(file.text)))
    assert [one[id_name] for one in rows] == ids
    assert not [name for name in rows[0] if name.lower().endswith(("secret", "token"))]


@pytest.mark.slow
async def test_ones_own_sessions_are_sorted_by_use_and_by_age_go_on_by_cursors_and_make_a_file(two_merchants, clock):
    client, officer = two_merchants.client, await Officer(two_merchants.client).sign_in("owner")
    for who, path in ((two_merchants.ada, "/api/auth/sessions"), (officer, "/api/admin/auth/sessions")):
        bearers = [who.bearer]
        for _ in range(2):
            clock.advance(60)
            bearers.append(await signed_in(client, who, path))
        clock.advance(60)
        # The oldest is used last.
        whole = (await client.get(f"{path}?limit=100", headers=bearers[0])).json()
        ids = [one["sessionId"] for one in whole["sessions"]]
        assert (whole["totalIsExact"], whole["nextCursor"], whole["sessions"][0]["current"]) == (True, None, True)
        by_use, by_age = ids, [*ids[1:], ids[0]]
        for sort, wanted in (
            ("-lastUsedAt", by_use),
            ("lastUsedAt", by_use[::-1]),
            ("-createdAt", by_age),
            ("createdAt", by_age[::-1]),
        ):
            seen, query = [], "limit=1"
            while query:
                page = (await client.get(f"{path}?sort={sort}&{query}", headers=bearers[0])).json()
                seen += [one["sessionId"] for one in page["sessions"]]
                query = page["nextCursor"] and f"limit=1&cursor={page['nextCursor']}"
            assert seen == wanted, sort
            file = await client.get(f"{path}?sort={sort}&format=csv", headers=bearers[0])
            assert [one["sessionId"] for one in csv.DictReader(io.StringIO(file.text))] == wanted
        refused(await client.get(f"{path}?sort=name", headers=bearers[0]), 400, "VALIDATION_ERROR", "sort")


async def signed_in(client, who, path):
    """Open one more session of somebody's, and return its bearer."""
    if path.startswith("/api/admin"):
        kept = who.bearer
        await who.open()
        who.bearer, made = kept, who.bearer
        return made
    body = {"email": who.email, "password": PASSWORD, "totpCode": who.phone.next_code()}
    answer = await client.post("/api/auth/login", json=body)
    client.cookies.clear()
    return {"Authorization": f"Bearer {answer.json()['accessToken']}"}


async def test_a_trackers_transactions_and_an_endpoints_deliveries_take_a_time(two_merchants, gateway):
    at = f"/api/merchant/projects/{two_merchants.ada.project_id}/webhook-endpoints"
    hook = await two_merchants.post(at, {"url": "http://127.0.0.1:1025/ada"}, two_merchants.ada.bearer)
    endpoint = f"{at}/{hook['endpoint']['endpointId']}/deliveries"
    await two_merchants.paid()
    tracker = await make(two_merchants.client, two_merchants.ada.key)
    async with gateway.db.transaction() as conn:
        values = datetime(2020, 5, 5, 12, tzinfo=UTC), tracker.webhook_id
        changed = "UPDATE webhook_deliveries SET created_at = $1 WHERE id = (SELECT min(id) FROM webhook_deliveries"
        await conn.exec_driver_sql(f"{changed} WHERE endpoint_pk IS NOT NULL)", values[:1])
        await conn.exec_driver_sql(TOLD, values)
    for path, headers in ((endpoint, two_merchants.ada.bearer), ("/api/webhook/transaction/list", tracker.token)):
        listed = {}
        for query in ("limit=100", "from=2020-05-05&to=2020-05-06", "to=2020-05-05", "from=2020-05-06&limit=100"):
            answer = await two_merchants.client.get(f"{path}?{query}", headers=headers)
            assert answer.status_code == 200, answer.text
            listed[query] = items_of(answer)
        whole, old, none, later = listed.values()
        assert (len(old), none, len(later)) == (1, [], len(whole) - 1), path
        assert later == whole[:-1]
        answer = await two_merchants.client.get(f"{path}?from=2020-05-05&to=2020-05-05", headers=headers)
        refused(answer, 400, "VALIDATION_ERROR", "to")


TOLD = """
WITH moved AS (
    INSERT INTO movements (chain, scope, tx_id, position, recipient, token, decimals, units, height, block_hash,
        mined_at, first_mined_at, required_confirmations, status)
    SELECT chain, scope, 'tx' || n, '0', 'a', 'USDX', 6, n, n, '0x', now(), now(), 3, 'confirmed'
    FROM trackers, generate_series(1, 3) n WHERE webhook_id = $2 RETURNING id, units
)
INSERT INTO tracker_transactions (transaction_id, tracker_pk, movement_pk, direction, address, created_at)
SELECT 'mov_' || units, t.id, moved.id, 'in', 'a', $1::timestamptz + (units - 1) * interval '1 day'
FROM moved, trackers t WHERE t.webhook_id = $2 ORDER BY moved.id
"""


async def test_plans_are_listed_like_all_others(two_merchants):
    plan = {"name": "Gold", "hasTracker": True, "maxWebhooks": 1, "maxAddresses": 10}
    made = await two_merchants.client.post("/api/admin/plans", json=plan, headers=ADMIN)
    assert made.status_code == 201, made.text
    page = (await get(two_merchants, "/api/admin/plans?sort=-createdAt")).json()
    assert (page["totalIsExact"], page["plans"][0]["name"]) == (True, "Gold")
    assert page["defaultPlan"]
    file = (await get(two_merchants, "/api/admin/plans?format=csv")).text
    assert "Gold" in [one["name"] for one in csv.DictReader(io.StringIO(file))]


async def test_receivers_that_fail_go_on_behind_a_hundred_and_make_a_file(two_merchants, gateway):
    path = "/api/admin/webhooks/failing"
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
        # So many endpoints, each with one failing delivery, of which some failed at the same moment.
        await conn.exec_driver_sql(
            "INSERT INTO webhook_endpoints (endpoint_id, project_pk, url, secret_encrypted, secret_rotated_at)"
            " SELECT 'whe_' || n, p.id, 'https://' || n || '.many.example/', 'x', now()"
            " FROM generate_series(1, 120) n, projects p WHERE p.project_id = $1",
            (two_merchants.ada.project_id,),
        )
        await conn.exec_driver_sql(
            "INSERT INTO webhook_deliveries (delivery_id, project_pk, event_pk, endpoint_pk, event, resource_id,"
            " status, attempts, attempts_total, due_at, created_at)"
            " SELECT 'dlv_' || e.endpoint_id, e.project_pk, (SELECT min(id) FROM webhook_events), e.id, 'payment.paid',"
            " 'pay_1', 'pending', 1, 1, now(), timestamptz '2026-01-01' + (e.id / 3) * interval '1 second'"
            " FROM webhook_endpoints e WHERE e.url LIKE 'https://%.many.example/'"
        )
    whole = (await get(two_merchants, f"{path}?limit=100")).json()
    assert (len(whole["endpoints"]), whole["total"], whole["totalIsExact"]) == (100, 120, True)
    seen, query = [], "limit=50"
    while query:
        page = (await get(two_merchants, f"{path}?{query}")).json()
        seen += [one["url"] for one in page["endpoints"]]
        query = page["nextCursor"] and f"limit=50&cursor={page['nextCursor']}"
    assert (len(seen), len(set(seen)), seen[:100]) == (120, 120, [one["url"] for one in whole["endpoints"]])
    second = (await get(two_merchants, f"{path}?limit=50&page=3")).json()
    assert [one["url"] for one in second["endpoints"]] == seen[100:]
    rows = list(csv.DictReader(io.StringIO((await get(two_merchants, f"{path}?format=csv")).text)))
    assert [one["url"] for one in rows] == seen
