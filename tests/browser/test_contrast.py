"""Words that cannot be read are found by their colours alone, as axe finds them by where they are."""

from __future__ import annotations

import os

import pytest

from cambist_web.dashboard.files import BUILT
from tests.browser.contrast import UNREADABLE
from tests.browser.described import DescribedGateway, described_page
from tests.browser.test_dashboard import axe as axe  # noqa: PLC0414  a fixture of all tests of dashboards
from tests.browser.test_dashboard import violations
from tests.browser.test_filled_pages import DESKTOP

IN_CI = os.environ.get("CAMBIST_TEST_CI") == "1"

pytestmark = pytest.mark.skipif(
    not ((BUILT / "dashboard.html").exists() or IN_CI), reason="the dashboards are not built: make dashboard"
)

AXES = """async () => {
  const options = { runOnly: ["color-contrast"], resultTypes: ["violations"], elementRef: true };
  const { violations } = await axe.run("main", options);
  return violations.flatMap(({ nodes }) => nodes).map(({ element }) => element.outerHTML.slice(0, 200)).sort();
}"""
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


async def test_words_that_cannot_be_read_are_all_that_axe_finds(chromium, axe):
    gateway = DescribedGateway("merchant", rows=3)
    async with described_page(chromium, gateway, at="/payments", viewport=DESKTOP, color_scheme="dark") as page:
        assert await violations(page, axe) == []
        await page.evaluate("document.documentElement.dataset.mantineColorScheme = 'dark'")
        assert await page.evaluate(UNREADABLE, "") == []
        for what, css in UNREADABLE_IF.items():
            await page.evaluate(PUT_ON, css)
            found = {one.partition(" ")[2] for one in await page.evaluate(UNREADABLE, "main")}
            by_axe = set(await page.evaluate(AXES))
            assert by_axe, what
            assert by_axe <= found, what
