"""The contracts that TRON carries out itself, without its machine: transfers, accounts and permissions.

Each function checks and then does it, in the nodes' order and with their words; it raises RefusedError before it has
changed anything that a caller does not roll back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from . import keys, staking
from .refusals import RefusedError, invalid
from .schema import ENUMS
from .state import CONTRACT, Permission, State
from .transactions import (
    CREATE_ACCOUNT,
    DELEGATE,
    STAKE,
    TRANSFER,
    TRANSFER_ASSET,
    UNDELEGATE,
    UNSTAKE,
    UPDATE_PERMISSIONS,
    WITHDRAW,
    Transaction,
)

Held: TypeAlias = Any  # the messages' classes are made at run time

_PERMISSION_TYPES: Final = ENUMS["PERMISSION_TYPE"]
_ACTIVES_MAX: Final = 8
_NAME_CHARACTERS_MAX: Final = 32
_OPERATION_BYTES: Final = 32


class Effect(msgspec.Struct, frozen=True):
    """What a contract of the system did beside its purpose: sun burned, and sun that came back from stakes."""

    fee: int = 0
    withdrawn: int = 0


def carry_out(state: State, transaction: Transaction) -> Effect:
    """Do what the transaction's contract says. Raises RefusedError."""
    return _CONTRACTS[transaction.kind](state, transaction.held)


def _create_account(state: State, held: Held) -> Effect:
    owner = _owner(state, held.owner_address, "Invalid ownerAddress")
    fee = state.parameters.new_account_fee
    if state.known(owner).balance < fee:
        raise invalid("Validate CreateAccountActuator error, insufficient fee.")
    if not keys.is_address(held.account_address):
        raise invalid("Invalid account address")
    if state.account(held.account_address) is not None:
        raise invalid("Account has existed")
    state.create(held.account_address)
    state.burn(owner, fee)
    return Effect(fee)


def _transfer(state: State, held: Held) -> Effect:
    owner, to, sun = held.owner_address, held.to_address, held.amount
    _check_ends(owner, to, "Cannot transfer TRX to yourself.")
    account = state.account(owner)
    if account is None:
        raise invalid("Validate TransferContract error, no OwnerAccount.")
    if sun <= 0:
        raise invalid("Amount must be greater than 0.")
    target = state.account(to)
    if target is not None and target.kind == CONTRACT:
        raise invalid("Cannot transfer TRX to a smartContract.")
    fee = state.parameters.new_account_fee if target is None else 0
    if account.balance < sun + fee:
        raise invalid("Validate TransferContract error, balance is not sufficient.")
    _activate(state, owner, to, fee)
    state.credit(owner, -sun)
    state.credit(to, sun)
    return Effect(fee)


def _transfer_asset(state: State, held: Held) -> Effect:
    owner, to, amount, asset = held.owner_address, held.to_address, held.amount, held.asset_name.decode()
    _check_ends(owner, to, "Cannot transfer asset to yourself.")
    if amount <= 0:
        raise invalid("Amount must be greater than 0.")
    account = state.account(owner)
    if account is None:
        raise invalid("No owner account!")
    held_assets = dict(account.assets)
    if asset not in held_assets:
        raise invalid("No asset!")
    if held_assets[asset] < amount:
        raise invalid("assetBalance is not sufficient.")
    target = state.account(to)
    if target is not None and target.kind == CONTRACT:
        raise invalid("Cannot transfer asset to smartContract.")
    fee = state.parameters.new_account_fee if target is None else 0
    if account.balance < fee:
        raise invalid("Validate TransferAssetActuator error, insufficient fee.")
    _activate(state, owner, to, fee)
    for address, change in ((owner, -amount), (to, amount)):
        assets = dict(state.known(address).assets)
        assets[asset] = assets.get(asset, 0) + change
        state.change(address, assets=tuple(sorted((name, left) for name, left in assets.items() if left)))
    return Effect(fee)


