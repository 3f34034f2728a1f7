"""Who pays for a transaction's bytes: staked bandwidth, the day's free bandwidth, or burned TRX."""

from __future__ import annotations

from typing import Final

import msgspec

from . import keys
from .recovery import decayed, used_now, using
from .refusals import RefusedError, invalid
from .state import BANDWIDTH, Account, State
from .transactions import CREATE_ACCOUNT, TRANSFER, TRANSFER_ASSET, Transaction

RESULT_BYTES: Final = 64
"""Every transaction is charged for a result of this size, whatever its result."""

SIGNATURE_BYTES: Final = 65


class Bill(msgspec.Struct, frozen=True):
    """What a transaction's bytes cost: bandwidth, or sun."""

    usage: int = 0
    fee: int = 0


def charge(state: State, transaction: Transaction) -> Bill:
    """Take the cost of a transaction's bytes from its owner. Raises RefusedError where nobody can pay."""
    size = transaction.size + RESULT_BYTES
    account = state.account(transaction.owner)
    if account is None:
        raise invalid(f"account [{keys.base58(transaction.owner)}] does not exist")
    if creates_account(state, transaction):
        return _charge_new_account(state, transaction, account, size)
    if staked := _staked(state, account, size):
        return staked
    if free := _free(state, account, size):
        return free
    fee = size * state.parameters.transaction_fee
    return _burned(state, account, fee, size)


def creates_account(state: State, transaction: Transaction) -> bool:
    """Tell whether a transaction would activate an account."""
    if transaction.kind == CREATE_ACCOUNT:
        return True
    return transaction.kind in {TRANSFER, TRANSFER_ASSET} and state.account(transaction.held.to_address) is None


def _charge_new_account(state: State, transaction: Transaction, account: Account, size: int) -> Bill:
    bytes_max = state.parameters.create_account_bytes_max
    counted = transaction.size - len(transaction.proto.signature) * SIGNATURE_BYTES
    if counted > bytes_max:
        words = f"Too big new account transaction, TxId {transaction.id.hex()}, the size is {counted} bytes, maxTxSize"
        raise RefusedError("TOO_BIG_TRANSACTION_ERROR", f"{words} {bytes_max}")
    # The day's free bandwidth does not count here.
    if staked := _staked(state, account, size * state.parameters.new_account_bandwidth_rate):
        return staked
    return _burned(state, account, state.parameters.create_account_fee, size)


def _staked(state: State, account: Account, size: int) -> Bill | None:
    if size > state.limit(BANDWIDTH, account) - used_now(account.net, state.slot):
        return None
    state.change(account.address, net=using(account.net, size, state.slot), operated_ms=state.now_ms)
    return Bill(usage=size)


def _free(state: State, account: Account, size: int) -> Bill | None:
    used = decayed(account.free_used, 0, account.free_used_at, state.slot)
    if size > min(state.parameters.free_bandwidth - used, state.parameters.free_bandwidth_of_all):
        return None
    used = decayed(used, size, state.slot, state.slot)
    state.change(account.address, free_used=used, free_used_at=state.slot, operated_ms=state.now_ms)
    return Bill(usage=size)


def _burned(state: State, account: Account, fee: int, size: int) -> Bill:
    if account.balance < fee:
        who = keys.base58(account.address)
        words = f"account [{who}] has insufficient bandwidth[{size}] and balance[{fee}] to create new account"
        raise RefusedError("BANDWITH_ERROR", words)
    state.burn(account.address, fee)
    state.change(account.address, operated_ms=state.now_ms)
    return Bill(fee=fee)
