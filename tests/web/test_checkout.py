"""The customer's pages over HTTP: what they show in each state, what they refuse, and what they leak."""

import re
from datetime import timedelta

import pytest

ONE = 1_000_000


async def text_of(checkout_client, path):
    """Return the page as its reader sees it, without markup."""
    response = await checkout_client.get(path)
    assert response.status_code == 200, response.text
    return " ".join(re.sub(r"<[^>]*>", " ", response.text).split())


async def test_a_new_payment_shows_amount_address_network_and_the_time_that_is_left(checkout_client, checkout_env):
    public_id, address = await checkout_env.payment(12_500_000, order_id="A-17")
    html = (await checkout_client.get(f"/pay/{public_id}")).text
    text = await text_of(checkout_client, f"/pay/{public_id}")
    assert "Amount to send 12.5 USDX" in text
    assert address in re.sub(r"</?b>", "", html)
    assert "Send only USDX on Memory (memory)." in text
    assert "Time left 1:00:00 until 13:00 UTC" in text
    assert "Order A-17" in text
    assert 'role="img" aria-label="QR code"' in html


async def test_a_part_payment_asks_for_the_rest(checkout_client, checkout_env):
    public_id, address = await checkout_env.payment(10 * ONE)
    await checkout_env.send(address, 2_500_000)
    text = await text_of(checkout_client, f"/pay/{public_id}")
    assert "Amount still to send 7.5 USDX" in text
    assert "2.5 of 10 USDX received, send 7.5 USDX more." in text


async def test_the_page_follows_the_payment_to_its_end(checkout_client, checkout_env):
    public_id, address = await checkout_env.payment(10 * ONE)
    await checkout_env.send(address, 10 * ONE)
    assert "Payment detected" in await text_of(checkout_client, f"/pay/{public_id}")
    await checkout_env.mine()
    assert "Confirming on Memory (memory) 1 of 3" in await text_of(checkout_client, f"/pay/{public_id}")
    await checkout_env.mine(2)
    text = await text_of(checkout_client, f"/pay/{public_id}")
    assert "Payment complete" in text
    assert "View receipt" in text
    assert address not in text.split("Payment details")[0]


async def test_only_a_page_that_can_change_refreshes_itself_and_only_without_scripts(checkout_client, checkout_env):
    public_id, address = await checkout_env.payment(10 * ONE)
    waiting = (await checkout_client.get(f"/pay/{public_id}")).text
    assert '<noscript><meta http-equiv="refresh" content="10"></noscript>' in waiting
    await checkout_env.send(address, 10 * ONE, blocks=4)
    assert 'http-equiv="refresh"' not in (await checkout_client.get(f"/pay/{public_id}")).text


async def test_nothing_is_asked_for_once_the_time_is_up(checkout_client, checkout_env, clock):
    public_id, address = await checkout_env.payment(10 * ONE)
    clock.advance(3600)
    text = await text_of(checkout_client, f"/pay/{public_id}")
    assert "Time is up" in text
    assert "Amount to send" not in text
    await checkout_env.mine()
    text = await text_of(checkout_client, f"/pay/{public_id}")
    assert "This payment has expired" in text
    assert "No transfer arrived in time." in text
    assert address not in text.split("Payment details")[0]


async def test_what_arrived_before_expiry_is_named(checkout_client, checkout_env, clock):
    public_id, address = await checkout_env.payment(10 * ONE)
    await checkout_env.send(address, 4 * ONE)
    clock.advance(3601)
    await checkout_env.mine()
    assert "4 of 10 USDX arrived before the time ran out." in await text_of(checkout_client, f"/pay/{public_id}")
    await checkout_env.mine(3)
    text = await text_of(checkout_client, f"/pay/{public_id}")
    assert "Only a part arrived" in text
    assert "4 of 10 USDX arrived before the time ran out." in text


async def test_what_arrived_after_expiry_is_not_said_to_have_come_in_time(checkout_client, checkout_env, clock):
    public_id, address = await checkout_env.payment(10 * ONE)
    await checkout_env.change(public_id, "grace_s", 0)
    clock.advance(3601)
    await checkout_env.mine()
    await checkout_env.send(address, 10 * ONE)
    text = await text_of(checkout_client, f"/pay/{public_id}")
    assert "This payment has expired 10 of 10 USDX arrived after the time had run out. The money is safe" in text
    assert "Payment detected , done 10 USDX It came too late" in text
    for wrong in ("before the time ran out", "0 USDX missing", "Part of the payment"):
        assert wrong not in text


