"""An authenticator, written from RFC 6238 with nothing of the gateway's, and a merchant who has one."""

from __future__ import annotations

import asyncio
import base64
import hmac
import time
from typing import Any

from cambist.ports import Clock
from tests.support.web import PASSWORD, Merchant

HERE = "/api/dashboard/two-factor"


def code_at(key: bytes, seconds: int, digits: int = 6) -> str:
    mac = hmac.digest(key, (seconds // 30).to_bytes(8, "big"), "sha1")
    start = mac[-1] & 15
    number = int.from_bytes(mac[start : start + 4], "big") & 0x7FFFFFFF
    return str(number % 10**digits).zfill(digits)


class Authenticator:
    """A phone with a secret on it, whose clock is the gateway's plus a drift."""

    def __init__(self, secret: str, clock: Clock) -> None:
        self.key = base64.b32decode(secret)
        self.clock = clock

    def code(self, drift_s: int = 0) -> str:
        return code_at(self.key, int(self.clock.now().timestamp()) + drift_s)

    def wrong_code(self) -> str:
        right = {self.code(drift_s) for drift_s in (-60, -30, 0, 30, 60)}
        return next(code for code in (f"{number:06}" for number in range(10)) if code not in right)


class Phone:
    """An authenticator on the system's clock that never shows a code twice, and waits where it would have to."""

    def __init__(self, secret: str) -> None:
        self._key = base64.b32decode(secret)
        self._last = 0

    async def code(self) -> str:
        """Return the oldest code that is still taken, at least for the next five seconds, and was not shown yet."""
        while True:
            now = time.time()
            step = max(self._last + 1, int(now - 25) // 30)
            if step <= int(now) // 30 + 1:
                self._last = step
                return code_at(self._key, step * 30)
            await asyncio.sleep(1)


async def start(merchant: Merchant, **changes: Any) -> Any:
    """Ask for a secret."""
    body = {"password": PASSWORD} | changes
    return await merchant.client.post(f"{HERE}/enrol", json=body, headers=merchant.bearer)


async def enrol(merchant: Merchant, clock: Any) -> tuple[Authenticator, list[str]]:
    """Turn two-factor authentication on; return the phone and the recovery codes. The next code is good at once."""
    response = await start(merchant)
    assert response.status_code == 200, response.text
    phone = Authenticator(response.json()["secret"], clock)
    response = await merchant.client.post(f"{HERE}/confirm", json={"totpCode": phone.code()}, headers=merchant.bearer)
    assert response.status_code == 200, response.text
    clock.advance(30)
    return phone, response.json()["recoveryCodes"]
