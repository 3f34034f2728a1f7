"""A day of an operator: everything over the API and in person, beside a merchant who goes on with its business."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from tests.support.gateway import Merchant, until
from tests.support.operator_in_person import Operator


@pytest.fixture(scope="module")
async def merchant(gateway, session, station, blocks) -> Merchant:
    """Give a merchant whose server nobody has told the gateway of yet."""
    return await Merchant(gateway.url, session).open()


@pytest.fixture(scope="module")
async def ada(gateway, session) -> Operator:
    return await Operator(gateway, session).sign_in()


@pytest.fixture(scope="module")
async def day(ada):
    """Have the operator's page open all day."""
    async with ada.listening() as page:
        yield page


async def hears(day, since=0, /, **facts):
    async def heard() -> bool:
        return any(facts.items() <= change.items() for change in day.changes[since:])

    await until(heard)


def queue(merchant) -> str:
    return f"/api/admin/outbound?merchantId={merchant.merchant_id}"


async def intent_of(ada, merchant, payout) -> dict:
    """Wait for what is to be sent for a payout, and return it."""

    async def find() -> dict | None:
        found = (await ada.get(queue(merchant)))["outbound"]
        return next((one for one in found if one["payoutId"] == payout["payoutId"]), None)

    return await until(find)


async def pause_sending(ada, gateway, chain: str, reason: str) -> dict:
    """Pause it, wait until the worker says that it follows, and return what resumes it."""
    body, word = {"what": "sending", "reason": reason}, "sending_paused"
    before = gateway.log.read_text().count(word)
    await ada.post(f"/api/admin/chains/{chain}/pause", body)

    async def follows() -> bool:
        return gateway.log.read_text().count(word) > before

    await until(follows)
    return body


async def ended(merchant, payout) -> dict:
    path = f"/api/merchant/wallet/payouts/{payout['payoutId']}"

    async def poll() -> dict | None:
        found = (await merchant.get(path))["payout"]
        assert found["status"] != "failed", found
        return found if found["status"] in {"completed", "cancelled"} else None

    return await until(poll)


async def test_live_mode_is_granted_and_what_a_customer_paid_is_found_by_its_transaction(
    ada, day, merchant, customer, usdx
):
    path = f"/api/admin/merchants/{merchant.merchant_id}"
    before = len(day.changes)
    await ada.put(path, {"live": False})
    await hears(day, before, kind="merchant", id=merchant.merchant_id)
    asked = {"chain": usdx.chain, "token": usdx.symbol, "pricingMode": "direct_crypto", "amount": "60"}
    refused = await merchant.post("/api/payment", asked, status=403)
    assert refused["code"] == "LIVE_NOT_GRANTED"
    await ada.put(path, {"live": True})

    async def made() -> dict | None:
        async with merchant.session.post(
            merchant.url + "/api/payment", json=asked, headers=merchant.headers
        ) as response:
            return (await response.json())["payment"] if response.status == 201 else None

    payment = await until(made)  # every process knows of it within a second
    tx_id = await customer.pay(payment["depositAddress"], usdx, 60)
    await merchant.until(payment, "paid", seconds=180)
    await hears(day, kind="payment", id=payment["paymentId"], status="paid", merchantId=merchant.merchant_id)
    found = (await ada.get(f"/api/admin/search?q={tx_id}"))["found"]
    assert payment["paymentId"] in {one["id"] for one in found}
    (row,) = (await ada.get(f"/api/admin/merchants?search={merchant.email}"))["merchants"]
    assert (row["merchantId"], row["live"]) == (merchant.merchant_id, True)


async def test_sending_is_paused_one_payout_is_cancelled_meanwhile_and_the_other_goes_out_when_it_is_resumed(
    ada, day, merchant, network, usdx, onlooker, gateway
):
    why = await pause_sending(ada, gateway, network.chain, "the provider is being replaced")
    await hears(day, kind="chain", id=network.chain, status="paused")
    kept, taken_back = network.stranger(), network.stranger()
    goes = await merchant.pay_out(usdx, 5, kept)
    stays = await merchant.pay_out(usdx, 3, taken_back)
    for payout in (goes, stays):
        waiting = await intent_of(ada, merchant, payout)
        path = f"/api/admin/outbound/{waiting['intentId']}"
        await ada.until(path, lambda told: told["outbound"]["waitsFor"]["code"] == "paused")
    await ada.post(f"{path}/cancel", {})
    done = await ended(merchant, stays)
    assert (done["status"], "operator" in done["error"]) == ("cancelled", True)
    assert (await ada.get(path))["outbound"]["state"] == "failed"
    await ada.post(f"/api/admin/chains/{network.chain}/resume", why)
    await hears(day, kind="chain", id=network.chain, status="resumed")
    await merchant.completed(goes)
    assert await onlooker.holds(kept, usdx, 5)
    assert await onlooker.holds(taken_back, usdx, 0)
    assert await merchant.balance(usdx) == {"available": "55"}
    await gateway.reconcile()


