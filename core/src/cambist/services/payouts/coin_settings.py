"""What a merchant has decided about each coin: whether it is paid out, and what happens to what comes in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, structs
from sqlalchemy import ColumnElement, and_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import InstrumentedAttribute

from cambist.db import models
from cambist.db.structs import AnyRow, columns_of, to_struct
from cambist.domain.money import AmountError, parse_units
from cambist.plugin import ChainInfo, Token, Units
from cambist.registry import Registry
from cambist.services.actor import Actor
from cambist.services.addresses.checks import check_destination
from cambist.services.chains.setups import lock_token
from cambist.services.errors import ForbiddenError, InvalidError
from cambist.services.pricing.quotes import AmountText, Asset, Name
from cambist.services.supported import find_chain, find_token
from cambist.services.versions import Version, check_version

from . import approved_addresses
from .auto_convert_rules import named_destination, refuse_circle
from .requests import AddressText

COINS_MAX = 1_000
OFF = "off"
LIMIT = "limit"
AUTOPAYOUT = ("autopayout_policy", "autopayout_threshold", "autopayout_address")
"""What of a coin's settings is about auto-payouts."""


class _Decided(Struct, frozen=True, kw_only=True):
    """What is stored of a coin's settings. The defaults hold where nothing is."""

    enabled: bool = True
    auto_convert_enabled: bool = False
    auto_convert_dest_chain: str | None = None
    auto_convert_dest_token: str | None = None
    autopayout_policy: str = OFF
    autopayout_threshold: Units | None = None
    autopayout_address: str | None = None
    min_deposit: Units | None = None


class CoinSettings(_Decided, frozen=True, kw_only=True):
    """One coin of a merchant. Less than ``min_deposit`` is held where it comes to an account.

    Above ``autopayout_threshold``, policy ``limit`` sends available to the address.
    """

    chain: str
    token: Token


