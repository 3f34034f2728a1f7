"""Operators see chains as a worker saw them, change their endpoints, and add tokens; merchants follow."""

from __future__ import annotations

import csv
import io
import tomllib

import pytest
from msgspec.structs import replace

from cambist.plugin import EndpointHealth, NetworkSetup
from cambist.services.chains import adding, states
from cambist.testing.memory.family import named_address
from tests.support.web import ADMIN_KEY, refused

HEADERS = {"X-Admin-Key": ADMIN_KEY}
CHAINS, TOKENS = "/api/admin/chains", "/api/admin/tokens"
EURX = named_address("deployed/EURX")
NEXT_EURX = named_address("deployed/EURX again")
HEALTH = EndpointHealth(
    name="memory", healthy=False, head=41, calls=90, failures=2, last_error="no answer", position=0,
    rate_limited=1, set_aside="it failed 2 times in a row", latency_ms=12.4,
)  # fmt: skip


@pytest.fixture
async def seen(gateway):
    """Have a worker have watched the chain, and seen trouble."""
    now = gateway.clock.now()
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO chain_cursors (chain, scope, height, hash, head, finalized, updated_at)"
            " VALUES ('memory', 0, 40, 'hash', 42, 37, $1)",
            (now,),
        )
        state = states.ChainStateRow(
            chain="memory",
            setup_problem="Its plugin cannot change it while the gateway runs.",
            setup_problem_code="NOT_CHANGEABLE",
            error="nobody answers",
            error_code="CHAIN_UNAVAILABLE",
            failing_since=now,
            quorum=1,
            seen_at=now,
        )
        await states.save(conn, state)
        setup = NetworkSetup(endpoints=("memory://memory",))
        readings = states.Readings(gateway.secrets, gateway.ids)
        for calls, monotonic in ((30, 1.0), (90, 31.0)):
            health = [replace(HEALTH, calls=calls)]
            await readings.save(conn, "memory", setup, setup, health, now=now, monotonic=monotonic)


async def admin(client, method, path, status=200, **body):
    answer = await client.request(method, path, json=body or None, headers=HEADERS)
    assert answer.status_code == status, answer.text
    return answer.json()


async def test_chains_are_shown_as_a_worker_saw_them(client, seen, station):
    chains = {one["chain"]: one for one in (await admin(client, "GET", CHAINS))["chains"]}
    memory = chains["memory"]
    assert memory == (await admin(client, "GET", f"{CHAINS}/memory"))["chain"]
    told = ("availability", "connected", "problem", "error", "head", "height", "finalizedHeight", "lagBlocks", "quorum")
    assert [memory[name] for name in told] == ["live", True, None, "nobody answers", 42, 40, 37, 2, 1]
    assert (memory["changeable"], memory["pauses"], memory["gasStation"]["balance"]) == (True, [], "10")
    codes = [memory[name] for name in ("errorCode", "setupProblemCode", "problemCode")]
    assert codes == ["CHAIN_UNAVAILABLE", "NOT_CHANGEABLE", None]
    (endpoint,) = memory["endpoints"]
    seen_of_it = {"healthy", "head", "setAside", "lastError", "calls", "rateLimited", "callsPerMinute", "latencyMs"}
    assert {name: endpoint[name] for name in seen_of_it} == {
        "healthy": False, "head": 41, "setAside": "it failed 2 times in a row", "lastError": "no answer", "calls": 90,
        "rateLimited": 1, "callsPerMinute": 120, "latencyMs": 12,
    }  # fmt: skip
    assert (endpoint["name"], endpoint["origin"], endpoint["state"]) == ("memory", "file", "in_use")
    refused(await client.get(f"{CHAINS}/nowhere", headers=HEADERS), 404, "CHAIN_NOT_FOUND")


