"""Doing what a request asks for once, however often it arrives.

Browsers repeat a request by themselves when a connection breaks, and programs when they have waited in vain. A handler
whose act has no idempotency key of its own asks for ``once``. Its route then takes ``Idempotency-Key``, and whoever
repeats the request under its key gets the very answer of the first one, for a day, secrets included::

    async with web.db.transaction() as conn:
        await once.take(conn)
        ...
        answer = await once.keep(conn, KeyIssued(...))
    return answer

Not for a request that carries a password: what was asked is stored as a hash that says whether it was the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

from litestar import Response
from litestar.di import NamedDependency
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services import kept_answers
from cambist.services.errors import InvalidError
from cambist.services.idempotency import choose_key, hash_request
from cambist.services.kept_answers import AnsweredBefore, KeyedRequest

from .context import Web
from .errors import AnyRequest
from .origin import Connection
from .requests import IDEMPOTENCY_KEY, refuse_two_keys
from .schemas import JsonAnswer, idempotency_header

ActKey = Annotated[
    str | None, idempotency_header("The same key does it once: a repetition is answered alike, for a day.")
]
AnswerT = TypeVar("AnswerT", bound=Struct)


class Once:
    """One request, which is carried out once where it has a key."""

    def __init__(self, web: Web, asked: KeyedRequest | None) -> None:
        self._web, self._asked, self._box = web, asked, web.gateway.secrets

    def check_length(self, least: int) -> None:
        """Refuse a key that is too short to be chosen by chance, where it is what lets somebody in."""
        if self._asked is not None and len(self._asked.key) < least:
            raise InvalidError.field(IDEMPOTENCY_KEY, f"must have at least {least} characters here, chosen by chance")

    async def take(self, conn: AsyncConnection) -> bool:
        """Take the key, before anything else in the transaction that acts, and say so. Waits for a twin.

        Says no where the act was done under it and its answer was not kept: it is read anew. Raises AnsweredBefore,
        which is answered as the first one was, and ConflictError where the key was used for something else.
        """
        if self._asked is None:
            return True
        return await kept_answers.take(conn, self._box, self._asked, self._web.clock.now())

    async def keep(self, conn: AsyncConnection, answer: AnswerT) -> AnswerT:
        """Keep the answer in the transaction that acts, and return it."""
        if self._asked is not None:
            body = JsonAnswer[Any](None).render(answer, "application/json")
            await kept_answers.keep(conn, self._box, self._asked, body)
        return answer

    async def around(self, work: Callable[[], Awaitable[AnswerT]]) -> AnswerT:
        """Do work once that opens its transactions itself. What was done of it stays where it fails, or the process.

        A connection waits meanwhile, so only so many of these are under way at once.
        """
        if self._asked is None:
            return await work()
        async with self._web.around, self._web.db.transaction() as conn:
            await self.take(conn)
            return await self.keep(conn, await work())


async def provide_once(request: AnyRequest, web: NamedDependency[Web], idempotency_key: ActKey = None) -> Once:
    """Read under which key the request is carried out. Raises InvalidError for one that is none."""
    refuse_two_keys(request)
    key = choose_key(idempotency_key, None)
    if key is None:
        return Once(web, None)
    takes_body = request.route_handler.parsed_data_field is not None
    body = await request.json() if takes_body and await request.body() else None
    return Once(web, keyed_request(request, _asker(request), key, body))


def keyed_request(connection: Connection, asker: str, key: str, body: object = None) -> KeyedRequest:
    """Return what a request asks for under a key: its path and query say as much of it as its body."""
    scope = connection.scope
    return KeyedRequest(
        asker=asker,
        operation=f"{scope.get('method')} {scope['path_template']}",
        key=key,
        request_hash=hash_request((scope["path"], scope["query_string"].decode("latin-1"), body)),
    )


def of_token(token_hash: bytes) -> str:
    """Return whose the keys are that come with a tracker's token: nobody's who has another one."""
    return f"token {token_hash.hex()}"


def _asker(request: AnyRequest) -> str:
    """Return whose key this is: a person's, a project's programs', that of a tracker's token, or the operators'."""
    state = request.state
    if (session := state.get("session")) is not None:
        return f"member {session.member_id}"
    if (actor := state.get("actor")) is not None:
        return f"project {actor.project_id}"
    if (tracker := state.get("tracker")) is not None:
        return of_token(tracker.token_hash)
    return f"operator {state.operator}"


def on_answered_before(request: AnyRequest, error: AnsweredBefore) -> Response[bytes]:
    """Answer a repetition as the first request was answered."""
    status = getattr(request.route_handler, "status_code", None)  # every route's handler has one
    return Response(error.body, status_code=status, media_type="application/json")
