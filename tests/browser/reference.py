"""How a few pages looked when somebody last looked at them: ``make pictures`` takes them anew, to be looked at again.

The pages show the description's examples, at one moment, in a font that is the same on every machine.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

from playwright.async_api import Browser, Page, async_playwright

from tests.browser.answers import App
from tests.browser.conftest import ARGS, CHROMIUM
from tests.browser.described import DescribedGateway, described_page, go
from tests.support.pictures import keep

KEPT = Path("tests/browser/reference")
FONTS = Path("web/dashboard/node_modules/@fontsource/roboto/files")
WEIGHTS = (400, 700)
FONT = "roboto-{}.woff2"

STYLESHEET = (
    "\n".join(
        f"@font-face {{ font-family: Reference; font-weight: {weight}; src: url({FONT.format(weight)}) }}"
        for weight in WEIGHTS
    )
    + "\n:root { --mantine-font-family: Reference !important; --mantine-font-family-monospace: Reference !important }"
)

DESKTOP = (1280, 860)
PHONE = (390, 844)


class Picture(NamedTuple):
    """A page, and how it is looked at."""

    name: str
    path: str
    size: tuple[int, int] = DESKTOP
    scheme: Literal["light", "dark"] = "light"


PICTURES: dict[App, tuple[Picture, ...]] = {
    "merchant": (
        Picture("overview", "/overview"),
        Picture("payments", "/payments"),
        Picture("payment-phone", "/payments/one_1", size=PHONE),
        Picture("wallet-dark", "/wallet", scheme="dark"),
    ),
    "operator": (
        Picture("operator-overview", "/overview"),
        Picture("operator-chains", "/chains"),
    ),
}


def reference_gateway(app: App) -> DescribedGateway:
    fonts = {FONT.format(weight): (FONTS / f"roboto-latin-{weight}-normal.woff2").read_bytes() for weight in WEIGHTS}
    return DescribedGateway(app, stylesheet=STYLESHEET, fonts=fonts)


async def show(page: Page, gateway: DescribedGateway, picture: Picture) -> None:
    """Show a page as its picture was taken."""
    width, height = picture.size
    await page.set_viewport_size({"width": width, "height": height})
    await page.emulate_media(color_scheme=picture.scheme, reduced_motion="reduce")
    await go(page, f"{gateway.home}{picture.path}")
    await page.evaluate("document.fonts.ready.then(() => undefined)")


async def shoot(page: Page, target: Path) -> Path:
    """Take a picture of what is in sight."""
    await page.screenshot(path=target, animations="disabled", caret="hide")
    return target


async def taken(browser: Browser, app: App, folder: Path) -> AsyncIterator[tuple[Picture, Path]]:
    """Take the pictures of an app."""
    gateway = reference_gateway(app)
    async with described_page(browser, gateway) as page:
        for picture in PICTURES[app]:
            await show(page, gateway, picture)
            yield picture, await shoot(page, folder / f"{picture.name}.png")


async def renew() -> None:
    with TemporaryDirectory() as folder:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
            for app in PICTURES:
                async for picture, file in taken(browser, app, Path(folder)):
                    keep(file, KEPT / f"{picture.name}.png")
            await browser.close()


if __name__ == "__main__":
    if CHROMIUM is None:
        sys.exit("no chromium: apt-get install chromium-headless-shell")
    asyncio.run(renew())
