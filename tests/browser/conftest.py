"""A real browser: Debian's chromium, driven by Playwright. Without it the tests skip, but never in CI."""

import os
import shutil

import pytest
from playwright.async_api import async_playwright, expect

from tests.support.checkout import CheckoutEnv, checkout_app, serving

# The first draws pages as the others do and has no windows around them: a page takes a third of the CPU time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)

# A sandbox of its own needs user namespaces, which containers running as root do not have. Letters are as wide on every
# machine as their font says.
ARGS = ["--no-sandbox", "--font-render-hinting=none", "--disable-lcd-text", "--force-color-profile=srgb"]

# What a page's own scripts cannot hide: a breach of its policy is noted before any of them runs.
WATCH = """
window.breaches = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.breaches.push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""


@pytest.fixture(scope="session")
async def chromium():
    if CHROMIUM is None:
        reason = "no chromium: apt-get install chromium-headless-shell"
        if os.environ.get("CAMBIST_TEST_CI") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    expect.set_options(timeout=15_000)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield browser
        await browser.close()


@pytest.fixture
async def open_page(chromium):
    """Give a function that opens a page, which at the end must have kept its policy and raised no error."""
    contexts, unseen, errors = [], [], []

    async def note_breaches(page):
        unseen.remove(page)
        errors.extend(await page.evaluate("window.breaches"))

    async def open_page(**options):
        # Without a language of its own it takes the environment's, which may be none.
        usual = {"viewport": {"width": 1280, "height": 860}, "locale": "en-US"}
        context = await chromium.new_context(**usual | options)
        contexts.append(context)
        await context.add_init_script(WATCH)
        page = await context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("dialog", lambda dialog: errors.append(f"dialog: {dialog.message}"))
        if not options.get("java_script_enabled", True):
            return page
        unseen.append(page)
        close = page.close

        async def close_seen(**kwargs):
            await note_breaches(page)
            await close(**kwargs)

        page.close = close_seen
        return page

    yield open_page
    for page in [*unseen]:
        await note_breaches(page)
    for context in contexts:
        await context.close()
    assert errors == []


@pytest.fixture
async def checkout_env(db, clock, ids):
    return await CheckoutEnv(db, clock, ids).open()


@pytest.fixture
async def url(checkout_env):
    async with serving(checkout_app(checkout_env.checkout())) as url:
        yield url
