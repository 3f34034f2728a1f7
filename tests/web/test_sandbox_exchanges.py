"""A sandbox's exchanges over HTTP: what a merchant makes happen to them."""

import pytest

from cambist.plugin import Quote, Units
from cambist.services import platform
from cambist.services.exchanges.context import ExchangeContext
from cambist.services.exchanges.create import prepare
from cambist.services.exchanges.offers import Offer
from cambist.services.exchanges.owner import Owner
from cambist.services.exchanges.requests import Wish
from cambist.services.exchanges.starting import NewExchange, start_exchange
from cambist.services.pricing.prices import RateBook
from cambist.services.pricing.quotes import Asset
from tests.support.web import refused

pytestmark = pytest.mark.slow

PATH = "/api/sandbox/fail-exchange"
ONE = 1_000_000


class Shop:
    """A sandbox project that was paid 10 USDX."""

    def __init__(self, client, merchant) -> None:
        self.client, self.merchant = client, merchant
        self.gateway = client._transport.app.state.gateway

    async def post(self, path, body, headers=None):
        return await self.client.post(path, json=body, headers=headers or self.merchant.key)

    async def sandbox(self, path, **body) -> None:
        response = await self.post(f"/api/sandbox/{path}", body)
        assert response.status_code == 200, response.text

    async def earn(self) -> None:
        body = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "10"}
        made = await self.post("/api/payment", body)
        await self.sandbox("deposit", paymentId=made.json()["payment"]["paymentId"], confirmations=3)

    async def exchange(self, chain: str) -> str:
        """Exchange 4 USDX for as many on another chain, or for some MEM on the same."""
        gateway = self.gateway
        context = ExchangeContext(
            registry=gateway.registry,
            keys=gateway.keys,
            clock=gateway.clock,
            ids=gateway.ids,
            rates=RateBook([], gateway.clock),
        )
        here, there = gateway.registry.chains["memory"], gateway.registry.chains[chain]
        dest = Asset(there, there.token("MEM" if chain == "memory" else "USDX"))
        wish = Wish(source=Asset(here, here.token("USDX")), units=Units(4 * ONE), dest=dest, slippage_bps=None)
        offer = Offer(
            provider="sandbox",
            quote=Quote(units=Units(4 * ONE), units_min=Units(1)),
            units_min=Units(1),
            slippage_bps=1,
        )
        txn_id: str = gateway.ids.new("xch")
        async with gateway.db.transaction() as conn:
            found = await conn.exec_driver_sql(
                "SELECT id, merchant_pk FROM projects WHERE project_id = $1", (self.merchant.project_id,)
            )
            project = found.one()
            owner = Owner(project_pk=project.id, merchant_pk=project.merchant_pk, mode="sandbox")
            settings = await platform.load(conn)
            ready = await prepare(conn, context, settings, owner, wish)
            new = NewExchange(txn_id=txn_id, settings=settings, prepared=ready, offer=offer)
            await start_exchange(conn, context, new)
        return txn_id

    async def balance(self, chain="memory"):
        path = f"/api/merchant/wallet/balance?chain={chain}&token=USDX"
        found = (await self.client.get(path, headers=self.merchant.key)).json()["balance"]
        return found["available"], found["pending"]


@pytest.fixture
async def shop(client, merchant):
    await merchant.add_project(mode="sandbox")
    shop = Shop(client, merchant)
    await shop.earn()
    return shop


async def test_a_swap_fails_on_request_and_gives_its_money_back(shop):
    txn_id = await shop.exchange("memory")
    assert await shop.balance() == ("6", "4")
    response = await shop.post(PATH, {"txnId": txn_id})
    assert response.status_code == 200, response.text
    assert response.json() == {"success": True, "txnId": txn_id, "kind": "swap", "status": "pending"}
    await shop.sandbox("mine", chain="memory", blocks=4)
    assert await shop.balance() == ("10", "0")
    refused(await shop.post(PATH, {"txnId": txn_id}), 409, "EXCHANGE_ALREADY_MINED")


async def test_a_bridge_expires_on_request_and_its_deposit_comes_back(shop):
    txn_id = await shop.exchange("pretend")
    response = await shop.post(PATH, {"txnId": txn_id, "how": "expire"})
    assert response.status_code == 200, response.text
    await shop.sandbox("mine", chain="memory", blocks=4)
    assert await shop.balance() == ("6", "4")
    await shop.sandbox("mine", chain="memory", blocks=4)
    assert await shop.balance() == ("10", "0")


async def test_what_nobody_stops_comes_to_the_other_chain(shop):
    await shop.exchange("pretend")
    await shop.sandbox("mine", chain="memory", blocks=4)
    await shop.sandbox("mine", chain="pretend", blocks=4)
    assert await shop.balance() == ("6", "0")
    assert await shop.balance(chain="pretend") == ("4", "0")


async def test_what_is_asked_of_an_exchange_is_checked(shop):
    txn_id = await shop.exchange("memory")
    refused(await shop.post(PATH, {"txnId": "xch_1"}), 404, "EXCHANGE_NOT_FOUND")
    refused(await shop.post(PATH, {"txnId": txn_id, "how": "expire"}), 400, "VALIDATION_ERROR")
    refused(await shop.post(PATH, {"txnId": txn_id, "how": "vanish"}), 400, "VALIDATION_ERROR")
    response = await shop.client.post(PATH, json={"txnId": txn_id})
    refused(response, 401, "API_KEY_MISSING")


async def test_the_dashboard_can_fail_exchanges_too_and_live_projects_cannot(shop):
    txn_id = await shop.exchange("memory")
    path = f"/api/dashboard/projects/{shop.merchant.project_id}/sandbox/fail-exchange"
    response = await shop.post(path, {"txnId": txn_id}, shop.merchant.bearer)
    assert response.status_code == 200, response.text
    await shop.merchant.add_project(mode="live")
    refused(await shop.post(PATH, {"txnId": txn_id}), 403, "SANDBOX_ONLY")
