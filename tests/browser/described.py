"""A gateway that answers what the API's own description gives as examples: every page filled, and each time the same.

What a page shows of a real gateway is tried beside this, with chains in memory and with anvil. Here it is about how
pages look, which has to be the same on every machine and at every time of the day.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import cache
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from playwright.async_api import Browser, CDPSession, Page, Route, ViewportSize

from cambist_web.dashboard.files import BuiltFiles
from cambist_web.dashboard.routes import ASSETS_PATH, OPERATORS_PATH, PAGE_HEADERS, PATH
from tests.browser.answers import CSV, SOURCES, Answers, App

GATEWAY = "https://gateway.example"
NOW = datetime.fromisoformat("2026-01-31T12:00:00+00:00")
ROWS = 8
STREAM = 'event: ready\ndata: {"resumed": true}\n\n'

PAGES: Mapping[App, tuple[str, str]] = {
    "merchant": (PATH, "dashboard.html"),
    "operator": (OPERATORS_PATH, "operator.html"),
}
SEARCHED = {"/search": "?q=pay_9q4m2k"}
OF_A_LIST = {"/trackers/$webhookId": "whk_3f2d1s"}


class Content(NamedTuple):
    """A file of the pages as a browser has it."""

    content: bytes
    media_type: str


_files = BuiltFiles()


@cache
def built(name: str) -> Content | None:
    """Return one of the built files, or None where there is none of that name."""
    file = _files.find(name)
    return file and Content(gzip.decompress(file.gzipped), file.media_type)


class View(NamedTuple):
    """How a page is looked at: how large, whether with a finger or with a mouse, by scripts that each give a list.

    Read from the right, it is laid out as in Arabic, and its words stay as they are.
    """

    size: ViewportSize
    is_touched: bool
    scripts: tuple[str, ...]
    direction: Literal["ltr", "rtl"] = "ltr"


class DescribedGateway:
    """Answers a browser in the place of a gateway. ``stylesheet`` and ``fonts`` are served with the pages' files."""

    def __init__(
        self, app: App, *, rows: int = ROWS, stylesheet: str = "", fonts: Mapping[str, bytes] | None = None
    ) -> None:
        self.app = app
        self.answers = Answers(app, rows)
        self.unknown: list[str] = []
        self._path, self._html = PAGES[app]
        self._stylesheet, self._fonts = stylesheet, fonts or {}

    @property
    def home(self) -> str:
        """The address below which this app's pages are; a merchant's are of one project."""
        if self.app == "operator":
            return f"{GATEWAY}{self._path}"
        listed = self.answers.find("GET", "/api/merchant/projects")
        assert isinstance(listed, Mapping)
        return f"{GATEWAY}{self._path}/{listed['projects'][0]['projectId']}"

    def addresses(self) -> Iterator[str]:
        """Return the address of every page, as the app's own router has them."""
        for path in re.findall(r'page\("(/[^"]+)"', (SOURCES / self.app / "router.tsx").read_text()):
            named = re.sub(r"\$\w+", OF_A_LIST.get(path, "one_1"), path)
            yield f"{self.home}{named}{SEARCHED.get(path, '')}"

    async def answer(self, route: Route) -> None:
        path = urlsplit(route.request.url).path
        if path.startswith(f"{ASSETS_PATH}/"):
            await self._send_file(route, path.removeprefix(f"{ASSETS_PATH}/"))
        elif path.endswith("/stream"):
            await route.fulfill(body=STREAM, content_type="text/event-stream")
        elif path.startswith("/api/"):
            await self._send_example(route, path)
        else:
            page = built(self._html)
            assert page is not None
            await route.fulfill(body=self._styled(page.content), headers=self._headers, content_type="text/html")

    async def _send_example(self, route: Route, path: str) -> None:
        found = self.answers.find(route.request.method, path)
        if found is None:
            self.unknown.append(f"{route.request.frame.url}: {route.request.method} {path}")
            await route.fulfill(status=404, json={"success": False, "error": "Nothing is there.", "code": "NOT_FOUND"})
        elif isinstance(found, str):
            await route.fulfill(body=found, content_type=CSV)
        else:
            await route.fulfill(json=found)

    async def _send_file(self, route: Route, name: str) -> None:
        if name == "reference.css":
            await route.fulfill(body=self._stylesheet, content_type="text/css")
        elif name in self._fonts:
            await route.fulfill(body=self._fonts[name], content_type="font/woff2")
        elif (file := built(name)) is None:
            await route.fulfill(status=404)
        else:
            await route.fulfill(body=file.content, content_type=file.media_type)

    @property
    def _headers(self) -> Mapping[str, str]:
        policy = PAGE_HEADERS["Content-Security-Policy"] + ("; font-src 'self'" if self._fonts else "")
        return {**PAGE_HEADERS, "Content-Security-Policy": policy}

    def _styled(self, html: bytes) -> bytes:
        link = f'<link rel="stylesheet" href="{ASSETS_PATH}/reference.css" /></head>'
        return html.replace(b"</head>", link.encode()) if self._stylesheet else html


