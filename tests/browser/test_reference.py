"""The visual guard: a page that lost a card or moved a column looks different; letters of another version do not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from PIL import Image

from cambist_web.dashboard.files import BUILT
from tests.browser.described import described_page
from tests.browser.reference import DESKTOP, KEPT, PICTURES, reference_gateway, shoot, show, taken
from tests.support.pictures import BLOCK_PX, BLOCKS_MAX, SCALE, differing, shrunk

IN_CI = os.environ.get("CAMBIST_TEST_CI") == "1"

pytestmark = pytest.mark.skipif(
    not ((BUILT / "dashboard.html").exists() or IN_CI), reason="the dashboards are not built: make dashboard"
)

PUT_ON = "css => { const sheet = new CSSStyleSheet(); sheet.replaceSync(css); document.adoptedStyleSheets = [sheet]; }"

IS_THE_SAME = {
    "all a pixel further": "#root { transform: translate(1px, 1px) }",
    "letters a little wider": "body { letter-spacing: 0.02px }",
    "letters a little lighter": "body { -webkit-text-stroke: 0.15px var(--card) }",
}
DIFFERS = {
    "a column moved": "td:nth-child(3), th:nth-child(3) { padding-inline-start: 48px }",
    "a column lost": "td:nth-child(2), th:nth-child(2) { display: none }",
    "a list lost": "table { visibility: hidden }",
    "the navigation lost": "aside { visibility: hidden }",
    "no filters": ".filters { display: none }",
    "other colours": ":root { --ink: #a00 }",
}


def kept(name: str) -> Image.Image:
    with Image.open(KEPT / f"{name}.png") as picture:
        return picture.convert("RGB")


@pytest.mark.parametrize("app", PICTURES)
async def test_pages_look_as_they_did_when_somebody_looked_at_them(chromium, app, tmp_path):
    changed = []
    async for picture, file in taken(chromium, app, tmp_path):
        blocks = differing(kept(picture.name), shrunk(file))
        if len(blocks) > BLOCKS_MAX:
            px = BLOCK_PX * SCALE
            where = ", ".join(f"{column * px}:{row * px}" for column, row in blocks[:: max(1, len(blocks) // 8)])
            changed.append(f"{picture.name} differs in {len(blocks)} places, such as {where}; now: {file}")
    assert changed == [], "if that is as it should be: make pictures"


async def test_letters_may_be_drawn_differently_and_nothing_may_be_lost(chromium, tmp_path):
    payments = PICTURES["merchant"][1]
    gateway = reference_gateway("merchant")
    async with described_page(chromium, gateway, at=payments.path) as page:
        await show(page, gateway, payments)
        before = shrunk(await shoot(page, tmp_path / "before.png"))

        async def apart(css: str) -> int:
            await page.evaluate(PUT_ON, css)
            return len(differing(before, shrunk(await shoot(page, tmp_path / "now.png"))))

        assert await apart("") == 0
        for what, css in IS_THE_SAME.items():
            assert await apart(css) <= BLOCKS_MAX, what
        for what, css in DIFFERS.items():
            assert await apart(css) > 2 * BLOCKS_MAX, what


async def test_a_finer_screen_shows_the_same(chromium, tmp_path):
    payments = PICTURES["merchant"][1]
    gateway = reference_gateway("merchant")
    async with described_page(chromium, gateway, at=payments.path, device_scale_factor=2) as page:
        await show(page, gateway, payments)
        fine = await shoot(page, tmp_path / "fine.png")
    with Image.open(fine) as shot:
        assert shot.size == (2 * DESKTOP[0], 2 * DESKTOP[1])
        drawn_otherwise = shot.convert("RGB").reduce(2 * SCALE)
    assert len(differing(kept(payments.name), drawn_otherwise)) <= BLOCKS_MAX


def test_pictures_of_different_sizes_differ_everywhere():
    assert len(differing(Image.new("RGB", (80, 40)), Image.new("RGB", (80, 48)))) == 60


def test_what_is_kept_is_small():
    files = list(Path(KEPT).glob("*.png"))
    assert {file.stem for file in files} == {picture.name for part in PICTURES.values() for picture in part}
    assert sum(file.stat().st_size for file in files) < 300_000
