"""The demo's two people: a shop that talks to the gateway over HTTP, and its server that takes webhooks.

They use nothing of the gateway's code, so that what they see is what any merchant's program sees.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Self

import aiohttp
import click
from aiohttp import web

from .terminal import echo

STEP_S_MAX = 20
PASSWORD = "demo password, not for keeps"  # noqa: S105  shown to the visitor
PAID_OUT, REFUNDED = "20", "10"
SUPPLIER, CUSTOMER = "0x" + "5" * 40, "0x" + "7" * 40


class DemoFailedError(Exception):
    """A step of the story did not hold; the message says which."""


def _say(text: str) -> None:
    click.secho(f"\n{text}", bold=True)


def _tell(name: str, value: str, mark: str = "") -> None:
    echo(f"   {name:<11}{value}", mark=click.style(mark, fg="green"))


class WebhookReceiver:
    """The shop's server: verifies every webhook as the documentation tells merchants to.

    Each path of its URL has a secret of its own, in ``secrets``. ``verified`` counts what has verified.
    """

    path = "/webhooks"

    def __init__(self, port: int = 0, secrets: Mapping[str, str] | None = None) -> None:
        """Listen on this port of the machine itself; 0 is any that is free."""
        self.port = port
        self.secrets = dict(secrets or {})
        self.verified = 0
        self._events: asyncio.Queue[tuple[str, dict[str, Any], bool]] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/{name}", self._take)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        return self.url_of(self.path)

    def url_of(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        signed = request.headers["X-Webhook-Timestamp"].encode() + b"." + body
        signature = hmac.new(self.secrets.get(request.path, "").encode(), signed, hashlib.sha256).hexdigest()
        verified = hmac.compare_digest(signature, request.headers["X-Webhook-Signature"])
        self.verified += verified
        event = json.loads(body)
        self._events.put_nowait((event["event"], event["data"], verified))
        return web.Response(status=200 if verified else 400)

    async def expect(self, event: str) -> None:
        """Wait for the next webhook, which must be this event and verify, and show it."""
        try:
            name, data, verified = await asyncio.wait_for(self._events.get(), STEP_S_MAX)
        except TimeoutError:
            raise DemoFailedError(f"no webhook {event} came within {STEP_S_MAX} s") from None
        if name != event:
            raise DemoFailedError(f"the webhook {event} was due, and {name} came")
        if not verified:
            raise DemoFailedError(f"the signature of {event} does not verify")
        what = next(what for what in ("refundedAmount", "receivedAmount", "amount") if what in data)
        _tell("webhook", f"{name:<20} {what.removesuffix('Amount'):<8} {data[what]:<10} ", "✓ signature verified")


class Shop:
    """A merchant who registers, sells one thing, is paid, pays others, and looks at the wallet."""

    def __init__(self, url: str, receiver: WebhookReceiver, name: str) -> None:
        self._url = url
        self._receiver = receiver
        self._email = f"{name}@shop.example"

    async def story(self) -> str:
        """Play the story, and return what a visitor needs to go on. Raises DemoFailedError."""
        async with aiohttp.ClientSession() as self._session:
            key = await self._open()
            order = {"token": "USDC", "pricingMode": "fiat", "amount": "49.90", "fiatCurrency": "eur"}
            payment = await self._order(key, {"chain": "ethereum", **order, "orderId": "DEMO-1"})
            await self._pay(key, payment)
            await self._check_payment(key, payment)
            left = Decimal(payment["expectedAmount"])
            await self._check_wallet(key, payment, left, "exactly what was paid")
            await self._pay_out(key, payment)
            await self._refund(key, payment)
            left -= Decimal(PAID_OUT) + Decimal(REFUNDED)
            await self._check_wallet(key, payment, left, "exactly what is left")
            another = await self._order(key, {"chain": "base", **order, "orderId": "DEMO-2"}, quiet=True)
            return self._visit(key, payment, another)

    async def _open(self) -> dict[str, str]:
        _say("1. A merchant opens a shop")
        account = {"email": self._email, "password": PASSWORD}
        await self._post("/api/auth/register", {**account, "name": "Demo shop"})
        login = await self._post("/api/auth/login", account)
        bearer = {"Authorization": f"Bearer {login['accessToken']}"}
        body = {"name": "Demo shop", "mode": "sandbox", "paymentWebhookUrl": self._receiver.url}
        made = await self._post("/api/merchant/projects", body, bearer)
        self._receiver.secrets[self._receiver.path] = made["webhookSecret"]
        project = made["project"]["projectId"]
        key = await self._post(f"/api/merchant/projects/{project}/api-keys", {"name": "Till"}, bearer)
        _tell("merchant", self._email)
        _tell("project", f"{project} (sandbox: simulated chains, real addresses)")
        return {"X-Api-Key": key["apiKey"]}

    async def _order(self, key: dict[str, str], body: dict[str, str], *, quiet: bool = False) -> dict[str, Any]:
        made = await self._post("/api/payment", body, key)
        payment: dict[str, Any] = {**made["payment"], "checkoutUrl": made["checkoutUrl"]}
        if not quiet:
            _say(f"2. A customer orders for {body['amount']} {body['fiatCurrency'].upper()}")
            _tell("pays", f"{payment['expectedAmount']} {payment['token']} at {payment['exchangeRate']}, rate locked")
            _tell("to", f"{payment['depositAddress']} on {payment['chain']}")
            _tell("checkout", payment["checkoutUrl"])
        return payment

    async def _pay(self, key: dict[str, str], payment: dict[str, Any]) -> None:
        _say("3. The customer pays, and the chain confirms")
        await self._post("/api/sandbox/deposit", {"paymentId": payment["paymentId"]}, key)
        await self._receiver.expect("payment.detected")
        await self._post("/api/sandbox/mine", {"chain": payment["chain"], "blocks": 1}, key)
        await self._receiver.expect("payment.confirming")
        await self._post("/api/sandbox/mine", {"chain": payment["chain"], "blocks": 20}, key)
        await self._receiver.expect("payment.paid")

    async def _check_payment(self, key: dict[str, str], payment: dict[str, Any]) -> None:
        _say("4. The merchant's wallet is credited")
        found = await self._get(f"/api/payment/{payment['paymentId']}", key)
        if found["payment"]["status"] != "paid":
            raise DemoFailedError(f"the payment is {found['payment']['status']} and should be paid")

    async def _check_wallet(self, key: dict[str, str], payment: dict[str, Any], due: Decimal, remark: str) -> None:
        path = f"/api/merchant/wallet/balance?chain={payment['chain']}&token={payment['token']}"
        available = (await self._get(path, key))["balance"]["available"]
        if Decimal(available) != due:
            raise DemoFailedError(f"the wallet holds {available} and should hold {due}")
        _tell("available", f"{available} {payment['token']} on {payment['chain']}  ", f"✓ {remark}")

    async def _pay_out(self, key: dict[str, str], payment: dict[str, Any]) -> None:
        _say(f"5. The merchant pays a supplier {PAID_OUT} {payment['token']}")
        body = {"chain": payment["chain"], "token": payment["token"], "amount": PAID_OUT, "toAddress": SUPPLIER}
        made = await self._post("/api/merchant/wallet/payout", body, key)
        await self._post("/api/sandbox/mine", {"chain": payment["chain"], "blocks": 20}, key)
        await self._receiver.expect("payout.completed")
        payout = (await self._get(f"/api/merchant/wallet/payouts/{made['payout']['payoutId']}", key))["payout"]
        _tell("to", f"{payout['toAddress']} in {payout['txHash'][:18]}…")

    async def _refund(self, key: dict[str, str], payment: dict[str, Any]) -> None:
        _say(f"6. The customer gets {REFUNDED} {payment['token']} back")
        body = {"toAddress": CUSTOMER, "amount": REFUNDED, "reason": "one item was out of stock"}
        await self._post(f"/api/payment/{payment['paymentId']}/refund", body, key)
        await self._receiver.expect("payment.refunded")
        await self._post("/api/sandbox/mine", {"chain": payment["chain"], "blocks": 20}, key)

    def _visit(self, key: dict[str, str], paid: dict[str, Any], waiting: dict[str, Any]) -> str:
        body = json.dumps({"paymentId": waiting["paymentId"]})
        return "\n".join(
            [
                "\nThe payment of the story",
                f"   paid       {paid['checkoutUrl']}",
                f"   waiting    {waiting['checkoutUrl']}",
                f"   API        {self._url}/api/swagger",
                f"   login      {self._email} / {PASSWORD}",
                f"   API key    {key['X-Api-Key']}",
                "\n   Open the waiting checkout in a browser, then pay it and watch:",
                f"   curl -H 'X-Api-Key: {key['X-Api-Key']}' -H 'Content-Type: application/json' \\",
                f"        -d '{body}' {self._url}/api/sandbox/deposit",
                f"   curl -H 'X-Api-Key: {key['X-Api-Key']}' -H 'Content-Type: application/json' \\",
                f"        -d '{json.dumps({'chain': waiting['chain'], 'blocks': 50})}' {self._url}/api/sandbox/mine",
                "\nCtrl-C stops it.",
            ]
        )

    async def _post(self, path: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> dict[str, Any]:
        async with self._session.post(self._url + path, json=body, headers=headers) as response:
            return await read_answer(path, response)

    async def _get(self, path: str, headers: dict[str, str]) -> dict[str, Any]:
        async with self._session.get(self._url + path, headers=headers) as response:
            return await read_answer(path, response)


async def read_answer(path: str, response: aiohttp.ClientResponse) -> dict[str, Any]:
    """Return what the gateway answered. Raises DemoFailedError for a refusal."""
    answer: dict[str, Any] = await response.json()
    if not answer.get("success"):
        raise DemoFailedError(f"{path} answered {response.status}: {answer.get('error')}")
    return answer
