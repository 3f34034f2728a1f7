"""An authenticator, written from RFC 6238 with nothing of the gateway's."""

from __future__ import annotations

import asyncio
import base64
import hmac
import time

from cambist.ports import Clock


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
        self._last_step = 0

    def code(self, drift_s: int = 0) -> str:
        seconds = int(self.clock.now().timestamp()) + drift_s
        self._last_step = max(self._last_step, seconds // 30)
        return code_at(self.key, seconds)

    def next_code(self) -> str:
        """Return the oldest code that is still taken and was not shown yet: three of them at one moment."""
        now_step = int(self.clock.now().timestamp()) // 30
        step = max(self._last_step + 1, now_step - 1)
        assert step <= now_step + 1, "three codes were shown within half a minute"
        self._last_step = step
        return code_at(self.key, step * 30)

    def wrong_code(self) -> str:
        now = int(self.clock.now().timestamp())
        right = {code_at(self.key, now + drift_s) for drift_s in (-60, -30, 0, 30, 60)}
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
