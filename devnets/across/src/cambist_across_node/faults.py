"""What can go wrong between a client and Across's server, on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Any, Final

from aiohttp import web
from msgspec import Struct

from cambist_chainkit.eip55 import keccak, spell

STATUS_PATH: Final = "deposit/status"
SLOW_S: Final = 30.0
RETRY_AFTER_S: Final = 20
_CHUNK: Final = b" " * 65_536


class Fault(StrEnum):
    """What can go wrong. Those that lie change what is answered, and nothing on the chains."""

    SLOW = "slow"
    HTTP_429 = "429"
    HTTP_500 = "500"
    GARBAGE = "garbage"
    REDIRECT = "redirect"
    ENDLESS = "endless"
    OTHER_POOL = "other-pool"
    """Another contract than the SpokePool of the deposit's chain."""
    OUTPUT_OF_ONE = "output-of-one"
    NOT_FOUND = "not-found"
    """No deposit is known."""
    SAYS_FILLED = "says-filled"
    """Every deposit is filled, by a transaction that there is not."""
    SAYS_EXPIRED = "says-expired"
    SAYS_REFUNDED = "says-refunded"
    """Every deposit was paid back, by a transaction that there is not."""


class _Rule(Struct):
    fault: Fault
    paths: frozenset[str]
    times: int | None


class Faults:
    """The faults of the server. Honest until told otherwise."""

    def __init__(self) -> None:
        self.slow_s = SLOW_S
        self._rules: list[_Rule] = []

    def add(self, fault: Fault, *paths: str, times: int | None = None) -> None:
        """Let a fault meet requests of these paths, such as "limits" (all by default), so many times or always."""
        self._rules.append(_Rule(fault, frozenset(paths), times))

    def clear(self) -> None:
        """Be honest again."""
        self._rules.clear()

    @property
    def present(self) -> list[Fault]:
        return [rule.fault for rule in self._rules if rule.times != 0]

    def meet(self, path: str) -> set[Fault]:
        """Return the faults that meet one request."""
        met = [rule for rule in self._rules if rule.times != 0 and (not rule.paths or path in rule.paths)]
        for rule in met:
            rule.times = None if rule.times is None else rule.times - 1
        return {rule.fault for rule in met}


async def instead(faults: set[Fault], request: web.Request, slow_s: float) -> web.StreamResponse | None:
    """Return what is sent in the place of an answer, or None."""
    if Fault.SLOW in faults:
        await asyncio.sleep(slow_s)
    if Fault.HTTP_429 in faults:
        return web.Response(status=429, text="Too Many Requests", headers={"Retry-After": str(RETRY_AFTER_S)})
    if Fault.HTTP_500 in faults:
        return web.json_response(
            {"type": "AcrossApiError", "code": "UNEXPECTED_ERROR", "status": 500, "message": "Unexpected error"},
            status=500,
        )
    if Fault.GARBAGE in faults:
        return web.Response(text="<html>hello</html>", content_type="application/json")
    if Fault.REDIRECT in faults:
        return web.Response(status=302, headers={"Location": "/api/elsewhere"})
    if Fault.ENDLESS in faults:
        return await _forever(request)
    if Fault.NOT_FOUND in faults and request.path.endswith(STATUS_PATH):
        return web.json_response({"error": "DepositNotFoundException", "message": "Deposit not found"}, status=404)
    return None


def changed(faults: set[Fault], told: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an answer as a liar gives it."""
    changes: dict[str, Any] = {}
    if Fault.OTHER_POOL in faults and "spokePoolAddress" in told:
        changes["spokePoolAddress"] = spell(keccak(b"another pool")[12:].hex())
    if Fault.OUTPUT_OF_ONE in faults and "outputAmount" in told:
        changes["outputAmount"] = "1"
    if "status" in told:
        nowhere = "0x" + keccak(str(told["depositId"]).encode()).hex()
        blank = dict.fromkeys(("fillTx", "fillTxnRef", "depositRefundTxHash", "depositRefundTxnRef"))
        if Fault.SAYS_FILLED in faults:
            changes |= blank | {"status": "filled", "fillTx": nowhere, "fillTxnRef": nowhere}
        elif Fault.SAYS_EXPIRED in faults:
            changes |= blank | {"status": "expired"}
        elif Fault.SAYS_REFUNDED in faults:
            refund = {"depositRefundTxHash": nowhere, "depositRefundTxnRef": nowhere}
            changes |= blank | {"status": "refunded"} | refund
    return {**told, **changes}


async def _forever(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    with suppress(ConnectionError):
        while True:
            await response.write(_CHUNK)
            await asyncio.sleep(0)
    return response
