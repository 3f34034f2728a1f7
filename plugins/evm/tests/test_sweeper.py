"""The sweeper on a real node: it obeys one account, and who delegates to it is paid like any other address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_account import Account
from eth_utils import keccak, to_checksum_address

from cambist.plugin import Intent, Token, Units
from cambist_evm.sweeper import agent_of, collect_data, deployment
from cambist_evm.testing import Anvil, Contract, Wallet

ETHER = 10**18
NATIVE = Token(symbol="ETH", contract=None, decimals=18, label="ETH")
NOBODY = "0x" + "0" * 40
PUSH = keccak(text="push(address,address,uint256)")[:4]
CLOSE = "0x" + keccak(text="close()")[:4].hex()


def token_at(contract: Contract) -> Token:
    return Token(symbol="USDT", contract=contract.address, decimals=6, label="USDT")


def an_item(source: str, token: Token, to_address: str, amount: int) -> Intent:
    return Intent(source=source, to_address=to_address, token=token, amount=Units(amount))


def pushing(token: str, to_address: str, amount: int) -> str:
    return "0x" + (PUSH + encode(["address", "address", "uint256"], [token, to_address, amount])).hex()


class Deployed:
    """A deployed sweeper, its sponsor, and a deposit address that delegates to it. Transactions are mined at once."""

    def __init__(self, node: Anvil, usdt: Contract) -> None:
        self.node, self.usdt = node, usdt
        self.sponsor, self.source, self.wallet = Wallet("station"), Wallet("deposit"), Wallet("main").address
        self.sweeper = deployment(self.sponsor.address).address
        self.agent = agent_of(self.sweeper)
        self.fees: Counter[str] = Counter()

    async def agreed(self, source: Wallet, *, chain_id: int = 1337, contract: str | None = None) -> Any:
        """Have an address sign an authorization, as another library writes it."""
        count = int(await self.node.call("eth_getTransactionCount", [source.address, "latest"]), 16)
        said = {"chainId": chain_id, "address": contract or self.agent, "nonce": count}
        return Account.sign_authorization(said, source.secret)

    async def submit(self, sender: Wallet, agreed: Sequence[Any], to: str = NOBODY, data: str = "0x") -> str:
        """Send a transaction that carries authorizations; return its status."""
        count = int(await self.node.call("eth_getTransactionCount", [sender.address, "latest"]), 16)
        tx = {
            "type": 4, "chainId": 1337, "nonce": count, "gas": 1_000_000, "maxFeePerGas": 10**11, "data": data,
            "maxPriorityFeePerGas": 10**9, "to": to_checksum_address(to), "value": 0, "authorizationList": list(agreed),
        }  # fmt: skip
        signed = Account.sign_transaction(tx, sender.secret)
        return (await self.node.receipt(await self.node.send_raw("0x" + signed.raw_transaction.hex())))["status"]

    async def send(self, sender: str, to: str, data: str = "0x", **more: Any) -> str:
        """Send from any address whatever; return the status."""
        await self.node.call("anvil_impersonateAccount", [sender])
        tx_id = await self.node.send(to, data=data, sender=sender, gas=more.pop("gas", 500_000), **more)
        receipt = await self.node.receipt(tx_id)
        self.fees[sender] += int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
        return receipt["status"]

    async def collect(self, *items: Intent, sender: str | None = None, to: str | None = None) -> str:
        data = "0x" + collect_data(items).hex()
        return await self.send(sender or self.sponsor.address, to or self.sweeper, data)

    async def code(self, address: str) -> str:
        code: str = await self.node.call("eth_getCode", [address, "latest"])
        return code

    async def held(self, address: str) -> tuple[int, int]:
        native = int(await self.node.call("eth_getBalance", [address, "latest"]), 16)
        return native, await self.usdt.read("balanceOf", address)


@pytest.fixture
async def deployed(node: Anvil) -> Deployed:
    deployed = Deployed(node, await node.deploy("UsdtLike"))
    made = deployment(deployed.sponsor.address)
    await node.send(made.to_address, data="0x" + made.data.hex())
    for address in (deployed.sponsor.address, Wallet("stranger").address):
        await node.call("anvil_setBalance", [address, hex(10 * ETHER)])
    await deployed.usdt.send("mint", deployed.source.address, 500)
    await node.send_native(deployed.source.address, ETHER)
    assert await deployed.submit(deployed.sponsor, [await deployed.agreed(deployed.source)]) == "0x1"
    assert await deployed.code(deployed.source.address) == "0xef0100" + deployed.agent[2:].lower()
    return deployed


async def test_the_sponsor_empties_an_address_that_delegates(deployed: Deployed) -> None:
    """To the unit, a token that answers nothing and the native coin, and the address pays nothing for it."""
    source, usdt = deployed.source.address, token_at(deployed.usdt)
    assert await deployed.collect(
        an_item(source, usdt, deployed.wallet, 500), an_item(source, NATIVE, deployed.wallet, ETHER)
    ) == "0x1"  # fmt: skip
    assert await deployed.held(source) == (0, 0)
    assert await deployed.held(deployed.wallet) == (ETHER, 500)


async def test_nobody_else_can_make_it_send_anything(deployed: Deployed) -> None:
    """Through the contract, at its agent, at the delegated address itself, and as another delegated address.

    What is sent to an address that runs no code does nothing, successfully.
    """
    source, usdt = deployed.source.address, token_at(deployed.usdt)
    stranger, accomplice = Wallet("stranger").address, Wallet("accomplice")
    assert await deployed.submit(Wallet("stranger"), [await deployed.agreed(accomplice)]) == "0x1"
    await deployed.node.send_native(accomplice.address, ETHER)
    mine = an_item(source, usdt, stranger, 500)
    for sender in (stranger, accomplice.address, deployed.usdt.address, deployed.wallet):
        await deployed.node.call("anvil_setBalance", [sender, hex(ETHER)])
        for to_address in (deployed.sweeper, deployed.agent, source, accomplice.address):
            status = "0x0" if to_address == deployed.sweeper else "0x1"
            assert await deployed.collect(mine, sender=sender, to=to_address) == status
            assert await deployed.send(sender, to_address, pushing(deployed.usdt.address, stranger, 500)) == status
            assert await deployed.send(sender, to_address, pushing(NOBODY, stranger, ETHER)) == status
            assert await deployed.send(sender, to_address, CLOSE) == status
    assert await deployed.held(source) == (ETHER, 500)
    assert await deployed.code(deployed.sweeper) != "0x"


async def test_the_sponsor_must_come_through_the_contract(deployed: Deployed) -> None:
    """What counts is one way in, so that one way in has to be watched."""
    source, usdt = deployed.source.address, token_at(deployed.usdt)
    for to_address in (source, deployed.agent, deployed.sweeper):
        if to_address != deployed.sweeper:
            await deployed.collect(an_item(source, usdt, deployed.wallet, 500), to=to_address)
        await deployed.send(deployed.sponsor.address, to_address, pushing(deployed.usdt.address, deployed.wallet, 500))
        await deployed.send(deployed.sponsor.address, to_address, pushing(NOBODY, deployed.wallet, 0))
        await deployed.send(deployed.sponsor.address, to_address, CLOSE)
    assert await deployed.held(source) == (ETHER, 500)
    assert await deployed.collect(an_item(source, usdt, deployed.wallet, 500)) == "0x1"


async def test_a_hostile_token_gets_nothing_else_while_it_is_moved(deployed: Deployed) -> None:
    """It calls back into the contract and into its victim, three ways, and each is refused."""
    grasping = await deployed.node.deploy("Grasping")
    source = deployed.source.address
    await grasping.send("mint", source, 7)
    await grasping.send("aim", deployed.sweeper, deployed.usdt.address)
    assert await deployed.collect(an_item(source, token_at(grasping), deployed.wallet, 7)) == "0x1"
    assert await grasping.read("tries") == 3
    assert await deployed.held(source) == (ETHER, 500)
    assert await grasping.read("balanceOf", deployed.wallet) == 7


async def test_all_of_a_call_happens_or_nothing(deployed: Deployed) -> None:
    source, usdt = deployed.source.address, token_at(deployed.usdt)
    picky = await deployed.node.deploy("PickyToken")
    await picky.send("mint", source, 5)
    await picky.send("setQuiet", True)
    await picky.send("refuse", deployed.wallet)
    good = an_item(source, usdt, deployed.wallet, 500)
    empty = Token(symbol="NONE", contract=Wallet("no contract").address, decimals=6, label="NONE")
    for bad in (
        an_item(source, usdt, deployed.wallet, 1),
        an_item(source, NATIVE, deployed.wallet, ETHER + 1),
        an_item(source, token_at(picky), deployed.wallet, 5),
        an_item(source, empty, deployed.wallet, 5),
        an_item(Wallet("not delegated").address, usdt, deployed.wallet, 0),
    ):
        assert await deployed.collect(good, bad) == "0x0"
    assert await deployed.held(source) == (ETHER, 500)


async def test_an_authorization_says_the_same_whoever_submits_it_and_says_it_once(deployed: Deployed) -> None:
    other = Wallet("other deposit")
    agreed = await deployed.agreed(other)
    await deployed.usdt.send("mint", other.address, 9)
    assert await deployed.submit(Wallet("stranger"), [agreed]) == "0x1"
    assert await deployed.collect(an_item(other.address, token_at(deployed.usdt), deployed.wallet, 9)) == "0x1"
    away = await deployed.agreed(other, contract=NOBODY)
    assert await deployed.submit(Wallet("stranger"), [away]) == "0x1"
    assert await deployed.code(other.address) == "0x"
    assert await deployed.submit(Wallet("stranger"), [agreed]) == "0x1"
    assert await deployed.code(other.address) == "0x"


async def test_an_authorization_for_another_chain_is_worth_nothing(deployed: Deployed) -> None:
    other = Wallet("other deposit")
    assert await deployed.submit(Wallet("stranger"), [await deployed.agreed(other, chain_id=1)]) == "0x1"
    assert await deployed.code(other.address) == "0x"


async def test_a_delegated_address_goes_on_receiving_with_as_little_gas_as_any_other(deployed: Deployed) -> None:
    """Tokens, native coin, from contracts that lend 2300 gas, and with exactly 21,000, before and after sweeps."""
    stingy = await deployed.node.deploy("Stingy")
    source, customer = deployed.source.address, deployed.node.accounts[1]
    for times in (1, 2, 3):
        await deployed.usdt.send("mint", source, 1)
        assert await deployed.send(customer, source, value=1, gas=21_000) == "0x1"
        await stingy.send("pay", source, value=1)
        native, tokens = await deployed.held(source)
        assert (native, tokens) == ((ETHER + 2, 501) if times == 1 else (2, 1))
        usdt = token_at(deployed.usdt)
        moves = [an_item(source, usdt, deployed.wallet, tokens), an_item(source, NATIVE, deployed.wallet, native)]
        assert await deployed.collect(*moves) == "0x1"
        assert await deployed.held(source) == (0, 0)


async def test_an_address_that_delegates_to_a_contract_which_stays_refuses_a_plain_transfer(deployed: Deployed) -> None:
    """Why the agent goes: whatever such code does, its first step costs more than 21,000 gas leave."""
    other = Wallet("other deposit")
    assert await deployed.submit(deployed.sponsor, [await deployed.agreed(other, contract=deployed.sweeper)]) == "0x1"
    assert await deployed.send(deployed.node.accounts[1], other.address, value=1, gas=21_000) == "0x0"
    assert await deployed.send(deployed.node.accounts[1], other.address, value=1, gas=30_000) == "0x1"
    assert await deployed.submit(deployed.sponsor, [await deployed.agreed(other)]) == "0x1"
    assert await deployed.send(deployed.node.accounts[1], other.address, value=1, gas=21_000) == "0x1"


async def test_the_agent_is_there_during_a_sweep_alone_whatever_becomes_of_it(deployed: Deployed) -> None:
    """What was sent to it by mistake is no obstacle: tokens can be fetched, and native coin is the sponsor's."""
    usdt = token_at(deployed.usdt)
    await deployed.usdt.send("mint", deployed.agent, 3)
    await deployed.node.send_native(deployed.agent, 7)
    sponsor = deployed.sponsor.address
    before = (await deployed.held(sponsor))[0] + deployed.fees[sponsor]
    assert await deployed.collect(an_item(deployed.source.address, usdt, deployed.wallet, 501)) == "0x0"
    assert await deployed.code(deployed.agent) == "0x"
    for item in (
        an_item(deployed.source.address, usdt, deployed.wallet, 500),
        an_item(deployed.agent, usdt, deployed.wallet, 3),
    ):
        assert await deployed.collect(item) == "0x1"
        assert await deployed.code(deployed.agent) == "0x"
    assert await deployed.held(deployed.agent) == (0, 0)
    assert await deployed.held(deployed.wallet) == (0, 503)
    assert (await deployed.held(sponsor))[0] + deployed.fees[sponsor] == before + 7


