"""What a merchant has decided about each coin: whether it is paid out, and what happens to what comes in."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.money import AmountError, parse_units
from cambist.plugin import ChainInfo, Token, Units
from cambist.registry import Registry
from cambist.services.accounting.tokens import find_chain, find_token
from cambist.services.actor import Actor
from cambist.services.addresses.checks import check_to_address
from cambist.services.errors import ForbiddenError, InvalidError
from cambist.services.pricing.quotes import AmountText, Name

from . import approved_addresses
from .requests import AddressText

COINS_MAX = 1_000
OFF = "off"
LIMIT = "limit"


class CoinSettings(Struct, frozen=True, kw_only=True):
    """One coin of a merchant. Above ``autopayout_threshold``, policy ``limit`` sends available to the address."""

    chain: str
    token: Token
    enabled: bool = True
    auto_convert_enabled: bool = False
    auto_convert_dest_chain: str | None = None
    auto_convert_dest_token: str | None = None
    autopayout_policy: str = OFF
    autopayout_threshold: Units | None = None
    autopayout_address: str | None = None


class Coin(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names a coin."""

    chain: Name
    token: Name


class EnabledCoins(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of ``PUT /api/merchant/wallet/coins``: the coins that are enabled from now on, and no others."""

    coins: Annotated[Sequence[Coin], Meta(max_length=COINS_MAX)]


class CoinPatch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Changes one coin's settings; what is not sent stays, null takes away."""

    auto_convert_enabled: bool | UnsetType = UNSET
    auto_convert_dest_chain: Name | UnsetType | None = UNSET
    auto_convert_dest_token: Name | UnsetType | None = UNSET
    autopayout_policy: Literal["off", "limit"] | UnsetType = UNSET
    autopayout_threshold: AmountText | UnsetType | None = UNSET
    autopayout_address: AddressText | UnsetType | None = UNSET


_COLUMNS = (
    "chain, symbol, enabled, auto_convert_enabled, auto_convert_dest_chain, auto_convert_dest_token,"
    " autopayout_policy, autopayout_threshold, autopayout_address"
)


async def disabled(conn: AsyncConnection, merchant_pk: int, mode: str) -> frozenset[tuple[str, str]]:
    """Return chain and symbol of what the merchant does not pay out."""
    rows = await conn.exec_driver_sql(
        "SELECT chain, symbol FROM coin_settings WHERE merchant_pk = $1 AND mode = $2 AND NOT enabled",
        (merchant_pk, mode),
    )
    return frozenset((row.chain, row.symbol) for row in rows)


async def list_coins(conn: AsyncConnection, registry: Registry, merchant_pk: int, mode: str) -> Sequence[CoinSettings]:
    """Return every coin of the gateway with what the merchant has decided about it."""
    rows = await conn.exec_driver_sql(
        f"SELECT {_COLUMNS} FROM coin_settings WHERE merchant_pk = $1 AND mode = $2",  # noqa: S608  constants
        (merchant_pk, mode),
    )
    decided = {(row.chain, row.symbol): row for row in rows}
    return [
        _settings(chain, token, decided.get((chain.id, token.symbol)))
        for chain in registry.chains.values()
        for token in chain.tokens
    ]


def _settings(chain: ChainInfo, token: Token, row: Row[Any] | None) -> CoinSettings:
    if row is None:
        return CoinSettings(chain=chain.id, token=token)
    return CoinSettings(
        chain=chain.id,
        token=token,
        enabled=row.enabled,
        auto_convert_enabled=row.auto_convert_enabled,
        auto_convert_dest_chain=row.auto_convert_dest_chain,
        auto_convert_dest_token=row.auto_convert_dest_token,
        autopayout_policy=row.autopayout_policy,
        autopayout_threshold=None if row.autopayout_threshold is None else Units(int(row.autopayout_threshold)),
        autopayout_address=row.autopayout_address,
    )


async def replace_enabled(
    conn: AsyncConnection, registry: Registry, actor: Actor, wanted: EnabledCoins, now: datetime
) -> Sequence[CoinSettings]:
    """Enable these coins and disable all others that there are. A coin that comes later is enabled when it comes."""
    enabled = set()
    for place, coin in enumerate(wanted.coins):
        chain = find_chain(registry, coin.chain, f"coins[{place}].chain")
        enabled.add((chain.id, find_token(chain, coin.token, f"coins[{place}].token").symbol))
    coins = sorted((chain.id, token.symbol) for chain in registry.chains.values() for token in chain.tokens)
    await conn.exec_driver_sql(
        "INSERT INTO coin_settings (merchant_pk, mode, updated_at, chain, symbol, enabled)"
        " SELECT $1, $2, $3, * FROM unnest($4::text[], $5::text[], $6::bool[])"
        " ON CONFLICT (merchant_pk, mode, chain, symbol)"
        " DO UPDATE SET enabled = excluded.enabled, updated_at = excluded.updated_at"
        " WHERE coin_settings.enabled <> excluded.enabled",
        (
            actor.merchant_pk,
            actor.mode,
            now,
            [chain for chain, _ in coins],
            [symbol for _, symbol in coins],
            [coin in enabled for coin in coins],
        ),
    )
    return await list_coins(conn, registry, actor.merchant_pk, actor.mode)


_MAKE = (
    "INSERT INTO coin_settings (merchant_pk, mode, chain, symbol, updated_at) VALUES ($1, $2, $3, $4, $5)"
    " ON CONFLICT DO NOTHING"
)
_LOCK = (
    f"SELECT {_COLUMNS} FROM coin_settings"  # noqa: S608  constants
    " WHERE merchant_pk = $1 AND mode = $2 AND chain = $3 AND symbol = $4 FOR UPDATE"
)
_SAVE = (
    "UPDATE coin_settings SET auto_convert_enabled = $5, auto_convert_dest_chain = $6, auto_convert_dest_token = $7,"
    " autopayout_policy = $8, autopayout_threshold = $9::numeric, autopayout_address = $10,"
    " autopayout_project_pk = $11, updated_at = $12"
    " WHERE merchant_pk = $1 AND mode = $2 AND chain = $3 AND symbol = $4"
)


async def change_settings(  # noqa: PLR0913, PLR0917  whose, which coin, what, when
    conn: AsyncConnection, registry: Registry, actor: Actor, coin: Coin, patch: CoinPatch, now: datetime
) -> CoinSettings:
    """Change what is sent of a coin's settings, and return them.

    The project that asks is the one whose webhook is told of auto-payouts. Raises InvalidError; ForbiddenError
    where the address is not among the approved ones.
    """
    chain = find_chain(registry, coin.chain)
    token = find_token(chain, coin.token)
    place = (actor.merchant_pk, actor.mode, chain.id, token.symbol)
    await approved_addresses.lock_approvals(conn, actor.merchant_pk)
    await conn.exec_driver_sql(_MAKE, (*place, now))
    before = _settings(chain, token, (await conn.exec_driver_sql(_LOCK, place)).one())
    after = _merged(registry, chain, before, patch)
    # An approval that was taken back must not be in the way of switching off what depended on it.
    decides = isinstance(patch.autopayout_address, str) or after.autopayout_policy == LIMIT
    if decides and after.autopayout_address is not None:
        await _require_approved(conn, actor, chain, after.autopayout_address)
    await conn.exec_driver_sql(
        _SAVE,
        (
            *place,
            after.auto_convert_enabled,
            after.auto_convert_dest_chain,
            after.auto_convert_dest_token,
            after.autopayout_policy,
            after.autopayout_threshold,
            after.autopayout_address,
            actor.project_pk if after.autopayout_policy == LIMIT else None,
            now,
        ),
    )
    return after


def _merged(registry: Registry, chain: ChainInfo, before: CoinSettings, patch: CoinPatch) -> CoinSettings:
    """Return the settings after a patch, as a whole that can be meant."""
    if patch.auto_convert_enabled is True:
        # It would be stored and do nothing, which is worse than being told.
        raise InvalidError("SWAP_NOT_AVAILABLE", "This gateway cannot convert coins yet.")
    threshold, address = patch.autopayout_threshold, patch.autopayout_address
    after = CoinSettings(
        chain=before.chain,
        token=before.token,
        enabled=before.enabled,
        auto_convert_dest_chain=_either(patch.auto_convert_dest_chain, before.auto_convert_dest_chain),
        auto_convert_dest_token=_either(patch.auto_convert_dest_token, before.auto_convert_dest_token),
        autopayout_policy=_either(patch.autopayout_policy, before.autopayout_policy),
        autopayout_threshold=_threshold(threshold, before.token)
        if isinstance(threshold, str)
        else _either(threshold, before.autopayout_threshold),
        autopayout_address=check_to_address(registry, chain, address, "autopayoutAddress")
        if isinstance(address, str)
        else _either(address, before.autopayout_address),
    )
    if patch.auto_convert_dest_chain is not UNSET or patch.auto_convert_dest_token is not UNSET:
        _check_destination(registry, chain, after)
    if after.autopayout_policy == LIMIT:
        for field, value in (
            ("autopayoutThreshold", after.autopayout_threshold),
            ("autopayoutAddress", after.autopayout_address),
        ):
            if value is None:
                raise InvalidError.field(field, "is required where autopayoutPolicy is limit")
    return after


def _either(sent: Any, before: Any) -> Any:  # noqa: ANN401  of one field's type
    return before if sent is UNSET else sent


def _threshold(text: str, token: Token) -> Units:
    try:
        return parse_units(text, token.decimals)
    except AmountError as error:
        raise InvalidError.field("autopayoutThreshold", str(error), "INVALID_AMOUNT") from None


def _check_destination(registry: Registry, source: ChainInfo, after: CoinSettings) -> None:
    """Refuse a coin to convert to that does not exist, or that nothing can be converted to."""
    chain_id, symbol = after.auto_convert_dest_chain, after.auto_convert_dest_token
    if chain_id is None and symbol is None:
        return
    if chain_id is None or symbol is None:
        missing = "autoConvertDestChain" if chain_id is None else "autoConvertDestToken"
        raise InvalidError.field(missing, "is required beside the other")
    chain = find_chain(registry, chain_id, "autoConvertDestChain")
    token = find_token(chain, symbol, "autoConvertDestToken")
    for end in (source, chain):
        if not end.is_evm:
            raise InvalidError("SWAP_NOT_SUPPORTED_FOR_CHAIN", f"There are no swaps on {end.name}.")
    if (chain.id, token.symbol) == (source.id, after.token.symbol):
        raise InvalidError.field("autoConvertDestToken", "is the coin itself")


async def _require_approved(conn: AsyncConnection, actor: Actor, chain: ChainInfo, address: str) -> None:
    found = await conn.exec_driver_sql(
        "SELECT EXISTS (SELECT FROM approved_addresses"
        " WHERE merchant_pk = $1 AND mode = $2 AND chain = $3 AND address = $4)",
        (actor.merchant_pk, actor.mode, chain.id, address),
    )
    if not found.scalar_one():
        raise ForbiddenError(
            "ADDRESS_NOT_APPROVED",
            "This address is not among the merchant's approved addresses; approving one takes a second factor.",
        )
