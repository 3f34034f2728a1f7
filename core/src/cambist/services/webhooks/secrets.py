"""Projects' signing secrets: sealed in the database, opened to sign."""

from __future__ import annotations

from functools import lru_cache

from cambist.secrets import SecretsBox

FIELD = "projects.webhook_secret_encrypted"
CACHE_MAX = 10_000


class SigningSecrets:
    """Seals and opens signing secrets, each bound to its project's public id.

    What was opened is remembered by what was sealed, so a rotated secret is in force with the next row read.
    """

    def __init__(self, box: SecretsBox) -> None:
        self._box = box

        @lru_cache(CACHE_MAX)
        def opened(project_id: str, sealed: bytes) -> str:
            return box.decrypt(sealed, field=FIELD, row=project_id).decode()

        self._opened = opened

    def seal(self, project_id: str, secret: str) -> bytes:
        """Return what is stored."""
        return self._box.encrypt(secret.encode(), field=FIELD, row=project_id)

    def reveal(self, project_id: str, sealed: bytes | None) -> str | None:
        """Return the secret; None for a project that has none. Raises SecretsError."""
        return None if sealed is None else self._opened(project_id, sealed)
