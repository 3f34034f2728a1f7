"""Words that cannot be read are found as axe finds them, by what they are in and by what they lie on."""

from __future__ import annotations

import os

import pytest
from playwright.async_api import expect

from cambist_web.dashboard.files import BUILT
from tests.browser.contrast import UNREADABLE
from tests.browser.described import DescribedGateway, described_page, go
from tests.browser.test_dashboard import axe as axe  # noqa: PLC0414  a fixture of all tests of dashboards
from tests.browser.test_dashboard import violations
from tests.browser.test_filled_pages import DESKTOP

IN_CI = os.environ.get("CAMBIST_TEST_CI") == "1"

pytestmark = pytest.mark.skipif(
    not ((BUILT / "dashboard.html").exists() or IN_CI), reason="the dashboards are not built: make dashboard"
)

AXES = """async part => {
  const options = { runOnly: ["color-contrast"], resultTypes: ["violations"], elementRef: true };
  const { violations } = await axe.run(part, options);
  return violations.flatMap(({ nodes }) => nodes).map(({ element }) => element.outerHTML.slice(0, 200)).sort();
}"""
FOUND = f"([part, scheme]) => ({UNREADABLE})(part, [scheme]).map((one) => one.slice(one.indexOf('<')))"
PUT_ON = "css => { const sheet = new CSSStyleSheet(); sheet.replaceSync(css); document.adoptedStyleSheets = [sheet]; }"

UNREADABLE_IF = {
    "heads of a table": "thead * { color: #808080 !important }",
    "all rows but the first": "tr + tr td { color: #7a7a7a !important }",
    "what states are in": "td [data-tone] { color: #8a8a8a !important }",
    "a ground behind words of before": "td:nth-child(2) { background: color-mix(in srgb, currentColor 80%, red) }",
    "a ground that the page shines through": "td:nth-child(3) * { background: rgb(from currentColor r g b / 0.7) }",
    "words that the page shines through": "td:nth-child(4) * { opacity: 0.4 !important }",
    "a whole table that the page shines through": "table { opacity: 0.4 !important }",
    "a mixture of colours": "td { color: color-mix(in srgb, #888 90%, red) !important }",
    "fields, on which words lie": "input[type=date] { background: #7d8986 !important }",
    "links": "main a { color: #808080 !important }",
}


LIES_ON = {
    "a dialog that what is behind it shines through": ".mantine-Modal-overlay { background: #fff !important }"
    " [role=dialog], [role=dialog] header { background: rgb(128 128 128 / 0.2) !important; color: #bbb }",
    "a label drawn onto its field": "label { position: relative; z-index: 5; transform: translateY(1.5rem) }"
    " input { background: #767c79 !important }",
    "letters of another colour than all else": "[role=dialog] :is(p, label) { -webkit-text-fill-color: #808080 }",
}


async def all_that_axe_finds(page, part, sheets, scheme="dark"):
    assert await page.evaluate(FOUND, [part, scheme]) == []
    for what, css in sheets.items():
        await page.evaluate(PUT_ON, css)
        found = set(await page.evaluate(FOUND, [part, scheme]))
        by_axe = set(await page.evaluate(AXES, part))
        assert by_axe, what
        assert by_axe <= found, what
    await page.evaluate(PUT_ON, "")


async def test_words_that_cannot_be_read_are_all_that_axe_finds_in_a_page_a_menu_and_a_dialog(chromium, axe):
    gateway = DescribedGateway("merchant", rows=3)
    async with described_page(chromium, gateway, at="/payments", viewport=DESKTOP, color_scheme="dark") as page:
        assert await violations(page, axe) == []
        assert await page.evaluate(FOUND, ["", "dark"]) == []
        await all_that_axe_finds(page, "main", UNREADABLE_IF)
        await page.get_by_role("button", name="Colours and language").click()
        await expect(page.get_by_role("menu").locator("[role^=menuitem]").first).to_be_focused()
        no_ground = "[role=menu] { background: none !important } main { background: #777; color: #777 }"
        await all_that_axe_finds(page, "[role=menu]", {"a menu without a ground": no_ground})
        await page.keyboard.press("Escape")
        await go(page, f"{gateway.home}/payments/one_1")
        await page.get_by_role("button", name="Refund").first.click()
        await expect(page.get_by_role("dialog").get_by_label("To address")).to_be_visible()
        await all_that_axe_finds(page, "[role=dialog]", LIES_ON)
        shone_through = {"a dialog that all shines through": "[role=dialog] { opacity: 0.45 !important }"}
        await all_that_axe_finds(page, "[role=dialog]", shone_through, scheme="light")
