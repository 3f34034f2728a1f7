"""What the signer signs for EVM chains is what another wallet with the same mnemonic would send."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest
from eth_account import Account
from eth_utils import to_checksum_address

from cambist.plugin import Fee, UnsignedTx
from cambist.ports import SystemClock
from cambist.registry import Registry
from cambist.signer.keystore import Keystore
from cambist.signer.local import LocalSigner
from cambist.signer.protocol import KeyPath, SignRequest
from cambist.signer.reading import Reader
from cambist.signer.rules import Rules
from cambist.signer.store import Store
from cambist_chainkit.contracts import approve_data, transfer_data
from cambist_evm.payload import TxFields, write_payload

MNEMONIC = " ".join(["test"] * 11 + ["junk"])
PATHS = [
    KeyPath(account=0, change=0, index=0),
    KeyPath(account=4, change=1, index=0),
    KeyPath(account=9, change=0, index=77),
]


@pytest.fixture
def registry():
    return Registry(
        {"evm": {"chains": {"ethereum": {"rpc_urls": ["http://127.0.0.1:1"]}}}},
        found=[EntryPoint("evm", "cambist_evm.plugin", "cambist.plugins")],
    )


@pytest.fixture
async def signer(registry, tmp_path):
    keystore = Keystore(MNEMONIC)
    reader = Reader(keystore, registry.families, registry.chains)
    opened = LocalSigner(keystore, reader, rules=Rules(), store=Store(tmp_path / "store"), clock=SystemClock())
    yield opened
    await opened.aclose()


def account(path: KeyPath):
    Account.enable_unaudited_hdwallet_features()
    return Account.from_mnemonic(MNEMONIC, account_path=f"m/44'/60'/{path}")


@pytest.mark.parametrize("tip", [None, 3])
@pytest.mark.parametrize("token", [False, True])
@pytest.mark.parametrize("path", PATHS, ids=str)
async def test_a_signed_transaction_is_the_one_that_another_wallet_makes(registry, signer, path, token, tip):
    chain = registry.chains["ethereum"]
    family = registry.families["evm"]
    wallet = account(path)
    ours = KeyPath(account=path.account, change=1, index=0)
    recipient = account(ours).address.lower()
    to = chain.tokens[1].contract if token else recipient
    data = transfer_data(bytes.fromhex(recipient[2:]), 10**6) if token else b""
    fields = TxFields(
        chain_id=1, sequence=5, gas=60_000, price=10**9, tip=tip, to=bytes.fromhex(to[2:]),
        value=0 if token else 10**15, data=data,
    )  # fmt: skip
    payload = write_payload(fields)
    asked = SignRequest(
        mode="live", chain="ethereum", payload=payload, path=path, purpose="collection", reference="c:1", own=(ours,)
    )
    (reply,) = await signer.sign([asked])
    assert reply.signature is not None, reply
    tx = UnsignedTx(
        sender=family.normalize_address(wallet.address),
        sequence=5,
        payload=payload,
        fee=Fee(limit=60_000, price=10**9, tip=tip),
    )
    raw = family.seal(tx, reply.signature).raw
    assert Account.recover_transaction(raw) == wallet.address
    said = {"chainId": 1, "nonce": 5, "gas": 60_000, "to": to_checksum_address(to), "value": fields.value, "data": data}
    fees = {"gasPrice": 10**9} if tip is None else {"maxFeePerGas": 10**9, "maxPriorityFeePerGas": tip}
    assert raw == bytes(wallet.sign_transaction({**said, **fees}).raw_transaction)


@pytest.mark.parametrize("token, code", [(False, "UNREADABLE_PAYLOAD"), (True, "SPENDER_NOT_ALLOWED")])
async def test_without_providers_nothing_is_called_and_nothing_approved(registry, signer, token, code):
    to = registry.chains["ethereum"].tokens[1].contract if token else f"0x{'5a' * 20}"
    fields = TxFields(
        chain_id=1, sequence=5, gas=60_000, price=10**9, tip=None, to=bytes.fromhex(to[2:]), value=0,
        data=approve_data(b"\x5a" * 20, 1),
    )  # fmt: skip
    asked = SignRequest(
        mode="live", chain="ethereum", payload=write_payload(fields), path=PATHS[1], purpose="payout", reference="p:1"
    )
    (reply,) = await signer.sign([asked])
    assert (reply.signature, reply.refusal) == (None, code)
