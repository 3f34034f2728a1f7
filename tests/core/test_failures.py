"""Why something failed has a code beside its sentence, which says no more and no less."""

from __future__ import annotations

import pytest

from cambist.domain.failures import BEGINNINGS, SENTENCES, Failure, code_of
from cambist.domain.intents import AskedBy
from cambist.services.sending import batches, intents
from cambist.services.sending.cancelling import REASONS, WAITS_FOR_PROOF
from cambist.services.sending.queue.reasons import sentence_of


@pytest.mark.parametrize("failure", SENTENCES)
def test_a_sentence_that_is_told_in_the_same_words_always_has_its_own_code(failure):
    assert code_of(SENTENCES[failure]) is failure


@pytest.mark.parametrize("failure", BEGINNINGS)
def test_a_sentence_that_goes_on_with_others_words_has_the_code_of_its_beginning(failure):
    assert code_of(f"{BEGINNINGS[failure]}TARGET_NOT_ALLOWED") is failure


def test_what_others_say_is_a_refusal_and_nothing_has_no_code():
    assert code_of("USDX refuses 0x5555") is Failure.REFUSED
    assert code_of("it reverts: It was cancelled.") is Failure.REFUSED
    assert code_of(None) is None
    assert set(SENTENCES) | set(BEGINNINGS) | {Failure.REFUSED} == set(Failure)


@pytest.mark.parametrize("asked_by", AskedBy)
def test_whoever_cancels_is_told_by_a_code(asked_by):
    assert str(code_of(REASONS[asked_by])).startswith("CANCELLED")


def test_what_something_waits_for_is_said_in_a_sentence():
    codes = [getattr(batches, name) for name in dir(batches) if name.startswith("WAITS_FOR_")]
    codes += [intents.WAITS_FOR_CANCELLATION, WAITS_FOR_PROOF, "allowance", "provider", "signer: HOURLY_CAP"]
    for code in codes:
        assert sentence_of(code).endswith("."), code
    assert sentence_of("signer: SOMETHING_NEW") == "The signer refuses it: SOMETHING_NEW. Its log says why."
    assert sentence_of("turn") != sentence_of("turn", of_exchange=True)
