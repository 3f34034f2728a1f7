"""Derivation against other wallets, the one spelling of an address, and what a payment code says."""

from __future__ import annotations

import os
import subprocess
import sys
from random import Random

import pytest
from base58 import b58encode_check
from bip_utils import Bip32Slip10Secp256k1, Bip39SeedGenerator, Bip44, Bip44Changes, Bip44Coins
from hypothesis import given
from hypothesis import strategies as st
from tronpy.keys import PrivateKey, to_hex_address

from cambist.plugin import ChainInfo, InvalidAddressError, Token, Units
from cambist_chainkit.bip32 import INDEX_MAX, ExtendedKeyError
from cambist_tron.addresses import ZERO_ADDRESS, hex_of, raw_of, spell, spell_hex
from cambist_tron.family import TronFamily

CASES = 10_000 if os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full" else 300
ABANDON = "abandon " * 11 + "about"
USDT = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
TRX = Token(symbol="TRX", contract=None, decimals=6, label="TRON")
SPELLED = f"""
import sys

from cambist_tron.addresses import spell

assert spell(bytes(20)) == {ZERO_ADDRESS!r}
print(*sorted({{"cffi", "httpx", "pydantic", "requests", "tronpy"}} & set(sys.modules)))
import cffi
import tronpy.keys

assert tronpy.Tron and tronpy.keys.to_base58check_address(b"A" + bytes(20)) == spell(bytes(20))
"""


def test_spelling_takes_nothing_of_tronpy_but_its_spelling_and_whoever_imports_it_has_the_whole():
    done = subprocess.run([sys.executable, "-c", SPELLED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr


@pytest.mark.campaign
def test_addresses_are_those_of_another_wallet(family: TronFamily) -> None:
    """Random accounts, branches and indexes, compared with bip-utils."""
    random = Random(195)
    for _ in range(CASES // 20):
        account = (
            Bip44.FromSeed(random.randbytes(64), Bip44Coins.TRON).Purpose().Coin().Account(random.randrange(2**31))
        )
        change = random.randrange(2)
        branch = account.Change(Bip44Changes(change))
        for index in [random.randrange(2**31) for _ in range(18)] + [0, INDEX_MAX]:
            expected = branch.AddressIndex(index).PublicKey().ToAddress()
            assert family.derive_address(account.PublicKey().ToExtended(), change, index) == expected


def test_the_known_mnemonic_gives_the_known_addresses(family: TronFamily) -> None:
    """Those that wallets show for the mnemonic that everybody tests with."""
    account = Bip44.FromSeed(Bip39SeedGenerator(ABANDON).Generate(), Bip44Coins.TRON).Purpose().Coin().Account(0)
    xpub = account.PublicKey().ToExtended()
    assert [family.derive_address(xpub, 0, index) for index in range(3)] == [
        "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH",
        "TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK",
        "TYJPRrdB5APNeRs4R7fYZSwW3TcrTKw2gx",
    ]


def test_the_private_key_of_the_same_path_owns_the_address(family: TronFamily) -> None:
    """What is paid to a derived address can be spent: tronpy says that its key is this one."""
    random = Random(196)
    for _ in range(5):
        tree = Bip32Slip10Secp256k1.FromSeed(random.randbytes(64)).DerivePath("m/44'/195'/3'")
        index = random.randrange(2**31)
        key = PrivateKey(tree.DerivePath(f"0/{index}").PrivateKey().Raw().ToBytes())
        owner = key.public_key.to_base58check_address()
        assert family.derive_address(tree.PublicKey().ToExtended(), 0, index) == owner


@given(st.binary(min_size=20, max_size=20))
def test_other_libraries_spell_and_read_every_address_the_same_way(raw: bytes) -> None:
    assert spell(raw) == b58encode_check(b"\x41" + raw).decode()
    assert hex_of(spell(raw)) == to_hex_address(spell(raw))


def test_what_is_no_extended_key_is_not_repeated(family: TronFamily) -> None:
    """It may be a private one."""
    with pytest.raises(ExtendedKeyError) as caught:
        family.derive_address("xprv-secret", 0, 0)
    assert "secret" not in str(caught.value)


def test_an_address_has_one_spelling(family: TronFamily) -> None:
    """And its key is its 20 bytes."""
    assert family.normalize_address(USDT) == USDT
    assert family.address_key(USDT).hex() == "a614f803b6fd780986a42c78ec9c7f77e6ded13c"
    assert spell(family.address_key(USDT)) == USDT
    assert hex_of(USDT) == "41a614f803b6fd780986a42c78ec9c7f77e6ded13c"
    assert spell_hex(hex_of(USDT)) == USDT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "T",
        USDT[:-1],
        USDT + "t",
        " " + USDT,
        USDT + "\n",
        USDT[:-1] + "u",  # checksum
        USDT.lower(),
        USDT.replace("R", "r", 1),
        USDT.replace("7", "0", 1),  # no character of base58
        USDT.replace("T", "Т", 1),  # Cyrillic  # noqa: RUF001
        "41a614f803b6fd780986a42c78ec9c7f77e6ded13c",
        "a614f803b6fd780986a42c78ec9c7f77e6ded13c",
        "0xa614f803b6fd780986a42c78ec9c7f77e6ded13c",
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",  # Bitcoin
        "27jbj4qgTM1hvReST6hEa8Ep8RDo2AM8TJo",  # TRON's test network of 2018
        "T" + "1" * 33,
        "T" * 34,
        "\0" * 34,
    ],
)
def test_what_is_no_address_is_refused(family: TronFamily, text: str) -> None:
    """Without an error of the library's own, whatever it is."""
    with pytest.raises(InvalidAddressError):
        family.normalize_address(text)


@pytest.mark.campaign
def test_no_character_can_be_mistyped(family: TronFamily) -> None:
    """Random addresses with one random character changed are none."""
    random = Random(197)
    for _ in range(CASES):
        address = spell(random.randbytes(20))
        place = random.randrange(1, len(address))
        wrong = address[:place] + random.choice("23456789ABCabc".replace(address[place], "")) + address[place + 1 :]
        assert raw_of(address) == family.address_key(family.normalize_address(address))
        with pytest.raises(InvalidAddressError):
            family.normalize_address(wrong)


@pytest.mark.parametrize("raw", [bytes(20), b"\xff" * 20, bytes(19) + b"\1", b"\1" + bytes(19)])
def test_keys_are_right_at_the_ends(family: TronFamily, raw: bytes) -> None:
    """Every address has 34 characters, whatever its bytes."""
    assert len(spell(raw)) == 34
    assert family.address_key(spell(raw)) == raw


@pytest.mark.parametrize(
    "digits", ["", "41", "zz", "42" + "00" * 20, "00" * 21, "41" + "00" * 19, "41" + "00" * 21, "0x41" + "00" * 20]
)
def test_hex_that_is_no_address_is_none(digits: str) -> None:
    """Tronpy takes 21 bytes of any kind for one."""
    assert spell_hex(digits) is None


def test_a_payment_code_says_the_address_and_nothing_else(family: TronFamily, customer: str) -> None:
    """It is what all wallets read, for coin and token alike."""
    usdt = Token(symbol="USDT", contract=USDT, decimals=6, label="Tether USD")
    chain = ChainInfo(id="tron", name="TRON", family="tron", tokens=(TRX, usdt), confirmations=19)
    for token in chain.tokens:
        assert family.payment_uri(chain, customer, token, Units(12_345_678)) == customer


def test_the_zero_address_is_that_of_twenty_zero_bytes() -> None:
    assert spell(bytes(20)) == ZERO_ADDRESS
