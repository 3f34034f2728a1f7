"""Comparing the books with the chains, when an operator wants it: runs, and what differs in each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Meta, Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.troubles import Trouble
from cambist.services.errors import InvalidError, NotFoundError
from cambist.services.jobs import requests
from cambist.services.jobs.requests import Job, Kind, NewJob
from cambist.services.listing import Listed, Part, Period, Sort
from cambist.services.oversight import merchants
from cambist.services.recovery.reconcile.check import AddressLine, GroupLine
from cambist.services.recovery.reconcile.explain import explanations
from cambist.services.supported import find_chain
from cambist.services.whole_lists import part_of
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.once import Once
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, Body, CursorPageAnswer, NonEmptyFilter

from .admin_jobs import State, StateFilter, ask_for, asked_by
from .admin_webhooks import MerchantFilter

ChainName = Annotated[str, Meta(min_length=1, max_length=64)]
ChainSort = Literal["chain", "-chain"]
GroupFilter = Annotated[Literal["deposits", "wallet", "gas", "between_chains"] | None, QueryParameter()]


class AskReconcile(Body, frozen=True, kw_only=True):
    """Which chains to compare; without any, all that are live. The height is the one that a worker has read up to."""

    chains: Annotated[Sequence[ChainName], Meta(max_length=100)] = ()


class ChainRun(Struct, frozen=True, kw_only=True, rename="camel"):
    """What came of one chain in a run: how many of the balances differ, or the problem with comparing them."""

    chain: str
    height: int | None
    block_hash: str | None
    addresses_asked: int
    balances: int
    differences: int
    listed: int
    problem: str | None
    problem_code: Trouble | None


class ReconcileRun(Struct, frozen=True, kw_only=True, rename="camel"):
    """A run. `agrees` is null until it has ended, and false where a chain differs or could not be compared.

    `chains` are those that are done, `waiting` those that are not.
    """

    job_id: str
    state: State
    agrees: bool | None
    chains: Sequence[ChainRun]
    waiting: Sequence[str]
    requested_by: str
    error: str | None
    error_code: Trouble | None
    created_at: datetime
    finished_at: datetime | None


class Difference(Struct, frozen=True, kw_only=True, rename="camel"):
    """One token of one group of addresses whose balance on the chain is not what the books say.

    `difference` is what is more on the chain, or with a minus less. `explanations` are in the order in which to look.
    """

    chain: str
    height: int
    merchant_id: str | None
    merchant_name: str | None
    group: str
    token: str
    contract_address: str | None
    on_chain: str
    booked: str
    in_transit: str
    difference: str
    addresses: Sequence[AddressLine]
    explanations: Sequence[str]


class ReconcileRunAnswer(Answer, frozen=True, kw_only=True):
    """A run."""

    run: ReconcileRun


class DifferenceList(CursorPageAnswer, frozen=True, kw_only=True):
    """A page of what differs."""

    differences: Sequence[Difference]


class ReconcileList(CursorPageAnswer, frozen=True, kw_only=True):
    """A page of runs."""

    runs: Sequence[ReconcileRun]


class Reconcile(Controller):
    tags = ("Operator",)

    @post("/", status_code=201, summary="Compare books and chains", opt=permits("reconcile.start"))
    async def start(
        self,
        data: JSONBody[AskReconcile],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        once: NamedDependency[Once],
    ) -> ReconcileRunAnswer:
        """Have a worker compare every balance, one chain after the other. It changes nothing.

        Where the same chains are being compared already, that run is returned.
        """
        chains = sorted(set(data.chains))
        for chain in chains:
            if find_chain(web.gateway.registry.chains, chain, "chains").availability != "live":
                raise InvalidError.field("chains", f"must be live chains, and {chain} is none", "UNSUPPORTED_CHAIN")
        new = NewJob(
            kind=Kind.RECONCILE,
            arguments={"chains": chains} if chains else {},
            requested_by=asked_by(audit),
            unique_key=" ".join(chains) or "all",
        )
        async with web.db.transaction() as conn:
            await once.take(conn)
            job = await ask_for(conn, web, audit, new)
            answer = await once.keep(conn, ReconcileRunAnswer(run=_run(web, job)))
        await web.gateway.hints.publish(requests.TOPIC)
        return answer

    @get("/", summary="List comparisons", opt=permits("reconcile.read"))
    async def list(
        self,
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        in_state: StateFilter = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[ReconcileList]:
        """Return the runs. They are kept for `retention.jobs_days`."""

        async def found(conn: AsyncConnection, part: Part) -> Listed[ReconcileRun]:
            jobs = await requests.list_jobs(conn, part, state=in_state, kind=Kind.RECONCILE, period=period)
            return jobs.shown_as(partial(_run, web))

        query = asked.of(web, "reconcile", "operator", sort=sort, filters=(in_state, period))
        return await query.answer(ReconcileList, found)

    @get("/{job_id:str}", summary="Read a comparison", opt=permits("reconcile.read"))
    async def read(self, job_id: FromPath[str], web: NamedDependency[Web]) -> ReconcileRunAnswer:
        """Return one run, with what came of each chain so far."""
        async with web.db.autocommit() as conn:
            return ReconcileRunAnswer(run=_run(web, await _comparison(conn, job_id)))

    @get("/{job_id:str}/differences", summary="List what differs", opt=permits("reconcile.read"))
    async def differences(  # noqa: PLR0913  every query parameter is one
        self,
        job_id: FromPath[str],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        *,
        merchant_id: MerchantFilter = None,
        chain: NonEmptyFilter = None,
        token: NonEmptyFilter = None,
        group: GroupFilter = None,
        sort: Annotated[ChainSort, QueryParameter(description="`-` is the last name first.")] = "chain",
    ) -> Response[DifferenceList]:
        """Return everything that differs so far, 100 lines of each chain at most, and what could explain each."""

        async def found(conn: AsyncConnection, part: Part) -> Listed[Difference]:
            job = await _comparison(conn, job_id)
            wanted = [
                (one, line)
                for one, line in _lines(job)
                if chain in {None, one}
                and token in {None, line.token}
                and group in {None, line.group}
                and merchant_id in {None, line.merchant_id}
            ]
            page = part_of(wanted, _place, part)
            names = await merchants.names_of(
                conn, sorted({line.merchant_id for _, line in page.items if line.merchant_id})
            )
            done = _done(job)
            return page.shown_as(
                lambda one: _difference(one[0], done[one[0]]["height"], one[1], names.get(one[1].merchant_id or ""))
            )

        filters = (merchant_id, chain, token, group)
        query = asked.of(web, "differences", job_id, sort=sort, filters=filters)
        return await query.answer(DifferenceList, found)


async def _comparison(conn: AsyncConnection, job_id: str) -> Job:
    job = await requests.get(conn, job_id)
    if job.kind != Kind.RECONCILE:
        raise NotFoundError("JOB_NOT_FOUND", f"{job_id} is no comparison.")
    return job


def _lines(job: Job) -> Iterator[tuple[str, GroupLine]]:
    """Yield what differs, with its chain."""
    for chain, done in _done(job).items():
        for line in msgspec.convert(done.get("differences", []), list[GroupLine]):
            yield chain, line


def _place(one: tuple[str, GroupLine]) -> tuple[str, ...]:
    chain, line = one
    return chain, line.merchant_id or "", line.group, line.token, line.contract or ""


def _done(job: Job) -> Mapping[str, Any]:
    """Return what is known of each chain: of the result, or of a run that goes on or was broken off."""
    return job.progress if job.result is None else job.result["chains"]


def _run(web: Web, job: Job) -> ReconcileRun:
    done = _done(job)
    live = [info.id for info in web.gateway.registry.chains.values() if info.availability == "live"]
    wanted = job.arguments.get("chains") or sorted(live)
    return ReconcileRun(
        job_id=job.job_id,
        state=msgspec.convert(job.state, State),
        agrees=None if job.result is None else job.result["agrees"],
        chains=[_chain(chain, one) for chain, one in sorted(done.items())],
        waiting=[] if job.finished_at else [chain for chain in wanted if chain not in done],
        requested_by=job.requested_by,
        error=job.error,
        error_code=msgspec.convert(job.error_code, Trouble | None),
        created_at=job.created_at,
        finished_at=job.finished_at,
    )


def _chain(chain: str, done: Mapping[str, Any]) -> ChainRun:
    listed = len(done.get("differences", ()))
    return ChainRun(
        chain=chain,
        height=done.get("height"),
        block_hash=done.get("blockHash"),
        addresses_asked=done.get("addressesAsked", 0),
        balances=done.get("balances", 0),
        differences=done.get("differing", listed),
        listed=listed,
        problem=done.get("problem"),
        problem_code=msgspec.convert(done.get("problemCode"), Trouble | None),
    )


def _difference(chain: str, height: int, line: GroupLine, merchant_name: str | None) -> Difference:
    return Difference(
        chain=chain,
        height=height,
        merchant_id=line.merchant_id,
        merchant_name=merchant_name,
        group=line.group,
        token=line.token,
        contract_address=line.contract,
        on_chain=line.on_chain,
        booked=line.booked,
        in_transit=line.in_transit,
        difference=line.difference,
        addresses=line.addresses,
        explanations=explanations(line.group, line.difference, is_native=line.contract is None),
    )


controllers = [admin_routes("/api/admin/reconcile", Reconcile)]
