"""What the operator does for merchants: lets them in, lets them back in, and grants live mode."""

from __future__ import annotations

from datetime import datetime

import structlog
from litestar import Controller, post, put
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.audit.entries import Action
from cambist.services.identity import credentials, members, merchants, operators
from cambist.services.identity.members import MEMBERS
from cambist.services.identity.merchants import Name
from cambist_web.context import Web
from cambist_web.dashboard.links import password_link
from cambist_web.once import Once
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, Body

from .merchant_pages import MerchantPages
from .merchants import Email, MerchantView, ResetRequest

log = structlog.get_logger(__name__)


class GrantLive(Body, frozen=True, kw_only=True):
    """Whether the merchant has live mode."""

    live: bool


class MerchantGranted(Answer, frozen=True, kw_only=True):
    """A merchant, as the operator sees it."""

    merchant_id: str
    email: str
    name: str
    live: bool


class ResetIssued(Answer, frozen=True, kw_only=True):
    """A reset token, for the operator to hand to the merchant: `link` leads to a page that takes it."""

    token: str
    link: str
    expires_in: int


class NewMerchant(Body, frozen=True, kw_only=True):
    """Somebody whom the operator lets in. `live` grants live mode at once."""

    email: Email
    name: Name
    live: bool = False


class MerchantMade(Answer, frozen=True, kw_only=True):
    """A new merchant. Whoever opens `link` first sets the password."""

    merchant: MerchantView
    link: str
    expires_in: int


class PasswordResets(Controller):
    """What the operator does for a merchant who is locked out."""

    tags = ("Operator",)

    @post("/password-resets", status_code=201, summary="Issue a password reset token", opt=permits("merchants.recover"))
    async def issue(
        self, data: JSONBody[ResetRequest], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> ResetIssued:
        """Return a token that its bearer can set a new password with, once. An earlier one stops working.

        It stops working, too, where you are disabled or get a role that may not hand it out.
        """
        lifetime_s, email = web.settings.auth.password_reset_s, merchants.normalize_email(data.email)
        async with web.db.transaction() as conn:
            now = web.clock.now()
            token = await _issue_link(conn, web, audit, email, now)
            await audit.record(conn, Action.PASSWORD_RESET_ISSUED, email=email)
        return ResetIssued(token=token, link=password_link(web.settings.web, token), expires_in=lifetime_s)


class NewMerchants(Controller):
    """How merchants come in where registration is closed."""

    tags = ("Operator",)

    @post("/merchants", status_code=201, summary="Make a merchant", opt=permits("merchants.add"))
    async def make(
        self,
        data: JSONBody[NewMerchant],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        once: NamedDependency[Once],
    ) -> MerchantMade:
        """Add a merchant without a password, and return a link that sets one, once and soon.

        When the link has expired, `POST /api/admin/password-resets` makes another one.
        """
        email, name = merchants.normalize_email(data.email), merchants.check_name(data.name)
        lifetime_s, now = web.settings.auth.password_reset_s, web.clock.now()
        # Nobody knows this one.
        password_hash = await web.passwords.hash(web.ids.hex_secret())
        async with web.db.transaction() as conn:
            await once.take(conn)
            merchant = await members.register(
                conn, email=email, name=name, password_hash=password_hash, ids=web.ids, now=now, live=data.live
            )
            token = await _issue_link(conn, web, audit, email, now)
            made = merchant.merchant_id
            live = data.live or None
            await audit.record(conn, Action.MERCHANT_MADE, subject=made, merchant_id=made, email=email, live=live)
            view = MerchantView(merchant_id=merchant.merchant_id, email=merchant.email, name=merchant.name)
            link = password_link(web.settings.web, token)
            return await once.keep(conn, MerchantMade(merchant=view, link=link, expires_in=lifetime_s))


class Grants(Controller):
    """What the operator lets a merchant do."""

    tags = ("Operator",)

    @put("/merchants/{merchant_id:str}", summary="Grant live mode", opt=permits("merchants.live"))
    async def grant(
        self,
        merchant_id: FromPath[str],
        data: JSONBody[GrantLive],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> MerchantGranted:
        """Let a merchant have live projects, or take that back.

        Without the grant no live project can be made. Those that exist go on taking money that comes, but their keys
        only read; the merchant can still withdraw.
        """
        async with web.db.transaction() as conn:
            merchant = await merchants.grant_live(conn, merchant_id, live=data.live)
            done = Action.LIVE_GRANTED if data.live else Action.LIVE_TAKEN_BACK
            await audit.record(conn, done, subject=merchant_id, merchant_id=merchant_id)
        web.key_cache.clear()
        log.warning("live_mode_granted" if data.live else "live_mode_taken_back", merchant_id=merchant_id)
        return MerchantGranted(
            merchant_id=merchant.merchant_id, email=merchant.email, name=merchant.name, live=merchant.live
        )


async def _issue_link(conn: AsyncConnection, web: Web, audit: Audit, email: str, now: datetime) -> str:
    """Return a token that lets a member set a password, as long as the operator who asks may let merchants in."""
    issued_by = await operators.letting_merchants_in(conn, audit.operator_id, audit.origin.session_id)
    lifetime_s = web.settings.auth.password_reset_s
    return await credentials.issue_link(
        conn, MEMBERS, email, ids=web.ids, now=now, lifetime_s=lifetime_s, issued_by=issued_by
    )


controllers = [admin_routes("/api/admin", PasswordResets, NewMerchants, Grants, MerchantPages)]
