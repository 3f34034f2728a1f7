"""Tokens of chains: what operators add by contract, and who may ask for payments in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from litestar import Controller, Response, get, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.troubles import UNSENDABLE, Unsendable
from cambist.plugin import ChainInfo, Token
from cambist.registry import Registry
from cambist.services.audit.entries import Action
from cambist.services.chains import sendable, tokens
from cambist.services.chains.setups import IN_USE, TOPIC
from cambist.services.chains.tokens import NewToken, StoredToken, TokenMerchantView, TokenPatch
from cambist.services.listing import Listed, Part
from cambist.services.supported import find_chain, find_token
from cambist.services.whole_lists import part_of
from cambist_web.context import Web
from cambist_web.lists import Asked
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, CursorPageAnswer, NonEmptyFilter, sent

from .chains import find_admin_chain

TokenState = Literal["checking", "enabled", "disabled", "refused", "replaced"]
ListedState = Literal["checking", "enabled", "disabled", "refused"]
"""A replaced one is read by its id alone."""
TokenOrigin = Literal["file", "added"]
TokenSort = Literal["chain", "-chain", "symbol", "-symbol"]


class AdminToken(Struct, frozen=True, kw_only=True, rename="camel"):
    """A token of a chain. `origin` is `file` for those of the plugin and of the operator's file, else `added`.

    `state` is `checking` until a worker has read the contract, then `enabled`, or `refused` with the `reason`; a
    `disabled` one is credited and sent as before, and no new payment asks for it. Payments are found from the block
    `sinceHeight` on: what came before that needs a rescan. While `sendable` is false, `sendableReason` says why nothing
    of it leaves, with its code, and `signerLines` are what its file lacks, once it has said so. `merchants` are those
    for whom it is different from `defaultEnabled`.
    """

    token_id: str | None
    chain: str
    symbol: str | None
    contract_address: str | None
    decimals: int | None
    label: str | None
    origin: TokenOrigin
    state: TokenState
    reason: str | None
    default_enabled: bool
    merchants: Sequence[TokenMerchantView]
    since_height: int | None
    sendable: bool
    sendable_reason: str | None
    sendable_reason_code: Unsendable | None
    signer_lines: str | None
    changed_at: datetime | None


class AdminTokenList(CursorPageAnswer, frozen=True, kw_only=True):
    """A page of tokens of chains, with those that are being checked or were refused in the last day."""

    tokens: Sequence[AdminToken]


class AdminTokenAnswer(Answer, frozen=True, kw_only=True):
    """One token."""

    token: AdminToken


def _stored(registry: Registry, row: StoredToken, merchants: Sequence[TokenMerchantView] = ()) -> AdminToken:
    in_use = row.state in IN_USE
    why_not = sendable.why_not(origin=row.origin, sendable=row.sendable) if in_use else None
    return AdminToken(
        token_id=row.token_id,
        chain=row.chain,
        symbol=row.symbol,
        contract_address=row.contract,
        decimals=row.decimals,
        label=row.label,
        origin="file" if row.origin == "file" else "added",
        state=row.state,  # type: ignore[arg-type]  # the table's own check
        reason=row.reason,
        default_enabled=row.default_enabled,
        merchants=merchants,
        since_height=row.since_height,
        sendable=in_use and why_not is None,
        sendable_reason=None if why_not is None else UNSENDABLE[why_not],
        sendable_reason_code=why_not,
        signer_lines=_signer_lines(registry, row) if why_not is Unsendable.NOT_IN_SIGNERS_FILE else None,
        changed_at=row.changed_at,
    )


def _of_file(chain: ChainInfo, token: Token) -> AdminToken:
    return AdminToken(
        token_id=None,
        chain=chain.id,
        symbol=token.symbol,
        contract_address=token.contract,
        decimals=token.decimals,
        label=token.label,
        origin="file",
        state="enabled",
        reason=None,
        default_enabled=True,
        merchants=(),
        since_height=None,
        sendable=True,
        sendable_reason=None,
        sendable_reason_code=None,
        signer_lines=None,
        changed_at=None,
    )


def _signer_lines(registry: Registry, row: StoredToken) -> str | None:
    """Return what the signer's file lacks of a token; None of one whose chain is not configured any more."""
    if row.chain not in registry.chains or row.symbol is None or row.decimals is None:
        return None
    label = row.label or row.symbol
    token = Token(symbol=row.symbol, contract=row.contract, decimals=row.decimals, label=label)
    return registry.file_lines(row.chain, token)


def _views(registry: Registry, infos: Sequence[ChainInfo], rows: Sequence[StoredToken]) -> Iterator[AdminToken]:
    """Yield what the file has, as it was decided about, and what was added; for whom it is different is left out."""
    decided = {(row.chain, row.contract): row for row in rows if row.state in IN_USE}
    of_file = [(info, token) for info in infos for token in registry.file_chains[info.id].tokens]
    for info, token in of_file:
        row = decided.get((info.id, token.contract))
        yield _of_file(info, token) if row is None else _stored(registry, row)
    known = {(info.id, token.contract) for info, token in of_file}
    yield from (_stored(registry, row) for row in rows if (row.chain, row.contract) not in known)


