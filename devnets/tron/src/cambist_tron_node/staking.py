"""Stakes: TRX put down for bandwidth or energy, lent to others, taken back, and paid out after two weeks.

Each function checks and then does it, in the nodes' order and with their words, and returns the sun that came back to
the balance. The owner's account is known to be there.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec

from . import keys, proto
from .params import BLOCK_MS, DAY_MS, TRX
from .recovery import taking_over, used_now, using
from .refusals import invalid
from .state import BANDWIDTH, CONTRACT, ENERGY, RESOURCES, Account, Delegation, State, Unstake, unlocked
from .transactions import DELEGATE

Held: TypeAlias = Any  # the messages' classes are made at run time

_LOCK_DEFAULT_MS: Final = 3 * DAY_MS
_DELEGATION_BYTES: Final = 275


def stake(state: State, held: Held) -> int:
    """Put TRX down."""
    account, sun = state.known(held.owner_address), held.frozen_balance
    if sun <= 0:
        raise invalid("frozenBalance must be positive")
    if sun < TRX:
        raise invalid("frozenBalance must be greater than or equal to 1 TRX")
    if sun > account.balance:
        raise invalid("frozenBalance must be less than or equal to accountBalance")
    if held.resource not in {BANDWIDTH, ENERGY}:
        raise invalid("ResourceCode error, valid ResourceCode[BANDWIDTH、ENERGY]")
    state.credit(account.address, -sun)
    _add_stake(state, account.address, held.resource, sun)
    return 0


def unstake(state: State, held: Held) -> int:
    """Ask for TRX back. What has waited long enough comes back at once."""
    account, which, sun = state.known(held.owner_address), held.resource, held.unfreeze_balance
    if which not in {BANDWIDTH, ENERGY}:
        raise invalid("ResourceCode error.valid ResourceCode[BANDWIDTH、Energy]")
    staked = account.resource(which).staked
    if staked <= 0:
        raise invalid(f"no frozenBalance({'BANDWIDTH' if which == BANDWIDTH else 'Energy'})")
    if not 0 < sun <= staked:
        raise invalid(f"Invalid unfreeze_balance, [{sun}] is error")
    if unstaking_count(state, account) >= state.parameters.unstakes_max:
        raise invalid("Invalid unfreeze operation, unfreezing times is over limit")
    back = _collect(state, account)
    waiting = state.known(account.address).unstaking
    expires_ms = state.now_ms + state.parameters.unstake_days * DAY_MS
    state.change(account.address, unstaking=(*waiting, Unstake(which, sun, expires_ms)))
    _add_stake(state, account.address, which, -sun)
    return back


def withdraw(state: State, held: Held) -> int:
    """Bring home what has waited long enough."""
    account = state.known(held.owner_address)
    if withdrawable(account, state.now_ms) <= 0:
        raise invalid("no unFreeze balance to withdraw ")
    return _collect(state, account)


def delegate(state: State, held: Held) -> int:
    """Let stake work for somebody else."""
    account, receiver, which, sun = state.known(held.owner_address), held.receiver_address, held.resource, held.balance
    if sun < TRX:
        raise invalid("delegateBalance must be greater than or equal to 1 TRX")
    if which not in {BANDWIDTH, ENERGY}:
        raise invalid("ResourceCode error, valid ResourceCode[BANDWIDTH、ENERGY]")
    if _free_stake(state, account, which) < sun:
        name = "FreezeBandwidthV2" if which == BANDWIDTH else "FreezeEnergyV2"
        raise invalid(f"delegateBalance must be less than or equal to available {name} balance")
    _check_receiver(held)
    target = state.account(receiver)
    if target is None:
        raise invalid(f"Account[{receiver.hex()}] not exists")
    expires_ms = _lock_end(state, held) if held.lock else 0
    if target.kind == CONTRACT:
        raise invalid("Do not allow delegate resources to contract addresses")
    _unlock(state, account.address, receiver)
    before = state.delegation(account.address, receiver, locked=held.lock) or Delegation()
    state.put_delegation(account.address, receiver, before.plus(which, sun, expires_ms), locked=held.lock)
    _move(state, account.address, which, staked=-sun, lent=sun)
    _move(state, receiver, which, borrowed=sun)
    return 0


def undelegate(state: State, held: Held) -> int:
    """Take lent stake back, and with it the use that was made of it."""
    owner, receiver, which, sun = held.owner_address, held.receiver_address, held.resource, held.balance
    _check_receiver(held)
    free = state.delegation(owner, receiver, locked=False)
    locked = state.delegation(owner, receiver, locked=True)
    if free is None and locked is None:
        raise invalid("delegated Resource does not exist")
    if sun <= 0:
        raise invalid("unDelegateBalance must be more than 0 TRX")
    if which not in {BANDWIDTH, ENERGY}:
        raise invalid("ResourceCode error.valid ResourceCode[BANDWIDTH、Energy]")
    loose = dict(unlocked(locked, state.now_ms)).get(which, 0) if locked else 0
    available = loose + (free.sun[which] if free else 0)
    if available < sun:
        name = "delegateFrozenBalance(Energy)" if which == ENERGY else "delegatedFrozenBalance(BANDWIDTH)"
        raise invalid(f"insufficient {name}, request={sun}, unlock_balance={available}")
    moved = _take_use(state, receiver, which, sun)
    _unlock(state, owner, receiver)
    left = (state.delegation(owner, receiver, locked=False) or Delegation()).plus(which, -sun, 0)
    state.put_delegation(owner, receiver, left, locked=False)
    _move(state, owner, which, staked=sun, lent=-sun)
    if moved:
        account, borrower = state.known(owner), state.known(receiver)
        resource = taking_over(account.resource(which), borrower.resource(which), moved, state.slot)
        state.put(account.having(which, resource))
    return 0


def withdrawable(account: Account, at_ms: int) -> int:
    """Return the sun that has waited long enough."""
    return sum(unstake.amount for unstake in account.unstaking if unstake.expires_ms <= at_ms)


def unstaking_count(state: State, account: Account) -> int:
    """Return how many unstakes still wait."""
    return sum(unstake.expires_ms > state.now_ms for unstake in account.unstaking)


def delegatable(state: State, account: Account, which: int) -> int:
    """Return how much of its own stake an account could lend now, as nodes answer it."""
    extra = 0
    if which == BANDWIDTH:  # the delegation itself will need some
        widest = proto.new(
            DELEGATE, lock=True, lock_period=state.parameters.lock_blocks_max, balance=account.net.staked
        )
        extra = _DELEGATION_BYTES + max(widest.ByteSize() - proto.new(DELEGATE, balance=TRX).ByteSize(), 0)
    sun = max(_free_stake(state, account, which, extra), 0)
    return sun if sun >= TRX else 0


def _free_stake(state: State, account: Account, which: int, extra: int = 0) -> int:
    resource = account.resource(which)
    used = int((used_now(resource, state.slot) + extra) * TRX * (state.weight(which) / state.total(which)))
    return resource.staked - max(used - resource.borrowed, 0)


def _check_receiver(held: Held) -> None:
    if not keys.is_address(held.receiver_address):
        raise invalid("Invalid receiverAddress")
    if held.receiver_address == held.owner_address:
        raise invalid("receiverAddress must not be the same as ownerAddress")


def _lock_end(state: State, held: Held) -> int:
    blocks = held.lock_period or _LOCK_DEFAULT_MS // BLOCK_MS
    blocks_max = state.parameters.lock_blocks_max
    if not 0 <= blocks <= blocks_max:
        raise invalid(f"The lock period of delegate resource cannot be less than 0 and cannot exceed {blocks_max}!")
    before = state.delegation(held.owner_address, held.receiver_address, locked=True)
    remaining_ms = before.expires_ms[held.resource] - state.now_ms if before else 0
    if blocks * BLOCK_MS < remaining_ms:
        name = RESOURCES[held.resource]
        raise invalid(
            f"The lock period for {name} this time cannot be less than the remaining time[{remaining_ms}ms] "
            f"of the last lock period for {name}!"
        )
    return state.now_ms + blocks * BLOCK_MS


def _unlock(state: State, owner: bytes, receiver: bytes) -> None:
    """Turn what is not locked any more into what can be taken back."""
    locked = state.delegation(owner, receiver, locked=True)
    if locked is None:
        return
    free = state.delegation(owner, receiver, locked=False) or Delegation()
    for which, sun in unlocked(locked, state.now_ms):
        free = free.plus(which, sun, 0)
        locked = locked.plus(which, -sun, 0)
    state.put_delegation(owner, receiver, free, locked=False)
    state.put_delegation(owner, receiver, locked, locked=True)


def _take_use(state: State, receiver: bytes, which: int, sun: int) -> int:
    """Take stake from its borrower, and return how much of the use goes with it."""
    account = state.account(receiver)
    if account is None:
        return 0
    resource = using(account.resource(which), 0, state.slot)
    used_max = int(sun / TRX * (state.total(which) / state.weight(which)))
    moved = min(used_max, int(resource.used * (sun / (resource.staked + resource.borrowed))))
    resource = msgspec.structs.replace(resource, used=resource.used - moved, borrowed=resource.borrowed - sun)
    state.put(account.having(which, resource))
    return moved


def _move(state: State, address: bytes, which: int, **changes: int) -> None:
    """Add to fields of an account's resource."""
    account = state.known(address)
    old = account.resource(which)
    new = msgspec.structs.replace(old, **{name: getattr(old, name) + change for name, change in changes.items()})
    state.put(account.having(which, new))


def _add_stake(state: State, address: bytes, which: int, sun: int) -> None:
    before = state.known(address).resource(which)
    _move(state, address, which, staked=sun)
    after = state.known(address).resource(which)
    state.add_weight(which, (after.staked + after.lent) // TRX - (before.staked + before.lent) // TRX)


def _collect(state: State, account: Account) -> int:
    sun = withdrawable(account, state.now_ms)
    left = tuple(unstake for unstake in account.unstaking if unstake.expires_ms > state.now_ms)
    state.change(account.address, balance=account.balance + sun, unstaking=left)
    return sun
