"""A merchant's team: its members with their roles, invitations, and joining."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from litestar import Controller, Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import UNSET, Meta, Struct, UnsetType

from cambist.services.audit.entries import Action
from cambist.services.identity import invitations, merchants, team
from cambist.services.identity.invitations import InvitationView
from cambist.services.identity.merchants import Name
from cambist.services.identity.projects import PROJECTS_MAX
from cambist.services.identity.sessions import MemberRole, SessionPrincipal
from cambist.services.identity.team import MemberView, Share
from cambist.services.listing import Sort
from cambist.services.versions import Version
from cambist_web.auth import needs, public_routes, session_routes
from cambist_web.context import Web
from cambist_web.dashboard.links import invitation_link, password_link
from cambist_web.errors import AnyRequest
from cambist_web.fetch_site import refuse_other_sites
from cambist_web.lists import Asked, TimeSort
from cambist_web.origin import Audit, address_of
from cambist_web.permissions import member_permissions_of
from cambist_web.schemas import Answer, Body, CursorPageAnswer

from .merchants import Email, Message, Password, Token

ProjectIds = Annotated[tuple[Annotated[str, Meta(max_length=64)], ...], Meta(min_length=1, max_length=PROJECTS_MAX)]


class NewInvitation(Body, frozen=True, kw_only=True):
    """Somebody to invite. Without `projectIds` every project is open, also those that are made later."""

    email: Email
    name: Name
    role: MemberRole
    project_ids: ProjectIds | None = None


class ChangeMember(Body, frozen=True, kw_only=True):
    """What shall be different; what is left out stays. `projectIds: null` opens every project."""

    version: Version | UnsetType = UNSET
    role: MemberRole | UnsetType = UNSET
    project_ids: ProjectIds | UnsetType | None = UNSET


class Accept(Body, frozen=True, kw_only=True):
    """The token out of an invitation's link, and the password to sign in with."""

    token: Token
    password: Password


class ReadInvitation(Body, frozen=True, kw_only=True):
    """The token out of an invitation's link."""

    token: Token


class MemberAnswer(Answer, frozen=True, kw_only=True):
    """A member."""

    member: MemberView


class OwnMemberAnswer(MemberAnswer, frozen=True, kw_only=True):
    """Who asks, and what the role permits: the names are in the table of roles."""

    permissions: Sequence[str]


class MemberLink(MemberAnswer, frozen=True, kw_only=True):
    """A member, and a link that sets a password, once and within so many seconds."""

    link: str
    expires_in: int


class MemberList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of the members."""

    members: Sequence[MemberView]


class InvitationMade(Answer, frozen=True, kw_only=True):
    """An invitation. `link` is shown this once: whoever opens it first sets the password."""

    invitation: InvitationView
    link: str
    expires_in: int


class InvitationList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of the invitations that are open."""

    invitations: Sequence[InvitationView]


class MemberRemoved(Answer, frozen=True, kw_only=True):
    """How many API keys of the member were revoked."""

    keys_revoked: int


class InvitedTo(Struct, frozen=True, kw_only=True, rename="camel"):
    """To what a link invites."""

    merchant_name: str
    email: str
    name: str
    role: MemberRole


class InvitationAnswer(Answer, frozen=True, kw_only=True):
    """An invitation, as whoever has its link sees it."""

    invitation: InvitedTo


