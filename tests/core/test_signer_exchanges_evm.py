"""The signer with the real plugins: what it signs of EVM payloads that approve and swap, told by their readers."""

from __future__ import annotations

import sys

import pytest
from eth_abi import encode

from cambist.ports import SystemClock
from cambist.registry import Registry
from cambist.settings import Settings, SignerSettings
from cambist.signer.exchanges import ExchangeReader
from cambist.signer.keystore import Keystore
from cambist.signer.local import LocalSigner
from cambist.signer.protocol import KeyPath, SignRequest
from cambist.signer.reading import Reader
from cambist.signer.rules import asset_name, load_rules
from cambist.signer.store import Store
from cambist_chainkit.contracts import approve_data
from cambist_evm.payload import TxFields, write_payload

WALLET = KeyPath(account=4, change=1, index=0)
KEYSTORE = Keystore(" ".join(["test"] * 11 + ["junk"]))
ROUTER = "0x111111125421cA6dc452d289314280a0f8842A65"
EXECUTOR = STRANGER = f"0x{'5a' * 20}"
SOLD, LEAST = 100 * 10**6, 3 * 10**16
SWAP = ["address", "(address,address,address,address,uint256,uint256,uint256)", "bytes"]
NATIVE = f"0x{'ee' * 20}"


@pytest.fixture
def registry():
    tables = {
        "evm": {"chains": {"ethereum": {"rpc_urls": ["http://127.0.0.1:1"]}}},
        "swap_1inch": {"key": "a key of tests"},
    }
    return Registry(tables)


@pytest.fixture
def usdt(registry):
    return registry.chains["ethereum"].token("USDT").contract


@pytest.fixture
def wallet(registry):
    xpub = KEYSTORE.account_xpub("live", 60, WALLET.account)
    return registry.families["evm"].derive_address(xpub, WALLET.change, WALLET.index)


@pytest.fixture
async def make(registry, tmp_path):
    opened = []

    def make(**settings) -> LocalSigner:
        rules = load_rules(Settings(signer=SignerSettings(**settings)), registry.chains, registry.families)
        exchanges = ExchangeReader(registry.call_readers(), registry.chains, rules.floor_rates)
        reader = Reader(KEYSTORE, registry.families, registry.chains, exchanges)
        store = Store(tmp_path / f"store{len(opened)}")
        opened.append(LocalSigner(KEYSTORE, reader, rules=rules, store=store, clock=SystemClock()))
        return opened[-1]

    yield make
    for signer in opened:
        await signer.aclose()


async def refusal(signer: LocalSigner, to: str, data: bytes, *, value: int = 0) -> str | None:
    fields = TxFields(
        chain_id=1, sequence=5, gas=400_000, price=10**9, tip=1, to=bytes.fromhex(to[2:]), value=value, data=data
    )
    asked = SignRequest(
        mode="live", chain="ethereum", payload=write_payload(fields), path=WALLET, purpose="swap",
        reference=f"swap:{data.hex()[-64:]}", asked_by="key",
    )  # fmt: skip
    (reply,) = await signer.sign([asked])
    assert (reply.signature is None) == (reply.refusal is not None)
    return reply.refusal


def swap(
    usdt: str, recipient: str, *, amount: int = SOLD, least: int = LEAST, bought: str = NATIVE, flags: int = 0
) -> bytes:
    description = (usdt, bought, EXECUTOR, recipient, amount, least, flags)
    return bytes.fromhex("07ed2379") + encode(SWAP, [EXECUTOR, description, b"\1" * 75])


async def test_a_swap_is_an_outflow_and_at_the_floor_it_stays(make, usdt, wallet):
    capped = make(hourly_caps={"ethereum/USDT": "99"})
    assert await refusal(capped, ROUTER, swap(usdt, wallet)) == "HOURLY_CAP"
    floors = {"ethereum/USDT -> ethereum/ETH": "0.0003"}
    careful = make(hourly_caps={"ethereum/USDT": "100"}, floor_rates=floors, approval_limits={"ethereum/USDT": "1"})
    assert await refusal(careful, ROUTER, swap(usdt, wallet)) is None
    assert await refusal(careful, ROUTER, swap(usdt, wallet, least=LEAST - 1)) == "APPROVAL_NEEDED"
    assert await refusal(careful, ROUTER, swap(usdt, STRANGER)) == "APPROVAL_NEEDED"


async def test_what_reads_otherwise_is_not_signed(make, usdt, wallet):
    signer = make(hourly_caps="unlimited")
    assert await refusal(signer, ROUTER, swap(usdt, wallet)) is None
    for to, data, value in (
        (STRANGER, swap(usdt, wallet), 0),
        (ROUTER, swap(usdt, wallet, flags=1), 0),
        (ROUTER, swap(usdt, wallet, flags=2), 0),
        (ROUTER, swap(usdt, wallet, least=0), 0),
        (ROUTER, swap(usdt, wallet, bought=STRANGER), 0),
        (ROUTER, swap(usdt, wallet), 1),
        (ROUTER, swap(NATIVE, wallet, bought=usdt), SOLD - 1),
        (ROUTER, swap(usdt, wallet)[:-1], 0),
        (ROUTER, b"\x12\x34\x56\x78", 0),
    ):
        assert await refusal(signer, to, data, value=value) == "UNREADABLE_PAYLOAD"


async def test_the_router_alone_is_allowed_to_take_tokens(make, usdt):
    signer = make(hourly_caps={"ethereum/USDT": "100"})
    assert await refusal(signer, usdt, approve_data(bytes.fromhex(ROUTER[2:]), SOLD)) is None
    assert await refusal(signer, usdt, approve_data(bytes.fromhex(ROUTER[2:]), 0)) is None
    assert await refusal(signer, usdt, approve_data(bytes.fromhex(STRANGER[2:]), 1)) == "SPENDER_NOT_ALLOWED"
    assert await refusal(signer, usdt, approve_data(bytes.fromhex(ROUTER[2:]), SOLD + 1)) == "ALLOWANCE_ABOVE_CAP"
    assert await refusal(signer, STRANGER, approve_data(bytes.fromhex(ROUTER[2:]), 1)) == "UNREADABLE_PAYLOAD"


def test_a_pair_is_named_by_its_contracts(registry, usdt):
    rules = load_rules(
        Settings(signer=SignerSettings(floor_rates={"ethereum/USDT -> ethereum/ETH": "0.0003"})),
        registry.chains,
        registry.families,
    )
    ((pair, rate),) = rules.floor_rates.items()
    assert pair == (asset_name("ethereum", usdt), "ethereum/native")
    assert rate * SOLD == LEAST


def test_reading_calls_leaves_the_interpreter_as_it_was(registry):
    limit = sys.getrecursionlimit()
    assert registry.call_readers()
    assert sys.getrecursionlimit() == limit
