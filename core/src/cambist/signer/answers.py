"""Codes by which a person answers a question of the signer over the gateway, which may be in anybody's hands.

A code is made of a secret, the minute, the verdict and the whole question, on a device of the person's own, where the
question is read. So it is good for that question alone: whoever passes it on can neither change what is agreed to, nor
use it for something else. The signer keeps the same secret in a file of its own.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
from pathlib import Path

from cambist.ports import RandomBytes

from .files import KeystoreError, sync_folder, write_new
from .reports import Verdict

KEY_FILE = "answers.key"
KEY_BYTES = 32
DIGITS = 8
STEP_S = 60
STEPS_BACK, STEPS_AHEAD = 5, 1
"""A code takes a while: it is typed, and handed on by a worker."""
WRONG_MAX = 5
WRONG_PERIOD_S = 3_600
"""After so many wrong codes within an hour none is looked at: guessing takes longer than the sun will last."""

_SPACES = re.compile(r"\s+")


def enrol(folder: Path, random_bytes: RandomBytes, *, renew: bool = False) -> str:
    """Make a secret for the signer's store in this folder, and return it as it is typed, once.

    Raises KeystoreError where there is one already, unless it is to be renewed.
    """
    key, path = random_bytes(KEY_BYTES), folder / KEY_FILE
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = folder / f"{KEY_FILE}.{random_bytes(8).hex()}.new" if renew else path
    write_new(fresh, typed(key).encode())
    if renew:  # the old one goes when the new one is on disk
        fresh.replace(path)
        sync_folder(folder)
    return typed(key)


def read_key(folder: Path) -> bytes | None:
    """Return the secret, or None where nobody was enrolled. Raises KeystoreError for a file that cannot be used."""
    path = folder / KEY_FILE
    try:
        with path.open("rb") as file:
            mode, content = os.fstat(file.fileno()).st_mode, file.read(KEY_BYTES * 8)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise KeystoreError(f"{path} cannot be read: {error.strerror}.") from error
    if mode & 0o077:
        raise KeystoreError(f"{path} is open to others: run 'chmod 600 {path}'.")
    key = parse(content.decode("ascii", "replace"))
    if key is None:
        raise KeystoreError(f"{path} holds no secret of 'cambist signer enrol'.")
    return key


def typed(key: bytes) -> str:
    """Return a secret as it is typed: base32 in groups of four."""
    return "-".join(re.findall(r".{4}", base64.b32encode(key).decode().rstrip("=")))


def parse(text: str) -> bytes | None:
    """Return a secret that was typed, or None for what is none."""
    letters = re.sub(r"[\s-]", "", text).upper()
    try:
        key = base64.b32decode(letters + "=" * (-len(letters) % 8))
    except (binascii.Error, ValueError):
        return None
    return key if len(key) == KEY_BYTES else None


def same_question(one: str, other: str) -> bool:
    """Whether two texts are the same question, however they were broken into lines."""
    return _normalized(one) == _normalized(other)


def code_for(key: bytes, verdict: Verdict, question: str, at: int) -> str:
    """Return the code that says this of a question at a moment, in seconds since 1970."""
    return _code(key, verdict, question, at // STEP_S)


def is_right(key: bytes, verdict: Verdict, question: str, code: str, now: int) -> bool:
    """Whether a code says this of the question, and was made within the last minutes."""
    given, step = re.sub(r"[\s-]", "", code), now // STEP_S
    right = False
    for candidate in range(step - STEPS_BACK, step + STEPS_AHEAD + 1):
        right |= hmac.compare_digest(_code(key, verdict, question, candidate).encode(), given.encode())
    return right


def _code(key: bytes, verdict: Verdict, question: str, step: int) -> str:
    digest = hashlib.sha256(_normalized(question).encode()).digest()
    made = hmac.digest(
        key, b"cambist answer 1\n" + verdict.encode() + b"\n" + step.to_bytes(8, "big") + digest, "sha256"
    )
    return str(int.from_bytes(made[:8], "big") % 10**DIGITS).rjust(DIGITS, "0")


def _normalized(question: str) -> str:
    return _SPACES.sub(" ", question).strip()
