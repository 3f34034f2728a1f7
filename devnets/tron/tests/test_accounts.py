"""Accounts on the local node: activation, bandwidth and what it costs, stakes and what they give, permissions."""

from __future__ import annotations

from typing import Any

import pytest

from cambist_tron_node import NoMachine, NotCarriedOutError, Parameters, TronNode, keys, proto
from cambist_tron_node.recovery import WINDOW, decayed, taking_over, used_now, using
from cambist_tron_node.refusals import RefusedError
from cambist_tron_node.state import BANDWIDTH, ENERGY, Resource
from cambist_tron_node.transactions import (
    CREATE_ACCOUNT,
    STAKE,
    TRANSFER,
    TRANSFER_ASSET,
    UNDELEGATE,
    UNSTAKE,
    UPDATE_PERMISSIONS,
    WITHDRAW,
)

from .conftest import Ask

TRX = 1_000_000
DAY_S = 86_400


def raw(address: str) -> bytes:
    return keys.address_bytes(address)


async def receipt(node: TronNode, tx_id: str) -> tuple[int, dict[str, int]]:
    """Return a mined transaction's fee and receipt."""
    await node.mine()
    info = node.info(tx_id)
    assert info is not None
    return info.get("fee", 0), info["receipt"]


# --- Activation and bandwidth ---


async def test_the_first_trx_activates_an_account_and_costs_what_main_network_takes(node: TronNode, ask: Ask) -> None:
    to = node.new_account("customer")
    assert await ask("wallet/getaccount", address=raw(to).hex()) == {}
    assert await ask("wallet/getaccountresource", address=raw(to).hex()) == {}
    fee, bill = await receipt(node, await node.send_trx(to, 5 * TRX))
    assert (fee, bill) == (1_100_000, {"net_fee": 100_000})
    account = await ask("wallet/getaccount", address=to, visible=True)
    assert (account["address"], account["balance"]) == (to, 5 * TRX)


async def test_staked_bandwidth_saves_the_tenth_of_a_trx(node: TronNode) -> None:
    await node.stake(node.accounts[0], 10_000 * TRX, resource=BANDWIDTH)
    fee, bill = await receipt(node, await node.send_trx(node.new_account("customer"), TRX))
    assert (fee, bill) == (1_000_000, {"net_usage": 267})


async def test_free_bandwidth_is_enough_for_two_transfers_a_day_and_then_bytes_are_paid_for(node: TronNode) -> None:
    to = node.accounts[1]
    bills = [await receipt(node, await node.send_trx(to, TRX)) for _ in range(3)]
    size = bills[0][1]["net_usage"]
    assert bills == [(0, {"net_usage": size}), (0, {"net_usage": size}), (size * 1000, {"net_fee": size * 1000})]


async def test_free_bandwidth_comes_back_over_a_day(node: TronNode, ask: Ask) -> None:
    to, own = node.accounts[1], raw(node.accounts[0]).hex()
    for _ in range(2):
        await receipt(node, await node.send_trx(to, TRX))
    used = (await ask("wallet/getaccountresource", address=own))["freeNetUsed"]
    await node.advance(DAY_S / 2)
    half = (await ask("wallet/getaccountnet", address=own))["freeNetUsed"]
    assert half == pytest.approx(used / 2, abs=2)
    await node.advance(DAY_S / 2)
    assert "freeNetUsed" not in await ask("wallet/getaccountresource", address=own)
    fee, _ = await receipt(node, await node.send_trx(to, TRX))
    assert fee == 0


async def test_a_memo_costs_a_trx(node: TronNode) -> None:
    held = proto.new(TRANSFER, owner_address=raw(node.accounts[0]), to_address=raw(node.accounts[1]), amount=1)
    fee, bill = await receipt(node, await node.submit(TRANSFER, held, data=b"order 7"))
    assert fee == TRX
    assert "net_usage" in bill


