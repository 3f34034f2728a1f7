"""Checks what the operator wrote about a chain's endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from cambist.plugin import ConfigError, endpoint_key


def check_endpoints(rpc_urls: Sequence[str], *, quorum: int, where: str) -> None:
    """Raise ConfigError for what is no address, for one that stands there twice, and for too few to agree.

    However it is spelt: one node would agree with itself.
    """
    for position, url in enumerate(rpc_urls, start=1):
        # The address may carry a key, so the message tells its number and never its text.
        if not _is_http_address(url):
            raise ConfigError(f"{where}.rpc_urls: number {position} is no http(s) address")
    if len({endpoint_key(url) for url in rpc_urls}) < len(rpc_urls):
        raise ConfigError(f"{where}.rpc_urls names an endpoint twice")
    if rpc_urls and quorum > len(rpc_urls):
        raise ConfigError(f"{where}.quorum is {quorum}, but there are only {len(rpc_urls)} endpoints to agree")


def _is_http_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
