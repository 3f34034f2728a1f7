"""The dashboard in a browser, on chains in memory: a merchant's first hour, and what every page keeps to."""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import stripe
from aiohttp import web
from playwright.async_api import expect

from cambist_web.dashboard.files import BUILT
from tests.browser.contrast import UNREADABLE
from tests.support.checkout import serving
from tests.support.web import PASSWORD, lent_app, memory_gateway, web_settings
from tests.support.webhooks import receiver

EMAIL = "ada@shop.example"
AXE = Path("web/dashboard/node_modules/axe-core/axe.min.js")
IN_CI = os.environ.get("CAMBIST_TEST_CI") == "1"
DESKTOP = {"width": 1280, "height": 860}
PHONE = {"width": 360, "height": 740}

pytestmark = pytest.mark.skipif(
    not ((BUILT / "dashboard.html").exists() or IN_CI), reason="the dashboard is not built: make dashboard"
)


@pytest.fixture(scope="session")
def axe() -> str:
    return AXE.read_text()


@pytest.fixture
async def url(database_url, redis_url, clock, ids):
    settings = web_settings(database_url, redis_url)
    async with memory_gateway(settings, clock, ids) as gateway, lent_app(gateway) as app, serving(app) as url:
        yield url


# A change of colours styles and paints the whole page anew: first comes the scheme that it is left in already. What is
# not about colours is the same in the other one. To hand over all that axe answers, which names every element that
# passed, took most of a second. And of what it fetches before, rules that are at work read media alone: style sheets,
# which it would parse anew each time, are for rules that nobody switched on.
VIOLATIONS = f"""async (part) => {{
  if (!("axe" in window)) return null;
  const {{ dataset }} = document.documentElement;
  const [scheme, other] = dataset.mantineColorScheme === "dark" ? ["dark", "light"] : ["light", "dark"];
  dataset.mantineColorScheme = scheme;
  const rules = {{ "color-contrast": {{ enabled: part === "" }} }};
  const options = {{ rules, resultTypes: ["violations"], preload: {{ assets: ["media"] }} }};
  const {{ violations }} = await axe.run(part === "" ? document : part, options);
  const found = violations.map(({{ id, nodes }}) => `${{scheme}} ${{id}}: ${{nodes[0].html.slice(0, 200)}}`);
  return [...found, ...({UNREADABLE})(part, [scheme, other])];
}}"""


async def violations(page, axe: str, *, part: str = "") -> list[str]:
    """Return what axe finds wrong with the page as it is, or with a part of it, in light and in dark.

    Whether words can be read is for axe to say, too, of a whole page.
    """
    if (found := await page.evaluate(VIOLATIONS, part)) is None:
        await page.evaluate(axe)
        found = await page.evaluate(VIOLATIONS, part)
    return found


async def look_over(page, axe: str) -> None:
    """Read what came in, in numbers and drawn."""
    await page.get_by_role("link", name="Overview").click()
    await expect(page.get_by_role("region", name="By coin").get_by_role("row", name="USDX")).to_contain_text("25")
    await expect(page.get_by_role("img", name="What came in")).to_be_visible()
    assert await violations(page, axe, part="main") == []


async def filter_and_sort(page) -> None:
    """Take filters away, look for days when nothing was, and turn the order around."""
    await page.get_by_role("button", name="Clear the filters").click()
    rows = page.get_by_role("table", name="Payments").locator("tbody tr")
    await expect(rows).to_have_count(1)
    await page.get_by_label("From").focus()
    await page.keyboard.type("01312031", delay=30)
    await expect(page.get_by_text("No payment is like that")).to_be_visible()
    assert "from=2031-01-31" in page.url
    await page.get_by_role("button", name="Clear the filters").click()
    await expect(page.get_by_label("From")).to_have_value("")
    await page.get_by_role("button", name="Created").click()
    await expect(page.get_by_role("columnheader", name="Created")).to_have_attribute("aria-sort", "ascending")
    await expect(rows).to_have_count(1)


