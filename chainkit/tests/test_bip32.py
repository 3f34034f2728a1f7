"""Public derivation against the standard's vectors, and texts that are no keys."""

from __future__ import annotations

import os
from itertools import count
from random import Random

import pytest
from bip_utils import Base58Encoder, Bip32Slip10Secp256k1
from coincurve import PrivateKey

from cambist.plugin import PluginError
from cambist_chainkit import curve
from cambist_chainkit.bip32 import INDEX_MAX, ExtendedKeyError, parse_xpub
from cambist_chainkit.curve import LIBRARYS_FIRST, ORDER, add_multiple

CASES = 10_000 if os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full" else 300

# Test vector 1 of BIP-32: chain m/0' and its public child 1, and vector 2: m and its public child 0.
BIP32 = [
    (
        "xpub68Gmy5EdvgibQVfPdqkBBCHxA5htiqg55crXYuXoQRKfDBFA1WEjWgP6LHhwBZeNK1VTsfTFUHCdrfp1bgwQ9xv5ski8PX9rL2dZXvgGDnw",
        1,
        "xpub6ASuArnXKPbfEwhqN6e3mwBcDTgzisQN1wXN9BJcM47sSikHjJf3UFHKkNAWbWMiGj7Wf5uMash7SyYq527Hqck2AxYysAA7xmALppuCkwQ",
    ),
    (
        "xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB",
        0,
        "xpub69H7F5d8KSRgmmdJg2KhpAK8SR3DjMwAdkxj3ZuxV27CprR9LgpeyGmXUbC6wb7ERfvrnKZjXoUmmDznezpbZb7ap6r1D3tgFxHmwMkQTPH",
    ),
]


def random_seed(random: Random) -> bytes:
    return random.randbytes(64)


@pytest.mark.parametrize("parent, index, child", BIP32)
def test_public_children_are_those_of_the_standards_vectors(parent: str, index: int, child: str) -> None:
    """The child's point and chain code are what the published child key holds."""
    derived = parse_xpub(parent).child(index)
    expected = parse_xpub(child)
    assert [derived.child_point(n) for n in range(5)] == [expected.child_point(n) for n in range(5)]


@pytest.mark.parametrize("index", [-1, INDEX_MAX + 1])
def test_an_index_that_no_public_key_can_derive_is_refused(index: int) -> None:
    """Hardened children need the private key."""
    with pytest.raises(ExtendedKeyError, match="not between"):
        parse_xpub(BIP32[0][0]).child_point(index)


def test_a_private_key_is_refused_and_not_repeated() -> None:
    """An xprv in the place of an xpub must not end in a log."""
    secret = Bip32Slip10Secp256k1.FromSeed(random_seed(Random(1))).PrivateKey().ToExtended()
    with pytest.raises(PluginError, match="extended public key") as caught:
        parse_xpub(secret)
    assert secret[4:20] not in str(caught.value)


def test_a_mistyped_key_is_refused() -> None:
    """Each character counts in the checksum."""
    xpub = BIP32[0][0]
    for position in range(4, len(xpub), 7):
        typo = xpub[:position] + ("2" if xpub[position] != "2" else "3") + xpub[position + 1 :]
        with pytest.raises(ExtendedKeyError):
            parse_xpub(typo)


@pytest.mark.parametrize("text", ["", "xpub", "0" * 111, "xpub" + "z" * 107, "y" * 500, BIP32[0][0][:-1]])
def test_what_is_no_key_is_refused(text: str) -> None:
    """With a PluginError and nothing else."""
    with pytest.raises(ExtendedKeyError):
        parse_xpub(text)


def test_a_point_off_the_curve_is_refused() -> None:
    """A well-formed key whose point does not exist."""
    body = bytes.fromhex("0488b21e") + bytes(41) + b"\x02" + b"\xff" * 32
    with pytest.raises(ExtendedKeyError, match="no point"):
        parse_xpub(Base58Encoder.CheckEncode(body))


@pytest.mark.campaign
@pytest.mark.parametrize("before", [0, LIBRARYS_FIRST])
def test_points_are_added_as_the_library_adds_them(monkeypatch: pytest.MonkeyPatch, before: int) -> None:
    """Random scalars, and those at the edges: single bytes, none, the largest, and the one that leads nowhere."""
    monkeypatch.setattr(curve, "_additions", count(before))
    random = Random(256)
    secret = PrivateKey(random.randbytes(32))
    point = secret.public_key
    edges = [1, 255, 256, 1 << 248, int.from_bytes(ORDER, "big") - 1]
    scalars = [number.to_bytes(32, "big") for number in edges] + [random.randbytes(32) for _ in range(CASES)]
    for scalar in scalars:
        assert add_multiple(point, scalar).format() == point.add(scalar).format()
    assert add_multiple(point, bytes(32)).format() == point.format()
    for scalar in (ORDER, b"\xff" * 32):
        with pytest.raises(ValueError, match="order"):
            add_multiple(point, scalar)
    opposite = (int.from_bytes(ORDER, "big") - secret.to_int()).to_bytes(32, "big")
    with pytest.raises(ValueError, match="invalid"):
        add_multiple(point, opposite)
    assert add_multiple(point, secret.secret).format() == point.add(secret.secret).format()


def test_a_process_that_derives_little_makes_no_multiples(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take longer to be made than they save it."""
    monkeypatch.setattr(curve, "_additions", count())
    monkeypatch.setattr(curve, "LIBRARYS_FIRST", 3)
    made = curve._multiples
    made.cache_clear()
    point = PrivateKey.from_int(2).public_key
    for _ in range(3):
        add_multiple(point, bytes([0] * 31 + [1]))
    assert made.cache_info().misses == 0
    add_multiple(point, bytes([0] * 31 + [1]))
    assert made.cache_info().misses == 1
