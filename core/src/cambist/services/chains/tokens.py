"""Tokens of chains, added by their contract and decided about, while the gateway runs.

Web stores what is asked for, ``adding`` has the contract read by a worker. What is added is looked for from the next
block on, in every process; nothing is signed for it before it stands in the signer's own file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType
from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import ChainToken, Merchant, TokenMerchant
from cambist.db.structs import columns_of, to_struct
from cambist.plugin import ChainInfo, InvalidAddressError, Token
from cambist.ports import Ids
from cambist.services.errors import ConflictError, InvalidError, NotFoundError, check_text

from .context import ChainContext
from .endpoints import REFUSED_SHOWN, changeable
from .setups import IN_USE, lock_tokens

TOKENS_MAX = 200
"""Added to one chain, and being checked: each is looked for in every block."""
MERCHANTS_MAX = 1_000
"""For whom one token is different from what it is for all."""


class NewToken(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A token by its contract. Symbol and decimals are read from the chain.

    `symbol` is what it goes by here where it is to be another than the contract's own. `replaces` lets it take the
    symbol of a disabled token of which nothing is held. `defaultEnabled` says whether merchants have it without being
    named.
    """

    chain: Annotated[str, Meta(min_length=1, max_length=64)]
    contract: Annotated[str, Meta(min_length=1, max_length=256)]
    symbol: Annotated[str, Meta(pattern=r"^[A-Za-z0-9.+-]{1,16}\Z")] | None = None
    label: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    replaces: bool = False
    default_enabled: bool = True


class TokenPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Changes who may ask for new payments in a token; what is not sent stays.

    `merchants` says by merchant whether it is enabled; null goes back to `defaultEnabled`.
    """

    enabled: bool | UnsetType = UNSET
    default_enabled: bool | UnsetType = UNSET
    merchants: Annotated[Mapping[str, bool | None], Meta(max_length=100)] | UnsetType = UNSET


class StoredToken(Struct, frozen=True, kw_only=True):
    """A token's row."""

    pk: int
    token_id: str
    chain: str
    contract: str | None
    origin: str
    symbol: str | None
    decimals: int | None
    label: str | None
    state: str
    reason: str | None
    default_enabled: bool
    since_height: int | None
    sendable: bool | None
    created_at: datetime
    changed_at: datetime


