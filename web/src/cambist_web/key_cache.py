"""Spares a busy shop's key the look-up in the database, for a second at most."""

from __future__ import annotations

from cambist.services.actor import Actor

KEY_CACHE_TTL_S = 1.0
"""How long a worker goes on trusting a key that another worker has just revoked."""
KEY_CACHE_MAX = 10_000


class KeyCache:
    """The keys that were good a moment ago, by hash, so that a busy shop's key is not looked up every time."""

    def __init__(self) -> None:
        self._found: dict[bytes, tuple[Actor, float]] = {}

    def get(self, hashed: bytes, now: float) -> Actor | None:
        """Return whom the key acted for within the last moment."""
        found = self._found.get(hashed)
        return found[0] if found is not None and now < found[1] else None

    def put(self, hashed: bytes, actor: Actor, now: float) -> None:
        """Remember a key for a moment."""
        if len(self._found) >= KEY_CACHE_MAX:
            self._found.clear()
        self._found[hashed] = (actor, now + KEY_CACHE_TTL_S)

    def clear(self) -> None:
        """Forget every key: one was revoked, or a project switched off, in this very process."""
        self._found.clear()
