"""A project's API keys: issued, listed, taken back by the merchant in person."""

from __future__ import annotations

from collections.abc import Sequence

from litestar import Controller, Response, delete, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody

from cambist.services.actor import Actor
from cambist.services.audit.entries import Action
from cambist.services.identity import api_keys
from cambist.services.identity.api_keys import KeyView, NewKey
from cambist.services.identity.sessions import SessionPrincipal
from cambist.services.listing import Sort
from cambist_web.auth import needs, owned_project_routes
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.once import Once
from cambist_web.origin import Audit
from cambist_web.permissions import scopes_of
from cambist_web.schemas import Answer, CursorPageAnswer
from cambist_web.standing import still


class KeyIssued(Answer, frozen=True, kw_only=True):
    """A new key. `apiKey` is shown this once."""

    key: KeyView
    api_key: str


class KeyList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of a project's keys that work."""

    keys: Sequence[KeyView]


class Keys(Controller):
    tags = ("API keys",)

    @post("/", status_code=201, summary="Issue an API key", opt=needs(member="keys", step_up=True))
    async def issue(  # noqa: PLR0913, PLR0917  who asks, the body, and what the use case needs
        self,
        actor: NamedDependency[Actor],
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        once: NamedDependency[Once],
        data: JSONBody[NewKey | None] = None,
    ) -> KeyIssued:
        """Return a new key, `ck_live_...` or `ck_test_...` as the project is. It is shown this once.

        Leave `scopes` out for a key that may do all that you may; give it no more than its program needs.
        """
        async with web.db.transaction() as conn:
            await once.take(conn)
            session = await still(conn, session, "keys", actor)
            issued = await api_keys.issue(
                conn,
                actor,
                data or NewKey(),
                may=scopes_of(session.role),
                created_by=session.member_id,
                ids=web.ids,
                now=web.clock.now(),
            )
            key = issued.key
            await audit.record(
                conn,
                Action.KEY_ISSUED,
                subject=key.key_id,
                name=key.name,
                scopes=key.scopes,
                allowed_ips=key.allowed_ips or None,
                expires_at=None if key.expires_at is None else key.expires_at.isoformat(),
            )
            return await once.keep(conn, KeyIssued(key=issued.key, api_key=issued.secret))

    @get("/", summary="List API keys", opt=needs(member="read"))
    async def list(
        self,
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        *,
        sort: TimeSort = Sort.OLDEST,
    ) -> Response[KeyList]:
        """Return the keys that work, without their secrets."""
        query = asked.of(web, "api-keys", actor.project_pk, sort=sort)
        return await query.answer(KeyList, lambda conn, part: api_keys.list_keys(conn, actor.project_pk, part))

    @delete("/{key_id:str}", status_code=200, summary="Take an API key back", opt=needs(member="keys"))
    async def revoke(
        self,
        key_id: FromPath[str],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> Answer:
        """Make the key useless for good: at once here, within a second on every other worker."""
        async with web.db.transaction() as conn:
            await api_keys.revoke(conn, actor.project_pk, key_id, now=web.clock.now())
            await audit.record(conn, Action.KEY_REVOKED, subject=key_id)
        web.key_cache.clear()
        return Answer()


controllers = [owned_project_routes("/api/merchant/projects/{project_id:str}/api-keys", Keys)]
