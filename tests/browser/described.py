"""A gateway that answers what the API's own description gives as examples: every page filled, and each time the same.

What a page shows of a real gateway is tried beside this, with chains in memory and with anvil. Here it is about how
pages look, which has to be the same on every machine and at every time of the day.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from playwright.async_api import Browser, Page, Route

from cambist_web.dashboard.files import BuiltFiles
from cambist_web.dashboard.routes import ASSETS_PATH, OPERATORS_PATH, PAGE_HEADERS, PATH

App = Literal["merchant", "operator"]

SOURCES = Path("web/dashboard/src")
GATEWAY = "https://gateway.example"
NOW = datetime.fromisoformat("2026-01-31T12:00:00+00:00")
ROWS = 8
STREAM = 'event: ready\ndata: {"resumed": true}\n\n'

# What is in a tracker is read as the merchant's own programs read it.
DESCRIPTIONS: Mapping[App, tuple[str, ...]] = {"merchant": ("dashboard", "merchant"), "operator": ("operator",)}
PAGES: Mapping[App, tuple[str, str]] = {
    "merchant": (PATH, "dashboard.html"),
    "operator": (OPERATORS_PATH, "operator.html"),
}
ONE_COIN = frozenset({"/api/admin/collections/addresses/{address}", "/api/admin/reconcile/{jobId}"})
"""What answers rows that are told apart by their coin, of which examples have one."""
SEARCHED = {"/search": "?q=pay_9q4m2k"}
OF_A_LIST = {"/trackers/$webhookId": "whk_3f2d1s"}


class Described(NamedTuple):
    """One operation's answer."""

    method: str
    pattern: re.Pattern[str]
    answer: Mapping[str, Any]


class Answers:
    """The examples of one app's API."""

    def __init__(self, app: App, rows: int) -> None:
        self._all = sorted(
            (one for name in DESCRIPTIONS[app] for one in _described(name, rows)),
            # Of two that fit, the one that leaves less open: what lists all is not one that is called "list".
            key=lambda one: one.pattern.pattern.count("[^/]+"),
        )

    def find(self, method: str, path: str) -> Mapping[str, Any] | None:
        """Return what an operation answers; None for one that is not described."""
        fit = (one.answer for one in self._all if one.method == method and one.pattern.fullmatch(path))
        return next(fit, None)


def _described(name: str, rows: int) -> Iterator[Described]:
    document = json.loads((SOURCES / "api/generated" / f"{name}.json").read_text())
    schemas = document["components"]["schemas"]
    for path, item in document["paths"].items():
        for method, operation in item.items():
            content = operation["responses"].get("200", {}).get("content", {}).get("application/json", {})
            if "example" in content:
                filling = Filling(schemas, 1 if path in ONE_COIN else rows)
                pattern = re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)))
                yield Described(method.upper(), pattern, filling.filled(content["example"], content["schema"]))