async def test_a_source_that_delegates_to_something_without_code_is_not_taken_for_swept(deployed: Deployed) -> None:
    """A call to it succeeds and does nothing: such as to the agent of another gas station's sweeper."""
    other, theirs = Wallet("other deposit"), agent_of(deployment(Wallet("other station").address).address)
    assert await deployed.submit(deployed.sponsor, [await deployed.agreed(other, contract=theirs)]) == "0x1"
    await deployed.usdt.send("mint", other.address, 9)
    assert await deployed.collect(an_item(other.address, token_at(deployed.usdt), deployed.wallet, 9)) == "0x0"
    assert await deployed.submit(deployed.sponsor, [await deployed.agreed(other)]) == "0x1"
    assert await deployed.collect(an_item(other.address, token_at(deployed.usdt), deployed.wallet, 9)) == "0x1"


async def test_its_key_still_sends_what_it_likes(deployed: Deployed) -> None:
    source = deployed.source
    assert await deployed.send(source.address, deployed.wallet, value=5, gas=21_000) == "0x1"
    assert (await deployed.held(deployed.wallet))[0] == 5


async def test_what_lands_on_the_contract_itself_can_be_fetched_by_the_sponsor_alone(deployed: Deployed) -> None:
    await deployed.usdt.send("mint", deployed.sweeper, 11)
    stray = an_item(deployed.sweeper, token_at(deployed.usdt), deployed.wallet, 11)
    assert await deployed.collect(stray, sender=Wallet("stranger").address) == "0x0"
    assert await deployed.collect(stray) == "0x1"
    assert (await deployed.held(deployed.wallet))[1] == 11
