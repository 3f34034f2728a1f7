"""Draws the pages: views in, HTML out. Everything a merchant or a customer wrote is escaped on the way."""

from __future__ import annotations

import io
from functools import lru_cache
from pathlib import Path

import segno
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .assets import Assets
from .view import CheckoutView

QR_CACHED_MAX = 2_048
"""About 10 MB. A payment's code is drawn once while its page is open, not at every refresh."""

_FOLDER = Path(__file__).parent


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
        """Return the page on which a customer pays."""
        return self._environment.get_template("checkout.html").render(view=view)

    def card(self, view: CheckoutView) -> str:
        """Return the part of that page that changes, for a page that is already open."""
        return self._environment.get_template("card.html").render(view=view)

    def receipt(self, view: CheckoutView) -> str:
        """Return the receipt, made to be printed."""
        return self._environment.get_template("receipt.html").render(view=view)

    def message(self, headline: str, message: str) -> str:
        """Return a page that says one thing."""
        return self._environment.get_template("message.html").render(headline=headline, message=message)