async def read_every_page(page) -> None:
    """Go wherever the navigation leads: each page shows what the API answered, which is nothing yet or little."""
    links = page.get_by_role("navigation", name="Navigation").get_by_role("link")
    for index in range(await links.count()):
        link = links.nth(index)
        name = (await link.inner_text()).strip()
        await link.click()
        await expect(page.get_by_role("heading", name=name, level=1, exact=True)).to_be_visible()
        await expect(page.get_by_role("status", name="Loading")).to_have_count(0)
        assert await page.get_by_role("alert").all_inner_texts() == [], name


async def sign_up(page, url: str) -> None:
    await page.goto(f"{url}/dashboard/sign-up")
    await page.get_by_label("Name").fill("Ada's shop")
    await page.get_by_label("E-mail").fill(EMAIL)
    await page.get_by_role("textbox", name="Password").fill(PASSWORD)
    await page.get_by_role("button", name="Create the account").click()
    await expect(page.get_by_role("heading", name="Your first project")).to_be_visible()
    await page.get_by_label("Name").fill("Nordlicht")
    await page.get_by_role("button", name="Create the project").click()
    await page.get_by_role("button", name="Open the project").click()
    await expect(page.get_by_role("list", name="First steps")).to_be_visible()


async def sign_up_to_payments(page, url: str) -> None:
    """Sign up, and go to where the first payment will be listed."""
    await sign_up(page, url)
    await page.goto(page.url.replace("/overview", "/payments"))
    await expect(page.get_by_text("No payments yet")).to_be_visible()


BEGUN = {"overview": "First steps", "payments": "No payments yet", "webhooks": "No URL is set"}
"""What parts of a new project's pages say once they are there."""


async def begin(page, url: str, part: str = "payments") -> None:
    """Be in a part of a new project's pages, without those that lead there, which other tests go through."""
    body = {"name": "Ada's shop", "email": EMAIL, "password": PASSWORD}
    signed = await page.request.post(f"{url}/api/auth/register", data=body)
    assert signed.status == 201, await signed.text()
    bearer = {"Authorization": f"Bearer {(await signed.json())['accessToken']}"}
    project = {"name": "Nordlicht", "mode": "sandbox"}
    made = await page.request.post(f"{url}/api/merchant/projects", data=project, headers=bearer)
    assert made.status == 201, await made.text()
    await page.goto(f"{url}/dashboard/{(await made.json())['project']['projectId']}/{part}")
    await expect(page.get_by_text(BEGUN[part]).first).to_be_visible()


async def take_first_steps(page, axe: str) -> None:
    """Pay in the guide itself; what is not done yet is still there, and it can be hidden."""
    steps = page.get_by_role("list", name="First steps")
    await expect(steps.get_by_text("To do")).to_have_count(4)
    assert await violations(page, axe, part="main") == []
    await steps.get_by_role("button", name="Make a payment and pay it").click()
    await expect(steps.get_by_text("To do")).to_have_count(3)
    await expect(page.get_by_role("region", name="By coin").get_by_role("row")).to_have_count(2)
    assert await violations(page, axe, part="main") == []
    await page.get_by_role("button", name="Hide").click()
    await expect(steps).to_be_hidden()
    await page.reload()
    await expect(page.get_by_role("region", name="By coin")).to_be_visible()
    await expect(steps).to_be_hidden()


# What moved on the page, in the browser's own measure: 0 is nothing, and what whoever looks has just done counts not.
SHIFTS = """
window.shifted = 0;
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifted += one.value;
}).observe({ type: "layout-shift", buffered: true });
"""


async def test_a_new_merchant_is_shown_the_first_steps_and_nothing_moves_while_they_come_on_a_desk_or_a_phone(
    open_page, url, axe
):
    page = await open_page()
    await page.add_init_script(SHIFTS)
    await begin(page, url, "overview")

    async def slowly(route):
        await asyncio.sleep(0.3)
        await route.continue_()

    await page.route("**/webhook-endpoints?*", slowly)
    for size in (PHONE, DESKTOP):
        await page.set_viewport_size(size)
        await page.reload()
        await expect(page.get_by_role("list", name="First steps")).to_be_visible()
        await expect(page.get_by_role("region", name="Balances")).to_be_visible()
        await expect(page.get_by_role("status", name="Loading")).to_have_count(0)
        assert await page.evaluate("window.shifted") == 0, size
    await page.unroute("**/webhook-endpoints?*")
    await take_first_steps(page, axe)


