"""Every page of both apps with something on it, and what its buttons open, as axe sees it, in light and in dark."""

from __future__ import annotations

import asyncio
import os

import pytest
from playwright.async_api import expect

from cambist_web.dashboard.files import BUILT
from tests.browser.described import DescribedGateway, Screen, View, described_page, found_on_every_page, go
from tests.browser.dialogs import Shown, lay_out, opened
from tests.browser.test_dashboard import axe as axe  # noqa: PLC0414  a fixture of all tests of dashboards
from tests.browser.test_dashboard import violations

IN_CI = os.environ.get("CAMBIST_TEST_CI") == "1"

pytestmark = pytest.mark.skipif(
    not ((BUILT / "dashboard.html").exists() or IN_CI), reason="the dashboards are not built: make dashboard"
)

DESKTOP = {"width": 1280, "height": 860}
PHONE = {"width": 360, "height": 740}
SMALL_LAPTOP = {"width": 1024, "height": 768}
TOO_WIDE = """() => {
  const isWide = (one) => one.scrollWidth > one.clientWidth + 1;
  const boxes = [...document.querySelectorAll("main table")].map((table) => table.parentElement);
  const tables = boxes.filter((box) => getComputedStyle(box).overflowX === "auto");
  const words = [...document.querySelectorAll("main :is(button, a) span")].filter((one) => one.children.length === 0);
  const named = (one) => `${one.closest("section[aria-label]")?.ariaLabel ?? ""} ${one.innerText.slice(0, 60)}`;
  return [document.documentElement, ...tables, ...words.filter((one) => one.clientWidth > 1)].filter(isWide).map(named);
}"""
"""Pages and tables of which a part is out of sight, and buttons of whose words one is."""

LONE_DASHES = """() => [...document.querySelectorAll("main td")]
  .filter((cell) => cell.checkVisibility() && cell.innerText.trim() === "\u2013")
  .map((cell) => cell.dataset.title)"""

AMISS_ON_LAPTOPS = """() => {
  const links = [...document.querySelectorAll("nav [data-active]")];
  const unseen = links.filter((one) => {
    const { top, bottom } = one.getBoundingClientRect();
    return top < 0 || bottom > innerHeight;
  });
  const boxes = [...document.querySelectorAll("main table")].map((table) => table.parentElement);
  const isTable = (box) => getComputedStyle(box).overflowX === "auto";
  const scrolled = boxes.filter((box) => isTable(box) && box.scrollWidth > box.clientWidth);
  const named = (of, all) => all.map((one) => `${of} ${one.innerText.slice(0, 60)}`);
  return [...named("unseen", unseen), ...named("scrolls", scrolled)];
}"""
"""The place in the navigation where it is out of sight, and tables that scroll, be it by the width of a hair."""

CUT_PLACEHOLDERS = """() => {
  const pen = document.createElement("canvas").getContext("2d");
  const isCut = (field) => {
    const style = getComputedStyle(field);
    pen.font = style.font;
    const room = field.clientWidth - parseFloat(style.paddingInlineStart) - parseFloat(style.paddingInlineEnd);
    return pen.measureText(field.placeholder).width > room + 1;
  };
  return [...document.querySelectorAll("[role=search] input[placeholder]")].filter(isCut).map((one) => one.placeholder);
}"""
DAYS_APART = """() => [...document.querySelectorAll(".days")].filter(
  ({ firstElementChild, lastElementChild }) => firstElementChild.offsetTop !== lastElementChild.offsetTop
).map((one) => `days apart: ${one.innerText}`)"""
TALL_ACTS = """() => [...document.querySelectorAll("td:last-child > div > .row")].filter((one) => {
  const [first] = one.children;
  return first !== undefined && one.offsetHeight > first.offsetHeight + 4;
}).map((one) => one.innerText)"""