async def test_what_arrived_after_expiry_makes_no_part_that_came_before_whole(checkout_client, checkout_env, clock):
    public_id, address = await checkout_env.payment(10 * ONE)
    await checkout_env.change(public_id, "grace_s", 0)
    await checkout_env.send(address, 4 * ONE)
    clock.advance(3601)
    await checkout_env.send(address, 6 * ONE, blocks=4)
    text = await text_of(checkout_client, f"/pay/{public_id}")
    assert "Only a part arrived in time" in text
    assert "10 of 10 USDX arrived, but not all of it before the time ran out." in text


async def test_an_excess_is_said_to_be_held(checkout_client, checkout_env):
    public_id, address = await checkout_env.payment(10 * ONE)
    await checkout_env.send(address, 12 * ONE, blocks=4)
    assert "You sent 2 USDX more than needed." in await text_of(checkout_client, f"/pay/{public_id}")


async def test_a_transfer_of_another_token_is_shown_and_does_not_count(checkout_client, checkout_env):
    public_id, address = await checkout_env.payment(10 * ONE)
    await checkout_env.send(address, 10**18, symbol="DAIX")
    text = await text_of(checkout_client, f"/pay/{public_id}")
    assert "Amount to send 10 USDX" in text
    assert "1 DAIX" in text
    assert "does not count: please contact Shop." in text


async def test_a_receipt_exists_once_the_order_has_ended(checkout_client, checkout_env):
    public_id, address = await checkout_env.payment(10 * ONE, order_id="A-17")
    early = await checkout_client.get(f"/receipt/{public_id}", follow_redirects=False)
    assert early.status_code == 303
    assert early.headers["location"] == f"/pay/{public_id}"
    tx_id = await checkout_env.send(address, 10 * ONE, blocks=4)
    html = (await checkout_client.get(f"/receipt/{public_id}")).text
    text = await text_of(checkout_client, f"/receipt/{public_id}")
    assert "Received 10 USDX Asked for 10 USDX" in text
    assert "Order A-17" in text
    assert tx_id in html


async def test_the_way_back_carries_what_became_of_the_payment(checkout_client, checkout_env):
    public_id, address = await checkout_env.payment(
        10 * ONE,
        order_id="A 17&x",
        success_url="https://shop.example/ok?lang=de#top",
        cancel_url="https://shop.example/",
    )
    waiting = (await checkout_client.get(f"/pay/{public_id}")).text
    assert "reason=cancelled_by_customer" in waiting
    assert "https://shop.example/ok" not in waiting
    await checkout_env.send(address, 10 * ONE, blocks=4)
    paid = (await checkout_client.get(f"/pay/{public_id}")).text
    assert (
        'href="https://shop.example/ok?lang=de&amp;paymentId=pay_0&amp;orderId=A+17%26x&amp;amount=10&amp;status=paid'
        '&amp;reason=completed#top"' in paid
    )
    assert "cancelled_by_customer" not in paid


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "data:text/html,x", "//shop.example", "https:", "http://[", "JAVASCRIPT://x%0aalert(1)"],
)
async def test_a_way_back_that_is_no_web_address_is_not_offered(checkout_client, checkout_env, url):
    public_id, _ = await checkout_env.payment(10 * ONE, cancel_url=url, success_url=url)
    html = (await checkout_client.get(f"/pay/{public_id}")).text
    assert "cancelled_by_customer" not in html
    assert "alert(1)" not in html


@pytest.mark.parametrize("public_id", ["pub_unknown", "pay_0", "%00", "%ff", "x" * 300, "a%2f..%2fb", "<script>"])
async def test_an_unknown_link_gets_a_page_that_says_so(checkout_client, checkout_env, public_id):
    for path in (f"/pay/{public_id}", f"/receipt/{public_id}", f"/pay/{public_id}/events"):
        response = await checkout_client.get(path)
        assert response.status_code == 404, path
        assert "default-src 'none'" in response.headers.get("content-security-policy", "default-src 'none'")
        assert "<script>" not in response.text.replace("<script defer", "")


async def test_texts_of_merchants_stay_texts(checkout_client, checkout_env):
    hostile = "\"'><img src=x onerror=alert(1)><script>alert(2)</script>{{7*7}}"
    await checkout_env.rename(hostile)
    public_id, address = await checkout_env.payment(
        10 * ONE, order_id=hostile, cancel_url=f"https://shop.example/?q={hostile}"
    )
    for path in (f"/pay/{public_id}", f"/pay/{public_id}?q={hostile}"):
        html = (await checkout_client.get(path)).text
        assert "<img" not in html
        assert "<script>" not in html
        assert "{{7*7}}" in html
    await checkout_env.send(address, 10 * ONE, blocks=4)
    assert "<img" not in (await checkout_client.get(f"/receipt/{public_id}")).text


