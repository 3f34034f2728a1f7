"""Makes steps into payloads. Nothing is built by a node: what is signed is written here, field by field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from cambist.plugin import Fee, InconsistentChainError, Intent, PluginContext, Step, UnsignedTx
from cambist_chainkit.gathering import gather_all
from cambist_chainkit.pool import EndpointPool
from cambist_chainkit.remembered import Remembered

from .addresses import raw_of
from .endpoint import Endpoint
from .headers import check_header
from .payload import TxFields, bandwidth_of, write_payload

LIFETIME_S: Final = 300
"""How long after the newest block a transaction may still be mined.

Short, because until it is dead nothing else can be sent in its place; long enough for several attempts to send it
through an outage of the nodes.
"""
TIP_TTL_S: Final = 10.0
STAMPS_KEPT: Final = 10_000
STAMP_SPREAD_MS: Final = 60_000
TIME_MS_MAX: Final = 1 << 42
"""In the year 2109; no block is newer."""

AHEAD_MAX_S: Final = 86_400
"""A day: as far ahead as the network takes what expires, and more than a machine's clock is ever wrong."""

_ADDRESSED: Final = frozenset({"transfer", "lend", "reclaim"})
_ID_CHARS: Final = 64


class Tip(Struct, frozen=True, kw_only=True):
    """What payloads refer to: a block that will not be replaced, and the time of the newest.

    ``lagging`` says that the endpoint that tells it is behind the others.
    """

    solid_id: str
    head_time_ms: int
    lagging: bool = False


PLACEHOLDER_TIP: Final = Tip(solid_id="0" * _ID_CHARS, head_time_ms=1 << 40)
"""As good as any to tell a payload's size: times in milliseconds have 6 bytes from 2004 to 2109."""


async def read_tip(endpoint: Endpoint, now_s: float) -> Tip:
    """Ask a node for its newest and its newest solid block, whose headers prove what they are.

    What is signed until a wrong time long after the real one could neither be mined nor be proven to be dead. Anybody
    can make a header that proves itself, so by ``now_s``, the time here, no block is from a day that has not come.
    """
    head, solid = await gather_all(endpoint.latest(), endpoint.latest("walletsolidity"))
    for block, which in ((head, "newest"), (solid, "solid")):
        if block.header is None:
            raise InconsistentChainError(f"{endpoint.name} has no {which} block")
        check_header(block.header, block.header.raw.number)
    if not 0 < head.time_ms < TIME_MS_MAX:
        raise InconsistentChainError(f"{endpoint.name} has no newest block")
    ahead_s = head.time_ms / 1000 - now_s
    if ahead_s > AHEAD_MAX_S:
        raise InconsistentChainError(f"{endpoint.name} has a block that is {ahead_s:.0f} s ahead of the time here")
    return Tip(solid_id=solid.id, head_time_ms=head.time_ms, lagging=endpoint.lagging)


def middle_tip(tips: Sequence[Tip]) -> Tip:
    """Return the tip to refer to, of those that endpoints tell: in the middle by time, or just before it.

    What is signed on the word of an endpoint that runs ahead could be mined long before the time from which on its
    death is looked for.
    """
    able = [tip for tip in tips if not tip.lagging] or tips
    return sorted(able, key=lambda tip: tip.head_time_ms)[(len(able) - 1) // 2]


class Stamps:
    """Timestamps that keep payloads apart which are alike otherwise. The network does not read them.

    Those of one process differ for sure; those of two by chance, beside all else in which their payloads must differ.
    """

    def __init__(self, context: PluginContext) -> None:
        self._context = context
        self._used: dict[int, None] = {}

    def next(self) -> int:
        """Return one of the last minute, in milliseconds, that was not given out lately."""
        now_ms = int(self._context.now().timestamp() * 1000)
        while True:
            stamp = now_ms - self._context.random.randrange(STAMP_SPREAD_MS)
            if stamp not in self._used:
                break
        if len(self._used) == STAMPS_KEPT:
            del self._used[next(iter(self._used))]
        self._used[stamp] = None
        return stamp


class Writer:
    """Writes payloads for one chain. Remembers the tip for some seconds."""

    def __init__(self, pool: EndpointPool[Endpoint], context: PluginContext) -> None:
        async def read() -> Tip:
            now_s = context.now().timestamp()
            return middle_tip(await pool.ask_all(lambda endpoint: read_tip(endpoint, now_s)))

        self._tip = Remembered(read, context.monotonic, seconds=TIP_TTL_S)
        self._stamps = Stamps(context)

    async def prepare(self, steps: Sequence[tuple[Step, int | None]]) -> list[UnsignedTx]:
        """Return each step as what is signed. Raises ChainError."""
        if not steps:
            return []
        tip = await self._tip.now()
        return [unsigned(step, tip, self._stamps.next()) for step, _ in steps]


def unsigned(step: Step, tip: Tip, timestamp_ms: int) -> UnsignedTx:
    """Return a step as what is signed: it refers to the tip, and dies at a whole second."""
    expires_s = tip.head_time_ms // 1000 + LIFETIME_S
    payload = write_payload(
        TxFields(
            action=step.action,
            owner=raw_of(step.sender),
            to_address=raw_of(step.to_address) if step.action in _ADDRESSED else None,
            amount=0 if step.action == "withdraw" else step.amount,
            contract=None if step.token.contract is None else raw_of(step.token.contract),
            # TAPOS: the block's number modulo 65536, and eight bytes from the middle of its id.
            ref_block_bytes=bytes.fromhex(tip.solid_id[12:16]),
            ref_block_hash=bytes.fromhex(tip.solid_id[16:32]),
            expiration_ms=expires_s * 1000,
            timestamp_ms=timestamp_ms,
            fee_limit=0 if step.token.is_native else step.fee.limit * step.fee.price,
        )
    )
    return UnsignedTx(sender=step.sender, sequence=None, payload=payload, fee=step.fee, valid_until=expires_s)


def bandwidth_for(intent: Intent, fee: Fee) -> int:
    """Return how many bytes of bandwidth an intent will use up, whenever it is written."""
    return bandwidth_of(unsigned(intent.step(fee), PLACEHOLDER_TIP, PLACEHOLDER_TIP.head_time_ms).payload)
