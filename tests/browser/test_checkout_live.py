"""The checkout as customers use it: copying, waiting, paying, going back to the shop; with scripts and without."""

import asyncio
import re
from decimal import Decimal

from playwright.async_api import expect

from cambist_web.checkout.streams import CheckoutOptions
from tests.support.checkout import checkout_app, serving

ONE = 1_000_000


def shop_answers(page):
    """Let the shop's pages, which are nowhere, answer."""
    return page.route("https://shop.example/**", lambda route: route.fulfill(body="<h1>Thank you</h1>"))


async def test_amount_and_address_are_copied_by_a_click(checkout_env, url, open_page):
    public_id, address = await checkout_env.payment(12_500_000)
    page = await open_page(permissions=["clipboard-read", "clipboard-write"])
    await page.goto(f"{url}/pay/{public_id}")
    await page.get_by_role("button", name="Copy the amount").click()
    await expect(page.locator("#copy-amount")).to_contain_text("Copied")
    assert await page.evaluate("navigator.clipboard.readText()") == "12.5"
    await page.get_by_role("button", name="Copy the address").click()
    await expect(page.get_by_role("status")).to_have_text("Copied address")
    assert await page.evaluate("navigator.clipboard.readText()") == address


async def test_without_a_clipboard_the_text_is_copied_as_a_selection(checkout_env, url, open_page):
    public_id, address = await checkout_env.payment(12_500_000)
    page = await open_page()
    await page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    await page.goto(f"{url}/pay/{public_id}")
    await page.get_by_role("button", name="Copy the address").click()
    assert await page.evaluate("getSelection().toString()") == address


async def test_an_open_page_follows_the_payment_without_being_loaded_again(checkout_env, url, open_page):
    public_id, address = await checkout_env.payment(10 * ONE)
    page = await open_page()
    await page.goto(f"{url}/pay/{public_id}")
    await page.evaluate("window.sameDocument = true")
    before = await page.locator(".qr path").last.get_attribute("d")
    await page.locator("#copy-amount").focus()

    await checkout_env.send(address, 2_500_000)
    await expect(page.locator("#amount")).to_have_text("7.5")
    await expect(page.get_by_text("2.5 of 10 USDX received, send 7.5 USDX more.").last).to_be_visible()
    assert await page.locator(".qr path").last.get_attribute("d") != before
    assert await page.evaluate("document.activeElement.id") == "copy-amount"

    await checkout_env.send(address, 7_500_000)
    await expect(page.get_by_role("heading", name="Payment detected")).to_be_visible()
    await checkout_env.mine()
    await expect(page.locator(".step[data-state=now]")).to_contain_text("1 of 3")
    await checkout_env.mine(2)
    await expect(page.get_by_role("heading", name="Payment complete")).to_be_visible()
    await expect(page.get_by_role("status")).to_contain_text("Payment complete")
    await expect(page).to_have_title(re.compile("Payment complete"))
    await expect(page.locator("#address")).to_have_count(0)
    assert await page.evaluate("window.sameDocument")


async def test_an_open_page_follows_what_stands_in_its_details_which_stay_open(checkout_env, url, open_page):
    public_id, _ = await checkout_env.payment(10 * ONE)
    async with checkout_env.db.transaction() as conn:
        await conn.exec_driver_sql(
            "UPDATE payments SET pricing_mode = 'fiat', amount = 9.2, fiat_currency = 'eur', exchange_rate = 0.92"
        )
    page = await open_page()
    await page.goto(f"{url}/pay/{public_id}")
    await page.get_by_text("Payment details").click()
    details = page.locator(".details")
    await expect(details).to_contain_text("1 USDX = 0.92 EUR")
    # As where an expired payment gets a new rate.
    await checkout_env.change(public_id, "exchange_rate", Decimal("0.95"))
    await expect(details).to_contain_text("1 USDX = 0.95 EUR")
    await expect(details.get_by_text("Exchange rate")).to_be_visible()


async def test_a_page_that_finds_no_room_for_a_stream_follows_all_the_same(checkout_env, open_page):
    public_id, address = await checkout_env.payment(10 * ONE)
    async with serving(checkout_app(checkout_env.checkout(CheckoutOptions(streams_max=0)))) as url:
        page = await open_page()
        await page.clock.install()
        await page.goto(f"{url}/pay/{public_id}")
        async with page.expect_response(lambda response: response.url.endswith("/events")) as refused:
            pass
        assert (await refused.value).status == 503
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        async with page.expect_response(lambda response: response.url.endswith("/events")):
            await page.clock.fast_forward(11_000)
        # A server without room for streams is not asked twice as often for pages.
        assert asked.count(f"{url}/pay/{public_id}") == 1
        await checkout_env.send(address, 10 * ONE, blocks=4)
        await page.clock.fast_forward(11_000)
        await expect(page.get_by_role("heading", name="Payment complete")).to_be_visible()


