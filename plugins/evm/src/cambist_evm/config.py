"""The operator's table ``[plugins.evm]``, and what it comes to: one checked setup per chain."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, structs

from cambist.plugin import ChainInfo, ConfigError, NetworkSetup, Token
from cambist_chainkit.eip55 import parse_address, spell
from cambist_chainkit.endpoints import check_endpoints
from cambist_chainkit.tokens import SYMBOL, KnownToken, TokenConfig, merged_tokens, own_tokens, table_of

from .fees import GWEI, FeeBounds
from .networks import NETWORKS, Network

TraceMode = Literal["auto", "off", "debug", "trace"]

GWEI_MAX: Final = 10**9
CHAIN_ID_TEXT: Final = re.compile(r"[a-z][a-z0-9-]{1,31}", re.ASCII)

NOT_TOKENS: Final = {
    spell("0" * 40): "the zero address",
    spell("f" * 39 + "e"): "where nodes log native transfers (EIP-7708), which are counted already",
}


class ChainConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[plugins.evm.chains.<id>]``. None stands for what the network is known for."""

    rpc_urls: tuple[str, ...] = ()
    simulated: bool = False
    confirmations: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    finality_required: bool = False
    quorum: Annotated[int, Meta(ge=1, le=16)] = 1
    poll_interval_ms: Annotated[int, Meta(ge=50, le=600_000)] | None = None
    span_max: Annotated[int, Meta(ge=1, le=1000)] | None = None
    request_timeout_ms: Annotated[int, Meta(ge=100, le=120_000)] = 10_000
    batch_calls_max: Annotated[int, Meta(ge=1, le=1000)] = 5
    short_calls_max: Annotated[int, Meta(ge=1, le=1000)] | None = None
    requests_at_once_max: Annotated[int, Meta(ge=1, le=64)] = 4
    response_bytes_max: Annotated[int, Meta(ge=1_000_000, le=2_000_000_000)] = 256_000_000
    trace: TraceMode = "auto"
    tokens: tuple[TokenConfig, ...] = ()

    fee_ceiling_gwei: Decimal | None = None
    tip_min_gwei: Decimal | None = None
    tip_max_gwei: Decimal | None = None
    l1_fee: bool | None = None
    sweeper: str | None = None

    chain_id: Annotated[int, Meta(ge=1, le=2**53)] | None = None
    name: str | None = None
    native_symbol: str | None = None
    native_decimals: Annotated[int, Meta(ge=0, le=36)] | None = None
    hashes_kept: Annotated[int, Meta(ge=16, le=1_000_000)] | None = None
    lag_blocks_max: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    explorer_tx_url: str | None = None


class EvmConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[plugins.evm]``. A chain is present exactly when it stands in ``chains``."""

    chains: Mapping[str, ChainConfig] = {}


class ChainSetup(Struct, frozen=True, kw_only=True):
    """A chain, checked: what the gateway is told of it, its network, the operator's table, and what follows from them.

    ``contracts`` maps every registered contract, as nodes spell it (lower case), to its normalized address.
    ``symbols_onchain`` maps a normalized contract to what it may call itself. What stands here and in ``network`` or
    ``config``, too, is what holds of both.
    """

    info: ChainInfo
    network: Network
    config: ChainConfig
    short_calls_max: int
    lag_blocks_max: int
    contracts: Mapping[str, str]
    symbols_onchain: Mapping[str, frozenset[str]]
    fees: FeeBounds
    l1_fee: bool


def resolve(config: EvmConfig) -> Sequence[ChainSetup]:
    """Return every configured chain's setup. Raises ConfigError, naming the setting."""
    setups = [_resolve_chain(chain, table) for chain, table in config.chains.items()]
    live = Counter(setup.network.chain_id for setup in setups if setup.info.availability == "live")
    for setup in setups:
        if live[setup.network.chain_id] > 1:
            # Two watchers of one network would both see, and credit, every deposit.
            raise ConfigError(
                f"chain id {setup.network.chain_id} is configured twice; a network can be listed once only"
            )
    return setups


def setup_of(config: EvmConfig, chain: str) -> NetworkSetup:
    """Return what of a chain can be changed while the gateway runs."""
    table = config.chains[chain]
    tokens = own_tokens(_resolve_chain(chain, table).info.tokens, table.tokens)
    return NetworkSetup(endpoints=table.rpc_urls, quorum=table.quorum, tokens=tokens)


def changed(config: EvmConfig, chain: str, setup: NetworkSetup) -> EvmConfig:
    """Return a configuration of one chain, with these endpoints and tokens in the place of its own."""
    table = structs.replace(
        config.chains[chain], rpc_urls=setup.endpoints, quorum=setup.quorum, tokens=table_of(setup.tokens)
    )
    found = EvmConfig(chains={chain: table})
    resolve(found)
    return found


