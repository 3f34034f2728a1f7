"""Platform settings, usage credits and merchants' sessions, for the operator's own programs."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from litestar import Controller, Response, delete, get, post, put
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody
from msgspec import Meta

from cambist.domain.usage import CREDITS_MAX
from cambist.services import platform
from cambist.services.accounting import usage
from cambist.services.audit.entries import Action
from cambist.services.identity import merchants, sessions
from cambist.services.platform import PlatformPatch, PlatformSettings
from cambist_web.auth import admin_routes
from cambist_web.context import Web
from cambist_web.origin import Audit
from cambist_web.schemas import Answer, Body, MadeAnswer, made_response, sent

from .usage import SystemCredit, system_credit


class PlatformSettingsAnswer(PlatformSettings, frozen=True, kw_only=True):
    """Every setting, defaults included."""

    success: bool = True


def settings_answer(settings: PlatformSettings) -> PlatformSettingsAnswer:
    return PlatformSettingsAnswer(**msgspec.structs.asdict(settings))


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

    @get("/", summary="Read the platform settings")
    async def read(self, web: NamedDependency[Web]) -> PlatformSettingsAnswer:
        """Return every setting, defaults included."""
        async with web.db.autocommit() as conn:
            return settings_answer(await platform.load(conn))

    @put("/", summary="Change platform settings")
    async def change(
        self, data: JSONBody[PlatformPatch], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> PlatformSettingsAnswer:
        """Change what is sent, leave the rest, and return the whole.

        Lists and maps by chain or token are replaced as a whole. Every process follows within two seconds.
        """
        async with web.db.transaction() as conn:
            settings = await platform.save(conn, web.gateway.registry, data, web.clock.now())
            await audit.record(conn, Action.PLATFORM_SETTINGS_CHANGED, changed=sent(data))
        web.platform.forget()
        return settings_answer(settings)


class Credits(Controller):
    tags = ("Operator",)

    @post("/merchants/{merchant_id:str}/credits", status_code=201, summary="Grant usage credits")
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

    @delete("/merchants/{merchant_id:str}/sessions", status_code=200, summary="End a merchant's sessions")
    async def end(self, merchant_id: FromPath[str], web: NamedDependency[Web], audit: NamedDependency[Audit]) -> Answer:
        """End every session of a merchant at once, access tokens included. API keys go on working."""
        async with web.db.transaction() as conn:
            merchant_pk = await merchants.find_pk(conn, merchant_id)
            await sessions.revoke_all(conn, merchant_pk, now=web.clock.now())
            await audit.record(conn, Action.SESSION_ENDED, subject="all sessions", merchant_id=merchant_id)
        return Answer()


controllers = [admin_routes("/api/admin", PlatformSettingsRoutes, Credits, MerchantSessions)]