def check_and_refuse(shop) -> None:
    """Let a merchant's server check signatures by the secret that it is given last."""

    async def answer(request):
        del request
        try:
            shop.received[-1].verify(shop.secret)
        except stripe.SignatureVerificationError:
            return web.Response(status=401)
        return web.Response(status=204)

    shop.answer = answer


async def test_a_merchant_adds_an_endpoint_and_sees_whether_it_checks_signatures(open_page, url, axe):
    page = await open_page()
    await begin(page, url, "webhooks")
    targets = page.get_by_role("table", name="Where events go")
    await expect(targets).to_contain_text("No URL is set")
    async with receiver() as shop:
        await page.get_by_role("button", name="Add an endpoint").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("URL").fill(shop.url)
        await dialog.get_by_role("button", name="Only some").click()
        await dialog.get_by_role("checkbox", name="payment.paid").check()
        assert await violations(page, axe, part="[role=dialog]") == []
        await dialog.get_by_role("button", name="Add an endpoint").click()
        secret = page.get_by_role("region", name="Where events go").locator("code")
        shop.secret = await secret.inner_text()
        assert await violations(page, axe, part="main") == []
        await page.get_by_role("button", name="Done").click()
        await targets.get_by_role("link", name=shop.url).click()
        checks = page.get_by_role("region", name="Does this server check signatures?")
        await checks.get_by_role("button", name="Check it now").click()
        await expect(checks).to_contain_text("Does not check")
        assert await violations(page, axe, part="main") == []
        check_and_refuse(shop)
        await checks.get_by_role("button", name="Check it now").click()
        await expect(checks).to_contain_text("Verified")
        await page.get_by_role("button", name="Send a test").click()
        await expect(page.get_by_role("region", name="Try your receiver out")).to_contain_text("Delivered")
        await page.get_by_role("button", name="Pause").click()
        await dialog.get_by_role("button", name="Pause").click()
        await expect(dialog).to_be_hidden()
        await expect(page.get_by_role("button", name="Resume")).to_be_visible()
        assert await violations(page, axe, part="main") == []
        log = page.get_by_role("table", name="Deliveries")
        await expect(log.get_by_role("row", name=re.compile("webhook.test"))).to_have_count(4)
        await log.get_by_role("link").first.click()
        await expect(page.get_by_text("isTest")).to_be_visible()
        assert await violations(page, axe, part="main") == []


async def fill_in_a_payment(page) -> None:
    await page.get_by_role("link", name="New payment").first.click()
    # Until the page has come there is the list, one of whose filters is called Chain, too.
    await expect(page.get_by_role("heading", name="New payment", level=1)).to_be_visible()
    await page.get_by_role("combobox", name="Chain").click()
    await page.get_by_role("option").first.click()
    await page.get_by_role("combobox", name="Token").click()
    await page.get_by_role("option", name=re.compile("^USDX")).click()
    await page.get_by_text("Priced in the token").click()
    await page.get_by_label("Amount").fill("25")
    await page.get_by_label("Order").fill("NC-1")
    # It moves the button down: a press that began above it would not reach it.
    await expect(page.get_by_text("The customer would pay now")).to_be_visible()


async def test_a_payment_is_paid_mined_and_reorganized_on_its_own_page(open_page, url, axe):
    page = await open_page()
    await begin(page, url)
    await fill_in_a_payment(page)
    await page.get_by_role("button", name="Create the payment").click()
    panel = page.get_by_role("region", name="Sandbox: be the customer and the chain")
    deposits = page.get_by_role("region", name="Deposits").get_by_role("listitem")
    await panel.get_by_role("button", name="Pay 25 USDX").click()
    await expect(deposits).to_have_count(1)
    await expect(panel.get_by_role("button", name="Pay 25 USDX")).to_have_count(0)
    assert await violations(page, axe, part="main") == []
    # The block that it came in is taken back, and the deposit with it.
    await panel.get_by_role("button", name="Reorganize").click()
    await expect(page.get_by_text("Nothing has come yet")).to_be_visible()
    await panel.get_by_role("button", name="Pay 25 USDX").click()
    await expect(deposits).to_have_count(1)
    await panel.get_by_role("button", name="Mine").click()
    await expect(page.get_by_text("Paid", exact=True)).to_be_visible()
    # Whatever names a payment leads to it.
    order = page.get_by_text("NC-1", exact=True)
    await page.get_by_role("link", name="Overview").click()
    await expect(order).to_have_count(0)
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox", name="What do you want to do?").fill("NC-1")
    await page.get_by_role("option", name=re.compile("^Payment · pay_")).click()
    await expect(order).to_be_visible()