async def test_a_page_whose_stream_says_nothing_follows_all_the_same(checkout_env, url, open_page):
    public_id, address = await checkout_env.payment(10 * ONE)
    page = await open_page()
    await page.clock.install()
    # As behind a proxy that keeps a stream until it ends.
    await page.route("**/events", lambda _: None)
    await page.goto(f"{url}/pay/{public_id}")
    await checkout_env.send(address, 10 * ONE, blocks=4)
    await page.clock.run_for(41_000)
    await expect(page.get_by_role("heading", name="Payment complete")).to_be_visible()


async def test_a_slow_answer_takes_nothing_back_that_the_page_was_told_meanwhile(checkout_env, url, open_page):
    public_id, address = await checkout_env.payment(10 * ONE)
    page = await open_page()
    await page.goto(f"{url}/pay/{public_id}")
    is_asked, may_answer, is_answered = (asyncio.Event() for _ in range(3))

    async def slowly(route):
        before = await route.fetch()
        is_asked.set()
        await may_answer.wait()
        await route.fulfill(response=before)
        is_answered.set()

    await page.route(f"{url}/pay/{public_id}", slowly)
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await is_asked.wait()
    await checkout_env.send(address, 10 * ONE, blocks=4)
    await expect(page.get_by_role("heading", name="Payment complete")).to_be_visible()
    async with page.expect_event("requestfinished", lambda request: request.url.endswith(public_id)):
        may_answer.set()
        await is_answered.wait()
    await page.wait_for_timeout(200)
    await expect(page.get_by_role("heading", name="Payment complete")).to_be_visible()
    await expect(page.locator("#address")).to_have_count(0)


async def test_once_paid_the_customer_is_taken_back_to_the_shop(checkout_env, url, open_page):
    public_id, address = await checkout_env.payment(10 * ONE, success_url="https://shop.example/ok?lang=de")
    page = await open_page()
    await shop_answers(page)
    await page.clock.install()
    await page.goto(f"{url}/pay/{public_id}")
    await checkout_env.send(address, 10 * ONE, blocks=4)
    await expect(page.get_by_text("Taking you there in 8 seconds")).to_be_visible()
    await page.clock.run_for(9_000)
    await page.wait_for_url(
        "https://shop.example/ok?lang=de&paymentId=pay_0&orderId=&amount=10&status=paid&reason=completed"
    )
    await page.goto(f"{url}/pay/{public_id}")
    await expect(page.get_by_role("link", name="Return to Shop")).to_be_visible()
    await expect(page.locator("#auto")).to_be_hidden()


async def test_the_customer_may_stay(checkout_env, url, open_page):
    public_id, address = await checkout_env.payment(10 * ONE, success_url="https://shop.example/ok")
    await checkout_env.send(address, 10 * ONE, blocks=4)
    page = await open_page()
    await shop_answers(page)
    await page.clock.install()
    await page.goto(f"{url}/pay/{public_id}")
    await page.get_by_role("button", name="Stay here").click()
    await page.clock.run_for(30_000)
    assert page.url == f"{url}/pay/{public_id}"


async def test_the_countdown_runs_by_the_servers_clock(checkout_env, url, open_page):
    public_id, _ = await checkout_env.payment(10 * ONE)
    page = await open_page()
    # The customer's clock is years off, which must not show.
    await page.clock.install(time="2031-06-01T00:00:00Z")
    # The server's clock stands still here, and the stream would tell the page so.
    await page.route("**/events", lambda route: route.abort())
    await page.goto(f"{url}/pay/{public_id}")
    await page.route(f"{url}/pay/*", lambda route: route.abort())
    await expect(page.get_by_role("timer")).to_have_text(re.compile("1:00:00|59:5[5-9]"))
    await page.clock.fast_forward(56 * 60_000)
    await expect(page.get_by_role("timer")).to_have_text(re.compile("03:5[0-9]|04:00"))
    await expect(page.locator(".clock[data-soon]")).to_be_visible()


