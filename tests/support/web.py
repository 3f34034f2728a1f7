"""The web side in this process, on a gateway whose chains are in memory, and merchants who use it."""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from importlib.metadata import EntryPoint
from typing import Any

import httpx
from argon2 import PasswordHasher
from litestar import Litestar

from cambist.bootstrap import Gateway, Parts, open_gateway
from cambist.db.engine import Database
from cambist.ports import Clock, Ids
from cambist.registry import GROUP, Registry
from cambist.services.addresses.account_keys import top_up_stock
from cambist.services.identity.passwords import Passwords
from cambist.settings import (
    AuthSettings,
    DatabaseSettings,
    KeySettings,
    RateLimitSettings,
    RedisSettings,
    Settings,
    WebhookSettings,
    WebSettings,
)
from cambist.signer.keystore import new_keystore
from cambist.signer.local import KeystoreXpubs
from cambist_web.app import attach, build_app
from cambist_web.live.hub import LiveOptions
from cambist_web.openapi.pages import whole_description
from tests.support.authenticator import Authenticator

MEMORY = EntryPoint("memory", "cambist.testing.memory.plugin", GROUP)
JWT_SECRET = "a secret of tests, and long enough"
ADMIN_KEY = "an admin key of tests, and long enough"
PUBLIC_URL = "http://gateway.example"
PASSWORD = "correct horse battery staple"
UNLIMITED = RateLimitSettings(per_key=0, per_address=0, login_per_address=0)
CHAINS: Mapping[str, Mapping[str, Any]] = {
    "memory": {},
    "pretend": {"availability": "simulated"},
    "idle": {"availability": "unconfigured", "least_units": 5 * 10**17},
}

_free_apps: defaultdict[tuple[str, int], list[Litestar]] = defaultdict(list)
"""Apps that no client uses, to be attached to the next gateway: building one takes longer than most tests.

By the settings that ``build_app()`` reads; all others are read through the gateway.
"""


_doors: dict[str, Database] = {}
"""Doors that nobody uses, by the address of their database: the next gateway of that one opens none of its own."""


def web_settings(
    database_url: str, redis_url: str, *, rate_limits: RateLimitSettings = UNLIMITED, **web: Any
) -> Settings:
    """Return settings for tests: no limits unless asked for, private webhook targets allowed."""
    return Settings(
        database=_as_ever(database_url),
        redis=RedisSettings(url=redis_url),
        webhooks=WebhookSettings(allow_private_targets=True, timeout_ms=1000),
        web=WebSettings(rate_limits=rate_limits, public_url=PUBLIC_URL, **web),
        keys=KeySettings(application_key="5c" * 32),
        auth=AuthSettings(jwt_secret=JWT_SECRET, admin_key=ADMIN_KEY),
        plugins={"memory": {"chains": CHAINS}},
    )


def _as_ever(database_url: str | None) -> DatabaseSettings:
    return DatabaseSettings(url=database_url, pool_timeout_s=60)


@contextmanager
def open_door(database_url: str, door: Database) -> Iterator[None]:
    """Have the gateways of this database use a door that stays open, one after the other, until the block ends."""
    _doors[database_url] = door
    yield
    del _doors[database_url]


@contextmanager
def _door(database: DatabaseSettings) -> Iterator[Database | None]:
    """Yield a door that is open; None where it is in use, or the settings want one that is unlike it."""
    url = database.url or ""
    door = _doors.pop(url, None) if database == _as_ever(url) else None
    yield door
    if door is not None:
        _doors[url] = door


@asynccontextmanager
async def memory_gateway(
    settings: Settings, clock: Clock, ids: Ids, *, stock: int = 5, registry: Registry | None = None
) -> AsyncIterator[Gateway]:
    """Open a web gateway with keys in stock for so many merchants, on the chains in memory unless others are given."""
    registry = registry or Registry(settings.plugins, found=[MEMORY])
    with _door(settings.database) as door:
        parts = Parts(clock=clock, ids=ids, registry=registry, db=door)
        async with open_gateway(settings, role="web", parts=parts) as gateway:
            if stock:
                coin_types = {family.coin_type for family in registry.families.values()}
                async with gateway.db.transaction() as conn:
                    signer = KeystoreXpubs(new_keystore(ids.random_bytes))
                    await top_up_stock(conn, signer, gateway.secrets, coin_types=coin_types, stock=stock)
            yield gateway


