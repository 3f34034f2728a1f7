"""Who may do what with whose money: every endpoint that was added for it, and everybody who could knock."""

from __future__ import annotations

import re

import pytest

from tests.support.payout_env import person
from tests.support.web import refused

pytestmark = pytest.mark.slow

PAY = {"chain": "memory", "token": "USDX", "toAddress": person("thief"), "amount": "1"}
BACK = {"toAddress": person("thief"), "amount": "1"}
SWAP = {"srcChain": "memory", "srcToken": "USDX", "srcAmountRaw": "1000000", "destToken": "MEM"}
ROWS = {"chain": "memory", "token": "USDX", "destinations": [{"toAddress": person("thief"), "amount": "1"}]}

# What a project has: for programs at the first path, for people below their project at the second.
PROJECT = {
    ("GET", "accounts", ""): None,
    ("POST", "accounts", ""): {"externalId": "thief", "chains": ["memory"]},
    ("GET", "accounts", "/{account_id}"): None,
    ("GET", "accounts", "/{account_id}/balances"): None,
    ("GET", "accounts", "/{account_id}/deposits"): None,
    ("POST", "accounts", "/{account_id}/activate"): None,
    ("POST", "accounts", "/{account_id}/chains"): {"chains": ["pretend"]},
    ("POST", "accounts", "/{account_id}/deactivate"): None,
    ("GET", "wallet", ""): None,
    ("GET", "wallet", "/balance?chain=memory&token=USDX"): None,
    ("GET", "wallet", "/addresses"): None,
    ("GET", "wallet", "/transactions"): None,
    ("GET", "wallet", "/transactions.csv"): None,
    ("GET", "wallet", "/collections"): None,
    ("GET", "wallet", "/coins"): None,
    ("PUT", "wallet", "/coins"): {"coins": []},
    ("PATCH", "wallet", "/coins/{chain}/{symbol}/settings"): {"autopayoutThreshold": "1"},
    ("GET", "wallet", "/payouts"): None,
    ("GET", "wallet", "/payouts/{payout_id}"): None,
    ("POST", "wallet", "/payouts/{payout_id}/cancel"): None,
    ("POST", "wallet", "/payout"): PAY,
    ("POST", "wallet", "/payout/batch"): ROWS,
    ("POST", "wallet", "/payout/batch/check"): ROWS,
    ("POST", "swap-bridge", "/swap/quote"): SWAP,
    ("POST", "swap-bridge", "/swap/execute"): SWAP,
    ("POST", "swap-bridge", "/bridge/quote"): {**SWAP, "destChain": "pretend"},
    ("POST", "swap-bridge", "/bridge/execute"): {**SWAP, "destChain": "pretend"},
    ("GET", "swap-bridge", "/history"): None,
    ("GET", "swap-bridge", "/history/{txn_id}"): None,
    ("GET", "swap-bridge", "/platform-fees"): None,
    ("GET", "usage", ""): None,
    ("GET", "plan", ""): None,
    ("GET", "resolutions", ""): None,
    ("GET", "resolutions", "/{deposit_id}"): None,
    ("POST", "resolutions", "/{deposit_id}/accept"): None,
    ("POST", "resolutions", "/{deposit_id}/release"): None,
    ("POST", "resolutions", "/{deposit_id}/refund"): BACK,
    ("GET", "payments", "/refunds/list"): None,
    ("GET", "payments", "/refunds/{refund_id}"): None,
    ("POST", "payments", "/refunds/{refund_id}/cancel"): None,
    ("POST", "payments", "/{payment_id}/refund"): BACK,
    ("GET", "events", ""): None,
    ("GET", "events", "/{event_id}"): None,
    ("POST", "events", "/{event_id}/redeliver"): None,
    ("POST", "events", "/redeliver"): {"since": "2020-01-01"},
    ("POST", "sandbox", "/fail-payout"): {"payoutId": "{payout_id}"},
    ("POST", "sandbox", "/fail-exchange"): {"txnId": "{txn_id}"},
}
KEY_PATHS = {
    "accounts": "/api/account",
    "wallet": "/api/merchant/wallet",
    "swap-bridge": "/api/merchant/swap-bridge",
    "usage": "/api/merchant/usage",
    "plan": "/api/merchant/plan",
    "resolutions": "/api/merchant/resolutions",
    "payments": "/api/payment",
    "sandbox": "/api/sandbox",
    "events": "/api/events",
}
# What only a person may do, for all projects.
PERSON = {
    ("GET", "/api/dashboard/overview"): None,
    ("GET", "/api/dashboard/projects/{project_id}/wallet/worth"): None,
    ("GET", "/api/dashboard/projects/{project_id}/search?q=x"): None,
    ("GET", "/api/dashboard/audit"): None,
    ("GET", "/api/dashboard/withdrawals"): None,
    ("POST", "/api/dashboard/withdrawals"): {**PAY, "projectId": "{project_id}", "totpCode": "000000"},
    ("GET", "/api/dashboard/withdrawals/{withdrawal_id}"): None,
    ("POST", "/api/dashboard/withdrawals/{withdrawal_id}/cancel"): None,
    ("GET", "/api/dashboard/approved-addresses"): None,
    ("POST", "/api/dashboard/approved-addresses"): {"chain": "memory", "address": person("thief")},
    ("DELETE", "/api/dashboard/approved-addresses/{approval_id}"): None,
    ("GET", "/api/dashboard/two-factor"): None,
    ("POST", "/api/dashboard/two-factor/enrol"): {"password": "wrong"},
    ("POST", "/api/dashboard/two-factor/confirm"): {"totpCode": "000000"},
    ("POST", "/api/dashboard/two-factor/recovery-codes"): {"password": "wrong", "totpCode": "000000"},
    ("POST", "/api/dashboard/two-factor/disable"): {"password": "wrong", "totpCode": "000000"},
}
OPERATOR = {
    ("GET", "/api/admin/stream"): None,
    ("GET", "/api/admin/jobs"): None,
    ("GET", "/api/admin/jobs/recurring"): None,
    ("GET", "/api/admin/jobs/{job_id}"): None,
    ("GET", "/api/admin/jobs/{job_id}/output"): None,
    ("POST", "/api/admin/jobs"): {"kind": "statement_export", "merchantId": "mer_x"},
    ("POST", "/api/admin/jobs/{job_id}/retry"): None,
    ("POST", "/api/admin/jobs/{job_id}/cancel"): None,
    ("GET", "/api/admin/reconcile"): None,
    ("GET", "/api/admin/reconcile/{job_id}"): None,
    ("POST", "/api/admin/reconcile"): {},
    ("GET", "/api/admin/webhooks/deliveries"): None,
    ("GET", "/api/admin/webhooks/deliveries/{delivery_id}"): None,
    ("GET", "/api/admin/webhooks/failing"): None,
    ("POST", "/api/admin/webhooks/redeliver"): {"since": "2026-01-01"},
    ("GET", "/api/admin/resolutions"): None,
    ("GET", "/api/admin/resolutions/{deposit_id}"): None,
    ("POST", "/api/admin/resolutions/{deposit_id}/accept"): None,
    ("POST", "/api/admin/resolutions/{deposit_id}/release"): None,
    ("GET", "/api/admin/settings"): None,
    ("PUT", "/api/admin/settings"): {"payoutEnabled": False},
    ("GET", "/api/admin/chains"): None,
    ("GET", "/api/admin/chains/{chain}"): None,
    ("POST", "/api/admin/chains/{chain}/endpoints"): {"url": "memory://second"},
    ("GET", "/api/admin/chains/{chain}/endpoints/{endpoint_id}"): None,
    ("DELETE", "/api/admin/chains/{chain}/endpoints/{endpoint_id}"): None,
    ("GET", "/api/admin/tokens"): None,
    ("POST", "/api/admin/tokens"): {"chain": "memory", "contract": "mem1nothing"},
    ("GET", "/api/admin/tokens/{token_id}"): None,
    ("PATCH", "/api/admin/tokens/{chain}/{symbol}"): {"enabled": False},
    ("POST", "/api/admin/chains/{chain}/pause"): {"what": "sending", "reason": "maintenance"},
    ("POST", "/api/admin/chains/{chain}/rescan"): {"fromHeight": 1, "reason": "somebody has paid"},
    ("POST", "/api/admin/chains/{chain}/resume"): {"what": "sending", "reason": "it is over"},
    ("GET", "/api/admin/collections"): None,
    ("GET", "/api/admin/collections/uncollected"): None,
    ("GET", "/api/admin/collections/uncollected/sums"): None,
    ("GET", "/api/admin/collections/addresses/{address}"): None,
    ("POST", "/api/admin/collections/uncollected/{uncollected_id}/collect"): {},
    ("DELETE", "/api/admin/collections/uncollected/{uncollected_id}/collect"): None,
    ("GET", "/api/admin/plugins"): None,
    ("GET", "/api/admin/overview"): None,
    ("GET", "/api/admin/audit"): None,
    ("POST", "/api/admin/audit/verify"): None,
    ("GET", "/api/admin/search?q=x"): None,
    ("GET", "/api/admin/payments"): None,
    ("GET", "/api/admin/payments/{payment_id}"): None,
    ("GET", "/api/admin/deposits"): None,
    ("GET", "/api/admin/deposits/{deposit_id}"): None,
    ("GET", "/api/admin/payouts"): None,
    ("GET", "/api/admin/payouts/{payout_id}"): None,
    ("GET", "/api/admin/refunds"): None,
    ("GET", "/api/admin/refunds/{refund_id}"): None,
    ("GET", "/api/admin/withdrawals"): None,
    ("GET", "/api/admin/withdrawals/{withdrawal_id}"): None,
    ("GET", "/api/admin/exchanges"): None,
    ("GET", "/api/admin/exchanges/{txn_id}"): None,
    ("GET", "/api/admin/accounts"): None,
    ("GET", "/api/admin/accounts/{account_id}"): None,
    ("GET", "/api/admin/trackers"): None,
    ("GET", "/api/admin/trackers/{webhook_id}"): None,
    ("GET", "/api/admin/gas-stations"): None,
    ("GET", "/api/admin/prices"): None,
    ("POST", "/api/admin/prices/sources/{name}/set-aside"): {"reason": "it is wrong"},
    ("POST", "/api/admin/prices/sources/{name}/take-back"): {"reason": "it is right"},
    ("GET", "/api/admin/signer"): None,
    ("POST", "/api/admin/signer/approvals/{approval_id}/approve"): {"code": "00000000", "question": "Is it?"},
    ("POST", "/api/admin/signer/approvals/{approval_id}/deny"): {"code": "00000000", "question": "Is it?"},
    ("GET", "/api/admin/outbound"): None,
    ("GET", "/api/admin/outbound/{intent_id}"): None,
    ("POST", "/api/admin/outbound/{intent_id}/retry"): None,
    ("POST", "/api/admin/outbound/{intent_id}/cancel"): None,
    ("POST", "/api/admin/outbound/{intent_id}/raise-fee"): {},
    ("POST", "/api/admin/outbound/{intent_id}/settle"): {"txHash": "0x00"},
    ("GET", "/api/admin/stakes"): None,
    ("POST", "/api/admin/stakes"): {"chain": "memory", "action": "unstake", "amount": "1"},
    ("POST", "/api/admin/merchants/{merchant_id}/credits"): {"amount": 5, "mode": "live", "reference": "x"},
    ("DELETE", "/api/admin/merchants/{merchant_id}/sessions"): None,
    ("GET", "/api/admin/merchants"): None,
    ("GET", "/api/admin/merchants/{merchant_id}"): None,
    ("PUT", "/api/admin/merchants/{merchant_id}/limits"): {"limits": {}, "version": 0},
    ("POST", "/api/admin/merchants/{merchant_id}/suspend"): {"reason": "x"},
    ("POST", "/api/admin/merchants/{merchant_id}/reinstate"): None,
    ("POST", "/api/admin/merchants/two-factor/reset"): {"email": "ada@shop.example"},
    ("POST", "/api/admin/merchants"): {"email": "eve@shop.example", "name": "Eve"},
    ("POST", "/api/admin/password-resets"): {"email": "ada@shop.example"},
    ("PUT", "/api/admin/merchants/{merchant_id}"): {"live": True},
    ("PUT", "/api/admin/merchants/{merchant_id}/plan"): {"planId": None},
    ("GET", "/api/admin/plans"): None,
    ("POST", "/api/admin/plans"): {"name": "Huge", "hasTracker": True, "maxWebhooks": 99, "maxAddresses": 9_999},
    ("PATCH", "/api/admin/plans/{plan_id}"): {"maxWebhooks": 99},
}
# All of an operator's are in test_operator_access.py.
OPERATOR |= {
    ("GET", "/api/admin/operators"): None,
    ("POST", "/api/admin/operators"): {"email": "eve@gateway.example", "name": "Eve", "role": "owner"},
    ("PATCH", "/api/admin/operators/{operator_id}"): {"role": "owner"},
    ("POST", "/api/admin/operators/{operator_id}/disable"): None,
    ("POST", "/api/admin/operators/{operator_id}/enable"): None,
    ("POST", "/api/admin/operators/{operator_id}/link"): None,
    ("POST", "/api/admin/operators/{operator_id}/two-factor/reset"): None,
}
STRANGERS = ("key of the sibling", "key of the live project", "key of another merchant")
NOT_FOUND = {
    "account_id": "ACCOUNT_NOT_FOUND",
    "payout_id": "PAYOUT_NOT_FOUND",
    "txn_id": "EXCHANGE_NOT_FOUND",
    "deposit_id": "DEPOSIT_NOT_FOUND",
    "refund_id": "REFUND_NOT_FOUND",
    "payment_id": "PAYMENT_NOT_FOUND",
    "withdrawal_id": "WITHDRAWAL_NOT_FOUND",
    "approval_id": "APPROVED_ADDRESS_NOT_FOUND",
    "event_id": "EVENT_NOT_FOUND",
}


