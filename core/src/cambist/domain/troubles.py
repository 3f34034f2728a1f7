"""What is wrong with a chain, a job, a change of a chain or a token: codes for programs, with sentences for people."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct


class Trouble(StrEnum):
    """Why a chain cannot be read, or a job failed or does not go on now.

    ``OTHER`` is whatever is said in other words, and ``UNEXPECTED`` a defect that the worker's log tells of.
    """

    RATE_LIMITED = "RATE_LIMITED"
    CHAIN_UNAVAILABLE = "CHAIN_UNAVAILABLE"
    CHAIN_INCONSISTENT = "CHAIN_INCONSISTENT"
    NODE_CANNOT_TELL = "NODE_CANNOT_TELL"
    CHAIN_NOT_CONNECTED = "CHAIN_NOT_CONNECTED"
    CHAIN_PAUSED = "CHAIN_PAUSED"
    WATCH_BEHIND = "WATCH_BEHIND"
    BLOCKS_LEFT = "BLOCKS_LEFT"
    SIGNER_UNAVAILABLE = "SIGNER_UNAVAILABLE"
    TIMED_OUT = "TIMED_OUT"
    WORKER_DIED = "WORKER_DIED"
    OTHER = "OTHER"
    UNEXPECTED = "UNEXPECTED"


SENTENCES: Mapping[Trouble, str] = {
    Trouble.RATE_LIMITED: "An endpoint takes no more calls for now: {words}",
    Trouble.CHAIN_UNAVAILABLE: "No endpoint of the chain answers: {words}",
    Trouble.CHAIN_INCONSISTENT: "What the endpoints answer does not agree: {words}",
    Trouble.NODE_CANNOT_TELL: "No endpoint can tell it: {words}",
    Trouble.CHAIN_NOT_CONNECTED: "{chain} is not connected.",
    Trouble.CHAIN_PAUSED: "Watching {chain} is paused by an operator.",
    Trouble.WATCH_BEHIND: "The live watch has blocks to read first.",
    Trouble.BLOCKS_LEFT: "The chain has left {blocks}: the live watch must go on first.",
    Trouble.TIMED_OUT: "The endpoint took longer than {seconds} s.",
    Trouble.WORKER_DIED: "A worker died of this job, again and again.",
}
"""What jobs say in the same words always, with what differs in braces."""


class Said(Struct, frozen=True):
    """What is in the way: a code for programs, and the sentence for people that it was found with."""

    code: Trouble
    words: str


class ChainProblem(StrEnum):
    """Why nobody watches a chain."""

    NOT_CONNECTED = "NOT_CONNECTED"
    NO_WORKER = "NO_WORKER"


PROBLEMS: Mapping[ChainProblem, str] = {
    ChainProblem.NOT_CONNECTED: "Its plugin could not connect it when the worker started: its log says why.",
    ChainProblem.NO_WORKER: "No worker tells that it watches this chain.",
}


class SetupProblem(StrEnum):
    """Why a change of a chain does not hold. ``SETUP_REFUSED`` is whatever its plugin says."""

    NOT_CHANGEABLE = "NOT_CHANGEABLE"
    SYMBOL_TAKEN = "SYMBOL_TAKEN"
    SETUP_REFUSED = "SETUP_REFUSED"


SETUP_PROBLEMS: Mapping[SetupProblem, str] = {
    SetupProblem.NOT_CHANGEABLE: "Its plugin cannot change it while the gateway runs.",
    SetupProblem.SYMBOL_TAKEN: (
        "{symbol} at {contract} was added, and stands for another contract in the operator's file."
    ),
}


class Unsendable(StrEnum):
    """Why nothing of a token leaves: the signer does not know it, or has not been asked whether it does."""

    NOT_IN_SIGNERS_FILE = "NOT_IN_SIGNERS_FILE"
    SIGNER_NOT_ASKED = "SIGNER_NOT_ASKED"


UNSENDABLE: Mapping[Unsendable, str] = {
    Unsendable.NOT_IN_SIGNERS_FILE: (
        "It is not in the signer's own file yet: add it to the tokens of its chain there, and start the signer again."
        " Until then it is received, and nothing of it leaves."
    ),
    Unsendable.SIGNER_NOT_ASKED: "The signer has not said yet whether it stands in its own file.",
}


class SetupSaid(Struct, frozen=True):
    """Why a change of a chain does not hold."""

    code: SetupProblem
    words: str


_RAISED: Mapping[str, Trouble] = {
    "RateLimitedError": Trouble.RATE_LIMITED,
    "StateUnavailableError": Trouble.NODE_CANNOT_TELL,
    "SpanTooWideError": Trouble.NODE_CANNOT_TELL,
    "InconsistentChainError": Trouble.CHAIN_INCONSISTENT,
    "ChainUnavailableError": Trouble.CHAIN_UNAVAILABLE,
    "SignerUnavailableError": Trouble.SIGNER_UNAVAILABLE,
    "TimeoutError": Trouble.TIMED_OUT,
}
"""By the names of classes."""


def trouble_with(error: Exception) -> Trouble:
    """Return the code of what reading a chain has raised, by the nearest of its classes that has one."""
    kinds = (_RAISED.get(kind.__name__) for kind in type(error).__mro__)
    return next((code for code in kinds if code is not None), Trouble.UNEXPECTED)


def say(code: Trouble, **values: str) -> Said:
    """Return a code with its sentence, in which ``values`` stand for what is in braces."""
    return Said(code, SENTENCES[code].format(**values))


def raised(error: Exception) -> Said:
    """Return what a worker writes down of what was raised: the words of an exception, behind the name of its class."""
    return Said(trouble_with(error), f"{type(error).__name__}: {error}")


def unread(error: Exception, *, timeout_s: float) -> Said:
    """Say why blocks could not be read; what took longer than ``timeout_s`` says nothing by itself."""
    code = trouble_with(error)
    if code is Trouble.TIMED_OUT:
        return say(code, seconds=f"{timeout_s:g}")
    return say(code, words=str(error)) if code in SENTENCES else Said(code, str(error))
