"""Simulated chains: what time alone makes due on them."""

from __future__ import annotations

from cambist.bootstrap import Gateway
from cambist.services.addresses.macs import AddressMacs
from cambist.services.sandbox import Sandbox
from cambist.services.sandbox.service import JUDGED_MAX


async def judge_sandbox(gateway: Gateway) -> bool:
    """Follow sandbox chains on which something became due, or that a crash left behind; True while more may be due.

    Chains that could not be followed wait for the next moment.
    """
    if not gateway.settings.sandbox.enabled:
        return False
    sandbox = Sandbox(
        db=gateway.db,
        registry=gateway.registry,
        clock=gateway.clock,
        ids=gateway.ids,
        hints=gateway.hints,
        macs=AddressMacs(gateway.secrets),
        fiat_currencies=gateway.settings.prices.snapshot_currencies,
    )
    return await sandbox.judge_due(gateway.clock.now()) >= JUDGED_MAX