async def test_a_payout_that_nobody_mines_is_replaced_by_one_that_pays_more_and_arrives_once(
    ada, merchant, network, usdx, onlooker, blocks, gateway
):
    if network.family != "evm":
        await _nothing_is_replaced(ada, merchant, network, usdx, blocks)
        return
    to_address, since = network.stranger(), await network.height()
    async with blocks.held():
        payout = await merchant.pay_out(usdx, 2, to_address)
        path = f"/api/admin/outbound/{(await intent_of(ada, merchant, payout))['intentId']}"
        sent = await ada.until(path, lambda told: [tx["state"] for tx in told["outbound"]["transactions"]] == ["sent"])
        (first,) = sent["outbound"]["transactions"]
        cheap = await ada.post(f"{path}/raise-fee", {"maxFee": "0.000000000000000001"}, status=400)
        assert cheap["details"][0]["field"] == "maxFee"
        await ada.post(f"{path}/raise-fee", {})
        raised = await ada.until(path, lambda told: len(told["outbound"]["transactions"]) == 2)
        assert {tx["nonce"] for tx in raised["outbound"]["transactions"]} == {first["nonce"]}
        assert len({tx["maxFee"] for tx in raised["outbound"]["transactions"]}) == 2
    done = await merchant.completed(payout)
    assert done["txHash"] in {tx["txHash"] for tx in raised["outbound"]["transactions"]}
    assert done["txHash"] != first["txHash"]
    assert (await onlooker.received(usdx, since))[to_address] == [usdx.units(2)]
    late = await ada.post(f"{path}/raise-fee", {}, status=409)
    assert late["code"] == "ALREADY_ENDED"
    await gateway.reconcile()


async def _nothing_is_replaced(ada, merchant, network, usdx, blocks):
    """Try it on a chain without nonces: there a transaction is mined, or expires."""
    async with blocks.held():
        payout = await merchant.pay_out(usdx, 2, network.stranger())
        path = f"/api/admin/outbound/{(await intent_of(ada, merchant, payout))['intentId']}"
        await ada.until(path, lambda told: told["outbound"]["transactions"])
        refused = await ada.post(f"{path}/raise-fee", {}, status=409)
        assert refused["code"] == "FEE_NOT_RAISABLE"
    await merchant.completed(payout)


async def test_of_a_cancellation_and_a_payout_that_is_just_being_sent_one_succeeds(
    ada, merchant, network, usdx, onlooker, blocks, gateway
):
    before = await merchant.balance(usdx)
    payouts = []
    async with blocks.held():  # so that none has ended before it is found
        for number in range(6):
            payout = await merchant.pay_out(usdx, 1, network.stranger())
            intent = await intent_of(ada, merchant, payout)
            await asyncio.sleep(number * 0.12)  # from before it was looked at to after it was sent
            payouts.append((payout, await ada.race(f"/api/admin/outbound/{intent['intentId']}/cancel")))
    arrived = 0
    for payout, refusal in payouts:
        done = await ended(merchant, payout)
        assert (done["status"] == "cancelled") is (refusal is None), (done, refusal)
        assert refusal in {None, "ALREADY_SENT"}
        arrived += done["status"] == "completed"
        assert await onlooker.holds(payout["toAddress"], usdx, int(done["status"] == "completed"))
    left = int(before["available"]) - arrived
    assert await merchant.balance(usdx) == {"available": str(left)}
    await gateway.reconcile()


async def test_what_had_nobody_to_hear_it_is_sent_once_there_is_somebody(ada, merchant, receiver):
    receiver.secret = merchant.project["webhookSecret"]
    since = datetime.fromtimestamp(0, UTC).isoformat()
    path = f"/api/merchant/projects/{merchant.project['projectId']}"
    await merchant.enrol()
    await merchant.patch(path, {"paymentWebhookUrl": receiver.url}, headers=merchant.bearer)
    asked = {"since": since, "merchantId": merchant.merchant_id}
    job = (await ada.post("/api/admin/webhooks/redeliver", asked))["job"]
    told = await ada.until(f"/api/admin/jobs/{job['jobId']}", lambda told: told["job"]["state"] == "succeeded")
    queued = told["job"]["result"]["queued"]
    await receiver.until(lambda: len(receiver.events_by_id()) >= queued > 0)
    events = [event["event"] for event in receiver.events_by_id().values()]
    assert events.count("payment.paid") == 1
    payouts = (await merchant.get("/api/merchant/wallet/payouts?status=completed&limit=100"))["payouts"]
    assert events.count("payout.completed") == len(payouts) > 0