class Filling:
    """Makes more of the one row that examples have in their lists, in all states that a row can be in."""

    def __init__(self, schemas: Mapping[str, Any], rows: int) -> None:
        self._schemas, self._rows = schemas, rows

    def filled(self, answer: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
        properties = self._resolved(schema).get("properties", {})
        more = {}
        for name, value in answer.items():
            if isinstance(value, list) and len(value) == 1 and _is_row(value[0]):
                row_schema = self._resolved(properties.get(name, {}).get("items", {}))
                more[name] = [self._copy(value[0], row_schema, number) for number in range(self._rows)]
            elif name == "permissions" or (name == "operator" and "permissions" in value):
                more[name] = self._all_permissions(value, properties[name])
        return {**answer, **more, **({"total": self._rows} if answer.get("total") == 1 else {})}

    def _all_permissions(self, value: Any, schema: Mapping[str, Any]) -> Any:
        schema = self._resolved(schema)
        if isinstance(value, list):
            return list(self._choices(schema["items"]))
        return {
            **value,
            "permissions": self._all_permissions(value["permissions"], schema["properties"]["permissions"]),
        }

    def _copy(self, row: Mapping[str, Any], schema: Mapping[str, Any], number: int) -> Mapping[str, Any]:
        properties = schema.get("properties", {})
        copied = {name: _varied(name, value, number) for name, value in row.items()}
        if number and next(iter(row)) == "projectId":
            copied["projectId"] = f"{row['projectId']}{number}"
        for name in {"status", "state"} & row.keys():
            if choices := self._choices(properties.get(name, {})):
                at = choices.index(row[name]) if row[name] in choices else 0
                copied[name] = choices[(at + number) % len(choices)]
        return copied

    def _choices(self, schema: Mapping[str, Any]) -> tuple[str, ...]:
        schema = self._resolved(schema)
        parts = [schema, *map(self._resolved, (*schema.get("oneOf", ()), *schema.get("anyOf", ())))]
        return tuple(choice for part in parts for choice in part.get("enum", ()) if choice is not None)

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while (reference := schema.get("$ref")) is not None:
            schema = self._schemas[reference.rpartition("/")[2]]
        return schema


def _is_row(value: Any) -> bool:
    """Whether it is something that has a name of its own, by which others are told from it."""
    if not isinstance(value, dict):
        return False
    return any((name.endswith("Id") and isinstance(one, str)) or _is_row(one) for name, one in value.items())


def _varied(name: str, value: Any, number: int) -> Any:
    """Return what another row has in its place: the first stays as it is."""
    if number == 0 or value is None:
        return value
    if isinstance(value, dict):
        return {name: _varied(name, one, number) for name, one in value.items()}
    if name.endswith("Id") and isinstance(value, str) and name not in {"projectId", "merchantId"}:
        return f"{value[:-1]}{number}"
    if name.endswith("At") and isinstance(value, str):
        moment = datetime.fromisoformat(value) - timedelta(hours=7 * number)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value


class DescribedGateway:
    """Answers a browser in the place of a gateway. ``stylesheet`` and ``fonts`` are served with the pages' files."""

    def __init__(
        self, app: App, *, rows: int = ROWS, stylesheet: str = "", fonts: Mapping[str, bytes] | None = None
    ) -> None:
        self.app = app
        self.answers = Answers(app, rows)
        self.unknown: list[str] = []
        self._path, self._html = PAGES[app]
        self._files = BuiltFiles()
        self._stylesheet, self._fonts = stylesheet, fonts or {}

    @property
    def home(self) -> str:
        """The address below which this app's pages are; a merchant's are of one project."""
        if self.app == "operator":
            return f"{GATEWAY}{self._path}"
        listed = self.answers.find("GET", "/api/merchant/projects")
        assert listed is not None
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
            page = self._files.find(self._html)
            assert page is not None
            await route.fulfill(
                body=self._styled(gzip.decompress(page.gzipped)), headers=self._headers, content_type="text/html"
            )

    async def _send_example(self, route: Route, path: str) -> None:
        found = self.answers.find(route.request.method, path)
        if found is None:
            self.unknown.append(f"{route.request.method} {path}")
            await route.fulfill(status=404, json={"success": False, "error": "Nothing is there.", "code": "NOT_FOUND"})
        else:
            await route.fulfill(json=found)

    async def _send_file(self, route: Route, name: str) -> None:
        if name == "reference.css":
            await route.fulfill(body=self._stylesheet, content_type="text/css")
        elif name in self._fonts:
            await route.fulfill(body=self._fonts[name], content_type="font/woff2")
        elif (file := self._files.find(name)) is None:
            await route.fulfill(status=404)
        else:
            await route.fulfill(body=gzip.decompress(file.gzipped), content_type=file.media_type)

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

SHOWN = """() => {
  const there = document.querySelector("h1:not([data-before])") !== null;
  return there && window.asked === 0 && document.querySelector("[role=status][aria-label=Loading]") === null;
}"""

TWO_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"


@asynccontextmanager
async def described_page(browser: Browser, gateway: DescribedGateway, **options: Any) -> AsyncIterator[Page]:
    """Open a page of this gateway's, in whose browser it is always the same moment. It keeps to its policy."""
    fixed = {"timezone_id": "UTC", "locale": "en-US", "reduced_motion": "reduce"}
    context = await browser.new_context(**{**fixed, **options})
    try:
        await context.add_init_script(WATCH)
        await context.route("**/*", gateway.answer)
        page = await context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        await page.goto(gateway.home if gateway.app == "operator" else f"{gateway.home}/overview")
        await until_shown(page)
        yield page
        assert [*errors, *await page.evaluate("window.breaches"), *gateway.unknown] == []
    finally:
        await context.close()


async def go(page: Page, address: str) -> None:
    """Go to a page within the app, and wait until it shows all that it asks for."""
    await page.evaluate(
        """address => {
          if (address === location.href) return;
          for (const title of document.querySelectorAll("h1")) title.dataset.before = "";
          history.pushState({}, "", address);
        }""",
        address,
    )
    await until_shown(page)


async def until_shown(page: Page) -> None:
    """Wait until a page shows all that it asks for, also what it asks for after the first answers."""
    for _ in range(2):
        await page.wait_for_function(SHOWN)
        await page.evaluate(TWO_FRAMES)