TOO_SMALL = """() => {
  const wanted = "button.mantine-Button-root, button.mantine-ActionIcon-root, button.mantine-Burger-root,"
    + " :is(main, [role=dialog]) :is(button, input, summary), [aria-haspopup=menu]";
  // What is copied by a click stands in lines of text, with others above and below.
  const leastOf = (one) => one.matches("[class*=copyable]") ? 32 : 40;
  const isSmall = (one) => {
    const parts = [one, ...(one.labels ?? [])].map((part) => part.getBoundingClientRect().height);
    const around = one.parentElement.getBoundingClientRect().height * (one.tagName === "INPUT");
    return Math.max(...parts, around) < leastOf(one) - 0.1;
  };
  const isZoomed = (one) => one.matches("input:not([type=checkbox], [type=radio])")
    && parseFloat(getComputedStyle(one).fontSize) < 16;
  const named = (one) => `too small: ${one.ariaLabel ?? one.labels?.[0]?.innerText ?? one.innerText} ${one.className}`;
  return [...document.querySelectorAll(wanted)]
    .filter((one) => one.checkVisibility() && one.getBoundingClientRect().width > 1)
    .filter((one) => isSmall(one) || isZoomed(one)).map(named);
}"""
"""What a finger misses, and fields with letters so small that a phone enlarges the page."""

ALERTS = """() => [...document.querySelectorAll("[role=alert]")]
  .filter((one) => one.checkVisibility())
  .map((one) => one.innerText)"""

OF_A_DESKTOP = {"merchant": (), "operator": (CUT_PLACEHOLDERS, DAYS_APART, TALL_ACTS, AMISS_ON_LAPTOPS)}
"""What is looked for on a page beside what axe finds: placeholders are whole, days stand side by side, what can be done
stands on one line, where one is can be seen, and no table scrolls."""

DIALOGS_LEAST = {"merchant": 30, "operator": 45}


MENUS = {"merchant": 3, "operator": 2}


@pytest.mark.parametrize("app", ["merchant", "operator"])
async def test_nothing_is_amiss_on_a_filled_page_of_a_desktop_or_laptop_nor_in_its_menus_dialogs_and_forms(
    chromium, app, axe
):
    gateway = DescribedGateway(app, rows=3)
    addresses, wrong, dialogs = list(gateway.addresses()), [], []
    async with described_page(chromium, gateway, viewport=DESKTOP) as page:
        screen = await Screen.of(page)
        wrong += await of_menus(page, axe, MENUS[app])
        for number, address in enumerate(addresses):
            await screen.turn(DESKTOP, is_touched=False)
            await go(page, address)
            found = await screen.found(View(DESKTOP, False, (ALERTS, *OF_A_DESKTOP[app])))
            # What stands around every page is looked at once.
            found += await violations(page, axe, part="main" if number else "")
            on_laptop = await screen.found(View(SMALL_LAPTOP, False, (TOO_WIDE,)))
            found += [f"out of sight on a small laptop: {one}" for one in on_laptop]
            # What is opened is looked at where it has least room, and where a finger would miss it.
            on_phone = await screen.found(View(PHONE, True, (TOO_WIDE,)))
            found += [f"as wide as it was before: {one}" for one in on_phone]
            async for shown in opened(page, address, another=addresses[number - 1]):
                dialogs += shown.dialogs
                found += await page.evaluate(TOO_SMALL)
                found += await of_opened(page, axe, shown)
            wrong += [f"{address}: {one}" for one in found]
        assert not wrong, "\n".join(wrong)
    # None of them is left out because a button does nothing.
    assert len(dialogs) >= DIALOGS_LEAST[app], dialogs


async def of_menus(page, axe: str, count: int) -> list[str]:
    """Return what axe finds wrong with open menus, whose first item has the focus, which the button has once more."""
    found = []
    buttons = page.locator("[aria-haspopup=menu]")
    assert await buttons.count() == count
    for button in await buttons.all():
        await button.click()
        await expect(page.get_by_role("menu").locator("[role^=menuitem]").first).to_be_focused()
        found += await violations(page, axe, part="[role=menu]")
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("menu")).to_have_count(0)
        await expect(button).to_be_focused()
    return found


PAGE_TOO_WIDE = """() => {
  const { scrollWidth, clientWidth } = document.documentElement;
  return scrollWidth > clientWidth ? [`the page is ${scrollWidth} wide`] : [];
}"""
OVERFLOWING = """() => [...document.querySelectorAll("main dd")]
  .filter((one) => one.scrollWidth > one.clientWidth + 1)
  .map((one) => one.innerText)"""

