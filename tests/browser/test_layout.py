"""What is laid out on a desktop, on a phone and on a screen of twice the size, in a browser."""

from __future__ import annotations

import itertools
import os

import pytest
from playwright.async_api import expect

from cambist_web.dashboard.files import BUILT
from tests.browser.described import DescribedGateway, described_page, go, resize
from tests.browser.test_filled_pages import DESKTOP, OVERFLOWING, PHONE

IN_CI = os.environ.get("CAMBIST_TEST_CI") == "1"
LARGE = {"width": 3840, "height": 2160}

pytestmark = pytest.mark.skipif(
    not ((BUILT / "operator.html").exists() or IN_CI), reason="the dashboards are not built: make dashboard"
)

LONE_LETTERS = """() => {
  const found = [];
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  for (let text; (text = texts.nextNode()); ) {
    const word = text.parentElement.closest("bdi, code") ?? text.parentElement;
    if (word.closest(".unseen, pre, .short") !== null || !/\\S{24}/.test(word.textContent)) continue;
    const range = document.createRange();
    range.selectNodeContents(word);
    const lines = [];
    for (const { top, width } of range.getClientRects()) {
      if (width === 0) continue;
      const line = lines.find((one) => Math.abs(one.top - top) < 4);
      if (line === undefined) lines.push({ top, width });
      else line.width += width;
    }
    const letter = parseFloat(getComputedStyle(word).fontSize);
    if (lines.length > 1 && lines.some(({ width }) => width < letter)) found.push(word.textContent);
  }
  return [...new Set(found)];
}"""
LONG_URL = "https://hooks.a-long-name-of-a-shop.example.com/v2/" + "2f1c9a7e" * 12 + "?mode=live&token="


@pytest.fixture(scope="module")
async def merchants(chromium):
    """Give a page of a merchant's and its gateway, to tests that say themselves where and how they look."""
    gateway = DescribedGateway("merchant", rows=3)
    async with described_page(chromium, gateway) as page:
        yield page, gateway


@pytest.fixture(scope="module")
async def operators(chromium):
    gateway = DescribedGateway("operator", rows=3)
    async with described_page(chromium, gateway) as page:
        yield page, gateway


@pytest.fixture(scope="module")
async def warned(chromium):
    """Give an operator's page and its gateway, which says more of what is wrong than the examples do."""
    gateway = DescribedGateway("operator", rows=2)
    one = {"code": "PAYOUTS_FAILED", "message": "Payouts have failed.", "count": 3, "since": None}
    change_answer(gateway, "/overview", lambda _: {"attention": [one]})
    sentence = f"0x{'5' * 40} is no token contract: it does not tell its decimals."
    change_answer(
        gateway, "/tokens", lambda found: {"tokens": [{**one, "reason": sentence} for one in found["tokens"]]}
    )
    async with described_page(chromium, gateway) as page:
        yield page, gateway


def change_answers(gateway, change):
    """Have answers changed: ``change`` is given the method, the path and what is answered otherwise.

    A page remembers what it was told: where others go on with it, these are answers for this test's pages alone.
    """
    find = gateway.answers.find
    gateway.answers.find = lambda method, path: change(method, path, find(method, path))


def change_answer(gateway, path_end, change):
    """Have what is answered at such a path changed: ``change`` is given it, and returns the fields that differ."""
    change_answers(gateway, lambda _, path, found: {**found, **change(found)} if path.endswith(path_end) else found)


async def test_a_url_of_any_length_leaves_no_letter_on_a_line_of_its_own_on_a_phone(chromium):
    # One of them ends a letter behind the end of a line, however many letters fit on one.
    gateway, lengths = DescribedGateway("operator", rows=36), itertools.count()
    change_answers(gateway, lambda _, __, found: with_urls(found, lengths))
    async with described_page(chromium, gateway, at="/signer", viewport=PHONE) as page:
        for path in ("signer", "webhooks/one_1", "webhooks"):
            await go(page, f"{gateway.home}/{path}")
            assert await page.evaluate(LONE_LETTERS) == [], path
        await page.evaluate("document.querySelectorAll('main wbr').forEach((one) => one.remove())")
        assert await page.evaluate(LONE_LETTERS) != []


