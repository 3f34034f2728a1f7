"""What the steps of one tick raise: noted as it comes, so that the others go on, and raised when they are done."""

from __future__ import annotations

import structlog

from cambist.plugin import ChainError
from cambist.signer.protocol import SignerUnavailableError

log = structlog.get_logger(__name__)

EXPECTED = (ChainError, SignerUnavailableError, TimeoutError)
"""What happens where a node or a signer is away or wrong. Anything else is a defect of ours, or of a plugin."""


class Failures:
    """The failures of one tick on one chain."""

    def __init__(self, chain: str) -> None:
        self._chain = chain
        self._found: list[Exception] = []

    def __len__(self) -> int:
        return len(self._found)

    @property
    def newest(self) -> Exception:
        return self._found[-1]

    def note(self, name: str, error: Exception, **facts: object) -> None:
        """Log a failure, with its traceback where nobody expects it, and keep it."""
        told = None if isinstance(error, EXPECTED) else error
        log.warning(name, chain=self._chain, error=f"{type(error).__name__}: {error}", exc_info=told, **facts)
        self.add(error)

    def add(self, error: Exception) -> None:
        """Keep a failure that whoever runs the tick logs, unless another one is raised before it."""
        self._found.append(error)

    def forget(self, kind: type[Exception]) -> None:
        """Keep no failures of this kind: nothing is wrong that has to be told."""
        self._found = [error for error in self._found if not isinstance(error, kind)]

    def raise_one(self) -> None:
        """Raise the first that nobody expects, else the first, if there is any: an outage must not hide a defect."""
        if self._found:
            raise next((error for error in self._found if not isinstance(error, EXPECTED)), self._found[0])
