"""What a text names of one project: an id, an address, a transaction, an order, an e-mail address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from cambist.services.actor import Actor
from cambist.services.identity.sessions import SessionPrincipal
from cambist.services.oversight import lists
from cambist.services.oversight.finding import TEXT_CHARS_MAX
from cambist.services.oversight.kinds import Name
from cambist.services.oversight.lists import OwnFound
from cambist_web.auth import needs, project_routes
from cambist_web.context import Web
from cambist_web.schemas import Answer

SearchText = Annotated[
    str,
    QueryParameter(
        description="An id, address, transaction, order, external id or e-mail address.",
        min_length=1,
        max_length=TEXT_CHARS_MAX,
    ),
]


class OwnFoundList(Answer, frozen=True, kw_only=True):
    """What a text names, of every kind."""

    found: Sequence[OwnFound]


class ProjectSearch(Controller):
    tags = ("Projects",)

    @get("/", summary="Say what a text names", opt=needs(member="read"))
    async def search(
        self,
        actor: NamedDependency[Actor],
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        q: SearchText,
    ) -> OwnFoundList:
        """Return what of the project an id, address, transaction, order or e-mail address names.

        Of each kind there are the newest ten, of the newest 1,000 payouts, refunds and withdrawals together.
        Withdrawals are the merchant's: whoever has only some of its projects is not told of them.
        """
        without = () if session.project_pks is None else (Name.WITHDRAWALS,)
        async with web.db.transaction() as conn:
            found = await lists.search_project(conn, web.gateway.registry, actor.project_pk, q, without=without)
        return OwnFoundList(found=found)


controllers = [project_routes("/search", ProjectSearch)]