@asynccontextmanager
async def lent_app(gateway: Gateway) -> AsyncIterator[Litestar]:
    """Lend an app that works on this gateway, to be run by one server or client at a time. Another gets it then."""
    web = gateway.settings.web
    free = _free_apps[web.base_url, web.body_bytes_max]
    app = free.pop() if free else build_app(web)
    attach(app, gateway)
    # The real thing takes a tenth of a second for each password, by design.
    quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    app.state.web.passwords = Passwords(gateway.ids.random_bytes, quick)
    yield app
    free.append(app)


def shown_app() -> Litestar:
    """Return an app whose routes can be looked at, which takes no gateway."""
    web = web_settings("postgresql://nobody/none", "redis://nobody").web
    free = _free_apps[web.base_url, web.body_bytes_max]
    if not free:
        free.append(build_app(web))
    return free[-1]


class _Jar(httpx.Cookies):
    """Looks for cookies where there are some: to find none, httpx makes a request and an answer of urllib's."""

    def extract_cookies(self, response: httpx.Response) -> None:
        if "set-cookie" in response.headers:
            super().extract_cookies(response)


@asynccontextmanager
async def web_client(gateway: Gateway, address: str = "192.0.2.7") -> AsyncIterator[httpx.AsyncClient]:
    """Serve the gateway to a client at this address, in the test's own loop. Errors of ours are answers too."""
    async with lent_app(gateway) as app:
        # This client takes an answer when it is whole: a stream ends as soon as it has said that it is ready.
        app.state.live.options = LiveOptions(lifetime_s=0)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=(address, 1234))
        started, ended = asyncio.Event(), asyncio.Event()

        async def live() -> None:
            # A task of its own: a fixture may begin and end in different ones, which the app's task group refuses.
            async with app.lifespan():
                started.set()
                await ended.wait()

        life = asyncio.create_task(live())
        await started.wait()

        async def check(response: httpx.Response) -> None:
            if response.is_error:
                await response.aread()
                _check_described(app, response)

        hooks = {"response": [check]}
        async with httpx.AsyncClient(transport=transport, base_url=PUBLIC_URL, event_hooks=hooks) as client:
            client._cookies = _Jar()  # one that is given to it, it copies
            yield client
        ended.set()
        await life


_errors: dict[tuple[str, str], Mapping[str, Collection[str]]] = {}


def described_codes(app: Litestar) -> Mapping[tuple[str, str], Mapping[str, Collection[str]]]:
    """Return which codes each operation is described to answer, by status; by its method and its path's template.

    It is the same for every app, so it is read once.
    """
    if not _errors:
        for path, item in json.loads(whole_description(app))["paths"].items():
            for method, operation in item.items():
                _errors[method.upper(), path] = {
                    status: frozenset(re.findall("`([A-Z_]+)`", one["description"]))
                    for status, one in operation["responses"].items()
                }
    return _errors


def _check_described(app: Litestar, response: httpx.Response) -> None:
    """Check that an error is among those that the API's description tells of its operation."""
    if response.status_code == 405:
        return  # of no operation: `/api/payment/quote` is no payment's id
    asked = response.request
    if (template := _template_of(app, asked.method, asked.url.path)) is not None:
        code = response.json()["code"]
        where = f"{asked.method} {template}: {response.status_code} {code} is not described"
        assert code in described_codes(app)[asked.method, template].get(str(response.status_code), ()), where


_templates: dict[tuple[str, int], list[tuple[re.Pattern[str], str]]] = {}
"""By method and number of parts: few are left to be compared with each other."""


def _template_of(app: Litestar, method: str, path: str) -> str | None:
    """Return the template of the operation at a path. What has no parameter in its place comes first, as in routes."""
    if not _templates:
        for one, template in sorted(described_codes(app), key=lambda known: "{" in known[1]):
            pattern = re.compile(re.sub(r"\{\w+\}", "[^/]+", template))
            _templates.setdefault((one, template.count("/")), []).append((pattern, template))
    if (method, path) in described_codes(app):
        return path
    near = _templates.get((method, path.count("/")), ())
    return next((template for pattern, template in near if pattern.fullmatch(path)), None)


