"""What the operator writes under ``[plugins.florin]``, and what follows from it without asking anybody."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from cambist.plugin import ConfigError
from cambist_chainkit.eip55 import parse_address

TIMEOUT_MS_MAX = 60_000
REQUESTS_PER_SECOND_MAX = 1_000

CONTRACTS: Mapping[str, str] = {}
"""The contract that is called, by chain: pin yours here. Only the operator's own file may name another."""


class FlorinConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[plugins.florin]``. ``key`` arrives as plain text, and must appear in no message."""

    base_url: str
    key: str | None = None
    contracts: Mapping[str, str] = {}
    requests_per_second: int = 5
    timeout_ms: int = 4_000


def contracts_of(config: FlorinConfig) -> Mapping[str, str]:
    """Return the contract on each chain that is served, and check the rest of the table. Raises ConfigError."""
    where = "plugins.florin"
    if not _is_http_address(config.base_url):
        raise ConfigError(f"{where}.base_url is no http(s) address")
    if not 1 <= config.requests_per_second <= REQUESTS_PER_SECOND_MAX:
        raise ConfigError(f"{where}.requests_per_second is between 1 and {REQUESTS_PER_SECOND_MAX}")
    if not 1 <= config.timeout_ms <= TIMEOUT_MS_MAX:
        raise ConfigError(f"{where}.timeout_ms is between 1 and {TIMEOUT_MS_MAX}")
    found: dict[str, str] = {}
    for chain, text in (dict(CONTRACTS) | dict(config.contracts)).items():
        address = parse_address(text)
        if address is None:
            raise ConfigError(f"{where}.contracts.{chain} is no address, or one with a wrong checksum")
        found[chain] = address
    if not found:
        raise ConfigError(f"{where}.contracts names no contract, so that nothing can be swapped")
    return found


def _is_http_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
