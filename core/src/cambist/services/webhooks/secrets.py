"""Projects' signing secrets: sealed in the database, opened to sign."""

from __future__ import annotations

from cambist.secrets import SecretsBox

FIELD = "projects.webhook_secret_encrypted"
CACHE_MAX = 10_000


class SigningSecrets:
    """Seals and opens signing secrets, each bound to its project's public id.

    What was opened is remembered by what was sealed, so a rotated secret is in force with the next row read.
    """

    def __init__(self, box: SecretsBox) -> None:
        self._box = box
        self._opened: dict[tuple[str, bytes], str] = {}

    def seal(self, project_id: str, secret: str) -> bytes:
        """Return what is stored."""
        return self._box.encrypt(secret.encode(), field=FIELD, row=project_id)

    def reveal(self, project_id: str, sealed: bytes | None) -> str | None:
        """Return the secret; None for a project that has none. Raises SecretsError."""
        if sealed is None:
            return None
        key = (project_id, sealed)
        secret = self._opened.get(key)
        if secret is None:
            secret = self._box.decrypt(sealed, field=FIELD, row=project_id).decode()
            if len(self._opened) >= CACHE_MAX:
                self._opened.clear()
            self._opened[key] = secret
        return secret
