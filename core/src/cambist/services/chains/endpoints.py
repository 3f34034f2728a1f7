"""Adding and removing endpoints: what operators ask for, and what became of it. Nodes are asked by ``checking``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace
from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import ChainEndpoint
from cambist.db.structs import columns_of, to_struct
from cambist.plugin import ChainInfo, NetworkSetup, endpoint_key
from cambist.registry import Registry, SetupError
from cambist.secrets import SecretsBox
from cambist.services.errors import ConflictError, InvalidError, NotFoundError, check_text

from .context import ChainContext
from .hosts import name_of, problem_of
from .setups import lock_endpoints, opened, seal

REFUSED_SHOWN = timedelta(days=1)
"""How long lists show what was refused. By its id it is read for ever."""
ENDPOINTS_MAX = 16
"""Of one chain, in use and being checked."""


class NewEndpoint(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """An endpoint of a chain. Its `url` is stored encrypted and never shown again.

    `label` is what it is called, its host otherwise. `replaces` names the endpoint that is removed when it is taken.
    """

    url: Annotated[str, Meta(min_length=1, max_length=2_000)]
    label: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    replaces: Annotated[str, Meta(max_length=64)] | None = None


class Endpoint(Struct, frozen=True, kw_only=True):
    """An endpoint as it is stored, with what the worker that watches saw of it last."""

    pk: int
    endpoint_id: str
    chain: str
    origin: str
    name: str
    state: str
    reason: str | None
    created_at: datetime
    changed_at: datetime
    healthy: bool | None
    head: int | None
    set_aside: str | None
    last_error: str | None
    calls: int | None
    failures: int | None
    rate_limited: int | None
    calls_per_minute: int | None
    latency_ms: int | None
    seen_at: datetime | None
    url_encrypted: bytes | None


_SELECT = select(*columns_of(Endpoint, ChainEndpoint)).order_by(ChainEndpoint.id)
_OPEN = ("in_use", "checking")


async def list_of(conn: AsyncConnection, now: datetime, chain: str | None = None) -> Sequence[Endpoint]:
    """Return what is in use, is being checked, was removed of the file, or was refused lately; of one chain or all."""
    wanted = _SELECT.where(
        ChainEndpoint.state.in_(_OPEN)
        | ((ChainEndpoint.state == "refused") & (ChainEndpoint.changed_at > now - REFUSED_SHOWN))
        | ((ChainEndpoint.origin == "file") & (ChainEndpoint.state == "removed"))
    )
    if chain is not None:
        wanted = wanted.where(ChainEndpoint.chain == chain)
    return [to_struct(Endpoint, row) for row in await conn.execute(wanted)]


async def get(conn: AsyncConnection, chain: str, endpoint_id: str) -> Endpoint:
    """Return one, whatever became of it. Raises NotFoundError."""
    mine = _SELECT.where(ChainEndpoint.chain == chain, ChainEndpoint.endpoint_id == endpoint_id)
    row = (await conn.execute(mine)).one_or_none()
    if row is None:
        raise _unknown(chain)
    return to_struct(Endpoint, row)


async def add(
    conn: AsyncConnection, context: ChainContext, chain: ChainInfo, new: NewEndpoint, now: datetime
) -> Endpoint:
    """Store an endpoint that is to be checked. Raises InvalidError, ConflictError, NotFoundError."""
    registry, box = context.registry, context.secrets
    file = changeable(registry, chain)
    if new.label is not None:
        check_text(new.label, "label")
    if (problem := problem_of(new.url)) is not None:
        raise InvalidError.field("url", problem, "INVALID_ENDPOINT")
    try:
        registry.info(chain.id, replace(file, endpoints=(new.url,), quorum=1))
    except SetupError as error:
        raise InvalidError("INVALID_ENDPOINT", f"The url is refused: {error}.") from error
    known = await _locked(conn, chain.id)
    replaced = None
    if new.replaces is not None:
        replaced = _find(known, chain.id, new.replaces, states=("in_use",))
    node = endpoint_key(new.url)
    told = [(one, endpoint_key(_url(box, one))) for one in known if one.url_encrypted is not None]
    # One that is replaced makes room for itself: its key is another one from then on.
    same = [one for one, key in told if key == node and (one is not replaced or _url(box, one) == new.url)]
    # Of what is in the file, a worker that has started has told; of what is not told, nobody has removed anything.
    untold = {endpoint_key(url) for url in file.endpoints} - {key for _, key in told}
    if node in untold or any(one.state in _OPEN for one in same):
        raise ConflictError("ENDPOINT_KNOWN", f"{chain.id} has this endpoint already, or it is being checked.")
    if sum(one.state in _OPEN for one in known) >= ENDPOINTS_MAX + (replaced is not None):
        raise ConflictError("TOO_MANY_ENDPOINTS", f"A chain has at most {ENDPOINTS_MAX} endpoints; remove one first.")
    values = {
        "state": "checking",
        "reason": None,
        "replaces_pk": None if replaced is None else replaced.pk,
        "claimed_until": None,
        "changed_at": now,
    }
    # One of the file that was removed is the same row again, so that the file's own is not there twice.
    removed = [one for one in same if one.origin == "file" and one.state == "removed"]
    again = next((one for one in removed if _url(box, one) == new.url), None)
    if again is not None:
        await conn.execute(update(ChainEndpoint).where(ChainEndpoint.id == again.pk).values(values))
        return await get(conn, chain.id, again.endpoint_id)
    endpoint_id = context.ids.new("end")
    await conn.execute(
        insert(ChainEndpoint).values(
            endpoint_id=endpoint_id,
            chain=chain.id,
            origin="added",
            name=new.label or name_of(new.url),
            url_encrypted=seal(box, endpoint_id, new.url),
            created_at=now,
            **values,
        )
    )
    return await get(conn, chain.id, endpoint_id)


async def remove(
    conn: AsyncConnection, context: ChainContext, chain: ChainInfo, endpoint_id: str, now: datetime
) -> Endpoint:
    """Remove an endpoint; it is not asked any more within seconds. Removing it again changes nothing.

    Raises NotFoundError, and ConflictError for one without which too few nodes would be left.
    """
    file = changeable(context.registry, chain)
    known = await _locked(conn, chain.id)
    mine = _find(known, chain.id, endpoint_id)
    if mine.state == "in_use":
        # Two ways to one node are one witness.
        left = len({_node(context.secrets, one) for one in known if one.state == "in_use" and one.pk != mine.pk})
        if left < max(1, file.quorum):
            words = f"{chain.id} needs {max(1, file.quorum)} endpoint(s), and would have {left}. Add another first."
            raise ConflictError("LAST_ENDPOINT", words)
        if mine.url_encrypted is None:
            raise ConflictError("CHAIN_NOT_CHANGEABLE", f"The plugin of {chain.id} does not tell its endpoints.")
    if mine.state in ("in_use", "checking"):
        # One of the file that was being checked again goes back to being removed.
        gone = update(ChainEndpoint).where(ChainEndpoint.id == mine.pk)
        await conn.execute(gone.values(state="removed", reason=None, changed_at=now))
    return await get(conn, chain.id, endpoint_id)


def changeable(registry: Registry, chain: ChainInfo) -> NetworkSetup:
    """Return what the file says of a chain that can be changed. Raises ConflictError."""
    if chain.availability != "live":
        words = f"{chain.id} has no endpoint in the operator's file, so no worker is connected to it."
        raise ConflictError("CHAIN_NOT_CHANGEABLE", words)
    file = registry.setup(chain.id)
    if file is None:
        words = f"The plugin of {chain.id} cannot change it while the gateway runs."
        raise ConflictError("CHAIN_NOT_CHANGEABLE", words)
    return file


async def _locked(conn: AsyncConnection, chain: str) -> Sequence[Endpoint]:
    """Return every endpoint of the chain, which nobody else changes meanwhile."""
    await lock_endpoints(conn, chain)
    rows = await conn.execute(_SELECT.where(ChainEndpoint.chain == chain))
    return [to_struct(Endpoint, row) for row in rows]


def _find(known: Sequence[Endpoint], chain: str, endpoint_id: str, states: Sequence[str] = ()) -> Endpoint:
    for one in known:
        if one.endpoint_id == endpoint_id and (not states or one.state in states):
            return one
    raise _unknown(chain)


def _unknown(chain: str) -> NotFoundError:
    return NotFoundError("ENDPOINT_NOT_FOUND", f"{chain} has no such endpoint.")


def _node(box: SecretsBox, one: Endpoint) -> str:
    """Return what two ways to the same node have alike. One of a plugin that tells no address stands for itself."""
    return one.endpoint_id if one.url_encrypted is None else endpoint_key(_url(box, one))


def _url(box: SecretsBox, one: Endpoint) -> str:
    return opened(box, one.endpoint_id, one.url_encrypted or b"")
