"""What every address family promises: derivation, spelling, keys and payment URIs. Pure, without a node."""

from __future__ import annotations

import itertools
import re

import pytest

from cambist.plugin import AddressFamily, InvalidAddressError, Units
from cambist.testing.guard import Conformance
from cambist.testing.harness import FamilySamples

INDEXES = (*range(20), 255, 256, 65_535, 65_536, 2**31 - 1)
NEVER_AN_ADDRESS = ("", " ", "\0", "0", "address", "a" * 10_000, "\N{FULLWIDTH DIGIT ZERO}x" + "0" * 40, "\udcff")
OF_SOME_FAMILY = (
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
    "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
    "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
    "So11111111111111111111111111111111111111112",
    "order-1",
    "carol@shop.example",
    "pay_01",
)
"""What a search asks every family about: addresses of others, and whatever else names something."""

NEVER_A_TAG = ("", "\0", "1\n", "1" * 1_000, "\udcff", "\N{SUPERSCRIPT TWO}")


class AddressFamilyConformance(Conformance):
    """Subclass it, and give the fixtures ``family`` and ``samples``."""

    @pytest.fixture
    def family(self) -> AddressFamily:
        """Return the family under test."""
        raise NotImplementedError

    @pytest.fixture
    def samples(self) -> FamilySamples:
        """Return texts that show what it accepts and what it refuses."""
        raise NotImplementedError

    def test_a_family_has_a_name_and_a_coin_type(self, family: AddressFamily) -> None:
        """The name is a key in tables, the coin type a number in derivation paths."""
        assert re.fullmatch(r"[a-z][a-z0-9_]{0,31}", family.name)
        assert 0 <= family.coin_type < 2**31

    def test_samples_are_enough_to_tell(self, family: AddressFamily, samples: FamilySamples) -> None:
        """A kit that is given nothing proves nothing."""
        assert len(set(samples.account_xpubs)) >= 2
        assert samples.spellings
        assert len(samples.refused) >= 3
        assert samples.chain.family == family.name

    def test_the_same_path_always_gives_the_same_address(self, family: AddressFamily, samples: FamilySamples) -> None:
        """Whatever was derived in between."""
        xpubs = samples.account_xpubs
        first = [family.derive_address(xpub, change, 7) for xpub in xpubs for change in (0, 1, 2)]
        again = [family.derive_address(xpub, change, 7) for xpub in reversed(xpubs) for change in (2, 1, 0)]
        assert first == list(reversed(again))

    def test_other_paths_give_other_addresses(self, family: AddressFamily, samples: FamilySamples) -> None:
        """No two customers share an address: account, change and index all count."""
        paths = list(itertools.product(samples.account_xpubs, (0, 1, 2), INDEXES))
        assert len({family.derive_address(*path) for path in paths}) == len(paths)

    def test_known_answers_are_derived(self, family: AddressFamily, samples: FamilySamples) -> None:
        """What another wallet derives from the same key, so that the money can be spent there too."""
        for path, address in samples.derived.items():
            assert family.derive_address(*path) == address

    def test_a_derived_address_is_normalized(self, family: AddressFamily, samples: FamilySamples) -> None:
        """It is stored as it comes."""
        for index in INDEXES:
            address = family.derive_address(samples.account_xpubs[0], 0, index)
            assert family.normalize_address(address) == address

    def test_every_spelling_has_one_normal_form(self, family: AddressFamily, samples: FamilySamples) -> None:
        """Normalizing is idempotent."""
        for text, normalized in samples.spellings.items():
            assert family.normalize_address(text) == normalized
            assert family.normalize_address(normalized) == normalized

    def test_what_is_no_address_is_refused(self, family: AddressFamily, samples: FamilySamples) -> None:
        """With InvalidAddressError, and with no other exception."""
        for text in (*samples.refused, *NEVER_AN_ADDRESS):
            with pytest.raises(InvalidAddressError):
                family.normalize_address(text)

    def test_what_others_call_an_address_is_refused_or_normalized(self, family: AddressFamily) -> None:
        """Every family is asked about a text of which nobody knows the family: no other exception, either."""
        for text in OF_SOME_FAMILY:
            try:
                normalized = family.normalize_address(text)
            except InvalidAddressError:
                continue
            except Exception as error:  # noqa: BLE001  whatever else it is
                pytest.fail(f"for {text!r} it raises {error!r}, which is no InvalidAddressError")
            assert family.normalize_address(normalized) == normalized

    def test_an_address_with_something_around_it_is_refused(
        self, family: AddressFamily, samples: FamilySamples
    ) -> None:
        """White space, NUL and line ends are the caller's to remove, so that nothing else slips in."""
        for address in samples.spellings:
            for text in (f" {address}", f"{address} ", f"{address}\n", f"{address}\0", f"{address}{address}"):
                with pytest.raises(InvalidAddressError):
                    family.normalize_address(text)

    def test_every_tag_has_one_normal_form(self, family: AddressFamily, samples: FamilySamples) -> None:
        """Where there are tags: else none is taken. No address has the ``#`` that stands before a tag.

        What was mistyped is never the same tag, as it may be somebody else's: for ``int`` alone, 1_0 is ten.
        """
        refused = (*samples.refused_tags, *NEVER_A_TAG) if family.tags else ("1", *NEVER_A_TAG)
        assert bool(samples.tags) == bool(samples.refused_tags) == family.tags
        for text, normalized in samples.tags.items():
            assert family.normalize_tag(text) == family.normalize_tag(normalized) == normalized
            assert re.fullmatch(r"[ -~]{1,128}", normalized)
            for other in (f" {text}", f"{text} ", f"+{text}", f"{text[0]}_{text[1:]}"):
                assert _tag_or_none(family, other) != normalized
        for text in refused:
            with pytest.raises(InvalidAddressError):
                family.normalize_tag(text)
        addresses = [*samples.spellings.values(), family.derive_address(samples.account_xpubs[0], 0, 7)]
        assert not family.tags or not any("#" in address for address in addresses)

    def test_a_mistyped_address_is_never_the_same_address(self, family: AddressFamily, samples: FamilySamples) -> None:
        """Each character replaced by another: refused, or a different address, but never this one."""
        normalized = next(iter(samples.spellings.values()))
        for position, character in enumerate(normalized):
            typo = normalized[:position] + ("7" if character != "7" else "5") + normalized[position + 1 :]
            try:
                other = family.normalize_address(typo)
            except InvalidAddressError:
                continue
            assert other != normalized
            assert family.address_key(other) != family.address_key(normalized)

    def test_keys_tell_addresses_apart(self, family: AddressFamily, samples: FamilySamples) -> None:
        """A key is short bytes, the same each time, and different for different addresses."""
        addresses = [family.derive_address(samples.account_xpubs[0], 0, index) for index in INDEXES]
        keys = [family.address_key(address) for address in addresses]
        assert len(set(keys)) == len(addresses)
        assert all(type(key) is bytes for key in keys)
        assert all(0 < len(key) <= 64 for key in keys)
        assert keys == [family.address_key(address) for address in addresses]

    def test_payment_uris_say_who_is_paid(self, family: AddressFamily, samples: FamilySamples) -> None:
        """A payment URI fits into a QR code and names its recipient, whatever the token and the amount."""
        addresses = [family.derive_address(samples.account_xpubs[0], 0, index) for index in (0, 1)]
        for token in samples.chain.tokens:
            for amount in (1, 1_234_567):
                uris = [family.payment_uri(samples.chain, address, token, Units(amount)) for address in addresses]
                assert all(re.fullmatch(r"[!-~]{1,512}", uri) for uri in uris)
                assert all(address.lower() in uri.lower() for address, uri in zip(addresses, uris, strict=True))
                assert uris[0] != uris[1]
        uris = [family.address_uri(samples.chain, address) for address in addresses]
        assert all(re.fullmatch(r"[!-~]{1,512}", uri) for uri in uris)
        assert all(address.lower() in uri.lower() for address, uri in zip(addresses, uris, strict=True))


def _tag_or_none(family: AddressFamily, text: str) -> str | None:
    try:
        return family.normalize_tag(text)
    except InvalidAddressError:
        return None
