"""How long the dashboard takes to filter, sort and page ten thousand payments: from the key to the paint."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import statistics
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import asyncpg
from _gateway import PASSWORD, Shop, open_shop, simulated_gateway
from _harness import Row, at_most, percentile, report, sized, unjudged
from _payment_sides import PAYMENT
from playwright.async_api import TimeoutError as PageTimeoutError
from playwright.async_api import async_playwright

PAYMENTS = sized(10_000, tiny=30)
TIMES = sized(20, tiny=1)
WARM_UP = sized(1, tiny=0)
CLIENTS = 8
AIM_MS = 100.0
PAINT_TIMEOUT_S = 30.0
LOST_KEY_MS = 2_000.0
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
STATUSES = """
UPDATE payments SET status = CASE WHEN id % 3 = 0 THEN 'expired' WHEN id % 5 = 1 THEN 'paid' ELSE status END
WHERE project_pk = (SELECT id FROM projects WHERE project_id = $1)
"""
PAID, EXPIRED = "Paid", "Expired"

# By the browser's own clock: from the moment of the event to the first task after the frame in which the table shows
# rows that were not there before. Texts are compared as they stand in the document: as they are shown (`innerText`), to
# compare them would lay out the page anew, for 10 to 20 ms of what is measured.
WATCH = """
window.watch_paint = () => { window.painted = new Promise((resolve) => {
  const text = (of) => document.querySelector(of)?.textContent;
  const shown = () => text("tbody") + text("nav [role=status]");
  const before = shown();
  let began = null;
  const begin = (event) => { began = event.timeStamp; };
  for (const kind of ["keydown", "input"]) document.addEventListener(kind, begin, { capture: true });
  const observer = new MutationObserver(() => {
    if (began === null || shown() === before) return;
    observer.disconnect();
    for (const kind of ["keydown", "input"]) document.removeEventListener(kind, begin, { capture: true });
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => resolve(performance.now() - began);
      channel.port2.postMessage(null);
    });
  });
  observer.observe(document.querySelector("#main"), { childList: true, characterData: true, subtree: true });
}); };
"""


class Reader:
    """A merchant at the list of payments, with nothing but a keyboard."""

    def __init__(self, page: Any) -> None:
        self.page = page

    async def sign_in(self, shop: Shop) -> None:
        page = self.page
        await page.goto(f"http://127.0.0.1:{shop.port}/dashboard/")
        await page.get_by_label("E-mail").fill(shop.email)
        await page.get_by_role("textbox", name="Password").fill(PASSWORD)
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_role("navigation", name="Navigation").wait_for()

    async def begin(self, shop: Shop) -> None:
        """Open the list anew, with no filter."""
        await self.page.goto(f"http://127.0.0.1:{shop.port}/dashboard/{shop.project_id}/payments")
        await self.page.get_by_role("row").nth(1).wait_for()

    async def sort(self) -> None:
        """Turn the order around."""
        button = self.page.get_by_role("button", name="Created")
        await button.focus()
        await self.page.keyboard.press("Enter")

    async def choose(self, status: str) -> None:
        """Show those of one status."""
        await self.page.get_by_role("combobox", name="Status").focus()
        chosen = self.page.locator("[role=option][data-combobox-selected]")
        for _ in range(20):
            before = await chosen.inner_text() if await chosen.count() else None
            await self.page.keyboard.press("ArrowDown")
            # The key is taken before the list shows what it did: another one would go past what is wanted. A list that
            # has just opened may go back to its first line after a key, which is then pressed again.
            others = chosen if before is None else chosen.filter(has_not_text=re.compile(f"^{re.escape(before)}$"))
            with contextlib.suppress(PageTimeoutError):
                await others.wait_for(timeout=LOST_KEY_MS)
            if await chosen.count() and await chosen.inner_text() == status:
                break
        else:
            raise AssertionError(f"no status {status} can be chosen")
        await self.page.keyboard.press("Enter")

    async def find(self, order: str) -> None:
        """Take back the letter that was one too many."""
        text = self.page.get_by_role("textbox", name="Order number")
        await text.fill(f"{order}x")
        await self.page.get_by_text("No payment is like that").wait_for()
        await text.press("End")

    async def timed(self, act: Any) -> float:
        """Do it, and return the milliseconds from its last key to the paint."""
        await self.page.evaluate("window.watch_paint()")
        await act
        return float(await asyncio.wait_for(self.page.evaluate("window.painted"), PAINT_TIMEOUT_S))


async def measure(shop: Shop) -> Sequence[Row]:
    chromium = next(filter(None, map(shutil.which, BROWSERS)))
    sorted_ms, filtered_ms, typed_ms, paged_ms = [], [], [], []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = await browser.new_page(viewport={"width": 1280, "height": 860}, locale="en-US")
        await page.add_init_script(WATCH)
        reader = Reader(page)
        await reader.sign_in(shop)
        for number in range(WARM_UP + TIMES):
            await reader.begin(shop)
            sorted_ms += [await reader.timed(reader.sort()) for _ in range(2)]
            filtered_ms += [await reader.timed(reader.choose(status)) for status in (EXPIRED, PAID)]
            await reader.begin(shop)
            await reader.find(f"order-{7 * number % PAYMENTS}")
            typed_ms.append(await reader.timed(page.keyboard.press("Backspace")))
            await reader.begin(shop)
            await page.get_by_role("button", name="Next").focus()
            paged_ms.append(await reader.timed(page.keyboard.press("Enter")))
        await browser.close()
    rows = []
    for what, found in (
        ("sorted", sorted_ms),
        ("filtered by status", filtered_ms),
        ("an order found, from its last letter", typed_ms),
        ("the next page", paged_ms),
    ):
        times = found[len(found) // (WARM_UP + TIMES) * WARM_UP :]
        rows += [
            at_most(f"{what}, p99", percentile(times, 0.99), AIM_MS, " ms"),
            unjudged(f"{what}, p50", f"{statistics.median(times):.0f} ms"),
        ]
    return rows


async def fill(shop: Shop, database_url: str) -> None:
    """Have as many payments, of three statuses."""
    with ThreadPoolExecutor(CLIENTS) as clients:
        asked = ({**PAYMENT, "orderId": f"order-{number}"} for number in range(PAYMENTS))
        for _ in clients.map(lambda body: shop.post("/api/payment", body), asked):
            pass
    conn = await asyncpg.connect(database_url)
    await conn.execute(STATUSES, shop.project_id)
    await conn.close()


async def run(port: int, database_url: str) -> Sequence[Row]:
    shop = open_shop(port, mode="sandbox")
    await fill(shop, database_url)
    return await measure(shop)


def main() -> None:
    with simulated_gateway(workers=1) as (port, database_url):
        rows = asyncio.run(run(port, database_url))
    report(
        "Looking through payments in the dashboard",
        rows,
        note=f"{PAYMENTS:,} payments; from the key to the paint, by the browser's clock; chromium on the same cores",
    )


if __name__ == "__main__":
    main()
