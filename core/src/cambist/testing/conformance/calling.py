"""How the kit's tests call contracts: approvals, calls, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from cambist.plugin import Call, ContractChain, FoundLog, Intent, Log, Receipt, Step, Token
from cambist.testing.harness import Callee, ChainHarness, Sender

from .helpers import needs
from .sends import an_intent, funded, mined, signed, step_of

AMOUNT = 4_567_890
HELD = 4 * AMOUNT


async def calls_ready(harness: ChainHarness) -> tuple[ContractChain, Callee, Sender]:
    needs(harness, "calls")
    chain, callee = harness.chain, await harness.callee()
    assert isinstance(chain, ContractChain)
    return chain, callee, await funded(harness, (callee.token, HELD))


def an_approval(callee: Callee, sender: Sender, amount: int) -> Intent:
    return an_intent(sender, callee.address, callee.token, amount, "approve")


def a_call(callee: Callee, sender: Sender, call: Call, token: Token, amount: int) -> Intent:
    return replace(an_intent(sender, callee.address, token, amount, "call"), call=call)


def a_payment(harness: ChainHarness, callee: Callee, sender: Sender, amount: int) -> Intent:
    return a_call(callee, sender, callee.pay(amount), harness.chain.info.native, amount)


async def planned_step(harness: ChainHarness, intent: Intent) -> Step:
    (plan,) = await harness.chain.plan([intent], sponsor=None)
    return step_of(plan)


async def approved(harness: ChainHarness, callee: Callee, sender: Sender, amount: int) -> Receipt:
    return await receipt_of(harness, sender, an_approval(callee, sender, amount))


async def taken(harness: ChainHarness, callee: Callee, sender: Sender, amount: int) -> Receipt:
    return await receipt_of(harness, sender, a_call(callee, sender, callee.take(amount), callee.token, amount))


async def receipt_of(harness: ChainHarness, sender: Sender, intent: Intent) -> Receipt:
    """Return what became of an intent that must succeed, in a block of its own."""
    tx = await signed(harness, sender, await planned_step(harness, intent))
    assert (await mined(harness, tx)).state == "succeeded"
    assert isinstance(harness.chain, ContractChain)
    receipt = await harness.chain.receipt(tx.tx_id)
    assert receipt is not None
    assert (receipt.tx_id, receipt.succeeded) == (tx.tx_id, True)
    return receipt


def found_in(receipt: Receipt, log: Log) -> FoundLog:
    return FoundLog(tx_id=receipt.tx_id, height=receipt.block.height, block_hash=receipt.block.hash, log=log)


def check_logs(harness: ChainHarness, logs: Sequence[Log]) -> None:
    assert len({log.position for log in logs}) == len(logs) > 0
    assert all(log.position for log in logs)
    assert all(harness.family.normalize_address(log.address) == log.address for log in logs)


def sequence_for(harness: ChainHarness, number: int) -> int | None:
    return number if harness.abilities.sequences else None
