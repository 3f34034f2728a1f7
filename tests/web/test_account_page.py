"""An account's hosted page over HTTP: where to deposit, what came, and what it tells nobody."""

import re
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from cambist_web.checkout.streams import CheckoutOptions
from tests.support.account_rows import insert_deposit

ONE = 1_000_000


async def page_of(checkout_client, path):
    """Return the page as its reader sees it, and as it was sent."""
    response = await checkout_client.get(path)
    assert response.status_code == 200, response.text
    return " ".join(re.sub(r"<[^>]*>", " ", response.text).split()), response.text


async def change(env, statement, *arguments):
    async with env.db.transaction() as conn:
        await conn.exec_driver_sql(statement, arguments)


async def test_an_account_shows_its_address_its_code_and_what_is_taken(checkout_client, checkout_env):
    public_id, address = await checkout_env.account()
    text, html = await page_of(checkout_client, f"/account/{public_id}")
    assert address in re.sub(r"</?b>", "", html)
    assert 'role="img" aria-label="QR code"' in html
    assert "Your address on Memory (memory)" in text
    for token in checkout_env.chain.info.tokens:
        assert token.symbol in text
    assert "Anything else may be lost." in text
    assert "None yet." in text
    assert '<noscript><meta http-equiv="refresh" content="10"></noscript>' in html


async def test_a_page_says_nothing_of_who_the_end_user_is(checkout_client, checkout_env):
    public_id, _ = await checkout_env.account()
    _, html = await page_of(checkout_client, f"/account/{public_id}")
    for secret in ("carol", "acc_7", "a secret of the shop"):
        assert secret not in html


async def test_an_account_that_is_switched_off_shows_no_address_but_what_came(checkout_client, checkout_env, clock):
    public_id, address = await checkout_env.account()
    await insert_deposit(
        checkout_env.db, public_id, checkout_env.token(), 5 * ONE, height=1, mined_at=clock.now(), status="confirmed"
    )
    await change(checkout_env, "UPDATE accounts SET is_active = false")
    text, html = await page_of(checkout_client, f"/account/{public_id}")
    assert "No deposits at present" in text
    assert "Please do not send anything." in text
    assert address not in re.sub(r"</?b>", "", html)
    assert "<svg role" not in html
    assert "5 USDX" in text


async def test_the_account_of_a_project_that_is_switched_off_takes_nothing(checkout_client, checkout_env):
    public_id, address = await checkout_env.account()
    await change(checkout_env, "UPDATE projects SET is_active = false")
    text, html = await page_of(checkout_client, f"/account/{public_id}")
    assert "No deposits at present" in text
    assert address not in re.sub(r"</?b>", "", html)


async def test_deposits_are_shown_newest_first_each_with_how_far_it_is(checkout_client, checkout_env, clock):
    public_id, _ = await checkout_env.account()
    await checkout_env.mine(2)
    async with checkout_env.chain.view() as chain:
        height = (await chain.head()).height
    common = {"mined_at": clock.now() - timedelta(days=1)}
    token = checkout_env.token()
    deposits = {
        "1 USDX": {"tx_id": "tx1", "status": "confirmed", "height": 1},
        "2 USDX": {"tx_id": "tx2", "status": "orphaned", "height": 1},
        "3 USDX": {"tx_id": "tx3", "status": "confirmed", "height": 1, "matches": False},
        "4 USDX": {"tx_id": "tx4", "height": height - 1},
    }
    for number, more in enumerate(deposits.values(), start=1):
        await insert_deposit(checkout_env.db, public_id, token, number * ONE, **common, **more)
    text, _ = await page_of(checkout_client, f"/account/{public_id}")
    assert [text.index(amount) for amount in deposits] == sorted((text.index(one) for one in deposits), reverse=True)
    assert "4 USDX tx4 1 of 3 confirmations · Memory (memory)" in text
    assert "3 USDX tx3 held: please contact Shop" in text
    assert "2 USDX tx2 taken back by the network" in text
    assert "1 USDX tx1 confirmed" in text
    await change(checkout_env, "UPDATE deposits SET resolution = 'accepted' WHERE tx_id = 'tx3'")
    text, _ = await page_of(checkout_client, f"/account/{public_id}")
    assert "3 USDX tx3 confirmed" in text


async def test_a_long_history_is_cut_and_says_so(checkout_client, checkout_env, clock):
    public_id, _ = await checkout_env.account()
    for number in range(21):
        await insert_deposit(
            checkout_env.db, public_id, checkout_env.token(), ONE, height=1, mined_at=clock.now(), tx_id=f"tx{number}"
        )
    text, html = await page_of(checkout_client, f"/account/{public_id}")
    assert html.count('class="deposit"') == 20
    assert "tx0 " not in text
    assert "and earlier ones" in text


