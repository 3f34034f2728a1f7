"""What the signer lets a sweep do: bring merchants' money to their own main wallets, and nothing else."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from cambist.plugin import Intent, Units
from cambist.ports import SystemClock
from cambist.registry import Registry
from cambist.signer.keystore import Keystore
from cambist.signer.local import LocalSigner
from cambist.signer.protocol import KeyPath, SignReply, SignRequest
from cambist.signer.reading import Reader
from cambist.signer.rules import Rules
from cambist.signer.store import Store
from cambist_evm.authorization import Authorization, write_authorization
from cambist_evm.payload import TxFields, write_payload
from cambist_evm.sweeper import agent_of, collect_data, deployment

KEYSTORE = Keystore(" ".join(["abandon"] * 11 + ["about"]))
STATION = KeyPath(account=0, change=0, index=0)
MAIN, OTHER_MAIN = (KeyPath(account=account, change=1, index=0) for account in (1, 2))
PERMANENT = KeyPath(account=1, change=2, index=7)
DEPOSIT, OTHER_DEPOSIT = (KeyPath(account=account, change=0, index=7) for account in (1, 2))
FOUND = [EntryPoint("evm", "cambist_evm.plugin", "cambist.plugins")]


def address(path: KeyPath) -> str:
    family = Registry({"evm": {}}, found=FOUND).families["evm"]
    return family.derive_address(KEYSTORE.account_xpub("live", 60, path.account), path.change, path.index)


SWEEPER = deployment(address(STATION)).address
AGENT = agent_of(SWEEPER)
REGISTRY = Registry(
    {"evm": {"chains": {"ethereum": {"rpc_urls": ["http://127.0.0.1:1"], "sweeper": SWEEPER}}}}, found=FOUND
)
CHAIN = REGISTRY.chains["ethereum"]


@pytest.fixture
def open_signer(tmp_path):
    opened = []

    def open_(**rules) -> LocalSigner:
        reader = Reader(KEYSTORE, REGISTRY.families, REGISTRY.chains)
        rules = Rules(**{"delegates": {"ethereum": frozenset({AGENT})}} | rules)
        opened.append(LocalSigner(KEYSTORE, reader, rules=rules, store=Store(tmp_path), clock=SystemClock()))
        return opened[-1]

    return open_


async def asked(signer: LocalSigner, payload: bytes, path: KeyPath, *own: KeyPath) -> SignReply:
    request = SignRequest(
        mode="live", chain="ethereum", payload=payload, path=path, purpose="sweep", reference="sweep:1", own=own
    )
    (reply,) = await signer.sign([request])
    await signer.aclose()
    return reply


def agreeing(contract: str = AGENT, chain_id: int = 1) -> bytes:
    return write_authorization(Authorization(chain_id=chain_id, contract=bytes.fromhex(contract[2:]), sequence=0))


def sweeping(*moves: tuple[KeyPath, str]) -> bytes:
    intents = [
        Intent(source=address(source), to_address=to_address, token=CHAIN.tokens[1], amount=Units(10**6))
        for source, to_address in moves
    ]
    return write_payload(
        TxFields(
            chain_id=1, sequence=0, gas=10**6, price=10**9, tip=1, to=bytes.fromhex(SWEEPER[2:]), value=0,
            data=collect_data(intents),
        )
    )  # fmt: skip


async def test_an_address_for_deposits_may_delegate_to_the_agent_of_the_configured_sweeper(open_signer):
    assert (await asked(open_signer(), agreeing(), DEPOSIT)).signature is not None


@pytest.mark.parametrize(
    "payload, path, code",
    [
        (agreeing("0x" + "77" * 20), DEPOSIT, "DELEGATE_NOT_ALLOWED"),
        (agreeing("0x" + "00" * 20), DEPOSIT, "DELEGATE_NOT_ALLOWED"),
        (agreeing(SWEEPER), DEPOSIT, "DELEGATE_NOT_ALLOWED"),
        (agreeing(), MAIN, "DELEGATE_NOT_ALLOWED"),
        (agreeing(), STATION, "DELEGATE_NOT_ALLOWED"),
        (agreeing(), PERMANENT, "DELEGATE_NOT_ALLOWED"),
        (agreeing("0x" + "00" * 20), PERMANENT, "DELEGATE_NOT_ALLOWED"),
        (agreeing(chain_id=0), DEPOSIT, "UNREADABLE_PAYLOAD"),
        (agreeing(chain_id=56), DEPOSIT, "UNREADABLE_PAYLOAD"),
    ],
)
async def test_no_other_contract_and_no_other_address_gets_there(open_signer, payload, path, code):
    reply = await asked(open_signer(), payload, path)
    assert (reply.signature, reply.refusal) == (None, code)


async def test_without_the_operators_word_nobody_delegates(open_signer):
    assert (await asked(open_signer(delegates={}), agreeing(), DEPOSIT)).refusal == "DELEGATE_NOT_ALLOWED"


async def test_each_merchants_money_may_go_to_his_own_main_wallet_without_any_cap(open_signer):
    payload = sweeping((DEPOSIT, address(MAIN)), (OTHER_DEPOSIT, address(OTHER_MAIN)))
    signer = open_signer(hourly_caps={f"ethereum/{CHAIN.tokens[1].contract}": 0})
    reply = await asked(signer, payload, STATION, DEPOSIT, OTHER_DEPOSIT, MAIN, OTHER_MAIN)
    assert reply.signature is not None


@pytest.mark.parametrize(
    "source, to_address, code",
    [
        (DEPOSIT, "0x" + "77" * 20, "GAS_STATION_PAYS_OUT"),
        (DEPOSIT, address(OTHER_MAIN), "GAS_STATION_PAYS_OUT"),
        (MAIN, address(OTHER_MAIN), "GAS_STATION_PAYS_OUT"),
        (DEPOSIT, address(OTHER_DEPOSIT), "GAS_STATION_PAYS_OUT"),
        (KeyPath(account=3, change=0, index=1), address(MAIN), "FOREIGN_SOURCE"),
    ],
)
async def test_one_item_that_goes_elsewhere_spoils_the_sweep(open_signer, source, to_address, code):
    payload = sweeping((DEPOSIT, address(MAIN)), (source, to_address))
    reply = await asked(open_signer(), payload, STATION, DEPOSIT, OTHER_DEPOSIT, MAIN, OTHER_MAIN)
    assert (reply.signature, reply.refusal) == (None, code)


async def test_a_sweep_may_cost_no_more_than_any_other_transaction(open_signer):
    signer = open_signer(fee_caps={"ethereum": 10**14})
    reply = await asked(signer, sweeping((DEPOSIT, address(MAIN))), STATION, DEPOSIT, MAIN)
    assert reply.refusal == "FEE_ABOVE_CAP"


async def test_a_permanent_address_sends_to_its_main_wallet_and_may_do_nothing_else_unruled(open_signer):
    """It is like a payment's, except that nothing ever gets power over it."""

    def paying(to: KeyPath) -> bytes:
        to_address = bytes.fromhex(address(to)[2:])
        fields = TxFields(chain_id=1, sequence=0, gas=21_000, price=1, tip=1, to=to_address, value=5, data=b"")
        return write_payload(fields)

    rules = {"hourly_caps": {"ethereum/native": 0}}
    assert (await asked(open_signer(**rules), paying(MAIN), PERMANENT, MAIN)).signature is not None
    for other in (OTHER_MAIN, DEPOSIT, OTHER_DEPOSIT):
        assert (await asked(open_signer(**rules), paying(other), PERMANENT, other)).refusal == "HOURLY_CAP"
