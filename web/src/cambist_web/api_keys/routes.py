"""A project's API keys: issued, listed, taken back by the merchant in person."""

from __future__ import annotations

from litestar import Controller, Response, delete, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody

from cambist.services.actor import Actor
from cambist.services.identity import api_keys, merchants
from cambist_web.context import Web
from cambist_web.schemas import Answer

from .schemas import CreateKey, KeyIssued, KeyList, key_view


class Keys(Controller):
    """The keys of one project."""

    tags = ("API keys",)

    @post("/", status_code=201, summary="Issue an API key")
    async def issue(
        self, actor: NamedDependency[Actor], web: NamedDependency[Web], data: JSONBody[CreateKey | None] = None
    ) -> Response[KeyIssued]:
        """Return a new key, `ck_live_...` or `ck_test_...` as the project is. It is shown this once."""
        name = merchants.check_name((data or CreateKey()).name)
        async with web.db.transaction() as conn:
            issued = await api_keys.issue(conn, actor, name, ids=web.ids, now=web.clock.now())
        return Response(
            KeyIssued(key=key_view(issued.key), api_key=issued.secret),
            status_code=201,
            headers={"Cache-Control": "no-store"},
        )

    @get("/", summary="List API keys")
    async def list(self, actor: NamedDependency[Actor], web: NamedDependency[Web]) -> KeyList:
        """Return the keys that work, oldest first, without their secrets."""
        async with web.db.autocommit() as conn:
            found = await api_keys.list_keys(conn, actor.project_pk)
        return KeyList(keys=[key_view(key) for key in found])

    @delete("/{key_id:str}", status_code=200, summary="Take an API key back")
    async def revoke(self, key_id: FromPath[str], actor: NamedDependency[Actor], web: NamedDependency[Web]) -> Answer:
        """Make the key useless for good: at once here, within a second on every other worker."""
        async with web.db.transaction() as conn:
            await api_keys.revoke(conn, actor.project_pk, key_id, now=web.clock.now())
        web.key_cache.clear()
        return Answer()
