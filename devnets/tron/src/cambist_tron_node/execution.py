"""Executes one transaction: all checks in a node's order, the change of state, and the transaction info.

It works on the state as it is; whoever calls takes back what a refused transaction has begun.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from . import bandwidth, contracts, keys, proto, signatures, system
from .bandwidth import RESULT_BYTES
from .contracts import Run
from .machine import SUCCESS, Log, Machine, Moment, Outcome
from .params import DAY_MS
from .refusals import RefusedError
from .schema import ENUMS
from .state import State
from .transactions import CREATE_CONTRACT, TRIGGER, Transaction

TRANSACTION_BYTES_MAX: Final = 500 * 1024

_RESULTS: Final = ENUMS["CONTRACT_RESULT"]


class Concluded(msgspec.Struct, frozen=True):
    """A transaction that was carried out: its result, and the message that tells of it."""

    result: str
    info: Any


def check_form(state: State, transaction: Transaction) -> None:
    """Refuse what is too big, or out of its time. The head's time counts, not the block's own."""
    size = transaction.size + 2 * RESULT_BYTES
    if size > TRANSACTION_BYTES_MAX:
        words = f"Too big transaction with result, TxId {transaction.id.hex()}, the size is {size} bytes"
        raise RefusedError("TOO_BIG_TRANSACTION_ERROR", f"{words}, maxTxSize {TRANSACTION_BYTES_MAX}")
    expires_ms = transaction.proto.raw_data.expiration
    if not state.now_ms < expires_ms <= state.now_ms + DAY_MS:
        words = f"Transaction expiration, transaction expiration time is {expires_ms}, but headBlockTime is"
        raise RefusedError("TRANSACTION_EXPIRATION_ERROR", f"{words} {state.now_ms}")


async def carry_out(
    state: State, machine: Machine, transaction: Transaction, moment: Moment, *, internals: bool
) -> Concluded:
    """Check who signed it, charge for it and do it. Raises RefusedError."""
    signatures.check(state, transaction)
    bill = bandwidth.charge(state, transaction)
    extra = _extra_fees(state, transaction)
    info = proto.new(
        "TransactionInfo", id=transaction.id, blockNumber=moment.number, blockTimeStamp=moment.timestamp_ms
    )
    info.receipt.net_usage, info.receipt.net_fee = bill.usage, bill.fee
    if transaction.kind in {CREATE_CONTRACT, TRIGGER}:
        run = await contracts.run(state, machine, transaction, moment)
        _tell_run(info, run, transaction, internals=internals)
        info.fee = run.bill.fee + bill.fee + extra
        return Concluded(run.outcome.status, info)
    effect = system.carry_out(state, transaction)
    info.contractResult.append(b"")
    info.withdraw_expire_amount = effect.withdrawn
    info.fee = effect.fee + bill.fee + extra
    return Concluded(SUCCESS, info)


def _extra_fees(state: State, transaction: Transaction) -> int:
    """Charge for several signatures and for a memo."""
    fees = 0
    if len(transaction.proto.signature) > 1:
        fees += _charge(state, transaction, state.parameters.multi_signature_fee, "multiSign")
    if transaction.proto.raw_data.data:
        fees += _charge(state, transaction, state.parameters.memo_fee, "memo fee")
    return fees


def _charge(state: State, transaction: Transaction, sun: int, purpose: str) -> int:
    if state.known(transaction.owner).balance < sun:
        raise RefusedError("BANDWITH_ERROR", f"insufficient balance[{sun}] to {purpose}")
    state.burn(transaction.owner, sun)
    return sun


def _tell_run(info: Any, run: Run, transaction: Transaction, *, internals: bool) -> None:  # noqa: ANN401 - a message
    outcome, receipt = run.outcome, info.receipt
    info.contractResult.append(outcome.output)
    info.contract_address = run.contract
    receipt.result = _RESULTS[outcome.status]
    receipt.energy_usage, receipt.energy_fee = run.bill.usage, run.bill.fee
    receipt.origin_energy_usage = run.bill.origin_usage
    receipt.energy_usage_total = outcome.energy_used
    receipt.energy_penalty_total = outcome.energy_penalty
    if outcome.status != SUCCESS:
        info.result = ENUMS["CODE"]["FAILED"]
        info.resMessage = outcome.message.encode()
    info.log.extend(log_message(log) for log in outcome.logs)
    if internals:
        info.internal_transactions.extend(internal_messages(outcome, transaction.id))


def log_message(log: Log) -> Any:  # noqa: ANN401 - a message
    """Return an event as nodes tell it: its contract without TRON's prefix."""
    return proto.new("Log", address=log.address, topics=log.topics, data=log.data)


def internal_messages(outcome: Outcome, parent: bytes) -> Iterator[Any]:
    """Yield what contracts did as nodes tell it."""
    for nonce, each in enumerate(outcome.internal):
        caller, target = keys.PREFIX + each.caller, keys.PREFIX + each.target
        told = parent + caller + target + each.value.to_bytes(32, "big") + each.data + nonce.to_bytes(8, "big")
        message = proto.new(
            "InternalTransaction", hash=hashlib.sha256(told).digest(), caller_address=caller, transferTo_address=target,
            note=each.note.encode(), rejected=each.rejected,
        )  # fmt: skip
        message.callValueInfo.add(callValue=each.value)
        yield message