async def test_from_which_block_on_a_chain_can_be_read_again_is_told_before(client, seen, gateway):
    assert (await admin(client, "GET", f"{CHAINS}/memory"))["chain"]["rescanFrom"] is None
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE chain_cursors SET books_from = 30")
    lowest = (await admin(client, "GET", f"{CHAINS}/memory"))["chain"]["rescanFrom"]
    assert lowest == 31
    body = {"fromHeight": lowest - 1, "reason": "one was left out"}
    answer = await client.post(f"{CHAINS}/memory/rescan", json=body, headers=HEADERS)
    refused(answer, 400, "RESCAN_OUT_OF_RANGE", "fromHeight")
    await admin(client, "POST", f"{CHAINS}/memory/rescan", 202, **body | {"fromHeight": lowest})


async def test_a_chain_of_which_no_worker_tells_is_not_connected(client, seen, clock):
    clock.advance(31)
    memory = (await admin(client, "GET", f"{CHAINS}/memory"))["chain"]
    assert (memory["connected"], memory["problem"]) == (False, "No worker tells that it watches this chain.")
    assert memory["problemCode"] == "NO_WORKER"


async def test_an_endpoint_is_asked_for_and_its_address_is_in_no_answer(client, seen, gateway):
    url = "memory://node.example/s3cr3t"
    asked = (await admin(client, "POST", f"{CHAINS}/memory/endpoints", 202, url=url, label="our node"))["endpoint"]
    assert (asked["state"], asked["origin"], asked["name"]) == ("checking", "added", "our node")
    path = f"{CHAINS}/memory/endpoints/{asked['endpointId']}"
    assert (await admin(client, "GET", path))["endpoint"] == asked
    assert "s3cr3t" not in (await client.get(CHAINS, headers=HEADERS)).text
    refused(await client.post(f"{CHAINS}/memory/endpoints", json={"url": url}, headers=HEADERS), 409, "ENDPOINT_KNOWN")
    for spelling in ("memory://Node.Example/s3cr3t", f"{url}/", "memory://user@node.example//s3cr3t?#x"):
        answer = await client.post(f"{CHAINS}/memory/endpoints", json={"url": spelling}, headers=HEADERS)
        refused(answer, 409, "ENDPOINT_KNOWN")
    body = {"url": "http://169.254.169.254/"}
    refused(await client.post(f"{CHAINS}/memory/endpoints", json=body, headers=HEADERS), 400, "INVALID_ENDPOINT", "url")
    body = {"url": url + "/2", "replaces": "end_none"}
    refused(await client.post(f"{CHAINS}/memory/endpoints", json=body, headers=HEADERS), 404, "ENDPOINT_NOT_FOUND")
    assert (await admin(client, "DELETE", path))["endpoint"]["state"] == "removed"
    own = (await admin(client, "GET", f"{CHAINS}/memory"))["chain"]["endpoints"][0]["endpointId"]
    refused(await client.delete(f"{CHAINS}/memory/endpoints/{own}", headers=HEADERS), 409, "LAST_ENDPOINT")
    async with gateway.db.autocommit() as conn:
        log = await conn.exec_driver_sql("SELECT action, details::text FROM audit_entries ORDER BY id")
        entries = [tuple(row) for row in log]
    assert [action for action, _ in entries] == ["chain_endpoint.added", "chain_endpoint.removed"]
    assert "s3cr3t" not in str(entries)


async def test_an_endpoint_of_the_file_is_known_however_it_is_spelt(client, seen):
    answer = await client.post(f"{CHAINS}/memory/endpoints", json={"url": "memory://Memory/"}, headers=HEADERS)
    refused(answer, 409, "ENDPOINT_KNOWN")


async def test_it_is_known_before_any_worker_has_told_of_it(client):
    answer = await client.post(f"{CHAINS}/memory/endpoints", json={"url": "memory://Memory/"}, headers=HEADERS)
    refused(answer, 409, "ENDPOINT_KNOWN")


@pytest.mark.parametrize("what", ["watching", "sending"])
async def test_what_no_worker_is_connected_to_cannot_be_paused(client, what):
    body = {"what": what, "reason": "just in case"}
    for chain in ("pretend", "idle"):
        answer = await client.post(f"{CHAINS}/{chain}/pause", json=body, headers=HEADERS)
        refused(answer, 409, "CHAIN_NOT_CHANGEABLE")