async def test_an_account_can_be_activated_without_trx(node: TronNode) -> None:
    to = node.new_account("customer")
    held = proto.new(CREATE_ACCOUNT, owner_address=raw(node.accounts[0]), account_address=raw(to))
    fee, _ = await receipt(node, await node.submit(CREATE_ACCOUNT, held))
    assert fee == 1_100_000
    assert node.activated(to)
    with pytest.raises(RefusedError, match="Account has existed"):
        await node.submit(CREATE_ACCOUNT, held)


async def test_another_asset_is_not_trx_and_activates_all_the_same(node: TronNode, ask: Ask) -> None:
    owner, to = raw(node.accounts[0]), node.new_account("customer")
    node.chain.state.change(owner, assets=(("1002000", 500),))
    held = proto.new(TRANSFER_ASSET, asset_name=b"1002000", owner_address=owner, to_address=raw(to), amount=200)
    fee, _ = await receipt(node, await node.submit(TRANSFER_ASSET, held))
    assert fee == 1_100_000
    account = await ask("wallet/getaccount", address=raw(to).hex())
    assert "balance" not in account
    assert account["assetV2"] == [{"key": "1002000", "value": 200}]


async def test_what_was_spent_and_what_was_burned_add_up(node: TronNode) -> None:
    everybody = [*node.accounts, node.new_account("customer")]
    before = sum(node.balance(each) for each in everybody)
    for number in range(12):
        await node.send_trx(everybody[-1], TRX, sender=node.accounts[number % 3])
        await node.mine()
    assert node.chain.state.burned > 0
    assert sum(node.balance(each) for each in everybody) + node.chain.state.burned == before


# --- How resources recover ---


