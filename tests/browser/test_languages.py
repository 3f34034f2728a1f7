"""The dashboards in other languages: chosen without a reload, kept, and said where one does not come."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from playwright.async_api import expect

from cambist_web.dashboard.files import BUILT
from tests.browser.described import DescribedGateway, described_page
from tests.browser.test_dashboard import PHONE, begin
from tests.browser.test_dashboard import url as url  # noqa: PLC0414  a fixture of all tests of dashboards

TEXTS = Path("web/dashboard/src/i18n")
IN_CI = os.environ.get("CAMBIST_TEST_CI") == "1"
DESKTOP = {"width": 1280, "height": 860}
MARKS = {"en": "en", "de": "de", "fr": "fr", "es": "es", "pt": "pt-BR", "ru": "ru", "tr": "tr", "ar": "ar"}
MARKS |= {"zh": "zh-Hans", "ja": "ja"}

pytestmark = pytest.mark.skipif(
    not ((BUILT / "dashboard.html").exists() or IN_CI), reason="the dashboards are not built: make dashboard"
)


def texts(language: str, name: str = "common") -> dict:
    return json.loads((TEXTS / language / f"{name}.json").read_text())


async def marks(page) -> tuple[str, str]:
    return tuple(await page.evaluate("[document.documentElement.lang, document.documentElement.dir]"))


async def choose(page, language: str, *, of: str = "en") -> None:
    """Choose a language as people do, in what the page is in now."""
    await page.get_by_role("button", name=texts(of)["preferences"]["title"]).click()
    await page.locator(f'[role="menuitemradio"][lang="{MARKS[language]}"]').click()
    await expect(page.locator("html")).to_have_attribute("lang", MARKS[language])
    await expect(page.get_by_role("menu")).to_have_count(0)  # it fades, where the page is as wide as it was


async def too_wide(page) -> list[str]:
    """Return what is wider than the page, on a phone and on a desktop."""
    found = []
    for size in (PHONE, DESKTOP):
        await page.set_viewport_size(size)
        width = await page.evaluate("document.documentElement.scrollWidth")
        if width > size["width"]:
            found.append(f"{page.url} at {size['width']}: {width}")
    return found


async def test_a_merchant_chooses_arabic_without_a_reload_and_is_read_from_the_right_until_another_is_chosen(
    open_page, url
):
    page = await open_page()
    await begin(page, url, "overview")
    await page.evaluate("window.sameDocument = true")
    await choose(page, "ar")
    arabic, german = texts("ar"), texts("de")
    await expect(page.get_by_role("heading", name=arabic["nav"]["overview"], level=1)).to_be_visible()
    assert await marks(page) == ("ar", "rtl")
    assert await page.evaluate("window.sameDocument")
    side = await page.locator("aside").bounding_box()
    assert side["x"] + side["width"] == pytest.approx(DESKTOP["width"], abs=20)
    await page.get_by_role("button", name=arabic["firstSteps"]["pay"]).click()
    await expect(page.get_by_role("region", name=arabic["overview"]["coins"])).to_be_visible()
    assert await too_wide(page) == []

    await page.reload()
    assert await marks(page) == ("ar", "rtl")
    await choose(page, "de", of="ar")
    assert await marks(page) == ("de", "ltr")
    await expect(page.get_by_role("heading", name=german["nav"]["overview"], level=1)).to_be_visible()
    # The longest title of all that are one word.
    settings = german["nav"]["settings"]
    navigation = page.get_by_role("navigation", name=german["shell"]["navigation"])
    await navigation.get_by_role("link", name=settings).click()
    await expect(page.get_by_role("heading", name=settings, level=1)).to_be_visible()
    assert await page.get_by_role("alert").all_inner_texts() == []
    assert await too_wide(page) == []


async def test_an_operator_chooses_a_language_without_a_reload(chromium):
    async with described_page(chromium, DescribedGateway("operator", rows=1), viewport=DESKTOP) as page:
        await page.evaluate("window.sameDocument = true")
        now = "en"
        for language, direction in (("ar", "rtl"), ("de", "ltr")):
            await choose(page, language, of=now)
            assert await marks(page) == (language, direction)
            own = texts(language, "operator")["nav"]
            await expect(page.get_by_role("heading", name=own["overview"], level=1, exact=True)).to_be_visible()
            links = page.get_by_role("navigation", name=texts(language)["shell"]["navigation"]).get_by_role("link")
            assert {(await one.inner_text()).strip() for one in await links.all()} <= {*own.values()}
            now = language
        # The longest title of all that are one word.
        await page.get_by_role("link", name=own["queue"]).click()
        await expect(page.get_by_role("heading", name=own["queue"], level=1)).to_be_visible()
        assert await too_wide(page) == []
        assert await page.evaluate("window.sameDocument")


async def test_a_page_is_marked_before_anything_is_painted(open_page, url):
    page = await open_page()
    # The app itself does not come: what marks the page is what runs before it.
    await page.route(re.compile(r"/dashboard-assets/(?!first-paint).*\.js"), lambda route: route.abort())
    for language, mark in MARKS.items():
        # The last of all that were added has the last word.
        await page.add_init_script(f"localStorage.setItem('cambist-language', '{language}')")
        await page.goto(f"{url}/dashboard/sign-in", wait_until="commit")
        # English is in the file itself: only the direction says that the script has run.
        await expect(page.locator("html")).to_have_attribute("dir", "rtl" if language == "ar" else "ltr")
        assert (await marks(page))[0] == mark


def texts_file(name: str) -> re.Pattern[str]:
    """Match the address of the built file of a part of the texts, such as ``en/common.first``."""
    manifest = json.loads((BUILT / "manifest.json").read_text())
    return re.compile(re.escape(manifest[f"src/i18n/{name}"]["file"]))


async def test_a_language_that_does_not_come_at_first_is_english_and_said_and_has_refusals_too_once_it_is_there(
    open_page, url
):
    page = await open_page(locale="ja-JP")
    first, japanese = texts_file("ja/common.first"), texts("ja")
    await page.route(first, lambda route: route.abort())
    await page.goto(f"{url}/dashboard/sign-in")
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert await marks(page) == ("en", "ltr")
    note = page.get_by_role("alert")
    await expect(note).to_contain_text("日本語 could not be loaded")
    await page.unroute(first)
    await note.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("heading", name=japanese["signIn"]["title"])).to_be_visible()
    await expect(note).to_be_hidden()
    await page.reload()
    await expect(page.get_by_role("heading", name=japanese["signIn"]["title"])).to_be_visible()
    await page.get_by_label(japanese["signIn"]["email"]).fill("nobody@shop.example")
    await page.get_by_role("textbox", name=japanese["signIn"]["password"]).fill("one two three four")
    await page.get_by_role("button", name=japanese["signIn"]["act"]).click()
    await expect(note).to_contain_text(japanese["errors"]["INVALID_CREDENTIALS"])
    await expect(note).to_contain_text("INVALID_CREDENTIALS")


async def test_where_no_texts_come_at_all_the_page_is_loaded_anew_and_where_another_language_does_not_nothing_changes(
    open_page, url
):
    page = await open_page()
    english = texts_file("en/common.first")
    await page.route(english, lambda route: route.abort())
    await page.goto(f"{url}/dashboard/sign-in")
    alert = page.get_by_role("alert")
    await expect(alert).to_contain_text("The dashboard could not be loaded.")
    await page.unroute(english)
    await alert.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    await page.get_by_role("button", name="Colours and language").click()
    arabic = page.locator('[role="menuitemradio"][lang="ar"]')
    await expect(arabic).to_be_visible()
    await page.context.set_offline(True)
    await arabic.click()
    note = page.get_by_role("alert")
    await expect(note).to_contain_text("العربية could not be loaded")
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert await marks(page) == ("en", "ltr")
    await page.context.set_offline(False)
    await note.get_by_role("button", name="Close").click()
    await expect(note).to_be_hidden()
    await page.reload()
    assert await marks(page) == ("en", "ltr")


async def test_the_texts_of_pages_that_do_not_come_are_asked_for_again(open_page, url):
    page = await open_page()
    rest = texts_file("en/common.rest")
    await page.route(rest, lambda route: route.abort())
    await begin(page, url, "overview")
    await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    await page.get_by_role("link", name="Coins", exact=True).click()
    again = page.get_by_role("alert").get_by_role("button", name="Try again")
    await expect(again).to_be_visible()
    assert "coins." not in await page.inner_text("body")
    await page.unroute(rest)
    await again.click()
    await expect(page.get_by_role("heading", name="Coins", level=1)).to_be_visible()
    await expect(page.get_by_role("alert")).to_have_count(0)
