"""The operator's table ``[plugins.swap_1inch]``, and the routers that it leaves pinned or replaces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from cambist.plugin import ChainInfo, ConfigError

from .addresses import ZERO, parse_address, spell

NATIVE: Final = spell("0x" + "e" * 40)
"""What 1inch and its router write for a chain's own coin."""

ROUTER_V6: Final = "0x111111125421cA6dc452d289314280a0f8842A65"
PINNED: Final = dict.fromkeys((1, 10, 56, 137, 8453, 42161), ROUTER_V6)
"""AggregationRouterV6, by chain id: the only contract whose calls are read, and the only spender."""

WHERE: Final = "plugins.swap_1inch"

_KEY: Final = re.compile(r"[!-~]{1,512}", re.ASCII)


class ChainConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[plugins.swap_1inch.chains.<id>]``: another router than the pinned one, or one for a chain without."""

    router: str


class OneInchConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[plugins.swap_1inch]``. ``chains`` goes by the gateway's ids of chains. Who only reads needs no key."""

    key: str = ""
    base_url: str = "https://api.1inch.com"
    allow_http: bool = False
    version: Literal["6.0", "6.1"] = "6.1"
    requests_per_second: Annotated[int, Meta(ge=1, le=1000)] = 1
    timeout_ms: Annotated[int, Meta(ge=100, le=60_000)] = 5000
    quote_ttl_ms: Annotated[int, Meta(ge=0, le=60_000)] = 5000
    chains: Mapping[str, ChainConfig] = {}


class Routers(Struct, frozen=True):
    """Which contract is called on which chain: the operator's by the chain's id, else the pinned one."""

    replaced: Mapping[str, str]

    def of(self, chain: ChainInfo) -> str | None:
        """Return the chain's router, normalized, or None where nothing can be swapped."""
        if not chain.is_evm or chain.chain_id_num is None:
            return None
        return self.replaced.get(chain.id) or PINNED.get(chain.chain_id_num)


def routers(config: OneInchConfig) -> Routers:
    """Return the routers, checked. Raises ConfigError, naming the setting."""
    return Routers({chain: _router(chain, table.router) for chain, table in config.chains.items()})


def check_api(config: OneInchConfig) -> None:
    """Check what the API is asked with. Raises ConfigError; the key is in no message."""
    if _KEY.fullmatch(config.key) is None:
        raise ConfigError(f"{WHERE}.key is missing, too long, or holds characters that no key has")
    host, secure = _host(config.base_url)
    if not (secure or config.allow_http or _is_loopback(host)):
        raise ConfigError(
            f"{WHERE}.base_url must be https, or everybody on the way learns the key; "
            f"{WHERE}.allow_http = true does without"
        )


def _router(chain: str, text: str) -> str:
    where = f"{WHERE}.chains.{chain}.router"
    address = parse_address(text)
    if address is None:
        raise ConfigError(f"{where} is no address, or its checksum is wrong")
    if address in {ZERO, NATIVE}:
        raise ConfigError(f"{where} is no contract")
    return address


def _host(url: str) -> tuple[str, bool]:
    """Return the host that an address names, and whether it is asked over TLS."""
    problem = ConfigError(f"{WHERE}.base_url is an http or https address without user, query and fragment")
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - what is no port raises here
    except ValueError:
        raise problem from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or re.search(r"[\s?#@\\]", url):
        raise problem
    return parts.hostname, parts.scheme == "https"


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