def with_urls(found, lengths):
    """Return an answer in which each URL is longer than the one before."""
    if isinstance(found, dict):
        longer = {name: LONG_URL + "a" * (next(lengths) % 48) for name in found if name == "url"}
        return {name: longer.get(name) or with_urls(value, lengths) for name, value in found.items()}
    return [with_urls(one, lengths) for one in found] if isinstance(found, list) else found


async def test_a_screen_of_twice_the_size_shows_larger_letters_on_most_of_its_width(operators):
    page, gateway = operators
    await resize(page, LARGE)
    await go(page, f"{gateway.home}/overview")
    main = page.locator("main")
    assert await main.evaluate("one => one.offsetWidth") > 0.75 * LARGE["width"]
    assert await main.evaluate("one => parseFloat(getComputedStyle(one).fontSize)") >= 20
    await page.set_viewport_size(DESKTOP)
    assert await main.evaluate("one => parseFloat(getComputedStyle(one).fontSize)") == 15


async def test_several_places_of_what_needs_attention_stand_below_its_words_and_not_below_its_number(warned):
    page, gateway = warned
    await resize(page, DESKTOP)
    await go(page, f"{gateway.home}/overview")
    row = page.get_by_role("list", name="What needs attention").get_by_role("listitem")
    words = await row.get_by_text("Payouts have failed.").bounding_box()
    links = [await one.bounding_box() for one in await row.get_by_role("link").all()]
    assert len(links) == 3
    assert links[0]["x"] == pytest.approx(words["x"], abs=1)
    assert {round(one["y"]) for one in links} == {round(links[0]["y"])}


async def test_what_a_rows_menu_opens_gives_the_focus_back_to_the_menus_button(operators):
    page, gateway = operators
    await resize(page, DESKTOP)
    await go(page, f"{gateway.home}/tokens")
    button = page.locator("main [aria-haspopup=menu]").first
    await button.focus()
    await page.keyboard.press("Enter")
    first = page.get_by_role("menuitem").first
    await expect(first).to_be_focused()
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    await expect(page.get_by_role("menu")).to_have_count(0)
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(button).to_be_focused()


async def test_no_figure_of_a_phone_lies_on_the_next_in_a_language_that_writes_money_long(chromium):
    gateway = DescribedGateway("operator", rows=1)
    async with described_page(chromium, gateway, viewport=PHONE, locale="ar") as page:
        assert await page.evaluate("document.documentElement.dir") == "rtl"
        figures = page.locator("main section").nth(1).locator("dd")
        assert await figures.count() == 4
        sizes = "all => all.map((one) => [one.scrollWidth, one.clientWidth])"
        assert all(needed <= room for needed, room in await figures.evaluate_all(sizes))


async def test_no_amount_stands_on_what_is_beside_it_and_no_field_that_grew_widens_a_phone_in_arabic(chromium):
    gateway = DescribedGateway("merchant", rows=1)
    async with described_page(chromium, gateway, viewport=PHONE, locale="ar") as page:
        assert await page.evaluate("document.documentElement.dir") == "rtl"
        assert await page.evaluate(OVERFLOWING) == []
        await resize(page, LARGE)
        for path in ("payments/new", "payments/one_1"):
            await go(page, f"{gateway.home}/{path}")
        await resize(page, PHONE)
        # What measures a field that grows is as wide as that was.
        assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert await page.evaluate(OVERFLOWING) == []


async def test_filters_of_a_phone_are_behind_a_button_that_says_how_many_hold(merchants):
    page, gateway = merchants
    await resize(page, PHONE)
    await go(page, f"{gateway.home}/payments?status=paid")
    search = page.get_by_role("search")
    button, order = search.get_by_role("button", name="Filters 1"), search.get_by_label("Order number")
    await expect(button).to_be_visible()
    await expect(order).to_be_hidden()
    assert (await search.bounding_box())["height"] < 80
    await button.press("Enter")
    await expect(order).to_be_visible()
    await go(page, f"{gateway.home}/coins")
    await expect(search.get_by_label("Find a coin")).to_be_visible()
    await page.set_viewport_size(DESKTOP)
    await go(page, f"{gateway.home}/payments")
    await expect(order).to_be_visible()
    await expect(search.get_by_role("button", name="Filters")).to_be_hidden()


LIGHTNESS = "one => getComputedStyle(one).backgroundColor.match(/\\d+/g).slice(0, 3).reduce((sum, of) => sum + +of, 0)"