async def test_who_pays_is_nowhere_on_the_page(checkout_client, checkout_env):
    public_id, _ = await checkout_env.payment(
        10 * ONE, customer_name="Ada Example", customer_email="ada@mail.example", webhook_url="https://shop.example/h"
    )
    await checkout_env.change(public_id, "metadata", '{"secret": "basket"}')
    html = (await checkout_client.get(f"/pay/{public_id}")).text
    for private in ("Ada", "ada@mail", "basket", "shop.example"):
        assert private not in html


async def test_pages_run_nothing_inline_and_load_nothing_from_elsewhere(checkout_client, checkout_env):
    public_id, address = await checkout_env.payment(10 * ONE)
    pages = [(await checkout_client.get(f"/pay/{public_id}")).text]
    await checkout_env.send(address, 10 * ONE, blocks=4)
    pages += [
        (await checkout_client.get(f"/pay/{public_id}")).text,
        (await checkout_client.get(f"/receipt/{public_id}")).text,
    ]
    for html in pages:
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|<form|<iframe", html)
        loaded = re.findall(r'<(?:script|link|img)[^>]*\s(?:src|href)="([^"]*)"', html)
        assert loaded
        for source in loaded:
            assert source.startswith("/checkout-assets/")
            assert (await checkout_client.get(source)).status_code == 200


async def test_pages_are_not_kept_not_framed_and_do_not_tell_their_address(checkout_client, checkout_env):
    public_id, _ = await checkout_env.payment(10 * ONE)
    for path, status in ((f"/pay/{public_id}", 200), ("/pay/pub_unknown", 404)):
        response = await checkout_client.get(path)
        assert response.status_code == status
        policy = response.headers["content-security-policy"]
        for part in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"):
            assert part in policy
        assert "unsafe" not in policy
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert response.headers["x-content-type-options"] == "nosniff"


async def test_files_are_kept_for_ever_under_names_of_their_content(checkout_client, checkout_env):
    public_id, _ = await checkout_env.payment(10 * ONE)
    html = (await checkout_client.get(f"/pay/{public_id}")).text
    (script,) = re.findall(r'src="([^"]+)"', html)
    response = await checkout_client.get(script)
    assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert response.headers["content-type"].startswith("text/javascript")
    renamed = re.sub(r"\.[0-9a-f]{16}\.", ".0123456789abcdef.", script)
    assert (await checkout_client.get(renamed)).status_code == 404
    assert (await checkout_client.get("/checkout-assets/..%2froutes.py")).status_code == 404


async def test_a_sandbox_payment_asks_nobody_for_real_money(checkout_client, checkout_env):
    public_id, _ = await checkout_env.payment(10 * ONE, mode="sandbox")
    text = await text_of(checkout_client, f"/pay/{public_id}")
    assert "Test payment. Do not send real money." in text
    assert "Open in wallet" not in text


async def test_a_payment_of_a_chain_that_is_no_longer_run_still_has_its_page(checkout_client, checkout_env):
    public_id, address = await checkout_env.payment(10 * ONE, chain="retired")
    html = (await checkout_client.get(f"/pay/{public_id}")).text
    assert "on retired" in html
    assert address in re.sub(r"</?b>", "", html)


async def test_dust_does_not_make_the_page_endless(checkout_client, checkout_env):
    public_id, address = await checkout_env.payment(10 * ONE)
    for _ in range(25):
        checkout_env.chain.transfer(checkout_env.token(), address, 1)
    await checkout_env.mine()
    text = await text_of(checkout_client, f"/pay/{public_id}")
    assert text.count("0.000001 USDX") == 20
    assert "and 5 earlier" in text


async def test_fiat_and_its_locked_rate_are_shown(checkout_client, checkout_env):
    public_id, _ = await checkout_env.payment(10 * ONE)
    async with checkout_env.db.transaction() as conn:
        await conn.exec_driver_sql(
            "UPDATE payments SET pricing_mode = 'fiat', amount = 9.2, fiat_currency = 'eur', exchange_rate = 0.92"
            " WHERE public_id = $1",
            (public_id,),
        )
    text = await text_of(checkout_client, f"/pay/{public_id}")
    assert "9.20 EUR" in text
    assert "Exchange rate 1 USDX = 0.92 EUR" in text


async def test_an_expired_payment_is_watched_as_long_as_late_money_counts(checkout_env, clock):
    public_id, _ = await checkout_env.payment(10 * ONE)
    checkout = checkout_env.checkout()
    clock.advance(3600)
    await checkout_env.mine()
    assert (await checkout.view(public_id)).refresh_s == 60
    clock.advance(timedelta(days=1).total_seconds())
    assert (await checkout.view(public_id)).refresh_s is None
