"""Whether those who signed a transaction may act for its owner."""

from __future__ import annotations

import msgspec

from . import keys
from .refusals import RefusedError
from .schema import ENUMS
from .state import Permission, State, default_active, default_owner
from .transactions import Transaction

_ACTIVE = ENUMS["PERMISSION_TYPE"]["Active"]


class NotPermittedError(Exception):
    """The signers may not do this."""


class Approval(msgspec.Struct, frozen=True):
    """Who of a permission's keys has signed, and what they weigh together."""

    signers: tuple[bytes, ...]
    weight: int


def check(state: State, transaction: Transaction) -> None:
    """Raise RefusedError unless enough of the right keys have signed."""
    count = len(transaction.proto.signature)
    if not count or not transaction.proto.raw_data.contract:
        raise RefusedError("SIGERROR", "miss sig or contract")
    if count > state.parameters.signatures_max:
        raise RefusedError("SIGERROR", "too many signatures")
    try:
        permission = _needed(state, transaction)
        weight = approval(permission, transaction).weight
    except (NotPermittedError, keys.SignatureMalformedError) as error:
        raise RefusedError("SIGERROR", str(error)) from error
    if weight < permission.threshold:
        raise RefusedError("SIGERROR", "sig error")


def approval(permission: Permission, transaction: Transaction) -> Approval:
    """Return who has signed. Raises NotPermittedError and SignatureMalformedError."""
    signatures = transaction.proto.signature
    if len(signatures) > len(permission.keys):
        words = f"Signature count is {len(signatures)} more than key counts of permission : {len(permission.keys)}"
        raise NotPermittedError(words)
    for signature in signatures:
        if len(signature) < keys.SIGNATURE_BYTES:
            raise keys.SignatureMalformedError(f"Signature size is {len(signature)}")
    weights = dict(permission.keys)
    seen: dict[bytes, int] = {}
    for signature, address in zip(signatures, transaction.signers, strict=True):
        who = keys.base58(address)
        if not weights.get(address):
            raise NotPermittedError(f"{signature.hex()} is signed by {who} but it is not contained of permission.")
        if address in seen:
            raise NotPermittedError(f"{who} has signed twice!")
        seen[address] = weights[address]
    return Approval(tuple(seen), sum(seen.values()))


def allows(permission: Permission, transaction: Transaction) -> bool:
    """Tell whether a permission is for this kind of contract."""
    kind = transaction.contract.type
    return bool(permission.operations[kind // 8] & (1 << (kind % 8)))


def _needed(state: State, transaction: Transaction) -> Permission:
    owner, number = transaction.owner, transaction.permission
    account = state.account(owner)
    if account is not None:
        permission = account.permission(number)
    else:
        permission = {0: default_owner(owner), 2: default_active(owner)}.get(number)
    if permission is None:
        raise NotPermittedError("permission isn't exit")
    if number:
        if permission.kind != _ACTIVE:
            raise NotPermittedError("Permission type is error")
        if not allows(permission, transaction):
            raise NotPermittedError("Permission denied")
    return permission