class Merchant:
    """Somebody with an account, a project and a key, at a client's other end."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.email = ""
        self.merchant_id = ""
        self.bearer: dict[str, str] = {}
        self.refresh_token = ""
        self.project: dict[str, Any] = {}
        self.webhook_secret = ""
        self.key_id = ""
        self.key: dict[str, str] = {}
        self.phone: Authenticator | None = None
        self._step_up: Any = None

    async def open(self, email: str = "ada@shop.example", *, mode: str = "live", webhook_url: str | None = None):
        """Register, make a project and issue a key."""
        await self.register(email)
        await self.add_project(mode=mode, webhook_url=webhook_url)
        return self

    async def register(self, email: str) -> None:
        self.email = email
        body = {"email": email, "password": PASSWORD, "name": "Ada's Shop"}
        response = await self.client.post("/api/auth/register", json=body)
        assert response.status_code == 201, response.text
        self.take(response)
        self.merchant_id = response.json()["merchant"]["merchantId"]

    def take(self, response: Any) -> None:
        """Keep the tokens of an answer, and nothing in the client's own jar."""
        self.bearer = {"Authorization": f"Bearer {response.json()['accessToken']}"}
        self.refresh_token = response.cookies["cambist_refresh"]
        self.client.cookies.clear()

    async def add_project(self, *, mode: str = "live", webhook_url: str | None = None) -> None:
        body = {"name": "Shop", "mode": mode, "paymentWebhookUrl": webhook_url}
        response = await self.client.post("/api/merchant/projects", json=body, headers=self.bearer)
        assert response.status_code == 201, response.text
        self.project, self.webhook_secret = response.json()["project"], response.json()["webhookSecret"]
        await self.add_key()

    async def add_key(self, **wanted: Any) -> None:
        """Issue a key. For a live one the session is stepped up, with a phone for the moment where there is none."""
        borrowed = self.project["mode"] == "live" and self.phone is None
        if self.project["mode"] == "live":
            await self.step_up()
        issued = await self.ask("POST", f"/api/merchant/projects/{self.project_id}/api-keys", {"name": "Till"} | wanted)
        self.key_id, self.key = issued["key"]["keyId"], {"X-Api-Key": issued["apiKey"]}
        if borrowed:
            assert self.phone is not None
            await self.ask(
                "POST", "/api/dashboard/two-factor/disable", {"password": PASSWORD, "totpCode": self.phone.next_code()}
            )
            self.phone = None

    async def step_up(self) -> None:
        """Step the session up, unless it is, turning two-factor authentication on before where it is off."""
        clock = self.client._transport.app.state.web.clock  # type: ignore[attr-defined]
        if self.phone is not None and self._step_up == (self.bearer, clock.now()):
            return
        if self.phone is None:
            shown = await self.ask("POST", "/api/dashboard/two-factor/enrol", {"password": PASSWORD})
            self.phone = Authenticator(shown["secret"], clock)
            await self.ask("POST", "/api/dashboard/two-factor/confirm", {"totpCode": self.phone.next_code()})
        await self.ask("POST", "/api/auth/step-up", {"totpCode": self.phone.next_code()})
        self._step_up = (self.bearer, clock.now())

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Do something in person, which must succeed."""
        response = await self.client.request(method, path, json=body, headers=self.bearer)
        assert response.status_code in {200, 201}, response.text
        return response.json()

    @property
    def project_id(self) -> str:
        found: str = self.project["projectId"]
        return found


def refused(response: Any, status: int, code: str, *fields: str) -> dict[str, Any]:
    """Check that an answer is an error of this status and code, about these fields, in the one shape of errors."""
    body: dict[str, Any] = response.json()
    assert (response.status_code, body.get("code")) == (status, code), response.text
    assert body["success"] is False
    assert isinstance(body["error"], str)
    assert body["error"]
    assert set(body) <= {"success", "error", "code", "details"}
    for field in fields:
        assert field in [problem["field"] for problem in body["details"]], body
    for problem in body.get("details", ()):
        assert set(problem) == {"field", "message"}
    return body
