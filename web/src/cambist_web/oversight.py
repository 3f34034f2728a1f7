"""What operators' lists over all merchants take, and how they answer."""

from __future__ import annotations

from typing import Annotated, TypeVar

from litestar import Controller, Response
from litestar.di import NamedDependency, Provide
from litestar.params import QueryParameter
from msgspec import Struct

from cambist.services.listing import Period, Sort
from cambist.services.oversight import lists
from cambist.services.oversight.finding import FOUND_MAX, TEXT_CHARS_MAX
from cambist.services.oversight.kinds import Name
from cambist.services.oversight.lists import Wanted

from .context import Web
from .errors import AnyRequest
from .lists import Asked, TimeSort
from .permissions import sees_customers
from .schemas import CursorPageAnswer, NonEmptyFilter

ListT = TypeVar("ListT", bound=CursorPageAnswer)

Search = Annotated[
    str | None,
    QueryParameter(
        description="An id, address, transaction, order, external id, e-mail address, merchant or project. Of what it"
        f" names, the newest {FOUND_MAX:,} are filtered and sorted; where it names more, `totalIsExact` is false.",
        min_length=1,
        max_length=TEXT_CHARS_MAX,
    ),
]
Merchant = Annotated[
    str | None, QueryParameter(description="An id, or an e-mail address.", min_length=1, max_length=TEXT_CHARS_MAX)
]
Mode = Annotated[str | None, QueryParameter(pattern="^(live|sandbox)$")]


class Over(Struct, frozen=True):
    """What is wanted, and whether the one who asks may see customers."""

    wanted: Wanted
    sort: Sort
    with_people: bool


async def provide_over(  # noqa: PLR0913, PLR0917  every query parameter is one
    request: AnyRequest,
    period: NamedDependency[Period],
    status: NonEmptyFilter = None,
    chain: NonEmptyFilter = None,
    token: NonEmptyFilter = None,
    mode: Mode = None,
    merchant: Merchant = None,
    project: NonEmptyFilter = None,
    search: Search = None,
    sort: TimeSort = Sort.NEWEST,
) -> Over:
    """Read what all of these lists take."""
    wanted = Wanted(
        status=status,
        chain=chain,
        token=token,
        mode=mode,
        merchant=merchant,
        project=project,
        search=search,
        period=period,
    )
    return Over(wanted, sort, sees_customers(request.state))


async def list_all(web: Web, asked: Asked, over: Over, name: Name, kind: type[ListT]) -> Response[ListT]:
    query = asked.of(web, f"all-{name}", over.with_people, sort=over.sort, filters=over.wanted)
    registry = web.gateway.registry
    return await query.answer(
        kind,
        lambda conn, part: lists.list_of(conn, registry, name, over.wanted, part, with_people=over.with_people),
    )


class Overseen(Controller):
    tags = ("Operator",)
    dependencies = {"over": Provide(provide_over)}  # noqa: RUF012  the framework's way
