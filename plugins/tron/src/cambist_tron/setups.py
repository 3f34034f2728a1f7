"""What operators change of TRON while the gateway runs: endpoints, each with its key in one text, and tokens.

A key is written where addresses have a password and no user: ``https://:KEY@api.trongrid.io``.
"""

from __future__ import annotations

from urllib.parse import quote, unquote, urlsplit, urlunsplit

from msgspec import structs

from cambist.plugin import NetworkSetup
from cambist_chainkit.tokens import own_tokens, table_of

from .config import TronConfig, resolve


def setup_of(config: TronConfig) -> NetworkSetup | None:
    """Return what can be changed; None where an endpoint has a key and a user besides, for which there is no text."""
    setup = resolve(config)
    asked = zip(setup.rpc_urls, setup.api_keys, strict=True)
    if any(key is not None and "@" in urlsplit(url).netloc for url, key in asked):
        return None
    return NetworkSetup(
        endpoints=tuple(_with_key(url, key) for url, key in zip(setup.rpc_urls, setup.api_keys, strict=True)),
        quorum=config.quorum,
        tokens=own_tokens(setup.info.tokens, config.tokens),
    )


def changed(config: TronConfig, setup: NetworkSetup) -> TronConfig:
    """Return the configuration with these endpoints and tokens in the place of its own."""
    parted = [_without_key(endpoint) for endpoint in setup.endpoints]
    found = structs.replace(
        config,
        rpc_urls=tuple(url for url, _ in parted),
        api_keys=tuple(key for _, key in parted),
        quorum=setup.quorum,
        tokens=table_of(setup.tokens),
    )
    resolve(found)
    return found


def _with_key(url: str, key: str | None) -> str:
    if key is None:
        return url
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f":{quote(key, safe='')}@{parts.netloc}"))


def _without_key(endpoint: str) -> tuple[str, str]:
    try:
        parts = urlsplit(endpoint)
        if parts.username or not parts.password:
            return endpoint, ""
        bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        return bare, unquote(parts.password)
    except ValueError:
        # No address at all, which is told where all addresses are checked.
        return endpoint, ""
