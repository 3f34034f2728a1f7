"""Puts the web side together: every noun's routes, and what holds for all of them."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Literal, TypeAlias

import structlog
from litestar import Litestar, Router
from litestar.datastructures import State
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.routes import HTTPRoute
from litestar.types import BeforeMessageSendHookHandler, ControllerRouterHandler, Message, Scope
from sqlalchemy.exc import SQLAlchemyError

from cambist.bootstrap import Gateway
from cambist.cli.imports import left_out
from cambist.db.engine import BusyError
from cambist.services.audit.sums import Sums
from cambist.services.chains.following import INTERVAL_S
from cambist.services.chains.setups import TOPIC
from cambist.services.errors import ServiceError
from cambist.services.identity import operators
from cambist.services.kept_answers import AnsweredBefore
from cambist.services.webhooks.sender import Sender, open_sender
from cambist.settings import WebSettings

from . import api, checkout, dashboard
from .checkout.live import Checkout
from .context import Web
from .errors import on_busy, on_http_error, on_service_error, on_unexpected
from .lists import provide_asked, provide_period
from .live.hub import Live
from .once import on_answered_before, provide_once
from .openapi.description import DecimalNumbers, openapi_config
from .openapi.pages import Swagger
from .origin import provide_audit
from .request_metrics import RequestMetrics
from .requests import JsonRequest, RefuseUnstorable, query_names, refuse_unknown_parameters
from .restoring import RefuseWhileRestored
from .schemas import JsonAnswer
from .unfinished import BodyDeadline

SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)
"""What every answer carries that does not say otherwise itself."""

AUDIT_SUMS_INTERVAL_S = 5.0
LISTENING_S = 0.2
"""How long Redis is waited for before chains are followed for the first time."""

log = structlog.get_logger(__name__)

PUBLIC_PATHS = ("/api/public/", "/api/status")
ANY_ORIGIN = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"GET, OPTIONS"),
    (b"access-control-allow-headers", b"*"),
)
"""What answers below the public paths carry: a shop's page in a browser may read what anybody may."""

HSTS = (b"strict-transport-security", b"max-age=31536000; includeSubDomains")


Serves: TypeAlias = Literal["all", "public", "admin"]
"""What one app has: everything, or what is at one of the two addresses where operators have one of their own."""

ADMIN_PATH = "/api/admin"


def create_app(gateway: Gateway, serves: Serves = "all") -> Litestar:
    """Return the web side on top of an open gateway, which stays its owner's to close."""
    app = build_app(gateway.settings.web, serves)
    attach(app, gateway)
    return app


def attach(app: Litestar, gateway: Gateway) -> None:
    """Make this the gateway that the app works on, in the place of any before it. The app must not be running."""
    app.state.gateway, app.state.web = gateway, Web(gateway)
    app.state.checkout = Checkout(
        db=gateway.db, registry=gateway.registry, clock=gateway.clock, hints=gateway.hints, macs=app.state.web.macs
    )
    app.state.live = Live.of(app.state.web)


# Litestar would look for models of pydantic, which we have none of.
@left_out("pydantic")
def build_app(settings: WebSettings, serves: Serves = "all") -> Litestar:
    """Return the routes, and what holds for all of them; they work once a gateway is attached."""
    url = operators.base_url(settings) if serves == "admin" else settings.base_url
    secure = url.lower().startswith("https://")
    pages = (*(() if serves == "admin" else checkout.controllers), *dashboard.controllers[serves])
    app = Litestar(
        route_handlers=[
            *(one for one in _endpoints() if _is_served(one, serves)),
            *pages,
            Swagger,
        ],
        dependencies={
            "web": Provide(_web, sync_to_thread=False),
            "audit": Provide(provide_audit),
            "sender": Provide(_sender, sync_to_thread=False),
            "checkout": Provide(checkout.provide_checkout, sync_to_thread=False),
            "live": Provide(_live, sync_to_thread=False),
            "asked": Provide(provide_asked),
            "period": Provide(provide_period),
            "once": Provide(provide_once),
        },
        middleware=[RequestMetrics(), BodyDeadline(), RefuseUnstorable(), RefuseWhileRestored()],
        exception_handlers={
            AnsweredBefore: on_answered_before,
            ServiceError: on_service_error,
            HTTPException: on_http_error,
            BusyError: on_busy,
            Exception: on_unexpected,
        },
        before_send=[_add_headers((*SECURITY_HEADERS, HSTS) if secure else SECURITY_HEADERS)],
        lifespan=[_lifespan],
        on_shutdown=[end_streams, _stop_polling],
        request_class=JsonRequest,
        response_class=JsonAnswer,
        request_max_body_size=settings.body_bytes_max,
        openapi_config=openapi_config(url),
        plugins=[DecimalNumbers()],
        logging_config=None,
        before_request=refuse_unknown_parameters,
    )
    routes = [route for route in app.routes if isinstance(route, HTTPRoute)]
    app.state.query_names = query_names(app)
    app.state.allow = {route.path_format: _allow(route) for route in routes}
    _make_one_by_one(routes)
    return app


