"""Puts together what the signer tells of itself: its rules in words, and what it remembers that people should see."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from fractions import Fraction

from cambist.domain.money import format_rate, format_units
from cambist.plugin import ChainInfo, Token

from .reports import Question, Refused, Report, RuleInForce, Void
from .rules import Caps, Rules, asset_name
from .store import Asked, Book

RULES_MAX = 5_000
QUESTIONS_MAX = 500
VOIDED_MAX = 100

_WORD = re.compile(r"[A-Za-z0-9_:.-]+")


def word(text: str) -> str:
    """Quote what is more than a word, so that no reference looks like another amount or address."""
    return text if _WORD.fullmatch(text) else json.dumps(text)


def question_of(asked: Asked) -> str:
    """Return in one line all that a person agrees to, once: what is signed is what it says."""
    brings = f", for at least {asked.bought_min} smallest units of {word(asked.bought)}" if asked.bought else ""
    where = asked.to_chain or asked.chain
    return (
        f"#{asked.pk}: {asked.text} ({asked.amount} smallest units of {word(asked.asset)}) to {asked.to_address}"
        f" on {where}{brings}; {word(asked.reference)}, {word(asked.purpose)} by {word(asked.asked_by or 'nobody')}"
    )


def report(  # noqa: PLR0913  what is told, each by name
    rules: Rules,
    book: Book,
    chains: Mapping[str, ChainInfo],
    *,
    refused: Iterable[Refused],
    answers_open: bool,
    locked_until: int | None,
) -> Report:
    """Tell how the signer is now."""
    names = {
        asset_name(chain.id, token.contract): (f"{chain.id}/{token.symbol}", token)
        for chain in chains.values()
        for token in chain.tokens
    }
    return Report(
        rules=list(_rules(rules, book, chains, names))[:RULES_MAX],
        addresses={
            "allowed_addresses": _listed(rules.allowed_addresses),
            "delegates": _listed(rules.delegates),
        },
        fresh_address_delay_s=rules.fresh_address_delay_s,
        questions=[_question(asked) for asked in book.asked()[:QUESTIONS_MAX]],
        voided=[
            Void(chain=chain, reference=reference, at=_moment(at)) for chain, reference, at in book.voided(VOIDED_MAX)
        ],
        refused=list(refused),
        answers_open=answers_open,
        locked_until=None if locked_until is None else _moment(locked_until),
    )


_Names = Mapping[str, tuple[str, Token]]


def _rules(rules: Rules, book: Book, chains: Mapping[str, ChainInfo], names: _Names) -> Iterator[RuleInForce]:
    yield from _caps("hourly_caps", rules.hourly_caps, names, book, "out ")
    yield from _caps("fresh_address_caps", rules.fresh_address_caps, names, book, "fresh ")
    yield from _caps("approval_limits", rules.approval_limits, names)
    natives = {chain.id: (chain.id, chain.native) for chain in chains.values()}
    yield from _caps("fee_caps", rules.fee_caps, natives)
    yield from _caps("fee_hourly_caps", rules.fee_hourly_caps, natives, book, "fee ")
    for asker, own in sorted(rules.askers.items()):
        yield from _caps(f"{asker}.hourly_caps", own.hourly_caps, names)
        yield from _caps(f"{asker}.fresh_address_caps", own.fresh_address_caps, names)
        if own.fresh_payouts_per_hour is not None:
            count = str(own.fresh_payouts_per_hour)
            yield RuleInForce(setting=f"{asker}.fresh_payouts_per_hour", name="each merchant", limit=count)
    for (sold, bought), rate in rules.floor_rates.items():
        if sold in names and bought in names:
            pair = f"{names[sold][0]} -> {names[bought][0]}"
            yield RuleInForce(setting="floor_rates", name=pair, limit=_rate(rate, names[sold][1], names[bought][1]))


def _caps(
    setting: str, caps: Caps, names: _Names, book: Book | None = None, counter: str = ""
) -> Iterator[RuleInForce]:
    for key, cap in caps.items():
        if key not in names:
            continue
        name, token = names[key]
        used = None if book is None else format_units(book.used(f"{counter}{key}"), token.decimals)
        limit = None if cap is None else format_units(cap, token.decimals)
        yield RuleInForce(setting=setting, name=name, limit=limit, used=used)


def _rate(rate: Fraction, sold: Token, bought: Token) -> str:
    whole = rate * 10**sold.decimals / 10**bought.decimals
    with localcontext() as context:
        context.prec = 60
        return format_rate(Decimal(whole.numerator) / Decimal(whole.denominator))


def _listed(addresses: Mapping[str, frozenset[str]]) -> Mapping[str, Sequence[str]]:
    return {chain: sorted(found) for chain, found in addresses.items()}


def _question(asked: Asked) -> Question:
    return Question(
        pk=asked.pk,
        question=question_of(asked),
        reference=asked.reference,
        purpose=asked.purpose,
        asked_by=asked.asked_by,
        chain=asked.chain,
        to_chain=asked.to_chain or asked.chain,
        to_address=asked.to_address,
        amount=asked.text,
        asked_at=_moment(asked.asked_at),
    )


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
