"""Platform settings, usage credits and merchants' sessions, for the operator's own programs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from litestar import Controller, Response, delete, get, post, put
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody
from msgspec import Meta, Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.money import format_rate, format_units
from cambist.domain.usage import CREDITS_MAX
from cambist.services import platform
from cambist.services.accounting import usage
from cambist.services.audit.entries import Action
from cambist.services.identity import members, merchants
from cambist.services.payouts import minimums
from cambist.services.platform import PlatformPatch, PlatformSettings
from cambist.services.versions import check_replaced
from cambist_web.context import Web
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, Body, MadeAnswer, made_response, sent

from .usage import SystemCredit, system_credit


class DerivedMinimum(Struct, frozen=True, kw_only=True, rename="camel"):
    """The least that a payout of a token may be, derived from `fee`, in native coin. The prices are in US dollars."""

    minimum: str
    fee: str
    native_price: str | None
    token_price: str | None
    derived_at: datetime


class PlatformSettingsAnswer(PlatformSettings, frozen=True, kw_only=True):
    """Every setting, defaults included. `derived_minimums` hold where `limits` say no `minimum`.

    `version` goes along where they are changed.
    """

    success: bool = True
    version: int
    derived_minimums: Mapping[str, DerivedMinimum]


async def settings_answer(conn: AsyncConnection, web: Web) -> PlatformSettingsAnswer:
    settings, version = await platform.load_versioned(conn)
    derived = {}
    for one in await minimums.list_in_force(conn, settings, web.clock.now()):
        chain = web.gateway.registry.chains.get(one.chain)
        token = None if chain is None else chain.token(one.symbol)
        if chain is None or token is None:
            continue
        derived[f"{one.chain}/{one.symbol}"] = DerivedMinimum(
            minimum=format_units(one.units, token.decimals),
            fee=format_units(one.fee_units, chain.native.decimals),
            native_price=None if one.native_price is None else format_rate(one.native_price),
            token_price=None if one.token_price is None else format_rate(one.token_price),
            derived_at=one.derived_at,
        )
    return PlatformSettingsAnswer(version=version, derived_minimums=derived, **msgspec.structs.asdict(settings))


class GrantCredits(Body, frozen=True, kw_only=True):
    """Credits for a merchant, or a correction where `amount` is below zero."""

    amount: Annotated[int, Meta(ge=-CREDITS_MAX, le=CREDITS_MAX)]
    mode: Literal["live", "sandbox"]
    reference: Annotated[str, Meta(min_length=1, max_length=200)]


class CreditsGranted(MadeAnswer, frozen=True, kw_only=True):
    """What the merchant has now. `idempotent` is there, and true, where the reference was used before."""

    merchant_id: str
    system_credit: SystemCredit


class PlatformSettingsRoutes(Controller):
    path = "/settings"
    tags = ("Operator",)

    @get("/", summary="Read the platform settings", opt=permits("settings.read"))
    async def read(self, web: NamedDependency[Web]) -> PlatformSettingsAnswer:
        """Return every setting, defaults included."""
        async with web.db.autocommit() as conn:
            return await settings_answer(conn, web)

    @put("/", summary="Change platform settings", opt=permits("settings.change"))
    async def change(
        self, data: JSONBody[PlatformPatch], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> PlatformSettingsAnswer:
        """Change what is sent, leave the rest, and return the whole.

        Lists and maps by chain or token are replaced as a whole, which needs the `version` that was read. Where a
        version is sent and somebody has changed something since, nothing is changed: `VERSION_MISMATCH`. Every process
        follows within two seconds.
        """
        check_replaced(data, data.version)
        async with web.db.transaction() as conn:
            await platform.save(conn, web.gateway.registry, data, web.clock.now())
            await audit.record(conn, Action.PLATFORM_SETTINGS_CHANGED, changed=sent(data))
            answer = await settings_answer(conn, web)
        web.platform.forget()
        return answer


class Credits(Controller):
    tags = ("Operator",)

    @post(
        "/merchants/{merchant_id:str}/credits",
        status_code=201,
        summary="Grant usage credits",
        opt=permits("merchants.credits"),
    )
    async def grant(
        self,
        merchant_id: FromPath[str],
        data: JSONBody[GrantCredits],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> Response[CreditsGranted]:
        """Give a merchant credits, once for each reference: a repetition grants nothing and answers 200."""
        async with web.db.transaction() as conn:
            merchant_pk = await merchants.find_pk(conn, merchant_id)
            granted = await usage.grant(conn, merchant_pk, data.mode, data.amount, data.reference)
            balance = await usage.balance(conn, merchant_pk, data.mode)
            settings = await platform.load(conn)
            if granted:
                told = {"amount": data.amount, "mode": data.mode}
                await audit.record(
                    conn, Action.CREDITS_GRANTED, subject=data.reference, merchant_id=merchant_id, **told
                )
        answer = CreditsGranted(merchant_id=merchant_id, system_credit=system_credit(balance, settings, data.mode))
        return made_response(answer, replayed=not granted)


class MerchantSessions(Controller):
    tags = ("Operator",)

    @delete(
        "/merchants/{merchant_id:str}/sessions",
        status_code=200,
        summary="End a merchant's sessions",
        opt=permits("merchants.sign_out"),
    )
    async def end(self, merchant_id: FromPath[str], web: NamedDependency[Web], audit: NamedDependency[Audit]) -> Answer:
        """End every session of a merchant at once, access tokens included. API keys go on working."""
        async with web.db.transaction() as conn:
            merchant_pk = await merchants.find_pk(conn, merchant_id)
            await members.sign_out_all(conn, merchant_pk, now=web.clock.now())
            await audit.record(conn, Action.SESSION_ENDED, subject="all sessions", merchant_id=merchant_id)
        return Answer()


controllers = [admin_routes("/api/admin", PlatformSettingsRoutes, Credits, MerchantSessions)]
