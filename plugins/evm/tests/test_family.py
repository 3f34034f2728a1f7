"""Derivation against other wallets, EIP-55 against the standard's examples, and payment links."""

from __future__ import annotations

import os
from random import Random

import pytest
from bip_utils import Bip32Slip10Secp256k1, Bip44, Bip44Changes, Bip44Coins
from eth_account import Account
from eth_utils.address import to_checksum_address

from cambist.plugin import ChainInfo, InvalidAddressError, Token, Units
from cambist_chainkit.bip32 import INDEX_MAX
from cambist_chainkit.eip55 import keccak
from cambist_evm.family import EvmFamily

CASES = 10_000 if os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full" else 300

EIP55 = [
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "0x27b1fdb04752bbc536007a920d24acb045561c26",
]


def random_seed(random: Random) -> bytes:
    return random.randbytes(64)


@pytest.mark.campaign
def test_addresses_are_those_of_another_wallet(family: EvmFamily) -> None:
    """Random accounts, branches and indexes, compared with bip-utils."""
    random = Random(55)
    for _ in range(CASES // 20):
        wallet = Bip44.FromSeed(random_seed(random), Bip44Coins.ETHEREUM).Purpose().Coin()
        account = wallet.Account(random.randrange(2**31))
        xpub = account.PublicKey().ToExtended()
        change = random.randrange(2)
        branch = account.Change(Bip44Changes(change))
        for index in [random.randrange(2**31) for _ in range(18)] + [0, INDEX_MAX]:
            expected = branch.AddressIndex(index).PublicKey().ToAddress()
            assert family.derive_address(xpub, change, index) == expected


def test_the_private_key_of_the_same_path_owns_the_address(family: EvmFamily) -> None:
    """What is paid to a derived address can be spent: the private side, signed for by eth-account, agrees."""
    random = Random(56)
    for _ in range(5):
        tree = Bip32Slip10Secp256k1.FromSeed(random_seed(random)).DerivePath("m/44'/60'/3'")
        index = random.randrange(2**31)
        child = tree.DerivePath(f"0/{index}")
        owner = Account.from_key(child.PrivateKey().Raw().ToBytes()).address
        assert family.derive_address(tree.PublicKey().ToExtended(), 0, index) == owner


@pytest.mark.parametrize("address", EIP55)
def test_spelling_follows_the_standards_examples(family: EvmFamily, address: str) -> None:
    """Lower case, upper case and the right mixture come to the same; swapping the case of a letter does not."""
    spelled = to_checksum_address(address)
    for text in (spelled, spelled.lower(), "0x" + spelled[2:].upper()):
        assert family.normalize_address(text) == spelled
    swapped = "0x" + spelled[2:].swapcase()
    if spelled[2:] not in (spelled[2:].lower(), spelled[2:].upper()):
        with pytest.raises(InvalidAddressError):
            family.normalize_address(swapped)


@pytest.mark.campaign
def test_spelling_is_the_reference_implementations(family: EvmFamily) -> None:
    """Random addresses, compared with eth-utils."""
    random = Random(57)
    for _ in range(CASES):
        text = "0x" + random.randbytes(20).hex()
        assert family.normalize_address(text) == to_checksum_address(text)


@pytest.mark.parametrize(
    "text",
    ["0X" + "a" * 40, "0x" + "a" * 39, "0x" + "a" * 41, "a" * 40, "0x" + "g" * 40, "0x" + "٣" * 40, "ens.eth", "0x"],
)
def test_what_is_no_address_is_refused(family: EvmFamily, text: str) -> None:
    """Other prefixes, lengths, digits and scripts."""
    with pytest.raises(InvalidAddressError):
        family.normalize_address(text)


def test_the_key_of_an_address_is_its_bytes(family: EvmFamily) -> None:
    """Twenty bytes, so that millions fit into memory."""
    address = family.normalize_address(EIP55[0])
    assert family.address_key(address).hex() == address[2:].lower()


def test_payment_links_follow_eip_681(family: EvmFamily) -> None:
    """Native coin by value, tokens by a transfer call; the chain id is always there."""
    address = family.normalize_address(EIP55[0])
    native = Token(symbol="BNB", contract=None, decimals=18, label="BNB")
    token = Token(symbol="USDT", contract=EIP55[1], decimals=18, label="USDT")
    chain = ChainInfo(
        id="bsc", name="BSC", family="evm", tokens=(native, token), confirmations=15, chain_id_num=56, is_evm=True
    )
    assert family.payment_uri(chain, address, native, Units(2_014)) == f"ethereum:{address}@56?value=2014"
    assert (
        family.payment_uri(chain, address, token, Units(10**18))
        == f"ethereum:{EIP55[1]}@56/transfer?address={address}&uint256=1000000000000000000"
    )


def test_keccak_is_not_sha3() -> None:
    """The hash of nothing, as the Ethereum yellow paper uses it."""
    assert keccak(b"").hex() == "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
