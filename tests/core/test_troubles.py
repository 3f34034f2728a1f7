"""What is wrong with a chain, a job or a change of a chain has a code beside its sentence."""

from __future__ import annotations

import pytest

from cambist.domain.troubles import (
    PROBLEMS,
    SENTENCES,
    SETUP_PROBLEMS,
    ChainProblem,
    Said,
    SetupProblem,
    Trouble,
    raised,
    say,
    trouble_with,
    unread,
)
from cambist.plugin import ChainUnavailableError, InconsistentChainError, RateLimitedError, StateUnavailableError
from cambist.signer.protocol import SignerUnavailableError

FILLED = {"words": "it ended.\nBadly: 1", "chain": "ethereum", "blocks": "block 7", "seconds": "15"}


class OwnError(ChainUnavailableError):
    """What a plugin raises of a class of its own."""


@pytest.mark.parametrize("code", SENTENCES)
def test_a_sentence_is_said_with_its_code_and_what_differs(code):
    said = say(code, **FILLED)
    assert (said.code, said.words) == (code, SENTENCES[code].format(**FILLED))
    assert "{" not in said.words


@pytest.mark.parametrize(
    "error, code",
    [
        (RateLimitedError("slow down"), Trouble.RATE_LIMITED),
        (ChainUnavailableError("away"), Trouble.CHAIN_UNAVAILABLE),
        (StateUnavailableError("pruned"), Trouble.NODE_CANNOT_TELL),
        (InconsistentChainError("two blocks 4"), Trouble.CHAIN_INCONSISTENT),
        (SignerUnavailableError("away"), Trouble.SIGNER_UNAVAILABLE),
        (TimeoutError(), Trouble.TIMED_OUT),
        (KeyError("height"), Trouble.UNEXPECTED),
        (OwnError("away"), Trouble.CHAIN_UNAVAILABLE),
    ],
)
def test_what_was_raised_has_the_code_of_the_nearest_class_that_has_one(error, code):
    assert trouble_with(error) is code
    assert raised(error) == Said(code, f"{type(error).__name__}: {error}")


@pytest.mark.parametrize("error", [RateLimitedError("slow"), StateUnavailableError("pruned"), TimeoutError()])
def test_why_blocks_could_not_be_read_is_said_in_a_sentence(error):
    said = unread(error, timeout_s=15.0)
    assert said.code is trouble_with(error)
    assert (str(error) or "longer than 15 s") in said.words


def test_what_has_no_sentence_is_said_in_its_own_words():
    assert unread(ValueError("no such thing"), timeout_s=1) == Said(Trouble.UNEXPECTED, "no such thing")


def test_each_code_has_its_sentence_but_those_that_others_words_stand_for():
    assert set(SENTENCES) | {Trouble.SIGNER_UNAVAILABLE, Trouble.OTHER, Trouble.UNEXPECTED} == set(Trouble)
    assert set(PROBLEMS) == set(ChainProblem)
    assert set(SETUP_PROBLEMS) | {SetupProblem.SETUP_REFUSED} == set(SetupProblem)