async def test_the_chosen_one_of_a_few_stands_out_in_the_dark(merchants):
    page, gateway = merchants
    await resize(page, DESKTOP)
    await go(page, f"{gateway.home}/payouts/new")
    await page.emulate_media(color_scheme="dark")
    await expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    pressed, other = (page.locator(f"main [aria-pressed={is_chosen}]").first for is_chosen in ("true", "false"))
    assert await pressed.evaluate(LIGHTNESS) > await other.evaluate(LIGHTNESS)
    await page.emulate_media(color_scheme="light")


async def test_the_focus_goes_on_beside_what_is_gone_with_what_was_done(merchants):
    page, gateway = merchants
    revoked = []

    def without_revoked(method, path, found):
        if method == "DELETE":
            revoked.append(path)
            return {"success": True}
        return {**found, "keys": found["keys"][len(revoked) :]} if path.endswith("/api-keys") else found

    change_answers(gateway, without_revoked)
    await resize(page, DESKTOP)
    await go(page, f"{gateway.home}/keys")
    rows = page.get_by_role("table", name="Keys").locator("tbody tr")
    await rows.first.get_by_role("button", name="Revoke").focus()
    await page.keyboard.press("Enter")
    await page.get_by_role("dialog").get_by_role("button", name="Revoke").press("Enter")
    await expect(rows).to_have_count(2)
    await expect(page.get_by_role("region", name="Keys")).to_be_focused()
    await page.keyboard.press("Tab")
    await expect(rows.first.get_by_role("button").first).to_be_focused()


async def test_an_address_in_a_sentence_leaves_what_can_be_done_in_sight(warned):
    page, gateway = warned
    await resize(page, DESKTOP)
    await go(page, f"{gateway.home}/tokens")
    for size in (DESKTOP, PHONE):
        await resize(page, size)
        said = page.get_by_text("is no token contract").first
        assert (await said.bounding_box())["width"] > 150, size
        needed, room = await page.locator("main table").evaluate(
            "one => [one.parentElement.scrollWidth, one.parentElement.clientWidth]"
        )
        assert needed <= room, size


BESIDE = """([one, other]) => {
  const [of, to] = [one, other].map((part) => part.getBoundingClientRect());
  return Math.abs(of.top + of.height / 2 - to.top - to.height / 2) < 8 && of.right < to.left;
}"""


async def test_a_card_of_a_phone_is_headed_by_its_first_column_and_its_status_and_short_facts_share_a_line(merchants):
    page, gateway = merchants
    await resize(page, PHONE)
    for path, label in (("payments", "Payments"), ("wallet", "Balances")):
        await go(page, f"{gateway.home}/{path}")
        first, *others = await page.get_by_role("table", name=label).locator("tbody tr").first.locator("td").all()
        titles = [await one.evaluate("one => getComputedStyle(one, '::before').content") for one in (first, *others)]
        assert titles.count("none") == 2
        second = others[titles.index("none", 1) - 1]
        pair = [await one.locator("> *").element_handle() for one in (first, second)]
        assert await page.evaluate(BESIDE, pair), path
    await go(page, f"{gateway.home}/payouts/one_1")
    short = [await page.get_by_role("term").filter(has_text=one).element_handle() for one in ("Type", "Amount")]
    assert await page.evaluate(BESIDE, short)
    whole = page.get_by_role("term").filter(has_text="To address").locator("..")
    assert (await whole.bounding_box())["width"] > 240


async def test_what_is_in_a_card_of_a_phone_begins_below_its_heading(operators):
    page, gateway = operators
    await resize(page, PHONE)
    await go(page, f"{gateway.home}/jobs")
    card = page.locator("section").filter(has=page.get_by_role("heading", name="Asked for"))
    lines = (
        card.get_by_role("heading"),
        card.get_by_role("button", name="Filters"),
        card.locator("tbody td").first.locator("> *"),
        card.get_by_text("1–3 of 3"),
    )
    starts = [(await one.bounding_box())["x"] for one in lines]
    assert starts == pytest.approx([starts[0]] * len(starts), abs=1)


