"""Tokens of chains: what operators add by contract, and who may ask for payments in them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from litestar import Controller, get, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import ChainInfo, Token
from cambist.services.audit.entries import Action
from cambist.services.chains import sendable, tokens
from cambist.services.chains.setups import IN_USE, TOPIC
from cambist.services.chains.tokens import NewToken, StoredToken, TokenMerchantView, TokenPatch
from cambist.services.supported import find_chain, find_token
from cambist_web.context import Web
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, NonEmptyFilter, sent

from .chains import find_admin_chain

TokenState = Literal["checking", "enabled", "disabled", "refused", "replaced"]


class AdminToken(Struct, frozen=True, kw_only=True, rename="camel"):
    """A token of a chain. `origin` is `file` for those of the plugin and of the operator's file, else `added`.

    `state` is `checking` until a worker has read the contract, then `enabled`, or `refused` with the `reason`; a
    `disabled` one is credited and sent as before, and no new payment asks for it. Payments are found from the block
    `sinceHeight` on: what came before that needs a rescan. While `sendable` is false, `sendableReason` says why nothing
    of it leaves. `merchants` are those for whom it is different from `defaultEnabled`.
    """

    token_id: str | None
    chain: str
    symbol: str | None
    contract_address: str | None
    decimals: int | None
    label: str | None
    origin: Literal["file", "added"]
    state: TokenState
    reason: str | None
    default_enabled: bool
    merchants: Sequence[TokenMerchantView]
    since_height: int | None
    sendable: bool
    sendable_reason: str | None
    changed_at: datetime | None


class AdminTokenList(Answer, frozen=True, kw_only=True):
    """Every token of every chain, and those that are being checked or were refused in the last day."""

    tokens: Sequence[AdminToken]


class AdminTokenAnswer(Answer, frozen=True, kw_only=True):
    """One token."""

    token: AdminToken


def _stored(row: StoredToken, merchants: Sequence[TokenMerchantView] = ()) -> AdminToken:
    reason = sendable.why_not(origin=row.origin, sendable=row.sendable)
    in_use = row.state in IN_USE
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
        sendable=in_use and reason is None,
        sendable_reason=reason if in_use else None,
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
        changed_at=None,
    )


async def _answer(conn: AsyncConnection, row: StoredToken) -> AdminTokenAnswer:
    merchants = await tokens.list_merchants(conn, [row.pk])
    return AdminTokenAnswer(token=_stored(row, merchants.get(row.pk, ())))


class Tokens(Controller):
    tags = ("Operator",)

    @get("/", summary="List tokens with what was decided about them", opt=permits("chains.read"))
    async def list(self, web: NamedDependency[Web], *, chain: NonEmptyFilter = None) -> AdminTokenList:
        """Return the tokens of the plugins and of the operator's file first, then those that were added."""
        registry = web.gateway.registry
        infos = list(registry.chains.values()) if chain is None else [find_chain(registry.chains, chain)]
        async with web.db.autocommit() as conn:
            rows = await tokens.list_rows(conn, web.clock.now(), chain)
            merchants = await tokens.list_merchants(conn, [row.pk for row in rows])
        decided = {(row.chain, row.contract): row for row in rows if row.state in IN_USE}
        of_file = [(info, token) for info in infos for token in registry.file_chains[info.id].tokens]
        shown = {(info.id, token.contract) for info, token in of_file}
        views = []
        for info, token in of_file:
            row = decided.get((info.id, token.contract))
            views.append(_of_file(info, token) if row is None else _stored(row, merchants.get(row.pk, ())))
        views += [_stored(row, merchants.get(row.pk, ())) for row in rows if (row.chain, row.contract) not in shown]
        return AdminTokenList(tokens=views)

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
            answer = await _answer(conn, made)
        await web.gateway.hints.publish(TOPIC)
        return answer

    @get("/{token_id:str}", summary="Read a token that was added", opt=permits("chains.read"))
    async def read(self, token_id: FromPath[str], web: NamedDependency[Web]) -> AdminTokenAnswer:
        """Return a token, whatever became of it."""
        async with web.db.autocommit() as conn:
            return await _answer(conn, await tokens.get(conn, token_id))

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
            answer = await _answer(conn, row)
        await web.follower.follow()
        await web.gateway.hints.publish(TOPIC)
        return answer


controllers = [admin_routes("/api/admin/tokens", Tokens)]
