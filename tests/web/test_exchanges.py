"""Swaps and bridges over HTTP: quoted, executed once, refused with a code, and shown as they are."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from cambist.hints import Hints
from cambist.services.exchanges.events import enqueue_ended
from cambist.services.exchanges.read import find_exchange
from tests.support.exchange_offers import (
    ADMIN,
    HERE,
    ONE,
    SWAP,
    asked,
    fund,
    made_rich,
    open_with_exchanges,
    put,
    stored,
)
from tests.support.exchange_rows import ended_exchange
from tests.support.fair import DEADLINE
from tests.support.web import Merchant, refused
from tests.support.webhooks import receiver


@pytest.fixture
def opening():
    return open_with_exchanges


@pytest.fixture
async def rich(gateway, merchant):
    return await made_rich(gateway, merchant)


@pytest.fixture
def ask(client, merchant):
    async def ask(path, headers=None, **fields):
        return await asked(client, {**merchant.key, **(headers or {})}, path, fields)

    return ask


async def balance(client, merchant, token):
    answer = await client.get(f"/api/merchant/wallet/balance?chain=memory&token={token}", headers=merchant.key)
    return {name: answer.json()["balance"][name] for name in ("available", "pending")}


async def history(client, merchant, query=""):
    answer = await client.get(f"{HERE}/history?{query}", headers=merchant.key)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def spend_credits(client, merchant):
    body = {"amount": -2_000_000, "mode": "live", "reference": "all"}
    await client.post(f"/api/admin/merchants/{merchant.merchant_id}/credits", json=body, headers=ADMIN)


SWAP_QUOTE = {
    "provider": "fair",
    "srcChain": "memory",
    "srcToken": "MEM",
    "srcAmount": "1",
    "srcAmountRaw": str(ONE),
    "destChain": "memory",
    "destToken": "DAIX",
    "dstAmount": "2",
    "dstAmountRaw": str(2 * ONE),
    "dstAmountMin": "1.98",
    "dstAmountMinRaw": str(198 * ONE // 100),
    "slippagePercent": 1.0,
    "platformFee": None,
}


async def test_a_swap_is_quoted_and_nothing_moves(client, rich, ask):
    answer = await ask("swap/quote")
    assert (answer.status_code, answer.json()) == (200, {"success": True, "quote": SWAP_QUOTE})
    assert await balance(client, rich, "MEM") == {"available": "10", "pending": "0"}
    assert (await history(client, rich))["total"] == 0


async def test_a_bridge_is_quoted_with_its_fees_and_until_when_it_is_filled(rich, ask):
    quote = (await ask("bridge/quote")).json()["quote"]
    deadline = datetime.fromtimestamp(DEADLINE, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    assert quote == {
        "provider": "fair-bridge",
        "srcChain": "memory",
        "srcToken": "USDX",
        "srcAmount": "5",
        "srcAmountRaw": "5000000",
        "destChain": "other",
        "destToken": "USDX",
        "dstAmount": "10",
        "dstAmountRaw": "10000000",
        "dstAmountMin": "9.9",
        "dstAmountMinRaw": "9900000",
        "slippagePercent": 1.0,
        "platformFee": None,
        "fees": [{"name": "fair", "amount": "0", "token": "USDX"}],
        "fillDeadline": deadline,
        "estimatedFillSeconds": None,
    }


async def test_a_swap_is_executed_at_once_and_pending_with_its_money_set_aside(client, gateway, rich, ask):
    answer = await ask("swap/execute", slippage=0.5)
    assert answer.status_code == 200, answer.text
    made = answer.json()
    assert set(made) == {"success", "txnId", "quote", "exchange"}
    least = {"dstAmountMin": "1.99", "dstAmountMinRaw": str(199 * ONE // 100), "slippagePercent": 0.5}
    assert made["quote"] == SWAP_QUOTE | least
    recipient = made["exchange"]["recipient"]
    assert made["exchange"] == {
        "txnId": made["txnId"],
        "kind": "swap",
        "mode": "manual",
        "status": "pending",
        "provider": "fair",
        "sourceChain": "memory",
        "sourceToken": "MEM",
        "sourceAmount": "1",
        "destChain": "memory",
        "destToken": "DAIX",
        "destAmount": None,
        "destAmountMin": "1.99",
        "slippagePercent": 0.5,
        "recipient": recipient,
        "txHash": None,
        "destTxHash": None,
        "payoutId": None,
        "waitsFor": None,
        "waitsForText": None,
        "error": None,
        "errorCode": None,
        "createdAt": "2026-01-01T12:00:00.000Z",
        "updatedAt": "2026-01-01T12:00:00.000Z",
        "completedAt": None,
    }
    assert made["txnId"].startswith("xch_")
    read = await client.get(f"{HERE}/history/{made['txnId']}", headers=rich.key)
    assert read.json() == {"success": True, "exchange": made["exchange"]}
    assert await balance(client, rich, "MEM") == {"available": "9", "pending": "1"}
    (intent,) = await stored(gateway, "SELECT reference, kind, state, units, to_address FROM outbound_intents")
    assert intent == {
        "reference": f"swap:{made['txnId']}",
        "kind": "swap",
        "state": "waiting",
        "units": ONE,
        "to_address": recipient,
    }
    (usage,) = (await client.get("/api/merchant/usage?operation=swap", headers=rich.key)).json()["usage"]
    assert (usage["reference"], usage["projectId"]) == (made["txnId"], rich.project_id)
    (entry,) = await stored(gateway, "SELECT subject, details FROM audit_entries WHERE action = 'exchange.asked'")
    assert entry["subject"] == made["txnId"]
    assert entry["details"] == {
        "kind": "swap",
        "sourceChain": "memory",
        "sourceToken": "MEM",
        "sourceAmount": "1",
        "destChain": "memory",
        "destToken": "DAIX",
        "destAmountMin": "1.99",
    }


async def test_engines_and_whoever_follows_exchanges_are_woken_by_a_new_one_alone(gateway, rich, ask, monkeypatch):
    woken = []
    publish = Hints.publish

    async def noted(self, *topics):
        woken.extend(topics)
        await publish(self, *topics)

    monkeypatch.setattr(Hints, "publish", noted)
    for path, is_new in (("quote", False), ("execute", True), ("execute", False)):
        woken.clear()
        await ask(f"swap/{path}", **({"idempotencyKey": "k"} if path == "execute" else {}))
        assert sorted({"outbound", "exchanges"} & set(woken)) == (["exchanges", "outbound"] if is_new else []), path


async def test_a_bridge_is_executed_and_named_with_both_chains(client, rich, ask):
    made = (await ask("bridge/execute")).json()
    assert made["quote"]["dstAmount"] == "10"
    assert "fees" not in made["quote"], "what the provider keeps is told with the quote alone"
    shown = {name: made["exchange"][name] for name in ("kind", "status", "sourceChain", "destChain", "sourceAmount")}
    assert shown == {
        "kind": "bridge", "status": "pending", "sourceChain": "memory", "destChain": "other", "sourceAmount": "5",
    }  # fmt: skip
    assert await balance(client, rich, "USDX") == {"available": "95", "pending": "5"}


@pytest.mark.parametrize("path", ["swap/execute", "bridge/execute"])
async def test_a_repetition_returns_the_first_exchange_without_asking_anybody(client, gateway, rich, ask, path):
    first = (await ask(path, {"Idempotency-Key": "k"}, slippage=0.5)).json()
    for provider in (*gateway.swaps, *gateway.bridges):
        provider.service.down = True
    again = await ask(path, idempotencyKey="k", slippage=0.50)
    assert (again.status_code, again.json()) == (200, {**first, "idempotent": True})
    assert (await history(client, rich))["total"] == 1
    refused(await ask(path, {"Idempotency-Key": "k"}), 409, "IDEMPOTENCY_KEY_REUSED")
    refused(await ask(path, {"Idempotency-Key": "k"}, idempotencyKey="l"), 400, "IDEMPOTENCY_KEY_MISMATCH")
    refused(await ask(path, idempotencyKey="new"), 503, "EXCHANGE_UNAVAILABLE")


async def test_an_amount_with_zeros_before_it_is_the_same_amount(rich, ask):
    first = (await ask("swap/execute", idempotencyKey="k", srcAmountRaw=str(ONE))).json()
    again = await ask("swap/execute", idempotencyKey="k", srcAmountRaw=f"00{ONE}")
    assert again.json() == {**first, "idempotent": True}
    refused(await ask("swap/execute", idempotencyKey="k", srcAmountRaw=str(ONE + 1)), 409, "IDEMPOTENCY_KEY_REUSED")


async def test_requests_at_once_with_one_key_start_one_exchange(client, rich, ask):
    answers = await asyncio.gather(*(ask("swap/execute", idempotencyKey="k") for _ in range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["txnId"] for answer in answers}) == 1
    assert sum("idempotent" not in answer.json() for answer in answers) == 1
    assert await balance(client, rich, "MEM") == {"available": "9", "pending": "1"}


async def test_a_key_that_was_refused_may_be_used_again(client, rich, ask):
    refused(await ask("swap/execute", idempotencyKey="k", srcAmountRaw=str(11 * ONE)), 403, "INSUFFICIENT_BALANCE")
    assert (await history(client, rich))["total"] == 0
    assert "idempotent" not in (await ask("swap/execute", idempotencyKey="k")).json()


async def test_a_key_is_bound_to_its_project(client, rich, ask):
    await ask("swap/execute", idempotencyKey="k")
    await rich.add_project()
    refused(await ask("swap/execute", idempotencyKey="k"), 409, "IDEMPOTENCY_KEY_OTHER_PROJECT")


@pytest.mark.parametrize(
    "path, fields, status, code, field",
    [
        ("swap", {"srcChain": "nowhere"}, 400, "UNSUPPORTED_CHAIN", "srcChain"),
        ("swap", {"srcToken": "NOTHING"}, 400, "UNSUPPORTED_TOKEN", "srcToken"),
        ("swap", {"destToken": "NOTHING"}, 400, "UNSUPPORTED_TOKEN", "destToken"),
        ("swap", {"destToken": "MEM"}, 400, "VALIDATION_ERROR", "destToken"),
        ("swap", {"srcAmountRaw": "0"}, 400, "INVALID_AMOUNT", "srcAmountRaw"),
        ("swap", {"srcAmountRaw": "1" + "0" * 61}, 400, "INVALID_AMOUNT", "srcAmountRaw"),
        ("swap", {"srcAmountRaw": "1.5"}, 400, "VALIDATION_ERROR", "srcAmountRaw"),
        ("swap", {"srcAmountRaw": "-1"}, 400, "VALIDATION_ERROR", "srcAmountRaw"),
        ("swap", {"srcAmountRaw": "٣"}, 400, "VALIDATION_ERROR", "srcAmountRaw"),
        ("swap", {"srcAmountRaw": 5}, 400, "VALIDATION_ERROR", "srcAmountRaw"),
        ("swap", {"srcChain": None}, 400, "VALIDATION_ERROR", "srcChain"),
        ("swap", {"destChain": "memory"}, 400, "VALIDATION_ERROR", "destChain"),
        ("swap", {"srcChain": "plain"}, 400, "SWAP_NOT_SUPPORTED_FOR_CHAIN", None),
        ("swap", {"srcChain": "idle"}, 503, "CHAIN_UNAVAILABLE", None),
        ("bridge", {"destChain": "nowhere"}, 400, "UNSUPPORTED_CHAIN", "destChain"),
        ("bridge", {"destChain": "memory"}, 400, "VALIDATION_ERROR", "destChain"),
        ("bridge", {"destChain": "plain"}, 400, "SWAP_NOT_SUPPORTED_FOR_CHAIN", None),
        ("bridge", {"destChain": "pretend"}, 503, "CHAIN_UNAVAILABLE", None),
        ("bridge", {"destChain": "third"}, 400, "PAIR_NOT_SUPPORTED", None),
        ("bridge", {"destChain": None}, 400, "VALIDATION_ERROR", "destChain"),
    ],
)
async def test_each_mistake_has_its_status_code_and_field(rich, ask, path, fields, status, code, field):
    for what in ("quote", "execute"):
        refused(await ask(f"{path}/{what}", **fields), status, code, *([] if field is None else [field]))


async def test_what_is_not_enabled_for_the_merchant_may_leave_and_is_not_exchanged_into(client, rich, ask):
    for path in ("swap", "bridge"):
        keyed = {"idempotencyKey": f"one {path}"}
        made = (await ask(f"{path}/execute", **keyed)).json()
        closed = f"/api/admin/tokens/{made['exchange']['destChain']}/{made['exchange']['destToken']}"
        assert (await client.patch(closed, json={"enabled": False}, headers=ADMIN)).status_code == 200
        for what in ("quote", "execute"):
            refused(await ask(f"{path}/{what}"), 400, "TOKEN_NOT_ENABLED", "destToken")
        again = (await ask(f"{path}/execute", **keyed)).json()
        assert (again["txnId"], again["idempotent"]) == (made["txnId"], True)
        assert (await client.patch(closed, json={"enabled": True}, headers=ADMIN)).status_code == 200
        given = f"/api/admin/tokens/{made['exchange']['sourceChain']}/{made['exchange']['sourceToken']}"
        assert (await client.patch(given, json={"enabled": False}, headers=ADMIN)).status_code == 200
        for what in ("quote", "execute"):
            assert (await ask(f"{path}/{what}")).status_code == 200
        assert (await client.patch(given, json={"enabled": True}, headers=ADMIN)).status_code == 200


async def test_a_coin_that_the_merchant_has_disabled_is_quoted_and_not_exchanged(client, rich, ask):
    path = "/api/merchant/wallet/coins"
    listed = (await client.get(path, headers=rich.key)).json()["coins"]
    coins = [{"chain": one["chain"], "token": one["token"]} for one in listed]
    for kind in ("swap", "bridge"):
        keyed = {"idempotencyKey": f"one {kind}"}
        made = (await ask(f"{kind}/execute", **keyed)).json()
        for side in ("source", "dest"):
            coin = {"chain": made["exchange"][f"{side}Chain"], "token": made["exchange"][f"{side}Token"]}
            left = [one for one in coins if one != coin]
            assert (await client.put(path, json={"coins": left}, headers=rich.key)).status_code == 200
            refused(await ask(f"{kind}/execute"), 400, "TOKEN_NOT_ENABLED")
            assert (await ask(f"{kind}/quote")).status_code == 200
            assert (await ask(f"{kind}/execute", **keyed)).json()["txnId"] == made["txnId"]
        assert (await client.put(path, json={"coins": coins}, headers=rich.key)).status_code == 200
        assert (await ask(f"{kind}/execute")).status_code == 200


@pytest.mark.parametrize("slippage", [-0.1, 50.01, "NaN", "sNaN", "Infinity", "1e999999", "half", [1]])
async def test_a_slippage_is_a_percentage_up_to_50(rich, ask, slippage):
    for path in ("swap/execute", "bridge/execute"):
        refused(await ask(path, slippage=slippage), 400, "VALIDATION_ERROR", "slippage")
    refused(await ask("swap/quote", slippage=1), 400, "VALIDATION_ERROR", "slippage")


async def test_whose_credits_are_used_up_is_refused_with_402(client, rich, ask):
    await spend_credits(client, rich)
    for path in ("swap/quote", "swap/execute", "bridge/execute"):
        refused(await ask(path), 402, "INSUFFICIENT_CPT")
    assert (await ask("bridge/quote")).status_code == 200
    assert await balance(client, rich, "MEM") == {"available": "10", "pending": "0"}


async def test_a_key_needs_the_scope_exchange_and_reads_with_read(client, rich, ask):
    await rich.add_key(scopes=["read", "payouts"])
    for path in ("swap/quote", "swap/execute", "bridge/quote", "bridge/execute"):
        refused(await ask(path), 403, "SCOPE_MISSING")
    assert (await history(client, rich))["exchanges"] == []
    await rich.add_key(scopes=["exchange"])
    made = await ask("swap/execute")
    assert made.status_code == 200
    for path in ("history", f"history/{made.json()['txnId']}", "platform-fees"):
        refused(await client.get(f"{HERE}/{path}", headers=rich.key), 403, "SCOPE_MISSING")


async def test_a_session_quotes_and_steps_up_to_execute(client, gateway, rich):
    here = f"/api/dashboard/projects/{rich.project_id}/swap-bridge"
    quoted = await client.post(f"{here}/swap/quote", json=SWAP, headers=rich.bearer)
    assert quoted.json()["quote"] == SWAP_QUOTE
    refused(await client.post(f"{here}/swap/execute", json=SWAP, headers=rich.bearer), 403, "TWO_FACTOR_REQUIRED")
    await rich.step_up()
    made = await client.post(f"{here}/swap/execute", json=SWAP, headers=rich.bearer)
    assert made.status_code == 200, made.text
    assert await stored(gateway, "SELECT asked_by FROM outbound_intents") == [{"asked_by": "session"}]
    listed = await client.get(f"{here}/history", headers=rich.bearer)
    assert listed.json()["exchanges"] == [made.json()["exchange"]]


async def test_history_is_filtered_by_what_the_specification_names(client, gateway, rich, ask):
    swap, bridge = [(await ask(path)).json()["txnId"] for path in ("swap/execute", "bridge/execute")]
    auto = await ended_exchange(gateway, rich.project_id, made_for="auto", source_chain="third", dest_chain="third")
    paid = await ended_exchange(
        gateway, rich.project_id, made_for="payout", kind="bridge", dest_chain="other", status="succeeded", error=None,
        output_units=3_100_000, tx_id="ab", dest_tx_id="cd",
    )  # fmt: skip

    async def found(query=""):
        page = await history(client, rich, query)
        assert page["total"] == len(page["exchanges"])
        return [one["txnId"] for one in page["exchanges"]]

    assert await found() == [paid, auto, bridge, swap]
    assert await found("mode=manual") == [bridge, swap]
    assert await found("mode=auto") == [auto]
    assert await found("mode=payout&status=succeeded") == [paid]
    assert await found("kind=swap") == [auto, swap]
    assert await found("kind=bridge&status=pending") == [bridge]
    assert await found("chain=other") == [paid, bridge]
    assert await found("chain=memory") == [paid, bridge, swap]
    assert await found("chain=nowhere") == []
    assert await found("status=failed") == [auto]
    for name in ("mode", "kind", "status"):
        refused(await client.get(f"{HERE}/history?{name}=lunch", headers=rich.key), 400, "VALIDATION_ERROR", name)
    one = (await client.get(f"{HERE}/history/{paid}", headers=rich.key)).json()["exchange"]
    assert (one["destAmount"], one["txHash"], one["destTxHash"]) == ("3.1", "ab", "cd")


async def test_history_is_paged_by_number_and_by_cursor(client, gateway, merchant):
    made = [await ended_exchange(gateway, merchant.project_id) for _ in range(5)]
    first = await history(client, merchant, "limit=2&page=1")
    assert (first["page"], first["limit"], first["total"]) == (1, 2, 5)
    second = await history(client, merchant, "limit=2&page=2")
    again = await history(client, merchant, f"limit=2&cursor={first['nextCursor']}")
    seen = [one["txnId"] for one in first["exchanges"] + second["exchanges"]]
    assert seen == made[:0:-1]
    assert again["exchanges"] == second["exchanges"]


async def test_an_exchange_is_there_for_its_project_alone(client, gateway, merchant):
    txn_id = await ended_exchange(gateway, merchant.project_id)
    other = await Merchant(client).open("bob@shop.example")
    refused(await client.get(f"{HERE}/history/{txn_id}", headers=other.key), 404, "EXCHANGE_NOT_FOUND")
    assert (await history(client, other))["total"] == 0


async def test_platform_fees_are_told_as_numbers_in_percent(client, merchant):
    async def fees():
        return (await client.get(f"{HERE}/platform-fees", headers=merchant.key)).json()

    zero = {"swapFeePercent": 0.0, "bridgeFeePercent": 0.0, "autoConvertMarkupPercent": 0.0, "defaultSlippage": 1.0}
    assert await fees() == {"success": True, **zero, "payoutSwapEnabled": False}
    await put(client, swapFeeBps=30, bridgeFeeBps=25, autoConvertMarkupBps=5, defaultSlippageBps=150)
    said = {"swapFeePercent": 0.3, "bridgeFeePercent": 0.25, "autoConvertMarkupPercent": 0.05, "defaultSlippage": 1.5}
    assert await fees() == {"success": True, **said, "payoutSwapEnabled": False}
    version = (await client.get("/api/admin/settings", headers=ADMIN)).json()["version"]
    body = {"payoutSwapEnabled": True, "version": version}
    assert (await client.put("/api/admin/settings", json=body, headers=ADMIN)).status_code == 200
    assert (await fees())["payoutSwapEnabled"] is True


@pytest.mark.parametrize(
    "ended",
    [{"status": "succeeded", "error": None, "output_units": 3_100_000, "tx_id": "ab", "dest_tx_id": "cd"}, {}],
    ids=["succeeded", "failed"],
)
async def test_what_is_made_up_to_try_a_receiver_looks_like_what_is_told_of_exchanges(gateway, merchant, ended):
    txn_id = await ended_exchange(gateway, merchant.project_id, **ended)
    async with gateway.db.transaction() as conn:
        pk = await conn.scalar(text("SELECT id FROM projects"))
        await enqueue_ended(conn, await find_exchange(conn, pk, txn_id), gateway.ids, gateway.clock.now())
    (told,) = await stored(gateway, "SELECT event, body, resource_id FROM webhook_events")
    real = json.loads(told["body"])["data"]
    async with receiver() as shop:
        path = f"/api/merchant/projects/{merchant.project_id}/test-webhook"
        sent = await merchant.ask("POST", path, {"event": told["event"], "url": shop.url})
    made_up = sent["payload"]["data"]
    assert told["resource_id"] == real["txnId"] == txn_id
    assert set(real) == set(made_up) - {"isTest"}
    assert {name: type(value) for name, value in real.items()} == {name: type(made_up[name]) for name in real}
    assert (made_up["resource"], made_up["status"]) == (real["resource"], real["status"])


async def test_a_sandbox_exchanges_at_the_gateways_own_prices_and_asks_nobody(client, gateway, sandbox_merchant):
    for provider in (*gateway.swaps, *gateway.bridges):
        provider.service.down = True
    await fund(gateway, sandbox_merchant, "MEM", ONE, mode="sandbox")
    made = await client.post(f"{HERE}/swap/execute", json=SWAP, headers=sandbox_merchant.key)
    assert made.status_code == 200, made.text
    assert (made.json()["quote"]["provider"], made.json()["quote"]["dstAmount"]) == ("sandbox", "2")
    assert await stored(gateway, "SELECT mode, step FROM exchanges") == [{"mode": "sandbox", "step": "sent"}]
    assert len(await stored(gateway, "SELECT id FROM sandbox_transfers")) == 2
