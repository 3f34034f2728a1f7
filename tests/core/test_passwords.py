"""Passwords: hashed with argon2id, a few at a time, and no slower for those who exist."""

from __future__ import annotations

import asyncio
import threading

import pytest
from argon2 import PasswordHasher

from cambist.services.errors import InvalidError, TooManyError
from cambist.services.identity import passwords as passwords_module
from cambist.services.identity.passwords import HASHED_AT_ONCE, LENGTH_MAX, LENGTH_MIN, WAITING_MAX, Passwords


@pytest.fixture
def passwords(ids):
    return Passwords(ids.random_bytes, PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))


async def test_a_hash_is_argon2id_salted_and_verifies_its_password_only(passwords):
    one, two = [await passwords.hash("correct horse") for _ in range(2)]
    assert one.startswith("$argon2id$")
    assert one != two
    assert await passwords.verify(one, "correct horse")
    assert not await passwords.verify(one, "Correct horse")
    assert not await passwords.verify("rubbish", "correct horse")


async def test_what_nobody_has_is_verified_all_the_same_and_never_right(passwords):
    runs = []
    matches = passwords._matches
    passwords._matches = lambda stored, password: runs.append(stored) or matches(stored, password)
    assert not await passwords.verify(None, "nobody's")
    assert len(runs) == 1
    assert runs[0].startswith("$argon2id$")


@pytest.mark.parametrize("length", [0, LENGTH_MIN - 1, LENGTH_MAX + 1])
async def test_a_password_has_a_length(passwords, length):
    with pytest.raises(InvalidError):
        await passwords.hash("x" * length)
    assert not await passwords.verify(await passwords.hash("x" * LENGTH_MAX), "x" * (LENGTH_MAX + 1))


async def test_only_a_few_run_at_once_and_a_crowd_is_turned_away(ids):
    running, most = 0, 0

    class Slow(PasswordHasher):
        def hash(self, password, *, salt=None):
            nonlocal running, most
            running += 1
            most = max(most, running)
            hashed = super().hash(password, salt=salt)
            running -= 1
            return hashed

    passwords = Passwords(ids.random_bytes, Slow(time_cost=1, memory_cost=4096, parallelism=1))
    crowd = [passwords.hash("correct horse") for _ in range(WAITING_MAX + 10)]
    results = await asyncio.gather(*crowd, return_exceptions=True)
    assert sum(isinstance(result, TooManyError) for result in results) == 10
    assert most <= HASHED_AT_ONCE
    assert await passwords.hash("correct horse")


async def test_who_signs_in_never_waits_for_new_passwords_that_are_judged(passwords, monkeypatch):
    stored, judged = await passwords.hash("correct horse"), threading.Event()
    monkeypatch.setattr(passwords_module, "check_strength", lambda *_: judged.wait(60))
    crowd = [asyncio.create_task(passwords.hash_new("correct horse battery")) for _ in range(WAITING_MAX + 3)]
    try:
        await asyncio.sleep(0)
        async with asyncio.timeout(30):
            assert all([await passwords.verify(stored, "correct horse") for _ in range(3)])
    finally:
        judged.set()
        results = await asyncio.gather(*crowd, return_exceptions=True)
    assert sum(isinstance(result, TooManyError) for result in results) == 3