WATCH = """
const now = NOW;
window.Date = class extends Date {
  constructor(...given) { super(...(given.length === 0 ? [now] : given)); }
  static now() { return now; }
};
window.breaches = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.breaches.push(`${event.violatedDirective} ${event.blockedURI}`);
});
window.asked = 0;
const fetched = window.fetch;
const READINGS = ["arrayBuffer", "blob", "bytes", "formData", "json", "text"];
window.fetch = async (...request) => {
  window.asked += 1;
  let isCounted = true;
  const read = () => {
    window.asked -= isCounted ? 1 : 0;
    isCounted = false;
  };
  try {
    const answer = await fetched(...request);
    // What is in an answer comes after its head, and a stream never ends.
    if (answer.body === null || new URL(answer.url, location.href).pathname.endsWith("/stream")) read();
    for (const name of READINGS) {
      if (name in answer) answer[name] = () => Response.prototype[name].call(answer).finally(read);
    }
    return answer;
  } catch (error) {
    read();
    throw error;
  }
};
""".replace("NOW", str(int(NOW.timestamp() * 1000)), 1)
"""Holds the time, and notes what breaches the page's policy and how many questions have no whole answer yet."""

SHOW = """async address => {
  if (address !== null && address !== location.href) {
    for (const title of document.querySelectorAll("h1")) title.dataset.before = "";
    history.pushState({}, "", address);
  }
  const frame = () => new Promise(requestAnimationFrame);
  const isShown = () => document.querySelector("h1:not([data-before])") !== null && window.asked === 0
    && document.querySelector("[role=status][aria-label=Loading]") === null;
  const until = performance.now() + 30_000;
  // Once more for what it asks for after the first answers.
  for (let times = 0; times < 2; times += 1) {
    while (!isShown()) {
      if (performance.now() > until) throw new Error(`${location.href} does not come: ${document.body.innerText}`);
      await frame();
    }
    await frame();
    await frame();
  }
}"""
"""Goes to an address within the app, where one is given, and waits until a page shows all that it asks for."""

TWO_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"

IS_TOUCHED = "matchMedia('(pointer: coarse)').matches"

FOUND = f"""async ({{ isOther, isTouched, direction }}) => {{
  document.documentElement.dir = direction;
  if (isOther) await ({TWO_FRAMES})();
  if ({IS_TOUCHED} !== isTouched) throw new Error(`it is ${{isTouched ? "no" : "still a"}} finger`);
  return [SCRIPTS].flatMap((script) => script());
}}"""
"""Waits until a page is laid out for another screen, and looks for something with each of the scripts."""


@asynccontextmanager
async def described_page(
    browser: Browser, gateway: DescribedGateway, at: str = "/overview", **options: Any
) -> AsyncIterator[Page]:
    """Open a page of this gateway's, in whose browser it is always the same moment. It keeps to its policy."""
    fixed = {"timezone_id": "UTC", "locale": "en-US", "reduced_motion": "reduce"}
    context = await browser.new_context(**{**fixed, **options})
    try:
        await context.add_init_script(WATCH)
        await context.route("**/*", gateway.answer)
        page = await context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        await page.goto(f"{gateway.home}{at}")
        await page.evaluate(SHOW)
        yield page
        wrong = [*errors, *await page.evaluate("window.breaches"), *gateway.unknown]
        assert wrong == [], wrong
    finally:
        await context.close()


async def go(page: Page, address: str) -> None:
    """Go to a page within the app, and wait until it shows all that it asks for."""
    await page.evaluate(SHOW, address)


async def found_on_every_page(page: Page, gateway: DescribedGateway, *views: View) -> list[str]:
    """Return what is found on each page of the app, with the page's address and how it was looked at.

    Going to a page takes more than looking at it: what can be looked for in one language is looked for in one turn.
    """
    found, screen = [], await Screen.of(page)
    for number, address in enumerate(gateway.addresses()):
        await go(page, address)
        # It begins as the page before was left: a page that comes as nobody looks at it is laid out for nothing.
        for view in views[:: 1 if number % 2 else -1]:
            how = f"{view.size['width']}, {view.direction}, with a {'finger' if view.is_touched else 'mouse'}"
            found += [f"{address} at {how}: {one}" for one in await screen.found(view)]
    return found


class Screen:
    """What a page is on: a screen of some size, with a finger or a mouse."""

    def __init__(self, page: Page, emulation: CDPSession, *, is_touched: bool) -> None:
        self._page, self._emulation, self._is_touched = page, emulation, is_touched

    @classmethod
    async def of(cls, page: Page) -> Screen:
        emulation = await page.context.new_cdp_session(page)
        return cls(page, emulation, is_touched=await page.evaluate(IS_TOUCHED))

    async def turn(self, size: ViewportSize, *, is_touched: bool) -> bool:
        """Have the page on such a screen, and return whether that is another."""
        was = (self._is_touched, self._page.viewport_size)
        if self._is_touched != is_touched:
            await self._emulation.send("Emulation.setTouchEmulationEnabled", {"enabled": is_touched})
            self._is_touched = is_touched
        if self._page.viewport_size != size:
            await self._page.set_viewport_size(size)
        return was != (is_touched, size)

    async def found(self, view: View) -> list[str]:
        """Return what is found on the page as it is laid out for such a screen: one turn, as each draws it anew."""
        is_other = await self.turn(view.size, is_touched=view.is_touched)
        how = {"isOther": is_other, "isTouched": view.is_touched, "direction": view.direction}
        found: list[str] = await self._page.evaluate(FOUND.replace("SCRIPTS", ", ".join(view.scripts)), how)
        return found


async def resize(page: Page, size: ViewportSize | None) -> None:
    """Give the page's window this size, and wait until the page is laid out in it."""
    if size is not None and size != page.viewport_size:
        await page.set_viewport_size(size)
        await page.evaluate(TWO_FRAMES)
