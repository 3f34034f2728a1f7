"""Sweeps as bytes and as plans: read back strictly, written as another library does it, tried before they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from eth_account import Account
from eth_utils import to_checksum_address
from hypothesis import given, settings
from hypothesis import strategies as st

from cambist.plugin import (
    Call,
    ChainInfo,
    Fee,
    FeeAboveCeilingError,
    Intent,
    SignatureError,
    SignedTx,
    Sweep,
    Token,
    Units,
    UnreadablePayloadError,
    UnsignedTx,
)
from cambist_evm.authorization import Authorization, SignedAuthorization, write_authorization
from cambist_evm.family import EvmFamily
from cambist_evm.payload import TxFields, write_payload
from cambist_evm.sweeper import agent_of, collect_data, deployment, read_collect
from cambist_evm.testing import Anvil, Contract, Fault, FaultyProxy, Wallet

Connect = Callable[..., Any]

FAMILY = EvmFamily()
STATION, SOURCES, MAIN = Wallet("station"), [Wallet(f"deposit {n}") for n in range(3)], Wallet("main").address
SWEEPER = deployment(STATION.address).address
AGENT = agent_of(SWEEPER)
NATIVE = Token(symbol="ETH", contract=None, decimals=18, label="ETH")
USDT = Token(symbol="USDT", contract=to_checksum_address("0x" + "5a" * 20), decimals=6, label="USDT")
INFO = ChainInfo(
    id="local", name="Local", family="evm", tokens=(NATIVE, USDT), confirmations=1, chain_id_num=1337, sweeper=SWEEPER
)
ETHER = 10**18

addresses = st.binary(min_size=20, max_size=20).map(to_checksum_address)
items = st.lists(
    st.builds(
        Intent,
        source=addresses,
        to_address=addresses,
        token=st.sampled_from([NATIVE, USDT]),
        amount=st.integers(1, 2**256 - 1).map(Units),
    ),
    min_size=1,
    max_size=6,
)


def signed(wallet: Wallet, sequence: int, *, chain_id: int = 1337, contract: str = AGENT) -> SignedAuthorization:
    agreed = Authorization(chain_id=chain_id, contract=bytes.fromhex(contract[2:]), sequence=sequence)
    signature = wallet.sign(FAMILY.digest(write_authorization(agreed)))
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")
    return SignedAuthorization(authorization=agreed, signature=(signature[64], r, s))


def payload(intents: list[Intent], *authorizations: SignedAuthorization, **changes: Any) -> bytes:
    fields: dict[str, Any] = {
        "chain_id": 1337, "sequence": 7, "gas": 10**6, "price": 50, "tip": 2, "to": bytes.fromhex(SWEEPER[2:]),
        "value": 0, "data": collect_data(intents),
    } | changes  # fmt: skip
    return write_payload(TxFields(**fields, authorizations=authorizations))


def an_intent(source: str = SOURCES[0].address, amount: int = 5, token: Token = USDT) -> Intent:
    return Intent(source=source, to_address=MAIN, token=token, amount=Units(amount))


@settings(max_examples=150, deadline=None)
@given(intents=items, sequences=st.lists(st.integers(0, 2**64 - 2), max_size=4), sequence=st.integers(0, 2**64 - 2))
def test_a_sweep_is_byte_for_byte_what_eth_account_signs(
    intents: list[Intent], sequences: list[int], sequence: int
) -> None:
    """With and without authorizations; and what is read out of it is what was meant, item by item."""
    agreed = [signed(SOURCES[0], one) for one in sequences]
    unsigned = payload(intents, *agreed, sequence=sequence)
    expected: dict[str, Any] = {
        "type": 2, "chainId": 1337, "nonce": sequence, "gas": 10**6, "maxFeePerGas": 50, "maxPriorityFeePerGas": 2,
        "to": SWEEPER, "value": 0, "data": collect_data(intents),
    }  # fmt: skip
    if sequences:
        said = [{"chainId": 1337, "address": AGENT, "nonce": one} for one in sequences]
        signatures = [Account.sign_authorization(one, SOURCES[0].secret) for one in said]
        expected |= {"type": 4, "authorizationList": signatures}
    fee = Fee(limit=10**6, price=50, tip=2)
    tx = UnsignedTx(sender=STATION.address, sequence=sequence, payload=unsigned, fee=fee)
    sealed = FAMILY.seal(tx, STATION.sign(FAMILY.digest(unsigned)))
    other = Account.sign_transaction(expected, STATION.secret)
    assert (sealed.raw, sealed.tx_id) == (other.raw_transaction, "0x" + other.hash.hex())

    effects = FAMILY.effects(INFO, unsigned)
    assert (effects.sequence, effects.fee_max, effects.delegate) == (sequence, 50 * 10**6, None)
    read = [(one.source, one.contract, one.recipient, one.amount) for one in effects.movements]
    assert read == [(one.source, one.token.contract, one.to_address, one.amount) for one in intents]


@given(sequence=st.integers(0, 2**64 - 2))
def test_an_authorization_gives_power_to_one_contract_on_one_chain(sequence: int) -> None:
    agreed = Authorization(chain_id=1337, contract=bytes.fromhex(AGENT[2:]), sequence=sequence)
    written = write_authorization(agreed)
    effects = FAMILY.effects(INFO, written)
    assert (effects.delegate, effects.sequence, effects.movements, effects.fee_max) == (AGENT, sequence, (), 0)
    said = {"chainId": 1337, "address": AGENT, "nonce": sequence}
    other = Account.sign_authorization(said, SOURCES[0].secret)
    assert bytes(other.authorization_hash) == FAMILY.digest(written)


def test_an_authorization_that_is_not_exactly_one_is_unreadable() -> None:
    """For every chain at once, for another chain, cut, longer, or signed already."""
    agreed = Authorization(chain_id=1337, contract=bytes.fromhex(SWEEPER[2:]), sequence=3)
    written = write_authorization(agreed)
    wrong = [
        write_authorization(msgspec.structs.replace(agreed, chain_id=0)),
        write_authorization(msgspec.structs.replace(agreed, chain_id=1)),
        write_authorization(msgspec.structs.replace(agreed, contract=b"")),
        *(written[:end] for end in range(len(written))),
        written + b"\0",
        written * 2,
    ]
    for one in wrong:
        with pytest.raises(UnreadablePayloadError):
            FAMILY.effects(INFO, one)


@pytest.mark.parametrize(
    "wrong",
    [
        payload([an_intent()], value=1),
        payload([an_intent()], chain_id=1),
        payload([an_intent()], data=collect_data([an_intent()]) + b"\0"),
        payload([an_intent()], data=collect_data([an_intent()])[:-32]),
        payload([an_intent()], data=collect_data([])),
        payload([an_intent()], data=b"\x01" * 4),
        payload([an_intent()], signed(SOURCES[0], 0), to=b"\x77" * 20),
        payload([an_intent()], signed(SOURCES[0], 0), to=b"\x77" * 20, data=b"", value=1),
        payload([an_intent()], signed(SOURCES[0], 0, contract="0x" + "77" * 20)),
        payload([an_intent()], signed(SOURCES[0], 0, contract=SWEEPER)),
        payload([an_intent()], signed(SOURCES[0], 0, chain_id=0)),
        payload([an_intent()], signed(SOURCES[0], 0, chain_id=1)),
        payload([an_intent(token=Token(symbol="X", contract="0x" + "66" * 20, decimals=1, label="X"))]),
        b"\x04" + payload([an_intent()])[1:],
        b"\x02" + payload([an_intent()], signed(SOURCES[0], 0))[1:],
    ],
)
def test_whatever_does_more_or_other_than_sweeping_is_unreadable(wrong: bytes) -> None:
    with pytest.raises(UnreadablePayloadError):
        FAMILY.effects(INFO, wrong)


def test_without_a_configured_sweeper_its_calls_are_anybodys() -> None:
    """Nothing tells what they do, and with authorizations they are unreadable."""
    other = msgspec.structs.replace(INFO, sweeper=None)
    called = Call(to_address=SWEEPER, data=collect_data([an_intent()]))
    effects = FAMILY.effects(other, payload([an_intent()]))
    assert (effects.movements, effects.allowance, effects.call) == ((), None, called)
    elsewhere = FAMILY.effects(INFO, payload([an_intent()], to=b"\x77" * 20))
    assert (elsewhere.movements, elsewhere.call and elsewhere.call.data) == ((), called.data)
    with pytest.raises(UnreadablePayloadError):
        FAMILY.effects(other, payload([an_intent()], signed(SOURCES[0], 0)))


def test_a_sweep_cut_anywhere_is_unreadable() -> None:
    whole = payload([an_intent()], signed(SOURCES[0], 0))
    for wrong in (*(whole[:end] for end in range(len(whole))), whole + b"\0", whole * 2):
        with pytest.raises(UnreadablePayloadError):
            FAMILY.effects(INFO, wrong)


def test_items_with_dirty_padding_are_not_read() -> None:
    data = collect_data([an_intent()])
    assert read_collect(data) is not None
    for position in range(4, len(data) - 32):
        changed = bytearray(data)
        changed[position] ^= 1
        found = read_collect(bytes(changed))
        assert found is None or collect_data([_again(one) for one in found]) == bytes(changed)


def _again(one: Any) -> Intent:
    token = NATIVE if one.contract is None else Token(symbol="T", contract=one.contract, decimals=0, label="T")
    return Intent(source=one.source, to_address=one.recipient, token=token, amount=one.amount)


# --- On a node ---


@pytest.fixture
async def usdt(node: Anvil) -> Contract:
    token = await node.deploy("UsdtLike")
    made = deployment(STATION.address)
    await node.send(made.to_address, data="0x" + made.data.hex())
    await node.call("anvil_setBalance", [STATION.address, hex(ETHER)])
    for source in SOURCES:
        await token.send("mint", source.address, 100)
    return token


def configured(token: Contract, **more: Any) -> dict[str, Any]:
    return {"tokens": [{"symbol": "USDT", "contract": token.address, "decimals": 6}], "sweeper": SWEEPER, **more}


def wanted(chain: Any, *amounts: int) -> list[Intent]:
    token = chain.info.tokens[1]
    return [an_intent(one.address, amount, token) for one, amount in zip(SOURCES, amounts, strict=True)]


async def test_the_doctor_looks_at_the_sweeper(node: Anvil, usdt: Contract, connect: Connect) -> None:
    async with connect(node.url, **configured(usdt)) as chain:
        assert await chain.problems() == []
    async with connect(node.url, **configured(usdt, sweeper="0x" + "12" * 20)) as chain:
        assert ["nothing is deployed" in one for one in await chain.problems()] == [True]
    stingy = await node.deploy("Stingy")
    async with connect(node.url, **configured(usdt, sweeper=stingy.address)) as chain:
        assert ["is not the sweeper" in one for one in await chain.problems()] == [True]


async def test_where_the_agent_does_not_go_away_nothing_is_swept(node: Anvil, usdt: Contract, connect: Connect) -> None:
    """On a chain that no longer destroys contracts: addresses must not delegate to code that stays."""
    await node.call("anvil_setCode", [AGENT, "0x00"])
    async with connect(node.url, **configured(usdt)) as chain:
        assert ["has stayed" in one for one in await chain.problems()] == [True]
        plan = await chain.plan_sweep(wanted(chain, 1, 1, 1), sponsor=STATION.address)
        assert plan.sweep is None
        assert all("has stayed" in why for why in plan.refused)


async def test_what_is_sent_to_a_swept_address_needs_no_more_gas_than_before(
    node: Anvil, usdt: Contract, connect: Connect
) -> None:
    """Beside the usual margin, where a node estimates; and exactly 21,000 gas will do."""
    async with connect(node.url, **configured(usdt)) as chain:
        native = chain.info.native
        send = Intent(source=node.accounts[0], to_address=SOURCES[0].address, token=native, amount=Units(1))
        (before,) = await chain.plan([send], sponsor=None)
        plan = await chain.plan_sweep(wanted(chain, 100, 100, 100), sponsor=STATION.address)
        await _sent(chain, plan.sweep, 0)
        assert (await node.call("eth_getCode", [SOURCES[0].address, "latest"])).startswith("0xef0100")
        (after,) = await chain.plan([send], sponsor=None)
        assert before.step.fee.limit <= after.step.fee.limit <= 1.25 * 21_000
        assert (await node.receipt(await node.send_native(SOURCES[0].address, 1)))["status"] == "0x1"


async def test_what_would_fail_is_refused_and_the_rest_planned(node: Anvil, usdt: Contract, connect: Connect) -> None:
    async with connect(node.url, **configured(usdt)) as chain:
        plan = await chain.plan_sweep(wanted(chain, 100, 101, 50), sponsor=STATION.address)
        assert [why is None for why in plan.refused] == [True, False, True]
        assert [one.source for one in plan.sweep.items] == [SOURCES[0].address, SOURCES[2].address]
        assert [one.address for one in plan.sweep.authorizations] == [SOURCES[0].address, SOURCES[2].address]


async def test_the_limit_holds_and_only_those_who_must_are_asked_to_agree(
    node: Anvil, usdt: Contract, connect: Connect
) -> None:
    async with connect(node.url, **configured(usdt)) as chain:
        for round_ in range(2):
            plan = await chain.plan_sweep(wanted(chain, 40, 40, 40), sponsor=STATION.address)
            assert len(plan.sweep.authorizations) == (3 if round_ == 0 else 0)
            sent = await _sent(chain, plan.sweep, round_)
            assert await usdt.read("balanceOf", MAIN) == 120 * (round_ + 1)
            used = int((await node.receipt(sent.tx_id))["gasUsed"], 16)
            assert used <= plan.sweep.fee.limit <= 3 * used


async def _sent(chain: Any, sweep: Sweep, sequence: int) -> SignedTx:
    """Have everybody sign a sweep, and send it until it is mined."""
    secrets = {one.address: one for one in SOURCES}
    agreed = [secrets[one.address].sign(FAMILY.digest(one.payload)) for one in sweep.authorizations]
    tx = await chain.prepare_sweep(sweep, sequence, agreed)
    sent = FAMILY.seal(tx, STATION.sign(FAMILY.digest(tx.payload)))
    assert [said.state for said in await chain.broadcast([sent])] == ["accepted"]
    async with asyncio.timeout(5):
        while (await chain.transaction(sent.tx_id)).block is None:  # noqa: ASYNC110 - the node tells nobody
            await asyncio.sleep(0.005)
    return sent


async def test_a_wrong_signature_is_found_before_anything_is_written(
    node: Anvil, usdt: Contract, connect: Connect
) -> None:
    async with connect(node.url, **configured(usdt)) as chain:
        plan = await chain.plan_sweep(wanted(chain, 1, 1, 1), sponsor=STATION.address)
        stranger = [STATION.sign(FAMILY.digest(one.payload)) for one in plan.sweep.authorizations]
        with pytest.raises(SignatureError):
            await chain.prepare_sweep(plan.sweep, 0, stranger)


async def test_another_sponsor_sweeps_nothing(node: Anvil, usdt: Contract, connect: Connect) -> None:
    async with connect(node.url, **configured(usdt)) as chain:
        plan = await chain.plan_sweep(wanted(chain, 1, 1, 1), sponsor=Wallet("stranger").address)
        assert plan.sweep is None
        assert all("obeys" in why for why in plan.refused)


async def test_above_the_ceiling_nothing_is_planned(node: Anvil, usdt: Contract, connect: Connect) -> None:
    await node.call("anvil_setNextBlockBaseFeePerGas", [hex(10**10)])
    await node.mine()
    bounds = {"fee_ceiling_gwei": "0.000001", "tip_min_gwei": "0", "tip_max_gwei": "0"}
    async with connect(node.url, **configured(usdt, **bounds)) as chain:
        with pytest.raises(FeeAboveCeilingError):
            await chain.plan_sweep(wanted(chain, 1, 1, 1), sponsor=STATION.address)


async def test_on_a_node_that_cannot_try_it_nothing_is_swept(node: Anvil, usdt: Contract, connect: Connect) -> None:
    """What is not known to work is not swept; and the node is as good as before for everything else."""
    async with FaultyProxy(node.url) as proxy, connect(proxy.url, **configured(usdt)) as chain:
        proxy.faults = {Fault.NO_OVERRIDES}
        plan = await chain.plan_sweep(wanted(chain, 1, 1, 1), sponsor=STATION.address)
        assert plan.sweep is None
        assert all("cannot be tried" in why for why in plan.refused)
        assert await chain.plan(wanted(chain, 1, 1, 1), sponsor=None)
