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


class Site:
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
async def site(node: Anvil) -> Site:
    site = Site(node, await node.deploy("UsdtLike"))
    made = deployment(site.sponsor.address)
    await node.send(made.to_address, data="0x" + made.data.hex())
    for address in (site.sponsor.address, Wallet("stranger").address):
        await node.call("anvil_setBalance", [address, hex(10 * ETHER)])
    await site.usdt.send("mint", site.source.address, 500)
    await node.send_native(site.source.address, ETHER)
    assert await site.submit(site.sponsor, [await site.agreed(site.source)]) == "0x1"
    assert await site.code(site.source.address) == "0xef0100" + site.agent[2:].lower()
    return site


async def test_the_sponsor_empties_an_address_that_delegates(site: Site) -> None:
    """To the unit, a token that answers nothing and the native coin, and the address pays nothing for it."""
    source, usdt = site.source.address, token_at(site.usdt)
    assert await site.collect(
        an_item(source, usdt, site.wallet, 500), an_item(source, NATIVE, site.wallet, ETHER)
    ) == "0x1"  # fmt: skip
    assert await site.held(source) == (0, 0)
    assert await site.held(site.wallet) == (ETHER, 500)


async def test_nobody_else_can_make_it_send_anything(site: Site) -> None:
    """Through the contract, at its agent, at the delegated address itself, and as another delegated address.

    What is sent to an address that runs no code does nothing, successfully.
    """
    source, usdt = site.source.address, token_at(site.usdt)
    stranger, accomplice = Wallet("stranger").address, Wallet("accomplice")
    assert await site.submit(Wallet("stranger"), [await site.agreed(accomplice)]) == "0x1"
    await site.node.send_native(accomplice.address, ETHER)
    mine = an_item(source, usdt, stranger, 500)
    for sender in (stranger, accomplice.address, site.usdt.address, site.wallet):
        await site.node.call("anvil_setBalance", [sender, hex(ETHER)])
        for to_address in (site.sweeper, site.agent, source, accomplice.address):
            status = "0x0" if to_address == site.sweeper else "0x1"
            assert await site.collect(mine, sender=sender, to=to_address) == status
            assert await site.send(sender, to_address, pushing(site.usdt.address, stranger, 500)) == status
            assert await site.send(sender, to_address, pushing(NOBODY, stranger, ETHER)) == status
            assert await site.send(sender, to_address, CLOSE) == status
    assert await site.held(source) == (ETHER, 500)
    assert await site.code(site.sweeper) != "0x"


async def test_the_sponsor_must_come_through_the_contract(site: Site) -> None:
    """What counts is one way in, so that one way in has to be watched."""
    source, usdt = site.source.address, token_at(site.usdt)
    for to_address in (source, site.agent, site.sweeper):
        if to_address != site.sweeper:
            await site.collect(an_item(source, usdt, site.wallet, 500), to=to_address)
        await site.send(site.sponsor.address, to_address, pushing(site.usdt.address, site.wallet, 500))
        await site.send(site.sponsor.address, to_address, pushing(NOBODY, site.wallet, 0))
        await site.send(site.sponsor.address, to_address, CLOSE)
    assert await site.held(source) == (ETHER, 500)
    assert await site.collect(an_item(source, usdt, site.wallet, 500)) == "0x1"


async def test_a_hostile_token_gets_nothing_else_while_it_is_moved(site: Site) -> None:
    """It calls back into the contract and into its victim, three ways, and each is refused."""
    grasping = await site.node.deploy("Grasping")
    source = site.source.address
    await grasping.send("mint", source, 7)
    await grasping.send("aim", site.sweeper, site.usdt.address)
    assert await site.collect(an_item(source, token_at(grasping), site.wallet, 7)) == "0x1"
    assert await grasping.read("tries") == 3
    assert await site.held(source) == (ETHER, 500)
    assert await grasping.read("balanceOf", site.wallet) == 7


async def test_all_of_a_call_happens_or_nothing(site: Site) -> None:
    source, usdt = site.source.address, token_at(site.usdt)
    picky = await site.node.deploy("PickyToken")
    await picky.send("mint", source, 5)
    await picky.send("setQuiet", True)
    await picky.send("refuse", site.wallet)
    good = an_item(source, usdt, site.wallet, 500)
    empty = Token(symbol="NONE", contract=Wallet("no contract").address, decimals=6, label="NONE")
    for bad in (
        an_item(source, usdt, site.wallet, 1),
        an_item(source, NATIVE, site.wallet, ETHER + 1),
        an_item(source, token_at(picky), site.wallet, 5),
        an_item(source, empty, site.wallet, 5),
        an_item(Wallet("not delegated").address, usdt, site.wallet, 0),
    ):
        assert await site.collect(good, bad) == "0x0"
    assert await site.held(source) == (ETHER, 500)