async def test_a_merchant_signs_up_is_paid_in_the_sandbox_and_refunds(open_page, url, axe):
    page = await open_page()
    await page.goto(f"{url}/dashboard/")
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert await violations(page, axe) == []
    await sign_up_to_payments(page, url)
    await expect(page.get_by_role("note")).to_contain_text("Sandbox")
    assert await violations(page, axe) == []

    await fill_in_a_payment(page)
    assert await violations(page, axe, part="main") == []
    await page.get_by_role("button", name="Create the payment").click()
    await expect(page.get_by_text("Pending", exact=True)).to_be_visible()
    await expect(page.get_by_text("Nothing has come yet")).to_be_visible()
    assert await violations(page, axe, part="main") == []

    # What a customer does, the sandbox does when it is asked to.
    payment = page.url.rpartition("/")[2]
    project = re.search("prj_[^/]+", page.url)[0]
    async with httpx.AsyncClient(base_url=url) as client:
        signed = (await client.post("/api/auth/login", json={"email": EMAIL, "password": PASSWORD})).json()
        bearer = {"Authorization": f"Bearer {signed['accessToken']}"}
        deposit = {"paymentId": payment, "amount": "25", "confirmations": 30}
        path = f"/api/dashboard/projects/{project}/sandbox/deposit"
        paid = await client.post(path, json=deposit, headers=bearer)
        assert paid.status_code in {200, 201}, paid.text
    await expect(page.get_by_text("Paid", exact=True)).to_be_visible()
    await expect(page.get_by_text("payment.paid")).to_be_visible()

    await page.get_by_role("button", name="Refund").click()
    dialog = page.get_by_role("dialog", name="Send money back")
    await dialog.get_by_label("To address").fill("not an address")
    await dialog.get_by_role("button", name="Refund").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("INVALID_ADDRESS")
    assert await violations(page, axe) == []
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()

    await look_over(page, axe)

    await page.get_by_role("link", name="Payments").first.click()
    await expect(page.get_by_role("row", name=re.compile("NC-1"))).to_be_visible()
    await page.get_by_role("combobox", name="Status").click()
    await page.get_by_role("option", name="Expired").click()
    await expect(page.get_by_text("No payment is like that")).to_be_visible()
    assert "status=expired" in page.url
    await page.reload()
    await expect(page.get_by_text("No payment is like that")).to_be_visible()
    await filter_and_sort(page)
    await read_every_page(page)


async def test_a_session_is_in_no_storage_survives_a_reload_and_ends_everywhere(open_page, url):
    page = await open_page()
    await begin(page, url)
    kept = await page.evaluate("JSON.stringify({...localStorage, ...sessionStorage}) + document.cookie")
    assert "eyJ" not in kept
    await page.reload()
    await expect(page.get_by_text("No payments yet")).to_be_visible()
    other = await page.context.new_page()
    await other.goto(page.url)
    await expect(other.get_by_text("No payments yet")).to_be_visible()
    await page.get_by_role("button", name=re.compile("account")).click()
    await page.get_by_role("menuitem", name="Sign out").click()
    for one in (page, other):
        await expect(one.get_by_role("heading", name="Sign in")).to_be_visible()
    # Who asked for it need not be told.
    await expect(other.get_by_text("You have been signed out.")).to_be_visible()
    await expect(page.get_by_text("You have been signed out.")).to_have_count(0)
    await page.go_back()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


@asynccontextmanager
async def held_back(page, name):
    """Keep the built file of a part of the page from coming until the block ends."""
    coming = asyncio.Event()

    async def hold(route):
        await coming.wait()
        await route.continue_()

    pattern = f"**/{name}-*.js"
    await page.route(pattern, hold)
    try:
        yield
    finally:
        coming.set()