class TokenMerchantView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A merchant for whom a token is different from what it is for all."""

    merchant_id: str
    name: str
    enabled: bool


_SELECT = select(*columns_of(StoredToken, ChainToken)).order_by(ChainToken.id)


async def list_rows(conn: AsyncConnection, now: datetime, chain: str | None = None) -> Sequence[StoredToken]:
    """Return what is in use, is being checked, or was refused lately; of one chain or all."""
    lately = (ChainToken.state == "refused") & (ChainToken.changed_at > now - REFUSED_SHOWN)
    wanted = _SELECT.where(ChainToken.state.in_(("checking", *IN_USE)) | lately)
    if chain is not None:
        wanted = wanted.where(ChainToken.chain == chain)
    return [to_struct(StoredToken, row) for row in await conn.execute(wanted)]


async def list_merchants(conn: AsyncConnection, token_pks: Sequence[int]) -> Mapping[int, Sequence[TokenMerchantView]]:
    """Return for whom these tokens are different, by token."""
    rows = await conn.execute(
        select(TokenMerchant.token_pk, TokenMerchant.enabled, Merchant.merchant_id, Merchant.name)
        .join(Merchant, Merchant.id == TokenMerchant.merchant_pk)
        .where(TokenMerchant.token_pk.in_(token_pks))
        .order_by(TokenMerchant.token_pk, TokenMerchant.merchant_pk)
    )
    found: dict[int, list[TokenMerchantView]] = {}
    for row in rows:
        view = TokenMerchantView(merchant_id=row.merchant_id, name=row.name, enabled=row.enabled)
        found.setdefault(row.token_pk, []).append(view)
    return found


async def get(conn: AsyncConnection, token_id: str) -> StoredToken:
    """Return one, whatever became of it. Raises NotFoundError."""
    row = (await conn.execute(_SELECT.where(ChainToken.token_id == token_id))).one_or_none()
    if row is None:
        raise NotFoundError("TOKEN_NOT_FOUND", "There is no such token.")
    return to_struct(StoredToken, row)


async def add(
    conn: AsyncConnection, context: ChainContext, chain: ChainInfo, new: NewToken, now: datetime
) -> StoredToken:
    """Store a token whose contract is to be read. Raises InvalidError, ConflictError."""
    registry = context.registry
    changeable(registry, chain)
    for name in ("label", "symbol"):
        if (text := getattr(new, name)) is not None:
            check_text(text, name)
    try:
        contract = registry.families[chain.family].normalize_address(new.contract)
    except InvalidAddressError as error:
        raise InvalidError.field("contract", f"is no address of {chain.name}", "INVALID_ADDRESS") from error
    if any(token.contract == contract for token in chain.tokens):
        raise ConflictError("TOKEN_KNOWN", f"{chain.id} has this token already.")
    await lock_tokens(conn, chain.id)
    known = [one for one in await list_rows(conn, now, chain.id) if one.state != "refused"]
    if any(one.contract == contract for one in known):
        raise ConflictError("TOKEN_KNOWN", f"{chain.id} has this token already, or its contract is being read.")
    if sum(one.origin == "added" for one in known) >= TOKENS_MAX:
        raise ConflictError("TOO_MANY_TOKENS", f"At most {TOKENS_MAX} tokens can be added to a chain.")
    token_id = context.ids.new("tkn")
    await conn.execute(
        insert(ChainToken).values(
            token_id=token_id,
            chain=chain.id,
            contract=contract,
            origin="added",
            symbol=None if new.symbol is None else new.symbol.upper(),
            label=new.label,
            state="checking",
            replaces=new.replaces,
            default_enabled=new.default_enabled,
            created_at=now,
            changed_at=now,
        )
    )
    return await get(conn, token_id)


async def change(
    conn: AsyncConnection, ids: Ids, asset: tuple[ChainInfo, Token], patch: TokenPatch, now: datetime
) -> StoredToken:
    """Decide about a token. Raises NotFoundError, ConflictError."""
    chain, token = asset
    await lock_tokens(conn, chain.id)
    row = await _row_of(conn, ids, chain, token, now)
    values: dict[str, object] = {"changed_at": now}
    if patch.enabled is not UNSET:
        values["state"] = "enabled" if patch.enabled else "disabled"
    if patch.default_enabled is not UNSET:
        values["default_enabled"] = patch.default_enabled
    await conn.execute(update(ChainToken).where(ChainToken.id == row.pk).values(values))
    if patch.merchants is not UNSET:
        await _change_merchants(conn, row.pk, patch.merchants)
    return await get(conn, row.token_id)


async def _row_of(conn: AsyncConnection, ids: Ids, chain: ChainInfo, token: Token, now: datetime) -> StoredToken:
    """Return the token's row, which one of the file gets when it is decided about first."""
    contract = ChainToken.contract.is_not_distinct_from(token.contract)
    mine = _SELECT.where(ChainToken.chain == chain.id, contract, ChainToken.state.in_(IN_USE))
    if (row := (await conn.execute(mine)).one_or_none()) is not None:
        return to_struct(StoredToken, row)
    made = insert(ChainToken).values(
        token_id=ids.new("tkn"),
        chain=chain.id,
        contract=token.contract,
        origin="file",
        symbol=token.symbol,
        decimals=token.decimals,
        label=token.label,
        state="enabled",
        created_at=now,
        changed_at=now,
    )
    try:
        async with conn.begin_nested():
            found = (await conn.execute(made.returning(*columns_of(StoredToken, ChainToken)))).one()
    except IntegrityError as error:
        words = f"{token.symbol} on {chain.id} is being checked, or its symbol stands for another token."
        raise ConflictError("TOKEN_KNOWN", words) from error
    return to_struct(StoredToken, found)


async def _change_merchants(conn: AsyncConnection, token_pk: int, wanted: Mapping[str, bool | None]) -> None:
    rows = await conn.execute(select(Merchant.id, Merchant.merchant_id).where(Merchant.merchant_id.in_(list(wanted))))
    pks = {row.merchant_id: row.id for row in rows}
    for merchant_id, enabled in wanted.items():
        if merchant_id not in pks:
            raise NotFoundError("MERCHANT_NOT_FOUND", f"There is no merchant {merchant_id}.")
        key = {"token_pk": token_pk, "merchant_pk": pks[merchant_id]}
        if enabled is None:
            mine = TokenMerchant.token_pk == token_pk, TokenMerchant.merchant_pk == key["merchant_pk"]
            await conn.execute(delete(TokenMerchant).where(*mine))
            continue
        new = insert(TokenMerchant).values(**key, enabled=enabled)
        await conn.execute(new.on_conflict_do_update(index_elements=list(key), set_={"enabled": enabled}))
    counted = select(func.count()).select_from(TokenMerchant).where(TokenMerchant.token_pk == token_pk)
    if (await conn.execute(counted)).scalar_one() > MERCHANTS_MAX:
        words = f"A token is different for at most {MERCHANTS_MAX} merchants; change defaultEnabled instead."
        raise ConflictError("TOO_MANY_MERCHANTS", words)