class Coin(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names a coin."""

    chain: Name
    token: Name


class EnabledCoins(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of ``PUT /api/merchant/wallet/coins``: the coins that are enabled from now on, and no others.

    With a ``version``, nothing is changed where somebody has since it was read.
    """

    version: Version | UnsetType = UNSET
    coins: Annotated[Sequence[Coin], Meta(max_length=COINS_MAX)]


class CoinPatch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Changes one coin's settings; what is not sent stays, null takes away."""

    auto_convert_enabled: bool | UnsetType = UNSET
    auto_convert_dest_chain: Name | UnsetType | None = UNSET
    auto_convert_dest_token: Name | UnsetType | None = UNSET
    autopayout_policy: Literal["off", "limit"] | UnsetType = UNSET
    autopayout_threshold: AmountText | UnsetType | None = UNSET
    autopayout_address: AddressText | UnsetType | None = UNSET
    min_deposit: AmountText | UnsetType | None = UNSET


_SELECT = select(models.CoinSettings.chain, models.CoinSettings.symbol, *columns_of(_Decided, models.CoinSettings))


def _of(merchant_pk: int, mode: str) -> ColumnElement[bool]:
    return and_(models.CoinSettings.merchant_pk == merchant_pk, models.CoinSettings.mode == mode)


async def disabled(conn: AsyncConnection, merchant_pk: int, mode: str) -> frozenset[tuple[str, str]]:
    """Return chain and symbol of what the merchant does not pay out."""
    rows = await conn.execute(_SELECT.where(_of(merchant_pk, mode), ~models.CoinSettings.enabled))
    return frozenset((row.chain, row.symbol) for row in rows)


async def list_coins(conn: AsyncConnection, registry: Registry, merchant_pk: int, mode: str) -> Sequence[CoinSettings]:
    """Return every coin of the gateway with what the merchant has decided about it."""
    rows = await conn.execute(_SELECT.where(_of(merchant_pk, mode)))
    decided = {(row.chain, row.symbol): row for row in rows}
    return [
        _settings(chain, token, decided.get((chain.id, token.symbol)))
        for chain in registry.chains.values()
        for token in chain.tokens
    ]


def _settings(chain: ChainInfo, token: Token, row: AnyRow | None) -> CoinSettings:
    decided = _Decided() if row is None else to_struct(_Decided, row)
    return CoinSettings(chain=chain.id, token=token, **structs.asdict(decided))


def _version_of(mode: str) -> InstrumentedAttribute[int]:
    merchant = models.Merchant
    return merchant.live_coins_version if mode == "live" else merchant.sandbox_coins_version


async def read_version(conn: AsyncConnection, merchant_pk: int, mode: str, *, lock: bool = False) -> int:
    """Return how often a merchant has said which coins are enabled; with ``lock`` nobody else does until the end."""
    found = select(_version_of(mode)).where(models.Merchant.id == merchant_pk)
    row = await conn.execute(found.with_for_update(key_share=True) if lock else found)
    return row.scalar_one()


async def replace_enabled(
    conn: AsyncConnection, registry: Registry, actor: Actor, wanted: EnabledCoins, now: datetime
) -> Sequence[CoinSettings]:
    """Enable these coins and disable all others that there are. A coin that comes later is enabled when it comes.

    Raises InvalidError, and ConflictError where they are not as ``wanted.version`` says any more.
    """
    version = await read_version(conn, actor.merchant_pk, actor.mode, lock=True)
    check_version(wanted.version, version)
    enabled = set()
    for number, coin in enumerate(wanted.coins):
        chain = find_chain(registry.chains, coin.chain, f"coins[{number}].chain")
        enabled.add((chain.id, find_token(chain, coin.token, f"coins[{number}].token").symbol))
    coins = sorted((chain.id, token.symbol) for chain in registry.chains.values() for token in chain.tokens)
    whose = {"merchant_pk": actor.merchant_pk, "mode": actor.mode, "updated_at": now}
    new = insert(models.CoinSettings)
    changed = new.on_conflict_do_update(
        index_elements=["merchant_pk", "mode", "chain", "symbol"],
        set_={"enabled": new.excluded.enabled, "updated_at": new.excluded.updated_at},
        where=models.CoinSettings.enabled != new.excluded.enabled,
    )
    rows = [
        whose | {"chain": chain, "symbol": symbol, "enabled": (chain, symbol) in enabled} for chain, symbol in coins
    ]
    if rows:
        await conn.execute(changed, rows)
    own = update(models.Merchant).where(models.Merchant.id == actor.merchant_pk)
    await conn.execute(own.values({_version_of(actor.mode): version + 1}))
    return await list_coins(conn, registry, actor.merchant_pk, actor.mode)


async def change_settings(  # noqa: PLR0913, PLR0917  whose, which coin, what, when
    conn: AsyncConnection, registry: Registry, actor: Actor, coin: Coin, patch: CoinPatch, now: datetime
) -> CoinSettings:
    """Change what is sent of a coin's settings, and return them.

    The project that asks is the one whose webhook is told of auto-payouts, where it changes these; and of what is
    converted, where it changes that. Raises InvalidError; ForbiddenError where the address is not among the approved
    ones; ConflictError where coins would be converted in a circle.
    """
    chain = find_chain(registry.chains, coin.chain)
    # Amounts are kept in units: those of a token that was just replaced would be read as the next one's.
    token = await lock_token(conn, registry, chain.id, find_token(chain, coin.token))
    new = insert(models.CoinSettings).values(
        merchant_pk=actor.merchant_pk, mode=actor.mode, chain=chain.id, symbol=token.symbol, updated_at=now
    )
    own = (
        _of(actor.merchant_pk, actor.mode),
        models.CoinSettings.chain == chain.id,
        models.CoinSettings.symbol == token.symbol,
    )
    await approved_addresses.lock_approvals(conn, actor.merchant_pk)
    await conn.execute(new.on_conflict_do_nothing())
    before = _settings(chain, token, (await conn.execute(_SELECT.where(*own).with_for_update())).one())
    after = _merged(registry, chain, before, patch)
    if after.autopayout_policy == LIMIT:
        after = await _with_defaults(conn, actor, after)
    # An approval that was taken back must not be in the way of switching off what depended on it.
    decides = isinstance(patch.autopayout_address, str) or after.autopayout_policy == LIMIT
    if decides and after.autopayout_address is not None:
        whose = actor.merchant_pk, actor.mode
        if not await approved_addresses.is_approved(conn, *whose, chain.id, after.autopayout_address):
            raise ForbiddenError(
                "ADDRESS_NOT_APPROVED",
                "This address is not among the merchant's approved addresses; approving one takes a second factor.",
            )
    decided = {name: getattr(after, name) for name in _Decided.__struct_fields__}
    if after.autopayout_policy != LIMIT:
        decided["autopayout_project_pk"] = None
    elif any(getattr(patch, name) is not UNSET for name in AUTOPAYOUT):
        decided["autopayout_project_pk"] = actor.project_pk
    decided |= await _converting(conn, registry, actor, patch, after, now)
    await conn.execute(update(models.CoinSettings).where(*own).values(decided | {"updated_at": now}))
    return after


def _merged(registry: Registry, chain: ChainInfo, before: CoinSettings, patch: CoinPatch) -> CoinSettings:
    """Return the settings after a patch, as a whole that can be meant."""
    sent = {name: value for name, value in structs.asdict(patch).items() if value is not UNSET}
    if isinstance(patch.autopayout_threshold, str):
        sent["autopayout_threshold"] = _amount("autopayoutThreshold", patch.autopayout_threshold, before.token)
    if isinstance(patch.min_deposit, str):
        sent["min_deposit"] = _amount("minDeposit", patch.min_deposit, before.token)
    if isinstance(patch.autopayout_address, str):
        address = check_destination(registry, chain, patch.autopayout_address, "autopayoutAddress")
        sent["autopayout_address"] = address
    return structs.replace(before, **sent)


async def _converting(  # noqa: PLR0913, PLR0917  whose, what it was and will be, when
    conn: AsyncConnection, registry: Registry, actor: Actor, patch: CoinPatch, after: CoinSettings, now: datetime
) -> Mapping[str, object]:
    """Return what else is stored of a coin's rule to convert, where the patch is about that. Raises as the caller.

    A destination that is gone by now must not be in the way of switching off what went there.
    """
    names_one = patch.auto_convert_dest_chain is not UNSET or patch.auto_convert_dest_token is not UNSET
    if not names_one and patch.auto_convert_enabled is UNSET:
        return {}
    source, dest = Asset(registry.chains[after.chain], after.token), None
    if names_one or after.auto_convert_enabled:
        named = after.auto_convert_dest_chain, after.auto_convert_dest_token
        dest = named_destination(registry, *source, *named)
    fresh = {"auto_convert_refusal": None, "auto_convert_message": None, "auto_convert_refusals": 0}
    if not after.auto_convert_enabled:
        return fresh | {"auto_convert_project_pk": None, "auto_convert_due_at": None}
    if dest is None:
        raise InvalidError.field("autoConvertDestToken", "is required where autoConvertEnabled is true")
    if (dest.chain.id, dest.token.symbol) in await disabled(conn, actor.merchant_pk, actor.mode):
        raise InvalidError.field(
            "autoConvertDestToken", f"is not among the enabled tokens of {dest.chain.id}", "TOKEN_NOT_ENABLED"
        )
    await refuse_circle(conn, actor.merchant_pk, actor.mode, source, dest)
    return fresh | {"auto_convert_project_pk": actor.project_pk, "auto_convert_due_at": now}


async def _with_defaults(conn: AsyncConnection, actor: Actor, coin: CoinSettings) -> CoinSettings:
    """Return what policy ``limit`` means where not all was said: all that is available, to the one approved address.

    Raises InvalidError where there is no such address, or more than one: nobody guesses where money goes.
    """
    threshold = Units(0) if coin.autopayout_threshold is None else coin.autopayout_threshold
    address = coin.autopayout_address
    if address is None:
        here = await approved_addresses.list_approved(conn, actor.merchant_pk, actor.mode, chain=coin.chain)
        if here.total != 1:
            words = "is required where autopayoutPolicy is limit, but where one address of the chain is approved"
            raise InvalidError.field("autopayoutAddress", f"{words}; {here.total} are")
        address = here.items[0].address
    return structs.replace(coin, autopayout_threshold=threshold, autopayout_address=address)


def _amount(field: str, text: str, token: Token) -> Units:
    try:
        return parse_units(text, token.decimals)
    except AmountError as error:
        raise InvalidError.field(field, str(error), "INVALID_AMOUNT") from None
