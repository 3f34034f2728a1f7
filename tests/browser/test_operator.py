"""The operators' pages in a browser, on chains in memory: what an operator does first, and what every page keeps to."""

from __future__ import annotations

import os

import httpx
import pytest
from playwright.async_api import expect

from cambist_web.dashboard.files import BUILT
from tests.browser.test_dashboard import axe as axe  # noqa: PLC0414  a fixture of both apps' tests
from tests.browser.test_dashboard import read_every_page, violations
from tests.support.checkout import serving
from tests.support.operators import Officer
from tests.support.uncollected_rows import insert_uncollected
from tests.support.web import PASSWORD, Merchant, lent_app, memory_gateway, web_settings

IN_CI = os.environ.get("CAMBIST_TEST_CI") == "1"

pytestmark = pytest.mark.skipif(
    not ((BUILT / "operator.html").exists() or IN_CI), reason="the dashboards are not built: make dashboard"
)


async def test_an_operator_signs_in_reads_every_page_and_steers_a_chain(
    open_page, database_url, redis_url, clock, ids, axe
):
    settings = web_settings(database_url, redis_url)
    async with memory_gateway(settings, clock, ids, stock=2) as gateway, lent_app(gateway) as app:
        transport = httpx.ASGITransport(app=app)
        async with serving(app) as url, httpx.AsyncClient(transport=transport, base_url=url) as client:
            officer = await Officer(client).sign_in("owner")
            page = await open_page()
            await sign_in(page, url, officer)
            assert await violations(page, axe, part="main") == []
            await read_every_page(page)
            await steer(page, url, officer, axe)
            shop = Merchant(client)
            await shop.register("ada@shop.example")
            await shop.add_project(mode="sandbox")
            await insert_uncollected(gateway.db, shop.merchant_id)
            await collect(page, officer, axe)
            ada = await open_page()
            await ada.goto(f"{url}/dashboard/")
            await sign_in_as_merchant(ada, shop)
            await expect(ada.get_by_role("heading", name="Overview", level=1)).to_be_visible()
            await look_after(page, shop, axe)
            await is_suspended(page, ada, shop, axe)


