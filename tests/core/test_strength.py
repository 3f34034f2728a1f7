"""New passwords: what a guesser would try early is refused, what is hard to guess is taken, and judging is quick."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import pytest
from argon2 import PasswordHasher
from zxcvbn import matching

from cambist.services.errors import InvalidError
from cambist.services.identity.passwords import LENGTH_MAX, Passwords
from cambist.services.identity.strength import JUDGED_CHARS_MAX, check_strength

ABOUT = ["ada.lovelace@engines.example", "Ada Lovelace"]


@pytest.mark.parametrize(
    "password",
    [
        "password123", "1234567890", "qwertyuiop1", "iloveyou1234", "Password1!xx", "aaaaaaaaaaaa", "abcabcabcabcabc",
        "Summer2026!", "Tr0ub4dour&3", "adalovelace", "LOVELACE1815", "ada.lovelace@engines.example", "engines2026",
        "cambist1234", "x" * LENGTH_MAX, "P@ssw0rd" * 9, "aaaaaaaaaaaaaaaaaaaaaaaaaaaa$%zK3kd9!!",
    ],
)  # fmt: skip
def test_what_is_guessed_early_is_refused_in_a_sentence(password):
    with pytest.raises(InvalidError) as error:
        check_strength(password, ABOUT, "newPassword")
    assert error.value.details[0].field == "newPassword"
    assert error.value.message.startswith("newPassword is too easy to guess.")
    assert password not in error.value.message


@pytest.mark.parametrize(
    "password",
    [
        "correct horse battery staple",
        "$%zK3kd9!!",
        "korrekt hest batteri stift",
        "пароль верный конь батарея",
        "é" * 3 + "zQ4-pxv9wm",
    ],
)
def test_what_is_hard_to_guess_is_taken(password):
    check_strength(password, ABOUT)


def test_what_somebody_knows_of_one_merchant_is_nothing_about_another():
    check_strength("lovelace-engines-1815", [])
    with pytest.raises(InvalidError):
        check_strength("lovelaceengines", ABOUT)
    check_strength("lovelaceengines-zk", ["bob@shop.example"])


def test_a_name_longer_than_what_is_judged_is_known_all_the_same():
    name = "wolfeschlegelsteinhausenbergerdorff"
    assert len(name) > JUDGED_CHARS_MAX
    check_strength(name, [])
    with pytest.raises(InvalidError):
        check_strength(name, [name])


@pytest.mark.parametrize("password", ["P@ssw0rd!abc1990" * 16, "ab" * 128, "\u202e" * 256, "1" * 256])
def test_judging_the_longest_password_takes_no_time_to_speak_of(password):
    began = time.process_time()
    with suppress(InvalidError):
        check_strength(password[:LENGTH_MAX], ["x" * 254, "y" * 100])
    assert time.process_time() - began < 1


SIGNS = "(4@8{[<369!|1o0$5+7%2"
"""All that zxcvbn reads as letters, each in one way or several."""


@pytest.mark.slow
@pytest.mark.parametrize("word", ["zxcvbnpassword", "", "aA1!"])
def test_a_password_of_signs_that_may_be_letters_is_judged_in_bounded_work(word, monkeypatch):
    looked_up = 0

    def counting(password, _ranked_dictionaries):
        nonlocal looked_up
        looked_up += len(_ranked_dictionaries) * len(password) * (len(password) + 1) // 2
        return []  # how often it is asked does not depend on what it finds

    monkeypatch.setattr(matching, "dictionary_match", counting)
    for hostile in (SIGNS + word, word + SIGNS, SIGNS[::-1] + word):
        looked_up = 0
        with suppress(InvalidError):
            check_strength((hostile * LENGTH_MAX)[:LENGTH_MAX], ABOUT)
        assert 0 < looked_up < 2_000_000


async def test_many_passwords_at_once_are_judged_each_for_its_own_merchant(ids):
    passwords = Passwords(ids.random_bytes, PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))

    async def refused(number):
        try:
            await passwords.hash_new(f"vqxjwk-zebra-{number}", [f"vqxjwk-zebra-{number}", "zebra@shop.example"])
        except InvalidError:
            return True
        return False

    assert await asyncio.gather(*[refused(number) for number in range(12)]) == [True] * 12
    assert (await passwords.hash_new("correct horse battery staple")).startswith("$argon2id$")
