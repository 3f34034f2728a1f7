"""What is wrong with a chain, a job or a change of a chain: a code for programs beside the sentence for people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum


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


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{\w+\\\}", ".*", re.escape(text)), re.DOTALL)


_SAID = [(code, _pattern(text)) for code, text in SENTENCES.items()]
_SETUP = [(code, _pattern(text)) for code, text in SETUP_PROBLEMS.items()]
_RAISED: Mapping[str, Trouble] = {
    "RateLimitedError": Trouble.RATE_LIMITED,
    "StateUnavailableError": Trouble.NODE_CANNOT_TELL,
    "SpanTooWideError": Trouble.NODE_CANNOT_TELL,
    "InconsistentChainError": Trouble.CHAIN_INCONSISTENT,
    "ChainUnavailableError": Trouble.CHAIN_UNAVAILABLE,
    "SignerUnavailableError": Trouble.SIGNER_UNAVAILABLE,
    "TimeoutError": Trouble.TIMED_OUT,
}
"""By the names of classes: a worker writes down what was raised behind the name of its class."""
_EXCEPTION = re.compile(r"(\w+): ", re.ASCII)


def trouble_of(sentence: str | None) -> Trouble | None:
    """Return the code of a sentence that says what is in a job's way; None where nothing is."""
    if sentence is None:
        return None
    found = next((code for code, pattern in _SAID if pattern.fullmatch(sentence)), None)
    if found is not None:
        return found
    raised = _EXCEPTION.match(sentence)
    return Trouble.OTHER if raised is None else _RAISED.get(raised[1], Trouble.UNEXPECTED)


def trouble_with(error: Exception) -> Trouble:
    """Return the code of what reading a chain has raised, by the nearest of its classes that has one."""
    kinds = (_RAISED.get(kind.__name__) for kind in type(error).__mro__)
    return next((code for code in kinds if code is not None), Trouble.UNEXPECTED)


def words_for(error: Exception, *, timeout_s: float) -> str:
    """Say in a sentence why blocks could not be read; what took longer than ``timeout_s`` says nothing by itself."""
    code = trouble_with(error)
    if code is Trouble.TIMED_OUT:
        return SENTENCES[code].format(seconds=f"{timeout_s:g}")
    text = SENTENCES.get(code)
    return str(error) if text is None else text.format(words=error)


def problem_of(sentence: str | None) -> ChainProblem | None:
    """Return the code of a sentence that says why nobody watches a chain; None where somebody does."""
    if sentence is None:
        return None
    return next((code for code, text in PROBLEMS.items() if text == sentence), ChainProblem.NOT_CONNECTED)


def setup_problem_of(sentence: str | None) -> SetupProblem | None:
    """Return the code of a sentence that says why a change of a chain does not hold; None where all do."""
    if sentence is None:
        return None
    return next((code for code, pattern in _SETUP if pattern.fullmatch(sentence)), SetupProblem.SETUP_REFUSED)
