"""Encrypted fields: bound to their place, and readable through a rotation of the key."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.ports import Ids
from cambist.secrets import SecretsBox, SecretsError

OLD, NEW = bytes(range(32)), bytes(range(32, 64))


@pytest.fixture
def box():
    return SecretsBox([OLD], os.urandom)


@given(plaintext=st.binary(max_size=500), field=st.text(max_size=20), row=st.text(max_size=20))
def test_what_was_encrypted_is_decrypted(plaintext, field, row):
    box = SecretsBox([OLD], os.urandom)
    assert box.decrypt(box.encrypt(plaintext, field=field, row=row), field=field, row=row) == plaintext


def test_equal_texts_do_not_look_equal(box):
    assert box.encrypt(b"a", field="f", row="1") != box.encrypt(b"a", field="f", row="1")


@pytest.mark.parametrize("field, row", [("f", "2"), ("g", "1"), ("f1", ""), ("", "f1")])
def test_a_field_that_was_moved_is_not_decrypted(box, field, row):
    with pytest.raises(SecretsError, match="belongs to another row"):
        box.decrypt(box.encrypt(b"a", field="f", row="1"), field=field, row=row)


def test_every_changed_byte_is_noticed(box):
    sealed = box.encrypt(b"secret", field="f", row="1")
    for at in range(len(sealed)):
        changed = sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :]
        with pytest.raises(SecretsError):
            box.decrypt(changed, field="f", row="1")
    for length in range(len(sealed)):
        with pytest.raises(SecretsError):
            box.decrypt(sealed[:length], field="f", row="1")


def test_a_rotated_key_still_decrypts_what_the_old_one_encrypted(box):
    sealed = box.encrypt(b"secret", field="f", row="1")
    rotated = SecretsBox([NEW, OLD], os.urandom)
    assert rotated.decrypt(sealed, field="f", row="1") == b"secret"
    again = rotated.encrypt(b"secret", field="f", row="1")
    with pytest.raises(SecretsError, match="is not configured"):
        box.decrypt(again, field="f", row="1")


@pytest.mark.parametrize("keys", [[], [b"short"], [OLD, b"short"]])
def test_a_key_of_another_length_is_refused(keys):
    with pytest.raises(ValueError, match="32 bytes"):
        SecretsBox(keys, os.urandom)


def test_identifiers_carry_128_random_bits_in_readable_characters():
    ids = Ids(os.urandom)
    made = {ids.new("pay") for _ in range(1000)}
    assert len(made) == 1000
    assert all(len(name) == 30 and name.startswith("pay_") for name in made)
    assert set("".join(name[4:] for name in made)) == set("0123456789abcdefghjkmnpqrstvwxyz")
    assert Ids(lambda size: b"\xff" * size).new("x") == "x_" + "z" * 25 + "w"
    assert len(ids.secret("ck_test_")) == 8 + 52
    assert len(bytes.fromhex(ids.hex_secret())) == 32
