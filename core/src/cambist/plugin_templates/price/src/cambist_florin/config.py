"""What the operator writes under ``[plugins.florin]``."""

from __future__ import annotations

from urllib.parse import urlsplit

from msgspec import Struct

from cambist.plugin import ConfigError

TIMEOUT_MS_MAX = 60_000


class FlorinConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[plugins.florin]``. ``api_key`` arrives as plain text, and must appear in no message."""

    url: str
    api_key: str | None = None
    timeout_ms: int = 4_000


def check(config: FlorinConfig) -> None:
    """Raise ConfigError for what is well-formed and means nothing."""
    if not _is_http_address(config.url):
        raise ConfigError("plugins.florin.url is no http(s) address")
    if not 1 <= config.timeout_ms <= TIMEOUT_MS_MAX:
        raise ConfigError(f"plugins.florin.timeout_ms is between 1 and {TIMEOUT_MS_MAX}")


def _is_http_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
