"""What the operator decides while the gateway runs: one row that ``/api/admin/settings`` reads and writes.

Only what was said is stored; everything else has its default, also one that a later version brings. Processes read
through a cache of at most two seconds, so a change holds everywhere within that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any, NamedTuple

import msgspec
import structlog
from msgspec import UNSET, Meta, Struct, UnsetType, field, structs
from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.cached import Cached
from cambist.db.engine import Database
from cambist.domain import exchanges, usage
from cambist.domain.collections import CollectionRule
from cambist.domain.destinations import normalized
from cambist.domain.exchanges import ExchangeRule
from cambist.domain.money import AmountError, parse_amount, parse_fiat, parse_units
from cambist.domain.usage import CptSettings, Credits, Group, Weight
from cambist.plugin import ChainInfo, InvalidAddressError
from cambist.ports import Clock
from cambist.registry import Registry

from .errors import InvalidError
from .outgoing_limits import MerchantLimit, OutgoingLimit, check_merchants_room, check_room
from .supported import Wording, find_chain, find_token
from .versions import Version, check_version

log = structlog.get_logger(__name__)

CACHE_S = 2.0
LIMITS_MAX = 1_000
ADDRESSES_MAX = 1_000
PROJECTS_MAX = 1_000


Limits = Annotated[Mapping[str, OutgoingLimit], Meta(max_length=LIMITS_MAX)]
AllowedAddresses = Annotated[
    Mapping[str, Annotated[tuple[Annotated[str, Meta(max_length=128)], ...], Meta(max_length=ADDRESSES_MAX)]],
    Meta(max_length=usage.CHAINS_MAX),
]


MinimumFees = Annotated[int, Meta(ge=0, le=1_000)]

GasMax = Annotated[
    Mapping[Annotated[str, Meta(pattern="^prj_[0-9A-Za-z_-]{1,64}$")], Annotated[int, Meta(ge=21_000, le=3_000_000)]],
    Meta(max_length=PROJECTS_MAX),
]


class PlatformSettings(Group, frozen=True, kw_only=True):
    """All of it. ``limits`` are by ``<chain>/<SYMBOL>``.

    ``native_gas_max`` is by project: how much gas its transfers of native coin may take, where the chain's own small
    bound is not enough.

    ``payout_minimum_fees`` is how many times its fee a payout must be worth where ``limits`` say no minimum; with 0,
    nothing.

    ``allowed_addresses`` are by chain: where a chain is in it, nothing else is asked for. They are normalized.
    """

    payout_enabled: bool = True
    payout_swap_enabled: bool = False
    limits: Limits = field(default_factory=dict)
    payout_minimum_fees: MinimumFees = 1
    allowed_addresses: AllowedAddresses = field(default_factory=dict)
    native_gas_max: GasMax = field(default_factory=dict)
    collection: CollectionRule = CollectionRule()
    exchanges: ExchangeRule = field(default_factory=ExchangeRule)
    cpt: CptSettings = field(default_factory=CptSettings)

    def limit_of(self, chain: str, symbol: str) -> OutgoingLimit | None:
        """Return what limits a token that leaves, if anything does."""
        return self.limits.get(f"{chain}/{symbol}")

    def allows_address(self, chain: str, address: str) -> bool:
        """Whether money may go to a normalized address, with its tag behind a ``#`` where it has one."""
        allowed = self.allowed_addresses.get(chain)
        return allowed is None or address in allowed


