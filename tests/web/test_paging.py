"""Every list that can grow is read page by page, all in one way; those that only grow also by a cursor."""

from __future__ import annotations

from itertools import cycle

import pytest

from tests.support.operators import Officer
from tests.support.tracker_api import make
from tests.support.web import ADMIN_KEY, PASSWORD, Merchant, refused

BOUNDED = {
    "/api/public/chains",
    "/api/public/tokens",
    "/api/public/cpt-calculator-config",
    "/api/status",
    "/api/account/{accountId}/balances",
    "/api/dashboard/projects/{projectId}/accounts/{accountId}/balances",
    "/api/admin/collections/addresses/{address}",
    "/api/admin/collections/uncollected/sums",
    "/api/merchant/wallet",
    "/api/merchant/wallet/addresses",
    "/api/merchant/wallet/coins",
    "/api/merchant/swap-bridge/pairs",
    "/api/dashboard/members/me",
    "/api/dashboard/overview",
    "/api/admin/overview",
    "/api/admin/plugins",
    "/api/admin/chains",
    "/api/admin/chains/{chain}",
    "/api/admin/gas-stations",
    "/api/admin/prices",
    "/api/admin/signer",
    "/api/admin/tokens/{tokenId}",
    "/api/admin/settings",
    "/api/admin/jobs/recurring",
    "/api/admin/reconcile/{jobId}",
    "/api/admin/search",
    "/api/dashboard/projects/{projectId}/search",
    "/api/dashboard/projects/{projectId}/wallet/worth",
    "/api/admin/merchants/{merchantId}",
}
"""What settings and roles bound: chains, their tokens, what there is once for each of them; permissions."""

OWNED = "/api/dashboard/projects/{projectId}"
GROWING = {
    "/api/auth/sessions",
    "/api/admin/auth/sessions",
    "/api/merchant/webhooks",
    "/api/merchant/projects",
    "/api/merchant/projects/{projectId}/api-keys",
    "/api/merchant/projects/{projectId}/webhook-endpoints",
    "/api/dashboard/approved-addresses",
    "/api/dashboard/members",
    "/api/dashboard/invitations",
    "/api/admin/plans",
    "/api/admin/operators",
    f"{OWNED}/trackers",
    "/api/account",
    "/api/account/{accountId}/deposits",
    "/api/payment",
    "/api/payment/refunds/list",
    "/api/merchant/resolutions",
    "/api/merchant/wallet/payouts",
    "/api/merchant/wallet/collections",
    "/api/merchant/wallet/transactions",
    "/api/merchant/swap-bridge/history",
    "/api/merchant/usage",
    "/api/dashboard/withdrawals",
    "/api/dashboard/audit",
    "/api/admin/collections",
    "/api/admin/collections/uncollected",
    "/api/admin/jobs",
    "/api/admin/reconcile",
    "/api/admin/reconcile/{jobId}/differences",
    "/api/admin/tokens",
    "/api/admin/resolutions",
    "/api/admin/outbound",
    "/api/admin/stakes",
    "/api/admin/webhooks/deliveries",
    "/api/admin/webhooks/failing",
    "/api/admin/audit",
    "/api/admin/payments",
    "/api/admin/deposits",
    "/api/admin/payouts",
    "/api/admin/refunds",
    "/api/admin/withdrawals",
    "/api/admin/exchanges",
    "/api/admin/accounts",
    "/api/admin/trackers",
    "/api/admin/merchants",
    f"{OWNED}/accounts",
    f"{OWNED}/accounts/{{accountId}}/deposits",
    "/api/webhook/address/list",
    "/api/webhook/transaction/list",
    f"{OWNED}/payments",
    f"{OWNED}/payments/refunds/list",
    f"{OWNED}/resolutions",
    f"{OWNED}/wallet/payouts",
    f"{OWNED}/wallet/collections",
    f"{OWNED}/wallet/transactions",
    f"{OWNED}/swap-bridge/history",
    f"{OWNED}/usage",
    f"{OWNED}/deliveries",
    "/api/events",
    f"{OWNED}/events",
    "/api/merchant/projects/{projectId}/webhook-endpoints/{endpointId}/deliveries",
}