def _update_permissions(state: State, held: Held) -> Effect:
    owner = held.owner_address
    if not keys.is_address(owner):
        raise invalid("invalidate ownerAddress")
    account = state.account(owner)
    if account is None:
        raise invalid("ownerAddress account does not exist")
    if wrong := _wrong_set(held):
        raise invalid(wrong)
    for permission in (held.owner, *held.actives):
        if wrong := _wrong_permission(state, permission):
            raise invalid(wrong)
    fee = state.parameters.permission_update_fee
    if account.balance < fee:
        raise RefusedError("CONTRACT_EXE_ERROR", f"{keys.base58(owner)} insufficient balance")
    actives = tuple(_permission(active, number) for number, active in enumerate(held.actives, start=2))
    state.change(owner, owner=_permission(held.owner, 0), actives=actives)
    state.burn(owner, fee)
    return Effect(fee)


def _wrong_set(held: Held) -> str | None:
    """Return what is wrong with the permissions as a set."""
    rules = (
        (held.HasField("owner"), "owner permission is missed"),
        (not held.HasField("witness"), "account isn't witness can't set witness permission"),
        (held.actives, "active permission is missed"),
        (len(held.actives) <= _ACTIVES_MAX, "active permission is too many"),
        (held.owner.type == _PERMISSION_TYPES["Owner"], "owner permission type is error"),
        (all(each.type == _PERMISSION_TYPES["Active"] for each in held.actives), "active permission type is error"),
    )
    return next((words for right, words in rules if not right), None)


def _wrong_permission(state: State, permission: Held) -> str | None:
    """Return what is wrong with one permission."""
    name = next(name for name, number in _PERMISSION_TYPES.items() if number == permission.type)
    keys_max = state.parameters.signatures_max
    weights = [key.weight for key in permission.keys]
    active = permission.type == _PERMISSION_TYPES["Active"]
    rules = (
        (len(weights) <= keys_max, f"number of keys in permission should not be greater than {keys_max}"),
        (weights, "key's count should be greater than 0"),
        (permission.threshold > 0, "permission's threshold should be greater than 0"),
        (len(permission.permission_name) <= _NAME_CHARACTERS_MAX, "permission's name is too long"),
        (not permission.parent_id, "permission's parent should be owner"),
        (
            len({key.address for key in permission.keys}) == len(weights),
            f"address should be distinct in permission {name}",
        ),
        (all(keys.is_address(key.address) for key in permission.keys), "key is not a validate address"),
        (all(weight > 0 for weight in weights), "key's weight should be greater than 0"),
        (
            sum(weights) >= permission.threshold,
            f"sum of all key's weight should not be less than threshold in permission {name}",
        ),
        (active or not permission.operations, f"{name} permission needn't operations"),
        (not active or len(permission.operations) == _OPERATION_BYTES, "operations size must 32"),
    )
    return next((words for right, words in rules if not right), None)


def _permission(permission: Held, number: int) -> Permission:
    weights = tuple((key.address, key.weight) for key in permission.keys)
    name = permission.permission_name
    return Permission(permission.type, number, name, permission.threshold, weights, permission.operations)


def _owner(state: State, owner: bytes, malformed: str) -> bytes:
    if not keys.is_address(owner):
        raise invalid(malformed)
    if state.account(owner) is None:
        raise invalid(f"Account[{owner.hex()}] not exists")
    return owner


def _check_ends(owner: bytes, to: bytes, same: str) -> None:
    if not keys.is_address(owner):
        raise invalid("Invalid ownerAddress!")
    if not keys.is_address(to):
        raise invalid("Invalid toAddress!")
    if owner == to:
        raise invalid(same)


def _activate(state: State, owner: bytes, to: bytes, fee: int) -> None:
    if state.account(to) is None:
        state.create(to)
        state.burn(owner, fee)


def _staking(do: Callable[[State, Held], int]) -> Callable[[State, Held], Effect]:
    def carried_out(state: State, held: Held) -> Effect:
        _owner(state, held.owner_address, "Invalid address")
        return Effect(withdrawn=do(state, held))

    return carried_out


_CONTRACTS: Final[Mapping[str, Callable[[State, Held], Effect]]] = {
    CREATE_ACCOUNT: _create_account,
    TRANSFER: _transfer,
    TRANSFER_ASSET: _transfer_asset,
    UPDATE_PERMISSIONS: _update_permissions,
    STAKE: _staking(staking.stake),
    UNSTAKE: _staking(staking.unstake),
    WITHDRAW: _staking(staking.withdraw),
    DELEGATE: _staking(staking.delegate),
    UNDELEGATE: _staking(staking.undelegate),
}