async def activated(gateway, token_id, contract=EURX, decimals=2):
    """Put a token in force as a worker does when it has read the contract."""
    now = gateway.clock.now()
    async with gateway.db.transaction() as conn:
        claimed = await adding.claim(conn, ["memory"], now)
        assert claimed.token_id == token_id
        known = gateway.registry.chains["memory"].tokens[1]
        token = replace(known, symbol="EURX", contract=contract, decimals=decimals)
        await adding.activate(conn, gateway.registry, claimed, token, now)


@pytest.mark.slow
async def test_a_token_is_added_decided_about_and_payments_follow(client, seen, gateway, merchant):
    made = (await admin(client, "POST", TOKENS, 202, chain="memory", contract=EURX.upper()))["token"]
    assert (made["state"], made["contractAddress"], made["sendable"]) == ("checking", EURX, False)
    body = {"chain": "memory", "contract": EURX}
    refused(await client.post(TOKENS, json=body, headers=HEADERS), 409, "TOKEN_KNOWN")
    body = {"chain": "memory", "contract": "nothing"}
    refused(await client.post(TOKENS, json=body, headers=HEADERS), 400, "INVALID_ADDRESS", "contract")
    await activated(gateway, made["tokenId"])
    added = (await admin(client, "GET", f"{TOKENS}/{made['tokenId']}"))["token"]
    assert (added["state"], added["symbol"], added["decimals"], added["sinceHeight"]) == ("enabled", "EURX", 2, 41)
    assert (added["sendable"], added["sendableReasonCode"]) == (False, "SIGNER_NOT_ASKED")
    assert added["signerLines"] is None, "the signer has not been asked yet"
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE chain_tokens SET sendable = false")
    unknown = (await admin(client, "GET", f"{TOKENS}/{made['tokenId']}"))["token"]
    assert (unknown["sendableReasonCode"], "start the signer again" in unknown["sendableReason"]) == (
        "NOT_IN_SIGNERS_FILE",
        True,
    )
    assert tomllib.loads(unknown["signerLines"])["plugins"]["memory"]["chains"]["memory"]["tokens"] == [
        {"symbol": "EURX", "contract": EURX, "decimals": 2, "label": "Example dollar", "least_units": 1}
    ]

    payment = {"chain": "memory", "token": "EURX", "pricingMode": "direct_crypto", "amount": "1.25"}
    usdx = payment | {"token": "USDX"}
    await admin(client, "PATCH", f"{TOKENS}/memory/USDX", enabled=False)  # has this process follow, too
    answer = await client.post("/api/payment", json=payment, headers=merchant.key)
    assert (answer.status_code, answer.json()["payment"]["expectedAmount"]) == (201, "1.25")
    dashboard = f"/api/dashboard/projects/{merchant.project_id}/payments"
    for path, headers in (("/api/payment", merchant.key), (dashboard, merchant.bearer)):
        for what in ("", "/quote"):
            refused(await client.post(path + what, json=usdx, headers=headers), 400, "TOKEN_NOT_ENABLED", "token")
    listed = [one["symbol"] for one in (await client.get("/api/public/tokens?chain=memory")).json()["tokens"]]
    assert listed == ["MEM", "DAIX", "EURX"]

    changed = await admin(
        client, "PATCH", f"{TOKENS}/memory/USDX",
        enabled=True, defaultEnabled=False, merchants={merchant.merchant_id: True},
    )  # fmt: skip
    assert changed["token"]["merchants"][0]["merchantId"] == merchant.merchant_id
    assert (await client.post("/api/payment", json=usdx, headers=merchant.key)).status_code == 201
    tokens = (await admin(client, "GET", f"{TOKENS}?chain=memory"))["tokens"]
    assert [(one["symbol"], one["origin"], one["state"]) for one in tokens] == [
        ("DAIX", "file", "enabled"), ("EURX", "added", "enabled"), ("MEM", "file", "enabled"),
        ("USDX", "file", "enabled"),
    ]  # fmt: skip
    refused(await client.patch(f"{TOKENS}/memory/NONE", json={}, headers=HEADERS), 400, "UNSUPPORTED_TOKEN", "token")
    refused(await client.get(f"{TOKENS}/tkn_none", headers=HEADERS), 404, "TOKEN_NOT_FOUND")


