"""Another client, unmodified, against the local node: what tronpy can do on a real network it can do here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest
from tronpy import AsyncTron, Tron
from tronpy.exceptions import (
    AddressNotFound,
    BadSignature,
    BlockNotFound,
    TaposError,
    TransactionError,
    TransactionNotFound,
    UnknownError,
    ValidationError,
)
from tronpy.keys import PrivateKey
from tronpy.providers import AsyncHTTPProvider, HTTPProvider

from cambist_tron_node import TronNode

TRX = 1_000_000

Away = Callable[[Callable[[], Any]], Awaitable[Any]]


@pytest.fixture
def client(node: TronNode) -> Tron:
    return Tron(HTTPProvider(node.url), conf={"fee_limit": 10 * TRX, "timeout": 10.0})


@pytest.fixture
async def other_client(node: TronNode) -> AsyncIterator[AsyncTron]:
    async with (
        httpx.AsyncClient(timeout=10.0) as http,
        AsyncTron(AsyncHTTPProvider(node.url, client=http), conf={"fee_limit": 10 * TRX}) as client,
    ):
        yield client


def key(node: TronNode, address: str) -> PrivateKey:
    return PrivateKey(node.keys[address])


async def away(work: Callable[[], Any]) -> Any:
    """Do blocking work beside the node."""
    return await asyncio.to_thread(work)


def transfer(client: Tron, node: TronNode, to: str, sun: int = TRX, **changed: Any) -> Any:
    built = client.trx.transfer(node.accounts[0], to, sun)
    if "expiration" in changed:
        built = built.expiration(changed["expiration"])
    return built.build().sign(key(node, changed.get("signer", node.accounts[0])))


async def test_a_transfer_is_built_signed_sent_and_waited_for(node: TronNode, client: Tron) -> None:
    to = node.new_account("customer")
    sent = await away(lambda: transfer(client, node, to, 5 * TRX).broadcast())
    await node.mine()
    info = await away(lambda: sent.wait(timeout=5, interval=0.05))
    assert (info["id"], info["fee"]) == (sent.txid, 1_100_000)
    assert await away(lambda: client.get_account_balance(to)) == 5
    assert (await away(lambda: client.get_transaction(sent.txid)))["ret"] == [{"contractRet": "SUCCESS"}]
    with pytest.raises(TransactionNotFound):
        await away(lambda: client.get_solid_transaction_info(sent.txid))
    await node.mine(18)
    assert (await away(lambda: client.get_solid_transaction_info(sent.txid)))["blockNumber"] == 2


async def test_errors_come_as_tronpy_knows_them(node: TronNode, client: Tron) -> None:
    to = node.accounts[1]
    with pytest.raises(ValidationError, match="balance is not sufficient"):
        await away(lambda: transfer(client, node, to, 2_000_000 * TRX).broadcast())
    unsigned = await away(lambda: client.trx.transfer(node.accounts[0], to, TRX).build())
    unsigned.set_signature([PrivateKey(b"\1" * 32).sign_msg_hash(bytes.fromhex(unsigned.txid)).hex()])
    with pytest.raises(BadSignature, match="not contained of permission"):
        await away(unsigned.broadcast)
    signed = await away(lambda: transfer(client, node, to))
    await away(signed.broadcast)
    with pytest.raises(UnknownError, match="DUP_TRANSACTION_ERROR"):
        await away(signed.broadcast)
    with pytest.raises(TransactionError):
        await away(lambda: transfer(client, node, to, expiration=25 * 3_600_000).broadcast())


async def test_a_reference_to_nowhere_is_a_tapos_error(node: TronNode, client: Tron) -> None:
    elsewhere = "00000000000000630000000000000063" + "00" * 16
    built = client.trx.transfer(node.accounts[0], node.accounts[1], TRX).build(offline=True, ref_block_id=elsewhere)
    built._client = client
    with pytest.raises(TaposError):
        await away(lambda: built.sign(key(node, node.accounts[0])).broadcast())


async def test_a_transaction_built_offline_has_the_id_the_node_gives_it(node: TronNode, client: Tron) -> None:
    reference = node.block_id(node.solid_height)
    built = client.trx.transfer(node.accounts[0], node.accounts[1], TRX).build(offline=True, ref_block_id=reference)
    built._client = client
    sent = await away(lambda: built.sign(key(node, node.accounts[0])).broadcast())
    assert node.pending() == [sent.txid] == [built.txid]


async def test_what_is_not_there_is_not_found(node: TronNode, client: Tron) -> None:
    with pytest.raises(AddressNotFound):
        await away(lambda: client.get_account(node.new_account("nobody")))
    with pytest.raises(TransactionNotFound):
        await away(lambda: client.get_transaction_info("00" * 32))
    with pytest.raises(BlockNotFound):
        await away(lambda: client.get_block(10_000))


async def test_blocks_and_the_solid_one(node: TronNode, client: Tron) -> None:
    await node.mine(30)
    assert await away(client.get_latest_block_number) == node.head
    assert await away(client.get_latest_solid_block_id) == node.block_id(node.solid_height)
    block = await away(lambda: client.get_block(7))
    assert await away(lambda: client.get_block(block["blockID"])) == block


async def test_stakes_from_beginning_to_end(node: TronNode, client: Tron) -> None:
    owner, receiver = node.accounts[:2]

    async def carried_out(built: Any) -> Any:
        sent = await away(lambda: built.build().sign(key(node, owner)).broadcast())
        await node.mine()
        return await away(lambda: sent.wait(timeout=5, interval=0.05))

    await carried_out(client.trx.freeze_balance(owner, 100 * TRX, "ENERGY"))
    await carried_out(client.trx.delegate_resource(owner, receiver, 50 * TRX, "ENERGY"))
    resource = await away(lambda: client.get_account_resource(receiver))
    assert resource["EnergyLimit"] > 500
    lent = await away(lambda: client.get_delegated_resource_v2(owner, receiver))
    assert lent["delegatedResource"][0]["frozen_balance_for_energy"] == 50 * TRX
    await carried_out(client.trx.undelegate_resource(owner, receiver, 50 * TRX, "ENERGY"))
    await carried_out(client.trx.unfreeze_balance(owner, "ENERGY", unfreeze_balance=100 * TRX))
    account = await away(lambda: client.get_account(owner))
    assert account["unfrozenV2"][0]["unfreeze_amount"] == 100 * TRX


async def test_weights_of_signatures(node: TronNode, client: Tron) -> None:
    signed = await away(lambda: transfer(client, node, node.accounts[1]))
    weight = await away(lambda: client.get_sign_weight(signed))
    assert weight["current_weight"] == 1
    assert weight["permission"]["threshold"] == 1


async def test_permissions_can_be_changed(node: TronNode, client: Tron) -> None:
    owner, second = node.accounts[0], node.accounts[1]
    permissions = await away(lambda: client.get_account_permission(owner))
    permissions["owner"]["keys"].append({"address": second, "weight": 1})
    permissions["owner"]["threshold"] = 2
    built = await away(lambda: client.trx.account_permission_update(owner, permissions).build())
    await away(lambda: built.sign(key(node, owner)).broadcast())
    await node.mine()
    both = await away(lambda: transfer(client, node, second).sign(key(node, second)))
    await away(both.broadcast)
    with pytest.raises(BadSignature, match="sig error"):
        await away(lambda: transfer(client, node, second, 2).broadcast())


async def test_the_chain_s_numbers(client: Tron) -> None:
    parameters = await away(client.get_chain_parameters)
    assert {"key": "getEnergyFee", "value": 100} in parameters


async def test_the_asynchronous_client_as_well(node: TronNode, other_client: AsyncTron) -> None:
    to = node.new_account("customer")
    built = await other_client.trx.transfer(node.accounts[0], to, 3 * TRX).memo("order 7").build()
    sent = await built.sign(key(node, node.accounts[0])).broadcast()
    await node.mine()
    info = await sent.wait(timeout=5, interval=0.05)
    assert info["fee"] == 2_100_000  # activation, and the memo
    assert await other_client.get_account_balance(to) == 3
    assert await other_client.get_latest_block_number() == node.head
    with pytest.raises(AddressNotFound):
        await other_client.get_account(node.new_account("nobody"))
