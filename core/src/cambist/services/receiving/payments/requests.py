"""What a merchant says to make a payment, and what is refused before anything is done about it."""

from __future__ import annotations

import re
from typing import Annotated, Any
from unicodedata import category
from urllib.parse import quote, urlsplit, urlunsplit

from msgspec import Meta

from cambist.services.errors import InvalidError
from cambist.services.metadata import metadata_text
from cambist.services.pricing.quotes import Ask
from cambist.services.webhooks.urls import check_webhook_url
from cambist.settings import WebhookTargets

URL_CHARS_MAX = 2048
EXPIRES_IN_MINUTES = 60

_URL = re.compile(r"https?://[!-\[\]-~\u00a1-\U0010ffff]+", re.IGNORECASE)
_INVISIBLE = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
"""Unicode's categories of what nobody sees, or what turns around how the rest is seen."""
_EMAIL = re.compile(r"[^@\s\x00-\x1f]{1,64}@[^@\s\x00-\x1f]{1,253}")

_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))

Text255 = Annotated[str, Meta(max_length=255)]
Url = Annotated[str, Meta(max_length=URL_CHARS_MAX)]


class CreatePayment(Ask, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The body of ``POST /api/payment``."""

    order_id: Text255 | None = None
    webhook_url: Url | None = None
    success_url: Url | None = None
    cancel_url: Url | None = None
    expires_in_minutes: Annotated[int, Meta(ge=5, le=10_080)] = EXPIRES_IN_MINUTES
    customer_name: Text255 | None = None
    customer_email: Annotated[str, Meta(max_length=254)] | None = None
    metadata: dict[str, Any] | None = None
    idempotency_key: str | None = None


def check(request: CreatePayment, targets: WebhookTargets) -> str | None:
    """Refuse what types alone cannot; return the metadata as JSON text."""
    if request.webhook_url is not None:
        check_webhook_url(request.webhook_url, targets)
    if request.success_url is not None:
        _check_redirect(request.success_url, "successUrl")
    if request.cancel_url is not None:
        _check_redirect(request.cancel_url, "cancelUrl")
    if request.customer_email is not None and not _EMAIL.fullmatch(request.customer_email):
        raise InvalidError.field("customerEmail", "is no e-mail address")
    return None if request.metadata is None else metadata_text(request.metadata)


def _check_redirect(url: str, field: str) -> None:
    """Refuse what a browser must not be sent to: anything but plain http and https."""
    if not _URL.fullmatch(url) or not (url.isascii() or all(category(one) not in _INVISIBLE for one in url)):
        raise InvalidError.field(field, "is no http or https URL, or holds characters that cannot be seen")
    try:
        parts = urlsplit(ascii_url(url))
        port = parts.port
    except ValueError:
        raise InvalidError.field(field, "is no well-formed URL") from None
    if not parts.hostname or port == 0:
        raise InvalidError.field(field, "names no host")
    if "@" in parts.netloc:
        raise InvalidError.field(field, "holds a user name or password")


def ascii_url(url: str) -> str:
    """Return a URL as it is sent: the host in punycode, all else that is not ASCII percent-encoded.

    Raises ValueError for what is no URL, or names a host that cannot be.
    """
    if url.isascii():
        return url
    parts = urlsplit(url)
    host, at = parts.hostname or "", parts.netloc.rpartition("@")[1]
    netloc = host.encode("idna").decode() if host else ""
    if parts.port is not None:
        netloc += f":{parts.port}"
    encoded = (quote(part, safe=_PRINTABLE) for part in (parts.path, parts.query, parts.fragment))
    return urlunsplit((parts.scheme, at + netloc, *encoded))
