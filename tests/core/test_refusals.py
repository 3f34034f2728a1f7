"""Each reason why an operator's wish is not met has a word that programs know it by."""

from __future__ import annotations

import re

import pytest

from cambist.domain.refusals import SENTENCES, WishRefusal, refusal_of

TOLD = dict.fromkeys(("found", "wanted", "times", "cost", "allowed", "reason"), "0x12 (a\nb) {c}")


@pytest.mark.parametrize("code", SENTENCES)
def test_a_sentence_is_told_by_its_own_word_whatever_stands_in_it(code):
    names = re.findall(r"\{(\w+)\}", SENTENCES[code])
    assert refusal_of(SENTENCES[code].format(**{name: TOLD[name] for name in names})) is code


def test_what_a_chain_says_in_its_own_words_has_one_word_and_nothing_has_none():
    assert set(WishRefusal) - set(SENTENCES) == {WishRefusal.CHAIN_REFUSED}
    assert refusal_of("the fee would be above the ceiling of 50 gwei") is WishRefusal.CHAIN_REFUSED
    assert refusal_of(None) is None
