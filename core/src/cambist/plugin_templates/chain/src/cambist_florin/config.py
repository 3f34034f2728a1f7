"""What the operator writes under ``[plugins.florin]``, and what follows from it without asking a node."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from cambist.plugin import ChainInfo, ConfigError, Token
from cambist_chainkit.endpoints import check_endpoints
from cambist_chainkit.tokens import TokenConfig, merged_tokens

from .addresses import parse_address

NETWORK = "florin"
"""What nodes call the network, and what stands in every payload."""

COIN = Token(symbol="FLORIN", contract=None, decimals=9, label="Florin")


class FlorinConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[plugins.florin]``. Every setting has a limit, and its mistakes are told with its name."""

    rpc_urls: tuple[str, ...] = ()
    simulated: bool = False
    confirmations: int = 6
    finality_required: bool = False
    quorum: int = 1
    poll_interval_ms: int = 1_000
    request_timeout_ms: int = 10_000
    price_max: int = 1_000_000_000
    tokens: tuple[TokenConfig, ...] = ()


def chain_info(config: FlorinConfig) -> ChainInfo:
    """Return what the gateway knows of the chain. Raises ConfigError."""
    where = "plugins.florin"
    check_endpoints(config.rpc_urls, quorum=config.quorum, where=where)
    for name, least in (("confirmations", 1), ("quorum", 1), ("poll_interval_ms", 1), ("request_timeout_ms", 1)):
        if getattr(config, name) < least:
            raise ConfigError(f"{where}.{name} is at least {least}")
    tokens = merged_tokens(
        (), config.tokens, native_symbol=COIN.symbol, normalized=parse_address, not_tokens={}, where=where
    )
    return ChainInfo(
        id="florin",
        name="Florin",
        family="florin",
        tokens=(COIN, *(known.token for known in tokens)),
        confirmations=config.confirmations,
        availability=_availability(config),
        finality_required=config.finality_required,
        hashes_kept=max(256, 2 * config.confirmations),
        poll_interval_ms=config.poll_interval_ms,
    )


def _availability(config: FlorinConfig) -> Literal["live", "simulated", "unconfigured"]:
    if config.simulated:
        return "simulated"
    return "live" if config.rpc_urls else "unconfigured"
