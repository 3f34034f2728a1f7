"""What the service is asked and what it answers, as JSON. Amounts are decimal digits: no JSON number is that exact."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Digits = Annotated[str, Meta(pattern=r"^[0-9]{1,78}$")]
Hex = Annotated[str, Meta(pattern=r"^0x([0-9a-f]{2})*$", max_length=2_000)]


class QuoteAsked(Struct, frozen=True, kw_only=True):
    """So much of one token for another, on the chain of this number. The zero address is native coin."""

    chain: int
    sells: str
    buys: str
    units: Digits


class CallAsked(QuoteAsked, frozen=True, kw_only=True):
    """The same, to be done: with who gives, who gets, and the least that arrives."""

    sender: str
    recipient: str
    units_min: Digits


class QuoteTold(Struct, frozen=True, kw_only=True):
    """What would come out, and what of the token that is sold the service keeps."""

    units: Digits
    fee: Digits


class CallTold(Struct, frozen=True, kw_only=True):
    """The call: of which contract, with which bytes and how much native coin."""

    to: str
    data: Hex
    value: Digits


class Refusal(Struct, frozen=True, kw_only=True):
    """Why it will not do it: a code for programs, a sentence for people."""

    code: str
    message: str