FEW = (
    "/projects",
    "/api-keys",
    "/webhook-endpoints",
    "/approved-addresses",
    "/members",
    "/invitations",
    "/plans",
    "/operators",
    "Id}/trackers",
)
LACKING = {
    # In the order in which they were made.
    **{end: {"from", "to"} for end in FEW},
    "/address/list": {"from", "to"},
    "/auth/sessions": {"from", "to"},
    "/api/merchant/webhooks": {"from", "to"},
    # The file has a path of its own, whose columns sum up to the balances.
    "/wallet/transactions": {"format"},
    # Sums of what fails now: since when is what they are sorted by.
    "/webhooks/failing": {"sort", "from", "to"},
    # Those of the file were never made, and what differs was found when its run was.
    "/admin/tokens": {"from", "to"},
    "/differences": {"from", "to"},
}
"""What a list does not offer, by the end of its path."""


def resolved(schemas, schema):
    return schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


@pytest.fixture
async def lists(client):
    """Return what each list takes and answers, by its path: parameters, and the answer's properties."""
    schema = (await client.get("/api/openapi.json")).json()
    found = {}
    for path, operations in schema["paths"].items():
        operation = operations.get("get", {"responses": {}})
        content = operation["responses"].get("200", {}).get("content", {}).get("application/json")
        if content is None:
            continue
        properties = resolved(schema["components"]["schemas"], content["schema"]).get("properties", {})
        if any(one.get("type") == "array" for one in properties.values()):
            parameters = {one["name"]: one for one in operation.get("parameters", ()) if one["in"] == "query"}
            found[path] = parameters, properties
    return found


async def test_every_list_is_one_of_those_that_are_known(lists):
    bounded = BOUNDED | {path.replace("/api/merchant/", f"{OWNED}/") for path in BOUNDED}
    assert lists.keys() - bounded == GROWING


async def test_all_lists_take_and_answer_the_same(lists):
    numbers, cursors, lacking = set(), set(), {}
    for path in GROWING:
        parameters, properties = lists[path]
        numbers.add(str([parameters[name] for name in ("page", "limit")]))
        assert {"page", "limit", "total"} <= properties.keys(), path
        cursors.add(str((parameters["cursor"], properties["nextCursor"], properties["totalIsExact"])))
        lacking[path] = {"sort", "from", "to", "format"} - parameters.keys()
    assert lacking == {
        path: next((lacks for end, lacks in LACKING.items() if path.endswith(end)), set()) for path in GROWING
    }
    assert len(numbers) == len(cursors) == 1


@pytest.fixture
async def tracker(client, gateway, merchant):
    return await make(client, merchant.key, startBlock=1)


def headers_of(merchant, path, tracker, officer):
    if path.startswith("/api/admin/auth"):
        return officer.bearer
    if path.startswith("/api/webhook"):
        return tracker.token
    if path.startswith("/api/admin"):
        return {"X-Admin-Key": ADMIN_KEY}
    owned = path.startswith(("/api/dashboard", "/api/merchant/projects", "/api/merchant/webhooks", "/api/auth"))
    return merchant.bearer if owned else merchant.key


async def ids_of(client, merchant):
    """Return what turns the path of a list into one that there is."""
    await merchant.step_up()
    project = f"/api/merchant/projects/{merchant.project_id}"
    made = await merchant.ask("POST", f"{project}/webhook-endpoints", {"url": "https://books.example/hook"})
    user = {"externalId": "user-1", "chains": ["memory"]}
    account = (await client.post("/api/account", json=user, headers=merchant.key)).json()["account"]
    run = (await client.post("/api/admin/reconcile", json={}, headers={"X-Admin-Key": ADMIN_KEY})).json()["run"]
    ids = {"endpointId": made["endpoint"]["endpointId"], "accountId": account["accountId"], "jobId": run["jobId"]}
    return {"projectId": merchant.project_id, **ids}


@pytest.mark.slow
async def test_parts_of_lists_that_do_not_exist_are_refused_by_field(client, merchant, tracker):
    ids, officer = await ids_of(client, merchant), await Officer(client).sign_in("auditor")
    wrong = {
        "limit": ("0", "101", "x", "1.5"),
        "page": ("0", "-1", "x", "1000001"),
        "cursor": ("", "abc", "x" * 201, "A" * 50, "%C3%A9", "12"),
    }
    turns = {name: cycle((value,) for value in values) for name, values in wrong.items()}
    for path in sorted(GROWING):
        here, headers = path.format(**ids), headers_of(merchant, path, tracker, officer)
        # In turn, as all lists are told of these in the same words (see above), and read them in one place but for one.
        reads_itself = path.endswith("/wallet/transactions")
        for name, turn in turns.items():
            for value in wrong[name] if reads_itself else next(turn):
                answer = await client.get(f"{here}?{name}={value}", headers=headers)
                refused(answer, 400, "VALIDATION_ERROR", name)
        answer = await client.get(f"{here}?limit=100", headers=headers)
        assert (answer.status_code, answer.json()["limit"]) == (200, 100), path
    refused(await client.get("/api/merchant/projects?cursor=x", headers=merchant.bearer), 400, "VALIDATION_ERROR")


