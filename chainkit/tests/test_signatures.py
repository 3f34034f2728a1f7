"""Signatures that are the sender's, and all the others."""

from __future__ import annotations

from random import Random

import pytest
from coincurve import PrivateKey

from cambist.plugin import SignatureError
from cambist_chainkit.curve import ORDER
from cambist_chainkit.signatures import checked

DIGEST = bytes(range(32))
ORDER_NUMBER = int.from_bytes(ORDER, "big")


def owner(point: bytes) -> str:
    """Return an address of the tests' own kind."""
    assert len(point) == 64
    return point.hex()


def address_of(key: PrivateKey) -> str:
    return owner(key.public_key.format(compressed=False)[1:])


def test_a_signature_of_the_address_is_taken_apart() -> None:
    """Into the numbers that a transaction carries."""
    random = Random(1)
    for _ in range(50):
        key = PrivateKey(random.randbytes(32))
        signature = key.sign_recoverable(DIGEST, hasher=None)
        r, s, parity = checked(signature, DIGEST, address_of(key), owner)
        assert r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes([parity]) == signature


def test_anything_else_is_refused() -> None:
    """Another's, of another text, of another length, malleable, or none."""
    key = PrivateKey(b"\x01" * 32)
    signature, address = key.sign_recoverable(DIGEST, hasher=None), address_of(key)
    s = int.from_bytes(signature[32:64], "big")
    flipped = signature[:32] + (ORDER_NUMBER - s).to_bytes(32, "big") + bytes([1 - signature[64]])
    cases = {
        "not by": [(signature, bytes(32)), (signature[:64] + bytes([1 - signature[64]]), DIGEST)],
        "65 bytes": [(signature[:64], DIGEST), (b"", DIGEST), (signature + b"\0", DIGEST)],
        "recovery id": [(signature[:64] + b"\x02", DIGEST), (signature[:64] + b"\x1b", DIGEST)],
        "upper half": [(flipped, DIGEST), (b"\xff" * 64 + b"\x00", DIGEST)],
        "is none": [(bytes(65), DIGEST), (b"\xff" * 32 + bytes(33), DIGEST)],
    }
    for said, wrong in cases.items():
        for bad, digest in wrong:
            with pytest.raises(SignatureError, match=said):
                checked(bad, digest, address, owner)
    with pytest.raises(SignatureError, match="not by"):
        checked(signature, DIGEST, "somebody else", owner)
