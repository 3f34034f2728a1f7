"""What a request under an idempotency key was answered, for whoever repeats it: sealed, since it may show a secret.

For what is made or done once and has no key of its own. The key's row is inserted first, in the transaction of the act,
so that a twin waits for the act's end; the answer is stored before the commit. So there is a key exactly where the act
was done. What is long and shows no secret is not kept, but read anew. After ``KEPT`` the row is deleted.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct, structs
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.named import Statement
from cambist.secrets import SecretsBox

from .idempotency import refuse_other_content

FIELD = "kept_answers.answer_encrypted"
KEPT = timedelta(days=1)


class KeyedRequest(Struct, frozen=True, kw_only=True):
    """A request under a key. ``asker`` is whose key it is, ``request_hash`` of all that was asked, but for the key."""

    asker: str
    operation: str
    key: str
    request_hash: bytes


class AnsweredBefore(Exception):  # noqa: N818  no error: it is how the answer of then gets out of the transaction
    """An earlier request under the same key did this. ``body`` is what that was answered."""

    def __init__(self, body: bytes) -> None:
        super().__init__("answered before")
        self.body = body


_IS_KEY = "asker = :asker AND operation = :operation AND key = :key"
_TAKE = Statement("""
INSERT INTO kept_answers (asker, operation, key, request_hash, created_at)
VALUES (:asker, :operation, :key, :request_hash, :now) ON CONFLICT DO NOTHING RETURNING id
""")
_KEEP = Statement(f"UPDATE kept_answers SET answer_encrypted = :sealed WHERE {_IS_KEY}")  # noqa: S608  constants
_FIND = Statement(f"SELECT request_hash, answer_encrypted FROM kept_answers WHERE {_IS_KEY}")  # noqa: S608


def row_name(row: Any) -> str:  # noqa: ANN401  a row or a request: whatever has these three
    """Return what the answer is bound to: no other request is ever given it."""
    return f"{row.asker}\n{row.operation}\n{row.key}"


async def take(conn: AsyncConnection, box: SecretsBox, asked: KeyedRequest, now: datetime) -> bool:
    """Take the key for an act of this transaction, and say so. Waits for a twin that is taking it.

    Says no where the act was done under it and no answer was kept. Raises AnsweredBefore where one was, ConflictError
    where something else was done under it.
    """
    taken = await _TAKE.run(conn, structs.asdict(asked) | {"now": now})
    if taken.one_or_none() is not None:
        return True
    await replay(conn, box, asked)
    return False


async def replay(conn: AsyncConnection, box: SecretsBox, asked: KeyedRequest) -> None:
    """Raise AnsweredBefore where an answer to this was kept under its key, ConflictError where to something else."""
    used = (await _FIND.run(conn, structs.asdict(asked))).one_or_none()
    if used is None:
        return
    refuse_other_content(asked.request_hash, used.request_hash)
    if used.answer_encrypted is not None:
        raise AnsweredBefore(box.decrypt(used.answer_encrypted, field=FIELD, row=row_name(asked)))


async def keep(conn: AsyncConnection, box: SecretsBox, asked: KeyedRequest, body: bytes) -> None:
    """Keep the answer to what was done under the key that this transaction has taken."""
    sealed = box.encrypt(body, field=FIELD, row=row_name(asked))
    await _KEEP.run(conn, structs.asdict(asked) | {"sealed": sealed})
