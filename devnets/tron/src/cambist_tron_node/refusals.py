"""How a node says no to a transaction: TRON's codes, and its words."""

from __future__ import annotations

from typing import Final

_WORDS: Final = {
    "SIGERROR": "Validate signature error: {}",
    "CONTRACT_VALIDATE_ERROR": "Contract validate error : {}",
    "CONTRACT_EXE_ERROR": "Contract execute error : {}",
    "BANDWITH_ERROR": "Account resource insufficient error.",
    "DUP_TRANSACTION_ERROR": "Dup transaction.",
    "TAPOS_ERROR": "Tapos check error.",
    "TOO_BIG_TRANSACTION_ERROR": "{}",
    "TRANSACTION_EXPIRATION_ERROR": "Transaction expired",
    "SERVER_BUSY": "Server busy.",
    "OTHER_ERROR": "Error: {}",
}
_CLASSES: Final = {
    "SIGERROR": "ValidateSignatureException",
    "CONTRACT_VALIDATE_ERROR": "ContractValidateException",
    "CONTRACT_EXE_ERROR": "ContractExeException",
    "BANDWITH_ERROR": "AccountResourceInsufficientException",
}


class RefusedError(Exception):
    """The transaction cannot be taken. ``reason`` is what the node writes in its log."""

    def __init__(self, code: str, reason: str = "") -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.reason = reason

    @property
    def message(self) -> str:
        """What the node answers to a broadcast."""
        return _WORDS[self.code].format(self.reason)

    @property
    def error(self) -> str:
        """What the node answers where it builds transactions."""
        name = _CLASSES.get(self.code, "Exception")
        return f"class org.tron.core.exception.{name} : {self.reason}"


def invalid(reason: str) -> RefusedError:
    """Return the refusal of a contract that cannot be carried out."""
    return RefusedError("CONTRACT_VALIDATE_ERROR", reason)