def filled(two_merchants, value):
    if isinstance(value, dict):
        return {name: filled(two_merchants, item) for name, item in value.items()}
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda found: two_merchants.ids[found[1]], value)
    return value


async def knock(two_merchants, who, method, path, body):
    return await two_merchants.client.request(
        method, filled(two_merchants, path), json=filled(two_merchants, body), headers=two_merchants.who[who]
    )


async def test_the_rules_of_this_file_know_every_endpoint_for_money(client):
    told = {(method, KEY_PATHS[noun] + rest.partition("?")[0]) for method, noun, rest in PROJECT}
    told |= {
        (method, f"/api/dashboard/projects/{{project_id}}/{noun}{rest.partition('?')[0]}")
        for method, noun, rest in PROJECT
    }
    told |= {(method, path.partition("?")[0]) for method, path in (*PERSON, *OPERATOR)}
    mine = re.compile(
        r"/api/admin(?!/auth|/set-password)|/api/dashboard/(withdrawals|approved|two-factor|audit|overview)|.*/search"
        r"|/api/account|.*/(accounts|wallet|swap-bridge|usage|plan|resolutions|refund|fail-\w+)|/api/(.*/)?events"
    )
    found = set()
    for route in client._transport.app.routes:
        path = re.sub(r"\{(\w+):\w+\}", r"{\1}", route.path)
        if mine.match(path):
            found |= {(method, path) for method in route.methods if method != "OPTIONS"}
    assert found == told


