"""What the signer makes of a payload: what leaves by it and for whom, or why it is not signed."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from msgspec import Struct

from cambist.domain.money import format_units
from cambist.plugin import ChainInfo


class Refusal(Struct, frozen=True):
    """Why something is not signed. ``retry_at_s``: when it may be, in seconds since 1970; None: not by waiting.

    Where it was signed before, ``slot_number`` says for what, and ``tx_id`` what came of it, if that is known.
    """

    code: str
    reason: str
    retry_at_s: int | None = None
    slot_number: int | None = None
    tx_id: str | None = None


class Recipient(NamedTuple):
    """Where money goes: an address, and the chain on which it is somebody's."""

    chain: str
    address: str


class Price(Enum):
    """What is known of the worth of what comes back for an outflow.

    A transfer has none. So has an exchange whose least output meets the operator's floor, and goes to somebody else.
    ``FLOOR`` meets it, too, and goes to the merchant's own wallet: only the margin below the market can be lost.
    ``UNKNOWN`` may be a bad bargain. Then it is whoever made it that gets the money, and not who is named.
    """

    NONE = auto()
    FLOOR = auto()
    UNKNOWN = auto()


class Outflow(Struct, frozen=True):
    """What leaves for one address; ``text`` is the amount in words for the operator.

    ``to_address`` has its tag behind a ``#``, where it has one: with another tag it is another recipient. ``asset`` is
    of the chain that the payload is for. ``to_chain`` is another one where a bridge pays out. Of an exchange, at least
    ``bought_min`` of ``bought`` must come. What a bridge does not pay out comes back after ``away_until``, in seconds
    since 1970.
    """

    asset: str
    to_chain: str
    to_address: str
    amount: int
    text: str
    price: Price = Price.NONE
    bought: str = ""
    bought_min: int = 0
    away_until: int | None = None

    @property
    def recipient(self) -> Recipient:
        return Recipient(self.to_chain, self.to_address)


def in_words(chain: ChainInfo, contract: str | None, amount: int) -> str:
    """Return an amount of one of the chain's tokens as the operator reads it."""
    token = next(token for token in chain.tokens if token.contract == contract)
    return f"{format_units(amount, token.decimals)} {token.symbol}"
