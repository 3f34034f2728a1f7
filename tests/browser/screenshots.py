"""Takes pictures of the checkout in every state: ``python -m tests.browser.screenshots FOLDER [STATE ...]``.

States of an account's page are called ``account-STATE``. Those in ``docs/images`` are from here; ``checkout.png``
is the pending one on a desktop, ``account.png`` the used one. ``merchant`` and ``operator`` are every page of a
dashboard with the description's examples on it, and all that its buttons open, to be looked at; those in
``docs/images`` are of ``cambist demo``.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from playwright.async_api import Page, async_playwright

from tests.browser.answers import App
from tests.browser.conftest import ARGS, CHROMIUM
from tests.browser.described import PAGES as PAGES_OF_APPS
from tests.browser.described import DescribedGateway, described_page, go
from tests.browser.dialogs import lay_out, opened
from tests.browser.test_checkout_layout import PAGES, show
from tests.support import account_samples
from tests.support.checkout_samples import SAMPLES, view

SCREENS = {"desktop": (1280, 860, 1.0), "phone": (390, 844, 2.0)}

PATIENCE_MS = 120_000

DASHBOARD_SCREENS = {
    "desktop": (1280, 860, "light"),
    "dark": (1280, 860, "dark"),
    "phone": (360, 740, "light"),
    "4k": (3840, 2160, "light"),
}
ACCOUNT = "account-"


def drawn(name: str) -> str:
    """Return the page of this state."""
    if name.startswith(ACCOUNT):
        return PAGES.account(account_samples.SAMPLES[name.removeprefix(ACCOUNT)])
    sample = view(SAMPLES[name.removeprefix("receipt-")])
    return PAGES.receipt(sample) if name.startswith("receipt-") else PAGES.checkout(sample)


async def take(folder: Path, names: list[str], scheme: str) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        for screen, (width, height, scale) in SCREENS.items():
            context = await browser.new_context(
                viewport={"width": width, "height": height}, device_scale_factor=scale, color_scheme=scheme
            )
            page = await context.new_page()
            for name in names:
                html = drawn(name)
                await page.unroute_all()
                await show(page, html)
                # The start of an animation is the same in every picture.
                await page.evaluate("document.getAnimations().forEach((animation) => animation.cancel())")
                file = name if name.startswith(ACCOUNT) else f"checkout-{name}"
                dark = "-dark" * (scheme == "dark")
                await page.screenshot(path=folder / f"{file}-{screen}{dark}.png", full_page=True)
        await browser.close()


async def take_dashboard(folder: Path, app: App) -> None:
    """Take every page of a dashboard on every screen, and what can be opened there."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        gateway = DescribedGateway(app)
        addresses = list(gateway.addresses())
        async with described_page(browser, gateway) as page:
            page.set_default_timeout(PATIENCE_MS)
            for screen, (width, height, scheme) in DASHBOARD_SCREENS.items():
                await page.set_viewport_size({"width": width, "height": height})
                await page.emulate_media(color_scheme=scheme)
                for number, address in enumerate(addresses):
                    await go(page, address)
                    name = address.removeprefix(gateway.home).partition("?")[0].strip("/").replace("/", "-")
                    await page.screenshot(path=folder / f"{app}-{name}-{screen}.png", full_page=True)
                    if screen != "4k":
                        base = folder / f"{app}-{name}-{screen}"
                        await take_opened(page, address, addresses[number - 1], base)
        await browser.close()


async def take_opened(page: Page, address: str, another: str, base: Path) -> None:
    """Take the forms of a page and its dialogs, all that can be open at once in one picture."""
    number = 0
    async for shown in opened(page, address, another=another):
        number += 1
        if shown.has_forms:
            await page.screenshot(path=f"{base}-forms-{number}.png", full_page=True)
        if shown.dialogs:
            await lay_out(page)
            await page.screenshot(path=f"{base}-dialogs-{number}.png", full_page=True)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    accounts = [f"{ACCOUNT}{name}" for name in account_samples.SAMPLES]
    target.mkdir(parents=True, exist_ok=True)
    wanted = sys.argv[2:] or [*SAMPLES, "receipt-paid", *accounts]
    for app in PAGES_OF_APPS.keys() & set(wanted):
        asyncio.run(take_dashboard(target, app))
    if states := [name for name in wanted if name not in PAGES_OF_APPS]:
        asyncio.run(take(target, states, "light"))
