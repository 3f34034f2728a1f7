"""What codes are: six digits of an authenticator app (RFC 6238), or a recovery code that is typed from paper."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from datetime import datetime

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.hotp import HOTP
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from msgspec import Struct

from cambist.ports import Ids

DIGITS = 6
STEP_S = 30
WINDOW_STEPS = 1
"""How many steps a phone's clock may be early or late."""

RECOVERY_CHARS = 25
"""125 random bits."""

_APP_CODE = re.compile(rf"[0-9]{{{DIGITS}}}")
_RECOVERY_CODE = re.compile(rf"[0-9a-z]{{{RECOVERY_CHARS}}}")
_TYPED_BETWEEN = re.compile(r"[\s-]+")
# The alphabet has none of these letters, so that they can be told from digits.
_MISREAD = str.maketrans("ilo", "110")


class Enrolment(Struct, frozen=True, kw_only=True):
    """A secret for an authenticator, as it is typed (base32) and as it is scanned. It is told once."""

    secret: str
    uri: str


def enrolment(key: bytes, email: str, issuer: str) -> Enrolment:
    """Write a secret down for this person's authenticator, which shows the issuer beside the address."""
    uri = TOTP(key, DIGITS, _sha1(), STEP_S).get_provisioning_uri(email, issuer)
    return Enrolment(secret=base64.b32encode(key).decode(), uri=uri)


def step_of(key: bytes, code: str, now: datetime) -> int | None:
    """Return the time step around now whose code this is, or None."""
    typed = _TYPED_BETWEEN.sub("", code)
    if _APP_CODE.fullmatch(typed) is None:
        return None
    current, codes = int(now.timestamp()) // STEP_S, HOTP(key, DIGITS, _sha1())
    found = None
    for step in range(current - WINDOW_STEPS, current + WINDOW_STEPS + 1):
        if hmac.compare_digest(codes.generate(step), typed.encode()):
            found = step
    return found


def new_recovery_code(ids: Ids) -> str:
    """Return a recovery code as it is shown: five groups of five."""
    return "-".join(re.findall(r"\w{5}", ids.secret("")[:RECOVERY_CHARS]))


def recovery_hash(code: str) -> bytes | None:
    """Return what a recovery code is stored and found by, however it is typed; None for what cannot be one."""
    typed = _TYPED_BETWEEN.sub("", code).lower().translate(_MISREAD)
    return hashlib.sha256(typed.encode()).digest() if _RECOVERY_CODE.fullmatch(typed) else None


def _sha1() -> SHA1:
    return SHA1()  # noqa: S303  what every authenticator speaks; in HMAC, collisions do not matter