def _make_one_by_one(routes: Sequence[HTTPRoute]) -> None:
    """Have what handlers ask for be made one after the other.

    What could be made at once, Litestar makes in tasks of a group, which take longer than the work.
    """
    for route in routes:
        for _, asked in route.route_handler_map.values():
            batches = asked.dependency_batches
            asked.dependency_batches = [{one} for batch in batches for one in sorted(batch, key=lambda one: one.key)]


def _allow(route: HTTPRoute) -> bytes:
    return ", ".join(sorted(route.methods)).encode()


def _endpoints() -> Iterator[ControllerRouterHandler]:
    """Yield the ``controllers`` of every module of ``api``."""
    for module in pkgutil.iter_modules(api.__path__):
        yield from importlib.import_module(f"{api.__name__}.{module.name}").controllers


def _is_served(endpoint: ControllerRouterHandler, serves: Serves) -> bool:
    """Say whether these routes are there: those that are not answer 404 as if there had never been any."""
    if serves == "all" or not isinstance(endpoint, Router):
        return True  # what is in no router tells of the process's health
    return endpoint.path.startswith(ADMIN_PATH) == (serves == "admin")


@asynccontextmanager
async def _lifespan(app: Litestar) -> AsyncIterator[None]:
    """Hold the guarded way out for test webhooks open while the app runs."""
    web: Web = app.state.web
    settings = web.settings
    async with (
        _sums_written(web.audit_sums),
        _chains_followed(web),
        open_sender(
            clock=web.clock, timeout_ms=settings.webhooks.timeout_ms, targets=settings.webhook_targets
        ) as sender,
    ):
        app.state.sender = sender
        yield


@asynccontextmanager
async def _sums_written(sums: Sums) -> AsyncIterator[None]:
    """Write sums of the audit log down as their minutes end, and what is left when the app ends."""
    ending = asyncio.Event()

    async def write(*, unfinished: bool = False) -> None:
        try:
            await sums.write(unfinished=unfinished)
        except Exception:
            log.exception("audit_sums_not_written")

    async def write_until_the_end() -> None:
        # Not cancelled while it writes: nobody would know whether the sums were committed.
        while not ending.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(ending.wait(), AUDIT_SUMS_INTERVAL_S)
            await write()
        # Whatever was under way when the end came, the minute that runs was not in it.
        await write(unfinished=True)

    writing = asyncio.create_task(write_until_the_end(), name="audit sums")
    try:
        yield
    finally:
        ending.set()
        await writing


@asynccontextmanager
async def _chains_followed(web: Web) -> AsyncIterator[None]:
    """Know the tokens that are added and decided about while the app runs, within seconds."""

    async def follow() -> None:
        async with web.gateway.hints.subscribe(TOPIC) as hints:
            # Whoever listens is woken as soon as Redis does, too: what was read before would be read again.
            await hints.wait(LISTENING_S)
            while True:
                try:
                    await web.follower.follow()
                except (SQLAlchemyError, BusyError, OSError, TimeoutError) as error:
                    log.warning("chains_not_followed", error=repr(error))
                await hints.wait(INTERVAL_S)

    following = asyncio.create_task(follow(), name="chains")
    try:
        yield
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


def _web(state: State) -> Web:
    web: Web = state.web
    return web


def _live(state: State) -> Live:
    live: Live = state.live
    return live


def end_streams(app: Litestar) -> None:
    """End every stream of pages and dashboards: for an app that shuts down."""
    checkout.close(app)
    _live(app.state).close()


async def _stop_polling(app: Litestar) -> None:
    await _live(app.state).aclose()


def _sender(state: State) -> Sender:
    sender: Sender = state.sender
    return sender


def _add_headers(wanted: Sequence[tuple[bytes, bytes]]) -> BeforeMessageSendHookHandler:
    """Return a hook that adds these headers to answers that do not have them."""

    async def add(message: Message, scope: Scope) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            present = {name.lower() for name, _ in headers}
            headers += [header for header in wanted if header[0] not in present]
            if scope.get("path", "").startswith(PUBLIC_PATHS):
                headers += ANY_ORIGIN
            if scope.get("method") == "OPTIONS" and b"allow" in present:
                # Litestar's own answer knows only the handler of this path that was registered first.
                allow = scope["litestar_app"].state.allow[scope["path_template"]]
                headers = [(name, allow if name.lower() == b"allow" else value) for name, value in headers]
            message["headers"] = headers

    return add