async def test_a_suspended_merchant_sends_nothing_and_loses_nothing(
    ada, merchant, customer, network, usdx, onlooker, gateway
):
    before = int((await merchant.balance(usdx))["available"])
    payment = await merchant.pay(usdx, 4)
    here = f"/api/admin/merchants/{merchant.merchant_id}"
    why = await pause_sending(ada, gateway, network.chain, "until the merchant is suspended")
    payout = await merchant.pay_out(usdx, 1, network.stranger())
    waiting = f"/api/admin/outbound/{(await intent_of(ada, merchant, payout))['intentId']}"
    await ada.until(waiting, lambda told: told["outbound"]["waitsFor"]["code"] == "paused")
    await ada.post(f"{here}/suspend", {"reason": "what it sells is not allowed here"})
    await ada.post(f"/api/admin/chains/{network.chain}/resume", why)
    await ada.until(waiting, lambda told: told["outbound"]["waitsFor"]["code"] == "merchant_suspended")

    async def shut_out() -> bool:
        async with merchant.session.get(
            f"{merchant.url}/api/merchant/wallet/balance", headers=merchant.headers
        ) as response:
            return response.status == 403 and (await response.json())["code"] == "MERCHANT_SUSPENDED"

    await until(shut_out)
    gone = await merchant.get("/api/merchant/projects", status=401, headers=merchant.bearer)
    assert gone["code"] == "SESSION_ENDED"
    # Who has not paid yet is told to send nothing; who has paid all the same sees that it came.
    checkout = f"/api/payment/public/{payment['publicId']}"
    assert (await merchant.get(checkout, status=403))["code"] == "MERCHANT_SUSPENDED"
    await customer.pay(payment["depositAddress"], usdx, 4)
    path = f"/api/admin/payments/{payment['paymentId']}"
    await ada.until(path, lambda told: told["payment"]["status"] == "paid")
    assert (await merchant.get(checkout))["payment"]["status"] == "paid"
    assert await onlooker.holds(payout["toAddress"], usdx, 0)
    await ada.post(f"{here}/reinstate", {})
    gone = await merchant.get("/api/merchant/projects", status=401, headers=merchant.bearer)
    assert gone["code"] == "SESSION_ENDED", "it was ended for good"
    assert await until(lambda: _available(merchant, usdx)) == before + 4 - 1
    await merchant.completed(payout)
    assert await onlooker.holds(payout["toAddress"], usdx, 1)
    await gateway.reconcile()


async def _available(merchant, coin) -> int | None:
    path = f"/api/merchant/wallet/balance?chain={coin.chain}&token={coin.symbol}"
    async with merchant.session.get(merchant.url + path, headers=merchant.headers) as response:
        return int((await response.json())["balance"]["available"]) if response.status == 200 else None


async def test_books_and_chains_agree_in_the_evening_and_the_log_names_who_did_what(ada, merchant, network):
    run = (await ada.post("/api/admin/reconcile", {"chains": [network.chain]}))["run"]
    told = await ada.until(f"/api/admin/reconcile/{run['jobId']}", lambda told: told["run"]["agrees"] is not None)
    assert told["run"]["agrees"] is True
    differences = await ada.get(f"/api/admin/reconcile/{run['jobId']}/differences")
    assert (differences["differences"], differences["total"]) == ([], 0)
    entries = (await ada.get(f"/api/admin/audit?actor={ada.operator_id}&limit=100"))["entries"]
    acts = {one["action"] for one in entries}
    assert acts >= {
        "two_factor.enabled", "session.stepped_up", "live.taken_back", "live.granted", "chain.paused", "chain.resumed",
        "cancel.asked", "job.asked", "merchant.suspended", "merchant.reinstated",
    }  # fmt: skip
    assert ("outbound.fee_raise_asked" in acts) is (network.family == "evm")
    assert {one["merchantId"] for one in entries if one["action"] == "merchant.suspended"} == {merchant.merchant_id}
    # The whole day, with every act of it, is what it was.
    job = (await ada.post("/api/admin/audit/verify", {}))["job"]
    await ada.until(f"/api/admin/jobs/{job['jobId']}", lambda told: told["job"]["state"] == "succeeded")
    found = (await ada.get("/api/admin/audit?action=merchant.suspended"))["verification"]
    assert (found["jobId"], found["agrees"], found["problems"]) == (job["jobId"], True, [])
    assert found["entries"] + found["waiting"] >= len(entries)
