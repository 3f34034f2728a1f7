"""Draws the pages: views in, HTML out. Everything a merchant or a customer wrote is escaped on the way.

Their own files have names that change with the content, so that browsers may keep them for ever.
"""

from __future__ import annotations

import hashlib
import io
from functools import cache, lru_cache
from pathlib import Path

import segno
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct

from .account_view import AccountView
from .view import CheckoutView

QR_CACHED_MAX = 2_048
"""About 10 MB. A payment's code is drawn once while its page is open, not at every refresh."""

_FOLDER = Path(__file__).parent

ASSETS_PATH = "/checkout-assets"

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_HASH_CHARS = 16


@lru_cache(maxsize=QR_CACHED_MAX)
def qr_svg(text: str) -> Markup:
    """Return the QR code of a text as an inline SVG without styles, which the pages' CSP would refuse."""
    out = io.BytesIO()
    segno.make(text, error="l", micro=False).save(
        out, kind="svg", xmldecl=False, svgns=False, omitsize=True, border=0, svgclass=None, lineclass=None, nl=False
    )
    # Numbers and fixed names are all that segno writes here; the text itself is only drawn.
    svg = out.getvalue().decode().replace("<svg ", '<svg role="img" aria-label="QR code" ', 1)
    return Markup(svg)  # noqa: S704  see above


class Asset(Struct, frozen=True, kw_only=True):
    """One file as it is served."""

    url: str
    media_type: str
    content: bytes


class Assets:
    """Every file of a folder, read once."""

    def __init__(self, folder: Path) -> None:
        self._by_name: dict[str, Asset] = {}
        self._by_served_name: dict[str, Asset] = {}
        for path in sorted(folder.iterdir()):
            if (media_type := _TYPES.get(path.suffix)) is None:
                continue
            content = path.read_bytes()
            served = f"{path.stem}.{hashlib.sha256(content).hexdigest()[:_HASH_CHARS]}{path.suffix}"
            asset = Asset(url=f"{ASSETS_PATH}/{served}", media_type=media_type, content=content)
            self._by_name[path.name] = self._by_served_name[served] = asset

    def url(self, name: str) -> str:
        """Return the address of the file that is called so in the folder."""
        return self._by_name[name].url

    def served(self, name: str) -> Asset | None:
        """Return the file that is served under this name, or None: an old name is not answered with new content."""
        return self._by_served_name.get(name)


class Pages:
    """The templates, compiled once, and the files that they refer to."""

    def __init__(self) -> None:
        self.assets = Assets(_FOLDER / "static")
        self._environment = Environment(
            loader=FileSystemLoader(_FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.globals.update(asset=self.assets.url, qr=qr_svg)

    def checkout(self, view: CheckoutView) -> str:
        return self._environment.get_template("checkout.html").render(view=view)

    def card(self, view: CheckoutView) -> str:
        """Return the part of that page that changes, for a page that is already open."""
        return self._environment.get_template("card.html").render(view=view)

    def receipt(self, view: CheckoutView) -> str:
        return self._environment.get_template("receipt.html").render(view=view)

    def account(self, view: AccountView) -> str:
        return self._environment.get_template("account.html").render(view=view)

    def account_card(self, view: AccountView) -> str:
        """Return the part of that page that changes, for a page that is already open."""
        return self._environment.get_template("account_card.html").render(view=view)

    def message(self, headline: str, message: str, *, again_s: int | None = None) -> str:
        """Return a page that says one thing, and loads itself anew after ``again_s`` seconds, where that is set."""
        template = self._environment.get_template("message.html")
        return template.render(headline=headline, message=message, again_s=again_s)


@cache
def pages() -> Pages:
    """Return those of this process."""
    return Pages()
