"""Every error a use case answers with: a code, a sentence for the caller, and what kind of refusal it is.

::

    ServiceError
    ├── InvalidError            the request cannot be meant                 400
    ├── UnauthenticatedError    nobody, or nobody we know, asks             401
    ├── PaymentRequiredError    usage credits have run out                  402
    ├── ForbiddenError          somebody asks for what is not theirs        403
    ├── NotFoundError           there is no such thing, or not for them     404
    ├── ConflictError           it contradicts what happened before         409
    ├── TooManyError            a limit, ``retry_after_s`` says how long    429
    └── UnavailableError        not now, through no fault of the caller     503

The web layer maps kinds to statuses in one table; codes are listed in ``docs/merchants/errors.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from cambist.domain.text import hidden_in


class FieldProblem(Struct, frozen=True):
    """One field of a request, and what is wrong with it."""

    field: str
    message: str


class ServiceError(Exception):
    """Refuses a request. ``message`` is a sentence for the caller and holds nothing secret."""

    def __init__(self, code: str, message: str, details: Sequence[FieldProblem] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = tuple(details)


class InvalidError(ServiceError):
    """The request cannot be meant as it stands."""

    @classmethod
    def field(cls, field: str, message: str, code: str = "VALIDATION_ERROR") -> InvalidError:
        """Refuse one field: the sentence names it."""
        return cls(code, f"{field} {message}", [FieldProblem(field, message)])


def check_text(text: str, field: str, *, lines: bool = False) -> None:
    """Refuse text with control characters, or others that nobody sees. Raises InvalidError; see ``domain/text.py``."""
    hidden = hidden_in(text, lines=lines)
    if hidden == "\0":
        raise InvalidError.field(field, "must not contain the character NUL")
    if hidden is not None:
        raise InvalidError.field(field, f"must not contain control characters or invisible ones (U+{ord(hidden):04X})")


class UnauthenticatedError(ServiceError):
    """Credentials are missing or wrong."""


class PaymentRequiredError(ServiceError):
    """Usage credits have run out."""


class ForbiddenError(ServiceError):
    """The caller is known, and may not."""


class NotFoundError(ServiceError):
    """It does not exist, or not for this caller."""


class ConflictError(ServiceError):
    """It contradicts what was done before."""


class TooManyError(ServiceError):
    """A limit was reached; ``retry_after_s`` says when to come again."""

    def __init__(self, code: str, message: str, *, retry_after_s: int) -> None:
        super().__init__(code, message)
        self.retry_after_s = retry_after_s


class UnavailableError(ServiceError):
    """It cannot be done now; trying again later is right."""


def project_inactive() -> ForbiddenError:
    """Return the refusal of everything but reading, for a project that was switched off."""
    return ForbiddenError("PROJECT_INACTIVE", "This project is switched off.")


def coin_disabled(symbol: str, chain_name: str) -> InvalidError:
    """Return the refusal to send or exchange a coin that the merchant has disabled."""
    return InvalidError("TOKEN_NOT_ENABLED", f"{symbol} on {chain_name} is not among the enabled tokens.")


def merchant_suspended() -> ForbiddenError:
    """Return the refusal of everything, for a merchant that the operator has suspended."""
    return ForbiddenError("MERCHANT_SUSPENDED", "The operator of this gateway has suspended this merchant.")
