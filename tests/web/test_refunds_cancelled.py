"""A refund whose deposit a reorganization took away: cancelled over HTTP, by the engine and the books that run live."""

from __future__ import annotations

import pytest

from tests.support.books import broken
from tests.support.payout_env import person
from tests.support.treasury import Treasury
from tests.support.web import Merchant, memory_gateway, web_settings

pytestmark = pytest.mark.slow

UNITS = 10_000_000


@pytest.fixture
async def gateway(database_url, redis_url, clock, ids):
    async with memory_gateway(web_settings(database_url, redis_url), clock, ids, stock=0) as gateway:
        yield gateway


@pytest.fixture
async def treasury(gateway, clock, ids, tmp_path):
    """Give the worker's side of the gateway that is asked over HTTP: a chain, a watcher, a signer and an engine."""
    async with Treasury(gateway.db, clock, ids, tmp_path, chains=gateway.registry, box=gateway.secrets) as treasury:
        await treasury.open()
        yield treasury


@pytest.fixture
async def merchant(client, treasury):
    return await Merchant(client).open()


@pytest.fixture
async def ask(client, merchant):
    async def ask(method, path, status=200, **body):
        answer = await client.request(method, path, json=body or None, headers=merchant.key)
        assert answer.status_code == status, answer.text
        return answer.json()

    return ask


async def hold(gateway, treasury):
    """Check all that must hold of the books."""
    await treasury.check_books()
    async with gateway.db.transaction() as conn:
        assert await broken(conn) == {}


async def balances(gateway, merchant, treasury):
    """Return the merchant's balances, without zeros."""
    async with gateway.db.autocommit() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT purpose, balance FROM ledger_accounts b JOIN merchants m ON m.id = b.merchant_pk"
            " WHERE m.merchant_id = $1 AND asset = $2 AND balance <> 0",
            (merchant.merchant_id, treasury.asset("USDX")),
        )
        return {row.purpose: int(row.balance) for row in rows}


async def test_a_refund_whose_deposit_was_orphaned_is_cancelled_and_the_payment_judged_again(
    client, gateway, merchant, treasury, ask
):
    asked = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "10"}
    payment = (await ask("POST", "/api/payment", 201, **asked))["payment"]
    path = f"/api/payment/{payment['paymentId']}"

    async def judged():
        found = (await ask("GET", path))["payment"]
        return found["status"], found["receivedAmount"], found["refundedAmount"]

    async def pays():
        treasury.chain.transfer(treasury.token("USDX"), payment["depositAddress"], UNITS)
        await treasury.mine(1 + confirmations)

    confirmations = treasury.info.confirmations
    await pays()
    refund = (await ask("POST", f"{path}/refund", 201, toAddress=person("customer")))["refund"]
    assert (refund["status"], await judged()) == ("requested", ("paid", "10", "10"))
    treasury.chain.reorg(1 + confirmations, new_blocks=2 + confirmations)
    await treasury.poll()
    assert await judged() == ("failed", "0", "10")
    assert await balances(gateway, merchant, treasury) == {"pending": UNITS, "receivable": -UNITS}
    refund_path = f"/api/payment/refunds/{refund['refundId']}"
    assert (await ask("POST", f"{refund_path}/cancel"))["refund"]["status"] == "cancelling"
    await hold(gateway, treasury)
    assert (await treasury.engine().tick()).told
    cancelled = (await ask("GET", refund_path))["refund"]
    assert (cancelled["status"], cancelled["errorCode"], cancelled["txHash"]) == ("cancelled", "CANCELLED_BY_KEY", None)
    assert await judged() == ("failed", "0", "0")
    assert await balances(gateway, merchant, treasury) == {}, "nobody owes and nobody is owed"
    await hold(gateway, treasury)
    # The customer's transaction is sent once more: all of it is there to be paid with, or to be sent back.
    await pays()
    assert await judged() == ("paid", "10", "0")
    assert await balances(gateway, merchant, treasury) == {"available": UNITS, "custody_deposits": -UNITS}
    assert (await ask("POST", f"{path}/refund", 201, toAddress=person("customer")))["refund"]["amount"] == "10"
    await hold(gateway, treasury)
