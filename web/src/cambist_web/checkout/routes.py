"""The pages' addresses, and what every answer says about its safety."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated

from litestar import Controller, Litestar, MediaType, Response, get, route
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.enums import HttpMethod
from litestar.params import FromPath, QueryParameter
from litestar.response import Stream

from .live import Checkout
from .pages import ASSETS_PATH
from .streams import RETRY_S
from .troubles import told_to_people

YEAR_S = 31_536_000

NO_SUCH_PAYMENT = "This link does not lead to a payment. Please check it, or go back to the shop and start again."
NO_SUCH_ACCOUNT = (
    "This link does not lead to a deposit page. Please check it, or ask whoever gave it to you for a new one."
)

SHOWN = (HttpMethod.GET, HttpMethod.HEAD)
"""How pages are asked for: messengers and monitors look at a link without its body, which the server leaves out."""

ChosenChain = Annotated[str | None, QueryParameter(name="chain", max_length=64)]

PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
        " form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex, nofollow",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
}
"""What every page says: nothing from elsewhere, nothing kept, in no frame, and no trace of the address."""


class CheckoutPages(Controller):
    """Pages for people: they speak HTML, also when something is wrong."""

    include_in_schema = False
    exception_handlers = told_to_people(lambda request: checkout_of(request.app).pages, PAGE_HEADERS)

    @route("/pay/{public_id:str}", http_method=SHOWN)
    async def pay(self, public_id: FromPath[str], checkout: NamedDependency[Checkout]) -> Response[str]:
        """Show the payment as it stands."""
        view = await checkout.view(public_id)
        return _missing(checkout) if view is None else _page(checkout.pages.checkout(view))

    @get("/pay/{public_id:str}/events")
    async def events(self, public_id: FromPath[str], checkout: NamedDependency[Checkout]) -> Response[str] | Stream:
        """Stream the card of an open page. Without room, the page asks by itself every few seconds."""
        if not checkout.has_room(public_id):
            return _busy()
        if await checkout.view(public_id) is None:
            return _missing(checkout)
        return _stream(checkout.events(public_id))

    @route("/receipt/{public_id:str}", http_method=SHOWN)
    async def receipt(self, public_id: FromPath[str], checkout: NamedDependency[Checkout]) -> Response[str]:
        """Show the receipt once there is one; until then, the checkout."""
        view = await checkout.view(public_id)
        if view is None:
            return _missing(checkout)
        if not view.has_receipt:
            headers = {**PAGE_HEADERS, "Location": f"/pay/{view.public_id}"}
            return Response("", status_code=303, media_type=MediaType.TEXT, headers=headers)
        return _page(checkout.pages.receipt(view))

    @route("/account/{public_id:str}", http_method=SHOWN)
    async def account(
        self, public_id: FromPath[str], checkout: NamedDependency[Checkout], chain: ChosenChain = None
    ) -> Response[str]:
        """Show where an end user deposits, on the chosen chain, and what came."""
        view = await checkout.account_view(public_id, chain)
        return _no_account(checkout) if view is None else _page(checkout.pages.account(view))

    @get("/account/{public_id:str}/events")
    async def account_events(
        self, public_id: FromPath[str], checkout: NamedDependency[Checkout], chain: ChosenChain = None
    ) -> Response[str] | Stream:
        """Stream the card of an account's open page."""
        if not checkout.has_account_room(public_id):
            return _busy()
        if await checkout.account_view(public_id, chain) is None:
            return _no_account(checkout)
        return _stream(checkout.account_events(public_id, chain))


@get(f"{ASSETS_PATH}/{{name:str}}", include_in_schema=False, sync_to_thread=False)
def asset_file(name: FromPath[str], checkout: NamedDependency[Checkout]) -> Response[bytes]:
    """Serve a file of the pages. Its name changes with its content, so it may be kept for ever."""
    asset = checkout.pages.assets.served(name)
    if asset is None:
        return Response(b"", status_code=404, media_type=MediaType.TEXT)
    headers = {
        "Cache-Control": f"public, max-age={YEAR_S}, immutable",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    return Response(asset.content, media_type=asset.media_type, headers=headers)


def close(app: Litestar) -> None:
    """End the checkout's streams: for an app that shuts down."""
    checkout_of(app).close()


def checkout_of(app: Litestar) -> Checkout:
    return provide_checkout(app.state)


def provide_checkout(state: State) -> Checkout:
    checkout: Checkout = state.checkout
    return checkout


def _page(html: str, status_code: int = 200) -> Response[str]:
    return Response(html, status_code=status_code, media_type=MediaType.HTML, headers=PAGE_HEADERS)


def _missing(checkout: Checkout) -> Response[str]:
    return _page(checkout.pages.message("No such payment", NO_SUCH_PAYMENT), status_code=404)


def _no_account(checkout: Checkout) -> Response[str]:
    return _page(checkout.pages.message("No such page", NO_SUCH_ACCOUNT), status_code=404)


def _busy() -> Response[str]:
    return Response("busy", status_code=503, media_type=MediaType.TEXT, headers={"Retry-After": str(RETRY_S)})


def _stream(events: AsyncGenerator[bytes, None]) -> Stream:
    return Stream(
        events,
        media_type="text/event-stream",
        # Proxies such as nginx would otherwise hold events back until a buffer is full.
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"},
    )
