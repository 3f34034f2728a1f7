"""What operators see of chains, and how they change their endpoints while the gateway runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

import msgspec
from litestar import Controller, delete, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.chain_status import ChainReading, Status
from cambist.domain.troubles import PROBLEMS, ChainProblem, SetupProblem, Trouble
from cambist.plugin import ChainInfo
from cambist.services import chain_pauses
from cambist.services.audit.entries import Action
from cambist.services.chain_pauses import Pauses
from cambist.services.chains import endpoints, states
from cambist.services.chains.endpoints import Endpoint, NewEndpoint
from cambist.services.chains.setups import TOPIC
from cambist.services.chains.states import ChainStateRow
from cambist.services.receiving.chain_readings import read_chains
from cambist.services.sending.gas import gas_stations
from cambist_web.context import Web
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.permissions import permits
from cambist_web.schemas import Answer

from .chain_steering import PauseView, pause_views
from .gas_stations import GasStationView, station_views
from .status import chain_status

SILENT_S = 30
"""A worker that watches writes every five seconds; after so many without a word, nobody does."""

EndpointState = Literal["checking", "in_use", "refused", "removed", "absent"]


class ChainEndpointView(Struct, frozen=True, kw_only=True, rename="camel"):
    """An endpoint, by its label or host; its address, which may hold keys, is never shown.

    `state` is `checking` until a worker has asked it, then `in_use`, or `refused` with the `reason`. `origin` is `file`
    or `added`; one of the file that is `removed` comes back when it is added again. The rest is what the worker that
    watches saw last, at `seenAt`: `setAside` says why it is not asked now, and counts are since it was connected.
    """

    endpoint_id: str
    name: str
    origin: Literal["file", "added"]
    state: EndpointState
    reason: str | None
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
    created_at: datetime
    changed_at: datetime


class AdminChainView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A chain as the gateway has it, and as a worker saw it last.

    `availability` is `live` where the operator's file has endpoints, `simulated` for sandbox projects alone, or
    `unconfigured`. `connected` is null where it is not live; `problem` says why it is not, or that no worker tells.
    `error` is what polls fail with since `failingSince`, and `setupProblem` why a change does not hold. Each has its
    code. `quorum` is how many endpoints must agree. Heights are null before the chain was read. `rescanFrom` is the
    lowest block that can be read again: below it, what addresses held is booked, however it came.
    """

    chain: str
    name: str
    family: str
    availability: Literal["live", "simulated", "unconfigured"]
    status: Status | None
    connected: bool | None
    problem: str | None
    problem_code: ChainProblem | None
    setup_problem: str | None
    setup_problem_code: SetupProblem | None
    error: str | None
    error_code: Trouble | None
    failing_since: datetime | None
    head: int | None
    finalized_height: int | None
    height: int | None
    lag_blocks: int | None
    lag_seconds: int | None
    rescan_from: int | None
    polled_at: datetime | None
    confirmations: int
    finality_required: bool
    quorum: int | None
    changeable: bool
    pauses: Sequence[PauseView]
    tokens: Sequence[str]
    gas_station: GasStationView | None
    endpoints: Sequence[ChainEndpointView]


class AdminChainList(Answer, frozen=True, kw_only=True):
    """Every chain that the plugins make known."""

    chains: Sequence[AdminChainView]


class AdminChainAnswer(Answer, frozen=True, kw_only=True):
    """One chain."""

    chain: AdminChainView


class ChainEndpointAnswer(Answer, frozen=True, kw_only=True):
    """One endpoint."""

    endpoint: ChainEndpointView


class _Facts(Struct, frozen=True, kw_only=True):
    """What rows say of chains, at one moment."""

    at: datetime
    readings: Mapping[str, ChainReading]
    states: Mapping[str, ChainStateRow]
    pauses: Pauses
    stations: Mapping[str, GasStationView]
    endpoints: Mapping[str, Sequence[Endpoint]]


async def _facts(conn: AsyncConnection, web: Web, infos: Sequence[ChainInfo]) -> _Facts:
    live = [info for info in infos if info.availability == "live"]
    only = infos[0].id if len(infos) == 1 else None
    found: dict[str, list[Endpoint]] = {}
    for one in await endpoints.list_of(conn, web.clock.now(), only):
        found.setdefault(one.chain, []).append(one)
    stations = station_views(await gas_stations.list_stations(conn), await gas_stations.list_unseen(conn, live))
    return _Facts(
        at=web.clock.now(),
        readings=await read_chains(conn, [info.id for info in live]),
        states=await states.load(conn),
        pauses=await chain_pauses.load(conn),
        stations={one.chain: one for one in stations},
        endpoints=found,
    )


