"""Takes pictures of the checkout in every state: ``python -m tests.browser.screenshots FOLDER [STATE ...]``.

Those in ``docs/images`` are from here; ``checkout.png`` is the pending one on a desktop.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from playwright.async_api import async_playwright

from tests.browser.conftest import CHROMIUM
from tests.browser.test_checkout_layout import PAGES, show
from tests.support.checkout_samples import SAMPLES, view

SCREENS = {"desktop": (1280, 860, 1.0), "phone": (390, 844, 2.0)}


async def take(folder: Path, names: list[str], scheme: str) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for screen, (width, height, scale) in SCREENS.items():
            context = await browser.new_context(
                viewport={"width": width, "height": height}, device_scale_factor=scale, color_scheme=scheme
            )
            page = await context.new_page()
            for name in names:
                sample = view(SAMPLES[name.removeprefix("receipt-")])
                html = PAGES.receipt(sample) if name.startswith("receipt-") else PAGES.checkout(sample)
                await page.unroute_all()
                await show(page, html)
                # The start of an animation is the same in every picture.
                await page.evaluate("document.getAnimations().forEach((animation) => animation.cancel())")
                await page.screenshot(
                    path=folder / f"checkout-{name}-{screen}{'-dark' * (scheme == 'dark')}.png", full_page=True
                )
        await browser.close()


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    asyncio.run(take(target, sys.argv[2:] or [*SAMPLES, "receipt-paid"], "light"))
