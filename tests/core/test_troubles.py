"""What is wrong with a chain, a job or a change of a chain has a code beside its sentence."""

from __future__ import annotations

import pytest

from cambist.domain.troubles import (
    PROBLEMS,
    SENTENCES,
    SETUP_PROBLEMS,
    ChainProblem,
    SetupProblem,
    Trouble,
    problem_of,
    setup_problem_of,
    trouble_of,
    trouble_with,
    words_for,
)
from cambist.plugin import ChainUnavailableError, InconsistentChainError, RateLimitedError, StateUnavailableError
from cambist.signer.protocol import SignerUnavailableError

FILLED = {"words": "it ended.\nBadly: 1", "chain": "ethereum", "blocks": "block 7", "seconds": "15"}


class OwnError(ChainUnavailableError):
    """What a plugin raises of a class of its own."""


@pytest.mark.parametrize("code", SENTENCES)
def test_a_sentence_that_jobs_say_has_its_own_code_whatever_stands_in_it(code):
    assert trouble_of(SENTENCES[code].format(**FILLED)) is code


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
    ],
)
def test_what_was_raised_has_the_same_code_by_itself_and_as_a_worker_writes_it_down(error, code):
    assert trouble_with(error) is code
    assert trouble_of(f"{type(error).__name__}: {error}") is code


def test_an_error_of_a_plugins_own_has_the_code_of_the_nearest_class_that_has_one():
    assert trouble_with(OwnError("away")) is Trouble.CHAIN_UNAVAILABLE


@pytest.mark.parametrize("error", [RateLimitedError("slow"), StateUnavailableError("pruned"), TimeoutError()])
def test_why_blocks_could_not_be_read_is_said_so_that_its_code_is_found_again(error):
    words = words_for(error, timeout_s=15.0)
    assert trouble_of(words) is trouble_with(error)
    assert (str(error) or "longer than 15 s") in words


def test_what_has_no_sentence_is_said_in_its_own_words():
    assert words_for(ValueError("no such thing"), timeout_s=1) == "no such thing"


def test_other_words_are_no_defect_and_nothing_has_no_code():
    assert trouble_of("There is no such job.") is Trouble.OTHER
    assert trouble_of(None) is None
    assert set(SENTENCES) | {Trouble.SIGNER_UNAVAILABLE, Trouble.OTHER, Trouble.UNEXPECTED} == set(Trouble)


@pytest.mark.parametrize("code", PROBLEMS)
def test_why_nobody_watches_a_chain_has_a_code(code):
    assert problem_of(PROBLEMS[code]) is code


@pytest.mark.parametrize("code", SETUP_PROBLEMS)
def test_why_a_change_does_not_hold_has_a_code(code):
    said = SETUP_PROBLEMS[code].format(symbol="USDX", contract="0x5b")
    assert setup_problem_of(said) is code


def test_several_tokens_that_do_not_hold_are_one_trouble():
    said = [SETUP_PROBLEMS[SetupProblem.SYMBOL_TAKEN].format(symbol=one, contract="0x5b") for one in ("USDX", "EURX")]
    assert setup_problem_of(" ".join(said)) is SetupProblem.SYMBOL_TAKEN


def test_what_a_plugin_says_of_a_change_is_a_refusal_and_no_problem_has_no_code():
    assert setup_problem_of("the address is none") is SetupProblem.SETUP_REFUSED
    assert (setup_problem_of(None), problem_of(None)) == (None, None)
    assert set(PROBLEMS) == set(ChainProblem)
    assert set(SETUP_PROBLEMS) | {SetupProblem.SETUP_REFUSED} == set(SetupProblem)
