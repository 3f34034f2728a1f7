"""Streams of what changes, so that a page need not ask again and again. Each is of one person, by an access token.

A browser's EventSource cannot send a header, and a token in a URL would be in logs: pages read the stream by ``fetch``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Literal

from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.params import HeaderParameter, QueryParameter

from cambist.services.errors import InvalidError
from cambist.services.identity import projects
from cambist.services.identity.sessions import SessionPrincipal
from cambist_web.auth import expiry_of, needs, session_routes
from cambist_web.context import Web
from cambist_web.errors import AnyRequest
from cambist_web.live.hub import Live
from cambist_web.live.messages import KINDS, OF_MERCHANTS
from cambist_web.live.response import LiveStream
from cambist_web.live.viewers import Viewer
from cambist_web.operator_auth import admin_routes
from cambist_web.permissions import permits

ModeFilter = Annotated[Literal["live", "sandbox"] | None, QueryParameter(description="Of this mode alone.")]
KindFilter = Annotated[
    str | None,
    QueryParameter(
        description="Of this kind, or of one of several, with commas between.",
        pattern=r"^[a-z_]{1,32}(,[a-z_]{1,32}){0,31}$",
        max_length=32 * 33,
    ),
]
LastEventId = Annotated[
    str | None,
    HeaderParameter(
        name="Last-Event-ID", description="The last `id` of a stream that ended: go on there.", max_length=256
    ),
]


class MerchantStream(Controller):
    tags = ("Streams",)

    @get("/stream", summary="Stream what changes", media_type="text/event-stream", opt=needs(member="read"))
    async def follow(  # noqa: PLR0913  every parameter is one
        self,
        request: AnyRequest,
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        live: NamedDependency[Live],
        *,
        kinds: KindFilter = None,
        mode: ModeFilter = None,
        last_event_id: LastEventId = None,
    ) -> LiveStream:
        """Tell which things of the projects that are open to you changed, until the access token expires.

        Each message names a thing to read again. What is on its way over a chain is told by what it is for: `payout`,
        `refund`, `withdrawal`, `collection` or `exchange` without `id`, where its waiting or its transaction changed.
        After `ready` with `resumed` false, and after `resync`, read
        everything again that the page shows. 429 `STREAMS_LIMITED` for too many streams of one person.
        """
        modes: Collection[str] = ()
        if session.project_pks is not None:
            async with web.db.autocommit() as conn:
                modes = await projects.modes_of(conn, session.project_pks)
        viewer = Viewer(
            person=session.member_id,
            principal=session,
            expires_at=expiry_of(web.merchants, request),
            merchant_pk=session.merchant_pk,
            project_pks=session.project_pks,
            modes=modes,
            kinds=_kinds(kinds, OF_MERCHANTS),
            mode=mode,
        )
        return _stream(live, viewer, last_event_id)


class OperatorStream(Controller):
    tags = ("Operator",)

    @get("/", summary="Stream what changes", media_type="text/event-stream", opt=permits("stream.read"))
    async def follow(  # noqa: PLR0913  every parameter is one
        self,
        request: AnyRequest,
        web: NamedDependency[Web],
        live: NamedDependency[Live],
        *,
        kinds: KindFilter = None,
        mode: ModeFilter = None,
        last_event_id: LastEventId = None,
    ) -> LiveStream:
        """Tell which things of all merchants and of the gateway changed, until the access token expires.

        Each message names a thing to read again. After `ready` with `resumed` false, and after `resync`, read
        everything again that the page shows. 429 `STREAMS_LIMITED` for too many streams of one person.
        """
        principal = request.state.get("operator_session")
        viewer = Viewer(
            person="the admin key" if principal is None else principal.operator_id,
            principal=principal,
            expires_at=None if principal is None else expiry_of(web.operators, request),
            kinds=_kinds(kinds, KINDS),
            mode=mode,
        )
        return _stream(live, viewer, last_event_id)


def _stream(live: Live, viewer: Viewer, last_event_id: str | None) -> LiveStream:
    live.check_room(viewer)
    return LiveStream(live.follow(viewer, last_event_id), live.options.send_s)


def _kinds(named: str | None, known: frozenset[str]) -> frozenset[str] | None:
    if named is None:
        return None
    kinds = frozenset(named.split(","))
    if not kinds <= known:
        raise InvalidError.field("kinds", f"must be of {', '.join(sorted(known))}")
    return kinds


controllers = [
    session_routes("/api/dashboard", MerchantStream),
    admin_routes("/api/admin/stream", OperatorStream),
]
