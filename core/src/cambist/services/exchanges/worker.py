"""What following exchanges needs in a worker, and the alerts that it gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog
from msgspec import Struct, field

from cambist.db.engine import Database
from cambist.domain.exchanges import Kind
from cambist.plugin import AddressFamily, BridgeProvider, CallReader, Chain, ChainInfo, ContractChain, SwapProvider
from cambist.ports import Clock
from cambist.services.chain_scope import ChainScope

from .ending import Endings
from .rows import ExchangeRow, save_on

if TYPE_CHECKING:
    from .unseen import Change

log = structlog.get_logger(__name__)


class ExchangeWorker(Struct, frozen=True, kw_only=True):
    """Chains and providers of one worker. ``build_timeout_s`` is how long a provider may take to build a call."""

    db: Database
    infos: Mapping[str, ChainInfo]
    families: Mapping[str, AddressFamily]
    chains: Mapping[str, Chain]
    swaps: Sequence[SwapProvider]
    bridges: Sequence[BridgeProvider]
    readers: Sequence[CallReader]
    clock: Clock
    endings: Endings
    alerts: Counter[str]
    build_timeout_s: float = 15.0
    changes: dict[tuple[int, str], Change] = field(default_factory=dict)
    """What the blocks of calls changed, of exchanges that let others go first: nodes forget it meanwhile."""
    spans: dict[str, int] = field(default_factory=dict)
    """Of how many blocks the nodes of a chain gave logs at once the last time."""

    def alert(self, name: str, row: ExchangeRow, **facts: object) -> None:
        """Tell the operator: in the log, and in the metric ``cambist_exchange_alerts_total``."""
        self.alerts[name] += 1
        way = {"source_chain": row.source_chain, "dest_chain": row.dest_chain}
        log.error("exchange_alert", alert=name, txn_id=row.txn_id, provider=row.provider, **way, **facts)

    def provider(self, row: ExchangeRow) -> SwapProvider | BridgeProvider | None:
        """Return who exchanges it, None where the operator has taken it away."""
        found: Sequence[SwapProvider | BridgeProvider] = self.swaps if row.kind is Kind.SWAP else self.bridges
        return next((one for one in found if one.name == row.provider), None)

    def bridge(self, row: ExchangeRow) -> BridgeProvider | None:
        return next((one for one in self.bridges if one.name == row.provider), None)

    def chain(self, chain_id: str) -> ContractChain | None:
        """Return a chain that runs contracts, None where it is not connected."""
        found = self.chains.get(chain_id)
        return found if isinstance(found, ContractChain) else None

    def scope(self, row: ExchangeRow, chain_id: str) -> ChainScope:
        return ChainScope(info=self.infos[chain_id], scope=row.scope, mode=row.mode)


async def later(worker: ExchangeWorker, row: ExchangeRow, pause: timedelta) -> None:
    """Look at an exchange again after a while, unless something else has happened to it."""
    now = worker.clock.now()
    await save_on(worker.db, row, now, due_at=now + pause)
