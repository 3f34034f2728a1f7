"""Another client, unmodified, calling contracts on the local node as it would on a real network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import msgspec
import pytest
from tronpy import AsyncTron, Contract, Tron
from tronpy.exceptions import TvmError, UnknownError, ValidationError
from tronpy.keys import PrivateKey
from tronpy.providers import AsyncHTTPProvider, HTTPProvider

from cambist.testing.contracts import load
from cambist_tron_node import Fault, TronNode, TronToken

TRX = 1_000_000


@pytest.fixture
def node(contract_node: TronNode) -> TronNode:
    return contract_node


@pytest.fixture
def client(node: TronNode) -> Tron:
    return Tron(HTTPProvider(node.url), conf={"fee_limit": 100 * TRX, "timeout": 10.0})


async def away(work: Callable[[], Any]) -> Any:
    """Do blocking work beside the node."""
    return await asyncio.to_thread(work)


def key(node: TronNode, place: int = 0) -> PrivateKey:
    return PrivateKey(node.keys[node.accounts[place]])


async def test_a_token_is_read_sent_and_its_events_decoded(node: TronNode, client: Tron, usdt: TronToken) -> None:
    token = await away(lambda: client.get_contract(usdt.address))
    sender, to = node.accounts[:2]

    def transfer() -> Any:
        built = token.functions.transfer.with_owner(sender)(to, 5_000_000)
        return built.build().sign(key(node)).broadcast()

    assert await away(token.functions.symbol) == "USDT"
    assert await away(token.functions.decimals) == 6
    sent = await away(transfer)
    await node.mine()
    info = await away(sent.wait)
    assert info["receipt"]["result"] == "SUCCESS"
    assert await away(lambda: token.functions.balanceOf(to)) == 5_000_000
    # It decodes events only where addresses are shown as it spells them.
    shown = await away(
        lambda: client.provider.make_request("wallet/gettransactioninfobyid", {"value": sent.txid, "visible": True})
    )
    (event,) = token.events.Transfer.process_receipt(shown)
    assert event["args"] == {"from": sender, "to": to, "value": 5_000_000}
    assert await away(sent.result) is False  # as the main network's USDT: its answer is no answer


async def test_its_own_fee_limit_is_too_low_for_usdt(node: TronNode, usdt: TronToken) -> None:
    """A trap of the real client: all of its ten TRX are burned, and nothing is sent."""
    client = Tron(HTTPProvider(node.url), conf={"fee_limit": 10 * TRX, "timeout": 10.0})
    token = await away(lambda: client.get_contract(usdt.address))

    def transfer() -> Any:
        return token.functions.transfer.with_owner(node.accounts[0])(node.accounts[1], 5).build().sign(key(node))

    sent = await away(lambda: transfer().broadcast())
    await node.mine()
    info = await away(sent.wait)
    assert (info["receipt"]["result"], info["result"]) == ("OUT_OF_ENERGY", "FAILED")
    assert info["receipt"]["energy_fee"] == 10 * TRX
    with pytest.raises(TvmError):
        await away(sent.result)
    assert await usdt.balance_of(node.accounts[1]) == 0


async def test_a_contract_is_deployed_by_the_client(node: TronNode, client: Tron) -> None:
    artifact = load("TestToken")
    owner = node.accounts[0]

    def deploy() -> Any:
        code = artifact.creation_code("TRY", 6)
        abi = msgspec.json.decode(artifact.abi)
        new = Contract(bytecode=code, name="Try", abi=abi, client=client, owner_address=owner, origin_address=owner)
        return client.trx.deploy_contract(owner, new).fee_limit(1_000 * TRX).build().sign(key(node)).broadcast()

    sent = await away(deploy)
    await node.mine()
    address = (await away(sent.wait))["contract_address"]
    token = await away(lambda: client.get_contract(address))
    assert await away(token.functions.symbol) == "TRY"


async def test_energy_is_estimated_before_sending(node: TronNode, client: Tron, usdt: TronToken) -> None:
    owner, arguments = node.accounts[0], usdt.data("transfer", node.accounts[1], 5)[4:].hex()
    function = "transfer(address,uint256)"
    exact = await away(lambda: client.trigger_constant_contract(owner, usdt.address, function, arguments))
    estimated = await away(lambda: client.get_estimated_energy(owner, usdt.address, function, arguments))
    assert exact["energy_used"] == 130_285 <= estimated <= 140_285
    node.faults.add(Fault.NO_ESTIMATES)
    with pytest.raises((UnknownError, ValidationError)):
        await away(lambda: client.get_estimated_energy(owner, usdt.address, function, arguments))


async def test_a_call_that_would_revert_says_why(node: TronNode, client: Tron) -> None:
    token = await node.deploy_token("USDX", 6)
    arguments = token.data("transfer", node.accounts[1], 5)[4:].hex()
    with pytest.raises(TvmError, match="REVERT opcode executed"):
        await away(
            lambda: client.trigger_constant_contract(
                node.accounts[0], token.address, "transfer(address,uint256)", arguments
            )
        )


async def test_value_goes_along_with_a_call(node: TronNode, client: Tron) -> None:
    splitter = await node.deploy("Splitter")
    contract = await away(lambda: client.get_contract(splitter.address))
    before = node.balance(node.accounts[2])

    def pay() -> Any:
        call = contract.functions.splitNative.with_owner(node.accounts[0]).with_transfer(5 * TRX)
        return call([node.accounts[2]], [5 * TRX]).build().sign(key(node)).broadcast()

    sent = await away(pay)
    await node.mine()
    assert (await away(sent.wait))["receipt"]["result"] == "SUCCESS"
    assert node.balance(node.accounts[2]) == before + 5 * TRX


async def test_the_asynchronous_client_as_well(node: TronNode, usdt: TronToken) -> None:
    async with (
        httpx.AsyncClient(timeout=10.0) as http,
        AsyncTron(AsyncHTTPProvider(node.url, client=http), conf={"fee_limit": 100 * TRX}) as client,
    ):
        token = await client.get_contract(usdt.address)
        assert await token.functions.balanceOf(node.accounts[0]) == 10**12
        call = token.functions.transfer
        call._owner_address = node.accounts[0]
        built = await call(node.accounts[1], 7)
        transaction = await built.build()
        sent = await transaction.sign(key(node)).broadcast()
        await node.mine()
        info = await sent.wait()
        assert info["receipt"]["energy_usage_total"] == 130_285
        assert await token.functions.balanceOf(node.accounts[1]) == 7