def _resolve_chain(chain: str, table: ChainConfig) -> ChainSetup:
    where = f"plugins.evm.chains.{chain}"
    network = _network(chain, table, where)
    _check_endpoints(table, where)
    tokens = merged_tokens(
        network.tokens,
        table.tokens,
        native_symbol=network.native_symbol,
        normalized=parse_address,
        not_tokens=NOT_TOKENS,
        where=where,
    )
    native = Token(
        symbol=network.native_symbol, contract=None, decimals=network.native_decimals, label=network.native_label
    )
    info = ChainInfo(
        id=chain,
        name=network.name,
        family="evm",
        tokens=(native, *(known.token for known in tokens)),
        confirmations=table.confirmations or network.confirmations,
        availability="simulated" if table.simulated else "live",
        chain_id_num=network.chain_id,
        is_evm=True,
        runs_contracts=True,
        finality_required=table.finality_required,
        span_max=table.span_max or network.span_max,
        hashes_kept=table.hashes_kept or network.hashes_kept,
        poll_interval_ms=table.poll_interval_ms or network.poll_interval_ms,
        explorer_tx_url=table.explorer_tx_url or network.explorer_tx_url,
        token_standard=network.token_standard,
        sweeper=None if table.sweeper is None else _sweeper(table.sweeper, tokens, where),
    )
    return ChainSetup(
        info=info,
        network=network,
        config=table,
        # Blocks are hundreds of times as long as short answers; but where batches are unwanted, there are none.
        short_calls_max=table.short_calls_max or (1 if table.batch_calls_max == 1 else table.batch_calls_max * 10),
        lag_blocks_max=table.lag_blocks_max or network.lag_blocks_max,
        contracts={known.contract.lower(): known.contract for known in tokens},
        symbols_onchain={known.contract: known.symbols for known in tokens},
        fees=_fees(network, table, where),
        l1_fee=network.l1_fee if table.l1_fee is None else table.l1_fee,
    )


def _sweeper(text: str, tokens: Sequence[KnownToken], where: str) -> str:
    address = parse_address(text)
    if address is None:
        raise ConfigError(f"{where}.sweeper is no address, or its checksum is wrong")
    if address in NOT_TOKENS or any(token.contract == address for token in tokens):
        raise ConfigError(f"{where}.sweeper is no sweeper: 'cambist sweeper' shows its address")
    return address


def _fees(network: Network, table: ChainConfig, where: str) -> FeeBounds:
    ceiling = _wei(table.fee_ceiling_gwei, network.fee_ceiling_gwei, f"{where}.fee_ceiling_gwei")
    tip_min = _wei(table.tip_min_gwei, network.tip_min_gwei, f"{where}.tip_min_gwei")
    # A bound that the operator did not set gives way to one that is set.
    known_max = network.tip_max_gwei or network.fee_ceiling_gwei
    tip_max = _wei(table.tip_max_gwei, known_max, f"{where}.tip_max_gwei")
    if table.tip_max_gwei is None:
        tip_max = min(max(tip_max, tip_min), ceiling)
    if ceiling <= 0 or not tip_min <= tip_max <= ceiling:
        message = f"{where}: tip_min_gwei, tip_max_gwei and fee_ceiling_gwei must not fall, and the last be above zero"
        raise ConfigError(message)
    return FeeBounds(ceiling=ceiling, tip_min=tip_min, tip_max=tip_max)


def _wei(chosen: Decimal | None, known: str, where: str) -> int:
    gwei = Decimal(known) if chosen is None else chosen
    if not gwei.is_finite() or not 0 <= gwei <= GWEI_MAX or round(gwei, 9) != gwei:
        raise ConfigError(f"{where}: {gwei} is not between 0 and {GWEI_MAX} with at most 9 decimals")
    return int(gwei * GWEI)


def _network(chain: str, table: ChainConfig, where: str) -> Network:
    known = NETWORKS.get(chain)
    if known is not None:
        if table.chain_id not in (None, known.chain_id) or table.native_symbol not in (None, known.native_symbol):
            raise ConfigError(
                f"{where}: {chain} is built in with chain id {known.chain_id} and coin {known.native_symbol}; "
                "give another network another name"
            )
        return known
    if CHAIN_ID_TEXT.fullmatch(chain) is None:
        raise ConfigError(f"{where}: a chain's name is 2 to 32 lower-case letters, digits and dashes, a letter first")
    if table.chain_id is None or table.native_symbol is None or table.confirmations is None:
        raise ConfigError(
            f"{where}: {chain} is not built in (those are {', '.join(NETWORKS)}), so it needs chain_id, native_symbol "
            "and confirmations"
        )
    if SYMBOL.fullmatch(table.native_symbol) is None:
        message = f"{where}.native_symbol: {table.native_symbol!r} is not 1 to 16 letters, digits, dots, dashes"
        raise ConfigError(message)
    return Network(
        id=chain,
        name=table.name or chain,
        chain_id=table.chain_id,
        native_symbol=table.native_symbol.upper(),
        native_label=table.native_symbol.upper(),
        native_decimals=18 if table.native_decimals is None else table.native_decimals,
        confirmations=table.confirmations,
        poll_interval_ms=1000,
        span_max=50,
        hashes_kept=4096,
        lag_blocks_max=10,
        logs_known=False,
        has_base_fee=False,
        estimates_heed_gas=False,
    )


def _check_endpoints(table: ChainConfig, where: str) -> None:
    if not table.rpc_urls and not table.simulated:
        raise ConfigError(f"{where}.rpc_urls is empty: name at least one endpoint, or set simulated = true")
    check_endpoints(table.rpc_urls, quorum=1 if table.simulated else table.quorum, where=where)