async def sign_in(page, url: str, officer: Officer) -> None:
    await page.goto(f"{url}/operator/")
    await expect(page.get_by_role("heading", name="Sign in as an operator")).to_be_visible()
    await page.get_by_label("E-mail").fill(officer.made.email)
    await page.get_by_role("textbox", name="Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_label("Code").fill(officer.phone.next_code())
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    await expect(page.get_by_role("region", name="What came in")).to_be_visible()


async def steer(page, url: str, officer: Officer, axe: str) -> None:
    """Pause watching, which takes a reason alone, and resume it, which takes a code."""
    await page.goto(f"{url}/operator/chains/memory")
    watching = page.get_by_role("listitem").filter(has=page.get_by_text("Watching", exact=True))
    await watching.get_by_role("button", name="Pause").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("New payments on this chain are refused")
    await dialog.get_by_label("Reason").fill("the node is being replaced")
    assert await violations(page, axe, part="[role=dialog]") == []
    await dialog.get_by_role("button", name="Pause").click()
    await expect(watching).to_contain_text("the node is being replaced")
    await watching.get_by_role("button", name="Resume").click()
    await dialog.get_by_label("Reason").fill("it is there")
    await dialog.get_by_role("button", name="Resume").click()
    code = page.get_by_role("dialog", name="Confirm that it is you")
    await code.get_by_label("Digit 1").click()
    await page.keyboard.type(officer.phone.next_code())
    await expect(watching).to_contain_text("goes on")


async def collect(page, officer: Officer, axe: str) -> None:
    """Find out why something is not collected, and have it collected for what the dialog says, which takes a code."""
    await page.get_by_role("navigation", name="Navigation").get_by_role("link", name="Not collected").click()
    await expect(page.get_by_role("table", name="How much, and why").get_by_role("row", name="USDX")).to_contain_text(
        "3.5"
    )
    assert await violations(page, axe, part="main") == []
    await page.get_by_role("table", name="Address by address").get_by_role("link").first.click()
    part = page.get_by_role("region", name="USDX · memory")
    await expect(part).to_contain_text("It is worth less than")
    assert await violations(page, axe, part="main") == []
    await part.get_by_role("button", name="Collect now").click()
    dialog = page.get_by_role("dialog", name="Collect this now?")
    await expect(dialog).to_contain_text("It costs $1.09 at most")
    assert await violations(page, axe, part="[role=dialog]") == []
    await dialog.get_by_role("button", name="Collect now").click()
    code = page.get_by_role("dialog", name="Confirm that it is you")
    asked_for = part.get_by_text("Asked for").first
    await expect(code.or_(asked_for).first).to_be_visible()
    if await code.is_visible():
        await code.get_by_label("Digit 1").click()
        await page.keyboard.type(officer.phone.next_code())
    await expect(dialog).to_be_hidden()
    await expect(asked_for).to_be_visible()


async def look_after(page, shop: Merchant, axe: str) -> None:
    """Find a merchant, bound what may leave it, suspend it, and read in the log who did that."""
    navigation = page.get_by_role("navigation", name="Navigation")
    await navigation.get_by_role("link", name="Merchants").click()
    await page.get_by_placeholder("Name, e-mail address or id").fill("ada@")
    await page.get_by_role("row").filter(has_text="ada@shop.example").get_by_role("link").click()
    await expect(page.get_by_role("heading", level=1)).not_to_have_text("Merchants")
    await expect(page.get_by_text(shop.merchant_id).first).to_be_visible()
    assert await violations(page, axe, part="main") == []
    limits = page.get_by_role("region", name="Limits of its own")
    await limits.get_by_role("button", name="Set a limit").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("combobox", name="Coin").fill("memory/USDX")
    await page.get_by_role("option", name="memory/USDX").click()
    await dialog.get_by_label("In 24 hours").fill("250")
    await dialog.get_by_role("button", name="Set a limit").click()
    await expect(limits.get_by_role("row", name="memory/USDX")).to_contain_text("250")
    await page.get_by_role("button", name="Suspend").click()
    await expect(dialog).to_contain_text("What customers send is credited all the same.")
    await dialog.get_by_label("Reason").fill("what it sells is not allowed here")
    await expect(dialog.get_by_role("button", name="Suspend")).to_be_disabled()
    await dialog.get_by_label("to confirm").fill(await page.get_by_role("heading", level=1).inner_text())
    await dialog.get_by_role("button", name="Suspend").click()
    await expect(dialog).to_be_hidden()
    await expect(page.get_by_role("button", name="Reinstate")).to_be_visible()
    await page.get_by_role("link", name="Audit log").last.click()
    row = page.get_by_role("row").filter(has_text="merchant.suspended")
    await expect(row).to_contain_text("owner")
    await row.get_by_text("Show").click()
    await expect(row).to_contain_text("what it sells is not allowed here")
    assert await violations(page, axe, part="main") == []


async def sign_in_as_merchant(ada, shop: Merchant) -> None:
    await ada.get_by_label("E-mail").fill(shop.email)
    await ada.get_by_role("textbox", name="Password").fill(PASSWORD)
    await ada.get_by_role("button", name="Sign in").click()


async def is_suspended(page, ada, shop: Merchant, axe: str) -> None:
    """Be signed out wherever one is, be told why, and go on there once reinstated."""
    await expect(ada.get_by_role("heading", name="Sign in")).to_be_visible()
    await sign_in_as_merchant(ada, shop)
    await expect(ada.get_by_role("alert")).to_contain_text("The operator of this gateway has suspended this merchant.")
    assert await violations(ada, axe) == []
    await page.go_back()
    await page.get_by_role("button", name="Reinstate").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Reinstate").click()
    await expect(dialog).to_be_hidden()
    await expect(page.get_by_role("button", name="Suspend")).to_be_visible()
    await ada.get_by_role("button", name="Sign in").click()
    await expect(ada.get_by_role("heading", name="Overview", level=1)).to_be_visible()
