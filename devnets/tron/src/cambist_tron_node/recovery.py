"""How bandwidth and energy that were used come back, linearly over a day, as TRON's nodes reckon it.

Times are slots of three seconds. Divisions round as the nodes' do, so that the numbers are theirs to the unit.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from .state import Resource

WINDOW: Final = 28_800
_PRECISION: Final = 1_000_000
_FINE: Final = 1_000


def decayed(used: int, added: int, then: int, now: int, window: int = WINDOW) -> int:
    """Return what is used now, after so much was added."""
    average = _average(used, then, now, window) + _ceil(added * _PRECISION, window)
    return average * window // _PRECISION


def used_now(resource: Resource, now: int) -> int:
    """Return what of a resource is used now."""
    return decayed(resource.used, 0, resource.used_at, now, _window(resource) // _FINE)


def using(resource: Resource, added: int, now: int) -> Resource:
    """Return the resource after so much more of it was used."""
    fine = _window(resource)
    window = fine // _FINE
    average = _average(resource.used, resource.used_at, now, window)
    used = (average * window + _ceil(added * _PRECISION, WINDOW) * WINDOW) // _PRECISION
    remaining = average * window // _PRECISION
    if remaining == 0:
        return msgspec.structs.replace(resource, used=used, used_at=now, window=WINDOW * _FINE)
    left = fine - (now - resource.used_at) * _FINE
    mixed = min(_ceil(remaining * left + added * WINDOW * _FINE, used), WINDOW * _FINE)
    return msgspec.structs.replace(resource, used=used, used_at=now, window=mixed)


def taking_over(owner: Resource, receiver: Resource, moved: int, now: int) -> Resource:
    """Return the owner's resource after use came back to it with stake that it had lent."""
    owner = using(owner, 0, now)
    used = owner.used + moved
    if used == 0:
        return msgspec.structs.replace(owner, used=0, used_at=now, window=WINDOW * _FINE)
    mixed = _ceil(owner.used * max(_window(owner), 0) + moved * max(_window(receiver), 0), used)
    return msgspec.structs.replace(owner, used=used, used_at=now, window=min(mixed, WINDOW * _FINE))


def _window(resource: Resource) -> int:
    return resource.window if resource.window >= _FINE else WINDOW * _FINE


def _average(used: int, then: int, now: int, window: int) -> int:
    average = _ceil(used * _PRECISION, window)
    if then == now:
        return average
    if then + window <= now:
        return 0
    return math.floor(average * ((window - (now - then)) / window) + 0.5)


def _ceil(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)