async def test_tokens_are_filtered_sorted_paged_and_saved_as_every_list(client, seen, gateway, merchant):
    made = (await admin(client, "POST", TOKENS, 202, chain="memory", contract=EURX))["token"]
    await activated(gateway, made["tokenId"])
    different = {"merchants": {merchant.merchant_id: False}}
    await admin(client, "PATCH", f"{TOKENS}/memory/USDX", enabled=False, **different)
    every = (await admin(client, "GET", f"{TOKENS}?limit=100"))["tokens"]
    assert {one["chain"] for one in every} > {"memory", "pretend"}
    by_chain = sorted(every, key=lambda one: (one["chain"], one["symbol"]))
    by_symbol = sorted(every, key=lambda one: (one["symbol"], one["chain"]))
    for query, wanted in {
        "": by_chain,
        "sort=-chain": by_chain[::-1],
        "sort=symbol": by_symbol,
        "sort=-symbol": by_symbol[::-1],
        "chain=memory": [one for one in by_chain if one["chain"] == "memory"],
        "symbol=USDX": [one for one in by_chain if one["symbol"] == "USDX"],
        "state=disabled": [one for one in by_chain if (one["chain"], one["symbol"]) == ("memory", "USDX")],
        "origin=added": [one for one in by_chain if one["symbol"] == "EURX"],
        "origin=added&state=disabled": [],
    }.items():
        found, cursor = [], ""
        while cursor is not None:
            page = await admin(client, "GET", f"{TOKENS}?{query}&limit=2{cursor}")
            assert (page["total"], page["totalIsExact"]) == (len(wanted), True), query
            found += page["tokens"]
            cursor = None if page["nextCursor"] is None else f"&cursor={page['nextCursor']}"
        assert found == wanted, query
        second = (await admin(client, "GET", f"{TOKENS}?{query}&limit=2&page=2"))["tokens"]
        assert second == wanted[2:4], query
        answer = await client.get(f"{TOKENS}?{query}&format=csv", headers=HEADERS)
        assert answer.headers["content-type"].startswith("text/csv")
        rows = list(csv.DictReader(io.StringIO(answer.text)))
        assert [(one["chain"], one["symbol"], one["contractAddress"]) for one in rows] == [
            (one["chain"], one["symbol"], one["contractAddress"] or "") for one in wanted
        ]
    (usdx,) = (await admin(client, "GET", f"{TOKENS}?state=disabled"))["tokens"]
    assert [(one["merchantId"], one["enabled"]) for one in usdx["merchants"]] == [(merchant.merchant_id, False)]
    refused(await client.get(f"{TOKENS}?chain=nowhere", headers=HEADERS), 400, "UNSUPPORTED_CHAIN", "chain")
    refused(await client.get(f"{TOKENS}?sort=label", headers=HEADERS), 400, "VALIDATION_ERROR", "sort")
    refused(await client.get(f"{TOKENS}?limit=100&page=101", headers=HEADERS), 400, "VALIDATION_ERROR", "page")


async def test_a_sandbox_project_has_the_tokens_that_were_added(client, seen, gateway, sandbox_merchant):
    made = (await admin(client, "POST", TOKENS, 202, chain="memory", contract=EURX))["token"]
    await activated(gateway, made["tokenId"])
    await admin(client, "PATCH", f"{TOKENS}/memory/DAIX", enabled=True)
    payment = {"chain": "memory", "token": "EURX", "pricingMode": "direct_crypto", "amount": "1"}
    made = (await client.post("/api/payment", json=payment, headers=sandbox_merchant.key)).json()["payment"]
    body = {"paymentId": made["paymentId"], "amount": "1"}
    answer = await client.post("/api/sandbox/deposit", json=body, headers=sandbox_merchant.key)
    assert answer.status_code == 200, answer.text
    assert answer.json()["payment"]["status"] == "detected"


