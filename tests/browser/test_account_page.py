"""An account's page in a browser: it fits every screen, follows what comes, and can be used without scripts."""

import pytest
from playwright.async_api import expect

from tests.browser.test_checkout_layout import PAGES, show, too_wide
from tests.support.account_rows import insert_deposit
from tests.support.account_samples import SAMPLES

ONE = 1_000_000


async def test_no_state_is_wider_than_the_screen(open_page):
    page = await open_page()
    for name, sample in SAMPLES.items():
        await page.unroute_all()
        await show(page, PAGES.account(sample))
        assert await too_wide(page) == [], name


async def test_all_that_is_needed_to_deposit_is_on_a_desktops_first_screen(open_page):
    page = await open_page(viewport={"width": 1280, "height": 800})
    await show(page, PAGES.account(SAMPLES["used"]))
    for selector in (".tabs", ".coins", "#address", "#copy-address", ".qr svg", ".warning"):
        await expect(page.locator(selector)).to_be_in_viewport(ratio=1)


async def test_touch_targets_are_large_enough(open_page):
    page = await open_page(viewport={"width": 390, "height": 664})
    await show(page, PAGES.account(SAMPLES["used"]))
    for target in await page.locator("button:visible, a.tab:visible").all():
        box = await target.bounding_box()
        assert box is not None
        assert box["height"] >= 44


@pytest.mark.parametrize("name", ["new", "tron"])
async def test_the_ends_of_an_address_are_never_broken(open_page, name):
    page = await open_page(viewport={"width": 320, "height": 800})
    await show(page, PAGES.account(SAMPLES[name]))
    lines = await page.locator("#address b").evaluate_all("ends => ends.map(end => end.getClientRects().length)")
    assert lines == [1, 1]


async def test_an_open_page_shows_deposits_as_they_come_and_keeps_what_is_chosen(open_page, checkout_env, url, clock):
    public_id, address = await checkout_env.account(["atlantis", "memory"])
    page = await open_page(permissions=["clipboard-read", "clipboard-write"])
    await page.goto(f"{url}/account/{public_id}")
    await expect(page.get_by_text("atlantis is not connected at present.")).to_be_visible()
    await expect(page.locator("#address")).to_have_count(0)
    await page.get_by_role("link", name="Memory (memory)").click()
    await expect(page.locator("#address")).to_have_text(address)
    await expect(page.get_by_text("None yet.")).to_be_visible()
    await page.locator("#copy-address").click()
    await expect(page.locator("#copy-address")).to_contain_text("Copied")
    assert await page.evaluate("navigator.clipboard.readText()") == address
    await insert_deposit(checkout_env.db, public_id, checkout_env.token(), 5 * ONE, height=1, mined_at=clock.now())
    await expect(page.locator(".deposit")).to_contain_text("5 USDX")
    await expect(page.locator("#address")).to_have_text(address)
    async with checkout_env.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE accounts SET is_active = false")
    await expect(page.get_by_role("heading", name="No deposits at present")).to_be_visible()
    await expect(page.locator("#address")).to_have_count(0)


async def test_without_scripts_everything_is_there_but_the_copy_button(open_page, checkout_env, url):
    public_id, address = await checkout_env.account(["atlantis", "memory"])
    page = await open_page(java_script_enabled=False)
    await page.goto(f"{url}/account/{public_id}")
    await page.get_by_role("link", name="Memory (memory)").click()
    await expect(page.locator("#address")).to_have_text(address)
    await expect(page.locator(".qr svg")).to_be_visible()
    await expect(page.locator("#copy-address")).to_be_hidden()