class _Patch(Group, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is sent of a group; what is not sent stays as it is."""


class NewLimit(OutgoingLimit, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A limit as it is sent. With a slip in the name of its field, it would limit nothing."""


class NewWeights(usage.ChainWeights, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What operations cost on one chain, as it is sent."""


class CollectionPatch(_Patch, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes the collection rule."""

    enabled: bool | UnsetType = UNSET
    min_value_usd: usage.UsdText | UnsetType = UNSET
    max_fee_share_bps: Annotated[int, Meta(ge=0, le=10_000)] | UnsetType = UNSET
    max_age_hours: Annotated[int, Meta(ge=1, le=87_600)] | UnsetType = UNSET
    batched: bool | UnsetType = UNSET


class ExchangePatch(_Patch, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes what exchanges cost and how bad their price may be. Maps are replaced as a whole."""

    swap_enabled: bool | UnsetType = UNSET
    bridge_enabled: bool | UnsetType = UNSET
    swap_fee_bps: exchanges.FeeBps | UnsetType = UNSET
    bridge_fee_bps: exchanges.FeeBps | UnsetType = UNSET
    auto_convert_markup_bps: exchanges.FeeBps | UnsetType = UNSET
    default_slippage_bps: exchanges.SlippageBps | UnsetType = UNSET
    price_guard_bps: exchanges.GuardBps | UnsetType = UNSET
    least_rates: exchanges.LeastRates | UnsetType = UNSET
    providers: exchanges.Switches | UnsetType = UNSET
    valid_minutes: exchanges.ValidMinutes | UnsetType = UNSET
    auto_convert_min_usd: usage.UsdText | UnsetType = UNSET


class WeightsPatch(_Patch, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes weights. ``chains`` is replaced as a whole."""

    chains: Annotated[Mapping[str, NewWeights], Meta(max_length=usage.CHAINS_MAX)] | UnsetType = UNSET
    tracker: Weight | UnsetType = UNSET
    api_method: usage.Free | UnsetType = UNSET
    webhook_delivery: Weight | UnsetType = UNSET


class CptPatch(_Patch, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes what is said about usage credits. ``tiers`` and ``packs`` are replaced as a whole."""

    initial_allowance: Credits | UnsetType = UNSET
    floor: usage.Floor | UnsetType = UNSET
    weights: WeightsPatch | UnsetType = UNSET
    tiers: usage.Tiers | UnsetType = UNSET
    packs: usage.Packs | UnsetType = UNSET


class PlatformPatch(_Patch, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes settings. ``limits``, ``allowed_addresses`` and ``native_gas_max`` are replaced as a whole.

    Whatever is replaced as a whole needs the ``version`` that was read.
    """

    version: Version | UnsetType = UNSET
    payout_enabled: bool | UnsetType = UNSET
    payout_swap_enabled: bool | UnsetType = UNSET
    limits: Annotated[Mapping[str, NewLimit], Meta(max_length=LIMITS_MAX)] | UnsetType = UNSET
    payout_minimum_fees: MinimumFees | UnsetType = UNSET
    allowed_addresses: AllowedAddresses | UnsetType = UNSET
    native_gas_max: GasMax | UnsetType = UNSET
    collection: CollectionPatch | UnsetType = UNSET
    exchanges: ExchangePatch | UnsetType = UNSET
    cpt: CptPatch | UnsetType = UNSET


class VersionedSettings(NamedTuple):
    """The settings, and how often they were changed."""

    settings: PlatformSettings
    version: int


class StoredSettingsError(Exception):
    """The row holds what this version of the gateway does not know, such as what another version has stored."""


def _read(stored: Mapping[str, Any]) -> PlatformSettings:
    """Return what a row says. Raises StoredSettingsError: by defaults in its place more might be allowed than was."""
    try:
        return msgspec.convert(stored, PlatformSettings)
    except msgspec.ValidationError as error:
        raise StoredSettingsError(f"platform_settings is not what this version reads: {error}") from None


async def load(conn: AsyncConnection) -> PlatformSettings:
    return (await load_versioned(conn)).settings


async def load_versioned(conn: AsyncConnection) -> VersionedSettings:
    """Return the settings with their version, as one statement sees them. Raises StoredSettingsError."""
    # Text: most that moves money asks for it, and it takes this process less than half the time.
    row = (await conn.exec_driver_sql("SELECT settings, version FROM platform_settings")).one_or_none()
    return VersionedSettings(_read({} if row is None else row.settings), 0 if row is None else row.version)


async def save(conn: AsyncConnection, registry: Registry, patch: PlatformPatch, now: datetime) -> PlatformSettings:
    """Change what the patch says, and return the whole. Others who save at the same moment wait, and lose nothing.

    Raises InvalidError, naming the field, for what cannot be meant, ConflictError for another version than the patch
    was made for, and StoredSettingsError.
    """
    patch = checked(patch, registry)
    table = models.PlatformSettings
    await conn.execute(insert(table).values(id=1, settings={}, updated_at=now).on_conflict_do_nothing())
    stored = (await conn.execute(select(table.settings, table.version).with_for_update())).one()
    check_version(patch.version, stored.version)
    patch = structs.replace(patch, version=UNSET)
    merged = _merged(stored.settings, patch)
    settings = _read(merged)
    if patch.limits is not UNSET:
        await check_merchants_room(conn, settings.limits)
    version = stored.version + (merged != stored.settings)
    await conn.execute(update(table).values(settings=merged, version=version, updated_at=now))
    # Nothing secret can be in it: who changes what moves money, and when, must be found again.
    log.info("platform_settings_changed", changed=msgspec.to_builtins(patch))
    return settings


def _merged(stored: Mapping[str, Any], patch: Struct) -> dict[str, Any]:
    merged = dict(stored)
    for attribute, name in zip(patch.__struct_fields__, patch.__struct_encode_fields__, strict=True):
        value = getattr(patch, attribute)
        if isinstance(value, _Patch):
            merged[name] = _merged(stored.get(name, {}), value)
        elif value is not UNSET:
            merged[name] = msgspec.to_builtins(value)
    return merged


def checked(patch: PlatformPatch, registry: Registry) -> PlatformPatch:
    """Return the patch with addresses normalized. Raises InvalidError.

    Only what is sent is judged: what was right when it was stored may name a chain that is gone by now.
    """
    if patch.limits is not UNSET:
        check_limits(patch.limits, registry)
        check_room(patch.limits)
    if patch.collection is not UNSET and patch.collection.min_value_usd is not UNSET:
        with _amount_of("collection.minValueUsd"):
            parse_fiat(patch.collection.min_value_usd, "usd")
    if patch.exchanges is not UNSET:
        _check_exchanges(patch.exchanges, registry)
    if patch.cpt is not UNSET:
        _check_cpt(patch.cpt, registry)
    if patch.allowed_addresses is UNSET:
        return patch
    allowed = {chain: _normalized(registry, chain, addresses) for chain, addresses in patch.allowed_addresses.items()}
    return structs.replace(patch, allowed_addresses=allowed)


_WORDING = Wording(
    chain="names no chain of this gateway",
    chain_code="VALIDATION_ERROR",
    token="names no token of this chain: write <chain>/<SYMBOL>",  # noqa: S106  a token on a chain
    token_code="VALIDATION_ERROR",  # noqa: S106  likewise
)


_PAIRS = structs.replace(
    _WORDING,
    token="names no token of this chain: write <chain>/<SYMBOL>><chain>/<SYMBOL>",  # noqa: S106  likewise
)


def check_limits(limits: Mapping[str, OutgoingLimit] | Mapping[str, MerchantLimit], registry: Registry) -> None:
    """Refuse limits of tokens that there are not, and amounts that a token cannot have. Raises InvalidError."""
    for key, limit in limits.items():
        chain, _, symbol = key.rpartition("/")
        token = find_token(_chain(registry, chain, f"limits.{key}"), symbol, f"limits.{key}", _WORDING)
        for attribute, name in zip(limit.__struct_fields__, limit.__struct_encode_fields__, strict=True):
            if (text := getattr(limit, attribute)) is not None:
                with _amount_of(f"limits.{key}.{name}"):
                    parse_units(text, token.decimals)


def _check_exchanges(patch: ExchangePatch, registry: Registry) -> None:
    if patch.auto_convert_min_usd is not UNSET:
        with _amount_of("exchanges.autoConvertMinUsd"):
            parse_fiat(patch.auto_convert_min_usd, "usd")
    for pair, rate in ({} if patch.least_rates is UNSET else patch.least_rates).items():
        path = f"exchanges.leastRates.{pair}"
        for end in pair.partition(">")[::2]:
            chain, _, symbol = end.rpartition("/")
            find_token(_chain(registry, chain, path), symbol, path, _PAIRS)
        with _amount_of(path):
            if not parse_amount(rate):
                raise AmountError("must be above zero")


@contextmanager
def _amount_of(path: str) -> Iterator[None]:
    """Name the field whose amount cannot be read."""
    try:
        yield
    except AmountError as error:
        raise InvalidError.field(path, str(error)) from None


def _check_cpt(patch: CptPatch, registry: Registry) -> None:
    if patch.tiers is not UNSET and (problem := usage.problem_of_tiers(patch.tiers)) is not None:
        raise InvalidError.field(f"cpt.tiers{problem[0]}", problem[1])
    if patch.packs is not UNSET and (problem := usage.problem_of_packs(patch.packs)) is not None:
        raise InvalidError.field(f"cpt.packs{problem[0]}", problem[1])
    if patch.weights is not UNSET and patch.weights.chains is not UNSET:
        for chain in patch.weights.chains:
            if chain != usage.DEFAULT_CHAIN:
                _chain(registry, chain, f"cpt.weights.chains.{chain}")


def _chain(registry: Registry, chain: str, path: str) -> ChainInfo:
    return find_chain(registry.chains, chain, path, _WORDING)


def _normalized(registry: Registry, chain: str, addresses: tuple[str, ...]) -> tuple[str, ...]:
    family = registry.families[_chain(registry, chain, f"allowedAddresses.{chain}").family]
    found = []
    for number, address in enumerate(addresses):
        try:
            found.append(normalized(family, address))
        except InvalidAddressError:
            raise InvalidError.field(f"allowedAddresses.{chain}[{number}]", "is no address of this chain") from None
    return tuple(dict.fromkeys(found))


class PlatformSettingsCache(Cached[PlatformSettings]):
    """One process's copy of the settings, never older than ``CACHE_S``."""

    def __init__(self, db: Database, clock: Clock) -> None:
        super().__init__(db, clock, load, CACHE_S)