async def replace_eurx(client, gateway):
    """Have another contract stand for EURX, which counts in other units."""
    made = (await admin(client, "POST", TOKENS, 202, chain="memory", contract=EURX))["token"]
    await activated(gateway, made["tokenId"])
    await admin(client, "PATCH", f"{TOKENS}/memory/USDX", enabled=True)  # has this process follow
    await admin(client, "PATCH", f"{TOKENS}/memory/EURX", enabled=False)
    made = (await admin(client, "POST", TOKENS, 202, chain="memory", contract=NEXT_EURX, replaces=True))["token"]
    await activated(gateway, made["tokenId"], NEXT_EURX, decimals=6)
    await admin(client, "PATCH", f"{TOKENS}/memory/USDX", enabled=True)


async def test_what_was_set_of_a_token_in_its_units_is_gone_once_another_one_goes_by_its_symbol(
    client, seen, gateway, merchant
):
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO coin_settings (merchant_pk, mode, chain, symbol, enabled, autopayout_policy,"
            " autopayout_threshold, autopayout_address, min_deposit, updated_at)"
            " SELECT m.id, 'live', 'memory', s, false, 'limit', 100000, 'mem1approved', 500, $1"
            " FROM merchants m, unnest(ARRAY['EURX', 'USDX']) s",
            (gateway.clock.now(),),
        )
    await replace_eurx(client, gateway)
    coins = (await client.get("/api/merchant/wallet/coins", headers=merchant.key)).json()["coins"]
    names = ("enabled", "autopayoutPolicy", "autopayoutThreshold", "minDeposit")
    told = {one["token"]: [one[name] for name in names] for one in coins if one["chain"] == "memory"}
    assert told["EURX"] == [False, "off", None, None]
    assert told["USDX"] == [False, "limit", "0.1", "0.0005"], "nobody has replaced it"
    # Whose money does not go out by itself any more reads why; operators read which contract it was.
    own = (await client.get("/api/dashboard/audit?action=coin_settings.changed", headers=merchant.bearer)).json()
    (entry,) = own["entries"]
    assert (entry["actorKind"], entry["subject"]) == ("gateway", "memory/EURX")
    assert entry["details"]["changed"]["autopayoutPolicy"] == "off"
    (newest, _) = (await admin(client, "GET", "/api/admin/audit?action=token.checked"))["entries"]
    assert (newest["details"]["contract"], newest["details"]["replaced"]) == (NEXT_EURX, EURX)


async def test_blocks_are_asked_for_again_by_one_job_and_the_log_says_who_wanted_it(client, seen, gateway):
    path, body = f"{CHAINS}/memory/rescan", {"fromHeight": 11, "reason": "order 4711"}
    refused(await client.post(path, json=body, headers=HEADERS), 409, "CHAIN_NOT_READ")
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE chain_cursors SET books_from = 10")
    asked = await admin(client, "POST", path, 202, **body)
    told = {name: asked[name] for name in ("chain", "state", "fromHeight", "toHeight")}
    assert told == {"chain": "memory", "state": "queued", "fromHeight": 11, "toHeight": 40}
    job = (await admin(client, "GET", f"/api/admin/jobs/{asked['jobId']}"))["job"]
    assert (job["kind"], job["state"], job["requestedBy"]) == ("rescan", "queued", "admin key")
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE chain_cursors SET height = 42")
    assert await admin(client, "POST", path, 202, **body) == asked, "the answer was lost, and the chain went on"
    refused(await client.post(path, json=body | {"fromHeight": 12}, headers=HEADERS), 409, "RESCAN_RUNNING")
    refused(await client.post(path, json=body | {"toHeight": 42}, headers=HEADERS), 409, "RESCAN_RUNNING")
    async with gateway.db.autocommit() as conn:
        query = "SELECT actor, subject, details FROM audit_entries WHERE action = 'chain.rescan_asked'"
        entries = [tuple(one) for one in await conn.exec_driver_sql(query)]
        jobs = (await conn.exec_driver_sql("SELECT count(*) FROM jobs")).scalar_one()
    details = {"job": asked["jobId"], "from_height": 11, "to_height": 40, "reason": "order 4711"}
    assert (jobs, entries) == (1, [("admin key", "memory", details)] * 2)