async def test_without_scripts_everything_is_there_and_the_page_refreshes_itself(checkout_env, url, open_page):
    public_id, address = await checkout_env.payment(12_500_000, cancel_url="https://shop.example/cart")
    page = await open_page(java_script_enabled=False)
    await page.goto(f"{url}/pay/{public_id}")
    await expect(page.locator("#amount")).to_have_text("12.5")
    await expect(page.locator("#address")).to_have_text(address)
    await expect(page.locator(".qr svg")).to_be_visible()
    await expect(page.get_by_role("link", name="Cancel and return")).to_be_visible()
    await expect(page.get_by_role("button")).to_have_count(0)
    await checkout_env.send(address, 12_500_000, blocks=4)
    await expect(page.get_by_role("heading", name="Payment complete")).to_be_visible(timeout=14_000)


async def test_hostile_texts_run_nothing(checkout_env, url, open_page):
    hostile = "\"'></p><img src=x onerror=alert(1)><script>alert(2)</script>"
    await checkout_env.rename(hostile)
    public_id, address = await checkout_env.payment(
        10 * ONE, order_id=hostile, cancel_url=f"https://shop.example/?q={hostile}"
    )
    page = await open_page()
    await page.goto(f"{url}/pay/{public_id}?paymentId={hostile}#{hostile}")
    await expect(page.get_by_text(f"Order {hostile}")).to_be_visible()
    await checkout_env.send(address, 10 * ONE, blocks=4)
    await expect(page.get_by_role("heading", name="Payment complete")).to_be_visible()
    await page.goto(f"{url}/receipt/{public_id}")
    await expect(page.get_by_text(hostile).first).to_be_visible()
    assert await page.locator("img").count() == 0


async def test_the_policy_stops_what_escaping_would_have_let_through(checkout_env, url, chromium):
    public_id, _ = await checkout_env.payment(10 * ONE)
    context = await chromium.new_context()
    page = await context.new_page()
    await page.goto(f"{url}/pay/{public_id}")
    await page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.broken = true\">');"
        "const s = document.createElement('script'); s.textContent = 'window.broken = true'; document.body.append(s);"
    )
    await page.wait_for_timeout(200)
    assert await page.evaluate("window.broken") is None
    await context.close()


async def test_receipt_and_unknown_links_keep_the_policy_too(checkout_env, url, open_page):
    public_id, address = await checkout_env.payment(10 * ONE)
    await checkout_env.send(address, 10 * ONE, blocks=4)
    page = await open_page()
    await page.goto(f"{url}/receipt/{public_id}")
    await expect(page.get_by_role("heading", name="10 USDX")).to_be_visible()
    await expect(page.get_by_role("button", name="Print")).to_be_visible()
    assert await page.evaluate("window.breaches") == []
    await page.goto(f"{url}/pay/pub_unknown")
    await expect(page.get_by_role("heading", name="No such payment")).to_be_visible()


async def test_a_page_that_nobody_answers_says_that_it_is_out_of_date_and_goes_on_by_itself(
    checkout_env, url, open_page
):
    public_id, address = await checkout_env.payment(10 * ONE)
    page = await open_page()
    await page.clock.install()
    # So that no first card of a stream comes in between.
    await page.route("**/events", lambda route: route.abort())
    await page.goto(f"{url}/pay/{public_id}")
    await expect(page.locator("#amount")).to_have_text("10")
    away = page.locator("#away")

    await page.route(f"{url}/pay/**", lambda route: route.abort())
    async with page.expect_event("requestfailed"):
        await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    # A moment without a network is nothing to tell.
    await expect(away).to_be_hidden()
    await expect(away).to_be_visible()
    await expect(page.get_by_role("status")).to_contain_text("please wait for the page before you send")

    await page.unroute_all()
    await page.clock.fast_forward(11_000)
    await expect(away).to_be_hidden()
    await expect(page.get_by_role("status")).to_have_text("This page is up to date again.")
    await checkout_env.send(address, 10 * ONE, blocks=4)
    await expect(page.get_by_role("heading", name="Payment complete")).to_be_visible()


async def test_nothing_is_asked_for_once_the_time_is_up_also_where_nobody_says_so(checkout_env, url, open_page):
    public_id, _ = await checkout_env.payment(10 * ONE)
    page = await open_page()
    await page.clock.install()
    await page.route("**/events", lambda route: route.abort())
    await page.goto(f"{url}/pay/{public_id}")
    await page.route(f"{url}/pay/*", lambda route: route.abort())
    await expect(page.locator("#address")).to_be_visible()
    await page.clock.fast_forward(61 * 60_000)
    await expect(page.locator("#over")).to_contain_text("please do not send it now")
    await expect(page.locator("#over")).to_be_visible()
    await expect(page.locator("#address")).to_be_hidden()
    await expect(page.locator(".qr")).to_be_hidden()
    await expect(page.get_by_role("button", name="Copy the amount")).to_be_hidden()
