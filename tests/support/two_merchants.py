"""Two merchants whose projects own one of everything that has an id, and everybody who could ask for it."""

from __future__ import annotations

from typing import Any

import httpx

from cambist.testing.memory.family import named_address
from tests.support.exchange_rows import ended_exchange
from tests.support.payout_env import person
from tests.support.two_factor import Authenticator, enrol
from tests.support.web import ADMIN_KEY, Merchant

CONFIRMED = 3
WALLET = "/api/merchant/wallet"
RESOLUTIONS = "/api/merchant/resolutions"
WITHDRAWALS = "/api/dashboard/withdrawals"
APPROVED = "/api/dashboard/approved-addresses"


class TwoMerchants:
    """Ada's sandbox project has money, a surplus, and one of everything; the others have nothing of it."""

    def __init__(self, client: httpx.AsyncClient, clock: Any) -> None:
        self.client = client
        self.clock = clock
        self.ada, self.bob = Merchant(client), Merchant(client)
        self.phone: Authenticator
        self.ids: dict[str, str] = {"chain": "memory", "name": "static"}
        self.who: dict[str, dict[str, str]] = {}

    async def build(self) -> TwoMerchants:
        await self.ada.open(mode="live")
        keys = {"key of the live project": self.ada.key}
        await self.ada.add_project(mode="sandbox")
        keys["key of the sibling"] = self.ada.key
        await self.ada.add_project(mode="sandbox")
        await self.bob.open("bob@shop.example", mode="sandbox")
        self.phone, _ = await enrol(self.ada, self.clock)
        self.who = {
            "nobody": {},
            "key": self.ada.key,
            **keys,
            "key of another merchant": self.bob.key,
            "session": self.ada.bearer,
            "session of another merchant": self.bob.bearer,
            "operator": {"X-Admin-Key": ADMIN_KEY},
            "tracker": {"X-Auth-Token": "tok_" + "0" * 60},
            "garbage": {"X-Api-Key": "ck_test_' OR 1=1 --", "Authorization": "Bearer e30.e30.", "X-Admin-Key": "x"},
        }
        await self._fill()
        return self

    async def post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> Any:
        response = await self.client.post(path, json=body, headers=headers or self.ada.key)
        assert response.status_code in {200, 201}, response.text
        return response.json()

    async def get(self, path: str, headers: dict[str, str] | None = None) -> Any:
        response = await self.client.get(path, headers=headers or self.ada.key)
        assert response.status_code == 200, response.text
        return response.json()

    async def paid(self, amount: str = "100") -> str:
        """Make a payment of 100 USDX, and deposit the amount for good."""
        asked = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "100"}
        payment: str = (await self.post("/api/payment", asked))["payment"]["paymentId"]
        await self.post("/api/sandbox/deposit", {"paymentId": payment, "amount": amount, "confirmations": CONFIRMED})
        return payment

    async def _fill(self) -> None:
        await self.paid()
        self.ids["payment_id"] = await self.paid("105")
        (surplus,) = (await self.get(RESOLUTIONS))["resolutions"]
        self.ids["deposit_id"] = surplus["depositId"]
        user = {"externalId": "ada's user", "chains": ["memory"]}
        account = (await self.post("/api/account", user))["account"]
        self.ids |= {"account_id": account["accountId"], "address": account["addresses"][0]["address"]}
        tracker = {"url": "https://shop.example/tracked", "name": "Treasury", "chain": "memory"}
        self.ids["webhook_id"] = (await self.post("/api/webhook/create", tracker))["webhook"]["webhookId"]
        coin = {"chain": "memory", "token": "USDX"}
        pay = {**coin, "toAddress": person(), "amount": "1"}
        self.ids["payout_id"] = (await self.post(f"{WALLET}/payout", pay))["payout"]["payoutId"]
        rows = {**coin, "destinations": [{"toAddress": person("bert"), "amount": "1"}]}
        self.ids["batch_id"] = (await self.post(f"{WALLET}/payout/batch", rows))["batch"]["batchId"]
        back = {"toAddress": person("customer"), "amount": "2"}
        path = f"/api/payment/{self.ids['payment_id']}/refund"
        self.ids["refund_id"] = (await self.post(path, back))["refund"]["refundId"]
        taken = {**pay, "projectId": self.ada.project_id, "totpCode": self.phone.code()}
        made = await self.post(WITHDRAWALS, taken, self.ada.bearer)
        self.ids["withdrawal_id"] = made["withdrawal"]["withdrawalId"]
        self.clock.advance(30)
        safe = {"chain": "memory", "address": person("safe"), "mode": "sandbox", "totpCode": self.phone.code()}
        approved = await self.post(APPROVED, safe, self.ada.bearer)
        self.ids["approval_id"] = approved["approvedAddress"]["approvalId"]
        self.clock.advance(30)
        self.ids["txn_id"] = await ended_exchange(self.client._transport.app.state.gateway, self.ada.project_id)  # type: ignore[attr-defined]
        self.ids["event_id"] = (await self.get("/api/events"))["events"][0]["eventId"]
        self.ids["merchant_id"] = self.ada.merchant_id
        self.ids |= {"plan_id": "pln_unknown", "operator_id": "opr_unknown", "uncollected_id": "unc_unknown"}
        self.ids["project_id"] = self.ada.project_id
        operator = self.who["operator"]
        queued = (await self.get("/api/admin/outbound?mode=sandbox", operator))["outbound"]
        self.ids["intent_id"] = queued[0]["intentId"]
        self.ids["job_id"] = (await self.post("/api/admin/reconcile", {}, operator))["run"]["jobId"]
        told = await self.get("/api/admin/webhooks/deliveries", operator)
        self.ids["delivery_id"] = told["deliveries"][0]["deliveryId"]
        self.ids |= {"chain": "memory", "symbol": "USDX"}
        asked = {"chain": "memory", "contract": named_address("deployed/EURX")}
        self.ids["endpoint_id"] = await self._asked_for(
            "/api/admin/chains/memory/endpoints", "endpoint", url="memory://second"
        )
        self.ids["token_id"] = await self._asked_for("/api/admin/tokens", "token", **asked)

    async def _asked_for(self, path: str, noun: str, **body: str) -> str:
        """Return the id of what an operator has asked for, which no worker sees to."""
        answer = await self.client.post(path, json=body, headers=self.who["operator"])
        assert answer.status_code == 202, answer.text
        found: str = answer.json()[noun][f"{noun}Id"]
        return found

    async def picture(self) -> Any:
        """Return everything of Ada's that a stranger could have changed."""
        project = f"/api/dashboard/projects/{self.ada.project_id}"
        paths = {
            WALLET: self.ada.key,
            f"{WALLET}/transactions?limit=100": self.ada.key,
            f"{WALLET}/payouts": self.ada.key,
            "/api/merchant/swap-bridge/history": self.ada.key,
            f"{WALLET}/coins": self.ada.key,
            f"{project}/accounts": self.ada.bearer,
            f"{project}/payments": self.ada.bearer,
            f"{project}/payments/refunds/list": self.ada.bearer,
            f"{project}/resolutions": self.ada.bearer,
            f"{project}/events": self.ada.bearer,
            WITHDRAWALS: self.ada.bearer,
            APPROVED: self.ada.bearer,
            "/api/dashboard/two-factor": self.ada.bearer,
            "/api/admin/settings": self.who["operator"],
        }
        return {path: await self.get(path, headers) for path, headers in paths.items()}
