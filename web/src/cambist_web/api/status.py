"""What a status page shows: whether the gateway works, chain by chain, and nothing about business."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from litestar import Controller, Response, get
from litestar.di import NamedDependency
from msgspec import UNSET, Struct, UnsetType

from cambist.domain.chain_status import ChainReading, Overall, Status, judge, overall
from cambist.plugin import ChainInfo
from cambist.services.chain_pauses import Pausable, Pauses
from cambist_web.auth import public_routes
from cambist_web.context import Web
from cambist_web.schemas import JsonAnswer

TRACKER_VERSION = "3.0.0"
"""Of the interface of trackers, which is older than that of the rest."""


class ChainStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    """How far a chain was read: up to `height`, while its newest block was `head`.

    `lagSeconds` is how long ago the last block that was read was made. A chain that was never read has nulls.
    `status` is `paused` while the gateway's operator has paused reading the chain, and `sendingPaused` says that what
    is to be sent there waits for the operator.
    """

    chain: str
    name: str
    status: Status
    head: int | None = None
    height: int | None = None
    lag_blocks: int | None = None
    lag_seconds: int | None = None
    polled_at: datetime | None = None
    sending_paused: bool = False


class GatewayStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    """How the gateway does. `error` and `code` are there where it cannot tell."""

    success: bool
    status: Overall
    version: str
    checked_at: datetime
    chains: Sequence[ChainStatus]
    error: str | UnsetType = UNSET
    code: str | UnsetType = UNSET


def chain_status(info: ChainInfo, reading: ChainReading | None, pauses: Pauses, now: datetime) -> ChainStatus:
    is_paused = (info.id, Pausable.WATCHING) in pauses
    status: Status = "paused" if is_paused else judge(reading, info.poll_interval_ms, now)
    sending_paused = (info.id, Pausable.SENDING) in pauses
    if reading is None:
        return ChainStatus(chain=info.id, name=info.name, status=status, sending_paused=sending_paused)
    return ChainStatus(
        chain=info.id,
        name=info.name,
        status=status,
        head=reading.head,
        height=reading.height,
        lag_blocks=max(0, reading.head - reading.height),
        lag_seconds=None if reading.mined_at is None else max(0, int((now - reading.mined_at).total_seconds())),
        polled_at=reading.polled_at,
        sending_paused=sending_paused,
    )


class StatusPage(Controller):
    tags = ("Operation",)

    @get("/", summary="How does the gateway do?")
    async def read(self, web: NamedDependency[Web]) -> Response[GatewayStatus]:
        """Return whether chains are read as they should be, up to three seconds old; 503 without the database.

        Told are the chains that live projects can be paid on now. `version` is that of the interface of trackers.
        """
        snapshot = await web.status.snapshot()
        if snapshot.readings is None or snapshot.pauses is None:
            answer = GatewayStatus(
                success=False,
                status="down",
                version=TRACKER_VERSION,
                checked_at=snapshot.at,
                chains=[],
                error="The database cannot be asked, so nothing is known of the chains.",
                code="NOT_READY",
            )
            return JsonAnswer(answer, status_code=503)
        readings, pauses = snapshot.readings, snapshot.pauses
        chains = [
            chain_status(info, readings.get(name), pauses, snapshot.at) for name, info in web.status.chains.items()
        ]
        impaired = not snapshot.has_redis or any(chain.sending_paused for chain in chains)
        whole = overall([chain.status for chain in chains], impaired=impaired)
        return JsonAnswer(
            GatewayStatus(success=True, status=whole, version=TRACKER_VERSION, checked_at=snapshot.at, chains=chains)
        )


controllers = [public_routes("/api/status", StatusPage)]