async def test_what_is_opened_before_its_file_has_come_is_used_by_keyboard_and_so_are_pages_which_fit_a_phone(
    open_page, url, axe
):
    page = await open_page()
    async with held_back(page, "PaletteSearch"):
        await begin(page, url)
        await page.keyboard.press("Control+k")
        await page.keyboard.type("new pa")
        field = page.get_by_label("What do you want to do?")
        await expect(field).to_have_value("new pa")
    await expect(page.get_by_role("option", name="New payment")).to_be_visible()
    await page.keyboard.type("y")
    await expect(field).to_have_value("new pay")
    await page.keyboard.press("Escape")
    await expect(field).to_have_count(0)

    button = page.get_by_role("button", name="Colours and language")
    async with held_back(page, "PreferencesMenu"):
        await page.reload()
        await expect(page.get_by_text("No payments yet")).to_be_visible()
        await button.focus()
        await page.keyboard.press("Enter")
        await expect(button).to_have_attribute("aria-expanded", "true")
        await expect(button).to_be_focused()
    menu = page.get_by_role("menu", name="Colours and language")
    await expect(menu.get_by_role("menuitemradio", name="Light")).to_be_focused()
    await page.keyboard.press("ArrowDown")
    await expect(menu.get_by_role("menuitemradio", name="Dark")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(menu).to_be_hidden()
    await expect(button).to_be_focused()
    await button.click()
    await expect(menu).to_be_visible()
    await button.click()
    await expect(menu).to_be_hidden()
    await use_a_phone(page, axe)


async def use_a_phone(page, axe: str) -> None:
    """Have the page fit a phone, whose header names the mode, and go on by keyboard."""
    mode = page.get_by_role("region", name="Search and account").locator("span", has_text=re.compile("^Sandbox$"))
    await expect(mode.first).to_be_hidden()
    await page.set_viewport_size(PHONE)
    await expect(mode.first).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert await violations(page, axe) == []
    await page.keyboard.press("Control+k")
    await page.keyboard.type("new pay")
    await expect(page.get_by_role("option", name="New payment")).to_be_visible()
    assert await violations(page, axe) == []
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="New payment")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


async def test_whatever_does_not_come_while_the_gateway_is_away_is_told_and_comes_once_it_can_or_is_loaded_anew(
    open_page, url
):
    page = await open_page()
    await begin(page, url)
    await an_answer_does_not_come(page)
    await a_page_does_not_come(page)
    await nothing_comes(page, url)
    await a_page_is_gone(page)


async def an_answer_does_not_come(page) -> None:
    await page.route("**/api/dashboard/**/payments?*", lambda route: route.abort())
    await page.reload()
    await expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
    await page.unroute("**/api/dashboard/**/payments?*")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_text("No payments yet")).to_be_visible()


async def a_page_does_not_come(page) -> None:
    # As while the gateway is being restarted: nothing of a page comes that was not gone to before.
    await page.route("**/dashboard-assets/*.css", lambda route: route.abort())
    await page.get_by_role("link", name="Usage and plan").click()
    await expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
    await page.unroute("**/dashboard-assets/*.css")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("heading", name="Usage and plan", level=1)).to_be_visible()


async def nothing_comes(page, url: str) -> None:
    """Go to other pages, and lose neither them nor the way back."""
    await page.route(f"{url}/**", lambda route: route.abort())
    # Of these, one has a style sheet of its own, and the other nothing but scripts.
    for name in ("Team", "Audit log"):
        await page.get_by_role("link", name=name).click()
        await expect(page.get_by_role("heading", name=name, level=1)).to_have_count(0)
        await expect(page.locator("main").get_by_role("alert")).to_contain_text("cannot be reached")
    await page.unroute(f"{url}/**")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("heading", name="Audit log", level=1)).to_be_visible()


async def a_page_is_gone(page) -> None:
    """Go to a page whose file has had another name since an upgrade, also where it is asked for before the click."""
    is_anew = asyncio.Event()

    async def gone(route):
        await (route.continue_() if is_anew.is_set() else route.fulfill(status=404))

    page.on("request", lambda request: is_anew.set() if request.is_navigation_request() else None)
    await page.route("**/WalletPage-*.js", gone)
    await page.evaluate("window.isOld = true")
    await page.get_by_role("link", name="Wallet").click()
    await expect(page.get_by_role("heading", name="Wallet", level=1)).to_be_visible()
    assert await page.evaluate("window.isOld") is None
