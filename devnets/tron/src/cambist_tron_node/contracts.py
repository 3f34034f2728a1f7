"""Transactions that the machine runs: how much energy they may use, what they move, and who pays.

The caller pays from staked energy, then in TRX up to the fee limit; the contract's maker pays the share that the
contract promises, from staked energy alone.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec

from . import keys
from .machine import SUCCESS, Call, Machine, Moment, Outcome
from .recovery import used_now, using
from .refusals import invalid
from .state import CONTRACT, ENERGY, Contract, State
from .transactions import CREATE_CONTRACT, Transaction

Held: TypeAlias = Any  # the messages' classes are made at run time

_PERCENT: Final = 100
_NAME_BYTES_MAX: Final = 32


class EnergyBill(msgspec.Struct, frozen=True):
    """Who paid for a run: the caller in energy and sun, the contract's maker in energy."""

    usage: int
    fee: int
    origin_usage: int


class Run(msgspec.Struct, frozen=True):
    """One transaction's run and its bill."""

    outcome: Outcome
    contract: bytes
    bill: EnergyBill


async def run(state: State, machine: Machine, transaction: Transaction, moment: Moment) -> Run:
    """Run a transaction's contract, and let it be paid for. Raises RefusedError where it cannot even be tried."""
    if transaction.kind == CREATE_CONTRACT:
        return await _create(state, machine, transaction, moment)
    return await _trigger(state, machine, transaction, moment)


async def _trigger(state: State, machine: Machine, transaction: Transaction, moment: Moment) -> Run:
    held = transaction.held
    contract = state.contract(held.contract_address)
    if contract is None:
        raise invalid("No contract or not a smart contract")
    if held.call_value < 0:
        raise invalid("callValue must be >= 0")
    _check_fee_limit(state, transaction)
    caller_limit = _own_limit(state, transaction, held.call_value)
    limit = caller_limit + _origin_limit(state, contract, transaction.owner, caller_limit)
    _check_value(state, transaction.owner, contract.address, held.call_value)
    call = Call(
        transaction.owner[1:], contract.address[1:], held.data, limit,
        call_value=held.call_value, origin_tx=transaction.id,
    )  # fmt: skip
    energy_left = _left(state, transaction.owner)
    outcome = await machine.call(call, moment)
    if outcome.status == SUCCESS:
        _move(state, transaction.owner, contract.address, held.call_value)
        _apply(state, outcome)
    bill = _pay(state, transaction.owner, contract, outcome.energy_used, energy_left)
    return Run(outcome, contract.address, bill)


async def _create(state: State, machine: Machine, transaction: Transaction, moment: Moment) -> Run:
    held, made = transaction.held.new_contract, transaction.made_address
    if held.origin_address != transaction.owner:
        raise invalid("OwnerAddress is not equals OriginAddress")
    if len(held.name.encode()) > _NAME_BYTES_MAX:
        raise invalid("contractName's length cannot be greater than 32")
    if not 0 <= held.consume_user_resource_percent <= _PERCENT:
        raise invalid("percent must be >= 0 and <= 100")
    if state.account(made) is not None:
        raise invalid(f"Trying to create a contract with existing contract address: {keys.base58(made)}")
    _check_fee_limit(state, transaction)
    if held.call_value < 0:
        raise invalid("callValue must be >= 0")
    if held.origin_energy_limit <= 0:
        raise invalid("The originEnergyLimit must be > 0")
    limit = _own_limit(state, transaction, held.call_value)
    _check_value(state, transaction.owner, made, held.call_value)
    call = Call(
        transaction.owner[1:], made[1:], held.bytecode, limit, call_value=held.call_value, origin_tx=transaction.id
    )
    energy_left = _left(state, transaction.owner)
    outcome = await machine.create(call, moment)
    contract = Contract(
        made, transaction.owner, held.name, held.abi.SerializeToString(), held.bytecode, outcome.output,
        held.consume_user_resource_percent, held.origin_energy_limit,
    )  # fmt: skip
    if outcome.status == SUCCESS:
        state.create(made, CONTRACT)
        state.put_contract(contract)
        _move(state, transaction.owner, made, held.call_value)
        _apply(state, outcome)
    return Run(outcome, made, _pay(state, transaction.owner, contract, outcome.energy_used, energy_left))


def _check_fee_limit(state: State, transaction: Transaction) -> None:
    fee_limit_max = state.parameters.fee_limit_max
    if not 0 <= transaction.proto.raw_data.fee_limit <= fee_limit_max:
        raise invalid(f"feeLimit must be >= 0 and <= {fee_limit_max}")


def _check_value(state: State, owner: bytes, to: bytes, sun: int) -> None:
    if sun and owner == to:
        raise invalid("Cannot transfer TRX to yourself.")
    if state.known(owner).balance < sun:
        raise invalid("Validate InternalTransfer error, balance is not sufficient.")


def _own_limit(state: State, transaction: Transaction, value: int) -> int:
    price = state.parameters.energy_fee
    affordable = max(state.known(transaction.owner).balance - value, 0) // price
    return int(min(_left(state, transaction.owner) + affordable, transaction.proto.raw_data.fee_limit // price))


def _origin_limit(state: State, contract: Contract, caller: bytes, caller_limit: int) -> int:
    percent = contract.consume_user_percent
    if caller == contract.origin or percent >= _PERCENT or state.account(contract.origin) is None:
        return 0
    own = min(_left(state, contract.origin), contract.origin_energy_limit)
    return own if percent <= 0 else min(caller_limit * (_PERCENT - percent) // percent, own)


def _left(state: State, address: bytes) -> int:
    account = state.known(address)
    return max(state.limit(ENERGY, account) - used_now(account.energy, state.slot), 0)


def _pay(state: State, caller: bytes, contract: Contract, used: int, caller_left: int) -> EnergyBill:
    if used <= 0:
        return EnergyBill(0, 0, 0)
    by_origin = 0
    if caller != contract.origin and state.account(contract.origin) is not None:
        share = used * (_PERCENT - contract.consume_user_percent) // _PERCENT
        by_origin = min(share, _left(state, contract.origin), contract.origin_energy_limit)
        _use(state, contract.origin, by_origin)
    by_stake = min(used - by_origin, caller_left)
    fee = (used - by_origin - by_stake) * state.parameters.energy_fee
    _use(state, caller, by_stake)
    state.burn(caller, fee)
    return EnergyBill(by_stake, fee, by_origin)


def _use(state: State, address: bytes, energy: int) -> None:
    account = state.known(address)
    state.change(address, energy=using(account.energy, energy, state.slot), operated_ms=state.now_ms)


def _apply(state: State, outcome: Outcome) -> None:
    """Let happen in the balances what happened in the machine."""
    for internal in outcome.internal:
        if internal.rejected:
            continue
        caller, target = keys.PREFIX + internal.caller, keys.PREFIX + internal.target
        if internal.note == "create":
            if state.account(target) is None:
                state.create(target, CONTRACT)
            state.put_contract(Contract(target, caller, "", b"", internal.data, b"", _PERCENT, 0))
        _move(state, caller, target, internal.value)


def _move(state: State, owner: bytes, to: bytes, sun: int) -> None:
    if not sun or owner == to:
        return
    if state.account(to) is None:
        state.create(to)
    state.credit(owner, -sun)
    state.credit(to, sun)