def test_use_decays_linearly_over_a_day() -> None:
    assert decayed(600, 0, 100, 100) == 600
    assert decayed(600, 0, 100, 100 + WINDOW // 2) == 300
    assert decayed(600, 0, 100, 100 + WINDOW) == 0
    assert decayed(600, 0, 0, 10 * WINDOW) == 0


def test_new_use_stretches_the_window_in_proportion() -> None:
    once = using(Resource(), 1_000_000, 0)
    assert (once.used, once.window) == (1_000_000, WINDOW * 1000)
    later = using(once, 500_000, WINDOW // 2)
    assert later.used == pytest.approx(1_000_000, abs=2)
    assert later.window == pytest.approx((WINDOW // 2 + WINDOW) / 2 * 1000, rel=0.001)
    assert used_now(later, WINDOW // 2 + later.window // 1000) == 0


def test_use_that_comes_back_with_stake_keeps_its_time() -> None:
    owner = taking_over(Resource(), using(Resource(), 900_000, 0), 900_000, WINDOW // 3)
    assert owner.used == 900_000
    assert used_now(owner, WINDOW // 3 + WINDOW) == 0


# --- Stakes ---


async def test_staked_trx_gives_energy_in_proportion_to_all_that_is_staked(node: TronNode, ask: Ask) -> None:
    own = node.accounts[0]
    await node.stake(own, 10_000 * TRX)
    resource = await ask("wallet/getaccountresource", address=own, visible=True)
    assert resource["EnergyLimit"] == 10_000 * 180_000_000_000 // (16_307_698_552 + 10_000)
    assert resource["TotalEnergyWeight"] == 16_307_698_552 + 10_000
    assert resource["tronPowerLimit"] == 10_000
    account = await ask("wallet/getaccount", address=own, visible=True)
    assert account["frozenV2"] == [{}, {"type": "ENERGY", "amount": 10_000 * TRX}, {"type": "TRON_POWER"}]


async def test_a_stake_is_a_whole_trx_at_least_and_no_more_than_there_is(node: TronNode) -> None:
    own = raw(node.accounts[0])
    for sun, words in [
        (0, "frozenBalance must be positive"),
        (TRX - 1, "greater than or equal to 1 TRX"),
        (2_000_000 * TRX, "less than or equal to accountBalance"),
    ]:
        with pytest.raises(RefusedError, match=words):
            await node.submit(STAKE, proto.new(STAKE, owner_address=own, frozen_balance=sun, resource=ENERGY))


async def unstake(node: TronNode, address: str, sun: int) -> str:
    held = proto.new(UNSTAKE, owner_address=raw(address), unfreeze_balance=sun, resource=ENERGY)
    tx_id = await node.submit(UNSTAKE, held)
    await node.mine()
    return tx_id


async def test_unstaked_trx_waits_two_weeks_and_then_comes_home(node: TronNode, ask: Ask) -> None:
    own = node.accounts[0]
    await node.stake(own, 100 * TRX)
    before = node.balance(own)
    await unstake(node, own, 60 * TRX)
    withdrawal = proto.new(WITHDRAW, owner_address=raw(own))
    with pytest.raises(RefusedError, match="no unFreeze balance to withdraw"):
        await node.submit(WITHDRAW, withdrawal)
    waiting = (await ask("wallet/getaccount", address=own, visible=True))["unfrozenV2"]
    assert [(each["type"], each["unfreeze_amount"]) for each in waiting] == [("ENERGY", 60 * TRX)]
    assert await ask("wallet/getavailableunfreezecount", owner_address=own, visible=True) == {"count": 31}
    assert await ask("wallet/getcanwithdrawunfreezeamount", owner_address=own, visible=True) == {}
    await node.advance(14 * DAY_S)
    assert await ask("wallet/getcanwithdrawunfreezeamount", owner_address=own, visible=True) == {"amount": 60 * TRX}
    tx_id = await node.submit(WITHDRAW, withdrawal)
    await node.mine()
    info = node.info(tx_id)
    assert info is not None
    assert info["withdraw_expire_amount"] == 60 * TRX
    assert node.balance(own) == before + 60 * TRX


async def test_thirty_two_unstakes_may_wait_at_once(node: TronNode) -> None:
    own = node.accounts[0]
    await node.stake(own, 100 * TRX)
    for _ in range(32):
        await unstake(node, own, TRX)
    with pytest.raises(RefusedError, match="unfreezing times is over limit"):
        await unstake(node, own, TRX)
    await node.advance(14 * DAY_S)
    before = node.balance(own)
    await unstake(node, own, TRX)  # brings home what has waited long enough
    assert node.balance(own) > before + 31 * TRX


async def test_lent_stake_works_for_the_receiver_and_can_be_taken_back(node: TronNode, ask: Ask) -> None:
    owner, receiver = node.accounts[:2]
    await node.stake(owner, 1_000 * TRX)
    whole = (await ask("wallet/getaccountresource", address=owner, visible=True))["EnergyLimit"]
    assert await ask("wallet/getcandelegatedmaxsize", owner_address=owner, type=1, visible=True) == {
        "max_size": 1_000 * TRX
    }
    await node.delegate(owner, receiver, 400 * TRX)
    lent = await ask("wallet/getdelegatedresourcev2", fromAddress=owner, toAddress=receiver, visible=True)
    assert lent == {"delegatedResource": [{"from": owner, "to": receiver, "frozen_balance_for_energy": 400 * TRX}]}
    index = await ask("wallet/getdelegatedresourceaccountindexv2", value=owner, visible=True)
    assert index == {"account": owner, "toAccounts": [receiver]}
    parts = [
        (await ask("wallet/getaccountresource", address=each, visible=True))["EnergyLimit"]
        for each in (owner, receiver)
    ]
    assert sum(parts) == pytest.approx(whole, abs=1)
    account = await ask("wallet/getaccount", address=receiver, visible=True)
    assert account["account_resource"]["acquired_delegated_frozenV2_balance_for_energy"] == 400 * TRX
    await node.undelegate(owner, receiver, 400 * TRX)
    assert await ask("wallet/getdelegatedresourcev2", fromAddress=owner, toAddress=receiver, visible=True) == {}
    assert (await ask("wallet/getaccountresource", address=owner, visible=True))["EnergyLimit"] == whole


async def test_use_of_lent_stake_goes_back_with_it(node: TronNode, ask: Ask) -> None:
    owner, receiver = node.accounts[:2]
    await node.stake(owner, 1_000 * TRX)
    await node.delegate(owner, receiver, 500 * TRX)
    state = node.chain.state
    energy = using(state.known(raw(receiver)).energy, 3_000, state.slot)
    state.change(raw(receiver), energy=energy)  # as if a contract had been called
    await node.undelegate(owner, receiver, 500 * TRX)
    resource = await ask("wallet/getaccountresource", address=owner, visible=True)
    assert resource["EnergyUsed"] == pytest.approx(3_000, abs=3)
    assert "EnergyUsed" not in await ask("wallet/getaccountresource", address=receiver, visible=True)
    lendable = (await ask("wallet/getcandelegatedmaxsize", owner_address=owner, type=1, visible=True))["max_size"]
    used_stake = 3_000 * 16_307_699_552 * TRX // 180_000_000_000
    assert lendable == pytest.approx(1_000 * TRX - used_stake, rel=0.001)


async def test_only_free_stake_can_be_lent_and_only_to_accounts(node: TronNode) -> None:
    owner, receiver = node.accounts[:2]
    await node.stake(owner, 100 * TRX)
    for to, sun, words in [
        (receiver, 101 * TRX, "available FreezeEnergyV2 balance"),
        (receiver, TRX - 1, "greater than or equal to 1 TRX"),
        (owner, TRX, "must not be the same"),
        (node.new_account("nobody"), TRX, "not exists"),
    ]:
        with pytest.raises(RefusedError, match=words):
            await node.delegate(owner, to, sun)
    with pytest.raises(RefusedError, match="delegated Resource does not exist"):
        await node.undelegate(owner, receiver, TRX)
    await node.delegate(owner, receiver, 10 * TRX)
    with pytest.raises(RefusedError, match="request=11000000, unlock_balance=10000000"):
        await node.undelegate(owner, receiver, 11 * TRX)


async def test_locked_stake_cannot_be_taken_back_before_its_time(node: TronNode) -> None:
    owner, receiver = node.accounts[:2]
    await node.stake(owner, 100 * TRX)
    held = proto.from_json(
        "DelegateResourceContract",
        {"owner_address": owner, "receiver_address": receiver, "balance": 10 * TRX, "resource": "ENERGY"}
        | {"lock": True, "lock_period": 1_200},
        visible=True,
    )
    await node.submit("DelegateResourceContract", held)
    await node.mine()
    with pytest.raises(RefusedError, match="unlock_balance=0"):
        await node.undelegate(owner, receiver, 10 * TRX)
    await node.advance(3_700)
    await node.undelegate(owner, receiver, 10 * TRX)
    with pytest.raises(RefusedError, match="does not exist"):
        await node.submit(UNDELEGATE, proto.new(UNDELEGATE, owner_address=raw(owner), receiver_address=raw(receiver)))


async def test_stakes_go_back_with_the_branch_they_stood_in(node: TronNode, ask: Ask) -> None:
    owner, receiver = node.accounts[:2]
    await node.stake(owner, 100 * TRX)
    before = [await ask("wallet/getaccountresource", address=each, visible=True) for each in (owner, receiver)]
    await node.delegate(owner, receiver, 50 * TRX)
    await node.reorg(1)
    after = [await ask("wallet/getaccountresource", address=each, visible=True) for each in (owner, receiver)]
    assert [each.get("EnergyLimit") for each in after] == [each.get("EnergyLimit") for each in before]
    assert await ask("wallet/getdelegatedresourcev2", fromAddress=owner, toAddress=receiver, visible=True) == {}


# --- Permissions ---


def permission(kind: str, threshold: int, *members: bytes, **more: Any) -> dict[str, Any]:
    weights = [{"address": keys.address_of(key).hex(), "weight": 1} for key in members]
    return {"type": kind, "permission_name": kind.lower(), "threshold": threshold, "keys": weights, **more}


async def test_an_account_can_be_of_several_keys(node: TronNode) -> None:
    own, two, three = node.accounts[0], keys.named_key("second"), keys.named_key("third")
    first = node.keys[own]
    operations = "7fff1fc0033e".ljust(64, "0")
    asked = {
        "owner_address": raw(own).hex(),
        "owner": permission("Owner", 2, first, two, three),
        "actives": [permission("Active", 1, three, operations=operations)],
    }
    held = proto.from_json(UPDATE_PERMISSIONS, asked)
    fee, _ = await receipt(node, await node.submit(UPDATE_PERMISSIONS, held))
    assert fee == 100 * TRX
    spend = proto.new(TRANSFER, owner_address=raw(own), to_address=raw(node.accounts[1]), amount=1)
    with pytest.raises(RefusedError, match="sig error"):
        await node.submit(TRANSFER, spend)
    with pytest.raises(RefusedError, match="has signed twice"):
        await node.submit(TRANSFER, spend, signers=[two, two])
    fee, bill = await receipt(node, await node.submit(TRANSFER, spend, signers=[first, two]))
    assert fee == TRX + bill.get("net_fee", 0)  # several signatures cost one TRX


async def test_an_active_permission_is_for_its_own_contracts_alone(node: TronNode) -> None:
    own, third = node.accounts[0], keys.named_key("third")
    transfers_only = "02".ljust(64, "0")
    asked = {
        "owner_address": raw(own).hex(),
        "owner": permission("Owner", 1, node.keys[own]),
        "actives": [permission("Active", 1, third, operations=transfers_only)],
    }
    await node.submit(UPDATE_PERMISSIONS, proto.from_json(UPDATE_PERMISSIONS, asked))
    await node.mine()
    spend = proto.new(TRANSFER, owner_address=raw(own), to_address=raw(node.accounts[1]), amount=1)
    await node.submit(TRANSFER, spend, signers=[third], permission=2)
    stake = proto.new(STAKE, owner_address=raw(own), frozen_balance=TRX, resource=ENERGY)
    with pytest.raises(RefusedError, match="Permission denied"):
        await node.submit(STAKE, stake, signers=[third], permission=2)
    with pytest.raises(RefusedError, match="permission isn't exit"):
        await node.submit(STAKE, stake, signers=[third], permission=3)


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"actives": []}, "active permission is missed"),
        ({"owner": permission("Owner", 3, b"\1" * 32)}, "sum of all key's weight"),
        ({"owner": permission("Owner", 0, b"\1" * 32)}, "threshold should be greater than 0"),
        ({"owner": permission("Owner", 1)}, "key's count should be greater than 0"),
        ({"owner": permission("Owner", 1, b"\1" * 32, b"\1" * 32)}, "should be distinct"),
        ({"owner": permission("Active", 1, b"\1" * 32)}, "owner permission type is error"),
        ({"witness": permission("Witness", 1, b"\1" * 32)}, "isn't witness"),
        ({"actives": [permission("Active", 1, b"\1" * 32, operations="ff")]}, "operations size must 32"),
    ],
)
async def test_permissions_that_lock_their_owner_out_are_refused(node: TronNode, changed, words: str) -> None:
    own = node.accounts[0]
    asked = {
        "owner_address": raw(own).hex(),
        "owner": permission("Owner", 1, node.keys[own]),
        "actives": [permission("Active", 1, node.keys[own], operations="02".ljust(64, "0"))],
    }
    with pytest.raises(RefusedError, match=words):
        await node.submit(UPDATE_PERMISSIONS, proto.from_json(UPDATE_PERMISSIONS, asked | changed))


async def test_prices_are_the_committee_s_to_decide() -> None:
    prices = Parameters(transaction_fee=10, create_account_fee=7, new_account_fee=11)
    async with TronNode(machine=NoMachine(), parameters=prices) as node:
        fee, _ = await receipt(node, await node.send_trx(node.new_account("customer"), TRX))
        assert fee == 18


async def test_what_failed_is_told_and_not_passed_over(node: TronNode) -> None:
    node.chain.parameters = Parameters(block_bytes_max=0)
    with pytest.raises(NotCarriedOutError, match="it is in no block"):
        await node.stake(node.accounts[0], TRX)