VIEWS = {
    "merchant": (
        View(DESKTOP, True, (TOO_WIDE, TOO_SMALL)),
        View(DESKTOP, False, (TOO_WIDE,)),
        View(DESKTOP, False, (PAGE_TOO_WIDE,), "rtl"),
        View(PHONE, True, (TOO_WIDE, OVERFLOWING), "rtl"),
        View(PHONE, True, (TOO_WIDE, TOO_SMALL)),
    ),
    "operator": (
        View(DESKTOP, True, (PAGE_TOO_WIDE,)),
        View(DESKTOP, True, (PAGE_TOO_WIDE,), "rtl"),
        View(PHONE, True, (TOO_WIDE, OVERFLOWING), "rtl"),
        View(PHONE, True, (TOO_WIDE, TOO_SMALL, LONE_DASHES)),
    ),
}
"""What is looked for in the language with the longest words: what is too wide, also where it is read from the right,
and what a finger misses; and on cards of a phone lines that say that there is nothing."""


@pytest.mark.parametrize("app", VIEWS)
async def test_no_page_and_no_table_is_wider_than_its_room_in_the_language_with_the_longest_words(chromium, app):
    gateway = DescribedGateway(app)
    async with described_page(chromium, gateway, viewport=PHONE, has_touch=True, locale="ru-RU") as page:
        assert await page.evaluate("document.documentElement.lang") == "ru"
        wrong = await found_on_every_page(page, gateway, *VIEWS[app])
    assert not wrong, "\n".join(wrong)


async def of_opened(page, axe: str, shown: Shown) -> list[str]:
    """Return what axe finds wrong with forms and dialogs that are open."""
    found = await violations(page, axe, part="main") if shown.has_forms else []
    if shown.dialogs:
        await lay_out(page)
        found += await violations(page, axe, part="[role=dialog]")
    # Several dialogs have several headers, which of one dialog would be wrong.
    return [one for one in found if "landmark-" not in one.partition(":")[0]]


OFF_CENTRE = """() => {
  const middle = ({ x, y, width, height }) => [x + width / 2, y + height / 2];
  const spinner = document.querySelector(".mantine-Loader-root");
  const [inside, around] = [spinner, spinner.closest("button")].map((one) => middle(one.getBoundingClientRect()));
  return Math.max(...inside.map((at, axis) => Math.abs(at - around[axis])));
}"""
"""How far what is shown of work is from the middle of its button, in pixels."""


async def test_what_is_at_work_is_shown_in_the_middle_of_its_button_with_and_without_motion(chromium):
    gateway, asked = DescribedGateway("merchant"), asyncio.Queue()
    async with described_page(chromium, gateway, at="/payments/one_1", viewport=PHONE) as page:
        await page.route("**/refund", asked.put)  # no answer comes yet
        await page.get_by_role("button", name="Refund").first.click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("To address").fill("0x52908400098527886E0F7030069857D2E4169EE7")
        for motion in ("reduce", "no-preference"):
            await page.emulate_media(reduced_motion=motion)
            await dialog.get_by_role("button", name="Refund").click()
            await expect(dialog.locator(".mantine-Loader-root")).to_be_visible()
            assert await page.evaluate(OFF_CENTRE) < 2, motion
            refund = await asked.get()
            await refund.fulfill(status=422, json={"success": False, "error": "No.", "code": "NO"})
            await expect(dialog.locator(".mantine-Loader-root")).to_have_count(0)


async def test_without_a_clipboard_for_scripts_the_browser_copies_what_is_clicked(chromium):
    """As on a page without https: what is short on the page is copied whole, and the focus stays."""
    gateway = DescribedGateway("merchant")
    rights = ["clipboard-read", "clipboard-write"]
    async with described_page(chromium, gateway, at="/payments/one_1", viewport=DESKTOP, permissions=rights) as page:
        await page.evaluate("""() => {
          window.clipboard = navigator.clipboard;
          Object.defineProperty(navigator, "clipboard", { value: undefined });
        }""")
        short = page.get_by_role("button", name="Copy 0x").filter(has_text="…").first
        whole = (await short.locator(".unseen").first.text_content() or "").removeprefix("Copy ")
        await short.click()
        await expect(short.get_by_role("status")).to_have_text("Copied")
        assert await page.evaluate("window.clipboard.readText()") == whole
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await expect(short).to_be_focused()