def _view(web: Web, info: ChainInfo, facts: _Facts) -> AdminChainView:
    is_live = info.availability == "live"
    reading, state = facts.readings.get(info.id), facts.states.get(info.id) if is_live else None
    status = chain_status(info, reading, facts.pauses, facts.at)
    silent = state is None or (facts.at - state.seen_at).total_seconds() > SILENT_S
    problem, code = (None, None) if state is None else (state.problem, state.problem_code)
    if is_live and silent:
        problem, code = PROBLEMS[ChainProblem.NO_WORKER], ChainProblem.NO_WORKER
    return AdminChainView(
        chain=info.id,
        name=info.name,
        family=info.family,
        availability=info.availability,
        status=status.status if is_live else None,
        connected=problem is None if is_live else None,
        problem=problem,
        problem_code=None if code is None else ChainProblem(code),
        setup_problem=None if state is None else state.setup_problem,
        setup_problem_code=msgspec.convert(None if state is None else state.setup_problem_code, SetupProblem | None),
        error=None if state is None else state.error,
        error_code=None if state is None or state.error_code is None else Trouble(state.error_code),
        failing_since=None if state is None else state.failing_since,
        head=status.head,
        finalized_height=None if reading is None else reading.finalized,
        height=status.height,
        lag_blocks=status.lag_blocks,
        lag_seconds=status.lag_seconds,
        rescan_from=None if reading is None or reading.books_from is None else reading.books_from + 1,
        polled_at=status.polled_at,
        confirmations=info.confirmations,
        finality_required=info.finality_required,
        quorum=None if state is None else state.quorum,
        changeable=is_live and web.gateway.registry.setup(info.id) is not None,
        pauses=pause_views(facts.pauses, info.id),
        tokens=[token.symbol for token in info.tokens],
        gas_station=facts.stations.get(info.id),
        endpoints=[endpoint_view(one) for one in facts.endpoints.get(info.id, ())],
    )


def endpoint_view(one: Endpoint) -> ChainEndpointView:
    return ChainEndpointView(**{name: getattr(one, name) for name in ChainEndpointView.__struct_fields__})


def find_admin_chain(web: Web, chain: str) -> ChainInfo:
    """Return a chain by its id. Raises NotFoundError."""
    info = web.gateway.registry.chains.get(chain)
    if info is None:
        raise chain_pauses.chain_not_found(chain)
    return info


class Chains(Controller):
    tags = ("Operator",)

    @get("/", summary="List chains as they stand", opt=permits("chains.read"))
    async def list(self, web: NamedDependency[Web]) -> AdminChainList:
        """Return every chain: whether it is connected and how far it was read, its endpoints' health, its gas station.

        A worker writes what it sees every few seconds.
        """
        infos = list(web.gateway.registry.chains.values())
        async with web.db.autocommit() as conn:
            facts = await _facts(conn, web, infos)
        return AdminChainList(chains=[_view(web, info, facts) for info in infos])

    @get("/{chain:str}", summary="Read how a chain stands", opt=permits("chains.read"))
    async def read(self, chain: FromPath[str], web: NamedDependency[Web]) -> AdminChainAnswer:
        """Return one chain, as the list does."""
        info = find_admin_chain(web, chain)
        async with web.db.autocommit() as conn:
            facts = await _facts(conn, web, [info])
        return AdminChainAnswer(chain=_view(web, info, facts))

    @post("/{chain:str}/endpoints", status_code=202, summary="Add an endpoint", opt=permits("chains.endpoints"))
    async def add_endpoint(
        self,
        chain: FromPath[str],
        data: JSONBody[NewEndpoint],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> ChainEndpointAnswer:
        """Have a worker ask an endpoint for the blocks that are stored, and use it when it answers with their hashes.

        Read it again by its `endpointId` until it is `in_use` or `refused`, which takes seconds. What it `replaces` is
        in use until then. No restart is needed, and the next one keeps it.
        """
        info = find_admin_chain(web, chain)
        now = web.clock.now()
        async with web.db.transaction() as conn:
            made = await endpoints.add(conn, web.chain_context, info, data, now)
            told = {"chain": info.id, "name": made.name, "replaces": data.replaces}
            await audit.record(conn, Action.CHAIN_ENDPOINT_ADDED, subject=made.endpoint_id, **told)
        await web.gateway.hints.publish(TOPIC)
        return ChainEndpointAnswer(endpoint=endpoint_view(made))

    @get("/{chain:str}/endpoints/{endpoint_id:str}", summary="Read an endpoint", opt=permits("chains.read"))
    async def read_endpoint(
        self, chain: FromPath[str], endpoint_id: FromPath[str], web: NamedDependency[Web]
    ) -> ChainEndpointAnswer:
        """Return an endpoint, whatever became of it."""
        info = find_admin_chain(web, chain)
        async with web.db.autocommit() as conn:
            return ChainEndpointAnswer(endpoint=endpoint_view(await endpoints.get(conn, info.id, endpoint_id)))

    @delete(
        "/{chain:str}/endpoints/{endpoint_id:str}",
        status_code=200,
        summary="Remove an endpoint",
        opt=permits("chains.endpoints"),
    )
    async def remove_endpoint(
        self,
        chain: FromPath[str],
        endpoint_id: FromPath[str],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> ChainEndpointAnswer:
        """Stop asking an endpoint, within seconds and after the next start. The last one cannot be removed.

        One of the operator's file is removed until it is added again, by its address.
        """
        info = find_admin_chain(web, chain)
        now = web.clock.now()
        async with web.db.transaction() as conn:
            gone = await endpoints.remove(conn, web.chain_context, info, endpoint_id, now)
            told = {"chain": info.id, "name": gone.name}
            await audit.record(conn, Action.CHAIN_ENDPOINT_REMOVED, subject=endpoint_id, **told)
        await web.gateway.hints.publish(TOPIC)
        return ChainEndpointAnswer(endpoint=endpoint_view(gone))


controllers = [admin_routes("/api/admin/chains", Chains)]
