"""A project's API keys: issued, listed, taken back by the merchant in person."""

from __future__ import annotations

from collections.abc import Sequence

from litestar import Controller, delete, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody

from cambist.services.actor import Actor
from cambist.services.audit.entries import Action
from cambist.services.identity import api_keys, merchants
from cambist.services.identity.api_keys import KeyView
from cambist.services.identity.merchants import Name
from cambist_web.auth import owned_project_routes
from cambist_web.context import Web
from cambist_web.origin import Audit
from cambist_web.schemas import Answer, Body


class CreateKey(Body, frozen=True, kw_only=True):
    """A new key."""

    name: Name = "API key"


class KeyIssued(Answer, frozen=True, kw_only=True):
    """A new key. `apiKey` is shown this once."""

    key: KeyView
    api_key: str


class KeyList(Answer, frozen=True, kw_only=True):
    """A project's keys that work."""

    keys: Sequence[KeyView]


class Keys(Controller):
    tags = ("API keys",)

    @post("/", status_code=201, summary="Issue an API key")
    async def issue(
        self,
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        data: JSONBody[CreateKey | None] = None,
    ) -> KeyIssued:
        """Return a new key, `ck_live_...` or `ck_test_...` as the project is. It is shown this once."""
        name = merchants.check_name((data or CreateKey()).name)
        async with web.db.transaction() as conn:
            issued = await api_keys.issue(conn, actor, name, ids=web.ids, now=web.clock.now())
            await audit.record(conn, Action.KEY_ISSUED, subject=issued.key.key_id, name=name)
        return KeyIssued(key=issued.key, api_key=issued.secret)

    @get("/", summary="List API keys")
    async def list(self, actor: NamedDependency[Actor], web: NamedDependency[Web]) -> KeyList:
        """Return the keys that work, oldest first, without their secrets."""
        async with web.db.autocommit() as conn:
            return KeyList(keys=await api_keys.list_keys(conn, actor.project_pk))

    @delete("/{key_id:str}", status_code=200, summary="Take an API key back")
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
