"""Comparing the chains with the books, one chain in a slice."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from cambist.bootstrap import Gateway
from cambist.domain.troubles import Trouble, trouble_with
from cambist.services.recovery.reconcile import ChainReport, Impossible, compare_chain
from cambist_tasks.job_lease import Lease

CHAIN_TIMEOUT_S = 40
DIFFERENCES_MAX = 100


async def reconcile(gateway: Gateway, lease: Lease) -> Mapping[str, Any] | None:
    """Compare the next chain; ``chains`` in the arguments names those that are wanted."""
    wanted = lease.job.arguments.get("chains") or sorted(gateway.chains)
    done: Mapping[str, Any] = lease.job.progress
    left = [chain for chain in wanted if chain not in done]
    if not left:
        return {"agrees": bool(done) and all(one.get("differing") == 0 for one in done.values()), "chains": done}
    async with lease.saving({**done, left[0]: await _compare(gateway, left[0])}):
        return None


async def _compare(gateway: Gateway, chain_id: str) -> Mapping[str, Any]:
    chain = gateway.chains.get(chain_id)
    if chain is None:
        return _problem("There is no such live chain.", Trouble.CHAIN_NOT_CONNECTED)
    try:
        async with asyncio.timeout(CHAIN_TIMEOUT_S):
            return _summary(await compare_chain(gateway.db, chain))
    except Impossible as error:
        cause = error.__cause__
        return _problem(str(error), trouble_with(cause) if isinstance(cause, Exception) else Trouble.OTHER)
    except TimeoutError:
        words = f"It takes longer than {CHAIN_TIMEOUT_S} s: 'cambist reconcile --chain {chain_id}' waits."
        return _problem(words, Trouble.TIMED_OUT)


def _problem(words: str, code: Trouble) -> Mapping[str, Any]:
    return {"problem": words, "problemCode": code.value}


def _summary(report: ChainReport) -> Mapping[str, Any]:
    """Return a report without the balances that agree: they are as many as merchants.

    ``differences`` are the first of those that differ, ``differing`` is how many there are.
    """
    return {
        "height": report.height,
        "blockHash": report.block_hash,
        "addressesAsked": report.addresses_asked,
        "balances": len(report.groups),
        "differing": len(report.differences),
        "differences": msgspec.to_builtins(report.differences[:DIFFERENCES_MAX]),
    }