class Members(Controller):
    tags = ("Team",)

    @get("/", summary="List the team", opt=needs(member="team.read"))
    async def list(
        self,
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        *,
        sort: TimeSort = Sort.OLDEST,
    ) -> Response[MemberList]:
        """Return everybody who signs in for this merchant."""
        query = asked.of(web, "members", session.merchant_pk, sort=sort)
        return await query.answer(MemberList, lambda conn, part: team.list_members(conn, session.merchant_pk, part))

    @get("/me", summary="Read who you are", opt=needs(member="self"))
    async def me(self, session: NamedDependency[SessionPrincipal], web: NamedDependency[Web]) -> OwnMemberAnswer:
        """Return yourself as a member, and the names of what your role permits."""
        async with web.db.autocommit() as conn:
            member = await team.read(conn, session.merchant_pk, session.member_id)
        return OwnMemberAnswer(member=member, permissions=member_permissions_of(session.role))

    @post("/leave", status_code=200, summary="Leave the team", opt=needs(member="self", step_up=True))
    async def leave(
        self, session: NamedDependency[SessionPrincipal], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> Answer:
        """Give up your access for good, and end your sessions. The last owner stays."""
        async with web.db.transaction() as conn:
            gone = await team.leave(conn, session)
            await audit.record(conn, Action.MEMBER_LEFT, subject=gone.member_id, email=gone.email, role=gone.role)
        return Answer()

    @patch(
        "/{member_id:str}", summary="Change a member's role or projects", opt=needs(member="team.manage", step_up=True)
    )
    async def change(
        self,
        member_id: FromPath[str],
        data: JSONBody[ChangeMember],
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> MemberAnswer:
        """Give a member another role or other projects, from the next request on. The last owner stays one.

        Only owners change owners, and make somebody one. API keys that the member made go on working: see them in the
        projects' lists of keys. Invitations of the member to what the new role may not give are gone. `projectIds`
        replaces what is there by the `version` that was read: `VERSION_MISMATCH` where somebody was faster.
        """
        wanted: dict[str, Any] = {"role": data.role, "project_ids": data.project_ids, "version": data.version}
        async with web.db.transaction() as conn:
            before, member = await team.change(conn, session, member_id, **wanted)
            told: dict[str, Any] = {"email": member.email, "role": member.role, "former_role": before.role}
            told |= {"projects": member.project_ids, "former_projects": before.project_ids}
            await audit.record(conn, Action.MEMBER_CHANGED, subject=member_id, **told)
        return MemberAnswer(member=member)

    @delete(
        "/{member_id:str}", status_code=200, summary="Remove a member", opt=needs(member="team.manage", step_up=True)
    )
    async def remove(
        self,
        member_id: FromPath[str],
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        *,
        revoke_keys: Annotated[bool, QueryParameter(name="revokeKeys")] = False,
    ) -> MemberRemoved:
        """End a member's access at once, with sessions and open invitations. The last owner stays.

        API keys are the project's and go on working, but with `revokeKeys=true` those that the member made do not.
        """
        async with web.db.transaction() as conn:
            gone, revoked = await team.remove(conn, session, member_id, with_keys=revoke_keys, now=web.clock.now())
            told: dict[str, Any] = {"email": gone.email, "role": gone.role}
            told["keys_revoked"] = revoked if revoke_keys else None
            await audit.record(conn, Action.MEMBER_REMOVED, subject=member_id, **told)
        if revoked:
            web.key_cache.clear()
        return MemberRemoved(keys_revoked=revoked)

    @post(
        "/{member_id:str}/two-factor/reset",
        status_code=200,
        summary="Let a member back in",
        opt=needs(member="team.recover", step_up=True),
    )
    async def recover(
        self,
        member_id: FromPath[str],
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> MemberLink:
        """Forget a member's authenticator and password, end all sessions, and return a link that sets a password.

        Be sure who asks. For yourself another owner does it, or a recovery code.
        """
        # Nobody knows this one.
        password_hash = await web.passwords.hash(web.ids.hex_secret())
        lifetime_s, now = web.settings.auth.password_reset_s, web.clock.now()
        async with web.db.transaction() as conn:
            member, token = await team.recover(
                conn, session, member_id, password_hash=password_hash, ids=web.ids, now=now, lifetime_s=lifetime_s
            )
            await audit.record(conn, Action.TWO_FACTOR_RESET, subject=member_id, email=member.email)
        return MemberLink(member=member, link=password_link(web.settings.web, token), expires_in=lifetime_s)


class Invitations(Controller):
    tags = ("Team",)

    @get("/", summary="List open invitations", opt=needs(member="team.read"))
    async def list(
        self,
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        *,
        sort: TimeSort = Sort.OLDEST,
    ) -> Response[InvitationList]:
        """Return who is invited and has not joined yet."""
        now, query = web.clock.now(), asked.of(web, "invitations", session.merchant_pk, sort=sort)
        return await query.answer(
            InvitationList, lambda conn, part: invitations.list_open(conn, session.merchant_pk, part, now=now)
        )

    @post("/", status_code=201, summary="Invite somebody", opt=needs(member="team.manage", step_up=True))
    async def invite(
        self,
        data: JSONBody[NewInvitation],
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> InvitationMade:
        """Return a link by which somebody joins the team, once. Hand it over in a way that you trust.

        A second invitation for the same address replaces the first. Only owners invite owners.
        """
        email, name = merchants.normalize_email(data.email), merchants.check_name(data.name)
        lifetime_s = web.settings.auth.invitation_s
        async with web.db.transaction() as conn:
            invitation, token = await invitations.make(
                conn,
                session,
                Share(data.role, data.project_ids),
                email=email,
                name=name,
                ids=web.ids,
                now=web.clock.now(),
                lifetime_s=lifetime_s,
            )
            told: dict[str, Any] = {"email": email, "role": data.role, "projects": invitation.project_ids}
            await audit.record(conn, Action.MEMBER_INVITED, subject=invitation.invitation_id, **told)
        return InvitationMade(
            invitation=invitation, link=invitation_link(web.settings.web, token), expires_in=lifetime_s
        )

    @delete(
        "/{invitation_id:str}",
        status_code=200,
        summary="Take an invitation back",
        opt=needs(member="team.manage"),
    )
    async def revoke(
        self,
        invitation_id: FromPath[str],
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> Answer:
        """Let an invitation's link open nothing any more."""
        async with web.db.transaction() as conn:
            email = await invitations.revoke(conn, session, invitation_id)
            await audit.record(conn, Action.INVITATION_REVOKED, subject=invitation_id, email=email)
        return Answer()


class Joining(Controller):
    """What is for whoever has an invitation's link, and cannot sign in yet."""

    tags = ("Team",)
    guards = (refuse_other_sites,)

    @post("/read", status_code=200, summary="Read an invitation")
    async def read(
        self, request: AnyRequest, data: JSONBody[ReadInvitation], web: NamedDependency[Web]
    ) -> InvitationAnswer:
        """Return who invites, and to which role, before a password is set."""
        await web.limiter.take(web.limits.login_per_address, address_of(request))
        async with web.db.autocommit() as conn:
            found = await invitations.of_token(conn, data.token, now=web.clock.now())
        told = InvitedTo(merchant_name=found.merchant_name, email=found.email, name=found.name, role=found.role)
        return InvitationAnswer(invitation=told)

    @post("/accept", status_code=200, summary="Join a team")
    async def accept(
        self, request: AnyRequest, data: JSONBody[Accept], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> Message:
        """Become a member with this password; then sign in. A password that is easy to guess is refused."""
        await web.limiter.take(web.limits.login_per_address, address_of(request))
        async with web.db.autocommit() as conn:
            invited = await invitations.of_token(conn, data.token, now=web.clock.now())
        password_hash = await web.passwords.hash_new(data.password, [invited.email, invited.name])
        async with web.db.transaction() as conn:
            member = await invitations.accept(
                conn, data.token, password_hash=password_hash, ids=web.ids, now=web.clock.now()
            )
            by = audit.of_member(member.member_id, member.merchant_id)
            told = {"email": member.email, "role": invited.role}
            await by.record(conn, Action.MEMBER_JOINED, subject=member.member_id, **told)
        return Message(message="Welcome to the team. Sign in with the new password.")


controllers = [
    session_routes("/api/dashboard/members", Members),
    session_routes("/api/dashboard/invitations", Invitations),
    public_routes("/api/auth/invitations", Joining),
]