async def made(client, merchant, count):
    order = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "1"}
    answers = [await client.post("/api/payment", json=order, headers=merchant.key) for _ in range(count)]
    return [answer.json()["payment"]["paymentId"] for answer in answers]


async def test_a_cursor_goes_on_where_a_page_ended_whatever_comes_in_between(client, merchant):
    payments, seen, query = await made(client, merchant, 5), [], ""
    for later in range(3):
        page = (await client.get(f"/api/payment?limit=2{query}", headers=merchant.key)).json()
        assert (page["page"], page["limit"], page["total"]) == (1, 2, 5 + later)
        seen += [one["paymentId"] for one in page["payments"]]
        query = f"&cursor={page['nextCursor']}"
        await made(client, merchant, 1)
    assert seen == payments[::-1]
    assert page["nextCursor"] is None


async def test_pages_are_counted_from_the_cursor(client, merchant):
    payments = await made(client, merchant, 5)
    first = (await client.get("/api/payment?limit=1", headers=merchant.key)).json()
    query = f"/api/payment?limit=2&page=2&cursor={first['nextCursor']}"
    second = (await client.get(query, headers=merchant.key)).json()
    assert [one["paymentId"] for one in second["payments"]] == [payments[1], payments[0]]
    assert (second["page"], second["total"], second["nextCursor"]) == (2, 5, None)


@pytest.mark.slow
async def test_a_cursor_is_good_for_one_list_of_one_owner_whoever_asks(client, merchant, tracker):
    await made(client, merchant, 2)
    cursor = (await client.get("/api/payment?limit=1", headers=merchant.key)).json()["nextCursor"]
    here = f"/api/dashboard/projects/{merchant.project_id}"
    again = await client.get(f"{here}/payments?cursor={cursor}", headers=merchant.bearer)
    assert len(again.json()["payments"]) == 1, "for people it is the same list"
    other = await Merchant(client).open("bob@shop.example")
    refused(await client.get(f"/api/payment?cursor={cursor}", headers=other.key), 400, "VALIDATION_ERROR", "cursor")
    ids, officer = await ids_of(client, merchant), await Officer(client).sign_in("auditor")
    for path in sorted(GROWING - {"/api/payment", f"{OWNED}/payments"}):
        there = path.format(**ids)
        answer = await client.get(f"{there}?cursor={cursor}", headers=headers_of(merchant, path, tracker, officer))
        refused(answer, 400, "VALIDATION_ERROR", "cursor")


async def test_projects_and_keys_are_listed_in_pages_oldest_first(client, merchant):
    key = merchant.key_id
    await merchant.step_up()
    for number in range(3):
        await merchant.ask("POST", "/api/merchant/projects", {"name": f"Shop {number}", "mode": "sandbox"})
        path = f"/api/merchant/projects/{merchant.project_id}/api-keys"
        await merchant.ask("POST", path, {"name": f"Till {number}"})
    page = await merchant.ask("GET", "/api/merchant/projects?limit=2&page=2")
    assert [one["name"] for one in page["projects"]] == ["Shop 1", "Shop 2"]
    assert (page["page"], page["limit"], page["total"]) == (2, 2, 4)
    page = await merchant.ask("GET", f"{path}?limit=1")
    assert [one["keyId"] for one in page["keys"]] == [key]
    assert (page["page"], page["limit"], page["total"]) == (1, 1, 4)
    page = await merchant.ask("GET", f"{path}?limit=3&page=2")
    assert [one["name"] for one in page["keys"]] == ["Till 2"]


async def test_sessions_are_listed_in_pages_the_one_used_last_first(client, merchant):
    await merchant.ask("GET", "/api/auth/sessions")
    body = {"email": merchant.email, "password": PASSWORD}
    for _ in range(2):
        assert (await client.post("/api/auth/login", json=body)).status_code == 200
        client.cookies.clear()
    whole = await merchant.ask("GET", "/api/auth/sessions")
    pages = [
        (await merchant.ask("GET", f"/api/auth/sessions?limit=1&page={page}"))["sessions"] for page in (1, 2, 3, 4)
    ]
    assert [one for page in pages for one in page] == whole["sessions"]
    assert (whole["page"], whole["limit"], whole["total"]) == (1, 25, 3)