async def test_an_authorization_says_the_same_whoever_submits_it_and_says_it_once(site: Site) -> None:
    other = Wallet("other deposit")
    agreed = await site.agreed(other)
    await site.usdt.send("mint", other.address, 9)
    assert await site.submit(Wallet("stranger"), [agreed]) == "0x1"
    assert await site.collect(an_item(other.address, token_at(site.usdt), site.wallet, 9)) == "0x1"
    away = await site.agreed(other, contract=NOBODY)
    assert await site.submit(Wallet("stranger"), [away]) == "0x1"
    assert await site.code(other.address) == "0x"
    assert await site.submit(Wallet("stranger"), [agreed]) == "0x1"
    assert await site.code(other.address) == "0x"


async def test_an_authorization_for_another_chain_is_worth_nothing(site: Site) -> None:
    other = Wallet("other deposit")
    assert await site.submit(Wallet("stranger"), [await site.agreed(other, chain_id=1)]) == "0x1"
    assert await site.code(other.address) == "0x"


async def test_a_delegated_address_goes_on_receiving_with_as_little_gas_as_any_other(site: Site) -> None:
    """Tokens, native coin, from contracts that lend 2300 gas, and with exactly 21,000, before and after sweeps."""
    stingy = await site.node.deploy("Stingy")
    source, customer = site.source.address, site.node.accounts[1]
    for times in (1, 2, 3):
        await site.usdt.send("mint", source, 1)
        assert await site.send(customer, source, value=1, gas=21_000) == "0x1"
        await stingy.send("pay", source, value=1)
        native, tokens = await site.held(source)
        assert (native, tokens) == ((ETHER + 2, 501) if times == 1 else (2, 1))
        usdt = token_at(site.usdt)
        moves = [an_item(source, usdt, site.wallet, tokens), an_item(source, NATIVE, site.wallet, native)]
        assert await site.collect(*moves) == "0x1"
        assert await site.held(source) == (0, 0)


async def test_an_address_that_delegates_to_a_contract_which_stays_refuses_a_plain_transfer(site: Site) -> None:
    """Why the agent goes: whatever such code does, its first step costs more than 21,000 gas leave."""
    other = Wallet("other deposit")
    assert await site.submit(site.sponsor, [await site.agreed(other, contract=site.sweeper)]) == "0x1"
    assert await site.send(site.node.accounts[1], other.address, value=1, gas=21_000) == "0x0"
    assert await site.send(site.node.accounts[1], other.address, value=1, gas=30_000) == "0x1"
    assert await site.submit(site.sponsor, [await site.agreed(other)]) == "0x1"
    assert await site.send(site.node.accounts[1], other.address, value=1, gas=21_000) == "0x1"


async def test_the_agent_is_there_during_a_sweep_alone_whatever_becomes_of_it(site: Site) -> None:
    """What was sent to it by mistake is no obstacle: tokens can be fetched, and native coin is the sponsor's."""
    usdt = token_at(site.usdt)
    await site.usdt.send("mint", site.agent, 3)
    await site.node.send_native(site.agent, 7)
    sponsor = site.sponsor.address
    before = (await site.held(sponsor))[0] + site.fees[sponsor]
    assert await site.collect(an_item(site.source.address, usdt, site.wallet, 501)) == "0x0"
    assert await site.code(site.agent) == "0x"
    for item in (an_item(site.source.address, usdt, site.wallet, 500), an_item(site.agent, usdt, site.wallet, 3)):
        assert await site.collect(item) == "0x1"
        assert await site.code(site.agent) == "0x"
    assert await site.held(site.agent) == (0, 0)
    assert await site.held(site.wallet) == (0, 503)
    assert (await site.held(sponsor))[0] + site.fees[sponsor] == before + 7


async def test_a_source_that_delegates_to_something_without_code_is_not_taken_for_swept(site: Site) -> None:
    """A call to it succeeds and does nothing: such as to the agent of another gas station's sweeper."""
    other, theirs = Wallet("other deposit"), agent_of(deployment(Wallet("other station").address).address)
    assert await site.submit(site.sponsor, [await site.agreed(other, contract=theirs)]) == "0x1"
    await site.usdt.send("mint", other.address, 9)
    assert await site.collect(an_item(other.address, token_at(site.usdt), site.wallet, 9)) == "0x0"
    assert await site.submit(site.sponsor, [await site.agreed(other)]) == "0x1"
    assert await site.collect(an_item(other.address, token_at(site.usdt), site.wallet, 9)) == "0x1"


async def test_its_key_still_sends_what_it_likes(site: Site) -> None:
    source = site.source
    assert await site.send(source.address, site.wallet, value=5, gas=21_000) == "0x1"
    assert (await site.held(site.wallet))[0] == 5


async def test_what_lands_on_the_contract_itself_can_be_fetched_by_the_sponsor_alone(site: Site) -> None:
    await site.usdt.send("mint", site.sweeper, 11)
    stray = an_item(site.sweeper, token_at(site.usdt), site.wallet, 11)
    assert await site.collect(stray, sender=Wallet("stranger").address) == "0x0"
    assert await site.collect(stray) == "0x1"
    assert (await site.held(site.wallet))[1] == 11
