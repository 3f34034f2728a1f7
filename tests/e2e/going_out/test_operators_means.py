"""What an operator's day is made of: nodes that die, tokens, prices that are wrong, and money that came late.

Everything over the API, without a restart, beside a merchant who goes on with its business.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.gateway import Merchant, named, until
from tests.support.networks import Coin
from tests.support.operator_in_person import Operator


@pytest.fixture(scope="module")
async def merchant(gateway, session, station, blocks) -> Merchant:
    return await Merchant(gateway.url, session).open()


@pytest.fixture(scope="module")
async def ada(gateway, session) -> Operator:
    return await Operator(gateway, session).sign_in()


@pytest.fixture(scope="module", autouse=True)
def wrong(quoter) -> Iterator[None]:
    """Have one price source say twice as much from the morning on, before anybody asks."""
    quoter.kraken = "2"
    yield
    quoter.kraken = "1"


@pytest.fixture
def prices(ada, merchant, usdx) -> Prices:
    return Prices(ada, merchant, usdx)


class Prices:
    """What an operator is told of one coin's price, and what a merchant's customer is asked for."""

    def __init__(self, ada: Operator, merchant: Merchant, coin: Coin) -> None:
        self._ada, self._merchant, self._coin = ada, merchant, coin

    async def asked(self) -> str:
        """Return what a customer is asked for whose order costs ten dollars."""
        body = {**named(self._coin), "pricingMode": "fiat", "amount": "10", "fiatCurrency": "usd"}
        return (await self._merchant.post("/api/payment/quote", body))["expectedAmount"]

    async def kraken_is(self, status: str) -> bool:
        """Whether the one source is told to be this, and the others to be used."""
        prices = (await self._ada.get("/api/admin/prices"))["prices"]
        (coin,) = [one for one in prices if one["token"] == self._coin.symbol]
        said = {one["source"]: one["status"] for one in coin["sources"]}
        return said == {"static": "used", "coingecko": "used", "kraken": status}


async def add_endpoint(ada, network, url: str, **more: str) -> str:
    """Add a way to the node, wait until a worker has looked at it, and return its id."""
    here = f"/api/admin/chains/{network.chain}/endpoints"
    made = (await ada.post(here, {"url": url, **more}))["endpoint"]["endpointId"]
    told = await ada.until(f"{here}/{made}", lambda told: told["endpoint"]["state"] != "checking")
    assert told["endpoint"]["state"] == "in_use", told
    return made


async def in_use(ada, network) -> dict[str, dict]:
    """Return the endpoints that are asked, by their ids."""
    chain = (await ada.get(f"/api/admin/chains/{network.chain}"))["chain"]
    return {one["endpointId"]: one for one in chain["endpoints"] if one["state"] == "in_use"}


async def test_an_endpoint_that_dies_is_told_and_replaced_and_who_paid_meanwhile_has_paid(
    ada, merchant, network, usdx, customer, gateway
):
    here = f"/api/admin/chains/{network.chain}"
    (first,) = await in_use(ada, network)
    async with network.endpoint() as provider:
        second = await add_endpoint(ada, network, provider.url, label="second provider")
        await ada.delete(f"{here}/endpoints/{first}")
        payment = await merchant.pay(usdx, 6)
        provider.faults.add(network.broken)
        await customer.pay(payment["depositAddress"], usdx, 6)

        def dead(told: dict) -> dict:
            return next(one for one in told["chain"]["endpoints"] if one["endpointId"] == second)

        # A worker writes what became of its endpoints a moment after it has said that a poll failed; until then it is
        # not known whether a new one is healthy.
        told = await ada.until(here, lambda told: told["chain"]["error"] and dead(told)["healthy"] is False)
        assert (dead(told)["name"], dead(told)["lastError"] is None) == ("second provider", False)
        assert provider.url not in str(told), "an address may hold a key"
        await add_endpoint(ada, network, network.url, replaces=second)
    await merchant.until(payment, "paid", seconds=180)
    await ada.until(here, lambda told: told["chain"]["error"] is None and told["chain"]["status"] == "working")
    (back,) = (await in_use(ada, network)).values()
    assert back["healthy"]
    assert back["endpointId"] != second
    await gateway.reconcile()


# Who says what a coin costs, and who decides about that, is the same on every kind of chain.
@pytest.mark.parametrize("network", ["anvil"], indirect=True, scope="module")
async def test_a_price_source_that_is_wrong_is_told_and_set_aside_and_nobody_pays_too_little(ada, quoter, prices):
    """What it said is kept for half a minute: that it is believed once it is right again, the last story tells."""

    async def attention_is(*codes: str) -> bool:
        found = {one["code"] for one in (await ada.get("/api/admin/overview"))["attention"]}
        return found & {"PRICE_SOURCES_WRONG", "PRICE_SOURCES_SET_ASIDE"} == set(codes)

    await until(lambda: prices.kraken_is("too_far"))
    # A worker looks by itself, whoever looks besides.
    await until(lambda: attention_is("PRICE_SOURCES_WRONG"))
    assert await prices.asked() == "10"
    source = "/api/admin/prices/sources/kraken"
    await ada.post(f"{source}/set-aside", {"reason": "it says twice as much as all others"})
    await until(lambda: prices.kraken_is("set_aside"))
    assert await attention_is("PRICE_SOURCES_SET_ASIDE")
    quoter.kraken = "1"
    await ada.post(f"{source}/take-back", {"reason": "it is right again"})


async def test_a_token_that_is_added_by_its_contract_is_taken_and_says_what_sending_it_needs(
    ada, merchant, network, customer, onlooker, gateway
):
    gift = await network.new_token("GIFT")
    added = (await ada.post("/api/admin/tokens", {"chain": network.chain, "contract": gift.contract}))["token"]
    told = await ada.until(f"/api/admin/tokens/{added['tokenId']}", lambda told: told["token"]["state"] != "checking")
    assert (told["token"]["state"], told["token"]["symbol"], told["token"]["decimals"]) == ("enabled", "GIFT", 6)
    assert (told["token"]["sendable"], told["token"]["sendableReason"] is None) == (False, False)

    async def offered() -> bool:
        tokens = (await merchant.get(f"/api/public/tokens?chain={network.chain}"))["tokens"]
        return any(one["symbol"] == "GIFT" for one in tokens)

    await until(offered)
    payment = await merchant.pay(gift, 3)
    await network.mint(gift, customer.address, 3)
    await until(lambda: onlooker.holds(customer.address, gift, 3))
    await customer.pay(payment["depositAddress"], gift, 3)
    await merchant.until(payment, "paid", seconds=180)
    assert await merchant.balance(gift) == {"available": "3"}
    await ada.patch(f"/api/admin/tokens/{network.chain}/GIFT", {"enabled": False})
    await gateway.reconcile()


async def test_money_that_came_late_for_a_locked_rate_is_found_and_released_to_its_merchant(
    ada, merchant, usdx, customer, story_db, gateway
):
    before = int((await merchant.balance(usdx)).get("available", 0))
    payment = await merchant.pay(usdx, "7", pricingMode="fiat", fiatCurrency="usd")
    async with story_db.transaction() as conn:
        await conn.exec_driver_sql(
            "UPDATE payments SET expires_at = now() - interval '2 seconds' WHERE payment_id = $1",
            (payment["paymentId"],),
        )
    await merchant.until(payment, "expired")
    await customer.pay(payment["depositAddress"], usdx, payment["expectedAmount"])
    path = f"/api/admin/resolutions?merchantId={merchant.merchant_id}"

    def mine(told: dict) -> list[dict]:
        return [one for one in told["resolutions"] if one["deposit"]["paymentId"] == payment["paymentId"]]

    (waiting,) = mine(await ada.until(path, mine))
    assert (waiting["deposit"]["amount"], waiting["canRelease"]) == (payment["expectedAmount"], True)
    decided = f"/api/admin/resolutions/{waiting['deposit']['depositId']}"
    for _ in range(2):  # once more changes nothing
        released = (await ada.post(f"{decided}/release", {}))["resolution"]["deposit"]
        assert (released["resolution"], released["heldAmount"]) == ("released", "0")
    assert (await ada.post(f"{decided}/accept", {}, status=409))["code"] == "ALREADY_RESOLVED"
    assert int((await merchant.balance(usdx))["available"]) == before + 7
    assert (await merchant.payment(payment))["status"] == "expired"
    await gateway.reconcile()


@pytest.mark.parametrize("network", ["anvil"], indirect=True, scope="module")
async def test_a_price_source_that_was_set_aside_and_is_right_again_is_believed(quoter, prices):
    quoter.kraken = "1"
    await until(lambda: prices.kraken_is("used"))
    assert await prices.asked() == "10"


async def test_the_log_names_who_did_what_and_is_whole(ada, network, gateway):
    entries = (await ada.get(f"/api/admin/audit?actor={ada.operator_id}&limit=100"))["entries"]
    of_prices = {"price_source.set_aside", "price_source.taken_back"} if network.family == "evm" else set()
    assert {one["action"] for one in entries} >= of_prices | {
        "chain_endpoint.added", "chain_endpoint.removed", "token.added", "token.changed", "deposit.released",
    }  # fmt: skip
    code, printed = await gateway.run("audit", "verify", *gateway.options)
    assert code == 0, printed
