"""How codes and secrets of a second factor are refused, in words that say what to do."""

from __future__ import annotations

from cambist.services.errors import ConflictError, ForbiddenError


def not_enrolled() -> ForbiddenError:
    return ForbiddenError("TWO_FACTOR_NOT_ENROLLED", "This needs two-factor authentication: turn it on first.")


def not_started() -> ConflictError:
    return ConflictError("TWO_FACTOR_NOT_STARTED", "Start with a new secret: none waits for its first code.")


def on_already() -> ConflictError:
    """Return the refusal of a first code that was taken before: whoever lost the answer must not drop the secret."""
    words = (
        "It is on already. Keep the secret that its first code was of, sign in with a code, and make recovery codes."
    )
    return ConflictError("TWO_FACTOR_ON", words)


def required() -> ForbiddenError:
    return ForbiddenError("TWO_FACTOR_REQUIRED", "Send totpCode: a code of your authenticator, or a recovery code.")


def wrong() -> ForbiddenError:
    return ForbiddenError("TWO_FACTOR_INVALID", "This code is wrong, or was used before. Wait for the next one.")
