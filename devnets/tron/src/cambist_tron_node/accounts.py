"""What the node tells of accounts: balances, resources, stakes and delegations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from . import proto
from .asking import Answer, Ask, Handler
from .params import BLOCK_MS, TRX
from .recovery import decayed, using
from .staking import delegatable, unstaking_count, withdrawable
from .state import BANDWIDTH, ENERGY, RESOURCES, Account, Delegation, Permission, State

_TRON_POWER: Final = 2


def account(ask: Ask) -> Answer:
    """Tell of an account, or nothing where it is not activated."""
    found = ask.view.state.account(ask.address("address"))
    return ask.shown(_account_message(ask.view.state, found)) if found else {}


def account_resource(ask: Ask) -> Answer:
    state, found = ask.view.state, ask.view.state.account(ask.address("address"))
    if found is None:
        return {}
    message = _net_message(state, found)
    message.EnergyUsed = using(found.energy, 0, state.slot).used
    message.EnergyLimit = state.limit(ENERGY, found)
    message.TotalEnergyLimit = state.parameters.energy_total
    message.TotalEnergyWeight = state.weight(ENERGY)
    message.tronPowerLimit = sum(each.staked + each.lent for each in (found.net, found.energy)) // TRX
    return ask.shown(message)


def account_net(ask: Ask) -> Answer:
    found = ask.view.state.account(ask.address("address"))
    return ask.shown(_net_message(ask.view.state, found)) if found else {}


def delegated_resource(ask: Ask) -> Answer:
    """Tell what one account lends another: what can be taken back, and what is locked."""
    owner, receiver = ask.address("fromAddress"), ask.address("toAddress")
    message = proto.new("DelegatedResourceList")
    for locked in (False, True):
        found = ask.view.state.delegation(owner, receiver, locked=locked)
        if found is not None:
            message.delegatedResource.append(_delegation_message(owner, receiver, found))
    return ask.shown(message)


def delegated_resource_index(ask: Ask) -> Answer:
    """Tell to whom an account lends, and who lends it."""
    address, state = ask.address("value"), ask.view.state
    message = proto.new("DelegatedResourceAccountIndex", account=address)
    message.fromAccounts.extend(state.partners("lenders", address))
    message.toAccounts.extend(state.partners("receivers", address))
    return ask.shown(message)


def can_delegated_max_size(ask: Ask) -> Answer:
    found, which = ask.view.state.account(ask.address("owner_address")), ask.number("type")
    size = delegatable(ask.view.state, found, which) if found and which in {BANDWIDTH, ENERGY} else 0
    return {"max_size": size} if size else {}


def available_unfreeze_count(ask: Ask) -> Answer:
    found = ask.view.state.account(ask.address("owner_address"))
    left = ask.chain.parameters.unstakes_max - unstaking_count(ask.view.state, found) if found else 0
    return {"count": left} if left else {}


def can_withdraw_unfreeze_amount(ask: Ask) -> Answer:
    found = ask.view.state.account(ask.address("owner_address"))
    at_ms = ask.number("timestamp") or ask.view.state.now_ms
    sun = withdrawable(found, at_ms) if found else 0
    return {"amount": sun} if sun else {}


def permission_message(permission: Permission) -> Any:  # noqa: ANN401 - messages are made at run time
    """Return a permission as nodes tell it."""
    message = proto.new(
        "Permission", type=permission.kind, id=permission.number, permission_name=permission.name,
        threshold=permission.threshold, operations=permission.operations,
    )  # fmt: skip
    for address, weight in permission.keys:
        message.keys.add(address=address, weight=weight)
    return message


def _account_message(state: State, found: Account) -> Any:  # noqa: ANN401 - likewise
    net, energy = using(found.net, 0, state.slot), using(found.energy, 0, state.slot)
    message = proto.new(
        "Account", type=found.kind, address=found.address, balance=found.balance, create_time=found.created_ms,
        latest_opration_time=found.operated_ms, is_witness=found.witness, net_usage=net.used,
        free_net_usage=decayed(found.free_used, 0, found.free_used_at, state.slot),
        latest_consume_time=found.net.used_at * BLOCK_MS, latest_consume_free_time=found.free_used_at * BLOCK_MS,
        net_window_size=net.window, net_window_optimized=True,
        delegated_frozenV2_balance_for_bandwidth=net.lent,
        acquired_delegated_frozenV2_balance_for_bandwidth=net.borrowed,
    )  # fmt: skip
    resource = message.account_resource
    resource.energy_usage, resource.energy_window_size = energy.used, energy.window
    resource.energy_window_optimized = True
    resource.latest_consume_time_for_energy = found.energy.used_at * BLOCK_MS
    resource.delegated_frozenV2_balance_for_energy = energy.lent
    resource.acquired_delegated_frozenV2_balance_for_energy = energy.borrowed
    for which, each in ((BANDWIDTH, net), (ENERGY, energy)):
        message.frozenV2.add(type=which, amount=each.staked)
    message.frozenV2.add(type=_TRON_POWER)
    for unstake in found.unstaking:
        message.unfrozenV2.add(
            type=unstake.resource, unfreeze_amount=unstake.amount, unfreeze_expire_time=unstake.expires_ms
        )
    for name, amount in found.assets:
        message.assetV2.add(key=name, value=amount)
    if found.owner is not None:
        message.owner_permission.CopyFrom(permission_message(found.owner))
    message.active_permission.extend(permission_message(active) for active in found.actives)
    return message


def _net_message(state: State, found: Account) -> Any:  # noqa: ANN401 - likewise
    message = proto.new(
        "AccountResourceMessage", freeNetUsed=decayed(found.free_used, 0, found.free_used_at, state.slot),
        freeNetLimit=state.parameters.free_bandwidth, NetUsed=using(found.net, 0, state.slot).used,
        NetLimit=state.limit(BANDWIDTH, found), TotalNetLimit=state.parameters.bandwidth_total,
        TotalNetWeight=state.weight(BANDWIDTH),
    )  # fmt: skip
    for name, _ in found.assets:
        message.assetNetUsed.add(key=name)
        message.assetNetLimit.add(key=name)
    return message


def _delegation_message(owner: bytes, receiver: bytes, found: Delegation) -> Any:  # noqa: ANN401 - likewise
    fields: dict[str, bytes | int] = {"from": owner, "to": receiver}
    for which, name in enumerate(each.lower() for each in RESOURCES):
        fields[f"frozen_balance_for_{name}"] = found.sun[which]
        fields[f"expire_time_for_{name}"] = found.expires_ms[which]
    return proto.new("DelegatedResource", **fields)


ACCOUNTS: Final[Mapping[str, Handler]] = {
    "getaccount": account,
    "getdelegatedresourcev2": delegated_resource,
    "getdelegatedresourceaccountindexv2": delegated_resource_index,
    "getcandelegatedmaxsize": can_delegated_max_size,
    "getavailableunfreezecount": available_unfreeze_count,
    "getcanwithdrawunfreezeamount": can_withdraw_unfreeze_amount,
}
"""On both sides of the node."""

FULL_NODE_ACCOUNTS: Final[Mapping[str, Handler]] = {
    "getaccountresource": account_resource,
    "getaccountnet": account_net,
}
