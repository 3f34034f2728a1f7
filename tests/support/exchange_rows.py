"""Exchanges that are only stored: what lists show of those that have ended, without anybody having exchanged."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import insert, select

from cambist.bootstrap import Gateway
from cambist.db.models import Exchange, Project
from cambist.domain.exchanges import Kind, MadeFor, Status, Step
from cambist.services.addresses.wallets import main_wallet


async def ended_exchange(gateway: Gateway, project_id: str, **changed: Any) -> str:
    """Store a swap that has failed, with whatever is ``changed`` of it, and return its id."""
    txn_id, now = gateway.ids.new("xch"), gateway.clock.now()
    async with gateway.db.transaction() as conn:
        columns = Project.id, Project.merchant_pk, Project.mode
        project = (await conn.execute(select(*columns).where(Project.project_id == project_id))).one()
        family = gateway.registry.families[gateway.registry.chains["memory"].family]
        wallet = await main_wallet(conn, gateway.keys, family, project.merchant_pk, project.mode)
        values = {
            "txn_id": txn_id,
            "kind": Kind.SWAP,
            "made_for": MadeFor.MANUAL,
            "project_pk": project.id,
            "merchant_pk": project.merchant_pk,
            "mode": project.mode,
            "scope": 0 if project.mode == "live" else project.id,
            "provider": "fair",
            "source_chain": "memory",
            "source_token": "MEM",
            "source_decimals": 18,
            "source_pk": wallet.pk,
            "units": 10**18,
            "dest_chain": "memory",
            "dest_token": "USDX",
            "dest_decimals": 6,
            "recipient": wallet.address,
            "recipient_pk": wallet.pk,
            "quoted_units": 3_000_000,
            "units_min": 2_970_000,
            "slippage_bps": 100,
            "status": Status.FAILED,
            "step": Step.ENDED,
            "error": "The chain would refuse it.",
            "give_up_at": now + timedelta(hours=1),
            "created_at": now,
            "updated_at": now,
            "finished_at": now,
        }
        await conn.execute(insert(Exchange).values(**values | changed))
    return txn_id
