"""The checkout fits every screen, in every state."""

import pytest
from playwright.async_api import expect

from cambist_web.checkout.pages import pages
from tests.browser.described import resize
from tests.support.checkout_samples import SAMPLES, view

PAGES = pages()


async def show(page, html):
    """Show a page as if it had been served, with its files and nothing else."""

    async def answer(route):
        name = route.request.url.rpartition("/")[2]
        asset = PAGES.assets.served(name)
        if asset is not None:
            await route.fulfill(body=asset.content, content_type=asset.media_type)
        elif name == "page":
            await route.fulfill(body=html, content_type="text/html")
        else:
            await route.abort()

    await page.route("**/*", answer)
    await page.goto("http://gateway.example/page")


async def too_wide(page) -> list[str]:
    """Return on which screens the page that is shown is wider than they are."""
    found = []
    for width in (320, 390, 768, 1280):
        await resize(page, {"width": width, "height": 800})
        wide = await page.evaluate("document.documentElement.scrollWidth")
        found += [f"{wide} wide on {width}"] if wide > width else []
    return found


async def test_no_state_is_wider_than_the_screen(open_page):
    page = await open_page()
    for name, payment in SAMPLES.items():
        await page.unroute_all()
        await show(page, PAGES.checkout(view(payment)))
        assert await too_wide(page) == [], name


async def test_what_is_needed_to_pay_is_on_a_desktops_first_screen(open_page):
    page = await open_page(viewport={"width": 1280, "height": 800})
    await show(page, PAGES.checkout(view(SAMPLES["pending"])))
    for selector in ("#amount", "#copy-amount", "#address", "#copy-address", ".qr svg", ".warning", "#clock"):
        await expect(page.locator(selector)).to_be_in_viewport(ratio=1)


async def test_the_amounts_label_stands_as_high_as_the_top_of_the_code_beside_it(open_page):
    page = await open_page(viewport={"width": 1280, "height": 800})
    await show(page, PAGES.checkout(view(SAMPLES["pending"])))
    label, code = [await page.locator(selector).bounding_box() for selector in ("h1.label", ".qr")]
    assert label["y"] == pytest.approx(code["y"], abs=1)


async def test_a_phone_shows_amount_and_address_before_any_scrolling(open_page):
    page = await open_page(viewport={"width": 390, "height": 664})
    await show(page, PAGES.checkout(view(SAMPLES["pending"])))
    for selector in ("#amount", "#copy-amount", "#address", "#copy-address"):
        await expect(page.locator(selector)).to_be_in_viewport(ratio=1)


async def test_touch_targets_are_large_enough(open_page):
    page = await open_page(viewport={"width": 390, "height": 664})
    await show(page, PAGES.checkout(view(SAMPLES["pending"])))
    for target in await page.locator("button:visible, a.button:visible").all():
        box = await target.bounding_box()
        assert box is not None
        assert box["height"] >= 44


async def test_the_keyboard_reaches_what_can_be_done_in_the_order_of_reading(open_page):
    page = await open_page()
    await show(page, PAGES.checkout(view(SAMPLES["pending"])))
    reached = []
    for _ in range(5):
        await page.keyboard.press("Tab")
        reached.append(await page.evaluate("document.activeElement.textContent.trim()"))
    assert reached == ["Copy the amount", "Copy the address", "Open in wallet", "Cancel and return", "Payment details"]


async def test_where_no_wallet_reads_a_link_none_is_offered_and_amount_and_address_can_be_copied(open_page):
    page = await open_page()
    await show(page, PAGES.checkout(view(SAMPLES["pending-tron"])))
    await expect(page.get_by_role("link", name="Open in wallet")).to_have_count(0)
    await expect(page.get_by_text("Scan the address, then enter the amount")).to_be_visible()
    await expect(page.get_by_text("Send only USDT on TRON (TRC-20).")).to_be_visible()
    for name in ("Copy the amount", "Copy the address"):
        await expect(page.get_by_role("button", name=name)).to_be_visible()


async def test_the_ends_of_an_address_which_people_compare_are_never_broken(open_page):
    page = await open_page()
    await show(page, PAGES.checkout(view(SAMPLES["pending-tron"])))
    for width in (320, 390, 1100):
        await resize(page, {"width": width, "height": 800})
        lines = await page.locator("#address b").evaluate_all("ends => ends.map(end => end.getClientRects().length)")
        assert lines == [1, 1], width


async def test_who_wants_less_motion_gets_none(open_page):
    page = await open_page(reduced_motion="reduce")
    await show(page, PAGES.checkout(view(SAMPLES["confirming"])))
    assert await page.evaluate("document.getAnimations().length") == 0