async def test_what_has_an_id_is_there_for_its_project_alone(two_merchants):
    before = await two_merchants.picture()
    for (method, noun, rest), body in PROJECT.items():
        named = re.search(r"\{(\w+_id)\}", rest + str(body))
        for who in STRANGERS if named else ():
            answer = await knock(two_merchants, who, method, KEY_PATHS[noun] + rest, body)
            if noun == "sandbox" and who == "key of the live project":
                refused(answer, 403, "SANDBOX_ONLY")
            else:
                refused(answer, 404, NOT_FOUND[named[1]])
        path = f"/api/dashboard/projects/{{project_id}}/{noun}{rest}"
        refused(await knock(two_merchants, "session of another merchant", method, path, body), 403, "PROJECT_NOT_OWNED")
    for (method, path), body in PERSON.items():
        if (named := re.search(r"\{(\w+_id)\}", path)) is not None:
            answer = await knock(two_merchants, "session of another merchant", method, path, body)
            if named[1] == "project_id":
                refused(answer, 403, "PROJECT_NOT_OWNED")
            else:
                refused(answer, 404, NOT_FOUND[named[1]])
    answer = await knock(
        two_merchants,
        "session of another merchant",
        "POST",
        "/api/dashboard/withdrawals",
        PERSON["POST", "/api/dashboard/withdrawals"],
    )
    refused(answer, 403, "PROJECT_NOT_OWNED")
    assert await two_merchants.picture() == before