BROKEN_WORDS = """(given) => {
  const cells = given ?? "td[data-beside=true]"; // without an argument it is null
  const texts = [...document.querySelectorAll(`:is(${cells}) > *`)].flatMap((one) => {
    const walk = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
    const found = [];
    while (walk.nextNode()) found.push(walk.currentNode);
    return found;
  });
  return texts.flatMap((text) => [...text.data.matchAll(/\\S+/g)].filter(({ 0: word, index }) => {
    const range = document.createRange();
    range.setStart(text, index);
    range.setEnd(text, index + word.length);
    return range.getClientRects().length > 1;
  }).map(([word]) => word));
}"""


async def test_a_long_state_leaves_the_name_beside_it_whole_on_a_phone(chromium):
    gateway = DescribedGateway("operator")
    async with described_page(chromium, gateway, at="/chains/one_1", viewport=PHONE, locale="de-DE") as page:
        await expect(page.get_by_text("Nicht mehr in der Datei")).to_be_visible()
        assert await page.evaluate(BROKEN_WORDS, "td:first-child, td[data-beside=true]") == []


async def test_a_form_of_payouts_has_fields_of_one_width_and_nothing_bright_stands_beside_a_dialog(merchants):
    page, gateway = merchants
    await resize(page, DESKTOP)
    await go(page, f"{gateway.home}/payouts/new")
    source = page.get_by_role("combobox", name="Out of")
    await source.click()
    await page.get_by_role("option").first.click()
    widths = [(await one.bounding_box())["width"] for one in (source, page.get_by_role("textbox", name="To address"))]
    assert widths[0] == pytest.approx(widths[1], abs=1)
    beside = page.locator("html")
    await go(page, f"{gateway.home}/coins")
    await page.get_by_role("button", name="Approve an address").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    shade = await beside.evaluate("one => getComputedStyle(one).backgroundColor")
    ground = await page.locator("body").evaluate("one => getComputedStyle(one).backgroundColor")
    assert shade not in {ground, "rgba(0, 0, 0, 0)"}


BEHIND_HEADER = """() => {
  scrollTo(0, document.body.scrollHeight);
  const header = document.querySelector("#main").previousElementSibling.getBoundingClientRect();
  return [...document.querySelectorAll("main :is(a, button, [tabindex='0'])")].reverse().filter((one) => {
    one.focus();
    const { top, bottom } = one.getBoundingClientRect();
    return one.checkVisibility() && top < header.bottom && bottom > header.top;
  }).map((one) => one.innerText);
}"""
"""What lies behind the header while it has the focus, on the way back from a page's end."""


async def test_whoever_goes_back_by_keys_sees_where_they_are(chromium):
    gateway = DescribedGateway("merchant", rows=25)
    async with described_page(chromium, gateway, viewport={"width": 1280, "height": 600}) as page:
        assert await page.evaluate(BEHIND_HEADER) == []
        await page.evaluate("document.documentElement.style.scrollPadding = 0")
        assert await page.evaluate(BEHIND_HEADER) != []


ENLARGED = {"width": 320, "height": 215}
"""A window of 1280 by 860 pixels, at four times the size."""

SHOWN_SIZE = "one => [one.offsetWidth, one.offsetHeight, one.closest('thead').offsetHeight]"


async def test_enlarged_four_times_a_page_has_room_below_its_header_and_shows_what_sorts_once_keys_come_to_it(
    merchants,
):
    page, gateway = merchants
    amount = "123456789012345.123456789012345678"
    change_answer(gateway, "/refunds/one_1", lambda found: {"refund": {**found["refund"], "amount": amount}})
    await resize(page, ENLARGED)
    await go(page, f"{gateway.home}/overview")
    header = page.get_by_role("region", name="Search and account")
    await expect(header).to_be_in_viewport()
    await page.mouse.wheel(0, 400)
    await expect(header).not_to_be_in_viewport()
    await go(page, f"{gateway.home}/payments")
    sort = page.get_by_role("table", name="Payments").locator("th button").first
    await page.get_by_role("search").get_by_role("button", name="Filters").focus()
    await page.keyboard.press("Tab")
    await expect(sort).to_be_focused()
    width, height, room = await sort.evaluate(SHOWN_SIZE)
    assert width > 40
    assert room >= height > 10
    await go(page, f"{gateway.home}/refunds/one_1")
    assert await page.evaluate("document.documentElement.scrollWidth") <= ENLARGED["width"]
