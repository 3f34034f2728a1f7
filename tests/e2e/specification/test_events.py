"""Section 6: every event of the catalogue as it is delivered, with its headers and its signature."""

from __future__ import annotations

import re
import time
from typing import Any

from cambist.domain.webhooks import EVENTS

from .replay import Replay, check
from .shapes import DATA, Event

HEX = re.compile(r"[0-9a-f]{64}")


class Story:
    """What is done in a sandbox project to bring every event about."""

    def __init__(self, replay: Replay, network: Any) -> None:
        self.merchant, self.network = replay.merchant, network

    async def on_the_chain(self, way: str, **body: Any) -> dict[str, Any]:
        return await self.merchant.post(f"/api/sandbox/{way}", body)

    async def mine(self, blocks: int = 10) -> None:
        await self.on_the_chain("mine", chain=self.network.chain, blocks=blocks)

    async def payments(self) -> None:
        paid = await self.merchant.pay(self.network.usdx, 50)
        more = await self.merchant.pay(self.network.usdx, 50)
        late = await self.merchant.pay(self.network.usdx, "46.00", pricingMode="fiat", fiatCurrency="eur")
        await self.on_the_chain("deposit", paymentId=paid["paymentId"])
        await self.on_the_chain("deposit", paymentId=more["paymentId"], amount="60")
        await self.mine(1)
        await self.mine()
        await self.merchant.refund(paid, self.network.stranger())
        await self.on_the_chain("advance-time", seconds=7_200)
        path = f"/api/dashboard/projects/{self.merchant.project['projectId']}/payments/{late['paymentId']}/recalculate"
        await self.merchant.post(path, None, headers=self.merchant.bearer)

    async def money_going_out(self) -> None:
        to_address, codes = self.network.stranger(), iter(self.merchant.recovery_codes)
        for ends in ("completed", "failed"):
            made = [
                (await self.merchant.pay_out(self.network.usdx, 1, to_address))["payoutId"],
                (await self.merchant.withdraw(self.network.usdx, 1, to_address, code=next(codes)))["withdrawal"][
                    "withdrawalId"
                ],
            ]
            for payout_id in made if ends == "failed" else ():
                await self.on_the_chain("fail-payout", payoutId=payout_id)
            await self.mine()

    async def accounts(self) -> None:
        body = {"externalId": "user-1", "chains": [self.network.chain]}
        made = (await self.merchant.post("/api/account", body, status=201))["account"]
        await self.on_the_chain("deposit", accountId=made["accountId"], token="USDX", amount="5")
        await self.mine()


async def test_every_event_of_the_catalogue_is_delivered_as_it_is_shown(sandbox: Replay, network):
    story, receiver = Story(sandbox, network), sandbox.receiver
    await story.payments()
    await story.money_going_out()
    await story.accounts()
    await receiver.until(
        lambda: set(EVENTS) <= {one["event"] for one in receiver.received if "isTest" not in one["data"]}
    )
    for told, headers in zip(receiver.received, receiver.headers, strict=True):
        is_test = told["data"].get("isTest", False)
        assert headers.get("X-Webhook-Test") == ("true" if is_test else None)
        if is_test or told["event"] not in EVENTS:
            continue
        check(told, Event)
        check(told["data"], DATA[EVENTS[told["event"]]])
        assert told["webhookId"] == sandbox.project_id
        assert headers["Content-Type"] == "application/json"
        assert headers["X-Webhook-Event"] == told["event"]
        assert HEX.fullmatch(headers["X-Webhook-Signature"]), "and the receiver has verified it"
        assert abs(time.time() * 1000 - int(headers["X-Webhook-Timestamp"])) < 300_000


async def test_a_payment_names_its_own_url_and_without_a_secret_the_signature_is_empty(sandbox: Replay, network):
    merchant, receiver = sandbox.merchant, sandbox.receiver
    made = await sandbox.ask("POST /api/merchant/projects", {"name": "Unsigned", "mode": "sandbox"})
    project_id = made["project"]["projectId"]
    path = f"/api/merchant/projects/{project_id}"
    await merchant.patch(path, {"webhookSigning": False}, headers=merchant.bearer)
    issued = await merchant.post(f"{path}/api-keys", {"name": "till"}, headers=merchant.bearer, status=201)
    key = {"X-Api-Key": issued["apiKey"]}
    body = {
        "chain": network.chain, "token": "USDX", "pricingMode": "direct_crypto", "amount": "1",
        "webhookUrl": receiver.url,
    }  # fmt: skip
    payment = (await merchant.post("/api/payment", body, headers=key, status=201))["payment"]
    await merchant.post("/api/sandbox/deposit", {"paymentId": payment["paymentId"]}, headers=key)
    await receiver.wait(payment["paymentId"], "payment.detected")
    told = [one for one in zip(receiver.received, receiver.headers, strict=True) if one[0]["webhookId"] == project_id]
    assert [headers["X-Webhook-Signature"] for _, headers in told] == [""]
    assert len(receiver.rejected) == 1, "what is not signed does not verify"
    receiver.rejected.clear()