async def test_one_of_several_networks_is_chosen_without_scripts(checkout_client, checkout_env):
    public_id, address = await checkout_env.account(["memory", "atlantis"])
    text, html = await page_of(checkout_client, f"/account/{public_id}")
    assert "Choose the network that you send on" in text
    assert 'href="?chain=atlantis"' in html
    assert "The same address on Memory (memory) and atlantis." in text
    # The second one is not connected: its address is not shown, and nothing may be sent there.
    text, html = await page_of(checkout_client, f"/account/{public_id}?chain=atlantis")
    assert "atlantis is not connected at present." in text
    assert address not in re.sub(r"</?b>", "", html)
    # Whatever else is asked for is the first one.
    text, _ = await page_of(checkout_client, f"/account/{public_id}?chain=nowhere")
    assert "Your address on Memory (memory)" in text


async def test_a_chain_that_cannot_be_followed_is_told(checkout_client, checkout_env, clock):
    public_id, address = await checkout_env.account()
    clock.advance(121)
    text, html = await page_of(checkout_client, f"/account/{public_id}")
    assert "Memory (memory) cannot be followed at present. What you send is safe, and is shown here later." in text
    assert address in re.sub(r"</?b>", "", html)
    await checkout_env.mine()
    text, _ = await page_of(checkout_client, f"/account/{public_id}")
    assert "cannot be followed" not in text


async def test_the_least_amount_that_counts_is_told(checkout_client, checkout_env):
    public_id, _ = await checkout_env.account()
    await change(
        checkout_env,
        "INSERT INTO coin_settings (merchant_pk, mode, chain, symbol, min_deposit, updated_at)"
        " VALUES ($1, 'live', 'memory', 'USDX', 2500000, now())",
        checkout_env.shop.merchant,
    )
    text, _ = await page_of(checkout_client, f"/account/{public_id}")
    assert "USDX at least 2.5" in text


CHANGES = {
    "another address": "UPDATE addresses SET address = 'mem1thief' WHERE purpose = 'account'",
    "another end user": "UPDATE accounts SET external_id = 'eve'",
    "another link": "UPDATE account_chains SET account_pk = (SELECT id FROM accounts WHERE public_id = 'pub_a7')"
    " WHERE account_pk = (SELECT id FROM accounts WHERE public_id = 'pub_a8')",
    "another chain": "UPDATE account_chains SET chain = 'atlantis'",
    "no proof": "UPDATE account_chains SET address_mac = ''",
}


@pytest.mark.parametrize("name", CHANGES)
async def test_no_page_shows_an_address_whose_proof_does_not_hold(checkout_client, checkout_env, name):
    public_id, address = await checkout_env.account()
    if name == "another link":
        await change(checkout_env, "DELETE FROM account_chains")
        await checkout_env.account(name="8")
    await change(checkout_env, CHANGES[name])
    with capture_logs() as logs:
        answer = await checkout_client.get(f"/account/{public_id}")
        events = await checkout_client.get(f"/account/{public_id}/events")
    assert (answer.status_code, events.status_code) == (404, 404)
    assert address not in re.sub(r"</?b>", "", answer.text)
    assert "thief" not in answer.text
    assert any(log["event"].startswith("ADDRESS NOT VERIFIED") for log in logs)


@pytest.mark.parametrize("public_id", ["pub_none", "%00", "%ff", "a" * 100, "pub_0"])
async def test_an_unknown_link_gets_a_page_that_says_so(checkout_client, checkout_env, public_id):
    await checkout_env.payment(ONE)  # pub_0, whose page is elsewhere
    answer = await checkout_client.get(f"/account/{public_id}")
    assert answer.status_code == 404
    assert "No such page" in answer.text
    assert (await checkout_client.get(f"/account/{public_id}/events")).status_code == 404


async def test_pages_are_as_strict_as_the_checkout(checkout_client, checkout_env):
    public_id, _ = await checkout_env.account()
    mine = (await checkout_client.get(f"/account/{public_id}")).headers
    await checkout_env.payment(ONE)
    checkout = (await checkout_client.get("/pay/pub_0")).headers
    for name in ("content-security-policy", "cache-control", "referrer-policy", "x-frame-options", "x-robots-tag"):
        assert mine[name] == checkout[name]


async def test_texts_of_merchants_stay_texts(checkout_client, checkout_env):
    public_id, _ = await checkout_env.account()
    await checkout_env.rename("<script>alert(1)</script>")
    _, html = await page_of(checkout_client, f"/account/{public_id}")
    assert "<script>alert" not in html


async def test_an_open_page_is_told_what_comes_at_once(checkout_env, clock):
    public_id, _ = await checkout_env.account()
    events = checkout_env.checkout(CheckoutOptions(poll_open_s=60)).account_events(public_id, "memory")
    first = await anext(events)
    assert b"event: card" in first
    assert b"None yet." in first
    await insert_deposit(checkout_env.db, public_id, checkout_env.token(), 5 * ONE, height=1, mined_at=clock.now())
    await checkout_env.hints.publish(f"account:{public_id}")
    assert b"5 USDX" in await anext(events)
    await events.aclose()


async def test_streams_of_one_account_are_bounded(checkout_env):
    public_id, _ = await checkout_env.account()
    checkout = checkout_env.checkout(CheckoutOptions(poll_open_s=60, streams_per_payment_max=1))
    events = checkout.account_events(public_id, None)
    await anext(events)
    assert not checkout.has_account_room(public_id)
    assert b"retry" in await anext(checkout.account_events(public_id, None))
    await events.aclose()
    assert checkout.streams == 0
