"""The operator's table ``[plugins.tron]``, and what it comes to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from cambist.plugin import ChainInfo, ConfigError, InvalidAddressError, Token, Units
from cambist_chainkit.endpoints import check_endpoints
from cambist_chainkit.tokens import KnownToken, TokenConfig, merged_tokens

from .addresses import ZERO_ADDRESS, raw_of, spell
from .networks import NETWORKS, SOLID_DEPTH

NetworkName = Literal["mainnet", "nile", "shasta", "local"]
EnergyMode = Literal["auto", "burn", "delegate"]

CHAIN: Final = "tron"
TRX: Final = Token(symbol="TRX", contract=None, decimals=6, label="TRON")
SUN_PER_TRX: Final = 10**6

TRX_MAX: Final = 15_000
"""The most that nodes let one transaction burn for energy."""

BATCH_BLOCKS_MAX: Final = 100
"""Nodes give no more blocks in one answer."""

LAG_BLOCKS_MAX: Final = 5

TRONGRID_PER_SECOND: Final = 14
"""What TronGrid allows a key is 15."""
TRONGRID_PER_SECOND_WITHOUT_KEY: Final = 3

_API_KEY: Final = re.compile(r"[!-~]{1,256}", re.ASCII)
_BLOCK_ID: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_NOT_BASES: Final = ("/wallet", "/walletsolidity", "/jsonrpc")
_NOT_TOKENS: Final = {ZERO_ADDRESS: "the zero address, which is where native coin is burned"}


class TronConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[plugins.tron]``. Without endpoints, TRON is listed and refused; with ``simulated``, it is for sandboxes."""

    network: NetworkName = "mainnet"
    genesis_id: str | None = None
    rpc_urls: tuple[str, ...] = ()
    api_keys: tuple[str, ...] = ()
    simulated: bool = False
    confirmations: Annotated[int, Meta(ge=1, le=100_000)] = SOLID_DEPTH + 1
    finality_required: bool = True
    quorum: Annotated[int, Meta(ge=1, le=16)] = 1
    poll_interval_ms: Annotated[int, Meta(ge=50, le=600_000)] = 3000
    span_max: Annotated[int, Meta(ge=1, le=1000)] = 50
    hashes_kept: Annotated[int, Meta(ge=64, le=1_000_000)] = 1024
    request_timeout_ms: Annotated[int, Meta(ge=100, le=120_000)] = 10_000
    requests_per_second_max: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    requests_at_once_max: Annotated[int, Meta(ge=1, le=64)] = 8
    batch_blocks_max: Annotated[int, Meta(ge=1, le=BATCH_BLOCKS_MAX)] = 10
    response_bytes_max: Annotated[int, Meta(ge=1_000_000, le=2_000_000_000)] = 256_000_000
    lag_blocks_max: Annotated[int, Meta(ge=1, le=100_000)] = LAG_BLOCKS_MAX
    internal_transfers: bool = True
    tokens: tuple[TokenConfig, ...] = ()
    explorer_tx_url: str | None = None

    energy: EnergyMode = "auto"
    energy_price_max_sun: Annotated[int, Meta(ge=1, le=1_000_000)] = 1000
    fee_ceiling_trx: Decimal = Decimal(100)


class ChainSetup(Struct, frozen=True, kw_only=True):
    """The chain, checked: what the gateway is told of it, the operator's table, and what follows from that.

    ``contracts`` maps every registered contract, as logs spell it, to its normalized address; ``symbols_onchain`` a
    normalized contract to what it may call itself. ``api_keys`` has one for each endpoint, None where it needs none,
    and ``paces`` how many requests a second each allows. ``fee_ceiling`` is the most sun that one transaction may cost.
    """

    info: ChainInfo
    config: TronConfig
    genesis_id: str | None
    rpc_urls: tuple[str, ...]
    api_keys: tuple[str | None, ...]
    paces: tuple[int | None, ...]
    contracts: Mapping[str, str]
    symbols_onchain: Mapping[str, frozenset[str]]
    fee_ceiling: Units


def resolve(config: TronConfig) -> ChainSetup:
    """Return the chain's setup. Raises ConfigError, naming the setting."""
    where = "plugins.tron"
    network = NETWORKS[config.network]
    urls = tuple(url.rstrip("/") for url in config.rpc_urls)
    check_endpoints(urls, quorum=1 if config.simulated else config.quorum, where=where)
    _check_plain(urls, where)
    genesis_id = _genesis_id(config, network.genesis_id, where)
    tokens = merged_tokens(
        network.tokens,
        config.tokens,
        native_symbol=TRX.symbol,
        normalized=_normalized,
        not_tokens=_NOT_TOKENS,
        where=where,
    )
    keys = _api_keys(config, urls, where)
    return ChainSetup(
        info=_info(config, tokens, genesis_id),
        config=config,
        genesis_id=genesis_id,
        rpc_urls=urls,
        api_keys=keys,
        paces=tuple(_pace(config, url, key) for url, key in zip(urls, keys, strict=True)),
        contracts=_by_log_address(tokens),
        symbols_onchain={known.contract: known.symbols for known in tokens},
        fee_ceiling=_fee_ceiling(config.fee_ceiling_trx, where),
    )