def _by_chain(one: AdminToken) -> tuple[str, ...]:
    return one.chain, one.symbol or "", one.contract_address or "", one.token_id or ""


def _by_symbol(one: AdminToken) -> tuple[str, ...]:
    return one.symbol or "", one.chain, one.contract_address or "", one.token_id or ""


async def _answer(conn: AsyncConnection, registry: Registry, row: StoredToken) -> AdminTokenAnswer:
    merchants = await tokens.list_merchants(conn, [row.pk])
    return AdminTokenAnswer(token=_stored(registry, row, merchants.get(row.pk, ())))


class Tokens(Controller):
    tags = ("Operator",)

    @get("/", summary="List tokens with what was decided about them", opt=permits("chains.read"))
    async def list(  # noqa: PLR0913  every query parameter is one
        self,
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        *,
        chain: NonEmptyFilter = None,
        symbol: NonEmptyFilter = None,
        in_state: Annotated[ListedState | None, QueryParameter(name="state")] = None,
        origin: Annotated[TokenOrigin | None, QueryParameter()] = None,
        sort: Annotated[TokenSort, QueryParameter(description="`-` is the last name first.")] = "chain",
    ) -> Response[AdminTokenList]:
        """Return the tokens of the plugins and of the operator's file, and those that were added."""
        chains = web.gateway.registry.chains
        infos = [*chains.values()] if chain is None else [find_chain(chains, chain)]

        async def found(conn: AsyncConnection, part: Part) -> Listed[AdminToken]:
            rows = await tokens.list_rows(conn, web.clock.now(), chain)
            wanted = [
                one
                for one in _views(web.gateway.registry, infos, rows)
                if symbol in {None, one.symbol} and in_state in {None, one.state} and origin in {None, one.origin}
            ]
            page = part_of(wanted, _by_symbol if sort.endswith("symbol") else _by_chain, part)
            pks = {row.token_id: row.pk for row in rows}
            shown = [pks[one.token_id] for one in page.items if one.token_id is not None]
            merchants = await tokens.list_merchants(conn, shown)
            return page.shown_as(
                lambda one: (
                    one
                    if one.token_id is None
                    else msgspec.structs.replace(one, merchants=merchants.get(pks[one.token_id], ()))
                )
            )

        query = asked.of(web, "tokens", "operator", sort=sort, filters=(chain, symbol, in_state, origin))
        return await query.answer(AdminTokenList, found)

    @post("/", status_code=202, summary="Add a token", opt=permits("tokens.change"))
    async def add(
        self, data: JSONBody[NewToken], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> AdminTokenAnswer:
        """Have a worker read a contract's symbol and decimals, and look for the token from then on.

        Read it again by its `tokenId` until it is `enabled` or `refused`, which takes seconds. It is received at once,
        and sent once it stands in the signer's own file. Transfers in blocks that were read before are not found.
        """
        info = find_admin_chain(web, data.chain)
        async with web.db.transaction() as conn:
            made = await tokens.add(conn, web.chain_context, info, data, web.clock.now())
            await audit.record(conn, Action.TOKEN_ADDED, subject=made.token_id, token=sent(data))
            answer = await _answer(conn, web.gateway.registry, made)
        await web.gateway.hints.publish(TOPIC)
        return answer

    @get("/{token_id:str}", summary="Read a token that was added", opt=permits("chains.read"))
    async def read(self, token_id: FromPath[str], web: NamedDependency[Web]) -> AdminTokenAnswer:
        """Return a token, whatever became of it."""
        async with web.db.autocommit() as conn:
            return await _answer(conn, web.gateway.registry, await tokens.get(conn, token_id))

    @patch("/{chain:str}/{symbol:str}", summary="Decide about a token", opt=permits("tokens.change"))
    async def change(
        self,
        chain: FromPath[str],
        symbol: FromPath[str],
        data: JSONBody[TokenPatch],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> AdminTokenAnswer:
        """Disable a token for new payments or enable it again, for all merchants or for some.

        What comes of a disabled token is credited still, and what is there can leave.
        """
        info = find_admin_chain(web, chain)
        asset = info, find_token(info, symbol)
        async with web.db.transaction() as conn:
            row = await tokens.change(conn, web.ids, asset, data, web.clock.now())
            told = {"chain": info.id, "symbol": symbol}
            await audit.record(conn, Action.TOKEN_CHANGED, subject=row.token_id, token=told, changed=sent(data))
            answer = await _answer(conn, web.gateway.registry, row)
        await web.follower.follow()
        await web.gateway.hints.publish(TOPIC)
        return answer


controllers = [admin_routes("/api/admin/tokens", Tokens)]