async def test_lists_tell_strangers_of_nothing(two_merchants):
    lists = {
        "accounts": ("",),
        "wallet": ("/payouts", "/payouts?batchId={batch_id}"),
        "resolutions": ("",),
        "payments": ("/refunds/list",),
        "swap-bridge": ("/history",),
        "events": ("", "?resourceId={payment_id}"),
    }
    for noun, rests in lists.items():
        for rest in rests:
            assert (await knock(two_merchants, "key", "GET", KEY_PATHS[noun] + rest, None)).json()["total"] > 0
            for who in STRANGERS:
                assert (await knock(two_merchants, who, "GET", KEY_PATHS[noun] + rest, None)).json()["total"] == 0, (
                    who,
                    rest,
                )
    for rest in ("/transactions", "/transactions.csv", "/collections", ""):
        for who in ("key of the live project", "key of another merchant"):
            answer = await knock(two_merchants, who, "GET", KEY_PATHS["wallet"] + rest, None)
            assert answer.status_code == 200
            assert not any(
                two_merchants.ids[name] in answer.text for name in two_merchants.ids if name.endswith("_id")
            ), (who, rest)
    project = {"projectId": two_merchants.ids["project_id"]}
    for path in ("/api/dashboard/withdrawals", "/api/dashboard/approved-addresses"):
        answer = await two_merchants.client.get(path, params=project, headers=two_merchants.bob.bearer)
        assert not any(one in answer.text for one in two_merchants.ids.values() if "_" in one), answer.text


async def test_the_right_credential_is_let_in_everywhere(two_merchants):
    refusals = {"API_KEY_MISSING", "API_KEY_INVALID", "SESSION_REQUIRED", "INVALID_TOKEN", "ADMIN_KEY_INVALID"}
    rows = [("key", method, KEY_PATHS[noun] + rest, body) for (method, noun, rest), body in PROJECT.items()]
    rows += [
        ("session", method, f"/api/dashboard/projects/{{project_id}}/{noun}{rest}", body)
        for (method, noun, rest), body in PROJECT.items()
    ]
    rows += [("session", method, path, body) for (method, path), body in PERSON.items()]
    rows += [("operator", method, path, body) for (method, path), body in OPERATOR.items() if "reset" not in path]
    for who, method, path, body in rows:
        answer = await knock(two_merchants, who, method, path, body)
        shut = {"PAYOUT_DISABLED", "CHAIN_UNAVAILABLE"}
        assert answer.status_code < 500 or answer.json()["code"] in shut, (path, answer.text)
        if answer.status_code >= 400:
            assert answer.json()["code"] not in refusals, (who, path, answer.text)
            # A comparison makes no file.
            assert method != "GET" or path.endswith("/output"), (path, answer.text)