def _info(config: TronConfig, tokens: Sequence[KnownToken], genesis_id: str | None) -> ChainInfo:
    network = NETWORKS[config.network]
    live: Literal["live", "unconfigured"] = "live" if config.rpc_urls else "unconfigured"
    return ChainInfo(
        id=CHAIN,
        name=network.name,
        family="tron",
        tokens=(TRX, *(known.token for known in tokens)),
        confirmations=config.confirmations,
        availability="simulated" if config.simulated else live,
        chain_id_num=network.chain_id or (int(genesis_id[-8:], 16) if genesis_id else None),
        finality_required=config.finality_required,
        span_max=config.span_max,
        hashes_kept=config.hashes_kept,
        poll_interval_ms=config.poll_interval_ms,
        explorer_tx_url=config.explorer_tx_url or network.explorer_tx_url,
        token_standard="TRC-20",  # noqa: S106 - no secret
    )


def _check_plain(urls: Sequence[str], where: str) -> None:
    """Raise ConfigError where what is asked for, such as wallet/getnowblock, cannot be written behind an address."""
    for position, url in enumerate(urls, start=1):
        if "?" in url or "#" in url:
            message = f"{where}.rpc_urls: number {position} has something behind a ? or #, where paths must follow"
            raise ConfigError(message)
        if url.endswith(_NOT_BASES):
            raise ConfigError(f"{where}.rpc_urls: number {position} has to end before {' or '.join(_NOT_BASES)}")


def _genesis_id(config: TronConfig, known: str | None, where: str) -> str | None:
    if config.genesis_id is None:
        return known
    if known not in (None, config.genesis_id):
        message = f"{where}.genesis_id: the first block of {config.network} is known; another network is 'local'"
        raise ConfigError(message)
    if _BLOCK_ID.fullmatch(config.genesis_id) is None:
        raise ConfigError(f"{where}.genesis_id is no block id: 64 hex digits in lower case")
    return config.genesis_id


def _api_keys(config: TronConfig, urls: Sequence[str], where: str) -> tuple[str | None, ...]:
    """Return a key for each endpoint. An empty text in the list stands for an endpoint that needs none."""
    keys = config.api_keys
    if len(keys) > 1 and len(keys) != len(urls):
        message = f"{where}.api_keys has {len(keys)} keys for {len(urls)} endpoints: give one for all, or one for each"
        raise ConfigError(message)
    if any(key and _API_KEY.fullmatch(key) is None for key in keys):
        raise ConfigError(f"{where}.api_keys: a key is up to 256 printable characters without spaces")
    if len(keys) == 1:
        keys *= len(urls)
    return tuple(key or None for key in keys) or (None,) * len(urls)


def on_trongrid(url: str) -> bool:
    """Return whether an endpoint is TronGrid's, which needs a key to be of use."""
    host = urlsplit(url).hostname or ""
    return host == "trongrid.io" or host.endswith(".trongrid.io")


def _pace(config: TronConfig, url: str, key: str | None) -> int | None:
    if config.requests_per_second_max is not None or not on_trongrid(url):
        return config.requests_per_second_max
    return TRONGRID_PER_SECOND if key else TRONGRID_PER_SECOND_WITHOUT_KEY


def _fee_ceiling(trx: Decimal, where: str) -> Units:
    if not trx.is_finite() or not 0 < trx <= TRX_MAX or round(trx, 6) != trx:
        message = f"{where}.fee_ceiling_trx: {trx} is not above 0 and at most {TRX_MAX}, with at most 6 decimals"
        raise ConfigError(message)
    return Units(int(trx * SUN_PER_TRX))


def _normalized(text: str) -> str | None:
    try:
        return spell(raw_of(text))
    except InvalidAddressError:
        return None


def _by_log_address(tokens: Sequence[KnownToken]) -> Mapping[str, str]:
    """Return the contracts as logs spell them: 20 bytes in hex. Some providers leave the byte 0x41 before them."""
    plain = {raw_of(token.contract).hex(): token.contract for token in tokens}
    return plain | {"41" + digits: contract for digits, contract in plain.items()}
